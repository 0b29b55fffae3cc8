/* SPDX-License-Identifier: MIT */
/* Rows that the history process has not confirmed yet, and the counters for /metrics, in a memfd
 * that the supervisor keeps open: they survive the executor, which writes them. The http process can
 * only read.
 *
 * A change is made to a copy of the state, which then replaces the state with one store. So a row and
 * what it changes in the counters are there together or not at all, whenever the executor is
 * killed. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/counters.h"
#include "server/message.h"

struct brig_error;

/* With more bytes than this, results are kept without their output. */
#define JOURNAL_BYTES_MANY ((uint64_t)64 << 20)
/* With more bytes than this, no new executions are taken. */
#define JOURNAL_BYTES_FULL ((uint64_t)128 << 20)

/* A process of brigd as the supervisor sees it. */
struct journal_process {
    uint64_t deaths, hangs; /* since the start of brigd */
    uint64_t cpu_us, memory_bytes, virtual_bytes, started_s;
    uint64_t open_files; /* 0: unknown */
};

struct journal_state {
    uint64_t first, end; /* rows that are not confirmed: offsets in the file */
    uint64_t rows;
    uint64_t tag;      /* of the last row */
    int64_t oldest_ns; /* since 1970, when the first row was added; 0: there is none */
    struct counters counters;
};

/* The beginning of the file. `processes` has the supervisor behind the roles; the supervisor writes
 * it. */
struct journal_page {
    _Atomic uint64_t sequence; /* its last bit is the index of the state in force */
    struct journal_state states[2];
    struct journal_process processes[ROLES_ + 1];
};

/* Makes the file. The second descriptor can only be read from and mapped for reading. */
int journal_create(int *ret_fd, int *ret_read_fd, struct brig_error *err);
/* Maps its beginning; NULL if that fails. */
struct journal_page *journal_map(int fd, bool writable);
void journal_unmap(struct journal_page *page); /* accepts NULL */
/* Copies the state in force, for the reader. */
void journal_read(const struct journal_page *page, struct journal_state *ret_state);
/* Returns whether too many rows wait. */
bool journal_is_full(const struct journal_page *page);

/* ---- For the executor ---- */

struct journal {
    int fd;
    struct journal_page *page;
    uint64_t unsent; /* offset of the first row not sent to this history process */
};

#define JOURNAL_NONE ((struct journal){.fd = -1})
/* The descriptor is copied; -1: makes a file of its own. Rows of an earlier executor are there. */
int journal_open(int fd, struct journal *ret_journal, struct brig_error *err);
void journal_close(struct journal *journal);

/* Begins a change: returns a copy of the state. It takes effect with journal_commit(), and is
 * forgotten if another change is begun before. */
struct journal_state *journal_begin(struct journal *journal);
/* Adds a row to the change. */
int journal_add(struct journal *journal, struct journal_state *state, enum message_type type,
                const void *bytes, size_t length, struct brig_error *err);
void journal_commit(struct journal *journal);

/* Sends rows while the channel's queue is short; negative if the channel is gone. */
int journal_send(struct journal *journal, struct channel *history, struct brig_error *err);
/* Removes rows up to this tag: they are on disk. */
void journal_stored(struct journal *journal, uint64_t tag);
/* Starts again with the first row, for a new history process. */
void journal_again(struct journal *journal);
bool journal_is_empty(const struct journal *journal);
/* Whether all rows were sent to this history process. */
bool journal_is_sent(const struct journal *journal);
/* Tag of the last row. */
uint64_t journal_last(const struct journal *journal);
/* Bytes of the rows. */
uint64_t journal_bytes(const struct journal *journal);
