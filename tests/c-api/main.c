/*
 * main.c - the C interface, broadly, on a running kernel.  Runs as the root task.
 * One line per test, then `tests done`; the exit port says whether all went well.
 */
#include <stdio.h>
#include <l4c.h>
#include "partner.h"
#include "test.h"

int main(void)
{
    run_data_tests();
    run_kernel_tests();
    create_partners();
    run_ipc_tests();
    run_string_tests();
    run_thread_tests();
    run_space_tests();
    printf("tests done\n");
    return test_failures != 0;
}
