/* SPDX-License-Identifier: MIT */
/* Reads and checks submissions of Judge0. The error texts are those of Rails. */
#include "server/api/judge0_request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "base/wire.h"
#include "server/api/judge0_text.h"
#include "server/config/config.h"

#define SECONDS(n) ((int64_t)(n)*JUDGE0_MICROS)
#define KB_PER_MB 1024
#define NOTE_VERSION 1

const struct judge0_rule judge0_rules[JUDGE0_REQUEST_FIELDS_] = {
    [JUDGE0_SOURCE_CODE] = {"source_code", JUDGE0_ENCODED, .doc = "The program."},
    [JUDGE0_ADDITIONAL_FILES] = {"additional_files", JUDGE0_BINARY,
                                 .doc = "A zip archive in base64, unpacked beside the program."},
    [JUDGE0_LANGUAGE_ID] = {"language_id", JUDGE0_INTEGER, .doc = "A number of `/languages`."},
    [JUDGE0_NUMBER_OF_RUNS] = {"number_of_runs", JUDGE0_INTEGER, true, 0, 1, 20,
                               .doc = "Checked; the program runs once."},
    [JUDGE0_CPU_TIME_LIMIT] = {"cpu_time_limit", JUDGE0_DECIMAL, false, 0, SECONDS(5), SECONDS(15),
                               .doc = "CPU time in seconds."},
    [JUDGE0_CPU_EXTRA_TIME] = {"cpu_extra_time", JUDGE0_DECIMAL, false, 0, SECONDS(1), SECONDS(5),
                               .doc = "Checked; the program is ended at cpu_time_limit."},
    [JUDGE0_WALL_TIME_LIMIT] = {"wall_time_limit", JUDGE0_DECIMAL, false, SECONDS(1), SECONDS(10),
                                SECONDS(20), .doc = "Wall clock in seconds."},
    [JUDGE0_MEMORY_LIMIT] = {"memory_limit", JUDGE0_INTEGER, false, 2048, 128000, 512000,
                             .doc = "KiB, of all processes together."},
    [JUDGE0_STACK_LIMIT] =
        {"stack_limit", JUDGE0_INTEGER, false, 0, 64000, 128000,
         .doc = "KiB of the stack, which is part of the memory. 0: as for other runs."},
    [JUDGE0_MAX_PROCESSES] = {"max_processes_and_or_threads", JUDGE0_INTEGER, true, 0, 60, 120,
                              .doc = "Processes and threads at a time."},
    [JUDGE0_PER_PROCESS_TIME] = {"enable_per_process_and_thread_time_limit", JUDGE0_BOOLEAN,
                                 .doc = "Accepted; the limit is for all processes together."},
    [JUDGE0_PER_PROCESS_MEMORY] = {"enable_per_process_and_thread_memory_limit", JUDGE0_BOOLEAN,
                                   .doc = "Accepted; the limit is for all processes together."},
    [JUDGE0_MAX_FILE_SIZE] =
        {"max_file_size", JUDGE0_INTEGER, false, 0, 1024, 4096,
         .doc =
             "KiB of each output, and if it is given of each file; more is status 8. 0: no limit."},
    [JUDGE0_COMPILER_OPTIONS] = {"compiler_options", JUDGE0_STRING,
                                 .doc = "Words for the compiler, at most 512 characters."},
    [JUDGE0_ARGUMENTS] = {"command_line_arguments", JUDGE0_STRING,
                          .doc = "Words for the program, at most 512 characters."},
    [JUDGE0_STDIN] = {"stdin", JUDGE0_ENCODED, .doc = "The standard input."},
    [JUDGE0_EXPECTED_OUTPUT] = {"expected_output", JUDGE0_ENCODED,
                                .doc = "What the output is compared with."},
    [JUDGE0_REDIRECT_STDERR] = {"redirect_stderr_to_stdout", JUDGE0_BOOLEAN,
                                .doc = "Whether both outputs are one."},
    [JUDGE0_CALLBACK_URL] = {"callback_url", JUDGE0_STRING,
                             .doc = "Is sent the submission with PUT when it has ended."},
    [JUDGE0_ENABLE_NETWORK] = {"enable_network", JUDGE0_BOOLEAN,
                               .doc = "The network, if the operator permits it."},
};

static bool is_number(enum judge0_kind kind)
{
    return kind == JUDGE0_INTEGER || kind == JUDGE0_DECIMAL;
}

static bool is_text(enum judge0_kind kind)
{
    return kind == JUDGE0_STRING || kind == JUDGE0_ENCODED || kind == JUDGE0_BINARY;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void judge0_bounds(const struct server_config *config, struct judge0_bounds *ret_bounds)
{
    int64_t *most = ret_bounds->most, *initial = ret_bounds->initial;
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++) {
        most[i] = judge0_rules[i].most;
        initial[i] = judge0_rules[i].initial;
    }
    int64_t wall = (int64_t)config->sandbox.max_timeout_ms * 1000;
    int64_t memory = (int64_t)config->sandbox.max_limits[EXECUTION_MEMORY_MB] * KB_PER_MB;
    /* Without a value the runtime's own is used. */
    initial[JUDGE0_MEMORY_LIMIT] = (int64_t)config->sandbox.limits[EXECUTION_MEMORY_MB] * KB_PER_MB;
    initial[JUDGE0_MAX_PROCESSES] = (int64_t)config->sandbox.limits[EXECUTION_PIDS];
    most[JUDGE0_WALL_TIME_LIMIT] = lesser(most[JUDGE0_WALL_TIME_LIMIT], wall);
    most[JUDGE0_MEMORY_LIMIT] = lesser(most[JUDGE0_MEMORY_LIMIT], memory);
    most[JUDGE0_MAX_PROCESSES] =
        lesser(most[JUDGE0_MAX_PROCESSES], (int64_t)config->sandbox.max_limits[EXECUTION_PIDS]);
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++)
        if (judge0_rules[i].most)
            initial[i] = lesser(initial[i], most[i]);
}

void judge0_submission_done(struct judge0_submission *submission)
{
    arena_done(&submission->arena);
    *submission = (struct judge0_submission){0};
}

/* ---- errors ---- */

void judge0_error(struct judge0_errors *errors, enum judge0_field field, const char *format, ...)
{
    va_list args;
    if (errors->count == JUDGE0_ERRORS_MAX)
        return;
    va_start(args, format);
    errors->list[errors->count].field = field;
    (void)vsnprintf(errors->list[errors->count].text, JUDGE0_ERROR_MAX, format, args);
    va_end(args);
    errors->count++;
}

void judge0_errors_write(const struct judge0_errors *errors, struct json *j)
{
    json_open_object(j, NULL);
    for (size_t field = 0; field < JUDGE0_REQUEST_FIELDS_; field++) {
        bool begun = false;
        for (size_t i = 0; i < errors->count; i++) {
            if (errors->list[i].field != field)
                continue;
            if (!begun)
                json_open_array(j, judge0_rules[field].name);
            begun = true;
            json_text(j, NULL, errors->list[i].text);
        }
        if (begun)
            json_close_array(j);
    }
    json_close_object(j);
}

/* ---- reading ---- */

struct reader {
    const struct judge0_bounds *bounds;
    bool base64;
    struct judge0_submission *out;
    struct judge0_errors *errors;
};

/* A scalar as text, as Rails makes it of numbers; NULL for null and for what is none. */
static const char *scalar_text(const json_t *value, char buffer[32], size_t *ret_length)
{
    if (json_is_string(value)) {
        *ret_length = json_string_length(value);
        return json_string_value(value);
    }
    if (json_is_integer(value))
        (void)snprintf(buffer, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        (void)snprintf(buffer, 32, "%.15g", json_real_value(value));
    else if (json_is_boolean(value))
        (void)snprintf(buffer, 32, "%s", json_is_true(value) ? "true" : "false");
    else
        return NULL;
    *ret_length = strlen(buffer);
    return buffer;
}

static bool read_text(struct reader *reader, size_t field, const json_t *value)
{
    char buffer[32];
    size_t length = 0;
    const char *text = scalar_text(value, buffer, &length);
    enum judge0_kind kind = judge0_rules[field].kind;
    if (!text)
        return true;
    char *copy = arena_alloc(&reader->out->arena, length + 1);
    if (!copy)
        return false;
    memcpy(copy, text, length);
    if (kind == JUDGE0_BINARY || (kind == JUDGE0_ENCODED && reader->base64))
        length = judge0_base64_decode(copy, length, copy);
    copy[length] = '\0';
    reader->out->text[field] = (struct execution_bytes){copy, length};
    return true;
}

/* Rails 5 takes these as false, and the empty text as null. */
static void read_boolean(struct reader *reader, size_t field, const json_t *value)
{
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "off", "OFF"};
    char buffer[32];
    size_t length = 0;
    const char *text = scalar_text(value, buffer, &length);
    if (!text || length == 0)
        return;
    reader->out->given[field] = true;
    reader->out->number[field] = 1;
    for (size_t i = 0; i < ARRAY_LENGTH(no); i++)
        if (strcmp(text, no[i]) == 0)
            reader->out->number[field] = 0;
}

static void read_number(struct reader *reader, size_t field, const json_t *value)
{
    char buffer[32], *end = NULL;
    size_t length = 0;
    const char *text = scalar_text(value, buffer, &length);
    bool decimal = judge0_rules[field].kind == JUDGE0_DECIMAL;
    if (!text || length == 0)
        return; /* the default */
    double number = strtod(text, &end);
    bool plain = strspn(text, "+-.0123456789eE \t\n") == length && end != text &&
                 strspn(end, " \t\n") == strlen(end) && isfinite(number);
    reader->out->given[field] = true;
    if (!plain && field == JUDGE0_LANGUAGE_ID) {
        reader->out->number[field] = strtol(text, NULL, 10);
        return;
    }
    if (!plain) {
        judge0_error(reader->errors, (enum judge0_field)field, "is not a number");
        reader->out->number[field] = judge0_rules[field].initial;
        return;
    }
    number *= decimal ? JUDGE0_MICROS : 1;
    number = number > 1e15 ? 1e15 : number < -1e15 ? -1e15 : number;
    reader->out->number[field] = (int64_t)(number + (!decimal ? 0 : number < 0 ? -0.5 : 0.5));
}

bool judge0_read(const json_t *object, bool base64, const struct judge0_bounds *bounds,
                 struct judge0_submission *ret_submission, struct judge0_errors *errors)
{
    struct reader reader = {bounds, base64, ret_submission, errors};
    *ret_submission = (struct judge0_submission){0};
    *errors = (struct judge0_errors){0};
    for (size_t field = 0; field < JUDGE0_REQUEST_FIELDS_; field++) {
        const struct judge0_rule *rule = &judge0_rules[field];
        const json_t *value = json_object_get(object, rule->name);
        ret_submission->number[field] = bounds->initial[field];
        if (rule->kind == JUDGE0_BOOLEAN)
            read_boolean(&reader, field, value);
        else if (is_number(rule->kind))
            read_number(&reader, field, value);
        else if (!read_text(&reader, field, value))
            return false;
    }
    return true;
}

/* ---- checking ---- */

static bool has_error(const struct judge0_errors *errors, size_t field)
{
    for (size_t i = 0; i < errors->count; i++)
        if (errors->list[i].field == field)
            return true;
    return false;
}

/* "15.0" for a decimal, as Ruby prints it. */
static void print_bound(size_t field, int64_t value, char text[32])
{
    if (judge0_rules[field].kind != JUDGE0_DECIMAL)
        (void)snprintf(text, 32, "%lld", (long long)value);
    else
        (void)snprintf(text, 32, "%.15g%s", (double)value / JUDGE0_MICROS,
                       value % JUDGE0_MICROS == 0 ? ".0" : "");
}

static void check_number(const struct judge0_bounds *bounds, size_t field, int64_t value,
                         struct judge0_errors *errors)
{
    const struct judge0_rule *rule = &judge0_rules[field];
    enum judge0_field named = (enum judge0_field)field;
    char text[32];
    if (rule->above && value <= rule->min)
        judge0_error(errors, named, "must be greater than %lld", (long long)rule->min);
    if (!rule->above && value < rule->min)
        judge0_error(
            errors, named, "must be greater than or equal to %lld",
            (long long)(rule->kind == JUDGE0_DECIMAL ? rule->min / JUDGE0_MICROS : rule->min));
    print_bound(field, bounds->most[field], text);
    if (value > bounds->most[field])
        judge0_error(errors, named, "must be less than or equal to %s", text);
}

/* As Ruby's blank? */
static bool is_blank(const struct execution_bytes *text)
{
    for (size_t i = 0; i < text->length; i++)
        if (!strchr(" \t\n\v\f\r", text->data[i]) || !text->data[i])
            return false;
    return true;
}

static size_t characters(const struct execution_bytes *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->length; i++)
        count += ((unsigned char)text->data[i] & 0xc0) != 0x80;
    return count;
}

static void check_language(const struct judge0_language *language, bool found,
                           const struct judge0_submission *submission, struct judge0_errors *errors)
{
    char id[24] = "";
    if (submission->given[JUDGE0_LANGUAGE_ID])
        (void)snprintf(id, sizeof id, "%lld", (long long)submission->number[JUDGE0_LANGUAGE_ID]);
    else
        judge0_error(errors, JUDGE0_LANGUAGE_ID, "can't be blank");
    if (!found)
        judge0_error(errors, JUDGE0_LANGUAGE_ID, "language with id %s doesn't exist", id);
    else if (!language->runtime)
        judge0_error(errors, JUDGE0_LANGUAGE_ID,
                     "language with id %s is archived and cannot be used anymore", id);
}

static void check_texts(const struct judge0_language *language, bool found,
                        const struct judge0_submission *submission, struct judge0_errors *errors)
{
    const struct execution_bytes *text = submission->text;
    bool project = found && language->form == JUDGE0_PROJECT;
    if (project && !is_blank(&text[JUDGE0_SOURCE_CODE]))
        judge0_error(errors, JUDGE0_SOURCE_CODE, "must be blank");
    if (!project && is_blank(&text[JUDGE0_SOURCE_CODE]))
        judge0_error(errors, JUDGE0_SOURCE_CODE, "can't be blank");
    if (project && is_blank(&text[JUDGE0_ADDITIONAL_FILES]))
        judge0_error(errors, JUDGE0_ADDITIONAL_FILES, "can't be blank");
    for (size_t i = JUDGE0_COMPILER_OPTIONS; i <= JUDGE0_ARGUMENTS; i++)
        if (characters(&text[i]) > JUDGE0_OPTIONS_MAX)
            judge0_error(errors, (enum judge0_field)i, "is too long (maximum is %d characters)",
                         JUDGE0_OPTIONS_MAX);
    if (!is_blank(&text[JUDGE0_COMPILER_OPTIONS]) && found && language->runtime &&
        !judge0_language_is_compiled(language))
        judge0_error(errors, JUDGE0_COMPILER_OPTIONS,
                     "setting compiler options is only allowed for compiled languages");
}

void judge0_check(const struct server_config *config, const struct judge0_bounds *bounds,
                  const struct judge0_language *language, bool found,
                  struct judge0_submission *submission, struct judge0_errors *errors)
{
    if (found)
        (void)snprintf(submission->language_name, sizeof submission->language_name, "%s",
                       language->name);
    check_texts(language, found, submission, errors);
    check_language(language, found, submission, errors);
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++)
        if (judge0_rules[i].most && !has_error(errors, i))
            check_number(bounds, i, submission->number[i], errors);
    if (!is_blank(&submission->text[JUDGE0_CALLBACK_URL]) && !config->callback.enabled)
        judge0_error(errors, JUDGE0_CALLBACK_URL, "setting callback is not allowed");
    if (submission->number[JUDGE0_ENABLE_NETWORK] && !config->sandbox.allow_network)
        judge0_error(errors, JUDGE0_ENABLE_NETWORK, "enabling network is not allowed");
}

/* ---- the note ---- */

int judge0_note_encode(const struct judge0_submission *submission, struct str *out,
                       struct brig_error *err)
{
    wire_put_version(out, NOTE_VERSION);
    wire_put_text(out, submission->language_name);
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++) {
        const struct execution_bytes *text = &submission->text[i];
        if (!is_text(judge0_rules[i].kind)) {
            wire_put_i64(out, submission->number[i]);
            continue;
        }
        wire_put_bool(out, text->data != NULL);
        wire_put_bytes(out, text->data ? text->data : "", text->length);
    }
    return out->failed ? brig_fail_nomem(err) : 0;
}

int judge0_note_decode(const void *bytes, size_t length, struct judge0_submission *ret_submission,
                       struct brig_error *err)
{
    struct judge0_submission submission = {0};
    const void *copy = arena_copy(&submission.arena, bytes, length);
    struct wire_reader in = wire_open(copy, copy ? length : 0, NOTE_VERSION);
    (void)snprintf(submission.language_name, sizeof submission.language_name, "%s",
                   wire_get_text(&in, JUDGE0_NAME_MAX - 1));
    for (size_t i = 0; i < JUDGE0_REQUEST_FIELDS_; i++) {
        struct execution_bytes *text = &submission.text[i];
        if (!is_text(judge0_rules[i].kind)) {
            submission.number[i] = wire_get_i64(&in, INT64_MIN, INT64_MAX);
            continue;
        }
        bool present = wire_get_bool(&in);
        text->data = wire_get_bytes(&in, EXECUTION_NOTE_MAX, &text->length);
        if (!present)
            *text = (struct execution_bytes){0};
    }
    if (!wire_done(&in)) {
        judge0_submission_done(&submission);
        return brig_fail(err, BRIG_E_INVALID, 0, "the note of a submission is malformed");
    }
    *ret_submission = submission;
    return 0;
}
