/*
 * test.h - the frame of the C tests: one line per test, `test NAME ... ok` or
 * `test NAME ... FAILED: sentence`.
 */
#ifndef C_API_TEST_H
#define C_API_TEST_H

#include <stdio.h>
#include <l4/types.h>

#ifdef __cplusplus
extern "C" {
#endif

extern int test_failures;

/* Runs one test and prints its line. */
void test_run(const char *name, void (*test)(void));

/* Notes why the current test fails; only the first reason is kept. */
void test_note(const char *sentence);
void test_differs(const char *what, L4_Word_t is, L4_Word_t expected, int line);

/* The groups of tests. */
void run_data_tests(void); /* ids, flexpages, times, items: no kernel needed */
void run_message_tests(void);
void run_kernel_tests(void);
void run_ipc_tests(void);
void run_string_tests(void);
void run_thread_tests(void);
void run_space_tests(void);

#ifdef __cplusplus
}
#endif

/* Ends the test as failed unless `is` equals `expected`; `what` names the thing. */
#define EXPECT(is, expected, what)                                        \
    do {                                                                  \
        L4_Word_t test_is = (L4_Word_t)(is), test_expected = (L4_Word_t)(expected); \
        if (test_is != test_expected) {                                   \
            test_differs(what, test_is, test_expected, __LINE__);         \
            return;                                                       \
        }                                                                 \
    } while (0)

/* Ends the test as failed unless `condition` holds. */
#define REQUIRE(condition, sentence)  \
    do {                              \
        if (!(condition)) {           \
            test_note(sentence);      \
            return;                   \
        }                             \
    } while (0)

#endif
