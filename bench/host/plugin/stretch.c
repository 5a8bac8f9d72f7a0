#include "stretch.h"

#include <inttypes.h>
#include <string.h>

// Most instructions of a round of a loop that waits.
enum { MAX_BLOCKS = 4096, MAX_ROUND = 64 };
// Where the kernel's image can be (docs/kernel-plan.md).
#define KERNEL_LOW UINT64_C(0xFFFFFFFF80000000)
#define KERNEL_HIGH UINT64_C(0xFFFFFFFFA0000000)

uint64_t executed[PROCESSORS];

// The stretch of a kind at hand, and of it what was waiting.
struct now {
    bool is, excused;
    uint64_t number, since, from, count, last_since, waited;
    struct block *blocks[MAX_BLOCKS], *last;
};

struct longest {
    uint64_t instructions, since, from, to, count;
    struct {
        uint64_t address, instructions;
    } places[MAX_BLOCKS];
};

static struct processor {
    bool watched, was_user, stands;
    uint64_t longest_excused, in_sample, pause, paused, interrupted;
    struct now now[WATCHES];
    struct longest longest[WATCHES];
} all[PROCESSORS];

// Books the instructions since the last block began.
static void book(unsigned vcpu, enum watch watch)
{
    struct now *now = &all[vcpu].now[watch];
    if (now->last)
        now->last->in[vcpu][watch].instructions += executed[vcpu] - now->last_since;
    now->last = NULL;
}

static void begin(unsigned vcpu, enum watch watch, uint64_t address)
{
    struct now *now = &all[vcpu].now[watch];
    if (now->is || !all[vcpu].watched)
        return;
    now->is = true;
    now->excused = false;
    now->number++;
    now->since = executed[vcpu];
    now->from = address;
    now->count = now->waited = 0;
    if (watch != STOOD)
        all[vcpu].pause = 0;
}

static void end(unsigned vcpu, enum watch watch, uint64_t address);

// The processor stands still no longer, or need not.
static void end_stand(struct processor *of, uint64_t address)
{
    if (!of->stands)
        return;
    of->stands = false;
    for (unsigned vcpu = 1; vcpu < PROCESSORS; vcpu++)
        if (all[vcpu].stands)
            return;
    end(0, STOOD, address);
}

static void end(unsigned vcpu, enum watch watch, uint64_t address)
{
    struct processor *of = &all[vcpu];
    struct now *now = &of->now[watch];
    struct longest *longest = &of->longest[watch];
    if (watch == OFF)
        end_stand(of, address);
    if (!now->is)
        return;
    now->is = false;
    book(vcpu, watch);
    uint64_t length = executed[vcpu] - now->since - now->waited;
    if (now->excused) {
        if (watch == OFF && length > of->longest_excused)
            of->longest_excused = length;
        return;
    }
    if (watch == OFF && length > of->in_sample)
        of->in_sample = length;
    if (length <= longest->instructions)
        return;
    longest->instructions = length;
    longest->since = now->since;
    longest->from = now->from;
    longest->to = address;
    longest->count = now->count;
    for (uint64_t i = 0; i < now->count; i++) {
        longest->places[i].address = now->blocks[i]->address;
        longest->places[i].instructions = now->blocks[i]->in[vcpu][watch].instructions;
    }
}

static void pass(unsigned vcpu, enum watch watch, struct block *block)
{
    struct now *now = &all[vcpu].now[watch];
    if (!now->is)
        return;
    book(vcpu, watch);
    now->last = block;
    now->last_since = executed[vcpu];
    if (block->in[vcpu][watch].stretch == now->number)
        return;
    block->in[vcpu][watch].stretch = now->number;
    block->in[vcpu][watch].instructions = 0;
    if (now->count < MAX_BLOCKS)
        now->blocks[now->count++] = block;
}

void stretch_watch(unsigned vcpu)
{
    all[vcpu].watched = true;
}

void stretch_excuse(unsigned vcpu)
{
    all[vcpu].now[OFF].excused = all[vcpu].now[LATE].excused = true;
}

void stretch_off(unsigned vcpu, uint64_t address)
{
    begin(vcpu, OFF, address);
}

void stretch_on(unsigned vcpu, uint64_t address)
{
    end(vcpu, OFF, address);
}

static void left_by(unsigned vcpu, uint64_t address)
{
    for (unsigned other = 1; vcpu == 0 && other < PROCESSORS; other++)
        end_stand(&all[other], address);
}

void stretch_chosen(unsigned vcpu, uint64_t address)
{
    end(vcpu, LATE, address);
    left_by(vcpu, address);
}

void stretch_kept(unsigned vcpu)
{
    struct now *late = &all[vcpu].now[LATE];
    if (late->is && late->since == all[vcpu].interrupted) {
        late->is = false;
        book(vcpu, LATE);
    }
}

void stretch_halt(unsigned vcpu, uint64_t address)
{
    end(vcpu, LATE, address);
    left_by(vcpu, address);
}

void stretch_pause(unsigned vcpu, uint64_t address, bool stands)
{
    struct processor *of = &all[vcpu];
    uint64_t round = executed[vcpu] - of->paused;
    if (of->pause == address && round <= MAX_ROUND)
        for (enum watch watch = OFF; watch < STOOD; watch++)
            of->now[watch].waited += round; // of no stretch, if there is none
    of->pause = address;
    of->paused = executed[vcpu];
    if (stands && !of->stands) {
        of->stands = true;
        begin(0, STOOD, address);
    }
}

void stretch_block(unsigned vcpu, struct block *block, bool user, enum entry entry)
{
    if (user) {
        end(vcpu, OFF, block->address);
        end(vcpu, LATE, block->address);
        if (!all[vcpu].was_user)
            left_by(vcpu, block->address);
        all[vcpu].was_user = true;
        return;
    }
    // Nothing in the kernel faults: whoever comes through a vector comes from where
    // interrupts are on, be it from a user instruction that had not begun yet.
    if (entry != NO_ENTRY)
        end(vcpu, OFF, block->address);
    if (all[vcpu].was_user || entry != NO_ENTRY)
        begin(vcpu, OFF, block->address);
    // The same tells that the kernel was left for a user instruction that had to fault.
    if (entry == EXCEPTION)
        end(vcpu, LATE, block->address);
    if (entry == INTERRUPT) {
        all[vcpu].interrupted = executed[vcpu];
        begin(vcpu, LATE, block->address);
    }
    all[vcpu].was_user = false;
    pass(vcpu, OFF, block);
    pass(vcpu, LATE, block);
    pass(vcpu, STOOD, block);
}

uint64_t stretch_sample(unsigned vcpu)
{
    uint64_t length = all[vcpu].in_sample;
    all[vcpu].in_sample = 0;
    return length;
}

static uint64_t linked(uint64_t address, uint64_t moved)
{
    return address >= KERNEL_LOW && address < KERNEL_HIGH ? address - moved : address;
}

static void report(FILE *out, unsigned vcpu, enum watch watch, uint64_t moved)
{
    static const char *const names[WATCHES] = { "longest", "late", "stands" };
    const struct longest *longest = &all[vcpu].longest[watch];
    fprintf(out, "%s %" PRIu64 " from=%" PRIx64 " to=%" PRIx64 " since=%" PRIu64 " total=%" PRIu64 "\n", names[watch],
            longest->instructions, linked(longest->from, moved), linked(longest->to, moved), longest->since,
            executed[vcpu]);
    for (uint64_t i = 0; i < longest->count; i++)
        fprintf(out, "place %" PRIx64 " %" PRIu64 "\n", linked(longest->places[i].address, moved),
                longest->places[i].instructions);
}

void stretch_report(FILE *out, unsigned processors, uint64_t moved)
{
    for (unsigned vcpu = 0; vcpu < processors; vcpu++) {
        if (vcpu > 0)
            fprintf(out, "processor %u\n", vcpu);
        fprintf(out, "excused %" PRIu64 "\n", all[vcpu].longest_excused);
        report(out, vcpu, OFF, moved);
        report(out, vcpu, LATE, moved);
    }
    if (processors > 1)
        report(out, 0, STOOD, moved);
}
