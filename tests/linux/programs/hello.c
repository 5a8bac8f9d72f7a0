// The least: arguments, environment, auxiliary vector, output, status.
#include <sys/auxv.h>
#include "probe.h"

int main(int argc, char **argv, char **environment)
{
    printf("argc %d\n", argc);
    for (int i = 1; i < argc; i++)
        printf("argv[%d] %s\n", i, argv[i]);
    FACT(strchr(argv[0], '/') != NULL);
    FACT(argv[argc] == NULL);
    for (char **entry = environment; *entry; entry++)
        if (strncmp(*entry, "HOME=", 5) == 0 || strncmp(*entry, "PATH=", 5) == 0)
            puts(*entry);
    FACT(getauxval(AT_PAGESZ) == 4096);
    FACT(getauxval(AT_RANDOM) != 0);
    FACT(getauxval(AT_PHDR) != 0);
    FACT(getauxval(AT_ENTRY) != 0);
    FACT(getauxval(AT_SYSINFO_EHDR) != 0);
    FACT(getauxval(AT_CLKTCK) == 100);
    FACT(getauxval(AT_SECURE) == 0);
    printf("uid %lu %lu gid %lu %lu\n", getauxval(AT_UID), getauxval(AT_EUID), getauxval(AT_GID),
           getauxval(AT_EGID));
    printf("execfn %s\n", strrchr((char *)getauxval(AT_EXECFN), '/'));
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
    FACT(stack % 16 == 0);
    fprintf(stderr, "to standard error\n");
    return 7;
}
