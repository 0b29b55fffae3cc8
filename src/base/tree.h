/* SPDX-License-Identifier: MIT */
/* Trees that a jail has written: counted and removed without trusting anything in them. */
#pragma once

#include <stdint.h>

#include <brig/brig.h>

/* Bytes on disk of a directory (an fd) and everything below it on the same filesystem; what cannot
 * be read is not counted. */
uint64_t tree_size(int directory);

/* Removes name in directory with everything below it, however deep, following no link and leaving
 * the filesystem nowhere. What is not there is removed already. */
int tree_remove(int directory, const char *name, struct brig_error *err);
/* The same for everything in a directory, which stays. */
int tree_empty(int directory, struct brig_error *err);
