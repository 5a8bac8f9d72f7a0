// The instrument: a plugin of the emulator that counts between two marks.
//
// Arguments: out=FILE (required); user=LOW-HIGH, addresses of the upper half that
// are executed in user mode; vectors=LOW-HIGH, where the kernel's interrupt entries
// are, exceptions first (twice: those of the first processor, those of the others); stands=LOW-HIGH, where a
// visitor's processor stands still; resume=ADDRESS, where the kernel goes on with what it had put off; kept=ADDRESS, where it keeps an interrupt for later; device=LOW-HIGH, the entries of devices' interrupts; checker=LOW-HIGH (repeatable), code of the kernel's own checker; trace=N,
// the sample whose instructions are listed; stretch, to watch only how long interrupts are off and
// how late their handlers are (quicker).
//
// One line per sample, in the order in which they end:
//     sample N user=.. kernel=.. entries=.. (and lines, pages, costly instructions)
// then what stretch.h says about the whole run. The file is appended to: several
// machines, one after the other, can share it, and with stretch also at once.
// Of several processors each has samples of its own: what it does between a mark that it meets and the
// next; what the others do meanwhile is counted beside it. Such a sample says more: its processor, where
// it began, its phase (a third mark begins one), what its processor has executed so far (clock), and each (clock0, ..), how many interrupts any
// processor has sent to another meanwhile, and how many lines the samples of the phase have shared so far, without those that an
// interrupt or another processor came into; and how many lines whatever processors did meanwhile has shared (uany, kany). So do samples of one processor behind a third mark. The processors must
// take turns (-icount, or one thread for all): the plugin has no locks.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decode.h"
#include "handler.h"
#include "qemu.h"
#include "set.h"
#include "shared.h"
#include "stretch.h"

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

enum mode { USER, KERNEL, MODES };
enum kind { CODE, DATA, KINDS };
enum { EXCEPTIONS = 32, VECTOR_BYTES = 16, VECTOR_TABLES = 2 }; // of the processor; of an entry in the kernel
// Where the kernel sees its local APIC; a word that is written at COMMAND leaves as a message (kernel_tables.rs, apic.rs).
#define COMMAND UINT64_C(0xFFFFFFFF9FE00300)
enum { LINE_BITS = 6, PAGE_BITS = 12, PAGE_BYTES = 1 << PAGE_BITS, BUCKETS = 1 << 16, MAX_INSN = 15, MAX_CHECKERS = 64, REPORT_BYTES = 1 << 22 };

struct range {
    uint64_t low, high; // high is exclusive
};

// What is known about an instruction at an address; kept for the whole run.
struct insn {
    struct insn *next;
    uint64_t address;
    char *text; // only while tracing
    uint8_t bytes[MAX_INSN], size;
    uint8_t mode, cost, role;
    struct block *block; // if a block of code begins here
    bool checker;
};

static struct {
    FILE *out;
    struct range user, vectors[VECTOR_TABLES], stands, device, checkers[MAX_CHECKERS];
    unsigned checker_count, vector_tables;
    uint64_t resume, kept, window;
    int64_t trace;
    bool stretch_only;
} options = { .trace = -1 };

static struct insn *buckets[BUCKETS];

// How much higher the kernel is than it was linked: from a disc it moves, and is found by its window for
// interrupts, whose STI no other has at this place in a page.
static uint64_t moved;

// The sample at hand of each processor.
struct sample {
    bool active;
    uint64_t begin, instructions[MODES], others[MODES], costs[MODES][COSTS], entries, messages;
    enum mode last_mode;
    struct set lines[MODES][KINDS], pages[MODES][KINDS], all_pages[MODES];
};
static struct sample at_hand[PROCESSORS];
static int processors;
static int64_t samples;
static uint64_t phase, clocks[PROCESSORS];

static bool inside(struct range range, uint64_t address)
{
    return address >= range.low && address < range.high;
}

static enum mode mode_of(uint64_t address)
{
    return address >> 63 && !inside(options.user, address) ? KERNEL : USER;
}

// --- the stretch with interrupts off ------------------------------------------

static enum entry entry_at(uint64_t address)
{
    address -= moved;
    for (unsigned i = 0; i < options.vector_tables; i++)
        if (inside(options.vectors[i], address))
            return address - options.vectors[i].low < EXCEPTIONS * VECTOR_BYTES ? EXCEPTION : INTERRUPT;
    return NO_ENTRY;
}

static void on_block(unsigned vcpu, void *userdata)
{
    struct insn *insn = userdata;
    if (inside(options.device, insn->address - moved))
        handler_waits(vcpu, clocks[vcpu]);
    if (insn->address - moved == options.resume)
        stretch_chosen(vcpu, insn->address);
    if (insn->address - moved == options.kept)
        stretch_kept(vcpu);
    stretch_block(vcpu, insn->block, insn->mode == USER, entry_at(insn->address));
    if (insn->checker)
        stretch_excuse(vcpu);
}

static void on_flag(unsigned vcpu, void *userdata)
{
    struct insn *insn = userdata;
    if (insn->mode == USER)
        return;
    if (insn->cost == COST_HALT) {
        stretch_halt(vcpu, insn->address);
        return;
    }
    if (insn->role == ROLE_PAUSE) {
        // On one processor nobody waits for another.
        if (processors > 1)
            stretch_pause(vcpu, insn->address, inside(options.stands, insn->address - moved));
        return;
    }
    if (insn->role == ROLE_RETURN)
        stretch_watch(vcpu);
    if (insn->role == ROLE_CLI)
        stretch_off(vcpu, insn->address);
    else if (insn->cost != COST_SYSRET) // sti, or iret to what was interrupted in a window
        stretch_on(vcpu, insn->address);
}

// Of several processors each instruction is counted here, after the callbacks of its block.
static void on_step(unsigned vcpu, void *userdata)
{
    (void)userdata;
    executed[vcpu]++;
}

// --- samples --------------------------------------------------------------------

static void begin_sample(struct sample *sample, unsigned vcpu, uint64_t address)
{
    if (sample->active)
        fprintf(options.out, "restart %" PRId64 "\n", samples);
    sample->active = true;
    sample->begin = address;
    memset(sample->instructions, 0, sizeof sample->instructions);
    memset(sample->others, 0, sizeof sample->others);
    memset(sample->costs, 0, sizeof sample->costs);
    sample->entries = sample->messages = 0;
    sample->last_mode = USER;
    stretch_sample(vcpu);
    shared_begin(vcpu);
    for (int mode = 0; mode < MODES; mode++) {
        set_clear(&sample->all_pages[mode]);
        for (int kind = 0; kind < KINDS; kind++) {
            set_clear(&sample->lines[mode][kind]);
            set_clear(&sample->pages[mode][kind]);
        }
    }
    if (samples == options.trace)
        fprintf(options.out, "trace %" PRId64 "\n", samples);
}

static void end_sample(struct sample *sample, unsigned vcpu)
{
    static const char *const modes = "uk", *const kinds = "cd", *const names[] = COST_NAMES;
    FILE *out = options.out;
    if (!sample->active) {
        fprintf(out, "stray %" PRId64 "\n", samples);
        return;
    }
    sample->active = false;
    fprintf(out, "sample %" PRId64 " user=%" PRIu64 " kernel=%" PRIu64 " entries=%" PRIu64 " off=%" PRIu64,
            samples++, sample->instructions[USER], sample->instructions[KERNEL], sample->entries, stretch_sample(vcpu));
    for (int mode = 0; mode < MODES; mode++) {
        fprintf(out, " %cpages=%" PRIu64, modes[mode], sample->all_pages[mode].count);
        for (int kind = 0; kind < KINDS; kind++)
            fprintf(out, " %c%clines=%" PRIu64 " %c%cpages=%" PRIu64, modes[mode], kinds[kind],
                    sample->lines[mode][kind].count, modes[mode], kinds[kind], sample->pages[mode][kind].count);
    }
    for (int cost = COST_NONE + 1; cost < COSTS; cost++)
        if (sample->costs[USER][cost] + sample->costs[KERNEL][cost])
            fprintf(out, " %s=%" PRIu64, names[cost], sample->costs[USER][cost] + sample->costs[KERNEL][cost]);
    // Whoever was interrupted, or served on another processor, comes back by an iret.
    if (!sample->costs[KERNEL][COST_IRET] && !sample->costs[KERNEL][COST_HALT])
        shared_keep(vcpu);
    if (processors > 1 || phase)
        fprintf(out, " cpu=%u begin=%" PRIu64 " phase=%" PRIu64 " clock=%" PRIu64 " messages=%" PRIu64 " ouser=%" PRIu64 " okernel=%" PRIu64 " ushared=%" PRIu64 " kshared=%" PRIu64,
                vcpu, sample->begin, phase, clocks[vcpu], sample->messages, sample->others[USER], sample->others[KERNEL], shared_count(USER), shared_count(KERNEL));
    if (processors > 1)
        fprintf(out, " uany=%" PRIu64 " kany=%" PRIu64, shared_any_count(USER), shared_any_count(KERNEL));
    for (int any = 0; processors > 1 && any < processors; any++)
        fprintf(out, " clock%d=%" PRIu64, any, clocks[any]);
    fputc('\n', out);
    fflush(out);
}

static void touch(struct sample *sample, enum mode mode, enum kind kind, uint64_t address, uint64_t bytes)
{
    uint64_t last = address + bytes - 1;
    for (uint64_t line = address >> LINE_BITS; line <= last >> LINE_BITS; line++)
        set_add(&sample->lines[mode][kind], line);
    for (uint64_t page = address >> PAGE_BITS; page <= last >> PAGE_BITS; page++) {
        set_add(&sample->pages[mode][kind], page);
        set_add(&sample->all_pages[mode], page);
    }
}

static void on_instruction(unsigned vcpu, void *userdata)
{
    struct insn *insn = userdata;
    clocks[vcpu]++;
    bool counts = at_hand[vcpu].active;
    for (unsigned other = 0; other < (unsigned)processors; other++)
        if (other != vcpu && at_hand[other].active) {
            at_hand[other].others[insn->mode]++;
            counts = true;
        }
    if (counts && samples == options.trace)
        fprintf(options.out, processors > 1 ? "i %c %" PRIx64 " %s #%u\n" : "i %c %" PRIx64 " %s\n", "uk"[insn->mode],
                insn->address, insn->text ? insn->text : "?", vcpu);
    struct sample *sample = &at_hand[vcpu];
    if (!sample->active)
        return;
    sample->instructions[insn->mode]++;
    sample->costs[insn->mode][insn->cost]++;
    sample->entries += insn->mode == KERNEL && sample->last_mode == USER;
    sample->last_mode = insn->mode;
    touch(sample, insn->mode, CODE, insn->address, insn->size);
}

static void on_memory(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *userdata)
{
    struct insn *insn = userdata;
    if (address == COMMAND && insn->mode == KERNEL && qemu_plugin_mem_is_store(info))
        for (unsigned any = 0; any < (unsigned)processors; any++)
            at_hand[any].messages++;
    struct sample *sample = &at_hand[vcpu];
    bool writes = qemu_plugin_mem_is_store(info), anybody = false;
    for (unsigned other = 0; other < (unsigned)processors; other++)
        anybody |= at_hand[other].active;
    if (!anybody)
        return;
    // Processors have different memory at the same address: it is the machine's that counts.
    struct qemu_plugin_hwaddr *place = processors > 1 ? qemu_plugin_get_hwaddr(info, address) : NULL;
    uint64_t line = place && !qemu_plugin_hwaddr_is_io(place) ? qemu_plugin_hwaddr_phys_addr(place) >> LINE_BITS : 0;
    if (line)
        shared_any_touch(vcpu, insn->mode, line, writes);
    if (!sample->active)
        return;
    uint64_t bytes = UINT64_C(1) << qemu_plugin_mem_size_shift(info);
    touch(sample, insn->mode, DATA, address, bytes);
    if (samples == options.trace)
        fprintf(options.out, "m %c %" PRIx64 " %" PRIu64 "\n", writes ? 'w' : 'r', address, bytes);
    if (line)
        shared_touch(vcpu, insn->mode, line, writes);
}

static void on_mark(unsigned vcpu, void *userdata)
{
    struct insn *insn = userdata;
    if (insn->role == ROLE_HANDLER) {
        handler_runs(vcpu, clocks[vcpu], phase, &samples, options.out);
    } else if (insn->role == ROLE_BEGIN) {
        begin_sample(&at_hand[vcpu], vcpu, insn->address);
    } else if (insn->role == ROLE_END) {
        end_sample(&at_hand[vcpu], vcpu);
    } else {
        phase++;
        shared_clear();
    }
}

// --- translation ------------------------------------------------------------------

static struct insn *insn_of(const struct qemu_plugin_insn *from)
{
    uint64_t address = qemu_plugin_insn_vaddr(from);
    const uint8_t *bytes = qemu_plugin_insn_data(from);
    size_t size = qemu_plugin_insn_size(from);
    size = size > MAX_INSN ? MAX_INSN : size;
    struct insn **bucket = &buckets[(address ^ address >> 16) & (BUCKETS - 1)];
    for (struct insn *insn = *bucket; insn; insn = insn->next)
        if (insn->address == address && insn->size == size && memcmp(insn->bytes, bytes, size) == 0)
            return insn;
    struct insn *insn = calloc(1, sizeof *insn);
    if (!insn)
        abort();
    memcpy(insn->bytes, bytes, size);
    insn->next = *bucket;
    insn->address = address;
    insn->size = (uint8_t)size;
    insn->mode = mode_of(address);
    insn->cost = decode_cost(bytes, size);
    insn->role = decode_role(bytes, size);
    if (insn->role == ROLE_STI && insn->mode == KERNEL && (address - options.window) % PAGE_BYTES == 0)
        moved = address - options.window;
    for (unsigned i = 0; i < options.checker_count; i++)
        insn->checker |= inside(options.checkers[i], address - moved);
    insn->text = options.trace >= 0 ? qemu_plugin_insn_disas(from) : NULL;
    *bucket = insn;
    return insn;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *at = qemu_plugin_tb_get_insn(tb, i);
        struct insn *insn = insn_of(at);
        if (i == 0) {
            if (!insn->block && !(insn->block = calloc(1, sizeof *insn->block)))
                abort();
            insn->block->address = insn->address;
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_block, CB_NO_REGS, insn);
        }
        if (insn->role >= ROLE_STI || insn->cost == COST_HALT)
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_flag, CB_NO_REGS, insn);
        if (processors == 1)
            qemu_plugin_register_vcpu_insn_exec_inline(at, INLINE_ADD_U64, &executed[0], 1);
        else
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_step, CB_NO_REGS, NULL);
        if (options.stretch_only)
            continue;
        bool mark = insn->role == ROLE_BEGIN || insn->role == ROLE_END || insn->role == ROLE_PHASE || insn->role == ROLE_HANDLER;
        qemu_plugin_register_vcpu_insn_exec_cb(at, mark ? on_mark : on_instruction, CB_NO_REGS, insn);
        qemu_plugin_register_vcpu_mem_cb(at, on_memory, CB_NO_REGS, MEM_RW, insn);
    }
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
    (void)id;
    (void)userdata;
    stretch_report(options.out, (unsigned)processors, moved);
    fclose(options.out);
}

static bool read_option(const char *word)
{
    if (strncmp(word, "out=", 4) == 0)
        return (options.out = fopen(word + 4, "a")) != NULL;
    if (sscanf(word, "user=%" SCNx64 "-%" SCNx64, &options.user.low, &options.user.high) == 2)
        return true;
    struct range *vectors = &options.vectors[options.vector_tables];
    if (options.vector_tables < VECTOR_TABLES &&
        sscanf(word, "vectors=%" SCNx64 "-%" SCNx64, &vectors->low, &vectors->high) == 2) {
        options.vector_tables++;
        return true;
    }
    if (sscanf(word, "stands=%" SCNx64 "-%" SCNx64, &options.stands.low, &options.stands.high) == 2)
        return true;
    struct range *checker = &options.checkers[options.checker_count];
    if (options.checker_count < MAX_CHECKERS &&
        sscanf(word, "checker=%" SCNx64 "-%" SCNx64, &checker->low, &checker->high) == 2) {
        options.checker_count++;
        return true;
    }
    if (sscanf(word, "resume=%" SCNx64, &options.resume) == 1 || sscanf(word, "kept=%" SCNx64, &options.kept) == 1
        || sscanf(word, "window=%" SCNx64, &options.window) == 1
        || sscanf(word, "device=%" SCNx64 "-%" SCNx64, &options.device.low, &options.device.high) == 2)
        return true;
    if (sscanf(word, "trace=%" SCNd64, &options.trace) == 1)
        return true;
    options.stretch_only |= strncmp(word, "stretch", 7) == 0;
    return strncmp(word, "stretch", 7) == 0;
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!read_option(argv[i])) {
            fprintf(stderr, "instrument: cannot use the argument `%s`\n", argv[i]);
            return 1;
        }
    }
    // One write for all, so that no other machine's lines come in between.
    if (options.stretch_only && options.out)
        setvbuf(options.out, NULL, _IOFBF, REPORT_BYTES);
    processors = info->smp_vcpus;
    if (!options.out || !info->system_emulation || processors < 1 || processors > PROCESSORS) {
        fprintf(stderr, "instrument: it needs out=FILE and a machine with 1 to %d processors\n", PROCESSORS);
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
