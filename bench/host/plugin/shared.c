#include "shared.h"

#include "set.h"

enum { MODES = 2 };

// What processors have touched and written, and of that what others have, too.
struct lines {
    struct set touched[PROCESSORS], written[PROCESSORS], shared[MODES];
};

// In the sample at hand, by mode; in all that count; while anybody had one.
static struct set now[PROCESSORS][MODES][2];
static struct lines kept, any;

void shared_begin(unsigned vcpu)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int writes = 0; writes < 2; writes++)
            set_clear(&now[vcpu][mode][writes]);
}

void shared_touch(unsigned vcpu, int mode, uint64_t line, bool writes)
{
    set_add(&now[vcpu][mode][writes], line);
}

static void keep(struct lines *in, unsigned vcpu, int mode, bool writes, uint64_t line)
{
    set_add(&in->touched[vcpu], line);
    if (writes)
        set_add(&in->written[vcpu], line);
    for (unsigned other = 0; other < PROCESSORS; other++)
        if (other != vcpu && (set_has(&in->written[other], line) || (writes && set_has(&in->touched[other], line))))
            set_add(&in->shared[mode], line);
}

void shared_any_touch(unsigned vcpu, int mode, uint64_t line, bool writes)
{
    keep(&any, vcpu, mode, writes, line);
}

uint64_t shared_any_count(int mode)
{
    return any.shared[mode].count;
}

void shared_keep(unsigned vcpu)
{
    for (int mode = 0; mode < MODES; mode++) {
        for (int writes = 0; writes < 2; writes++) {
            struct set *set = &now[vcpu][mode][writes];
            for (uint64_t i = 0; i < set->capacity; i++)
                if (set->entries[i].generation == set->generation)
                    keep(&kept, vcpu, mode, writes, set->entries[i].key);
        }
    }
}

uint64_t shared_count(int mode)
{
    return kept.shared[mode].count;
}

static void clear(struct lines *all)
{
    for (unsigned vcpu = 0; vcpu < PROCESSORS; vcpu++) {
        set_clear(&all->touched[vcpu]);
        set_clear(&all->written[vcpu]);
    }
    for (int mode = 0; mode < MODES; mode++)
        set_clear(&all->shared[mode]);
}

void shared_clear(void)
{
    clear(&kept);
    clear(&any);
}
