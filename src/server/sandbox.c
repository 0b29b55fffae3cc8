/* SPDX-License-Identifier: MIT */
/* The encoding of requests about sandboxes and of their answers. Encoder and decoder list the
 * fields in the same order. */
#include "server/sandbox.h"

#include <string.h>

#include <brig/brig.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/wire.h"
#include "server/execution_wire.h"

#define VERSION 1 /* increment when fields or their order change */
#define WORD_MAX 128
#define LINE_BYTES 4096
#define UNENFORCED_MAX 64
#define RESULT_MAX ((size_t)16 << 20)
#define CWD_MAX SANDBOX_PATH_MAX

void sandbox_request_done(struct sandbox_request *request)
{
    arena_done(&request->arena);
    *request = (struct sandbox_request){0};
}

void sandbox_answer_done(struct sandbox_answer *answer)
{
    arena_done(&answer->arena);
    *answer = (struct sandbox_answer){0};
}

/* ---- parts ---- */

/* The array is ended by NULL. */
static const char **get_texts(struct wire_reader *in, struct arena *arena, size_t most,
                              size_t length_max, size_t *ret_count)
{
    size_t count = wire_get_count(in, most);
    const char **texts = arena_alloc(arena, (count + 1) * sizeof *texts);
    in->failed |= !texts;
    for (size_t i = 0; texts && i < count; i++)
        texts[i] = wire_get_text(in, length_max);
    *ret_count = texts ? count : 0;
    return texts;
}

/* ---- requests ---- */

int sandbox_request_encode(const struct sandbox_request *request, struct str *out,
                           struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_u64(out, request->operation);
    wire_put_text(out, request->request_id);
    wire_put_text(out, request->client);
    wire_put_text(out, request->domain);
    wire_put_text(out, request->id);
    wire_put_u64(out, request->command);
    wire_put_text(out, request->language);
    wire_put_text(out, request->name);
    wire_put_u64(out, request->timeout_ms);
    wire_put_u64(out, request->cpu_ms);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        wire_put_u64(out, request->limits[i]);
    execution_put_pairs(out, request->env, request->env_count);
    execution_put_pairs(out, request->metadata, request->metadata_count);
    wire_put_bool(out, request->network);
    execution_put_texts(out, request->allow, request->allow_count);
    execution_put_texts(out, request->args, request->arg_count);
    wire_put_text(out, request->cwd);
    wire_put_bytes(out, request->bytes.data, request->bytes.length);
    wire_put_bool(out, request->keep_input);
    wire_put_bool(out, request->pty);
    wire_put_u64(out, request->rows);
    wire_put_u64(out, request->columns);
    wire_put_u64(out, request->wait);
    wire_put_u64(out, request->signal);
    wire_put_u64(out, request->states);
    wire_put_text(out, request->path);
    wire_put_text(out, request->target);
    wire_put_u64(out, request->offset);
    wire_put_u64(out, request->length);
    wire_put_u64(out, request->depth);
    wire_put_u64(out, request->mode);
    wire_put_bool(out, request->append);
    wire_put_bool(out, request->recursive);
    wire_put_text(out, request->token ? request->token : "");
    wire_put_text(out, request->home);
    wire_put_bool(out, request->pauses);
    wire_put_bool(out, request->tied);
    wire_put_text(out, request->image);
    wire_put_text(out, request->idempotency_key);
    wire_put_text(out, request->body_sha256);
    return execution_encoded(out, err);
}

static void get_command(struct wire_reader *in, struct sandbox_request *ret)
{
    ret->args =
        get_texts(in, &ret->arena, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX, &ret->arg_count);
    ret->cwd = wire_get_text_or_null(in, CWD_MAX);
    ret->bytes = execution_get_bytes(in, SANDBOX_FILE_MAX);
    ret->keep_input = wire_get_bool(in);
    ret->pty = wire_get_bool(in);
    ret->rows = wire_get_u64(in, SANDBOX_SIZE_MAX);
    ret->columns = wire_get_u64(in, SANDBOX_SIZE_MAX);
    ret->wait = (enum sandbox_wait)wire_get_u64(in, SANDBOX_FOLLOW);
    ret->signal = wire_get_u64(in, 64);
}

static void get_file(struct wire_reader *in, struct sandbox_request *ret)
{
    ret->states = (unsigned)wire_get_u64(in, (1U << SANDBOX_STATES_) - 1);
    ret->path = wire_get_text_or_null(in, SANDBOX_PATH_MAX);
    ret->target = wire_get_text_or_null(in, SANDBOX_PATH_MAX);
    ret->offset = wire_get_u64(in, INT64_MAX);
    ret->length = wire_get_u64(in, SANDBOX_FILE_MAX);
    ret->depth = wire_get_u64(in, SANDBOX_DEPTH_MAX);
    ret->mode = wire_get_u64(in, 0777);
    ret->append = wire_get_bool(in);
    ret->recursive = wire_get_bool(in);
    ret->token = wire_get_text(in, SANDBOX_TOKEN_LENGTH);
    ret->home = wire_get_text_or_null(in, EXECUTION_NAME_MAX);
    ret->pauses = wire_get_bool(in);
    ret->tied = wire_get_bool(in);
    ret->image = wire_get_text_or_null(in, EXECUTION_NAME_MAX);
    ret->idempotency_key = wire_get_text_or_null(in, EXECUTION_IDEMPOTENCY_MAX);
    ret->body_sha256 = wire_get_text_or_null(in, SHA256_HEX_LENGTH);
}

int sandbox_request_decode(const void *bytes, size_t length, struct sandbox_request *ret,
                           struct brig_error *err)
{
    *ret = (struct sandbox_request){0};
    const char *copy = arena_copy(&ret->arena, bytes, length);
    struct wire_reader in = wire_open(copy ? copy : "", copy ? length : 0, VERSION);
    ret->operation = (enum sandbox_operation)wire_get_u64(&in, SANDBOX_OPERATIONS_ - 1);
    ret->request_id = wire_get_text(&in, WORD_MAX);
    ret->client = wire_get_text(&in, WORD_MAX);
    ret->domain = wire_get_text(&in, WORD_MAX);
    ret->id =
        execution_get_id(&in, ret->operation == SANDBOX_CREATE || ret->operation == SANDBOX_LIST);
    ret->command = wire_get_u64(&in, UINT64_MAX);
    ret->language = wire_get_text_or_null(&in, EXECUTION_NAME_MAX);
    ret->name = wire_get_text(&in, SANDBOX_NAME_MAX);
    ret->timeout_ms = wire_get_u64(&in, INT64_MAX);
    ret->cpu_ms = wire_get_u64(&in, INT64_MAX / 1000);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        ret->limits[i] = wire_get_u64(&in, INT64_MAX);
    ret->env = execution_get_pairs(&in, &ret->arena, EXECUTION_ENV_MAX, EXECUTION_VALUE_MAX,
                                   &ret->env_count);
    ret->metadata = execution_get_pairs(&in, &ret->arena, SANDBOX_METADATA_MAX,
                                        SANDBOX_METADATA_BYTES, &ret->metadata_count);
    ret->network = wire_get_bool(&in);
    ret->allow =
        get_texts(&in, &ret->arena, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX, &ret->allow_count);
    get_command(&in, ret);
    get_file(&in, ret);
    if (wire_done(&in))
        return 0;
    sandbox_request_done(ret);
    return brig_fail(err, BRIG_E_INVALID, 0, "a request about a sandbox is malformed");
}

/* ---- answers ---- */

static void put_info(struct str *out, const struct sandbox_info *info)
{
    wire_put_text(out, info->id);
    wire_put_text(out, info->name);
    wire_put_text(out, info->language);
    wire_put_u64(out, info->state);
    wire_put_i64(out, info->created_ns);
    wire_put_i64(out, info->deadline_ns);
    wire_put_u64(out, info->left_ms);
    execution_put_pairs(out, info->metadata, info->metadata_count);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        wire_put_u64(out, info->limits[i]);
    wire_put_bool(out, info->network);
    execution_put_texts(out, info->allow, info->allow_count);
    wire_put_u64(out, info->commands);
    wire_put_u64(out, info->memory_bytes);
    wire_put_u64(out, info->memory_peak_bytes);
    wire_put_u64(out, info->pids);
    wire_put_u64(out, info->cpu_us);
    wire_put_u64(out, info->oom_kills);
    execution_put_texts(out, info->unenforced, info->unenforced_count);
    wire_put_text(out, info->image);
    wire_put_text(out, info->token ? info->token : "");
    wire_put_bool(out, info->pauses);
}

static void get_info(struct wire_reader *in, struct arena *arena, struct sandbox_info *ret)
{
    ret->id = execution_get_id(in, false);
    ret->name = wire_get_text(in, SANDBOX_NAME_MAX);
    ret->language = wire_get_text(in, EXECUTION_NAME_MAX);
    ret->state = (enum sandbox_state)wire_get_u64(in, SANDBOX_STATES_ - 1);
    ret->created_ns = wire_get_i64(in, INT64_MIN, INT64_MAX);
    ret->deadline_ns = wire_get_i64(in, INT64_MIN, INT64_MAX);
    ret->left_ms = wire_get_u64(in, UINT64_MAX);
    ret->metadata = execution_get_pairs(in, arena, SANDBOX_METADATA_MAX, SANDBOX_METADATA_BYTES,
                                        &ret->metadata_count);
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++)
        ret->limits[i] = wire_get_u64(in, UINT64_MAX);
    ret->network = wire_get_bool(in);
    ret->allow = get_texts(in, arena, EXECUTION_ALLOW_MAX, EXECUTION_NAME_MAX, &ret->allow_count);
    ret->commands = wire_get_u64(in, UINT64_MAX);
    ret->memory_bytes = wire_get_u64(in, UINT64_MAX);
    ret->memory_peak_bytes = wire_get_u64(in, UINT64_MAX);
    ret->pids = wire_get_u64(in, UINT64_MAX);
    ret->cpu_us = wire_get_u64(in, UINT64_MAX);
    ret->oom_kills = wire_get_u64(in, UINT64_MAX);
    ret->unenforced = get_texts(in, arena, UNENFORCED_MAX, LINE_BYTES, &ret->unenforced_count);
    ret->image = wire_get_text_or_null(in, EXECUTION_NAME_MAX);
    ret->token = wire_get_text(in, SANDBOX_TOKEN_LENGTH);
    ret->pauses = wire_get_bool(in);
}

static void put_command(struct str *out, const struct sandbox_command *command)
{
    wire_put_u64(out, command->number);
    wire_put_text(out, command->id);
    execution_put_texts(out, command->args, command->arg_count);
    wire_put_text(out, command->cwd);
    wire_put_bool(out, command->pty);
    wire_put_i64(out, command->started_ns);
    wire_put_bytes(out, command->result.data, command->result.length);
}

static void get_one_command(struct wire_reader *in, struct arena *arena,
                            struct sandbox_command *ret)
{
    ret->number = wire_get_u64(in, UINT64_MAX);
    ret->id = execution_get_id(in, false);
    ret->args = get_texts(in, arena, EXECUTION_ARGS_MAX, EXECUTION_VALUE_MAX, &ret->arg_count);
    ret->cwd = wire_get_text_or_null(in, CWD_MAX);
    ret->pty = wire_get_bool(in);
    ret->started_ns = wire_get_i64(in, INT64_MIN, INT64_MAX);
    ret->result = execution_get_bytes(in, RESULT_MAX);
}

static void put_entry(struct str *out, const struct sandbox_entry *entry)
{
    wire_put_text(out, entry->path);
    wire_put_text(out, entry->target);
    wire_put_u64(out, entry->kind);
    wire_put_u64(out, entry->mode);
    wire_put_u64(out, entry->uid);
    wire_put_u64(out, entry->gid);
    wire_put_u64(out, entry->size);
    wire_put_i64(out, entry->modified_ns);
}

static void get_entry(struct wire_reader *in, struct sandbox_entry *ret)
{
    ret->path = wire_get_text(in, SANDBOX_PATH_MAX);
    ret->target = wire_get_text_or_null(in, SANDBOX_PATH_MAX);
    ret->kind = (enum sandbox_kind)wire_get_u64(in, SANDBOX_OTHER);
    ret->mode = wire_get_u64(in, 07777);
    ret->uid = wire_get_u64(in, UINT32_MAX);
    ret->gid = wire_get_u64(in, UINT32_MAX);
    ret->size = wire_get_u64(in, UINT64_MAX);
    ret->modified_ns = wire_get_i64(in, INT64_MIN, INT64_MAX);
}

static void put_context(struct str *out, const struct sandbox_context *context)
{
    wire_put_u64(out, context->number);
    wire_put_text(out, context->language);
    wire_put_text(out, context->cwd);
    wire_put_bool(out, context->is_default);
    wire_put_u64(out, context->runs);
    wire_put_u64(out, context->count);
    wire_put_i64(out, context->created_ns);
}

static void get_context(struct wire_reader *in, struct sandbox_context *ret)
{
    ret->number = wire_get_u64(in, UINT64_MAX);
    ret->language = wire_get_text(in, EXECUTION_NAME_MAX);
    ret->cwd = wire_get_text_or_null(in, CWD_MAX);
    ret->is_default = wire_get_bool(in);
    ret->runs = wire_get_u64(in, UINT64_MAX);
    ret->count = wire_get_u64(in, UINT64_MAX);
    ret->created_ns = wire_get_i64(in, INT64_MIN, INT64_MAX);
}

int sandbox_answer_encode(const struct sandbox_answer *answer, struct str *out,
                          struct brig_error *err)
{
    wire_put_version(out, VERSION);
    wire_put_u64(out, answer->fault);
    wire_put_text(out, answer->field ? answer->field : "");
    wire_put_text(out, answer->message ? answer->message : "");
    wire_put_bool(out, answer->more);
    wire_put_u64(out, answer->sandbox_count);
    for (size_t i = 0; i < answer->sandbox_count; i++)
        put_info(out, &answer->sandboxes[i]);
    wire_put_u64(out, answer->command_count);
    for (size_t i = 0; i < answer->command_count; i++)
        put_command(out, &answer->commands[i]);
    wire_put_u64(out, answer->entry_count);
    for (size_t i = 0; i < answer->entry_count; i++)
        put_entry(out, &answer->entries[i]);
    wire_put_bool(out, answer->incomplete);
    wire_put_bytes(out, answer->bytes.data, answer->bytes.length);
    wire_put_u64(out, answer->file_size);
    wire_put_bool(out, answer->replayed);
    wire_put_bool(out, answer->ending);
    wire_put_u64(out, answer->context_count);
    for (size_t i = 0; i < answer->context_count; i++)
        put_context(out, &answer->contexts[i]);
    return execution_encoded(out, err);
}

int sandbox_answer_decode(const void *bytes, size_t length, struct sandbox_answer *ret,
                          struct brig_error *err)
{
    struct wire_reader in = wire_open(bytes, length, VERSION);
    struct sandbox_answer answer = {0};
    struct arena *arena = &answer.arena;
    answer.fault = (enum sandbox_fault)wire_get_u64(&in, SANDBOX_FAULTS_ - 1);
    answer.field = wire_get_text(&in, WORD_MAX);
    answer.message = wire_get_text(&in, LINE_BYTES);
    answer.more = wire_get_bool(&in);
    answer.sandboxes = wire_get_array(&in, arena, SANDBOX_LIST_MAX, sizeof *answer.sandboxes,
                                      &answer.sandbox_count);
    for (size_t i = 0; i < answer.sandbox_count; i++)
        get_info(&in, arena, &answer.sandboxes[i]);
    answer.commands = wire_get_array(&in, arena, SANDBOX_COMMANDS_MAX, sizeof *answer.commands,
                                     &answer.command_count);
    for (size_t i = 0; i < answer.command_count; i++)
        get_one_command(&in, arena, &answer.commands[i]);
    answer.entries =
        wire_get_array(&in, arena, SANDBOX_LIST_MAX, sizeof *answer.entries, &answer.entry_count);
    for (size_t i = 0; i < answer.entry_count; i++)
        get_entry(&in, &answer.entries[i]);
    answer.incomplete = wire_get_bool(&in);
    answer.bytes = execution_get_bytes(&in, SANDBOX_FILE_MAX);
    answer.file_size = wire_get_u64(&in, UINT64_MAX);
    answer.replayed = wire_get_bool(&in);
    answer.ending = wire_get_bool(&in);
    answer.contexts = wire_get_array(&in, arena, SANDBOX_CONTEXTS_MAX, sizeof *answer.contexts,
                                     &answer.context_count);
    for (size_t i = 0; i < answer.context_count; i++)
        get_context(&in, &answer.contexts[i]);
    if (wire_done(&in)) {
        *ret = answer;
        return 0;
    }
    sandbox_answer_done(&answer);
    return brig_fail(err, BRIG_E_INVALID, 0, "an answer about a sandbox is malformed");
}

void sandbox_tidy_path(const char *path, char ret_path[SANDBOX_PATH_MAX + 1])
{
    bool absolute = *path == '/';
    size_t used = 0, length;
    if (absolute)
        ret_path[used++] = '/';
    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        length = strcspn(path, "/");
        bool dot = length == 1 && *path == '.';
        if (!dot && used + (used > absolute) + length > SANDBOX_PATH_MAX)
            break; /* the caller has checked the length */
        if (!dot && used > absolute)
            ret_path[used++] = '/';
        if (!dot)
            memcpy(ret_path + used, path, length);
        used += dot ? 0 : length;
        path += length;
    }
    if (used == 0)
        ret_path[used++] = '.';
    ret_path[used] = '\0';
}
