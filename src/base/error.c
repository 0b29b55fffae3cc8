/* SPDX-License-Identifier: MIT */
/* Filling in a struct brig_error. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *buffer, size_t size, const char *text)
{
    size_t used = strlen(buffer);
    (void)snprintf(buffer + used, size - used, "%s", text);
}

const char *error_text(int sys_errno, char buffer[ERROR_TEXT_MAX])
{
    return strerror_r(sys_errno, buffer, ERROR_TEXT_MAX); /* GNU: may return a static text */
}

void error_fill(struct brig_error *err, int code, int sys_errno, const char *format, ...)
{
    if (!err)
        return;
    err->code = code;
    err->sys_errno = sys_errno;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (sys_errno != 0) {
        char text[ERROR_TEXT_MAX];
        append(err->message, sizeof err->message, ": ");
        append(err->message, sizeof err->message, error_text(sys_errno, text));
    }
}

void error_prefix(struct brig_error *err, const char *format, ...)
{
    if (!err)
        return;
    char inner[BRIG_MESSAGE_MAX];
    (void)snprintf(inner, sizeof inner, "%s", err->message);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    append(err->message, sizeof err->message, ": ");
    append(err->message, sizeof err->message, inner);
}

void error_append(struct brig_error *err, const char *format, ...)
{
    if (!err)
        return;
    append(err->message, sizeof err->message, ". ");
    size_t used = strlen(err->message);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message + used, sizeof err->message - used, format, args);
    va_end(args);
}
