/* SPDX-License-Identifier: MIT */
/* `brig allow`: lists the destinations that runs with --net ask wait for, and answers. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/jails.h"
#include "cli/network/ask.h"
#include "cli/report.h"
#include "home/storage.h"

#define RUNS_MAX 64
#define REPLY_MS 10000

enum answer { ANSWER_ONCE, ANSWER_ALWAYS, ANSWER_NEVER };

struct wanted {
    const char *jail; /* NULL: any */
    const char *host; /* HOST or HOST:PORT; NULL: list */
    enum answer answer;
    bool answer_given;
};

/* A run that waits, as it describes itself: see ask.h. */
struct asking_run {
    struct sockaddr_un address;
    char *text;                              /* owned */
    const char *jail, *storage;              /* in `text` */
    const char *lines[ASK_DESTINATIONS_MAX]; /* "waiting NAME:PORT", in `text` */
    size_t count;
};

struct asking_runs {
    struct asking_run items[RUNS_MAX];
    size_t count;
    int directories[SOCKETS_PLACES]; /* addresses refer to them */
};

static void runs_close(struct asking_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        free(runs->items[i].text);
    for (size_t i = 0; i < SOCKETS_PLACES; i++)
        own_close(&runs->directories[i]);
}

/* ---- speaking with a run ---- */

/* Returns the reply, which the caller frees; or NULL with errno. */
static char *request(const struct sockaddr_un *address, const char *text)
{
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 ||
        send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 || poll(&waiting, 1, REPLY_MS) <= 0)
        return NULL;
    autofree char *reply = calloc(1, ASK_TEXT_MAX + 1);
    ssize_t length = reply ? recv(fd, reply, ASK_TEXT_MAX, 0) : -1;
    return length > 0 ? take_ptr(&reply) : NULL;
}

static void read_description(struct asking_run *run)
{
    run->jail = run->storage = "";
    char *rest = run->text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (str_starts_with(line, "jail "))
            run->jail = line + strlen("jail ");
        else if (str_starts_with(line, "storage "))
            run->storage = line + strlen("storage ");
        else if (*line && run->count < ASK_DESTINATIONS_MAX)
            run->lines[run->count++] = line;
    }
}

static void add_run(struct asking_runs *runs, int directory, const char *name)
{
    char key[64];
    size_t length = strlen(name);
    if (!str_starts_with(name, ASK_SOCKET_PREFIX) || !str_ends_with(name, ".sock") ||
        length - 5 >= sizeof key || runs->count == RUNS_MAX)
        return;
    (void)snprintf(key, sizeof key, "%.*s", (int)(length - 5), name);
    struct asking_run *run = &runs->items[runs->count];
    *run = (struct asking_run){0};
    if (sockets_address(directory, key, &run->address, NULL) < 0)
        return;
    run->text = request(&run->address, "list");
    if (!run->text && errno == ECONNREFUSED) /* its process has ended */
        (void)unlinkat(directory, name, 0);
    if (!run->text)
        return;
    read_description(run);
    runs->count++;
}

static void runs_open(struct asking_runs *runs, const struct jails_place *place)
{
    for (unsigned i = 0; i < SOCKETS_PLACES; i++)
        runs->directories[i] = -1;
    for (unsigned i = 0; i < SOCKETS_PLACES; i++) {
        runs->directories[i] = sockets_open(i, place->uid, place->storage);
        int copy = runs->directories[i] < 0
                       ? -1
                       : openat(runs->directories[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        autodir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir && copy >= 0)
            (void)close(copy);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir)))
            add_run(runs, runs->directories[i], entry->d_name);
    }
}

/* ---- the verb ---- */

/* The destination in a line "waiting NAME:PORT". */
static const char *destination_of(const char *line)
{
    const char *blank = strchr(line, ' ');
    return blank ? blank + 1 : "";
}

static bool is_jail(const struct wanted *wanted, const struct asking_run *run)
{
    return !wanted->jail || strcmp(wanted->jail, run->jail) == 0;
}

static int list(const struct asking_runs *runs, const struct wanted *wanted, struct brig_error *err)
{
    autostr struct str out = {0};
    for (size_t i = 0; i < runs->count; i++)
        for (size_t k = 0; is_jail(wanted, &runs->items[i]) && k < runs->items[i].count; k++) {
            const char *line = runs->items[i].lines[k];
            str_appendf(&out, "%-8.*s %s  (jail %s)\n", (int)strcspn(line, " "), line,
                        str_shown(destination_of(line)).text, str_shown(runs->items[i].jail).text);
        }
    if (out.length == 0)
        message_note("nothing waits to be allowed");
    return message_print(&out, err);
}

static bool has_match(const struct asking_run *run, const struct wanted *wanted)
{
    for (size_t i = 0; is_jail(wanted, run) && i < run->count; i++)
        if (ask_is_about(destination_of(run->lines[i]), wanted->host))
            return true;
    return false;
}

/* A name without a port allows the one port that was asked for. With several, the user may have seen
 * only one of them. */
static int refuse_other_ports(const struct asking_runs *runs, const struct wanted *wanted,
                              struct brig_error *err)
{
    const char *first = NULL;
    for (size_t i = 0; i < runs->count; i++)
        for (size_t k = 0; is_jail(wanted, &runs->items[i]) && k < runs->items[i].count; k++) {
            const char *destination = destination_of(runs->items[i].lines[k]);
            if (!ask_is_about(destination, wanted->host))
                continue;
            if (first && strcmp(first, destination) != 0)
                return brig_fail(err, BRIG_E_INVALID, 0,
                                 "the command asked for %s and for %s; choose one of them",
                                 str_shown(first).text, str_shown(destination).text);
            first = destination;
        }
    return 0;
}

/* Keeps the answer in the jail's file: 1, or 0 if there is none. */
static int keep(const struct jails_place *place, const struct asking_run *run, const char *line,
                struct brig_error *err)
{
    autofree char *file = NULL;
    int status = str_make(&file, err, run->storage, "/", run->jail, ".jail");
    if (status < 0)
        return status;
    identity_enter(&place->identity);
    bool exists = access(file, F_OK) == 0;
    if (exists)
        status = jail_file_add_rule(run->storage, run->jail, line, err);
    identity_leave(&place->identity);
    if (!exists)
        message_warning("this run keeps no jail, so the answer holds until it ends");
    return status < 0 ? status : exists;
}

static int send_rule(const struct jails_place *place, const struct asking_run *run,
                     const struct wanted *wanted, const char *rule, struct brig_error *err)
{
    autostr struct str line = {0};
    str_concat(&line, wanted->answer == ANSWER_NEVER ? "deny " : "allow ", rule);
    if (line.failed)
        return brig_fail_nomem(err);
    int kept = wanted->answer == ANSWER_ONCE ? 0 : keep(place, run, line.data, err);
    if (kept < 0)
        return kept;
    autofree char *reply = request(&run->address, line.data);
    if (!reply || strcmp(reply, "ok") != 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the run in the jail '%s' did not take it: %s",
                         str_shown(run->jail).text, reply ? str_shown(reply).text : "no answer");
    message_note("%s %s in the jail '%s'%s", wanted->answer == ANSWER_NEVER ? "denied" : "allowed",
                 str_shown(rule).text, str_shown(run->jail).text,
                 wanted->answer == ANSWER_ONCE ? " until the run ends" : " from now on");
    if (kept)
        message_note("to take it back, remove the line '%s' from '%s/%s.jail'",
                     str_shown(line.data).text, str_shown(run->storage).text,
                     str_shown(run->jail).text);
    return 0;
}

/* Sends a rule for each destination that matches; without a port, `never` denies all ports. */
static int answer_run(const struct jails_place *place, const struct asking_run *run,
                      const struct wanted *wanted, struct brig_error *err)
{
    if (wanted->answer == ANSWER_NEVER)
        return send_rule(place, run, wanted, wanted->host, err);
    int status = 0;
    for (size_t i = 0; i < run->count && status == 0; i++)
        if (ask_is_about(destination_of(run->lines[i]), wanted->host))
            status = send_rule(place, run, wanted, destination_of(run->lines[i]), err);
    return status;
}

static int answer(const struct jails_place *place, const struct asking_runs *runs,
                  const struct wanted *wanted, struct brig_error *err)
{
    const char *jail = NULL;
    for (size_t i = 0; i < runs->count; i++) {
        const struct asking_run *run = &runs->items[i];
        if (!has_match(run, wanted))
            continue;
        if (jail && strcmp(jail, run->jail) != 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the jails '%s' and '%s' both wait for '%s'; choose one with -j",
                             str_shown(jail).text, str_shown(run->jail).text,
                             str_shown(wanted->host).text);
        jail = run->jail;
    }
    if (!jail)
        return brig_fail(err, BRIG_E_INVALID, 0, "nothing waits for '%s'; see brig allow",
                         str_shown(wanted->host).text);
    int status = wanted->answer == ANSWER_NEVER ? 0 : refuse_other_ports(runs, wanted, err);
    for (size_t i = 0; i < runs->count && status == 0; i++)
        if (has_match(&runs->items[i], wanted))
            status = answer_run(place, &runs->items[i], wanted, err);
    return status;
}

static int read_words(const struct app *app, int argc, char **argv, struct wanted *wanted,
                      struct brig_error *err)
{
    static const char *const answers[] = {
        [ANSWER_ONCE] = "--once", [ANSWER_ALWAYS] = "--always", [ANSWER_NEVER] = "--never"};
    for (int i = 1; i < argc;) {
        size_t which = 0;
        if (jails_take_option(argc, argv, &i, &wanted->jail))
            continue;
        while (which < ARRAY_LENGTH(answers) && strcmp(answers[which], argv[i]) != 0)
            which++;
        if (which < ARRAY_LENGTH(answers)) {
            wanted->answer = (enum answer)which;
            wanted->answer_given = true;
        } else if (argv[i][0] == '-' || wanted->host) {
            return command_refuse(app, argc, argv, i, err);
        } else {
            wanted->host = argv[i];
        }
        i++;
    }
    if (wanted->answer_given && !wanted->host)
        return brig_fail(err, BRIG_E_INVALID, 0, "which destination? See brig allow");
    return 0;
}

static int run(const struct app *app, int argc, char **argv, struct brig_error *err)
{
    struct jails_place place;
    struct wanted wanted = {0};
    static struct asking_runs runs; /* large */
    int status = read_words(app, argc, argv, &wanted, err);
    if (status == 0)
        status = jails_place_find(&place, err);
    if (status < 0)
        return status;
    runs_open(&runs, &place);
    status = wanted.host ? answer(&place, &runs, &wanted, err) : list(&runs, &wanted, err);
    runs_close(&runs);
    return status;
}

const struct command cmd_allow = {
    .name = "allow",
    .summary = "list or answer connections that wait for you (network \"ask\")",
    .usage = "[-j NAME] [--once|--always|--never] [HOST[:PORT]]",
    .words = COMMAND_WORDS_NONE,
    .run = run,
};
