/*
 * system.h - what the tasks of a Baton system say to each other, for C: interfaces/ as stubs.
 * `./baton idl --accept` makes system.in anew.
 */
#include "system.in"
