#include "handler.h"

#include <inttypes.h>
#include <stdbool.h>

#include "shared.h"

static struct {
    bool waits;
    uint64_t since;
} all[PROCESSORS];

void handler_waits(unsigned vcpu, uint64_t clock)
{
    if (all[vcpu].waits)
        return;
    all[vcpu].waits = true;
    all[vcpu].since = clock;
}

void handler_runs(unsigned vcpu, uint64_t clock, uint64_t phase, int64_t *samples, FILE *out)
{
    if (!all[vcpu].waits)
        return;
    all[vcpu].waits = false;
    fprintf(out, "sample %" PRId64 " user=0 kernel=%" PRIu64 " cpu=%u begin=0 phase=%" PRIu64 " clock=%" PRIu64 "\n",
            (*samples)++, clock - all[vcpu].since, vcpu, phase, clock);
}
