/* SPDX-License-Identifier: MIT */
/* What became of a submission of Judge0, as JSON. */
#include "server/api/judge0_answer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "server/api/judge0_request.h"
#include "server/api/judge0_text.h"
#include "server/history/notes.h"

#define autosubmission __attribute__((cleanup(judge0_submission_done)))
#define autooutcome __attribute__((cleanup(judge0_outcome_done)))

/* ---- statuses ---- */

static const char *const statuses[] = {
    [JUDGE0_IN_QUEUE] = "In Queue",
    [JUDGE0_PROCESSING] = "Processing",
    [JUDGE0_ACCEPTED] = "Accepted",
    [JUDGE0_WRONG_ANSWER] = "Wrong Answer",
    [JUDGE0_TIME_LIMIT] = "Time Limit Exceeded",
    [JUDGE0_COMPILATION_ERROR] = "Compilation Error",
    [JUDGE0_SIGSEGV] = "Runtime Error (SIGSEGV)",
    [JUDGE0_SIGXFSZ] = "Runtime Error (SIGXFSZ)",
    [JUDGE0_SIGFPE] = "Runtime Error (SIGFPE)",
    [JUDGE0_SIGABRT] = "Runtime Error (SIGABRT)",
    [JUDGE0_NZEC] = "Runtime Error (NZEC)",
    [JUDGE0_OTHER] = "Runtime Error (Other)",
    [JUDGE0_INTERNAL_ERROR] = "Internal Error",
    [JUDGE0_EXEC_FORMAT_ERROR] = "Exec Format Error",
};

const char *judge0_status_name(enum judge0_status status)
{
    return statuses[status];
}

static void write_status(struct json *j, const char *key, enum judge0_status status)
{
    json_open_object(j, key);
    json_int(j, "id", status);
    json_text(j, "description", statuses[status]);
    json_close_object(j);
}

void judge0_statuses_write(struct json *j)
{
    json_open_array(j, NULL);
    for (size_t i = JUDGE0_IN_QUEUE; i < ARRAY_LENGTH(statuses); i++)
        write_status(j, NULL, (enum judge0_status)i);
    json_close_array(j);
}

/* ---- judging ---- */

static enum judge0_status status_of_signal(int number)
{
    switch (number) {
    case SIGSEGV:
        return JUDGE0_SIGSEGV;
    case SIGXFSZ:
        return JUDGE0_SIGXFSZ;
    case SIGFPE:
        return JUDGE0_SIGFPE;
    case SIGABRT:
        return JUDGE0_SIGABRT;
    default:
        return JUDGE0_OTHER;
    }
}

static void end_by_signal(struct judge0_outcome *outcome, int number)
{
    outcome->status = status_of_signal(number);
    outcome->exit_signal = number;
    (void)snprintf(outcome->message, sizeof outcome->message, "Caught fatal signal %d", number);
}

static void end_by_time(struct judge0_outcome *outcome, bool wall)
{
    outcome->status = JUDGE0_TIME_LIMIT;
    (void)snprintf(outcome->message, sizeof outcome->message, "Time limit exceeded%s",
                   wall ? " (wall clock)" : "");
}

static void end_by_exit(struct judge0_outcome *outcome, int code)
{
    outcome->status = JUDGE0_NZEC;
    outcome->exit_code = code;
    (void)snprintf(outcome->message, sizeof outcome->message, "Exited with error status %d", code);
}

static void fail(struct judge0_outcome *outcome, const char *why)
{
    outcome->ran = false;
    outcome->status = JUDGE0_INTERNAL_ERROR;
    (void)snprintf(outcome->message, sizeof outcome->message, "%s",
                   why && *why ? why : "the execution was lost");
}

static void compare(const struct judge0_submission *submission, struct judge0_outcome *outcome)
{
    const struct execution_bytes *expected = &submission->text[JUDGE0_EXPECTED_OUTPUT];
    outcome->status = !expected->data || judge0_is_same(expected->data, expected->length,
                                                        outcome->out.data, outcome->out.length)
                          ? JUDGE0_ACCEPTED
                          : JUDGE0_WRONG_ANSWER;
}

static void judge_status(const struct judge0_submission *submission,
                         const struct execution_result *result, struct judge0_outcome *outcome)
{
    switch (result->status) {
    case EXECUTION_OK:
        compare(submission, outcome);
        return;
    case EXECUTION_ERROR:
        if (result->signal)
            end_by_signal(outcome, result->signal);
        else
            end_by_exit(outcome, result->exit_code);
        return;
    case EXECUTION_TIMEOUT:
    case EXECUTION_CPU_TIMEOUT:
        end_by_time(outcome, result->status == EXECUTION_TIMEOUT);
        return;
    case EXECUTION_OOM:
    case EXECUTION_KILLED:
        end_by_signal(outcome, SIGKILL);
        return;
    case EXECUTION_OUTPUT_LIMIT:
        end_by_signal(outcome, SIGXFSZ);
        return;
    case EXECUTION_RUNNING:
    case EXECUTION_SETUP_FAILED:
    case EXECUTION_LOST:
    case EXECUTION_BLOCKED:
    case EXECUTION_QUEUED:
    case EXECUTION_STATUSES_:
        break;
    }
    fail(outcome, result->message);
}

/* A limit that the client has not given is looked at here only. */
static void check_time(const struct judge0_submission *submission, struct judge0_outcome *outcome)
{
    uint64_t most_us = (uint64_t)submission->number[JUDGE0_CPU_TIME_LIMIT];
    if (most_us > 0 && outcome->time_us > most_us && outcome->status != JUDGE0_TIME_LIMIT &&
        outcome->ran) {
        outcome->exit_code = outcome->exit_signal = 0;
        end_by_time(outcome, false);
    }
}

/* Both streams in the order of arrival; only one of them if the other is empty. */
static struct execution_bytes join(const struct execution_result *result, struct str *together)
{
    if (result->error_output.length == 0)
        return result->output;
    if (result->output.length == 0)
        return result->error_output;
    execution_interleave(result, together);
    if (together->failed)
        return result->output;
    return (struct execution_bytes){together->data, together->length};
}

/* The program did not run. */
static bool judge_compiler(const struct execution_result *result, struct judge0_outcome *outcome)
{
    static const char late[] = "Compilation time limit exceeded.";
    bool failed = result->status == EXECUTION_ERROR || result->status == EXECUTION_OOM ||
                  result->status == EXECUTION_TIMEOUT || result->status == EXECUTION_CPU_TIMEOUT ||
                  result->status == EXECUTION_OUTPUT_LIMIT;
    if (result->stage != STAGE_COMPILE || !failed)
        return false;
    outcome->status = JUDGE0_COMPILATION_ERROR;
    if (result->status == EXECUTION_TIMEOUT || result->status == EXECUTION_CPU_TIMEOUT)
        outcome->compiled = (struct execution_bytes){late, sizeof late - 1};
    else
        outcome->compiled = join(result, &outcome->compiler);
    return true;
}

static void judge_run(const struct judge0_submission *submission,
                      const struct execution_result *result, struct judge0_outcome *outcome)
{
    outcome->ran = true;
    outcome->out = result->output;
    outcome->error = result->error_output;
    if (submission->number[JUDGE0_REDIRECT_STDERR]) {
        outcome->out = join(result, &outcome->together);
        outcome->error = (struct execution_bytes){.data = ""};
    }
    if (result->compile)
        outcome->compiled = join(result->compile, &outcome->compiler);
    outcome->time_us = result->cpu_time_us;
    outcome->wall_us = result->duration_us;
    outcome->memory_kb = result->memory_peak_bytes >> 10;
    judge_status(submission, result, outcome);
    check_time(submission, outcome);
}

void judge0_judge(const struct judge0_submission *submission, const struct execution_result *result,
                  bool queued, struct judge0_outcome *ret_outcome)
{
    *ret_outcome = (struct judge0_outcome){.out = {.data = ""},
                                           .error = {.data = ""},
                                           .compiled = {.data = ""},
                                           .status = queued ? JUDGE0_IN_QUEUE : JUDGE0_PROCESSING};
    if (!result)
        return;
    uint64_t took_us = result->duration_us + (result->compile ? result->compile->duration_us : 0);
    ret_outcome->finished_ns = result->started_ns + (int64_t)took_us * 1000;
    if (!judge_compiler(result, ret_outcome))
        judge_run(submission, result, ret_outcome);
}

void judge0_outcome_done(struct judge0_outcome *outcome)
{
    str_done(&outcome->together);
    str_done(&outcome->compiler);
}

/* ---- members ---- */

struct writing {
    struct json *j;
    const char *token;
    const struct note *note;
    const struct judge0_submission *submission;
    const struct judge0_outcome *outcome;
    bool base64;
};

struct member {
    const char *name;
    void (*write)(const struct writing *w, const struct member *member);
    int field;  /* enum judge0_field, for members of the request */
    bool usual; /* a client gets it without asking */
};

static void write_text(const struct writing *w, const char *name, struct execution_bytes text,
                       bool base64)
{
    autostr struct str encoded = {0};
    if (!base64) {
        json_bytes(w->j, name, text.data, text.length);
        return;
    }
    judge0_base64_encode(&encoded, text.data, text.length);
    w->j->out->failed |= encoded.failed;
    json_bytes(w->j, name, encoded.data ? encoded.data : "", encoded.length);
}

static void write_decimal(struct json *j, const char *name, int64_t millionths)
{
    char text[40];
    int length = snprintf(text, sizeof text, "%lld.%06lld", (long long)(millionths / JUDGE0_MICROS),
                          (long long)(millionths % JUDGE0_MICROS));
    while (length > 2 && text[length - 1] == '0' && text[length - 2] != '.')
        text[--length] = '\0';
    json_text(j, name, text);
}

static void write_field(const struct writing *w, const struct member *member)
{
    const struct judge0_rule *rule = &judge0_rules[member->field];
    const struct execution_bytes *text = &w->submission->text[member->field];
    int64_t number = w->submission->number[member->field];
    switch (rule->kind) {
    case JUDGE0_STRING:
    case JUDGE0_ENCODED:
    case JUDGE0_BINARY:
        if (text->data)
            write_text(w, member->name, *text,
                       rule->kind == JUDGE0_BINARY || (rule->kind == JUDGE0_ENCODED && w->base64));
        else
            json_nothing(w->j, member->name);
        return;
    case JUDGE0_INTEGER:
        json_int(w->j, member->name, number);
        return;
    case JUDGE0_DECIMAL:
        write_decimal(w->j, member->name, number);
        return;
    case JUDGE0_BOOLEAN:
        json_bool(w->j, member->name, number != 0);
        return;
    }
}

static void write_output(const struct writing *w, const char *name,
                         const struct execution_bytes *bytes)
{
    if (bytes->length == 0)
        json_nothing(w->j, name);
    else
        write_text(w, name, *bytes, w->base64);
}

static void write_stdout(const struct writing *w, const struct member *member)
{
    write_output(w, member->name, &w->outcome->out);
}

static void write_stderr(const struct writing *w, const struct member *member)
{
    write_output(w, member->name, &w->outcome->error);
}

static void write_compiled(const struct writing *w, const struct member *member)
{
    write_output(w, member->name, &w->outcome->compiled);
}

static void write_message(const struct writing *w, const struct member *member)
{
    const struct execution_bytes text = {w->outcome->message, strlen(w->outcome->message)};
    write_output(w, member->name, &text);
}

static void write_token(const struct writing *w, const struct member *member)
{
    json_text(w->j, member->name, w->token);
}

static void write_status_id(const struct writing *w, const struct member *member)
{
    json_int(w->j, member->name, w->outcome->status);
}

static void write_whole_status(const struct writing *w, const struct member *member)
{
    write_status(w->j, member->name, w->outcome->status);
}

static void write_language(const struct writing *w, const struct member *member)
{
    json_open_object(w->j, member->name);
    json_int(w->j, "id", w->submission->number[JUDGE0_LANGUAGE_ID]);
    json_text(w->j, "name", w->submission->language_name);
    json_close_object(w->j);
}

static void write_created(const struct writing *w, const struct member *member)
{
    json_time(w->j, member->name, w->note->created_ns);
}

static void write_finished(const struct writing *w, const struct member *member)
{
    json_time(w->j, member->name, w->outcome->finished_ns);
}

/* "0.012" */
static void write_seconds(const struct writing *w, const char *name, uint64_t us)
{
    if (w->outcome->ran)
        write_decimal(w->j, name, (int64_t)(us + 500) / 1000 * 1000);
    else
        json_nothing(w->j, name);
}

static void write_cpu_time(const struct writing *w, const struct member *member)
{
    write_seconds(w, member->name, w->outcome->time_us);
}

static void write_wall_time(const struct writing *w, const struct member *member)
{
    write_seconds(w, member->name, w->outcome->wall_us);
}

static void write_memory(const struct writing *w, const struct member *member)
{
    if (w->outcome->ran)
        json_uint(w->j, member->name, w->outcome->memory_kb);
    else
        json_nothing(w->j, member->name);
}

static void write_exit_code(const struct writing *w, const struct member *member)
{
    if (w->outcome->ran)
        json_int(w->j, member->name, w->outcome->exit_code);
    else
        json_nothing(w->j, member->name);
}

static void write_exit_signal(const struct writing *w, const struct member *member)
{
    if (w->outcome->ran && w->outcome->exit_signal)
        json_int(w->j, member->name, w->outcome->exit_signal);
    else
        json_nothing(w->j, member->name);
}

static const struct member members[] = {
    {"source_code", write_field, JUDGE0_SOURCE_CODE, false},
    {"language_id", write_field, JUDGE0_LANGUAGE_ID, false},
    {"stdin", write_field, JUDGE0_STDIN, false},
    {"expected_output", write_field, JUDGE0_EXPECTED_OUTPUT, false},
    {"stdout", write_stdout, 0, true},
    {"status_id", write_status_id, 0, false},
    {"created_at", write_created, 0, false},
    {"finished_at", write_finished, 0, false},
    {"time", write_cpu_time, 0, true},
    {"memory", write_memory, 0, true},
    {"stderr", write_stderr, 0, true},
    {"token", write_token, 0, true},
    {"number_of_runs", write_field, JUDGE0_NUMBER_OF_RUNS, false},
    {"cpu_time_limit", write_field, JUDGE0_CPU_TIME_LIMIT, false},
    {"cpu_extra_time", write_field, JUDGE0_CPU_EXTRA_TIME, false},
    {"wall_time_limit", write_field, JUDGE0_WALL_TIME_LIMIT, false},
    {"memory_limit", write_field, JUDGE0_MEMORY_LIMIT, false},
    {"stack_limit", write_field, JUDGE0_STACK_LIMIT, false},
    {"max_processes_and_or_threads", write_field, JUDGE0_MAX_PROCESSES, false},
    {"enable_per_process_and_thread_time_limit", write_field, JUDGE0_PER_PROCESS_TIME, false},
    {"enable_per_process_and_thread_memory_limit", write_field, JUDGE0_PER_PROCESS_MEMORY, false},
    {"max_file_size", write_field, JUDGE0_MAX_FILE_SIZE, false},
    {"compile_output", write_compiled, 0, true},
    {"exit_code", write_exit_code, 0, false},
    {"exit_signal", write_exit_signal, 0, false},
    {"message", write_message, 0, true},
    {"wall_time", write_wall_time, 0, false},
    {"compiler_options", write_field, JUDGE0_COMPILER_OPTIONS, false},
    {"command_line_arguments", write_field, JUDGE0_ARGUMENTS, false},
    {"redirect_stderr_to_stdout", write_field, JUDGE0_REDIRECT_STDERR, false},
    {"callback_url", write_field, JUDGE0_CALLBACK_URL, false},
    {"additional_files", write_field, JUDGE0_ADDITIONAL_FILES, false},
    {"enable_network", write_field, JUDGE0_ENABLE_NETWORK, false},
    {"status", write_whole_status, 0, true},
    {"language", write_language, 0, false},
};
_Static_assert(ARRAY_LENGTH(members) < 64, "judge0_members has a bit for each");

judge0_members judge0_members_usual(void)
{
    judge0_members chosen = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        chosen |= (judge0_members)members[i].usual << i;
    return chosen;
}

static judge0_members find_member(const char *name, size_t length)
{
    if (length == 1 && *name == '*')
        return ((judge0_members)1 << ARRAY_LENGTH(members)) - 1;
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        if (strlen(members[i].name) == length && memcmp(members[i].name, name, length) == 0)
            return (judge0_members)1 << i;
    return 0;
}

judge0_members judge0_members_read(const char *text, struct str *ret_unknown)
{
    judge0_members chosen = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        judge0_members found = find_member(text, length);
        if (!found && length > 0) {
            str_append(ret_unknown, ret_unknown->length > 0 ? ", " : "");
            str_append_bytes(ret_unknown, text, length);
        }
        chosen |= found;
        text += length + (text[length] == ',');
    }
    return chosen ? chosen : judge0_members_usual();
}

static bool has(judge0_members chosen, const char *name)
{
    return chosen & find_member(name, strlen(name));
}

static bool is_utf8(const struct execution_bytes *text)
{
    return !text->data || utf8_is_valid(text->data, text->length);
}

/* Whether all chosen texts can be written without base64. */
static bool is_text(const struct writing *w, judge0_members chosen)
{
    const struct execution_bytes *text = w->submission->text;
    return (!has(chosen, "source_code") || is_utf8(&text[JUDGE0_SOURCE_CODE])) &&
           (!has(chosen, "stdin") || is_utf8(&text[JUDGE0_STDIN])) &&
           (!has(chosen, "expected_output") || is_utf8(&text[JUDGE0_EXPECTED_OUTPUT])) &&
           (!has(chosen, "stdout") || is_utf8(&w->outcome->out)) &&
           (!has(chosen, "stderr") || is_utf8(&w->outcome->error)) &&
           (!has(chosen, "compile_output") || is_utf8(&w->outcome->compiled));
}

/* ---- the object ---- */

/* Decodes the note and its result; one that cannot be decoded was stored by another version. */
static void decode(const struct note *note, struct judge0_submission *submission,
                   struct execution_result *result, struct judge0_outcome *outcome)
{
    struct execution_result lost = {.status = EXECUTION_LOST,
                                    .output = {.data = ""},
                                    .error_output = {.data = ""},
                                    .message = "it was stored by another version of the server"};
    bool ended = note->state == NOTE_ENDED;
    bool known = judge0_note_decode(note->text.data, note->text.length, submission, NULL) == 0;
    if (ended && known)
        known = execution_result_decode(note->result.data, note->result.length, result, NULL) == 0;
    judge0_judge(submission,
                 !ended  ? NULL
                 : known ? result
                         : &lost,
                 note->state == NOTE_QUEUED, outcome);
}

bool judge0_write(struct json *j, const struct note *note, const char *token, judge0_members chosen,
                  bool base64)
{
    autosubmission struct judge0_submission submission = {0};
    autoresult struct execution_result result = {0};
    autooutcome struct judge0_outcome outcome = {0};
    decode(note, &submission, &result, &outcome);
    const struct writing w = {j, token, note, &submission, &outcome, base64};
    if (!base64 && !is_text(&w, chosen))
        return false;
    json_open_object(j, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        if (chosen & (judge0_members)1 << i)
            members[i].write(&w, &members[i]);
    json_close_object(j);
    return true;
}

int judge0_write_callback(const char *token, struct execution_bytes text,
                          struct execution_bytes encoded, struct str *out, struct brig_error *err)
{
    const struct note note = {.state = NOTE_ENDED, .text = text, .result = encoded};
    struct json j;
    json_init(&j, out);
    (void)judge0_write(&j, &note, token, judge0_members_usual(), true);
    return out->failed ? brig_fail_nomem(err) : 0;
}
