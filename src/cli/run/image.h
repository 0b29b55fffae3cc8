/* SPDX-License-Identifier: MIT */
/* --image: a run whose root is an image. */
#pragma once

#include <brig/brig.h>

#include "base/path.h"

struct identity;
struct settings;

/* Where the images of a user are: in the storage directory of the jails. False if the path is too
 * long. */
bool image_store_path(const char *storage, char ret_path[PATH_LENGTH_MAX + 1]);

/* Takes root, environment and working directory from the image of --image, if there is one. What was
 * set by rules stays. */
int image_apply(struct settings *settings, const struct identity *identity, struct brig_error *err);

/* The command of the image: its entry point and arguments, else a shell. It ends with NULL; the caller
 * frees the list. NULL if memory is short. */
const char **image_command(const struct settings *settings);

/* Releases the image; part of settings_done(). */
void image_release(struct settings *settings);
