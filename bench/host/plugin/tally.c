// The tally: a plugin of the emulator that says of long work how many instructions are whose, and where they are.
//
// Arguments: out=FILE (required); own=FILE (repeatable), the ELF file of a program of Baton's own tasks; user=LOW-HIGH,
// addresses of the upper half that are executed in user mode (tasks of Baton's, too); places=N, the sample of which
// every executed address is listed, but for those of programs.
//
// Programs of Debian's may be at the same addresses as those of Baton's tasks: what is executed is the latter's where it
// is byte for byte what their files have there.
//
// One line per sample: `sample N program=.. server=.. kernel=..`; behind the one that was asked for, lines
// `place HEX TIMES`. Nothing is looked at while the machine runs but two marks: each instruction has a count of its own
// that the translated code raises by itself. Several processors must take turns (-icount, or one thread for all), and are counted together.
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "qemu.h"

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

enum whose { PROGRAM, SERVER, KERNEL, WHOSE };
enum { BUCKETS = 1 << 18 };

// The instructions of somebody's at an address, whatever programs have there.
struct place {
    struct place *next;
    uint64_t address, times;
    enum whose whose;
};

// Code of a program of Baton's own tasks.
struct code {
    struct code *next;
    uint64_t start, end;
    uint8_t bytes[];
};

static struct {
    FILE *out;
    uint64_t low, high;
    int64_t places;
} options = { .places = -1 };

static struct code *own;

static struct place *buckets[BUCKETS];
static int64_t samples;

static bool is_own(struct qemu_plugin_tb *block)
{
    for (struct code *code = own; code; code = code->next) {
        bool is_same = true;
        for (size_t i = 0; is_same && i < qemu_plugin_tb_n_insns(block); i++) {
            struct qemu_plugin_insn *at = qemu_plugin_tb_get_insn(block, i);
            uint64_t address = qemu_plugin_insn_vaddr(at);
            size_t size = qemu_plugin_insn_size(at);
            is_same = address >= code->start && address + size <= code->end &&
                      memcmp(code->bytes + (address - code->start), qemu_plugin_insn_data(at), size) == 0;
        }
        if (is_same)
            return true;
    }
    return false;
}

static enum whose whose(struct qemu_plugin_tb *block)
{
    uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0));
    if (address >= options.low && address < options.high)
        return SERVER;
    if (address >> 63)
        return KERNEL;
    return is_own(block) ? SERVER : PROGRAM;
}

static struct place *place_at(uint64_t address, enum whose whose)
{
    struct place **bucket = &buckets[(address ^ address >> 18) & (BUCKETS - 1)];
    for (struct place *place = *bucket; place; place = place->next)
        if (place->address == address && place->whose == whose)
            return place;
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        abort();
    *place = (struct place){ .next = *bucket, .address = address, .whose = whose };
    return *bucket = place;
}

static void begin_sample(void)
{
    for (size_t at = 0; at < BUCKETS; at++)
        for (struct place *place = buckets[at]; place; place = place->next)
            place->times = 0;
}

static void end_sample(void)
{
    uint64_t sums[WHOSE] = { 0 };
    for (size_t at = 0; at < BUCKETS; at++)
        for (struct place *place = buckets[at]; place; place = place->next)
            sums[place->whose] += place->times;
    fprintf(options.out, "sample %" PRId64 " program=%" PRIu64 " server=%" PRIu64 " kernel=%" PRIu64 "\n",
            samples, sums[PROGRAM], sums[SERVER], sums[KERNEL]);
    for (size_t at = 0; samples == options.places && at < BUCKETS; at++)
        for (struct place *place = buckets[at]; place; place = place->next)
            if (place->times && place->whose != PROGRAM)
                fprintf(options.out, "place %" PRIx64 " %" PRIu64 "\n", place->address, place->times);
    fflush(options.out);
    samples++;
}

static void on_mark(unsigned vcpu, void *userdata)
{
    (void)vcpu;
    if (userdata)
        begin_sample();
    else
        end_sample();
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    enum whose it_is = whose(tb);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *at = qemu_plugin_tb_get_insn(tb, i);
        struct place *place = place_at(qemu_plugin_insn_vaddr(at), it_is);
        enum role role = decode_role(qemu_plugin_insn_data(at), qemu_plugin_insn_size(at));
        if (role == ROLE_BEGIN || role == ROLE_END)
            qemu_plugin_register_vcpu_insn_exec_cb(at, on_mark, CB_NO_REGS, role == ROLE_BEGIN ? place : NULL);
        else
            qemu_plugin_register_vcpu_insn_exec_inline(at, INLINE_ADD_U64, &place->times, 1);
    }
}

static bool read_segment(FILE *file, const Elf64_Phdr *segment)
{
    struct code *code = malloc(sizeof *code + segment->p_filesz);
    if (!code)
        return false;
    code->next = own;
    code->start = segment->p_vaddr;
    code->end = segment->p_vaddr + segment->p_filesz;
    own = code;
    return fseek(file, (long)segment->p_offset, SEEK_SET) == 0 &&
           fread(code->bytes, 1, segment->p_filesz, file) == segment->p_filesz;
}

static bool read_own(const char *name)
{
    FILE *file = fopen(name, "rb");
    Elf64_Ehdr header;
    bool is_read = file && fread(&header, sizeof header, 1, file) == 1 && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    for (unsigned i = 0; is_read && i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        is_read = fseek(file, (long)(header.e_phoff + i * sizeof segment), SEEK_SET) == 0 &&
                  fread(&segment, sizeof segment, 1, file) == 1;
        if (is_read && segment.p_type == PT_LOAD && segment.p_flags & PF_X)
            is_read = read_segment(file, &segment);
    }
    if (file)
        fclose(file);
    return is_read;
}

static bool read_option(const char *word)
{
    if (strncmp(word, "out=", 4) == 0)
        return (options.out = fopen(word + 4, "a")) != NULL;
    if (strncmp(word, "own=", 4) == 0)
        return read_own(word + 4);
    return sscanf(word, "user=%" SCNx64 "-%" SCNx64, &options.low, &options.high) == 2 ||
           sscanf(word, "places=%" SCNd64, &options.places) == 1;
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!read_option(argv[i])) {
            fprintf(stderr, "tally: cannot use the argument `%s`\n", argv[i]);
            return 1;
        }
    }
    if (!options.out || !info->system_emulation) {
        fprintf(stderr, "tally: it needs out=FILE and a whole machine\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
