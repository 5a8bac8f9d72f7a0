// Terminals: ptys, the line discipline, settings, job control by the terminal.
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include "probe.h"

static int master, slave;
static volatile int interrupts, resized;
static char buffer[8192];

// What arrived, with control characters made visible.
static void show(const char *what, ssize_t bytes)
{
    if (bytes < 0) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        return;
    }
    printf("%s: %zd [", what, bytes);
    for (ssize_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)buffer[i];
        if (c < 32 || c > 126)
            printf("\\%03o", c);
        else
            putchar(c);
    }
    puts("]");
}

// Types, and waits until the line discipline has seen it.
static void type(const char *text)
{
    write(master, text, strlen(text));
    usleep(20000);
}

static void from_slave(const char *what)
{
    show(what, read(slave, buffer, sizeof buffer));
}

// Everything that the master has to say, after a moment.
static void from_master(const char *what)
{
    usleep(10000);
    show(what, read(master, buffer, sizeof buffer));
}

static void canonical(void)
{
    section("canonical");
    type("hello\n");
    from_slave("line");
    from_master("echo");
    type("abX\177c\n");
    from_slave("erased");
    from_master("echo");
    type("junk\025line\n");
    from_slave("killed line");
    from_master("echo");
    type("one two\027three\n");
    from_slave("killed word");
    from_master("echo");
    type("quoted \026\003\n");
    from_slave("quoted");
    from_master("echo");
    type("part\004");
    from_slave("end of file after text");
    type("\004");
    from_slave("end of file");
    from_master("echo");
    type("first\nsecond\n");
    show("short read", read(slave, buffer, 3));
    from_slave("rest");
    from_slave("next");
    from_master("echo");
    int waiting = -1;
    type("12345\n");
    SHOW(ioctl(slave, FIONREAD, &waiting));
    printf("waiting %d\n", waiting);
    SHOW(tcflush(slave, TCIFLUSH));
    fcntl(slave, F_SETFL, O_NONBLOCK);
    from_slave("flushed");
    fcntl(slave, F_SETFL, 0);
    from_master("echo");
    write(slave, "out\nput\tx", 9);
    from_master("output");
}

static void settings(void)
{
    section("settings");
    struct termios now, old;
    SHOW(tcgetattr(slave, &old));
    printf("i %o o %o c %o l %o\n", old.c_iflag, old.c_oflag, old.c_cflag, old.c_lflag);
    for (int i = 0; i < 17; i++)
        printf("%d ", old.c_cc[i]);
    printf("\n");
    now = old;
    cfmakeraw(&now);
    SHOW(tcsetattr(slave, TCSANOW, &now));
    type("\003\004a\r");
    from_slave("raw");
    write(slave, "x\ny", 3);
    from_master("raw output");
    now.c_cc[VMIN] = 0, now.c_cc[VTIME] = 1;
    SHOW(tcsetattr(slave, TCSADRAIN, &now));
    from_slave("nothing within 0.1 s");
    type("q");
    from_slave("one");
    now.c_cc[VMIN] = 3, now.c_cc[VTIME] = 0;
    tcsetattr(slave, TCSAFLUSH, &now);
    type("wxyz");
    from_slave("at least three");
    now = old;
    now.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(slave, TCSANOW, &now);
    type("secret\n");
    from_slave("no echo");
    fcntl(master, F_SETFL, O_NONBLOCK);
    from_master("no echo");
    fcntl(master, F_SETFL, 0);
    tcsetattr(slave, TCSANOW, &old);
    SHOW(tcgetattr(99, &now));
    SHOW(tcgetattr(open("/dev/null", O_RDWR), &now));
    SHOW(ioctl(slave, TCGETS, BAD));
    struct termio ancient;
    SHOW(ioctl(slave, TCGETA, &ancient));
    printf("%x %x %x %x %d\n", ancient.c_iflag, ancient.c_oflag, ancient.c_cflag, ancient.c_lflag, ancient.c_cc[VEOF]);
    ancient.c_lflag &= ~ECHO, ancient.c_cc[VEOF] = 5;
    SHOW(ioctl(slave, TCSETAF, &ancient));
    tcgetattr(slave, &now);
    printf("%x %x %d %d\n", now.c_iflag, now.c_lflag, now.c_cc[VEOF], now.c_cc[VWERASE]);
    tcsetattr(slave, TCSANOW, &old);
    SHOW(ioctl(slave, 0x7777, 0));
    SHOW(isatty(slave));
    struct winsize size = {24, 80, 0, 0};
    SHOW(ioctl(slave, TIOCGWINSZ, &size));
    printf("%d x %d\n", size.ws_row, size.ws_col);
    size.ws_row = 50;
    SHOW(ioctl(master, TIOCSWINSZ, &size));
    SHOW(ioctl(slave, TIOCGWINSZ, &size));
    printf("%d x %d\n", size.ws_row, size.ws_col);
}

static void on_signal(int number)
{
    interrupts += number == SIGINT;
    resized += number == SIGWINCH;
}

// The leader of a session whose terminal the slave is.
static void leader(void)
{
    setsid();
    SHOW(tcgetpgrp(slave));
    SHOW(ioctl(slave, TIOCSCTTY, 0));
    FACT(tcgetpgrp(slave) == getpid());
    WORKS(open("/dev/tty", O_RDWR));
    signal(SIGINT, on_signal), signal(SIGWINCH, on_signal);
    type("lost\003");
    usleep(20000);
    printf("interrupts %d\n", interrupts);
    struct winsize size = {30, 90, 0, 0};
    ioctl(master, TIOCSWINSZ, &size);
    usleep(20000);
    printf("resized %d\n", resized);
    fflush(stdout);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        signal(SIGINT, SIG_DFL), signal(SIGQUIT, SIG_DFL);
        read(slave, buffer, 1); // from the background: SIGTTIN
        pause();
        _exit(1);
    }
    setpgid(job, job);
    int status;
    waitpid(job, &status, WUNTRACED);
    printf("job stopped by %s\n", sigabbrev_np(WSTOPSIG(status)));
    SHOW(tcsetpgrp(slave, job));
    SHOW(tcsetpgrp(slave, 99999));
    kill(job, SIGCONT);
    usleep(50000);
    type("\032");
    waitpid(job, &status, WUNTRACED);
    printf("job stopped by %s\n", sigabbrev_np(WSTOPSIG(status)));
    kill(job, SIGCONT);
    usleep(50000);
    type("\034");
    ended("job", job);
    signal(SIGTTOU, SIG_IGN);
    SHOW(tcsetpgrp(slave, getpid()));
    printf("interrupts %d\n", interrupts);
    signal(SIGHUP, SIG_DFL);
    close(master);
    pause();
}

int main(void)
{
    SHOW(openpty(&master, &slave, NULL, NULL, NULL));
    char name[64];
    SHOW(ptsname_r(master, name, sizeof name));
    FACT(strncmp(name, "/dev/pts/", 9) == 0);
    canonical();
    settings();
    section("job control");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        leader();
        _exit(0);
    }
    close(master);
    ended("leader", child);
    section("hangup");
    from_slave("after hangup");
    SHOW(write(slave, "x", 1));
    return 0;
}
