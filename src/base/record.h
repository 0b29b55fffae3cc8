/* SPDX-License-Identifier: MIT */
/* Records: what brig keeps about one thing on disk. A record is lines of text, each a key, a blank and a
 * value, in which "%XX" stands for a byte; a key may come several times. A reader skips keys that it
 * does not know, so that a newer brig may write more. Pure but for record_read() and record_write(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* ---- writing ---- */

/* Append a line. A value that is NULL adds nothing. */
void record_add(struct str *record, const char *key, const char *value);
void record_add_number(struct str *record, const char *key, uint64_t value);
void record_add_time(struct str *record, const char *key, int64_t time_ns);

/* Replaces a file by a record, atomically; with `durable` it is on the disk when this returns. */
int record_write(int dir, const char *name, const struct str *record, bool durable,
                 struct brig_error *err);

/* ---- reading ---- */

/* Reads a record: 1, 0 if there is none, or a code. The lines are read with record_next(). */
int record_read(int dir, const char *name, struct str *ret_record, struct brig_error *err);

/* A position in a record. Zero-initialise. */
struct record_place {
    size_t at;
    bool damaged; /* a line was not of this form; it and what follows are not read */
};
/* The next line, decoded in place: so a record is read once. False at the end. */
bool record_next(struct str *record, struct record_place *place, const char **ret_key,
                 const char **ret_value);

/* The number in a value; 0 if it is none. */
uint64_t record_number(const char *value);
int64_t record_time(const char *value);
