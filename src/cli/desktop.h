/* SPDX-License-Identifier: MIT */
/* What of the desktop session is let into a jail on request: displays, sound, agents,
 * buses. Each is a socket or a few, granted one by one. */
#pragma once

#include <brig/brig.h>

struct identity;
struct settings;

/* Grants what settings->desktop asks for, as the environment names it, and says on stderr what each
 * opens. A variable that is missing or names no socket of the user's is an error. */
int desktop_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err);
