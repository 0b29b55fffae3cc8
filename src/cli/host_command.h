/* SPDX-License-Identifier: MIT */
/* Runs shell commands outside the jail for their output. */
#pragma once

#include <brig/brig.h>

struct identity;

/* Reads everything from the descriptor, without the end of the last line: 1 to POLICY_SECRET_MAX
 * bytes without a NUL. It may be a secret: the caller frees it with policy_free_secret(). Errors
 * name `what`, never the text. */
int host_read_text(int fd, const char *what, char **ret_text, struct brig_error *err);

/* The output of a shell command that ran with the ids of the user; likewise. */
int host_command(const char *line, const struct identity *identity, char **ret_text,
                 struct brig_error *err);
