/* SPDX-License-Identifier: MIT */
/* Shows changes as git does, or writes them as a patch. Both versions of each changed file are copied into a
 * temporary repository, and git compares the two trees. So git reads no attributes, configuration or filters of a
 * tree that a jail has written; the user's global configuration (pager, colours, diff tools) applies.
 *
 * Git knows neither empty directories nor owners, most modes, extended attributes, FIFOs and devices. These changes
 * are notes, lines that begin with '#', after git's output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct change;
struct change_options;
struct git;
struct layer;

/* Larger files are not compared: they are shown as binary, and a note has their sizes. */
#define DIFF_FILE_MAX ((off_t)64 << 20)
/* The same for a patch, which leaves them out: git apply refuses patches of 1 GiB. */
#define DIFF_PATCH_FILE_MAX ((off_t)512 << 20)
#define DIFF_LAYERS_MAX 64

enum diff_form {
    DIFF_TEXT,  /* unified diffs */
    DIFF_STAT,  /* a line for each file */
    DIFF_NAMES, /* the absolute paths of files that differ, without notes */
    DIFF_PATCH, /* for `git apply`: complete, and independent of the user's configuration */
};

struct diff_options {
    enum diff_form form;
    bool pager;    /* git may start the pager; it does so only if its output is a terminal */
    bool terminal; /* the output is a terminal: contents are escaped */
    int output;    /* standard output of git, an fd */
    int notes;     /* where the notes go, an fd */
    /* Of two versions, whether this change is shown: 1, 0, or 0 with a reason for a note. Asked about a copy of a file
     * (change->copy_name), which is what is shown, while a run is active. May be NULL. */
    int (*choose)(void *context, const struct change *change, const char **ret_reason);
    void *context;
};

struct diff;

/* Starts a diff; `record` is the record of a jail, and `git` must have a program. Both must stay valid. */
int diff_new(const struct git *git, int record, const struct diff_options *options,
             struct diff **ret_diff, struct brig_error *err);
/* Removes the repository. Accepts NULL. */
void diff_free(struct diff *diff);

/* Adds the changes of a layer: the user's files against the jail's. Of the options only the paths are used. */
int diff_add(struct diff *diff, const struct layer *layer, const struct change_options *options,
             struct brig_error *err);
/* Adds the files that two jails have changed in the same root: the files of the first against the files of the
 * second. One of the layers may be NULL: that jail has changed nothing. */
int diff_add_jails(struct diff *diff, const struct layer *a, const struct layer *b,
                   const struct change_options *options, struct brig_error *err);

/* The number of layers that have changes. If it is 1, paths are relative to the root of the layer, else to "/". */
size_t diff_layer_count(const struct diff *diff);
/* The number of entries that git cannot show under their own name, ".git" for example: see import_maps(). */
size_t diff_mapped_count(const struct diff *diff);

/* Runs git, waits for it, and writes the notes. A pager that was left early is no failure. */
int diff_show(struct diff *diff, struct brig_error *err);
