/* SPDX-License-Identifier: MIT */
/* E2B's service for files, filesystem.Filesystem, and GET and POST /files. */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/connect.h"
#include "server/api/e2b.h"
#include "server/api/multipart.h"
#include "server/config/runtime.h"
#include "server/guest/guest_wire.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

#define PERMISSIONS_LENGTH 10
#define FILE_PIECE_BYTES ((uint64_t)4 << 20)

/* ---- entries ---- */

/* "-rw-r--r--" */
static void print_permissions(const struct sandbox_entry *entry, char text[PERMISSIONS_LENGTH + 1])
{
    static const char letters[] = "rwxrwxrwx";
    text[0] = entry->kind == SANDBOX_DIRECTORY ? 'd' : entry->kind == SANDBOX_LINK ? 'l' : '-';
    for (unsigned i = 0; i < 9; i++)
        text[i + 1] = entry->mode & 0400U >> i ? letters[i] : '-';
    text[PERMISSIONS_LENGTH] = '\0';
}

static const char *owner_of(uint64_t id)
{
    return id == 0 ? "root" : id == RUNTIME_AGENT_UID ? E2B_USER : "nobody";
}

static void write_entry(struct json *j, const char *key, const struct sandbox_entry *entry)
{
    static const char *const types[] = {"FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY",
                                        "FILE_TYPE_SYMLINK", "FILE_TYPE_UNSPECIFIED"};
    char permissions[PERMISSIONS_LENGTH + 1];
    const char *slash = strrchr(entry->path, '/');
    print_permissions(entry, permissions);
    json_open_object(j, key);
    json_text(j, "name", slash && slash[1] ? slash + 1 : entry->path);
    json_text(j, "type", types[entry->kind]);
    json_text(j, "path", entry->path);
    json_text(j, "size", str_number(entry->size).text);
    json_uint(j, "mode", entry->mode);
    json_text(j, "permissions", permissions);
    json_text(j, "owner", owner_of(entry->uid));
    json_text(j, "group", owner_of(entry->gid));
    e2b_write_time(j, "modifiedTime", entry->modified_ns);
    if (entry->target)
        json_text(j, "symlinkTarget", entry->target);
    json_close_object(j);
}

static void answer_entry(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    if (answer->entry_count == 1)
        write_entry(&j, "entry", &answer->entries[0]);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* Looks at the path that was made or moved. */
static void look(struct exchange *exchange)
{
    sandbox_ask(
        exchange,
        &(struct sandbox_request){.operation = SANDBOX_STAT, .path = e2b_kept(exchange)->path},
        answer_entry);
}

static void answer_made(struct exchange *exchange, const struct sandbox_answer *answer)
{
    if (answer->incomplete)
        e2b_refuse(exchange, MHD_HTTP_CONFLICT, "the directory exists");
    else
        look(exchange);
}

static void answer_moved(struct exchange *exchange, const struct sandbox_answer *answer)
{
    (void)answer;
    look(exchange);
}

static void answer_entries(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_array(&j, "entries");
    for (size_t i = 0; i < answer->entry_count; i++)
        write_entry(&j, NULL, &answer->entries[i]);
    json_close_array(&j);
    json_close_object(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

/* ---- calls ---- */

/* Reads the body and its member `name`, a path, to the memory that is kept. NULL: answered. */
static const char *read_path(struct exchange *exchange, json_t **body, const char *name)
{
    if (!e2b_check_user(exchange) || (!*body && !e2b_body(exchange, body)))
        return NULL;
    return e2b_file_path(exchange, &e2b_kept(exchange)->arena,
                         json_string_value(json_object_get(*body, name)));
}

static void call(struct exchange *exchange, enum sandbox_operation operation,
                 sandbox_taker *answered)
{
    json_auto_t *body = NULL;
    struct e2b_kept *kept = e2b_kept(exchange);
    kept->path = read_path(exchange, &body, "path");
    struct sandbox_request request = {.operation = operation, .path = kept->path, .depth = 1};
    json_int_t depth = json_integer_value(json_object_get(body, "depth"));
    if (!kept->path)
        return;
    if (depth < 0 || depth > SANDBOX_DEPTH_MAX) {
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "depth has to be at most 64");
        return;
    }
    if (depth > 0)
        request.depth = (uint64_t)depth;
    request.recursive = json_is_true(json_object_get(body, "recursive"));
    sandbox_ask(exchange, &request, answered);
}

void e2b_file_stat(struct exchange *exchange)
{
    call(exchange, SANDBOX_STAT, answer_entry);
}

void e2b_file_make(struct exchange *exchange)
{
    call(exchange, SANDBOX_MAKE, answer_made);
}

void e2b_file_list(struct exchange *exchange)
{
    call(exchange, SANDBOX_ENTRIES, answer_entries);
}

void e2b_file_remove(struct exchange *exchange)
{
    call(exchange, SANDBOX_REMOVE, e2b_answer_empty);
}

void e2b_file_move(struct exchange *exchange)
{
    json_auto_t *body = NULL;
    struct e2b_kept *kept = e2b_kept(exchange);
    const char *from = read_path(exchange, &body, "source");
    if (!from || !(kept->path = read_path(exchange, &body, "destination")))
        return;
    sandbox_ask(
        exchange,
        &(struct sandbox_request){.operation = SANDBOX_MOVE, .path = from, .target = kept->path},
        answer_moved);
}

/* ---- watching ---- */

static void append_idle(struct str *out)
{
    static const char keepalive[] = "{\"keepalive\":{}}";
    connect_frame(out, 0, keepalive, sizeof keepalive - 1);
}

static void send_frame(struct exchange *exchange, unsigned flags, const char *json)
{
    autostr struct str frame = {0};
    connect_frame(&frame, flags, json, strlen(json));
    if (frame.failed)
        return;
    if (flags & CONNECT_LAST)
        stream_finish(exchange->stream, frame.data, frame.length);
    else
        (void)stream_append(exchange->stream, frame.data, frame.length);
}

static void answer_watch(struct exchange *exchange, const struct sandbox_answer *answer)
{
    static const struct stream_form form = {.content_type = "application/connect+json",
                                            .idle = append_idle};
    if (!answer->more) {
        if (exchange->stream)
            send_frame(exchange, CONNECT_LAST, "{}");
        return;
    }
    if (stream_begin(exchange, &form, false))
        send_frame(exchange, 0, "{\"start\":{}}");
}

/* E2B has no event for changes that were lost. */
static void add_change(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                       size_t length)
{
    static const char *const types[] = {
        [GUEST_CREATED] = "EVENT_TYPE_CREATE", [GUEST_WRITTEN] = "EVENT_TYPE_WRITE",
        [GUEST_REMOVED] = "EVENT_TYPE_REMOVE", [GUEST_RENAMED] = "EVENT_TYPE_RENAME",
        [GUEST_CHANGED] = "EVENT_TYPE_CHMOD",
    };
    autostr struct str text = {0};
    struct json j;
    if (kind != SANDBOX_CHANGE || length < 1 || bytes[0] < GUEST_CREATED ||
        bytes[0] > GUEST_CHANGED)
        return;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_open_object(&j, "filesystem");
    json_bytes(&j, "name", bytes + 1, length - 1);
    json_text(&j, "type", types[(unsigned char)bytes[0]]);
    json_close_object(&j);
    json_close_object(&j);
    if (!text.failed)
        send_frame(exchange, 0, text.data);
}

void e2b_file_watch(struct exchange *exchange)
{
    exchange->piece = add_change;
    call(exchange, SANDBOX_WATCH, answer_watch);
}

/* ---- GET /files: in pieces, the next of which is asked for when the client has read one ---- */

static void read_next(struct exchange *exchange);
static const struct stream_form file_form = {.content_type = "application/octet-stream",
                                             .drained = read_next};

static void add_bytes(struct exchange *exchange, const struct sandbox_answer *answer)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    kept->offset += answer->bytes.length;
    exchange->state = EXCHANGE_ANSWERED;
    if (answer->bytes.length == 0)
        stream_finish(exchange->stream, "", 0);
    else if (!stream_append(exchange->stream, answer->bytes.data, answer->bytes.length))
        stream_abort(exchange->stream);
}

static void answer_bytes(struct exchange *exchange, const struct sandbox_answer *answer)
{
    autostr struct str bytes = {0};
    if (answer->file_size <= answer->bytes.length) {
        str_append_bytes(&bytes, answer->bytes.data, answer->bytes.length);
        answer_text(exchange, MHD_HTTP_OK, file_form.content_type, &bytes);
        return;
    }
    if (!stream_begin(exchange, &file_form, false))
        return;
    add_bytes(exchange, answer);
    exchange->state = EXCHANGE_STREAM; /* the stream is not handed to libmicrohttpd yet */
}

static void read_piece(struct exchange *exchange, sandbox_taker *answered)
{
    const struct e2b_kept *kept = e2b_kept(exchange);
    sandbox_ask(exchange,
                &(struct sandbox_request){.operation = SANDBOX_READ,
                                          .path = kept->path,
                                          .offset = kept->offset,
                                          .length = FILE_PIECE_BYTES},
                answered);
}

static void read_next(struct exchange *exchange)
{
    read_piece(exchange, add_bytes);
}

void e2b_file_read(struct exchange *exchange)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    if (!e2b_check_user(exchange))
        return;
    kept->path = e2b_file_path(exchange, &kept->arena, exchange_parameter(exchange, "path"));
    if (kept->path)
        read_piece(exchange, answer_bytes);
}

/* ---- POST /files: one file after the other ---- */

static const char *part_path(const struct e2b_kept *kept, size_t i)
{
    return kept->parts[i].name; /* was set to the whole path */
}

static void answer_written(struct exchange *exchange)
{
    const struct e2b_kept *kept = e2b_kept(exchange);
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_array(&j, NULL);
    for (size_t i = 0; i < kept->part_count; i++) {
        const char *path = part_path(kept, i), *slash = strrchr(path, '/');
        json_open_object(&j, NULL);
        json_text(&j, "path", path);
        json_text(&j, "name", slash ? slash + 1 : path);
        json_text(&j, "type", "file");
        json_close_object(&j);
    }
    json_close_array(&j);
    answer_json(exchange, MHD_HTTP_OK, &text);
}

static void write_next(struct exchange *exchange);

static void answer_one(struct exchange *exchange, const struct sandbox_answer *answer)
{
    (void)answer;
    write_next(exchange);
}

static void write_next(struct exchange *exchange)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    if (kept->part_at == kept->part_count) {
        answer_written(exchange);
        return;
    }
    const struct multipart *part = &kept->parts[kept->part_at];
    sandbox_ask(exchange,
                &(struct sandbox_request){.operation = SANDBOX_WRITE,
                                          .path = part_path(kept, kept->part_at++),
                                          .bytes = {part->bytes, part->length}},
                answer_one);
    (void)exchange_charge(exchange, kept->body.length); /* sandbox_ask() has released it */
}

/* Gives each part the path where it is stored: `path`, or its file name. */
static bool place_parts(struct exchange *exchange, const char *path)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    size_t count = 0;
    for (size_t i = 0; i < kept->part_count; i++) {
        struct multipart *part = &kept->parts[i];
        if (strcmp(part->name, "file") != 0)
            continue; /* other fields are ignored */
        const char *place = path ? path : part->file_name;
        part->name = *place ? e2b_file_path(exchange, &kept->arena, place) : NULL;
        if (!*place)
            e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST, "a file has no name");
        if (!part->name)
            return false;
        kept->parts[count++] = *part;
    }
    kept->part_count = count;
    if (count == 1 || (count > 0 && !path))
        return true;
    e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST,
               path ? "with a path there has to be one part 'file'" : "there is no part 'file'");
    return false;
}

static bool read_parts(struct exchange *exchange, const char *type)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    char boundary[MULTIPART_BOUNDARY_MAX + 1];
    const char *bytes = kept->body.data ? kept->body.data : "";
    if (type && strncasecmp(type, "application/octet-stream", 24) == 0) {
        kept->parts = arena_alloc(&kept->arena, sizeof *kept->parts);
        if (!kept->parts)
            return false;
        *kept->parts = (struct multipart){"file", "", bytes, kept->body.length};
        kept->part_count = 1;
        return true;
    }
    return type && multipart_boundary(type, boundary) &&
           multipart_read(bytes, kept->body.length, boundary, &kept->arena, &kept->parts,
                          &kept->part_count);
}

void e2b_file_write(struct exchange *exchange)
{
    struct e2b_kept *kept = e2b_kept(exchange);
    const char *type = exchange_header(exchange, "Content-Type");
    const char *encoding = exchange_header(exchange, "Content-Encoding");
    const char *path = exchange_parameter(exchange, "path");
    if (!e2b_check_user(exchange))
        return;
    if (encoding && strcasecmp(encoding, "identity") != 0) {
        e2b_refuse(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "compressed files are not supported");
        return;
    }
    kept->body = exchange->body; /* the parts point into it until the last is written */
    str_init(&exchange->body);
    if (!read_parts(exchange, type))
        e2b_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                   "the body has to be multipart/form-data or application/octet-stream");
    else if (place_parts(exchange, path))
        write_next(exchange);
}
