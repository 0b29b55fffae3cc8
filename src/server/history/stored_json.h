/* SPDX-License-Identifier: MIT */
/* JSON that was stored as text. Apart from row_json.c, as jansson and base/json.h share names. */
#pragma once

#include <stdbool.h>

struct str;

/* Appends the items of the array with commas between them, written anew, so that it is JSON whatever
 * somebody put into the database. False if there are none, or it is no array. */
bool stored_json_items(const char *text, struct str *out);
