/* SPDX-License-Identifier: MIT */
/* Finds the files that the user's global configuration of git shows with a program: a text conversion or
 * a diff tool that the global attributes select. Such a program gets files as they are. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct drivers;
struct git;

/* `repository` is an fd. *ret_drivers is NULL if the user has no such programs. `git` must stay valid. */
int drivers_new(const struct git *git, int repository, struct drivers **ret_drivers,
                struct brig_error *err);
/* Accepts NULL. */
void drivers_free(struct drivers *drivers);

/* Whether a file is shown with a program; false for NULL. */
bool drivers_has(struct drivers *drivers, const char *path);
