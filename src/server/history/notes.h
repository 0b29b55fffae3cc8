/* SPDX-License-Identifier: MIT */
/* Notes: what a dialect of the API keeps with an execution of the queue, in SQLite. Only the dialect
 * understands them. A note is kept as long as the result of its execution. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/execution.h"

struct brig_error;
struct store;
struct str;

/* A migration of SQLite. */
#define NOTE_TABLES                                                                                \
    "CREATE TABLE notes (id TEXT PRIMARY KEY, domain TEXT NOT NULL,"                               \
    " created_ns INTEGER NOT NULL, note BLOB NOT NULL);"                                           \
    "CREATE INDEX notes_domain ON notes (domain, created_ns);"                                     \
    "CREATE INDEX notes_created ON notes (created_ns);"

#define NOTE_DOMAIN_MAX 128
#define NOTES_PAGE_MAX 1000 /* ids in one list */

enum note_state { NOTE_MISSING, NOTE_QUEUED, NOTE_RUNNING, NOTE_ENDED, NOTE_STATES_ };

/* An execution with its note. Pointers are into the arena. */
struct note {
    struct arena arena;
    enum note_state state;
    int64_t created_ns;
    struct execution_bytes text;   /* the note */
    struct execution_bytes result; /* encoded; if it has ended */
};
void note_done(struct note *note);
int note_encode(const struct note *note, struct str *out, struct brig_error *err);
int note_decode(const void *bytes, size_t length, struct note *ret_note, struct brig_error *err);

/* The newest notes of a domain: how many there are, and the ids of one page. */
struct note_list {
    struct arena arena;
    uint64_t total;
    const char **ids;
    size_t count;
};
void note_list_done(struct note_list *list);
int note_list_encode(const struct note_list *list, struct str *out, struct brig_error *err);
int note_list_decode(const void *bytes, size_t length, struct note_list *ret_list,
                     struct brig_error *err);

/* A question for a list: of the domain, "" for all. */
struct note_page {
    char domain[NOTE_DOMAIN_MAX + 1];
    uint64_t offset, limit;
};
void note_page_encode(const struct note_page *page, struct str *out);
int note_page_decode(const void *bytes, size_t length, struct note_page *ret_page,
                     struct brig_error *err);

/* Stores the note of a request, if it has one, within a transaction. */
int notes_add(struct store *store, const struct execution_request *request, int64_t created_ns,
              struct brig_error *err);
/* Reads the note of an execution of this domain; state NOTE_MISSING if there is none. */
int notes_get(struct store *store, const char *id, const char *domain, struct note *ret_note,
              struct brig_error *err);
/* The same, and removes the note and the result if the execution has ended. */
int notes_remove(struct store *store, const char *id, const char *domain, struct note *ret_note,
                 struct brig_error *err);
int notes_list(struct store *store, const struct note_page *page, struct note_list *ret_list,
               struct brig_error *err);
