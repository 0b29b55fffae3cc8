/* SPDX-License-Identifier: MIT */
/* The list of changes: what `brig status --json` has printed, sorted by directory, and the rows of
 * the view. Nothing here touches the system. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "review/json_reader.h"

#define CHANGES_LAYERS_MAX 64
#define CHANGES_MAX 20000000 /* entries; more are not read */

struct review_layer {
    const char *root; /* a directory; of what was done in git in it: "git in DIRECTORY" */
    bool home;
};

/* One item: a change, or what was done in git. Texts belong to the list and are bytes as they are in the filesystem. */
struct entry {
    const char *path; /* relative to the root of its layer; or the name of a branch, tag, stash … */
    const char *kind, *type;
    const char
        *commits; /* of what was done in git: they and their files, in lines, escaped; else NULL */
    const char *target[2];
    const char *token;                                       /* or NULL: it is not judged */
    const char *renamed_from, *conflict, *risk, *unreadable; /* or NULL */
    uint64_t size[2];
    uint64_t files, bytes; /* in a deleted directory */
    uint32_t mode[2];      /* 0: there is no file */
    uint32_t layer;
    uint32_t name; /* where the last component of the path begins */
    bool owner, acl, xattrs, ignored, marked;
};

enum row_kind { ROW_LAYER, ROW_DIRECTORY, ROW_ENTRY };

/* A line of the view. A layer and a directory name their first entry in the view. */
struct row {
    uint32_t entry;
    uint32_t count; /* entries in the view: of a layer all, of a directory those directly in it */
    enum row_kind kind;
};

struct changes {
    struct arena arena;
    const char *jail;
    bool running;
    uint64_t held;
    uint64_t interrupted; /* an operation, or 0 */
    struct review_layer layers[CHANGES_LAYERS_MAX];
    size_t layer_count;
    struct entry *entries; /* sorted once changes_finish() was called */
    size_t count;
    size_t marked, flagged, conflicts;
    uint64_t state; /* files of programs' state in the home, which are no entries */
    struct row *rows;
    size_t row_count;
    bool only_flagged; /* the filter of the rows */
};

/* ---- reading ---- */

/* Zero-initialise the list; it must not be moved while it is read. */
struct changes_reader {
    struct json_reader json;
    struct changes *changes;
    const char *keys[JSON_DEPTH_MAX + 1]; /* the key that is being read at each depth */
    bool arrays[JSON_DEPTH_MAX + 1];      /* the value at this depth is an array */
    unsigned depth, index;                /* index: in the innermost array */
    struct str commits;                   /* of the item of git that is being read */
};

void changes_reader_init(struct changes_reader *reader, struct changes *changes);
void changes_reader_done(struct changes_reader *reader);
/* Reads a part of the text; false if it is not what brig prints, or memory is lacking. */
bool changes_reader_feed(struct changes_reader *reader, const char *bytes, size_t length);

/* For changes_finish(): sorts by layer, directory and name. */
void changes_sort(struct changes *changes);

/* Sorts the entries and makes the rows. Returns false if the text was incomplete or memory is
 * lacking. */
bool changes_finish(struct changes_reader *reader);

void changes_done(struct changes *changes);

/* The line about `state`. */
#define CHANGES_STATE "state and caches of programs: %ju files; brig status -v lists them"

/* ---- rows ---- */

/* Makes the rows of all entries, or of the flagged ones. False if memory is lacking. */
bool changes_filter(struct changes *changes, bool only_flagged);

/* The entries that a row stands for: [*ret_from, *ret_to) of the entries. Those that the filter
 * hides are among them; see changes_shown(). */
void changes_range(const struct changes *changes, size_t row, size_t *ret_from, size_t *ret_to);
/* The entries in the directory of an entry and below it. */
void changes_directory(const struct changes *changes, size_t entry, size_t *ret_from,
                       size_t *ret_to);
/* The entries in a new directory that is an entry itself; none for any other entry. Applying or
 * discarding it means them too. */
void changes_inside(const struct changes *changes, size_t entry, size_t *ret_from, size_t *ret_to);
bool changes_shown(const struct changes *changes, const struct entry *entry);

void changes_mark(struct changes *changes, size_t entry, bool marked);

/* How many entries sort before a path. */
size_t changes_count_before(const struct changes *changes, const char *root, const char *path);
/* The entry of a path, or NULL. */
const struct entry *changes_find(const struct changes *changes, const char *root, const char *path);
/* The row of a path, or the one where it would be. */
size_t changes_find_row(const struct changes *changes, const char *root, const char *path);
/* The next row after `row`, in either direction and around the end, with the text in its path;
 * letters match in either case. SIZE_MAX if there is none. */
size_t changes_search(const struct changes *changes, size_t row, const char *text, bool backwards);

/* D T M m A, or R for an added file that was renamed, as brig status prints them. */
char entry_letter(const struct entry *entry);
/* Whether two entries have the same token: nothing has changed in between. */
bool entry_is_same(const struct entry *a, const struct entry *b);
bool entry_is_directory(const struct entry *entry);
/* The size after the change, or of what was deleted. */
uint64_t entry_size(const struct entry *entry);

/* "modified, 12 to 30 bytes, mode 644 to 755": appends a description without a newline. Paths are
 * bytes as they are. */
void entry_describe(const struct entry *entry, struct str *out);
/* Appends the path outside: absolute. An ignored directory, which stands for everything in it, ends in a slash: so it
 * does for the verbs. Of what was done in git: "git:NAME". */
void entry_append_path(const struct changes *changes, const struct entry *entry, struct str *out);
/* Adds it as an item, for `--shown`: its token, a blank, the path and a NUL. Without a token it is refused there. */
void entry_list_item(const struct changes *changes, const struct entry *entry, struct str *list);
/* Adds its path to a list, for verb_start(). */
void entry_list_path(const struct changes *changes, const struct entry *entry, struct str *list);

/* "512", "1.2K", "34M". */
struct size_text {
    char text[8];
};
struct size_text size_text(uint64_t bytes);
