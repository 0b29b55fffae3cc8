/* SPDX-License-Identifier: MIT */
/* Turns a submission of Judge0 into a request for an execution. */
#include <stdio.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/api/judge0_request.h"
#include "server/api/judge0_text.h"
#include "server/config/config.h"
#include "server/config/runtime.h"
#include "server/executor/jail_check.h"
#include "server/zip.h"

#define KB_PER_MB 1024

struct translation {
    const struct judge0_language *language;
    const struct judge0_submission *submission;
    struct execution_request *out;
    struct judge0_errors *errors;
};

static bool refuse(struct translation *t, enum judge0_field field, const char *why)
{
    judge0_error(t->errors, field, "%s", why);
    return false;
}

/* ---- files ---- */

static bool has_file(const struct execution_request *request, const char *name)
{
    for (size_t i = 0; i < request->file_count; i++)
        if (strcmp(request->files[i].name, name) == 0)
            return true;
    return false;
}

static void add_file(struct execution_request *request, const char *name,
                     struct execution_bytes content)
{
    request->files[request->file_count++] =
        (struct execution_file){.name = name, .content = content};
}

/* Directories are made with their files. A file that is there is kept, as `unzip -n` does; names that
 * leave the directory are left out. */
static bool unpack_one(struct translation *t, const struct zip_entry *entry, size_t *left)
{
    struct execution_request *out = t->out;
    char *name = arena_strndup(&out->arena, entry->name, entry->name_length);
    if (!name)
        return false;
    bool directory = entry->name_length > 0 && entry->name[entry->name_length - 1] == '/';
    bool code =
        t->language->form == JUDGE0_CODE && str_equal(name, t->language->runtime->file_name);
    if (directory || code || strlen(name) != entry->name_length ||
        !execution_file_name_is_valid(name) || has_file(out, name))
        return true;
    if (out->file_count == EXECUTION_FILES_MAX)
        return refuse(t, JUDGE0_ADDITIONAL_FILES, "has too many files");
    if (entry->size > *left || entry->size > EXECUTION_FILE_BYTES_MAX)
        return refuse(t, JUDGE0_ADDITIONAL_FILES, "is too large");
    char *bytes = arena_alloc(&out->arena, entry->size + 1);
    if (!bytes)
        return false;
    if (!zip_extract(entry, bytes))
        return refuse(t, JUDGE0_ADDITIONAL_FILES, "is damaged");
    *left -= entry->size;
    add_file(out, name, (struct execution_bytes){bytes, entry->size});
    return true;
}

static bool unpack(struct translation *t)
{
    const struct execution_bytes *archive = &t->submission->text[JUDGE0_ADDITIONAL_FILES];
    struct zip_reader zip;
    struct zip_entry entry;
    size_t left = (size_t)JUDGE0_EXTRACT_KB << 10;
    int found = 0;
    if (archive->length == 0)
        return true;
    if (!zip_open(archive->data, archive->length, &zip))
        return refuse(t, JUDGE0_ADDITIONAL_FILES, "is not a zip archive");
    while ((found = zip_next(&zip, &entry)) > 0)
        if (!unpack_one(t, &entry, &left))
            return false;
    return found == 0 || refuse(t, JUDGE0_ADDITIONAL_FILES, "is damaged");
}

/* ---- the program ---- */

/* The script `run` of a project, which may have the suffix .sh, is its code. */
static bool set_project(struct execution_request *out)
{
    static const char missing[] = "echo 'run: No such file or directory' >&2\nexit 127\n";
    out->main = "run";
    out->code = (struct execution_bytes){missing, sizeof missing - 1};
    for (size_t i = 0; i < out->file_count; i++) {
        const struct execution_file *file = &out->files[i];
        if (strcmp(file->name, "run") != 0 && strcmp(file->name, "run.sh") != 0)
            continue;
        out->main = file->name;
        if (file->content.length > 0)
            out->code = file->content;
        out->files[i] = out->files[--out->file_count];
        break;
    }
    return out->code.length <= EXECUTION_CODE_MAX;
}

static bool set_program(struct translation *t)
{
    static const char *const files[] = {[JUDGE0_TEXT] = JUDGE0_TEXT_FILE,
                                        [JUDGE0_EXECUTABLE] = JUDGE0_EXECUTABLE_FILE,
                                        [JUDGE0_SQL] = JUDGE0_SQL_FILE};
    static const char *const scripts[] = {[JUDGE0_TEXT] = JUDGE0_TEXT_SCRIPT,
                                          [JUDGE0_EXECUTABLE] = JUDGE0_EXECUTABLE_SCRIPT,
                                          [JUDGE0_SQL] = JUDGE0_SQL_SCRIPT};
    const struct execution_bytes source = t->submission->text[JUDGE0_SOURCE_CODE];
    enum judge0_form form = t->language->form;
    struct execution_request *out = t->out;
    autostr struct str script = {0};
    if (source.length > (form == JUDGE0_CODE ? EXECUTION_CODE_MAX : EXECUTION_FILE_BYTES_MAX))
        return refuse(t, JUDGE0_SOURCE_CODE, "is too long");
    out->code = source;
    if (form != JUDGE0_CODE && form != JUDGE0_PROJECT)
        add_file(out, files[form], source);
    if (!unpack(t))
        return false;
    if (form == JUDGE0_CODE)
        return true;
    if (form == JUDGE0_PROJECT)
        return set_project(out) ||
               refuse(t, JUDGE0_ADDITIONAL_FILES, "has a script that is too long");
    str_concat(&script, scripts[form], "\n");
    out->code.length = script.length;
    out->code.data = script.failed ? NULL : arena_strdup(&out->arena, script.data);
    return out->code.data != NULL;
}

static bool split(struct translation *t, enum judge0_field field, const char ***ret_words,
                  size_t *ret_count)
{
    const struct execution_bytes *text = &t->submission->text[field];
    return judge0_words(text->data ? text->data : "", text->length, &t->out->arena,
                        EXECUTION_ARGS_MAX, ret_words, ret_count) ||
           refuse(t, field, "has too many words");
}

static bool set_words(struct translation *t)
{
    return split(t, JUDGE0_ARGUMENTS, &t->out->args, &t->out->arg_count) &&
           split(t, JUDGE0_COMPILER_OPTIONS, &t->out->compile_args, &t->out->compile_arg_count);
}

/* ---- limits ---- */

static uint64_t milliseconds(const struct runtime *runtime, int64_t micros)
{
    uint64_t value = ((uint64_t)micros + 999) / 1000;
    return value < runtime->max_timeout_ms ? value : runtime->max_timeout_ms;
}

/* A limit that the client has not given is the runtime's, and one beyond the runtime's is its maximum:
 * such a submission can use a jail that was prepared. */
static void set_limits(struct translation *t)
{
    const struct judge0_submission *submission = t->submission;
    const struct runtime *runtime = t->language->runtime;
    const struct {
        enum judge0_field field;
        enum execution_limit limit;
        int64_t unit, least;
    } rows[] = {
        {JUDGE0_MEMORY_LIMIT, EXECUTION_MEMORY_MB, KB_PER_MB, EXECUTION_MEMORY_MB_MIN},
        {JUDGE0_MAX_PROCESSES, EXECUTION_PIDS, 1, 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int64_t value = submission->number[rows[i].field];
        int64_t most = (int64_t)runtime->max_limits[rows[i].limit];
        value = (value + rows[i].unit - 1) / rows[i].unit;
        value = value < rows[i].least ? rows[i].least : value > most ? most : value;
        if (submission->given[rows[i].field])
            t->out->limits[rows[i].limit] = (uint64_t)value;
    }
    int64_t cpu = submission->number[JUDGE0_CPU_TIME_LIMIT];
    t->out->timeout_ms = milliseconds(runtime, submission->number[JUDGE0_WALL_TIME_LIMIT]);
    if (submission->given[JUDGE0_CPU_TIME_LIMIT] && cpu > 0)
        t->out->cpu_ms = milliseconds(runtime, cpu + submission->number[JUDGE0_CPU_EXTRA_TIME]);
    t->out->output_bytes = (uint64_t)submission->number[JUDGE0_MAX_FILE_SIZE] << 10;
    t->out->compile.timeout_ms = milliseconds(runtime, judge0_rules[JUDGE0_WALL_TIME_LIMIT].most);
    t->out->compile.cpu_ms = milliseconds(runtime, judge0_rules[JUDGE0_CPU_TIME_LIMIT].most);
    if (submission->given[JUDGE0_STACK_LIMIT] || runtime->parking == PARKING_NONE)
        t->out->stack_kb = (uint64_t)submission->number[JUDGE0_STACK_LIMIT];
    if (submission->given[JUDGE0_MAX_FILE_SIZE])
        t->out->file_kb = (uint64_t)submission->number[JUDGE0_MAX_FILE_SIZE];
    t->out->ordered = true;
    t->out->alone = true;
    t->out->network = submission->number[JUDGE0_ENABLE_NETWORK];
}

/* ---- the whole ---- */

/* Fields of the executor's checks. */
static enum judge0_field field_of(const char *field)
{
    return str_equal(field, "files")   ? JUDGE0_ADDITIONAL_FILES
           : str_equal(field, "stdin") ? JUDGE0_STDIN
           : str_equal(field, "args")  ? JUDGE0_ARGUMENTS
                                       : JUDGE0_SOURCE_CODE;
}

bool judge0_translate(const struct server_config *config, const struct judge0_language *language,
                      const struct judge0_submission *submission, struct execution_request *ret,
                      struct judge0_errors *errors)
{
    struct translation t = {language, submission, ret, errors};
    const struct execution_bytes *input = &submission->text[JUDGE0_STDIN];
    struct brig_error error = {0};
    const char *field = "";
    ret->language = language->runtime->name;
    ret->callback_secret = "";
    ret->callback_url = submission->text[JUDGE0_CALLBACK_URL].data;
    if (!ret->callback_url)
        ret->callback_url = "";
    ret->queued = true;
    ret->stdin_bytes = (struct execution_bytes){input->data ? input->data : "", input->length};
    ret->files = arena_alloc(&ret->arena, EXECUTION_FILES_MAX * sizeof *ret->files);
    if (!ret->files)
        return false;
    if (input->length > EXECUTION_STDIN_MAX)
        return refuse(&t, JUDGE0_STDIN, "is too long");
    set_limits(&t);
    if (!set_program(&t) || !set_words(&t))
        return false;
    if (jail_check_request(config, language->runtime, ret, &field, &error) == 0)
        return true;
    return refuse(&t, field_of(field), error.message);
}
