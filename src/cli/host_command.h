/* SPDX-License-Identifier: MIT */
/* Texts from outside the jail: files, and the output of shell commands. */
#pragma once

#include <brig/brig.h>

struct identity;

/* Reads everything from the descriptor, without the end of the last line: 1 to POLICY_SECRET_MAX
 * bytes without a NUL. It may be a secret: the caller frees it with policy_free_secret(). Errors
 * name `what`, never the text. */
int host_read_text(int fd, const char *what, char **ret_text, struct brig_error *err);

/* The text of a configuration file of the user, or NULL: `name`, which is absolute or below `home`. It
 * may contain a secret: free it with policy_free_secret(). ret_path (PATH_LENGTH_MAX + 1 bytes) is its
 * path. Uses the ids of the user. */
char *host_read_file(const char *home, const char *name, const struct identity *identity,
                     char *ret_path);

/* The output of a shell command that ran with the ids of the user; likewise. */
int host_command(const char *line, const struct identity *identity, char **ret_text,
                 struct brig_error *err);
