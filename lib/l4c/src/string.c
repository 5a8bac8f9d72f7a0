/*
 * string.c - memory and strings.
 *
 * The compiler may call memcpy, memmove, memset and memcmp by itself, so these
 * four must not be loops that it recognises: they use the string instructions.
 */
#include "plain.h"
#include <l4c.h>

void *memcpy(void *to, const void *from, size_t n)
{
    void *result = to;
    __asm__ __volatile__("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return result;
}

void *memmove(void *to, const void *from, size_t n)
{
    char *last = (char *)to + n - 1;
    const char *source = (const char *)from + n - 1;
    if ((size_t)to - (size_t)from >= n)
        return memcpy(to, from, n);
    __asm__ __volatile__("std\n\trep movsb\n\tcld"
                         : "+D"(last), "+S"(source), "+c"(n) : : "memory", "cc");
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    void *result = to;
    __asm__ __volatile__("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
    return result;
}

int memcmp(const void *left, const void *right, size_t n)
{
    const unsigned char *l = (const unsigned char *)left;
    const unsigned char *r = (const unsigned char *)right;
    while (n > 0 && *l == *r) {
        /* Keeps the compiler from seeing a memcmp here. */
        __asm__ __volatile__("" : "+r"(l), "+r"(r));
        l++;
        r++;
        n--;
    }
    return n > 0 ? *l - *r : 0;
}

void *memchr(const void *where, int byte, size_t n)
{
    const unsigned char *at = (const unsigned char *)where;
    for (; n > 0; n--, at++)
        if (*at == (unsigned char)byte)
            return (void *)(size_t)at;
    return NULL;
}

size_t strnlen(const char *s, size_t limit)
{
    size_t n = 0;
    while (n < limit && s[n])
        n++;
    return n;
}

size_t strlen(const char *s)
{
    const char *end = s;
    while (*end) {
        __asm__ __volatile__("" : "+r"(end));
        end++;
    }
    return (size_t)(end - s);
}

int strcmp(const char *left, const char *right)
{
    while (*left && *left == *right) {
        left++;
        right++;
    }
    return (unsigned char)*left - (unsigned char)*right;
}

int strncmp(const char *left, const char *right, size_t n)
{
    while (n > 0 && *left && *left == *right) {
        left++;
        right++;
        n--;
    }
    return n > 0 ? (unsigned char)*left - (unsigned char)*right : 0;
}

char *strcpy(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
    return to;
}

char *strncpy(char *to, const char *from, size_t n)
{
    size_t length = strnlen(from, n);
    memcpy(to, from, length);
    memset(to + length, 0, n - length);
    return to;
}

char *strcat(char *to, const char *from)
{
    strcpy(to + strlen(to), from);
    return to;
}

char *strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c)
            return (char *)(size_t)s;
        if (!*s)
            return NULL;
    }
}

char *strrchr(const char *s, int c)
{
    const char *found = NULL;
    for (;; s++) {
        if (*s == (char)c)
            found = s;
        if (!*s)
            return (char *)(size_t)found;
    }
}
