/* SPDX-License-Identifier: MIT */
/* Notes of executions, in SQLite, and their messages. */
#include "server/history/notes.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "base/wire.h"
#include "server/history/queue.h"
#include "server/history/store.h"

#define VERSION 1

/* ---- Messages ---- */

void note_done(struct note *note)
{
    arena_done(&note->arena);
    *note = (struct note){0};
}

int note_encode(const struct note *note, struct str *out, struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_u64(out, note->state);
    wire_put_i64(out, note->created_ns);
    wire_put_bytes(out, note->text.data, note->text.length);
    wire_put_bytes(out, note->result.data, note->result.length);
    return out->failed ? brig_fail_nomem(err) : 0;
}

int note_decode(const void *bytes, size_t length, struct note *ret_note, struct brig_error *err)
{
    struct note note = {0};
    const void *copy = arena_copy(&note.arena, bytes, length);
    struct wire_reader in = wire_open(copy, copy ? length : 0, VERSION);
    note.state = (enum note_state)wire_get_u64(&in, NOTE_STATES_ - 1);
    note.created_ns = wire_get_i64(&in, 0, INT64_MAX);
    note.text.data = wire_get_bytes(&in, EXECUTION_NOTE_MAX, &note.text.length);
    note.result.data = wire_get_bytes(&in, MESSAGE_BYTES_MAX, &note.result.length);
    if (!wire_done(&in)) {
        note_done(&note);
        return brig_fail(err, BRIG_E_INVALID, 0, "a note is malformed");
    }
    *ret_note = note;
    return 0;
}

void note_list_done(struct note_list *list)
{
    arena_done(&list->arena);
    *list = (struct note_list){0};
}

int note_list_encode(const struct note_list *list, struct str *out, struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_u64(out, list->total);
    wire_put_u64(out, list->count);
    for (size_t i = 0; i < list->count; i++)
        wire_put_text(out, list->ids[i]);
    return out->failed ? brig_fail_nomem(err) : 0;
}

int note_list_decode(const void *bytes, size_t length, struct note_list *ret_list,
                     struct brig_error *err)
{
    struct note_list list = {0};
    const void *copy = arena_copy(&list.arena, bytes, length);
    struct wire_reader in = wire_open(copy, copy ? length : 0, VERSION);
    list.total = wire_get_u64(&in, INT64_MAX);
    list.ids = wire_get_array(&in, &list.arena, NOTES_PAGE_MAX, sizeof *list.ids, &list.count);
    for (size_t i = 0; i < list.count; i++) {
        list.ids[i] = wire_get_text(&in, EXECUTION_ID_LENGTH);
        in.failed = in.failed || !execution_id_is_valid(list.ids[i]);
    }
    if (!wire_done(&in)) {
        note_list_done(&list);
        return brig_fail(err, BRIG_E_INVALID, 0, "a list of notes is malformed");
    }
    *ret_list = list;
    return 0;
}

void note_page_encode(const struct note_page *page, struct str *out)
{
    wire_put_version(out, VERSION);
    wire_put_text(out, page->domain);
    wire_put_u64(out, page->offset);
    wire_put_u64(out, page->limit);
}

int note_page_decode(const void *bytes, size_t length, struct note_page *ret_page,
                     struct brig_error *err)
{
    struct wire_reader in = wire_open(bytes, length, VERSION);
    struct note_page page = {0};
    (void)snprintf(page.domain, sizeof page.domain, "%s", wire_get_text(&in, NOTE_DOMAIN_MAX));
    page.offset = wire_get_u64(&in, INT64_MAX);
    page.limit = wire_get_u64(&in, NOTES_PAGE_MAX);
    if (!wire_done(&in))
        return brig_fail(err, BRIG_E_INVALID, 0, "a question for notes is malformed");
    *ret_page = page;
    return 0;
}

/* ---- The table ---- */

int notes_add(struct store *store, const struct execution_request *request, int64_t created_ns,
              struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    if (request->note.length == 0)
        return 0;
    str_append(&statement.sql,
               "INSERT INTO notes (id, domain, created_ns, note) VALUES (?1, ?2, ?3, ?4)");
    store_add_text(&statement, request->id);
    store_add_text(&statement, request->domain);
    store_add_number(&statement, created_ns);
    store_add_bytes(&statement, request->note);
    return store_execute(store, &statement, "store", err);
}

static bool take_note(void *context, sqlite3_stmt *row)
{
    struct note *note = context;
    note->state = NOTE_ENDED;
    note->created_ns = sqlite3_column_int64(row, 0);
    note->text.length = (size_t)sqlite3_column_bytes(row, 1);
    note->text.data = arena_copy(&note->arena, sqlite3_column_blob(row, 1), note->text.length);
    return false;
}

static bool take_queued(void *context, sqlite3_stmt *row)
{
    (void)row;
    ((struct note *)context)->state = NOTE_QUEUED;
    return false;
}

/* Whether it waits; what was claimed is in the queue until its first row. */
static int look_up_state(struct store *store, const char *id, struct note *note,
                         struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    note->state = NOTE_RUNNING;
    str_append(&statement.sql, "SELECT 1 FROM queue WHERE id = ?1 AND claimed = 0");
    store_add_text(&statement, id);
    return store_query(store, &statement, take_queued, note, err);
}

static int add_result(struct store *store, const char *id, const char *domain, struct note *note,
                      struct brig_error *err)
{
    autostr struct str bytes = {0};
    int found = 0, result = queue_result(store, id, domain, &found, &bytes, err);
    if (result < 0)
        return result;
    if (found == 1)
        return look_up_state(store, id, note, err);
    note->state = found == 0 ? NOTE_MISSING : NOTE_ENDED;
    if (found == 0)
        return 0;
    note->result.length = bytes.length;
    note->result.data = arena_copy(&note->arena, bytes.data, bytes.length);
    return bytes.failed || note->arena.failed ? brig_fail_nomem(err) : 0;
}

int notes_get(struct store *store, const char *id, const char *domain, struct note *ret_note,
              struct brig_error *err)
{
    autostatement struct store_statement statement = {0};
    struct note note = {.text = {.data = ""}, .result = {.data = ""}};
    str_append(&statement.sql, "SELECT created_ns, note FROM notes WHERE id = ?1"
                               " AND (?2 = '' OR domain = ?2)");
    store_add_text(&statement, id);
    store_add_text(&statement, domain);
    int result = store_query(store, &statement, take_note, &note, err);
    if (result == 0 && note.state == NOTE_ENDED)
        result = add_result(store, id, domain, &note, err);
    if (result < 0) {
        note_done(&note);
        return result;
    }
    *ret_note = note;
    return 0;
}

int notes_remove(struct store *store, const char *id, const char *domain, struct note *ret_note,
                 struct brig_error *err)
{
    int result = notes_get(store, id, domain, ret_note, err);
    if (result < 0 || ret_note->state != NOTE_ENDED)
        return result;
    result = store_run(store, "DELETE FROM notes WHERE id = ?1", id, ROW_NO_NUMBER, "remove", err);
    if (result == 0)
        result = store_run(store,
                           "DELETE FROM results WHERE id = ?1 AND id NOT IN (SELECT id FROM"
                           " callbacks WHERE state IN ('pending', 'calling'))",
                           id, ROW_NO_NUMBER, "remove", err);
    if (result < 0)
        note_done(ret_note);
    return result;
}

static bool take_id(void *context, sqlite3_stmt *row)
{
    struct note_list *list = context;
    const char *id = (const char *)sqlite3_column_text(row, 0);
    list->ids[list->count] = arena_strdup(&list->arena, id ? id : "");
    return ++list->count < NOTES_PAGE_MAX;
}

static bool take_total(void *context, sqlite3_stmt *row)
{
    ((struct note_list *)context)->total = (uint64_t)sqlite3_column_int64(row, 0);
    return false;
}

int notes_list(struct store *store, const struct note_page *page, struct note_list *ret_list,
               struct brig_error *err)
{
    autostatement struct store_statement count = {0}, ids = {0};
    struct note_list list = {0};
    list.ids = arena_alloc(&list.arena, NOTES_PAGE_MAX * sizeof *list.ids);
    str_append(&count.sql, "SELECT count(*) FROM notes WHERE ?1 = '' OR domain = ?1");
    store_add_text(&count, page->domain);
    str_append(&ids.sql, "SELECT id FROM notes WHERE ?1 = '' OR domain = ?1"
                         " ORDER BY created_ns DESC LIMIT ?2 OFFSET ?3");
    store_add_text(&ids, page->domain);
    store_add_number(&ids, (int64_t)page->limit);
    store_add_number(&ids, (int64_t)page->offset);
    int result =
        list.ids ? store_query(store, &count, take_total, &list, err) : brig_fail_nomem(err);
    if (result == 0 && page->limit > 0)
        result = store_query(store, &ids, take_id, &list, err);
    if (result == 0 && list.arena.failed)
        result = brig_fail_nomem(err);
    if (result < 0) {
        note_list_done(&list);
        return result;
    }
    *ret_list = list;
    return 0;
}
