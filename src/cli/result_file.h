/* SPDX-License-Identifier: MIT */
/* Where --result goes: an open fd, a file replaced in one step, or something that is no file. */
#pragma once

#include <brig/brig.h>

struct identity;

#define RESULT_NAME_MAX 256

/* Zero is not a state: use result_file_open. */
struct result_file {
    int fd;                     /* what is written to directly, or -1 */
    bool owned;                 /* fd is ours to close */
    int dir_fd;                 /* the directory of a file to be replaced, or -1 */
    char name[RESULT_NAME_MAX]; /* in it */
};

/* Opens what `where` names, before the command starts: what cannot be written is refused early, and
 * a jail that moves directories about, or that left a link (see out_path.h), cannot lead the result
 * elsewhere. Release with result_file_done. */
int result_file_open(const char *where, const struct brig_policy *policy,
                     const struct identity *identity, struct result_file *ret_file,
                     struct brig_error *err);
int result_file_write(const struct result_file *file, const struct brig_result *result,
                      struct brig_error *err);
void result_file_done(struct result_file *file);
