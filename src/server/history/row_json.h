/* SPDX-License-Identifier: MIT */
/* Rows of the history as the bodies of answers. */
#pragma once

#include <stddef.h>

struct row;
struct str;

/* GET /executions/{id}: everything. */
void row_json_one(const struct row *row, struct str *out);
/* GET /executions: {"executions": […], "next": cursor or null}, without code and output. */
void row_json_list(const struct row *rows, size_t count, const char *next, struct str *out);
