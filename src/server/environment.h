/* SPDX-License-Identifier: MIT */
/* Which environment variables a request may set. Used by the http process and the executor.
 * Pure. */
#pragma once

#include <stdbool.h>

/* Letters, digits and '_', not beginning with a digit. */
bool environment_name_is_valid(const char *name);
/* The variable changes what an interpreter loads or runs, or is set by the jail itself. */
bool environment_name_is_refused(const char *name);
/* A request may set the variable: it is valid and not refused. */
bool environment_takes(const char *name);
