/* SPDX-License-Identifier: MIT */
/* brigctl exec, claude, submit, wait: run code on the server, and exit with its exit status. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"

#define STATUS_TIMEOUT 124 /* as timeout(1) */
#define STATUS_SIGNAL 128
#define SIGNAL_KILL 9

struct run {
    struct client *client;
    const struct request *request;
    struct sse sse;
    json_t *result; /* the `done` event, or the whole answer */
    struct str failure;
    bool shows_progress;
};

/* ---- Progress ---- */

static void erase_progress(struct run *run)
{
    if (run->shows_progress)
        (void)fputs("\r\033[K", stderr);
    run->shows_progress = false;
}

static void on_tick(void *context, uint64_t elapsed_ms)
{
    struct run *run = context;
    if (!isatty(STDERR_FILENO) || run->client->json || run->result)
        return;
    (void)fprintf(stderr, "\r\033[K%s runs, %" PRIu64 " s", str_shown(run->request->language).text,
                  elapsed_ms / 1000);
    run->shows_progress = true;
}

/* ---- Events ---- */

static int on_event(void *context, const char *event, char *data, size_t length)
{
    struct run *run = context;
    bool out = strcmp(event, "stdout") == 0;
    erase_progress(run);
    if (out || strcmp(event, "stderr") == 0) {
        size_t count = 0;
        if (base64_decode(data, length, data, &count) && count > 0)
            client_write(run->client, out ? STDOUT_FILENO : STDERR_FILENO, data, count);
        return 0;
    }
    if (strcmp(event, "done") == 0 && !run->result)
        run->result = json_loadb(data, length, 0, NULL);
    if (strcmp(event, "error") == 0)
        str_append_bytes(&run->failure, data, length);
    return 0;
}

static int on_piece(void *context, const char *bytes, size_t length)
{
    struct run *run = context;
    return sse_feed(&run->sse, bytes, length, on_event, run);
}

/* ---- The end ---- */

static int64_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static int status_of(const json_t *result)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    int64_t signal = number_of(result, "signal"), code = number_of(result, "exit_code");
    if (!status || !json_is_integer(json_object_get(result, "exit_code")))
        return CLIENT_FAILED;
    if (strstr(status, "timeout"))
        return STATUS_TIMEOUT;
    if (strcmp(status, "oom") == 0)
        return STATUS_SIGNAL + SIGNAL_KILL;
    if (signal > 0 && signal < 128)
        return STATUS_SIGNAL + (int)signal;
    return code >= 0 && code <= 255 ? (int)code : CLIENT_FAILED;
}

/* A remedy for a status that the server's message does not include, or "". */
static const char *remedy(const char *status)
{
    if (strcmp(status, "timeout") == 0)
        return ": give it longer with --timeout";
    if (strcmp(status, "oom") == 0)
        return ": give it more with --memory";
    return "";
}

static void report_status(const char *status, const char *message)
{
    bool odd = strcmp(status, "ok") != 0 && strcmp(status, "error") != 0;
    if (message[0])
        (void)fprintf(stderr, "brigctl: %s%s%s\n", odd ? str_shown(status).text : "",
                      odd ? ": " : "", str_shown(message).text);
    else if (odd)
        (void)fprintf(stderr, "brigctl: %s%s\n", str_shown(status).text, remedy(status));
}

/* Reports on standard error what the output does not show. */
static void report(const struct run *run)
{
    const char *status = json_string_value(json_object_get(run->result, "status"));
    const char *message = json_string_value(json_object_get(run->result, "message"));
    const json_t *cut = json_object_get(run->result, "truncated");
    report_status(status ? status : "ok", message ? message : "");
    if (json_is_true(json_object_get(cut, "output")) ||
        json_is_true(json_object_get(cut, "stderr")))
        (void)fputs("brigctl: there was more output than is kept\n", stderr);
}

static int write_file(const struct request *request, const char *name, const json_t *file,
                      struct brig_error *err)
{
    const char *content = json_string_value(json_object_get(file, "content"));
    const char *encoding = json_string_value(json_object_get(file, "encoding"));
    if (!content)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the returned file '%s' has no content",
                         str_shown(name).text);
    if (!encoding || strcmp(encoding, "base64") != 0)
        return returned_write(request->out, name, content,
                              json_string_length(json_object_get(file, "content")), err);
    autofree char *copy = strdup(content);
    size_t length = 0;
    if (!copy || !base64_decode(copy, strlen(copy), copy, &length))
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the returned file '%s' is not base64",
                         str_shown(name).text);
    return returned_write(request->out, name, copy, length, err);
}

static int write_files(const struct run *run, struct brig_error *err)
{
    const char *name;
    json_t *file, *files = json_object_get(run->result, "files");
    int result = 0;
    if (!run->request->out)
        return 0;
    json_object_foreach(files, name, file)
    {
        if (result == 0)
            result = write_file(run->request, name, file, err);
    }
    return result;
}

static void write_output(const struct run *run, const char *name, int fd)
{
    const json_t *text = json_object_get(run->result, name);
    if (json_is_string(text))
        client_write(run->client, fd, json_string_value(text), json_string_length(text));
}

static int end_run(struct run *run, struct str *answer, struct brig_error *err)
{
    const struct client_call failed = {.status = 500, .answer = &run->failure};
    if (run->failure.length > 0)
        return client_check(&failed, err);
    if (run->client->json)
        client_write_answer(run->client, answer);
    if (!run->result)
        run->result = json_loadb(answer->data ? answer->data : "", answer->length, 0, NULL);
    if (!run->result)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the server went away before the end");
    if (!run->client->json) {
        write_output(run, "output", STDOUT_FILENO);
        write_output(run, "stderr", STDERR_FILENO);
        report(run);
    }
    int result = write_files(run, err);
    return result < 0 ? result : status_of(run->result);
}

static int perform(struct client *client, const struct request *request, struct brig_error *err)
{
    autofree char *body = NULL;
    autostr struct str answer = {0};
    bool stream = !request->no_stream && !client->json;
    struct run run = {.client = client, .request = request};
    struct client_call call = {.method = "POST",
                               .path = stream ? "/execute/stream?encoding=base64" : "/execute",
                               .take = stream ? on_piece : NULL,
                               .tick = on_tick,
                               .context = &run,
                               .answer = &answer};
    int result = request_body(request, &body, err);
    call.body = body;
    if (result == 0)
        result = client_perform(client, &call, err);
    erase_progress(&run);
    if (result == 0)
        result = client_check(&call, err);
    if (result == 0)
        result = end_run(&run, &answer, err);
    json_decref(run.result);
    sse_done(&run.sse);
    str_done(&run.failure);
    return result;
}

/* ---- submit and wait ---- */

static int submit(struct client *client, const struct request *request, struct brig_error *err)
{
    autofree char *body = NULL;
    autostr struct str answer = {0};
    struct client_call call = {.method = "POST", .path = "/executions", .answer = &answer};
    int result = request_body(request, &body, err);
    call.body = body;
    if (result == 0)
        result = client_perform(client, &call, err);
    if (result == 0)
        result = client_check(&call, err);
    if (result < 0)
        return result;
    if (client->json) {
        client_write_answer(client, &answer);
        return 0;
    }
    json_t *root = json_loadb(answer.data ? answer.data : "", answer.length, 0, NULL);
    const char *id = json_string_value(json_object_get(root, "id"));
    if (id)
        (void)puts(str_shown(id).text);
    else
        result = brig_fail(err, BRIG_E_SYSTEM, 0, "the server's answer has no id");
    json_decref(root);
    return result;
}

/* Asks once; the server waits. Returns 1 when the execution has ended, and the result is set. */
static int ask_end(struct client *client, const char *path, struct run *run, struct str *answer,
                   struct brig_error *err)
{
    struct client_call call = {
        .method = "GET", .path = path, .answer = answer, .tick = on_tick, .context = run};
    str_done(answer);
    int result = client_perform(client, &call, err);
    if (result == 0)
        result = client_check(&call, err);
    if (result < 0)
        return result;
    json_decref(run->result);
    run->result = json_loadb(answer->data ? answer->data : "", answer->length, 0, NULL);
    const char *status = json_string_value(json_object_get(run->result, "status"));
    if (!status)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the server's answer is not an execution");
    /* The name that POST /execute has for them. */
    json_t *files = json_object_get(run->result, "returned_files");
    if (files)
        (void)json_object_set(run->result, "files", files);
    return strcmp(status, "queued") != 0 && strcmp(status, "running") != 0;
}

static int wait_for_end(struct client *client, const struct request *request,
                        struct brig_error *err)
{
    autostr struct str answer = {0}, path = {0};
    struct run run = {.client = client, .request = request};
    str_concat(&path, "/executions/", request->code_file, "?wait=60");
    int result = path.failed ? brig_fail_nomem(err) : 0;
    while (result == 0)
        result = ask_end(client, path.data, &run, &answer, err);
    erase_progress(&run);
    if (result > 0)
        result = end_run(&run, &answer, err);
    json_decref(run.result);
    str_done(&run.failure);
    return result;
}

/* ---- Options ---- */

static const char submit_usage[] =
    "Usage: brigctl submit LANGUAGE FILE|-|-c CODE [ARGUMENT]...\n"
    "Queues code at the server, and prints the id of the execution. It runs also if the server is\n"
    "restarted before. The options of exec, and:\n"
    "\n"
    "  -p, --priority N      from -10 to 10; higher ones run first\n"
    "      --callback URL    is sent the result\n"
    "      --secret TEXT     signs it, in place of the server's own\n"
    "  -h, --help            this text\n";

static const char wait_usage[] =
    "Usage: brigctl wait ID [-o DIR]\n"
    "Waits for the end of an execution, prints its output and ends with its exit status.\n"
    "\n"
    "  -o, --out DIR         write returned files to DIR\n"
    "      --raw             control characters go to the terminal as they are\n"
    "  -h, --help            this text\n";

static const char exec_usage[] =
    "Usage: brigctl exec LANGUAGE FILE [ARGUMENT]...\n"
    "       brigctl exec LANGUAGE -c CODE [ARGUMENT]...\n"
    "       brigctl exec LANGUAGE - [ARGUMENT]...\n"
    "Runs code at the server and ends with its exit status: 124 after a timeout, 125 if brigctl\n"
    "itself failed. Arguments that begin with a dash go behind --.\n"
    "\n"
    "  -c, --code CODE       the code itself\n"
    "  -t, --timeout TIME    such as 500ms, 10s or 2m\n"
    "  -m, --memory MB       memory in MiB\n"
    "  -e, --env NAME=VALUE  a variable\n"
    "  -f, --file [NAME=]PATH\n"
    "                        a file beside the code\n"
    "  -o, --out DIR         write what the program left in its output directory to DIR\n"
    "      --return PATTERN  only files like this (default: all)\n"
    "  -i, --stdin           hand over standard input\n"
    "      --allow HOST      let it reach this host\n"
    "      --network         let it reach any public host, if the server permits that\n"
    "      --no-stream       print the output at the end\n"
    "      --raw             control characters go to the terminal as they are\n"
    "  -h, --help            this text\n";

static const char claude_usage[] =
    "Usage: brigctl claude PROMPT [--dir DIR]\n"
    "Lets Claude Code work in a directory, in a jail. The server must run on this machine and "
    "permit\n"
    "the directory (sandbox.allowed_workdir_roots).\n"
    "\n"
    "  -d, --dir DIR         the directory (default: this one)\n"
    "  -t, --timeout TIME    such as 2m\n"
    "  -m, --memory MB       memory in MiB\n"
    "      --no-stream       print the output at the end\n"
    "      --raw             control characters go to the terminal as they are\n"
    "  -h, --help            this text\n";

/* Capital letters mark options that have a long form only. Each option is stored in a member of
 * struct request. */
enum place_kind { PLACE_FLAG, PLACE_TEXT, PLACE_LIST };
#define PLACE(kind, member) PLACE_##kind, offsetof(struct request, member)
static const struct {
    const char *name;
    int letter;
    enum place_kind kind;
    size_t offset;
} places[] = {
    {"code", 'c', PLACE(TEXT, code)},         {"timeout", 't', PLACE(TEXT, timeout)},
    {"memory", 'm', PLACE(TEXT, memory)},     {"env", 'e', PLACE(LIST, env)},
    {"file", 'f', PLACE(LIST, files)},        {"out", 'o', PLACE(TEXT, out)},
    {"return", 'R', PLACE(LIST, returns)},    {"stdin", 'i', PLACE(FLAG, stdin_wanted)},
    {"allow", 'A', PLACE(LIST, allow)},       {"network", 'N', PLACE(FLAG, network)},
    {"dir", 'd', PLACE(TEXT, work_dir)},      {"no-stream", 'S', PLACE(FLAG, no_stream)},
    {"raw", 'W', PLACE(FLAG, raw)},           {"json", 'J', PLACE(FLAG, json)},
    {"help", 'h', PLACE(FLAG, help)},         {"priority", 'p', PLACE(TEXT, priority)},
    {"callback", 'B', PLACE(TEXT, callback)}, {"secret", 'X', PLACE(TEXT, secret)},
};

static int take_option(struct request *request, int letter, struct brig_error *err)
{
    size_t i = 0;
    while (i < ARRAY_LENGTH(places) && places[i].letter != letter)
        i++;
    if (i == ARRAY_LENGTH(places)) /* getopt has printed the error */
        return brig_fail(err, BRIG_E_INVALID, 0, "see brigctl exec --help");
    void *place = (char *)request + places[i].offset;
    char name[32];
    switch (places[i].kind) {
    case PLACE_FLAG:
        *(bool *)place = true;
        return 0;
    case PLACE_TEXT:
        *(const char **)place = optarg;
        return 0;
    case PLACE_LIST:
        (void)snprintf(name, sizeof name, "--%s", places[i].name);
        return request_add(place, optarg, name, err);
    }
    return 0;
}

static int take_options(struct request *request, const char *letters, int argc, char **argv,
                        struct brig_error *err)
{
    struct option options[ARRAY_LENGTH(places) + 1] = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        options[i] =
            (struct option){places[i].name, places[i].kind != PLACE_FLAG, NULL, places[i].letter};
    int result = 0;
    optind = 0;
    for (int letter;
         result == 0 && (letter = getopt_long(argc, argv, letters, options, NULL)) != -1;)
        result = take_option(request, letter, err);
    return result;
}

static int take_exec(struct request *request, int argc, char **argv, struct brig_error *err)
{
    int at = optind;
    if (at < argc)
        request->language = argv[at++];
    if (!request->code && at < argc)
        request->code_file = argv[at++];
    if (!request->language || (!request->code && !request->code_file))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "exec needs a language and a file, -c CODE, or - for standard input. See "
                         "brigctl exec --help");
    if (request->stdin_wanted && request->code_file && strcmp(request->code_file, "-") == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "standard input cannot be both the code and its input");
    for (; at < argc; at++)
        if (request_add(&request->args, argv[at], "arguments", err) < 0)
            return BRIG_E_INVALID;
    if (request->out && request->returns.count == 0)
        return request_add(&request->returns, "*", "--return", err);
    return 0;
}

/* The server resolves the path again, and decides whether it is allowed. */
static int take_claude(struct request *request, int argc, char **argv, struct brig_error *err)
{
    if (optind + 1 != argc)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "claude needs one prompt, in quotes. See brigctl claude --help");
    request->language = "claude";
    request->code = argv[optind];
    const char *wanted = request->work_dir ? request->work_dir : ".";
    if (!realpath(wanted, request->directory))
        return brig_fail(err, BRIG_E_INVALID, errno, "--dir '%s'", str_shown(wanted).text);
    request->work_dir = request->directory;
    return 0;
}

/* An id of letters, digits and dashes needs no quoting in a path. */
static int take_wait(struct request *request, int argc, char **argv, struct brig_error *err)
{
    if (optind + 1 != argc)
        return brig_fail(err, BRIG_E_INVALID, 0, "wait needs one ID. See brigctl wait --help");
    request->code_file = argv[optind];
    request->language = "it";
    if (request->code_file[strspn(request->code_file, "0123456789abcdefABCDEF-")])
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not an id, which submit prints",
                         str_shown(request->code_file).text);
    return 0;
}

/* The differences between the commands. */
struct verb {
    const char *letters, *usage;
    int (*take)(struct request *request, int argc, char **argv, struct brig_error *err);
    int (*perform)(struct client *client, const struct request *request, struct brig_error *err);
    bool queues;
};

static int run_verb(struct client *client, int argc, char **argv, const struct verb *verb)
{
    struct request request = {0};
    struct brig_error err = {0};
    int result = take_options(&request, verb->letters, argc, argv, &err);
    if (result == 0 && request.help) {
        (void)fputs(verb->usage, stdout);
        return 0;
    }
    client->raw = request.raw;
    client->json = client->json || request.json;
    if (result == 0 && !verb->queues && (request.priority || request.callback || request.secret))
        result = brig_fail(&err, BRIG_E_INVALID, 0, "--priority and --callback are for submit");
    if (result == 0)
        result = verb->take(&request, argc, argv, &err);
    if (result == 0)
        result = verb->perform(client, &request, &err);
    return result < 0 ? client_complain(&err) : result;
}

int client_exec(struct client *client, int argc, char **argv)
{
    static const struct verb verb = {"c:t:m:e:f:o:ih", exec_usage, take_exec, perform, false};
    return run_verb(client, argc, argv, &verb);
}

int client_claude(struct client *client, int argc, char **argv)
{
    static const struct verb verb = {"d:t:m:h", claude_usage, take_claude, perform, false};
    return run_verb(client, argc, argv, &verb);
}

int client_submit(struct client *client, int argc, char **argv)
{
    static const struct verb verb = {"c:t:m:e:f:o:ihp:", submit_usage, take_exec, submit, true};
    return run_verb(client, argc, argv, &verb);
}

int client_wait(struct client *client, int argc, char **argv)
{
    static const struct verb verb = {"o:h", wait_usage, take_wait, wait_for_end, false};
    return run_verb(client, argc, argv, &verb);
}
