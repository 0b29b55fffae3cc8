/* SPDX-License-Identifier: MIT */
/* The working directory: granted by default, but never by accident the whole home directory. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct identity;
struct settings;

/* Of the rule that grants it. */
#define WORKDIR_ORIGIN "working directory"

/* Whether a directory is, or holds, the home directory of any user, or belongs to the system or to everybody. */
bool workdir_is_precious(const char *path, const struct identity *identity);

/* Whether brig acts for root, and the directory, or one on the way to it, belongs to another user. */
bool workdir_is_foreign(const char *path, const struct identity *identity);

/* Before the options: grants the working directory unless it is precious or foreign, which is then
 * said in *ret_held_back (it may still be asked for by an option). */
int workdir_grant(struct settings *settings, const struct identity *identity, bool *ret_held_back,
                  struct brig_error *err);

/* Says so if the working directory is granted and somebody else's. */
void workdir_tell(const struct settings *settings, const struct identity *identity);

/* After the options: where the command starts, unless --workdir said so. Fails if the working
 * directory was held back and no option has settled what becomes of it. */
int workdir_choose(struct settings *settings, const struct identity *identity, bool held_back,
                   struct brig_error *err);
