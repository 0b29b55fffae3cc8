/* SPDX-License-Identifier: MIT */
/* Rows on their way to the database: files that are only appended to, each record with its length and
 * checksum. What was appended outlives the process; what the machine's end tears off is noticed and cut
 * away. Read from the http process, and released once the database has it; a crash in between means that
 * it is read again, so who takes records must bear to see them twice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

#define SPOOL_RECORD_MAX ((size_t)8 << 20)
#define SPOOL_SEGMENT_BYTES ((size_t)16 << 20) /* then a new file begins */
#define SPOOL_BATCH_MAX 256
#define SPOOL_SERVER_ID_LENGTH 36

struct spool;

/* Makes the directory, and takes it: another process that holds it is BRIG_E_STATE. */
int spool_open(const char *directory, struct spool **ret_spool, struct brig_error *err);
void spool_free(struct spool *spool); /* accepts NULL */

/* An id of this spool, made when it was. */
const char *spool_server_id(const struct spool *spool);
/* On failure nothing of it is there. */
int spool_append(struct spool *spool, const void *bytes, size_t length, struct brig_error *err);

uint64_t spool_waiting_bytes(const struct spool *spool);
uint64_t spool_waiting_records(const struct spool *spool);
/* Bytes that were found damaged and skipped, at the start and since. */
uint64_t spool_damaged_bytes(const struct spool *spool);

struct spool_record {
    const char *bytes;
    size_t length;
};
struct spool_batch {
    struct spool_record records[SPOOL_BATCH_MAX];
    size_t count;
    char *buffer;     /* owned; what the records point into */
    uint64_t segment; /* where it ends */
    size_t end;
};
void spool_batch_done(struct spool_batch *batch);
/* The oldest records; a batch without any if there are none. */
int spool_read(struct spool *spool, struct spool_batch *ret_batch, struct brig_error *err);
/* They are in the database: they are not read again. */
int spool_release(struct spool *spool, const struct spool_batch *batch, struct brig_error *err);

/* Pure: the record at the start of `bytes`. >0: how many bytes it takes; 0: it is not whole; negative:
 * it is none. */
long spool_record_parse(const void *bytes, size_t length, struct spool_record *ret_record);
/* What stands before the bytes of a record. */
#define SPOOL_HEAD_BYTES 16
void spool_record_head(const void *bytes, size_t length, unsigned char ret_head[SPOOL_HEAD_BYTES]);
