/* SPDX-License-Identifier: MIT */
/* Risk flags: changes after which something runs outside the jail, or that are unusual enough that the
 * user should look at them. One table of names (risk_rows.h), and a few checks of the file. */
#pragma once

struct change;

#define RISK_TEXT_MAX ((size_t)64 << 10)   /* the part of a file that is searched for credentials */
#define RISK_PACKAGE_MAX ((size_t)1 << 20) /* a longer package.json is flagged without being read */

#define RISK_OPTION "its name looks like an option"

/* The reason, a clause such as "runs in every new shell", or NULL. Deleted files have a reason only if
 * what is left without them behaves differently, such as settings. A file that cannot be read is
 * judged by its name and mode. The text is constant. */
const char *risk_find(const struct change *change);

/* The same without reading files: neither credentials nor the contents of package.json count. */
const char *risk_find_quickly(const struct change *change);
