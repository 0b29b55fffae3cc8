/* SPDX-License-Identifier: MIT */
/* brigctl ls, show, kill, health, runtimes: what the server knows. */
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

enum { OPTION_JSON = 256 };

/* ---- Asking ---- */

/* The answer as an object; prints it and gives none with --json. */
static int ask(const struct client *client, const char *method, const char *path, json_t **ret,
               struct brig_error *err)
{
    autostr struct str answer = {0};
    struct client_call call = {.method = method, .path = path, .answer = &answer};
    *ret = NULL;
    int result = client_perform(client, &call, err);
    /* /health says why it is not well. */
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

/* ---- Options that all of them have ---- */

/* How many words follow; negative when it has been said what is wrong, or helped. */
static int take_words(struct client *client, int argc, char **argv, const char *usage, int wanted,
                      int *ret_status)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, OPTION_JSON}, {"help", no_argument, NULL, 'h'}, {0}};
    optind = 0;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        *ret_status = option == 'h' ? 0 : CLIENT_USAGE;
        if (option == OPTION_JSON) {
            client->json = true;
            continue;
        }
        (void)fputs(usage, option == 'h' ? stdout : stderr);
        return -1;
    }
    if (argc - optind == wanted)
        return wanted;
    (void)fputs(usage, stderr);
    *ret_status = CLIENT_USAGE;
    return -1;
}

/* ---- ls ---- */

static const char list_usage[] =
    "Usage: brigctl ls [OPTION]...\n"
    "Lists executions, the newest first.\n"
    "\n"
    "  -l, --language NAME   of this language\n"
    "  -s, --status STATUS   such as running, ok, error, timeout, oom, killed, blocked\n"
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

static int add_filter(struct str *path, const char *name, const char *value)
{
    char *quoted = curl_easy_escape(NULL, value, 0);
    str_appendf(path, "%c%s=%s", strchr(path->data, '?') ? '&' : '?', name, quoted ? quoted : "");
    curl_free(quoted);
    return 0;
}

/* 0, or the status to end with plus one. */
static int take_filters(struct client *client, int argc, char **argv, struct str *path)
{
    static const struct option options[] = {
        {"language", required_argument, NULL, 'l'}, {"status", required_argument, NULL, 's'},
        {"since", required_argument, NULL, 'S'},    {"limit", required_argument, NULL, 'n'},
        {"cursor", required_argument, NULL, 'C'},   {"json", no_argument, NULL, OPTION_JSON},
        {"help", no_argument, NULL, 'h'},           {0}};
    static const struct {
        int option;
        const char *name;
    } filters[] = {
        {'l', "language"}, {'s', "status"}, {'S', "since"}, {'n', "limit"}, {'C', "cursor"}};
    optind = 0;
    for (int option; (option = getopt_long(argc, argv, "l:s:n:h", options, NULL)) != -1;) {
        if (option == OPTION_JSON)
            client->json = true;
        for (size_t i = 0; i < ARRAY_LENGTH(filters); i++)
            if (filters[i].option == option)
                (void)add_filter(path, filters[i].name, optarg);
        if (option == 'h' || option == '?') {
            (void)fputs(list_usage, option == 'h' ? stdout : stderr);
            return 1 + (option == 'h' ? 0 : CLIENT_USAGE);
        }
    }
    if (optind == argc)
        return 0;
    (void)fputs(list_usage, stderr);
    return 1 + CLIENT_USAGE;
}

int client_list(struct client *client, int argc, char **argv)
{
    autostr struct str path = {0};
    struct brig_error err = {0};
    json_t *answer = NULL;
    str_append(&path, "/executions");
    int ended = path.failed ? 0 : take_filters(client, argc, argv, &path);
    if (ended)
        return ended - 1;
    int result = path.failed ? brig_fail_nomem(&err) : ask(client, "GET", path.data, &answer, &err);
    if (result < 0)
        return client_complain(&err);
    const json_t *rows = json_object_get(answer, "executions");
    for (size_t i = 0; i < json_array_size(rows); i++)
        print_row(client, json_array_get(rows, i));
    const char *next = json_string_value(json_object_get(answer, "next"));
    (void)fflush(stdout);
    if (next)
        (void)fprintf(stderr, "There are more: --cursor %s\n", str_shown(next).text);
    json_decref(answer);
    return 0;
}

/* ---- show ---- */

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

static int ask_for_id(const struct client *client, const char *method, const char *id, json_t **ret,
                      struct brig_error *err)
{
    autostr struct str path = {0};
    char *quoted = curl_easy_escape(NULL, id, 0);
    str_appendf(&path, "/executions/%s", quoted ? quoted : "");
    curl_free(quoted);
    return path.failed ? brig_fail_nomem(err) : ask(client, method, path.data, ret, err);
}

int client_show(struct client *client, int argc, char **argv)
{
    static const char usage[] = "Usage: brigctl show ID [--json]\n"
                                "Prints all that is known of an execution.\n";
    struct brig_error err = {0};
    json_t *answer = NULL, *value;
    const char *name;
    int status = 0;
    if (take_words(client, argc, argv, usage, 1, &status) < 0)
        return status;
    if (ask_for_id(client, "GET", argv[optind], &answer, &err) < 0)
        return client_complain(&err);
    json_object_foreach(answer, name, value)
    {
        print_member(client, name, value);
    }
    json_decref(answer);
    return 0;
}

int client_kill(struct client *client, int argc, char **argv)
{
    static const char usage[] = "Usage: brigctl kill ID [--json]\nEnds a running execution.\n";
    struct brig_error err = {0};
    json_t *answer = NULL;
    int status = 0;
    if (take_words(client, argc, argv, usage, 1, &status) < 0)
        return status;
    if (ask_for_id(client, "DELETE", argv[optind], &answer, &err) < 0)
        return client_complain(&err);
    if (answer)
        (void)printf("%s is being ended\n", str_shown(argv[optind]).text);
    json_decref(answer);
    return 0;
}

/* ---- health, runtimes ---- */

int client_health(struct client *client, int argc, char **argv)
{
    static const char usage[] = "Usage: brigctl health [--json]\n"
                                "Says whether the server works; ends with 1 if it does not.\n";
    struct brig_error err = {0};
    json_t *answer = NULL, *value;
    const char *name;
    int status = 0;
    if (take_words(client, argc, argv, usage, 0, &status) < 0)
        return status;
    int result = ask(client, "GET", "/health", &answer, &err);
    if (result < 0)
        return client_complain(&err);
    json_object_foreach(answer, name, value)
    {
        print_member(client, name, value);
    }
    json_decref(answer);
    return result;
}

static void print_runtime(const struct client *client, const json_t *runtime)
{
    const json_t *available = json_object_get(runtime, "available");
    bool missing = json_is_false(available);
    const char *state = missing ? "missing" : "ok";
    const char *note = json_string_value(json_object_get(runtime, "reason"));
    (void)printf("%-12s %s%s%s", str_shown(text_of(runtime, "name")).text,
                 client_colour(client, state), state, client_plain(client));
    (void)printf(missing && note ? "  %s\n" : "\n", note ? str_shown(note).text : "");
}

int client_runtimes(struct client *client, int argc, char **argv)
{
    static const char usage[] = "Usage: brigctl runtimes [--json]\nLists what can be run.\n";
    struct brig_error err = {0};
    json_t *answer = NULL;
    int status = 0;
    if (take_words(client, argc, argv, usage, 0, &status) < 0)
        return status;
    if (ask(client, "GET", "/runtimes", &answer, &err) < 0)
        return client_complain(&err);
    const json_t *rows = json_object_get(answer, "runtimes");
    for (size_t i = 0; i < json_array_size(rows); i++)
        print_runtime(client, json_array_get(rows, i));
    json_decref(answer);
    return 0;
}
