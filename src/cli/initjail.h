/* SPDX-License-Identifier: MIT */
/* Programs that run once for a jail's new home, outside the jail, as the user. */
#pragma once

#include <sys/types.h>

#include <brig/brig.h>

struct identity;
struct settings;

/* Makes the directory that the jail's home, or what is changed of it, is kept in, if it is not there
 * yet, and runs settings->initjails in it, before anything is mounted; `owner` is whose files these
 * are. Of several runs one does it, and the others wait. A program that fails is a warning, one that
 * is missing an error unless it is optional: then nothing was made. */
int initjail_run(const struct settings *settings, const struct identity *identity, uid_t owner,
                 struct brig_error *err);
