/* SPDX-License-Identifier: MIT */
/* Measuring and removing trees that a jail has written, without trusting anything in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

/* The bytes on disk of a directory and everything below it on the same filesystem. Unreadable
 * directories are not counted. */
uint64_t tree_size(int directory);

/* Whether `name` is a directory without entries; "." is the directory itself. False if it cannot be read. */
bool tree_is_empty(int directory, const char *name);

/* Removes `name` in a directory with everything below it, at any depth. Follows no link and does
 * not cross into another filesystem. Succeeds if `name` does not exist. */
int tree_remove(int directory, const char *name, struct brig_error *err);
/* Removes everything in a directory, but not the directory. */
int tree_empty(int directory, struct brig_error *err);
