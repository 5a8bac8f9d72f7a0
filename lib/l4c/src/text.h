/*
 * text.h - text on its way out: one message's worth, so that what one call prints stays together.
 */
#ifndef L4C_TEXT_H
#define L4C_TEXT_H

#include <l4c.h>

/* Bytes of the longest text that the console takes in words. */
#define TEXT_BYTES 480

struct text {
    size_t length;
    char bytes[TEXT_BYTES];
};

/* Adds a character; what is full goes out, whole characters of UTF-8 at a time. */
void text_put(struct text *text, char c);

/* Sends what there is. */
void text_flush(struct text *text);

/* The serial port itself. */
void serial_put(char c);
int serial_get(void);

/* Whether this is the root task, which has nobody to print for it. */
int l4c_is_root_task(void);

#endif
