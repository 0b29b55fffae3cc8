/* SPDX-License-Identifier: MIT */
/* The lists of files of brig 0.1 and 0.2, which manifests have replaced. */
#pragma once

struct brig_error;
struct manifest_text;
struct manifest_writer;

/* Writes an open list of an earlier version, which begins with these 8 bytes, as a manifest to a file in memory: an fd.
 * The list is not changed. What is neither is refused as damaged. */
int manifest_old_convert(int file, const char *magic, int *ret_file, struct brig_error *err);

/* Begins a manifest in memory, and completes it: of manifest.c, for manifest_old_convert(). */
int manifest_create_copy(const struct manifest_text *headers, struct manifest_writer *ret_writer,
                         struct brig_error *err);
int manifest_finish_copy(struct manifest_writer *writer, int *ret_file, struct brig_error *err);

/* Fails for a list that cannot be read, with its path. */
int manifest_fail_damaged(int file, struct brig_error *err);
