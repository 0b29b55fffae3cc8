/* SPDX-License-Identifier: MIT */
/* A text of lines for a part of the screen: a diff, help, or what a verb has printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define PANE_BYTES_MAX ((size_t)8 << 20)

/* Zero-initialise. */
struct pane {
    struct str text;
    size_t *lines; /* where each line begins */
    size_t count;
    size_t top, left; /* the first line and column on the screen */
    bool cut;         /* the text was longer than PANE_BYTES_MAX */
};

void pane_done(struct pane *pane);
void pane_clear(struct pane *pane);
/* False if the text is full, or memory is lacking; the rest is then left out. */
bool pane_append(struct pane *pane, const char *bytes, size_t length);
/* A line without its newline. */
const char *pane_line(const struct pane *pane, size_t line, size_t *ret_length);
/* Moves by lines; a page has `height` of them. */
void pane_scroll(struct pane *pane, long by, size_t height);
/* Moves to the next line that contains the text, in either direction and around the end. */
bool pane_search(struct pane *pane, const char *text, bool backwards);
