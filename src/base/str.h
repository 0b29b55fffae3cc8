/* SPDX-License-Identifier: MIT */
/* A growing string with a failure flag, so that a chain of appends is checked once, and a few
 * string helpers. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

/* No string grows beyond this; appending more fails like a lack of memory. */
#define STR_LENGTH_MAX ((size_t)64 << 20)

/* Zero-initialise or str_init(). `data` is NULL until something was appended, then always
 * NUL-terminated. After a failed append nothing more is added and `failed` stays set. */
struct str {
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
};

void str_init(struct str *s);
void str_done(struct str *s);

#define autostr __attribute__((cleanup(str_done)))

/* Reserves room for `more` further bytes at once, to avoid repeated growth. Appends nothing. */
void str_reserve(struct str *s, size_t more);
void str_append(struct str *s, const char *text);
void str_append_bytes(struct str *s, const void *bytes, size_t length);
void str_append_char(struct str *s, char c);
/* Appends the texts; much faster than formatting with "%s%s". */
#define str_concat(s, ...) str_append_all(s, (const char *const[]){__VA_ARGS__, NULL})
void str_append_all(struct str *s, const char *const *texts);
/* Appends `length` bytes for the caller to fill; NULL after a failure. */
char *str_extend(struct str *s, size_t length);
/* For a buffer that is written out from its front while more is appended. Removes the first *done
 * bytes, and sets *done to 0, if they are at least as many as the others: so the buffer is never much
 * longer than twice what waits, and each byte is moved at most once. */
void str_drop_done(struct str *s, size_t *done);
void str_appendf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_vappendf(struct str *s, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Moves the text out, "" if nothing was appended; the caller frees it. Fails with BRIG_E_NOMEM if
 * an append failed. */
int str_take(struct str *s, char **ret_text, struct brig_error *err);

/* A copy for the caller to free; NULL gives NULL. */
int str_copy(const char *text, char **ret_copy, struct brig_error *err);

/* Concatenates the texts, for the caller to free. */
#define str_make(ret_text, err, ...)                                                               \
    str_make_all(ret_text, err, (const char *const[]){__VA_ARGS__, NULL})
int str_make_all(char **ret_text, struct brig_error *err, const char *const *texts);

bool str_equal(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts_with(const char *text, const char *prefix);
bool str_ends_with(const char *text, const char *end);

/* Lists of texts, each terminated by a NUL. */
void str_list_add(struct str *list, const char *text);
/* Whether a list has this text. */
bool str_list_has(const struct str *list, const char *text);
/* The text after `at`, the first one if that is NULL; NULL at the end. */
const char *str_list_next(const struct str *list, const char *at);

/* Concatenates the texts into an array of `size` bytes, as snprintf() with "%s%s" would; false if
 * the result was truncated. */
#define str_fill(to, size, ...) str_fill_all(to, size, (const char *const[]){__VA_ARGS__, NULL})
bool str_fill_all(char *to, size_t size, const char *const *texts);

/* A number in decimal, for concatenation. Use as: str_number(value).text */
struct str_number {
    char text[21]; /* the digits of 2^64, and a NUL */
};
struct str_number str_number(uint64_t value);

/* A number of bytes for people: "1 byte", "12 bytes", "3.4 KiB". Use as: str_size(bytes).text */
struct str_size {
    char text[24];
};
struct str_size str_size(uint64_t bytes);
/* Appends "1 file", "2 files". */
void str_append_count(struct str *s, uint64_t count, const char *noun);
/* Appends words with blanks between them; they end with NULL. */
void str_join(struct str *s, const char *const *words);

/* A value made safe for a one-line message and a terminal: control characters, invisible ones, bytes that are
 * not UTF-8 and backslashes are escaped, and a long value is truncated with "…". Use as: "bad size '%s'", str_shown(value).text */
#define STR_SHOWN_MAX 256
struct str_shown {
    char text[STR_SHOWN_MAX];
};
struct str_shown str_shown(const char *text);
/* Appends bytes in the same form, never truncated, and escapes everything a terminal could
 * interpret: also UTF-8 control characters, characters for the direction of writing, and bytes that
 * are not UTF-8. The characters of `plain` are not escaped. */
void str_append_shown(struct str *s, const char *bytes, size_t length, const char *plain);
/* Appends the text as one word of a shell, quoted if necessary, for commands that the user may copy:
 * others choose the names of files. */
void str_append_word(struct str *s, const char *text);
