/* test.c - the frame of the C tests; see test.h. */
#include <stdio.h>
#include <string.h>
#include "test.h"

int test_failures;
static char reason[200];

void test_note(const char *sentence)
{
    if (!reason[0])
        snprintf(reason, sizeof reason, "%s", sentence);
}

void test_differs(const char *what, L4_Word_t is, L4_Word_t expected, int line)
{
    if (!reason[0])
        snprintf(reason, sizeof reason, "%s is 0x%lx, expected 0x%lx (line %d)", what, is,
                 expected, line);
}

void test_run(const char *name, void (*test)(void))
{
    reason[0] = 0;
    test();
    if (reason[0]) {
        test_failures++;
        printf("test %s ... FAILED: %s\n", name, reason);
    } else {
        printf("test %s ... ok\n", name);
    }
}
