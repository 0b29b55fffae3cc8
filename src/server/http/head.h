/* SPDX-License-Identifier: MIT */
/* The head of a request, where the HTTP library is more forgiving than is good behind a proxy. */
#pragma once

#include <stdbool.h>

struct MHD_Connection;
struct str;

/* False if a proxy before us might have read it otherwise: lengths that are there twice or in two ways,
 * names with blanks, values with control characters, two hosts. */
bool head_is_sound(struct MHD_Connection *connection);

/* All values of a header, in their order, with commas between them: as if it had been there once. */
void head_join(struct MHD_Connection *connection, const char *name, struct str *out);
