/* SPDX-License-Identifier: MIT */
/* The page for browsers: files of src/server/web, which are part of the program. They call the same
 * API as every other client, with the API key that the user types. */
#pragma once

#include <stdbool.h>

struct exchange;

/* Only files of this server; nothing of it may be framed or send forms elsewhere. */
#define WEB_POLICY                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " \
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Returns whether the page has this path: "/", "/web/main.js", … */
bool web_has(const char *path);
void web_answer(struct exchange *exchange); /* a handler of the route table */
