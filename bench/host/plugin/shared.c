#include "shared.h"

#include "set.h"

enum { MODES = 2 };

// What has been touched and written: in the sample at hand, by mode, and in all that count.
static struct set now[PROCESSORS][MODES][2], touched[PROCESSORS], written[PROCESSORS], shared[MODES];

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

static void keep(unsigned vcpu, int mode, bool writes, uint64_t line)
{
    set_add(&touched[vcpu], line);
    if (writes)
        set_add(&written[vcpu], line);
    for (unsigned other = 0; other < PROCESSORS; other++)
        if (other != vcpu && (set_has(&written[other], line) || (writes && set_has(&touched[other], line))))
            set_add(&shared[mode], line);
}

void shared_keep(unsigned vcpu)
{
    for (int mode = 0; mode < MODES; mode++) {
        for (int writes = 0; writes < 2; writes++) {
            struct set *set = &now[vcpu][mode][writes];
            for (uint64_t i = 0; i < set->capacity; i++)
                if (set->entries[i].generation == set->generation)
                    keep(vcpu, mode, writes, set->entries[i].key);
        }
    }
}

uint64_t shared_count(int mode)
{
    return shared[mode].count;
}

void shared_clear(void)
{
    for (unsigned vcpu = 0; vcpu < PROCESSORS; vcpu++) {
        set_clear(&touched[vcpu]);
        set_clear(&written[vcpu]);
    }
    for (int mode = 0; mode < MODES; mode++)
        set_clear(&shared[mode]);
}
