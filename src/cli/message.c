/* SPDX-License-Identifier: MIT */
/* Lines for people on stderr. */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/write.h"

#define MESSAGE_LINE_MAX 4096
#define MESSAGE_BOLD_RED "\033[1;31m"
#define MESSAGE_YELLOW "\033[33m"
#define MESSAGE_RESET "\033[0m"

bool message_coloured(void)
{
    const char *no_color = getenv("NO_COLOR");
    return isatty(STDERR_FILENO) && (!no_color || *no_color == '\0');
}

/* Whether a control character begins here: one of ASCII, or of those that UTF-8 has in two bytes and
 * terminals obey as well. */
static bool is_control(const unsigned char *c)
{
    return *c < ' ' || *c == '\177' || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
}

/* What is shown may be a name that somebody in a jail has chosen. */
static void make_harmless(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        if (is_control(c))
            *c = '?';
        else if (*c >= 0xc0) /* a character of several bytes */
            while ((c[1] & 0xc0) == 0x80)
                c++;
        else if (*c >= 0x80) /* a byte of none, which some terminals obey */
            *c = '?';
}

__attribute__((format(printf, 3, 0))) static void message_line(const char *colour, const char *kind,
                                                               const char *format, va_list args)
{
    char text[MESSAGE_LINE_MAX];
    (void)vsnprintf(text, sizeof(text), format, args);
    make_harmless(text);
    bool coloured = colour && message_coloured();
    char line[MESSAGE_LINE_MAX + 64];
    int length = snprintf(line, sizeof(line), "%sbrig:%s %s%s\n", coloured ? colour : "",
                          coloured ? MESSAGE_RESET : "", kind, text);
    if (length > 0)
        (void)write_all(STDERR_FILENO, line, (size_t)length);
}

void message_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_line(MESSAGE_BOLD_RED, "", format, args);
    va_end(args);
}

void message_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_line(MESSAGE_YELLOW, "warning: ", format, args);
    va_end(args);
}

void message_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    message_line(NULL, "", format, args);
    va_end(args);
}
