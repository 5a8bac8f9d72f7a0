// The first process of the Linux that Baton is compared with: makes the file
// systems that a program expects, runs the line in /test/command with the shell,
// says how it ended, and stops the emulator.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { SUCCESS = 0x10, FAILURE = 0x11, EXIT_PORT = 0xF4 };

static void stop(int code)
{
    sync();
    tcdrain(1);
    usleep(20000); // what the serial line has taken leaves the machine
    ioperm(EXIT_PORT, 4, 1);
    outl((unsigned)code, EXIT_PORT);
    for (;;)
        pause();
}

static void file_systems(void)
{
    mkdir("/dev", 0755);
    mount("none", "/dev", "devtmpfs", 0, NULL);
    mkdir("/dev/pts", 0755);
    mkdir("/dev/shm", 01777);
    mount("none", "/dev/pts", "devpts", 0, "ptmxmode=666");
    mount("none", "/dev/shm", "tmpfs", 0, NULL);
    mkdir("/proc", 0555);
    mount("none", "/proc", "proc", 0, NULL);
    mount("none", "/tmp", "tmpfs", 0, "mode=1777");
    symlink("/proc/self/fd", "/dev/fd");
    symlink("/proc/self/fd/0", "/dev/stdin");
    symlink("/proc/self/fd/1", "/dev/stdout");
    symlink("/proc/self/fd/2", "/dev/stderr");
    sethostname("baton", 5);
}

static void shell(void)
{
    static char command[4096];
    int file = open("/test/command", O_RDONLY);
    ssize_t bytes = read(file, command, sizeof command - 1);
    if (bytes <= 0)
        _exit(127);
    close(file);
    setsid();
    ioctl(0, TIOCSCTTY, 1);
    char *words[] = {"/bin/sh", "-c", command, NULL};
    char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=vt100", NULL};
    execve(words[0], words, environment);
    _exit(127);
}

int main(void)
{
    file_systems();
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    if (open("/dev/console", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
        stop(FAILURE);
    puts("unix: the command begins");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        shell();
    int status = 0;
    pid_t ended;
    do
        ended = wait(&status);
    while (ended != child && ended > 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf("\nunix: the command exited with status %d\n", code);
    fflush(stdout);
    stop(code == 0 ? SUCCESS : FAILURE);
}
