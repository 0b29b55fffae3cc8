/* SPDX-License-Identifier: MIT */
/* The store of a jail: a git repository in its record (store.git) for the contents of files, which no jail ever sees.
 * git writes it and reads it as a program, without filters, attributes or configuration from outside. It has no refs: the
 * manifests say which objects are needed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "git/git.h"

#define STORE_ID_MAX 65 /* an object id and a NUL */
#define STORE_DIRECTORY "store.git"

struct store {
    const struct git *git;
    int directory; /* store.git */
};

/* Opens the store in a jail's record; with `make` it is created. Without it, a missing store is BRIG_E_NOT_FOUND. The
 * caller holds the lock of the checkpoints. */
int store_open(int record, const struct git *git, bool make, struct store *ret_store,
               struct brig_error *err);
void store_done(struct store *store);

/* Joins small packs, if there are many. */
int store_tidy(const struct store *store, struct brig_error *err);

/* Keeps these objects, an id in each line, and removes all others. */
int store_keep(const struct store *store, const struct str *ids, struct brig_error *err);

/* ---- writing: one process of git fast-import ---- */

struct store_writer;
int store_write_begin(const struct store *store, struct store_writer **ret_writer,
                      struct brig_error *err);
/* Stores the first `size` bytes of a file. Returns 1 if they cannot be read, or there are not as many. */
int store_write_file(struct store_writer *writer, int fd, uint64_t size, char ret_id[STORE_ID_MAX],
                     struct brig_error *err);
int store_write_bytes(struct store_writer *writer, const void *bytes, size_t length,
                      char ret_id[STORE_ID_MAX], struct brig_error *err);

/* Waits until everything is on disk, and frees the writer, also on failure. */
int store_write_end(struct store_writer *writer, struct brig_error *err);
/* Ends git at once: nothing that was written counts. */
void store_write_abandon(struct store_writer *writer);

/* ---- reading: one process of git cat-file ---- */

struct store_reader;
int store_read_begin(const struct store *store, struct store_reader **ret_reader,
                     struct brig_error *err);
/* Writes the contents of an object to a file. */
int store_read_file(struct store_reader *reader, const char *id, int to, struct brig_error *err);
/* Appends the contents, at most `max` bytes. */
int store_read_text(struct store_reader *reader, const char *id, size_t max, struct str *text,
                    struct brig_error *err);
void store_read_end(struct store_reader *reader);
