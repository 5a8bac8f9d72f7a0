// Memory: brk, every kind of mmap, mprotect, munmap, mremap, madvise, msync.
#include "probe.h"

enum { PAGE = 4096 };
static char buffer[3 * PAGE];

static void *map(size_t bytes, int rights)
{
    return mmap(NULL, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Whether the kernel could read a byte there.
static int there(const void *address)
{
    int ends[2];
    pipe(ends);
    int good = write(ends[1], address, 1) == 1;
    close(ends[0]), close(ends[1]);
    return good;
}

static void breaks(void)
{
    section("brk");
    char *start = sbrk(0);
    WORKS((long)sbrk(3 * PAGE));
    start[2 * PAGE] = 7;
    FACT(start[2 * PAGE + 1] == 0);
    FACT((char *)RAW(brk, start) == start);
    FACT((char *)RAW(brk, start + PAGE) == start + PAGE);
    FACT((char *)RAW(brk, 0) == start + PAGE);
    FACT((char *)RAW(brk, 1) == start + PAGE);
    FACT((char *)RAW(brk, -1) == start + PAGE);
    RAW(brk, start + 3 * PAGE);
    FACT(start[2 * PAGE] == 0);
}

static void anonymous(void)
{
    section("anonymous");
    char *memory = map(4 * PAGE, PROT_READ | PROT_WRITE);
    FACT((uintptr_t)memory % PAGE == 0);
    FACT(memory[0] == 0 && memory[4 * PAGE - 1] == 0);
    memory[0] = 1, memory[PAGE] = 2, memory[2 * PAGE] = 3, memory[3 * PAGE] = 4;
    SHOW(munmap(memory + PAGE, PAGE));
    printf("there %d %d %d\n", there(memory), there(memory + PAGE), there(memory + 2 * PAGE));
    SHOW(munmap(memory + PAGE, PAGE));
    SHOW(munmap(memory + 1, PAGE));
    SHOW(munmap(memory, 0));
    SHOW(munmap(memory, (size_t)1 << 62));
    char *fixed = mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    FACT(fixed == memory + PAGE && fixed[0] == 0);
    FACT(mmap(memory, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    printf("%s\n", strerrorname_np(errno));
    WORKS((long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    WORKS((long)mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
    WORKS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0));
    WORKS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 99, 0));
    WORKS((long)mmap(NULL, (size_t)1 << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    WORKS((long)mmap((void *)1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    WORKS((long)mmap(FAR, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    char *large = map((size_t)1 << 28, PROT_READ | PROT_WRITE);
    FACT(large != MAP_FAILED);
    large[(size_t)1 << 27] = 5;
    FACT(large[((size_t)1 << 27) + 1] == 0);
    SHOW(munmap(large, (size_t)1 << 28));
}

static void protection(void)
{
    section("mprotect");
    char *memory = map(3 * PAGE, PROT_READ | PROT_WRITE);
    memset(memory, 'p', 3 * PAGE);
    SHOW(mprotect(memory + PAGE, PAGE, PROT_READ));
    CHILD("write", memory[PAGE] = 1);
    CHILD("write beside", memory[2 * PAGE] = 1);
    SHOW(mprotect(memory, 3 * PAGE, PROT_NONE));
    CHILD("read", buffer[0] = *(volatile char *)memory);
    SHOW(mprotect(memory, 3 * PAGE, PROT_READ | PROT_WRITE));
    FACT(memory[0] == 'p' && memory[PAGE] == 'p');
    SHOW(mprotect(memory + 1, PAGE, PROT_READ));
    SHOW(mprotect(memory, 0, PROT_READ));
    SHOW(mprotect(memory, PAGE, 0x7700));
    munmap(memory + PAGE, PAGE);
    SHOW(mprotect(memory, 3 * PAGE, PROT_READ));
    SHOW(mprotect(BAD, PAGE, PROT_READ));
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; // mov eax, 42; ret
    char *text = map(PAGE, PROT_READ | PROT_WRITE);
    memcpy(text, code, sizeof code);
    SHOW(mprotect(text, PAGE, PROT_READ | PROT_EXEC));
    printf("ran %d\n", ((int (*)(void))text)());
}

static void remapping(void)
{
    section("mremap");
    char *memory = map(2 * PAGE, PROT_READ | PROT_WRITE);
    memory[0] = 'a', memory[PAGE] = 'b';
    char *larger = mremap(memory, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    FACT(larger != MAP_FAILED && larger[0] == 'a' && larger[PAGE] == 'b' && larger[63 * PAGE] == 0);
    char *smaller = mremap(larger, 64 * PAGE, PAGE, 0);
    FACT(smaller == larger && !there(larger + PAGE));
    char *place = map(4 * PAGE, PROT_NONE);
    FACT(mremap(smaller, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place && place[0] == 'a');
    FACT(!there(smaller));
    WORKS((long)mremap(place, PAGE, 0, 0));
    WORKS((long)mremap(place + 1, PAGE, PAGE, 0));
    WORKS((long)mremap(smaller, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    WORKS((long)mremap(place, PAGE, 2 * PAGE, 0));
    WORKS((long)mremap(place, PAGE, PAGE, 0x77));
    WORKS((long)mremap(place, PAGE, PAGE, MREMAP_FIXED, smaller));
}

static void files(void)
{
    section("files");
    int fd = open("mapped", O_RDWR | O_CREAT, 0600);
    memset(buffer, 'f', sizeof buffer);
    write(fd, buffer, 2 * PAGE + 10);
    char *shared = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    shared[0] = 'S', private[1] = 'P';
    FACT(private[0] == 'S' && shared[1] == 'f');
    FACT(private[2 * PAGE + 10] == 0);
    pread(fd, buffer, 2, 0);
    printf("file %.2s\n", buffer);
    pwrite(fd, "W", 1, PAGE);
    FACT(shared[PAGE] == 'W' && private[PAGE] == 'W');
    SHOW(msync(shared, PAGE, MS_SYNC));
    SHOW(msync(shared + 1, PAGE, MS_SYNC));
    SHOW(msync(shared, PAGE, MS_SYNC | MS_ASYNC));
    SHOW(close(fd));
    FACT(shared[0] == 'S');
    SHOW(unlink("mapped"));
    FACT(shared[0] == 'S');
    fd = open("/etc/passwd", O_RDONLY);
    char *text = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    FACT(memcmp(text, "root:", 5) == 0);
    WORKS((long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    WORKS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 1));
    close(fd);
    fd = open("writeonly", O_WRONLY | O_CREAT, 0600);
    WORKS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    int ends[2];
    pipe(ends);
    WORKS((long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ends[0], 0));
}

static void advice(void)
{
    section("madvise and others");
    char *memory = map(2 * PAGE, PROT_READ | PROT_WRITE);
    memory[0] = 'x', memory[PAGE] = 'y';
    SHOW(madvise(memory, PAGE, MADV_DONTNEED));
    FACT(memory[0] == 0 && memory[PAGE] == 'y');
    SHOW(madvise(memory, PAGE, MADV_WILLNEED));
    SHOW(madvise(memory, PAGE, MADV_NORMAL));
    SHOW(madvise(memory + 1, PAGE, MADV_NORMAL));
    SHOW(madvise(memory, PAGE, 7777));
    SHOW(madvise(BAD, PAGE, MADV_NORMAL));
    SHOW(mlock(memory, PAGE));
    SHOW(munlock(memory, PAGE));
    unsigned char resident[2];
    SHOW(mincore(memory, 2 * PAGE, resident));
    printf("resident %d\n", resident[1] & 1);
    int fd = memfd_create("name", MFD_CLOEXEC);
    WORKS(fd);
    SHOW(ftruncate(fd, PAGE));
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    shared[5] = 'm';
    SHOW(pread(fd, buffer, 1, 5));
    FACT(buffer[0] == 'm');
    SHOW(read(fd, memory + PAGE, 10));
    SHOW(lseek(fd, 0, SEEK_SET));
    munmap(memory, PAGE);
    SHOW(read(fd, memory, 10));
}

int main(void)
{
    breaks();
    anonymous();
    protection();
    remapping();
    files();
    advice();
    return 0;
}
