/* SPDX-License-Identifier: MIT */
/* Projects: which one a directory belongs to, and which jail belongs to a project.
 *
 * Each project has a jail of its own, so that what a command leaves in its home in one project never
 * runs in another. The project is the top directory of the git repository, else the directory
 * itself. NAME.project in the storage contains its path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/path.h"

struct identity;

#define PROJECT_JAIL_MAX 64

/* Finds the project of a directory, with the ids of the user; *ret_path is NULL if the directory
 * belongs to none because it is not granted by itself, such as the home directory. */
int project_find(const char *directory, const struct identity *identity, char **ret_path,
                 struct brig_error *err);

/* A hash of a path, for names in the storage. Pure. */
uint64_t project_hash(const char *path);

/* The name of a project's jail: the last component of the path and a hash of the whole. Whoever
 * names a directory can make it equal to that of another project, so NAME.project decides whose it
 * is, and `number` (from 1 on) gives further names. Pure. */
void project_jail(const char *path, unsigned number, char name[static PROJECT_JAIL_MAX]);

/* Records to which project a jail belongs, with the ids of the user. */
void project_record(int storage, const char *jail, const char *path);

/* The project of a jail; false if it has none. */
bool project_of(const char *storage, const char *jail, char path[static PATH_LENGTH_MAX + 1]);
