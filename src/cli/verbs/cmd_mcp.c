/* SPDX-License-Identifier: MIT */
/* `brig mcp`: replaces itself with brig-mcp, a server of the Model Context Protocol that runs code in
 * a jail. `brig mcp-wrap`: runs another such server in a jail. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/beside.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/run/setup.h"
#include "cli/settings/config.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

static const char *const places[] = {"brig-mcp", "../mcp/brig-mcp", "../libexec/brig/brig-mcp",
                                     NULL};
static const struct beside_program program = {
    .name = "brig-mcp",
    .places = places,
    .installed = BRIG_MCP_PATH,
    .advice = "Build brig with jansson to have it",
};

/* ---- Words ---- */

/* A command line; the words are borrowed. */
struct words {
    const char **items; /* owned; ends with NULL */
    size_t count, room;
};

static void words_done(struct words *words)
{
    free(words->items);
}
#define autowords __attribute__((cleanup(words_done)))

/* Makes room for these many, and the NULL. */
static int words_init(struct words *words, size_t room, struct brig_error *err)
{
    *words = (struct words){.items = calloc(room + 1, sizeof *words->items), .room = room};
    return words->items ? 0 : brig_fail_nomem(err);
}

static void add(struct words *words, const char *word)
{
    if (words->count < words->room)
        words->items[words->count++] = word;
}

static void add_all(struct words *words, char *const *more, int count)
{
    for (int i = 0; i < count; i++)
        add(words, more[i]);
}

/* Options about one run, such as --result, mean nothing for a server. */
static int refuse_run_options(const char *verb, const struct settings_scan *scan,
                              struct brig_error *err)
{
    for (int i = 0; i < OPTION_COUNT_; i++)
        if (scan->given[i] && option_rows[i].group == OPTION_GROUP_RUN)
            return brig_fail(err, BRIG_E_INVALID, 0, "brig %s does not take --%s", verb,
                             option_rows[i].long_name);
    return 0;
}

/* Builds the policy of a run without running it, so that a wrong option is reported at once. */
static int try_words(struct words *words, struct setup *setup, struct brig_error *err)
{
    struct settings_scan scan;
    char **argv = (char **)(uintptr_t)words->items;
    int status = settings_scan((int)words->count, argv, &scan, err);
    return status < 0 ? status : setup_make(setup, &scan, scan.command, argv, true, err);
}

#define DIRECTORY_AT 3 /* where words about the working directory begin */

/* The same. Clients start servers in any directory: one that cannot be granted is left out, and the
 * `count` words about it become -D. */
static int try_directory(struct words *words, size_t count, struct setup *setup, bool *ret_project,
                         struct brig_error *err)
{
    struct brig_error second = {0};
    *ret_project = true;
    int status = try_words(words, setup, err);
    if (status == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        words->items[DIRECTORY_AT + i] = "-D";
    if (try_words(words, setup, &second) < 0)
        return status;
    *ret_project = false;
    message_note("no files of yours are granted: %s", err->message);
    *err = (struct brig_error){0};
    return 0;
}

/* ---- brig mcp ---- */

#define NAME_LENGTH 24

static int make_name(char name[static NAME_LENGTH], struct brig_error *err)
{
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "no random numbers");
    (void)snprintf(name, NAME_LENGTH, "mcp-%08x", number);
    return 0;
}

/* Whether a run can connect to anything. */
static bool reaches_network(const struct settings *settings)
{
    const struct brig_policy *policy = settings->policy;
    return policy->network == BRIG_NET_OPEN || policy->network == BRIG_NET_HOST ||
           policy->net.rules.count > 0 || settings->inject_count > 0;
}

/* Becomes the server; `run` are the words of each run, from the verb on. */
static int serve(const struct words *run, const char *jail, bool kept, bool open, bool project,
                 uint64_t timeout_s, struct brig_error *err)
{
    autowords struct words words = {0};
    const struct str_number timeout = str_number(timeout_s);
    int status = words_init(&words, run->count + 8, err);
    if (status < 0)
        return status;
    add(&words, jail);
    add(&words, kept ? "kept" : "own");
    add(&words, open ? "open" : "closed");
    add(&words, project ? "project" : "none");
    add(&words, timeout.text);
    for (size_t i = 1; i < run->count; i++)
        add(&words, run->items[i]);
    status = beside_become_user(err);
    return status < 0 ? status : beside_execute(&program, "serve", words.items, err);
}

static int run_mcp(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct settings_scan scan;
    char made[NAME_LENGTH];
    uint64_t timeout_ms = 0;
    int status = settings_scan(argc, argv, &scan, err);
    if (status == 0 && scan.given[OPTION_HELP])
        return help_print_command(app->command, err);
    if (status == 0)
        status = refuse_run_options("mcp", &scan, err);
    if (status == 0 && scan.command < argc)
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "brig mcp runs no command. To run another server in a jail: brig "
                           "mcp-wrap -- %s",
                           str_shown(argv[scan.command]).text);
    if (status == 0 && scan.given[OPTION_TIMEOUT] &&
        strcmp(scan.given[OPTION_TIMEOUT], "none") != 0)
        status = parse_duration(scan.given[OPTION_TIMEOUT], 0, &timeout_ms, err);
    const char *jail = scan.given[OPTION_JAIL];
    if (status == 0 && !jail)
        status = make_name(made, err);
    autowords struct words words = {0};
    if (status == 0)
        status = words_init(&words, (size_t)argc + 12, err);
    if (status < 0)
        return status;
    bool kept = jail != NULL, project;
    jail = kept ? jail : made;
    add(&words, "run");
    add(&words, "-j");
    add(&words, jail);
    add(&words, "-R");
    add(&words, "--net");
    add(&words, "allow");
    /* A client that ends waits for a few seconds only. */
    add(&words, "--grace");
    add(&words, "1s");
    add_all(&words, argv + 1, scan.command - 1);
    struct setup setup;
    status = try_directory(&words, 1, &setup, &project, err);
    if (status < 0)
        return status;
    bool open = reaches_network(&setup.settings);
    setup_done(&setup);
    if (isatty(STDIN_FILENO))
        message_note("waiting for a client of the Model Context Protocol, not for a person. To add "
                     "brig to an agent: claude mcp add brig -- brig mcp");
    return serve(&words, jail, kept, open, project, (timeout_ms + 999) / 1000, err);
}

const struct command cmd_mcp = {
    .name = "mcp",
    .summary = "serve a jail to an agent, by the Model Context Protocol",
    .usage = "[OPTIONS]",
    .words = COMMAND_WORDS_RUN,
    .run = run_mcp,
};

/* ---- brig mcp-wrap ---- */

#define RULES_FOLDER "mcp"
#define SERVER_LINE "# server: "
#define RULES_FD "fd:3" /* of brig-mcp */
#define HEAD_BYTES 4096

/* What a wrapped server is called, and where its rules are. */
struct wrap {
    char name[SETTINGS_JAIL_MAX - 4]; /* the jail is mcp-NAME */
    char jail[SETTINGS_JAIL_MAX + 1];
    struct str server; /* the words of its command up to the one that names it, for people */
    char directory[PATH_LENGTH_MAX + 1];
    char path[PATH_LENGTH_MAX + 1]; /* of the rules */
    char include[64];               /* the file that a run would read without the rules */
    bool learned;
};

static void wrap_done(struct wrap *wrap)
{
    str_done(&wrap->server);
}

/* Programs that run the server that their first argument names. */
static bool is_runner(const char *name)
{
    static const char *const names[] = {"npx",  "npm",  "pnpm", "bunx", "bun",  "yarn",
                                        "node", "deno", "uvx",  "uv",   "pipx", "ruby",
                                        "sh",   "bash", "env",  "java", NULL};
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return str_starts_with(name, "python");
}

static bool is_subcommand(const char *word)
{
    return strcmp(word, "run") == 0 || strcmp(word, "exec") == 0 || strcmp(word, "x") == 0 ||
           strcmp(word, "dlx") == 0 || strcmp(word, "tool") == 0;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Whether one of the words is a subcommand, as in `uv --directory X run a.py`. */
static bool has_subcommand(int count, char *const *words)
{
    for (int i = 0; i < count; i++)
        if (is_subcommand(words[i]))
            return true;
    return false;
}

/* A variable for `env`, which may be a secret. */
static bool is_assignment(const char *word)
{
    return word[0] != '-' && strchr(word, '=');
}

/* The index of the word that names the server. A word after a long option may be its value. */
static int naming_word(int count, char *const *words)
{
    if (!is_runner(base_of(words[0])))
        return 0;
    for (int i = 1; i < count; i++) {
        bool is_value = str_starts_with(words[i - 1], "--") && !strchr(words[i - 1], '=') &&
                        has_subcommand(count - i, words + i);
        if (words[i][0] != '-' && !is_subcommand(words[i]) && !is_assignment(words[i]) &&
            !is_runner(base_of(words[i])) && !is_value)
            return i;
    }
    return 0;
}

/* "@scope/server-x@1.2" and "build/server-x.js" are "server-x". */
static void take_name(const char *word, char *name, size_t size)
{
    const char *base = base_of(word);
    size_t length = 0;
    const char *version = strchr(base + (*base == '@'), '@');
    size_t end = version ? (size_t)(version - base) : strlen(base);
    const char *dot = memrchr(base, '.', end);
    if (dot && dot > base)
        end = (size_t)(dot - base);
    for (size_t i = 0; i < end && length + 1 < size; i++) {
        char c = base[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("._-", c);
        if (plain && (length > 0 || c != '.'))
            name[length++] = c;
    }
    name[length] = '\0';
}

static int find_names(struct wrap *wrap, const char *given, int count, char *const *words,
                      struct brig_error *err)
{
    int naming = naming_word(count, words);
    if (given && strlen(given) < sizeof wrap->name)
        (void)str_fill(wrap->name, sizeof wrap->name, given);
    else if (!given)
        take_name(words[naming], wrap->name, sizeof wrap->name);
    if (!wrap->name[0] || settings_check_jail(wrap->name, NULL) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' cannot be the name of a server. Give it a short one: --name NAME",
                         str_shown(given ? given : words[naming]).text);
    (void)str_fill(wrap->jail, sizeof wrap->jail, "mcp-", wrap->name);
    for (int i = 0; i <= naming; i++)
        if (!is_assignment(words[i]))
            str_concat(&wrap->server, i > 0 ? " " : "", str_shown(words[i]).text);
    return wrap->server.failed ? brig_fail_nomem(err) : 0;
}

/* Finds the file with the rules, and refuses rules that belong to another server. */
static int find_rules(struct wrap *wrap, const char *program_name, bool relearn,
                      struct brig_error *err)
{
    struct identity identity;
    struct config_files files = {0};
    char cwd[PATH_LENGTH_MAX + 1] = "/", own[PATH_LENGTH_MAX + 1];
    (void)!getcwd(cwd, sizeof cwd);
    identity_find(&identity);
    int status = config_files_find(&files, &identity, cwd, err);
    if (status < 0)
        return status;
    autostr struct str text = {0};
    bool fits = str_fill(wrap->directory, sizeof wrap->directory, files.dir, "/" RULES_FOLDER) &&
                str_fill(wrap->path, sizeof wrap->path, wrap->directory, "/", wrap->name, ".conf");
    identity_enter(&identity);
    autoclose int fd = open(wrap->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    wrap->learned = fd >= 0 && read_all(fd, HEAD_BYTES, &text) == 0;
    bool special = str_fill(own, sizeof own, files.dir, "/", base_of(program_name), ".conf") &&
                   access(own, F_OK) == 0 && strlen(base_of(program_name)) < 48;
    identity_leave(&identity);
    (void)str_fill(wrap->include, sizeof wrap->include, special ? base_of(program_name) : "default",
                   ".conf");
    config_files_done(&files);
    const char *line = text.data ? strstr(text.data, SERVER_LINE) : NULL;
    line = line ? line + strlen(SERVER_LINE) : NULL;
    size_t length = line ? strcspn(line, "\n") : 0;
    if (fits && line && !relearn &&
        (wrap->server.length != length || memcmp(line, wrap->server.data, length) != 0))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the rules in '%s' were learned for '%.*s'. Give this server another name "
                         "with --name, or learn anew with --relearn",
                         wrap->path, (int)length, line);
    return fits ? 0 : brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "'%s'", wrap->path);
}

/* Becomes brig-mcp, which runs the server once with an open network. */
static int learn(const struct wrap *wrap, struct words *run, struct brig_error *err)
{
    autostr struct str header = {0};
    autowords struct words words = {0};
    struct identity identity;
    autoclose int directory = -1;
    identity_find(&identity);
    identity_enter(&identity);
    int status = config_make_directory(wrap->directory, &directory, err);
    identity_leave(&identity);
    if (status == 0)
        status = words_init(&words, run->count + 4, err);
    if (status < 0)
        return status;
    str_concat(&header,
               "# The network of an MCP server, learned by brig mcp-wrap. You can edit it; "
               "--relearn writes it anew.\n" SERVER_LINE,
               wrap->server.data, "\nconf? ", wrap->include, "\n");
    if (header.failed)
        return brig_fail_nomem(err);
    message_note("first run of '%s': the network is open, and brig keeps the destinations in %s",
                 wrap->name, wrap->path);
    add(&words, wrap->path);
    add(&words, header.data);
    for (size_t i = 0; i < run->count; i++)
        add(&words, run->items[i]);
    status = beside_become_user(err);
    return status < 0 ? status : beside_execute(&program, "learn", words.items, err);
}

/* Parses the options of mcp-wrap itself, which come first. Returns the index of the next word. */
static int wrap_options(int argc, char **argv, const char **ret_name, bool *ret_relearn)
{
    int at = 1;
    for (; at < argc; at++) {
        if (strcmp(argv[at], "--relearn") == 0)
            *ret_relearn = true;
        else if (strncmp(argv[at], "--name=", strlen("--name=")) == 0)
            *ret_name = argv[at] + strlen("--name=");
        else if (strcmp(argv[at], "--name") == 0 && at + 1 < argc)
            *ret_name = argv[++at];
        else
            break;
    }
    return at;
}

/* Makes the command line of a run. A network that the user has typed is not learned. */
static int wrap_words(const struct wrap *wrap, const struct settings_scan *scan, int argc,
                      char **argv, bool learns, struct words *words, struct brig_error *err)
{
    struct setup setup;
    bool project;
    int status = words_init(words, (size_t)argc + 16, err);
    if (status < 0)
        return status;
    add(words, "run");
    add(words, "-j");
    add(words, wrap->jail);
    add(words, "-r");
    add(words, ".");
    if (wrap->learned && !learns) {
        add(words, "-C");
        add(words, wrap->path);
    }
    add_all(words, argv + 1, scan->command - 1);
    if (strcmp(words->items[words->count - 1], "--") == 0)
        words->count--;
    status = try_directory(words, 2, &setup, &project, err);
    if (status < 0)
        return status;
    setup_done(&setup);
    if (learns) {
        add(words, "--net");
        add(words, "learn");
        add(words, "--net-rules");
        add(words, RULES_FD);
    }
    add(words, "--");
    add_all(words, argv + scan->command, argc - scan->command);
    return 0;
}

static int run_mcp_wrap(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct settings_scan scan;
    __attribute__((cleanup(wrap_done))) struct wrap wrap = {0};
    const char *name = NULL;
    bool relearn = false;
    int skip = wrap_options(argc, argv, &name, &relearn) - 1;
    argc -= skip;
    argv += skip;
    int status = settings_scan(argc, argv, &scan, err);
    if (status == 0 && scan.given[OPTION_HELP])
        return help_print_command(app->command, err);
    if (status == 0)
        status = refuse_run_options("mcp-wrap", &scan, err);
    if (status == 0 && scan.command >= argc)
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "mcp-wrap needs a command: brig mcp-wrap -- npx -y SERVER");
    if (status == 0 && (scan.given[OPTION_CONF] || scan.given[OPTION_JAIL]))
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "mcp-wrap chooses the jail and the configuration file by the name of "
                           "the server. Use --name NAME");
    if (status == 0)
        status = find_names(&wrap, name, argc - scan.command, argv + scan.command, err);
    if (status == 0)
        status = find_rules(&wrap, argv[scan.command], relearn, err);
    if (status < 0)
        return status;
    bool typed = scan.given[OPTION_NET] || scan.given[OPTION_ALLOW];
    bool learns = !typed && (relearn || !wrap.learned);
    autowords struct words words = {0};
    status = wrap_words(&wrap, &scan, argc, argv, learns, &words, err);
    if (status == 0 && learns)
        return learn(&wrap, &words, err);
    return status < 0 ? status
                      : cmd_run.run(app, (int)words.count, (char **)(uintptr_t)words.items, err);
}

const struct command cmd_mcp_wrap = {
    .name = "mcp-wrap",
    .summary = "run another MCP server in a jail, with a learned network",
    .usage = "[--name NAME] [--relearn] [OPTIONS] -- CMD...",
    .words = COMMAND_WORDS_RUN,
    .run = run_mcp_wrap,
};
