/* SPDX-License-Identifier: MIT */
/* What the files of the reader of heads share. */
#pragma once

#include "net/http_head.h"
#include "net/http_text.h"

/* Without the blanks around it. */
static inline struct http_slice http_trim(struct http_slice slice)
{
    while (slice.length > 0 && http_is_blank(slice.at[0])) {
        slice.at++;
        slice.length--;
    }
    while (slice.length > 0 && http_is_blank(slice.at[slice.length - 1]))
        slice.length--;
    return slice;
}

/* Fills in all that follows from the request line and the headers, which are there. NULL, or why
 * the request is bad. */
const char *http_read_meaning(struct http_head *head);
