/* SPDX-License-Identifier: MIT */
/* TAP for tests in C: one line a check, names that read as sentences, a plan at the end.
 *
 *     int main(void)
 *     {
 *         tap_is_int(add(2, 2), 4, "two and two make four");
 *         return tap_done();
 *     }
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    unsigned run;
    unsigned failed;
} tap_state;

/* A line beginning with "# ": for people, not counted. Newlines inside begin new such lines. */
__attribute__((format(printf, 1, 2), unused)) static void tap_diag(const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        printf("# %.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
    }
    (void)fflush(stdout);
}

/* The result line: a name must not hold a newline, and '#' would begin a directive. */
__attribute__((format(printf, 3, 0), unused)) static bool
tap_line(bool passed, const char *directive, const char *format, va_list args)
{
    char name[1024];
    (void)vsnprintf(name, sizeof(name), format, args);
    for (char *c = name; *c; c++)
        if (*c == '\n' || *c == '#')
            *c = ' ';
    tap_state.run++;
    if (!passed)
        tap_state.failed++;
    printf("%s %u - %s%s\n", passed ? "ok" : "not ok", tap_state.run, name, directive);
    (void)fflush(stdout);
    return passed;
}

__attribute__((format(printf, 3, 4), unused)) static bool tap_result(bool passed, const char *where,
                                                                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tap_line(passed, "", format, args);
    va_end(args);
    if (!passed)
        tap_diag("at %s", where);
    return passed;
}

#define TAP_STRING_(x) #x
#define TAP_STRING(x) TAP_STRING_(x)
#define TAP_WHERE __FILE__ ":" TAP_STRING(__LINE__)

/* tap_ok(condition, "a sentence, may be a format", ...): returns the condition. */
#define tap_ok(condition, ...) tap_result((condition), TAP_WHERE, __VA_ARGS__)
#define tap_pass(...) tap_result(true, TAP_WHERE, __VA_ARGS__)
#define tap_fail(...) tap_result(false, TAP_WHERE, __VA_ARGS__)

/* tap_is_int(got, wanted, "a sentence", ...) */
#define tap_is_int(got, wanted, ...)                                                               \
    __extension__({                                                                                \
        intmax_t tap_got_ = (intmax_t)(got), tap_wanted_ = (intmax_t)(wanted);                     \
        bool tap_same_ = tap_result(tap_got_ == tap_wanted_, TAP_WHERE, __VA_ARGS__);              \
        if (!tap_same_)                                                                            \
            tap_diag("got %" PRIdMAX ", wanted %" PRIdMAX, tap_got_, tap_wanted_);                 \
        tap_same_;                                                                                 \
    })

/* tap_is_str(got, wanted, "a sentence", ...): either may be NULL. */
#define tap_is_str(got, wanted, ...)                                                               \
    __extension__({                                                                                \
        const char *tap_got_ = (got), *tap_wanted_ = (wanted);                                     \
        bool tap_same_ = tap_result(tap_got_ && tap_wanted_ ? strcmp(tap_got_, tap_wanted_) == 0   \
                                                            : tap_got_ == tap_wanted_,             \
                                    TAP_WHERE, __VA_ARGS__);                                       \
        if (!tap_same_)                                                                            \
            tap_diag("got:    %s\nwanted: %s", tap_got_ ? tap_got_ : "NULL",                       \
                     tap_wanted_ ? tap_wanted_ : "NULL");                                          \
        tap_same_;                                                                                 \
    })

/* tap_has_str(text, part, "a sentence", ...): part occurs in text. */
#define tap_has_str(text, part, ...)                                                               \
    __extension__({                                                                                \
        const char *tap_text_ = (text), *tap_part_ = (part);                                       \
        bool tap_has_ =                                                                            \
            tap_result(tap_text_ && strstr(tap_text_, tap_part_), TAP_WHERE, __VA_ARGS__);         \
        if (!tap_has_)                                                                             \
            tap_diag("in:     %s\nwanted: %s", tap_text_ ? tap_text_ : "NULL", tap_part_);         \
        tap_has_;                                                                                  \
    })

/* How often to repeat something: `usual` times, or `thorough` with BRIG_THOROUGH=1 (make test-all). */
__attribute__((unused)) static int tap_rounds(int usual, int thorough)
{
    const char *wanted = getenv("BRIG_THOROUGH");
    return wanted && strcmp(wanted, "1") == 0 ? thorough : usual;
}

/* Counts one test as skipped; `why` must say what was missing. Skips are failures in CI. */
__attribute__((format(printf, 2, 3), unused)) static void tap_skip(const char *why,
                                                                   const char *format, ...)
{
    char directive[512];
    va_list args;
    (void)snprintf(directive, sizeof(directive), " # SKIP %s", why);
    va_start(args, format);
    tap_line(true, directive, format, args);
    va_end(args);
}

/* For set-up that cannot go on: says why and ends the program. */
__attribute__((format(printf, 1, 2), noreturn, unused)) static void tap_bail(const char *format,
                                                                             ...)
{
    va_list args;
    va_start(args, format);
    printf("Bail out! ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    (void)fflush(stdout);
    exit(99);
}

/* Prints the plan; returns what main() returns. */
__attribute__((unused)) static int tap_done(void)
{
    printf("1..%u\n", tap_state.run);
    (void)fflush(stdout);
    return tap_state.failed ? 1 : 0;
}
