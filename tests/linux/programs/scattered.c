// Takes all the memory that there is for names, gives back every second one, and takes longer
// ones: what is left lies in pieces, but calls that need a buffer work all the same.
#include "probe.h"

enum { MOST = 300000, TOGETHER = 1000, LONG_PATH = 3000, SHORT = 100, LONG = 250 };

static char path[LONG_PATH + 1];

// A name of so many bytes, in a directory with a few others: tables of many want much in one piece.
static char *name(int n, int length)
{
    static char text[300];
    snprintf(text, sizeof text, "%d-%d/%0*d", length, n / TOGETHER, length, n);
    return text;
}

// Makes names until there is no more memory for them; how many.
static int make(int length)
{
    char first[20];
    for (int n = 0; n < MOST; n++) {
        if (n % TOGETHER == 0) {
            snprintf(first, sizeof first, "%d-%d", length, n / TOGETHER);
            mkdir(first, 0700);
            strcat(first, "/file");
            close(open(first, O_CREAT | O_WRONLY, 0600));
        }
        if (link(first, name(n, length)) != 0)
            return n;
    }
    return MOST;
}

int main(void)
{
    memset(path, '/', LONG_PATH);
    int made = make(SHORT);
    for (int n = 0; n < made; n += 2)
        unlink(name(n, SHORT));
    int longer = make(LONG);
    // A path takes a buffer that grows to its length.
    WORKS(access(path, F_OK));
    WORKS(access(path, F_OK));
    for (int n = 1; n < made; n += 2)
        unlink(name(n, SHORT));
    for (int n = 0; n < longer; n++)
        unlink(name(n, LONG));
    WORKS(mkdir("again", 0700));
    FACT(made > 1000 && longer > 1000);
    return 0;
}
