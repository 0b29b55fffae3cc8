/* SPDX-License-Identifier: MIT */
/* brigctl ls, show, kill, health, runtimes: query the server. */
#include <curl/curl.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "client/client.h"

/* ---- Requests ---- */

/* Returns the answer as an object; with --json, prints it and returns NULL. */
static int ask(const struct client *client, const char *method, const char *path, json_t **ret,
               struct brig_error *err)
{
    autostr struct str answer = {0};
    struct client_call call = {.method = method, .path = path, .answer = &answer};
    *ret = NULL;
    int result = client_perform(client, &call, err);
    /* /health answers 503 with a body that says what is wrong. */
    bool ill = result == 0 && call.status == 503 && strcmp(path, "/health") == 0;
    if (result == 0 && !ill)
        result = client_check(&call, err);
    if (result < 0)
        return result;
    if (client->json) {
        client_write_answer(client, &answer);
        return ill;
    }
    *ret = json_loadb(answer.data ? answer.data : "", answer.length, 0, NULL);
    if (!*ret)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the server's answer is not JSON");
    return ill;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "-";
}

/* ---- ls ---- */

static const char list_usage[] =
    "Usage: brigctl ls [OPTION]...\n"
    "Lists executions, the newest first.\n"
    "\n"
    "  -l, --language NAME   of this language\n"
    "  -s, --status STATUS   such as queued, running, ok, error, timeout, killed, blocked\n"
    "      --since TIME      2026-01-31T12:00:00Z, or back from now: 2h\n"
    "  -n, --limit COUNT     how many (default 50, at most 500)\n"
    "      --cursor CURSOR   the page behind another\n"
    "      --json            as the server answers\n"
    "  -h, --help            this text\n";

static void print_row(const struct client *client, const json_t *row)
{
    autostr struct str line = {0};
    const char *status = text_of(row, "status");
    str_appendf(&line, "%s  ", str_shown(text_of(row, "id")).text);
    str_appendf(&line, "%-24s  ", str_shown(text_of(row, "created_at")).text);
    str_appendf(&line, "%-8s  ", str_shown(text_of(row, "language")).text);
    str_appendf(&line, "%s%-12s%s  ", client_colour(client, status), str_shown(status).text,
                client_plain(client));
    str_appendf(&line, "%s", str_shown(text_of(row, "duration")).text);
    (void)puts(line.failed ? "out of memory" : line.data);
}

static void print_list(const struct client *client, const json_t *answer, const char *id)
{
    const json_t *rows = json_object_get(answer, "executions");
    const char *next = json_string_value(json_object_get(answer, "next"));
    (void)id;
    for (size_t i = 0; i < json_array_size(rows); i++)
        print_row(client, json_array_get(rows, i));
    (void)fflush(stdout);
    if (next)
        (void)fprintf(stderr, "There are more: --cursor %s\n", str_shown(next).text);
}

/* ---- show, kill, health, runtimes ---- */

static void print_member(const struct client *client, const char *name, const json_t *value)
{
    autofree char *text =
        json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    const char *plain = json_is_string(value) ? json_string_value(value) : text;
    bool long_text = plain && strchr(plain, '\n');
    (void)printf("%s:%s", str_shown(name).text, long_text ? "\n" : " ");
    (void)fflush(stdout);
    if (plain)
        client_write(client, STDOUT_FILENO, plain, strlen(plain));
    if (!plain || !long_text || plain[strlen(plain) - 1] != '\n')
        (void)fputs("\n", stdout);
    (void)fflush(stdout);
}

static void print_members(const struct client *client, const json_t *answer, const char *id)
{
    const char *name;
    json_t *value, *iterated = (json_t *)(uintptr_t)answer; /* the macro does not accept const */
    (void)id;
    json_object_foreach(iterated, name, value)
    {
        print_member(client, name, value);
    }
}

static void print_killed(const struct client *client, const json_t *answer, const char *id)
{
    (void)client;
    (void)answer;
    (void)printf("%s is being ended\n", str_shown(id).text);
}

static void print_runtimes(const struct client *client, const json_t *answer, const char *id)
{
    const json_t *rows = json_object_get(answer, "runtimes");
    (void)id;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        bool missing = json_is_false(json_object_get(row, "available"));
        const char *state = missing ? "missing" : "ok";
        const char *note = json_string_value(json_object_get(row, "reason"));
        (void)printf("%-12s %s%s%s%s%s\n", str_shown(text_of(row, "name")).text,
                     client_colour(client, state), state, client_plain(client),
                     missing && note ? "  " : "", missing && note ? str_shown(note).text : "");
    }
}

/* ---- Commands ---- */

static const struct question {
    const char *name, *usage, *method;
    const char *path; /* a trailing slash: an ID follows */
    bool filtered;
    void (*print)(const struct client *client, const json_t *answer, const char *id);
} questions[] = {
    {"ls", list_usage, "GET", "/executions", true, print_list},
    {"show",
     "Usage: brigctl show ID [--json]\n"
     "Prints the details of an execution.\n",
     "GET", "/executions/", false, print_members},
    {"kill", "Usage: brigctl kill ID [--json]\nEnds a running or queued execution.\n", "DELETE",
     "/executions/", false, print_killed},
    {"health",
     "Usage: brigctl health [--json]\n"
     "Says whether the server works; ends with 1 if it does not.\n",
     "GET", "/health", false, print_members},
    {"runtimes", "Usage: brigctl runtimes [--json]\nLists what can be run.\n", "GET", "/runtimes",
     false, print_runtimes},
};

static void append_quoted(struct str *path, const char *before, const char *text)
{
    char *quoted = curl_easy_escape(NULL, text, 0);
    str_concat(path, before, quoted ? quoted : "");
    curl_free(quoted);
}

/* Capital letters mark options that have a long form only. Options after "help" are for ls only. */
static const struct option options[] = {
    {"json", no_argument, NULL, 'J'},           {"help", no_argument, NULL, 'h'},
    {"language", required_argument, NULL, 'l'}, {"status", required_argument, NULL, 's'},
    {"since", required_argument, NULL, 'S'},    {"limit", required_argument, NULL, 'n'},
    {"cursor", required_argument, NULL, 'C'},   {0}};
static const struct option common[] = {
    {"json", no_argument, NULL, 'J'}, {"help", no_argument, NULL, 'h'}, {0}};

/* Builds the request path. Returns 0, or the exit status plus one. */
static int take_words(struct client *client, int argc, char **argv, const struct question *question,
                      struct str *path)
{
    const char *before = "?";
    str_append(path, question->path);
    optind = 0;
    for (int letter; (letter = getopt_long(argc, argv, question->filtered ? "l:s:n:h" : "h",
                                           question->filtered ? options : common, NULL)) != -1;) {
        if (letter == 'J')
            client->json = true;
        if (letter == 'h' || letter == '?') {
            (void)fputs(question->usage, letter == 'h' ? stdout : stderr);
            return 1 + (letter == 'h' ? 0 : CLIENT_USAGE);
        }
        for (size_t i = 2; options[i].name; i++) {
            if (options[i].val != letter)
                continue;
            str_concat(path, before, options[i].name);
            append_quoted(path, "=", optarg);
            before = "&";
        }
    }
    bool has_id = str_ends_with(question->path, "/");
    if (argc - optind == has_id) {
        append_quoted(path, "", has_id ? argv[optind] : "");
        return 0;
    }
    (void)fputs(question->usage, stderr);
    return 1 + CLIENT_USAGE;
}

int client_ask(struct client *client, int argc, char **argv)
{
    autostr struct str path = {0};
    struct brig_error err = {0};
    json_t *answer = NULL;
    const struct question *question = questions;
    while (!str_ends_with(argv[0], question->name))
        question++;
    int ended = take_words(client, argc, argv, question, &path);
    if (ended)
        return ended - 1;
    int result = path.failed ? brig_fail_nomem(&err)
                             : ask(client, question->method, path.data, &answer, &err);
    if (result < 0)
        return client_complain(&err);
    if (answer)
        question->print(client, answer, argv[argc - 1]);
    json_decref(answer);
    return result;
}
