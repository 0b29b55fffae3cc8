/* SPDX-License-Identifier: MIT */
/* The directories in which the steps of an operation are taken. Only for step.c. */
#pragma once

#include "changes/operation/step.h"

/* Opens the directory that contains a path of the user, or of the upper directory, and keeps it for the next step.
 * *ret_name is the last component of the path. NULL with *ret_reason. */
struct step_directory *step_enter(struct step_context *context, struct step_tree *tree, bool upper,
                                  const char *path, const char **ret_name, const char **ret_reason);
/* A directory was moved: forgets it and directories in it. */
void step_forget_directory(struct step_directory *at, const char *path);

/* Whether a directory of the upper directory, or one above it, is opaque. */
bool step_is_below_opaque(const struct step_tree *tree, const char *path);

/* Give the owner all rights for a directory of the upper directory; for it and all directories above it; for a directory
 * among the objects, which goes back to this path. The modes are restored by step_done(). */
bool step_open_up(struct step_context *context, size_t tree, const char *path);
bool step_open_all_up(struct step_context *context, size_t tree, const char *path);
void step_open_object(struct step_context *context, size_t tree, const char *path,
                      const char *object);
/* A directory was moved to the objects: restores its mode there. */
void step_close_moved(struct step_context *context, size_t tree, const char *path,
                      const char *object);
/* The record of a directory that was given rights, or NULL. */
const struct step_opened *step_find_opened(const struct step_context *context, size_t tree,
                                           const char *path);
