#include "stretch.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_BLOCKS = 4096 };

uint64_t executed;

static bool watched, off, was_user, excused;
static uint64_t longest_excused;
static uint64_t number, since, from, in_sample; // of the stretch at hand
static struct block *blocks[MAX_BLOCKS], *last;
static uint64_t count, last_since;

static struct {
    uint64_t instructions, since, from, to, count;
    struct block blocks[MAX_BLOCKS];
} longest;

// Books the instructions since the last block began.
static void book(void)
{
    if (last)
        last->instructions += executed - last_since;
    last = NULL;
}

void stretch_watch(void)
{
    watched = true;
}

void stretch_excuse(void)
{
    excused = true;
}

void stretch_off(uint64_t address)
{
    if (off || !watched)
        return;
    off = true;
    excused = false;
    number++;
    since = executed;
    from = address;
    count = 0;
}

void stretch_on(uint64_t address)
{
    if (!off)
        return;
    off = false;
    book();
    uint64_t length = executed - since;
    if (excused) {
        longest_excused = length > longest_excused ? length : longest_excused;
        return;
    }
    if (length > in_sample)
        in_sample = length;
    if (length <= longest.instructions)
        return;
    longest.instructions = length;
    longest.since = since;
    longest.from = from;
    longest.to = address;
    longest.count = count;
    for (uint64_t i = 0; i < count; i++)
        longest.blocks[i] = *blocks[i];
}

void stretch_block(struct block *block, bool user, bool entry)
{
    if (user) {
        stretch_on(block->address);
        was_user = true;
        return;
    }
    // Nothing in the kernel faults: whoever comes through a vector comes from where
    // interrupts are on, be it from a user instruction that had not begun yet.
    if (entry)
        stretch_on(block->address);
    if (was_user || entry)
        stretch_off(block->address);
    was_user = false;
    if (!off)
        return;
    book();
    last = block;
    last_since = executed;
    if (block->stretch == number)
        return;
    block->stretch = number;
    block->instructions = 0;
    if (count < MAX_BLOCKS)
        blocks[count++] = block;
}

uint64_t stretch_sample(void)
{
    uint64_t length = in_sample;
    in_sample = 0;
    return length;
}

void stretch_report(FILE *out)
{
    fprintf(out, "excused %" PRIu64 "\n", longest_excused);
    fprintf(out, "longest %" PRIu64 " from=%" PRIx64 " to=%" PRIx64 " since=%" PRIu64 " total=%" PRIu64 "\n",
            longest.instructions, longest.from, longest.to, longest.since, executed);
    for (uint64_t i = 0; i < longest.count; i++)
        fprintf(out, "place %" PRIx64 " %" PRIu64 "\n", longest.blocks[i].address, longest.blocks[i].instructions);
}
