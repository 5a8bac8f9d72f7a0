/*
 * print.c - formatted output into a memory buffer or to the console.
 */
#include "plain.h"
#include "text.h"

/* Where characters go: to `to` while there is room, or, without it, out. */
struct sink {
    char *to;
    struct text *text;
    size_t room;
    int count;
};

/* One conversion: flags, width, precision, length. */
struct spec {
    char left, zero, plus, space, alternate, upper;
    int width;
    int precision; /* -1: none */
    int length;    /* bytes of an integer argument */
};

static void emit(struct sink *sink, char c)
{
    if (!sink->to)
        text_put(sink->text, c);
    else if ((size_t)sink->count + 1 < sink->room)
        sink->to[sink->count] = c;
    sink->count++;
}

static void pad(struct sink *sink, int count, char c)
{
    while (count-- > 0)
        emit(sink, c);
}

/* Writes a prefix, zeros and a body within the width. */
static void field(struct sink *sink, const struct spec *spec, const char *prefix,
                  int zeros, const char *body, int length)
{
    int used = (int)strlen(prefix) + zeros + length;
    if (!spec->left)
        pad(sink, spec->width - used, ' ');
    while (*prefix)
        emit(sink, *prefix++);
    pad(sink, zeros, '0');
    while (length-- > 0)
        emit(sink, *body++);
    if (spec->left)
        pad(sink, spec->width - used, ' ');
}

static void integer(struct sink *sink, const struct spec *spec, unsigned long value,
                    unsigned base, const char *prefix)
{
    const char *digits = spec->upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[24];
    int at = sizeof text, length, zeros = 0;
    while (value > 0) {
        text[--at] = digits[value % base];
        value /= base;
    }
    length = (int)sizeof text - at;
    if (length == 0 && spec->precision != 0)
        text[--at] = '0', length = 1;
    if (spec->precision > length)
        zeros = spec->precision - length;
    else if (spec->precision < 0 && spec->zero && !spec->left)
        zeros = spec->width - (int)strlen(prefix) - length;
    field(sink, spec, prefix, zeros > 0 ? zeros : 0, text + at, length);
}

static long signed_argument(va_list *arguments, int length)
{
    long value = length == 8 ? va_arg(*arguments, long) : va_arg(*arguments, int);
    return length == 1 ? (signed char)value : length == 2 ? (short)value : value;
}

static unsigned long unsigned_argument(va_list *arguments, int length)
{
    unsigned long value =
        length == 8 ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned);
    return length == 1 ? (unsigned char)value : length == 2 ? (unsigned short)value : value;
}

static void decimal(struct sink *sink, const struct spec *spec, long value)
{
    unsigned long magnitude = value < 0 ? 0UL - (unsigned long)value : (unsigned long)value;
    integer(sink, spec, magnitude, 10,
            value < 0 ? "-" : spec->plus ? "+" : spec->space ? " " : "");
}

static void convert(struct sink *sink, struct spec *spec, char conversion, va_list *arguments)
{
    unsigned long value;
    const char *text;
    char c;
    switch (conversion) {
    case 'd':
    case 'i':
        decimal(sink, spec, signed_argument(arguments, spec->length));
        break;
    case 'u':
        integer(sink, spec, unsigned_argument(arguments, spec->length), 10, "");
        break;
    case 'o':
        value = unsigned_argument(arguments, spec->length);
        integer(sink, spec, value, 8, spec->alternate && value ? "0" : "");
        break;
    case 'X':
    case 'x':
        spec->upper = conversion == 'X';
        value = unsigned_argument(arguments, spec->length);
        integer(sink, spec, value, 16,
                !spec->alternate || !value ? "" : spec->upper ? "0X" : "0x");
        break;
    case 'p':
        integer(sink, spec, (unsigned long)va_arg(*arguments, void *), 16, "0x");
        break;
    case 'c':
        c = (char)va_arg(*arguments, int);
        field(sink, spec, "", 0, &c, 1);
        break;
    case 's':
        text = va_arg(*arguments, const char *);
        text = text ? text : "(null)";
        field(sink, spec, "", 0, text,
              (int)strnlen(text, spec->precision < 0 ? ~0UL >> 1 : (size_t)spec->precision));
        break;
    default:
        emit(sink, conversion);
    }
}

static const char *read_flags(const char *f, struct spec *spec)
{
    for (;; f++) {
        switch (*f) {
        case '-': spec->left = 1; break;
        case '0': spec->zero = 1; break;
        case '+': spec->plus = 1; break;
        case ' ': spec->space = 1; break;
        case '#': spec->alternate = 1; break;
        default: return f;
        }
    }
}

static const char *read_number(const char *f, int *number, va_list *arguments)
{
    if (*f == '*') {
        *number = va_arg(*arguments, int);
        return f + 1;
    }
    for (*number = 0; *f >= '0' && *f <= '9'; f++)
        *number = *number * 10 + (*f - '0');
    return f;
}

static const char *read_length(const char *f, int *length)
{
    *length = 4;
    if (*f == 'h') {
        *length = f[1] == 'h' ? 1 : 2;
        return f + (f[1] == 'h' ? 2 : 1);
    }
    while (*f == 'l' || *f == 'z' || *f == 't' || *f == 'j') {
        *length = 8;
        f++;
    }
    return f;
}

static int format_to(struct sink *sink, const char *f, va_list *arguments)
{
    while (*f) {
        struct spec spec = { .precision = -1 };
        if (*f != '%') {
            emit(sink, *f++);
            continue;
        }
        f = read_number(read_flags(f + 1, &spec), &spec.width, arguments);
        if (spec.width < 0) {
            spec.left = 1;
            spec.width = -spec.width;
        }
        if (*f == '.')
            f = read_number(f + 1, &spec.precision, arguments);
        f = read_length(f, &spec.length);
        if (!*f)
            break;
        convert(sink, &spec, *f++, arguments);
    }
    return sink->count;
}

int vsnprintf(char *to, size_t size, const char *format, va_list arguments)
{
    char nowhere;
    struct sink sink = { to ? to : &nowhere, NULL, to ? size : 0, 0 };
    va_list copy;
    int count;
    va_copy(copy, arguments);
    count = format_to(&sink, format, &copy);
    va_end(copy);
    if (to && size > 0)
        to[(size_t)count < size ? (size_t)count : size - 1] = 0;
    return count;
}

int snprintf(char *to, size_t size, const char *format, ...)
{
    va_list arguments;
    int count;
    va_start(arguments, format);
    count = vsnprintf(to, size, format, arguments);
    va_end(arguments);
    return count;
}

int vprintf(const char *format, va_list arguments)
{
    struct text text = { 0, { 0 } };
    struct sink sink = { NULL, &text, 0, 0 };
    va_list copy;
    int count;
    va_copy(copy, arguments);
    count = format_to(&sink, format, &copy);
    va_end(copy);
    text_flush(&text);
    return count;
}

int printf(const char *format, ...)
{
    va_list arguments;
    int count;
    va_start(arguments, format);
    count = vprintf(format, arguments);
    va_end(arguments);
    return count;
}
