/* SPDX-License-Identifier: MIT */
/* The list of what was not enforced in a run. */
#include "jail/confine/unenforced.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void unenforced_add(struct brig_unenforced *list, const char *format, ...)
{
    char text[sizeof list->text[0]];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->text[i], text) == 0)
            return;
    if (list->count == BRIG_UNENFORCED_MAX) {
        (void)snprintf(list->text[BRIG_UNENFORCED_MAX - 1], sizeof text, "and more");
        return;
    }
    memcpy(list->text[list->count++], text, strlen(text) + 1);
}
