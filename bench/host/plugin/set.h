// A set of numbers that can be emptied at no cost: open addressing, each entry
// stamped with the generation that put it there.
#ifndef BATON_BENCH_SET_H
#define BATON_BENCH_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct set_entry {
    uint64_t key;
    uint64_t generation;
};

struct set {
    struct set_entry *entries;
    uint64_t capacity; // a power of two, or 0
    uint64_t count;
    uint64_t generation;
};

static inline void set_clear(struct set *set)
{
    set->count = 0;
    set->generation++;
}

// The entry of `key`, or the free one where it belongs.
static inline struct set_entry *set_find(struct set *set, uint64_t key)
{
    uint64_t at = key * 0x9E3779B97F4A7C15u >> 20;
    for (;; at++) {
        struct set_entry *entry = &set->entries[at & (set->capacity - 1)];
        if (entry->generation != set->generation || entry->key == key)
            return entry;
    }
}

static inline void set_grow(struct set *set)
{
    struct set old = *set;
    set->capacity = old.capacity ? old.capacity * 2 : 1024;
    set->entries = calloc(set->capacity, sizeof *set->entries);
    if (!set->entries)
        abort();
    if (!set->generation)
        set->generation = 1;
    for (uint64_t i = 0; i < old.capacity; i++)
        if (old.entries[i].generation == set->generation)
            *set_find(set, old.entries[i].key) = old.entries[i];
    free(old.entries);
}

static inline void set_add(struct set *set, uint64_t key)
{
    if (set->count * 2 >= set->capacity)
        set_grow(set);
    struct set_entry *entry = set_find(set, key);
    if (entry->generation == set->generation)
        return;
    *entry = (struct set_entry){ key, set->generation };
    set->count++;
}

static inline bool set_has(struct set *set, uint64_t key)
{
    return set->capacity && set_find(set, key)->generation == set->generation;
}

#endif
