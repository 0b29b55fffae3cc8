/* SPDX-License-Identifier: MIT */
#include "review/pane.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void pane_done(struct pane *pane)
{
    str_done(&pane->text);
    free(pane->lines);
    *pane = (struct pane){0};
}

void pane_clear(struct pane *pane)
{
    pane->text.length = 0;
    pane->text.failed = false;
    pane->count = pane->top = pane->left = 0;
    pane->cut = false;
}

static bool add_line(struct pane *pane, size_t at)
{
    if (!array_grow(&pane->lines, pane->count))
        return false;
    pane->lines[pane->count++] = at;
    return true;
}

bool pane_append(struct pane *pane, const char *bytes, size_t length)
{
    size_t room = PANE_BYTES_MAX - pane->text.length;
    pane->cut = pane->cut || length > room;
    length = length > room ? room : length;
    size_t before = pane->text.length;
    str_append_bytes(&pane->text, bytes, length);
    if (pane->text.failed)
        return false;
    if (before == 0 && length > 0 && !add_line(pane, 0))
        return false;
    const char *text = pane->text.data, *end = text + pane->text.length;
    for (const char *p = text + before; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        if (!add_line(pane, (size_t)(p + 1 - text)))
            return false;
    return !pane->cut;
}

const char *pane_line(const struct pane *pane, size_t line, size_t *ret_length)
{
    size_t from = pane->lines[line];
    size_t to = line + 1 < pane->count ? pane->lines[line + 1] - 1 : pane->text.length;
    *ret_length = to - from;
    return pane->text.data + from;
}

/* The last line is empty if the text ends with a newline. */
static size_t line_count(const struct pane *pane)
{
    bool empty = pane->count > 0 && pane->lines[pane->count - 1] == pane->text.length;
    return pane->count - empty;
}

void pane_scroll(struct pane *pane, long by, size_t height)
{
    size_t count = line_count(pane);
    size_t last = count > height ? count - height : 0;
    if (by < 0)
        pane->top -= (size_t)-by < pane->top ? (size_t)-by : pane->top;
    else
        pane->top = (size_t)by < last - (pane->top < last ? pane->top : last)
                        ? pane->top + (size_t)by
                        : last;
}

bool pane_search(struct pane *pane, const char *text, bool backwards)
{
    size_t length = strlen(text);
    for (size_t i = 1; i <= pane->count; i++) {
        size_t at = (pane->top + (backwards ? pane->count - i : i)) % pane->count;
        size_t size;
        const char *line = pane_line(pane, at, &size);
        if (memmem(line, size, text, length)) {
            pane->top = at;
            return true;
        }
    }
    return false;
}
