#include "stretch.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_BLOCKS = 4096 };
// Where the kernel's image can be (docs/kernel-plan.md).
#define KERNEL_LOW UINT64_C(0xFFFFFFFF80000000)
#define KERNEL_HIGH UINT64_C(0xFFFFFFFFA0000000)

uint64_t executed;

static bool watched, was_user;
static uint64_t longest_excused, in_sample;

// The stretch of each kind at hand.
static struct {
    bool is, excused;
    uint64_t number, since, from, count, last_since;
    struct block *blocks[MAX_BLOCKS], *last;
} now[WATCHES];

static struct {
    uint64_t instructions, since, from, to, count;
    struct block blocks[MAX_BLOCKS];
} longest[WATCHES];

// Books the instructions since the last block began.
static void book(enum watch watch)
{
    if (now[watch].last)
        now[watch].last->in[watch].instructions += executed - now[watch].last_since;
    now[watch].last = NULL;
}

static void begin(enum watch watch, uint64_t address)
{
    if (now[watch].is || !watched)
        return;
    now[watch].is = true;
    now[watch].excused = false;
    now[watch].number++;
    now[watch].since = executed;
    now[watch].from = address;
    now[watch].count = 0;
}

static void end(enum watch watch, uint64_t address)
{
    if (!now[watch].is)
        return;
    now[watch].is = false;
    book(watch);
    uint64_t length = executed - now[watch].since;
    if (now[watch].excused) {
        if (watch == OFF && length > longest_excused)
            longest_excused = length;
        return;
    }
    if (watch == OFF && length > in_sample)
        in_sample = length;
    if (length <= longest[watch].instructions)
        return;
    longest[watch].instructions = length;
    longest[watch].since = now[watch].since;
    longest[watch].from = now[watch].from;
    longest[watch].to = address;
    longest[watch].count = now[watch].count;
    for (uint64_t i = 0; i < now[watch].count; i++)
        longest[watch].blocks[i] = *now[watch].blocks[i];
}

static void pass(enum watch watch, struct block *block)
{
    if (!now[watch].is)
        return;
    book(watch);
    now[watch].last = block;
    now[watch].last_since = executed;
    if (block->in[watch].stretch == now[watch].number)
        return;
    block->in[watch].stretch = now[watch].number;
    block->in[watch].instructions = 0;
    if (now[watch].count < MAX_BLOCKS)
        now[watch].blocks[now[watch].count++] = block;
}

void stretch_watch(void)
{
    watched = true;
}

void stretch_excuse(void)
{
    now[OFF].excused = now[LATE].excused = true;
}

void stretch_off(uint64_t address)
{
    begin(OFF, address);
}

void stretch_on(uint64_t address)
{
    end(OFF, address);
}

void stretch_chosen(uint64_t address)
{
    end(LATE, address);
}

void stretch_block(struct block *block, bool user, enum entry entry)
{
    if (user) {
        end(OFF, block->address);
        end(LATE, block->address);
        was_user = true;
        return;
    }
    // Nothing in the kernel faults: whoever comes through a vector comes from where
    // interrupts are on, be it from a user instruction that had not begun yet.
    if (entry != NO_ENTRY)
        end(OFF, block->address);
    if (was_user || entry != NO_ENTRY)
        begin(OFF, block->address);
    // The same tells that the kernel was left for a user instruction that had to fault.
    if (entry == EXCEPTION)
        end(LATE, block->address);
    if (entry == INTERRUPT)
        begin(LATE, block->address);
    was_user = false;
    pass(OFF, block);
    pass(LATE, block);
}

uint64_t stretch_sample(void)
{
    uint64_t length = in_sample;
    in_sample = 0;
    return length;
}

static uint64_t linked(uint64_t address, uint64_t moved)
{
    return address >= KERNEL_LOW && address < KERNEL_HIGH ? address - moved : address;
}

void stretch_report(FILE *out, uint64_t moved)
{
    static const char *const names[WATCHES] = { "longest", "late" };
    fprintf(out, "excused %" PRIu64 "\n", longest_excused);
    for (enum watch watch = OFF; watch < WATCHES; watch++) {
        fprintf(out, "%s %" PRIu64 " from=%" PRIx64 " to=%" PRIx64 " since=%" PRIu64 " total=%" PRIu64 "\n",
                names[watch], longest[watch].instructions, linked(longest[watch].from, moved),
                linked(longest[watch].to, moved),
                longest[watch].since, executed);
        for (uint64_t i = 0; i < longest[watch].count; i++)
            fprintf(out, "place %" PRIx64 " %" PRIu64 "\n", linked(longest[watch].blocks[i].address, moved),
                    longest[watch].blocks[i].in[watch].instructions);
    }
}
