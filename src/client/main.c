/* SPDX-License-Identifier: MIT */
/* brigctl: the command line client of brigd. It trusts the configured server with the API key and
 * the request. It does not trust the output of programs in the answers. */
#include <curl/curl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/str.h"
#include "client/client.h"

static const struct command {
    const char *name, *summary;
    int (*run)(struct client *client, int argc, char **argv);
} commands[] = {
    {"exec", "run code, from a file, an argument or standard input", client_exec},
    {"claude", "let Claude Code work in a directory", client_claude},
    {"submit", "queue code, and print the id of the execution", client_submit},
    {"wait", "wait for an execution, and print its output", client_wait},
    {"ls", "list executions", client_ask},
    {"show", "print the details of an execution", client_ask},
    {"kill", "end a running or queued execution", client_ask},
    {"health", "print the state of the server", client_ask},
    {"runtimes", "list the languages and agents of the server", client_ask},
};

static void print_usage(void)
{
    (void)fputs("Usage: brigctl [OPTION]... COMMAND [ARGUMENT]...\n"
                "Runs code on a brigd server.\n\n",
                stdout);
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        (void)printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    (void)fputs(
        "\n"
        "  -s, --server URL  http://HOST:PORT, https://HOST or unix:/PATH\n"
        "                    (default: BRIG_SERVER, the file, http://127.0.0.1:8080)\n"
        "  -k, --key KEY     the API key (better: BRIG_API_KEY, or the file)\n"
        "      --cacert FILE the CA certificate, or a self-signed certificate of the server\n"
        "                    (default: BRIG_CACERT, the file, the CAs of the system)\n"
        "      --json        print the JSON of the server\n"
        "  -h, --help        print this help, or after a command the help of it\n"
        "  -V, --version     the version\n"
        "\n"
        "The file is ~/.config/brig/brigctl.conf, with lines 'server = URL', 'key = KEY' and\n"
        "'cacert = FILE'.\n",
        stdout);
}

int client_complain(const struct brig_error *err)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "brigctl: %s\n", err->message);
    return CLIENT_FAILED;
}

/* Returns 0, or the exit status plus one. */
static int take_options(struct client *client, int argc, char **argv)
{
    static const struct option options[] = {{"server", required_argument, NULL, 's'},
                                            {"key", required_argument, NULL, 'k'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {"cacert", required_argument, NULL, 'C'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "+s:k:hV", options, NULL)) != -1;) {
        switch (option) {
        case 's':
            client->server = optarg;
            break;
        case 'k':
            client->key = optarg;
            break;
        case 'C':
            client->cacert = optarg;
            break;
        case 'j':
            client->json = true;
            break;
        case 'h':
            print_usage();
            return 1;
        case 'V':
            (void)printf("brigctl %s\n", brig_version());
            return 1;
        default:
            (void)fputs("Try 'brigctl --help'.\n", stderr);
            return 1 + CLIENT_USAGE;
        }
    }
    return 0;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static void say_unknown(const char *name)
{
    struct nearest nearest;
    nearest_begin(&nearest, name ? name : "");
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        nearest_offer(&nearest, commands[i].name, strlen(commands[i].name));
    if (!name)
        (void)fputs("brigctl: no command was given. See brigctl --help\n", stderr);
    else if (nearest.best[0])
        (void)fprintf(stderr, "brigctl: unknown command '%s'. Did you mean '%s'?\n",
                      str_shown(name).text, nearest.best);
    else
        (void)fprintf(stderr, "brigctl: unknown command '%s'. See brigctl --help\n",
                      str_shown(name).text);
}

static int run(struct client *client, int argc, char **argv)
{
    struct client_settings storage = {0};
    struct brig_error err = {0};
    const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;
    if (!command) {
        say_unknown(argc > 0 ? argv[0] : NULL);
        return CLIENT_USAGE;
    }
    /* getopt prints this name in its error messages. */
    char name[32];
    (void)snprintf(name, sizeof name, "brigctl %s", command->name);
    argv[0] = name;
    int result = client_settle(client, &storage, &err);
    int status = result < 0 ? client_complain(&err) : command->run(client, argc, argv);
    client_settings_done(&storage);
    return status;
}

int main(int argc, char **argv)
{
    struct client client = {0};
    const char *no_colour = getenv("NO_COLOR");
    client.colour = isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]);
    int ended = take_options(&client, argc, argv);
    if (ended)
        return ended - 1;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = run(&client, argc - optind, argv + optind);
    curl_global_cleanup();
    if (fflush(stdout) != 0 || ferror(stdout))
        return CLIENT_FAILED;
    return status;
}
