/* SPDX-License-Identifier: MIT */
/* Which variables a request may set. */
#pragma once

#include <stdbool.h>

/* Letters, digits and '_', not beginning with a digit. */
bool environment_name_is_valid(const char *name);
/* One that changes what an interpreter loads or runs, or what the jail itself sets. */
bool environment_name_is_refused(const char *name);
