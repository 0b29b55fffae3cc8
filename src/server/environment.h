/* SPDX-License-Identifier: MIT */
/* Which variables a request may set. The http process and the executor ask the same. Pure. */
#pragma once

#include <stdbool.h>

/* Letters, digits and '_', not beginning with a digit. */
bool environment_name_is_valid(const char *name);
/* One that changes what an interpreter loads or runs, or what the jail itself sets. */
bool environment_name_is_refused(const char *name);
/* One that a request may set: valid, and not refused. */
bool environment_takes(const char *name);
