/* SPDX-License-Identifier: MIT */
/* OAuth tokens of agents: taken from the store, and refreshed while a run lasts. */
#include "cli/credentials/oauth.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/process.h"
#include "base/str.h"
#include "cli/host_command.h"
#include "cli/identity.h"
#include "cli/settings/profile.h"
#include "cli/settings/settings.h"
#include "net/broker_wire.h"
#include "policy/policy.h"

#define WORDS_MAX 24
#define LINE_MAX_BYTES (POLICY_SECRET_MAX + 512) /* "SERIAL EXPIRES ACCOUNT ACCESS" */
#define EARLY_S 300                              /* as in src/token/main.c */
#define RETRY_S 60                               /* between two refreshes */
#define EXIT_NO_EXEC 127

/* The token of one agent. */
struct item {
    char agent[PROFILE_NAME_MAX];
    char *line; /* the facts; words of it are in `words` */
    char *words[WORDS_MAX + 1];
    unsigned inject; /* its number in the policy */
    char name[256];  /* of the service, as in events */
    uint64_t serial; /* of the token that the broker has */
    int64_t expires; /* 0: unknown */
    int64_t retry;   /* not before this time */
    uint64_t forced; /* the serial number for which a refresh was forced */
    uint64_t generation;
    bool due;  /* a refresh was requested by a 401 */
    pid_t pid; /* a refresh in progress, or 0 */
    int pipe;
    char text[LINE_MAX_BYTES];
    size_t length;
};

struct oauth {
    const struct identity *identity;
    char program[PATH_LENGTH_MAX + 1], storage[PATH_LENGTH_MAX + 1];
    int memory, readable; /* the memfd of live secrets, for us and for the broker */
    struct item items[OAUTH_MAX];
    size_t count;
};

/* ---- Facts ---- */

static bool find_program(char *path, size_t size)
{
    static const char *const places[] = {"brig-token", "../token/brig-token",
                                         "../libexec/brig/brig-token", NULL};
    return path_find_program(places, BRIG_TOKEN_PATH, path, size);
}

static bool is_agent(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name) &&
           strlen(name) < PROFILE_NAME_MAX;
}

bool oauth_directory(const char *storage, const char *agent, char *path, size_t size)
{
    int length = snprintf(path, size, "%s/.agents/%s", storage, agent);
    return length > 0 && (size_t)length < size;
}

bool oauth_is_kept(const struct settings *settings, const char *agent)
{
    char directory[PATH_LENGTH_MAX + 1], path[PATH_LENGTH_MAX + 32];
    if (!is_agent(agent) || !oauth_directory(settings->storage, agent, directory, sizeof directory))
        return false;
    (void)snprintf(path, sizeof path, "%s/credential.json", directory);
    return access(path, F_OK) == 0;
}

/* The facts of the agent: of its built-in profile and of the user's file AGENT.conf, whatever the
 * program of the run is. */
static int read_facts(const struct settings *settings, const struct identity *identity,
                      const char *agent, char **ret_line, struct brig_error *err)
{
    struct profile profile = {0};
    char path[PATH_LENGTH_MAX + 1];
    const struct profile_text *text = is_agent(agent) ? profile_find(agent) : NULL;
    if (!text)
        return brig_fail(err, BRIG_E_INVALID, 0, "there is no profile of an agent '%s'",
                         str_shown(agent).text);
    int status = profile_read(text, &profile, err);
    identity_enter(identity);
    if (status == 0 && str_fill(path, sizeof path, settings->config_dir, "/", agent, ".conf"))
        status = profile_read_file(path, &profile, err);
    identity_leave(identity);
    const char *line = status == 0 ? profile_get(&profile, PROFILE_OAUTH) : NULL;
    if (status == 0 && !line)
        status = brig_fail(err, BRIG_E_INVALID, 0,
                           "the profile of '%s' does not say how its tokens are refreshed", agent);
    if (status == 0)
        status = str_copy(line, ret_line, err);
    profile_done(&profile);
    return status;
}

static void split(char *line, char *words[WORDS_MAX + 1])
{
    size_t count = 0;
    for (char *word; count < WORDS_MAX && (word = strsep(&line, " \t"));)
        if (*word)
            words[count++] = word;
    words[count] = NULL;
}

/* ---- The program ---- */

static __attribute__((noreturn)) void execute(const char *program, const char *verb,
                                              const char *directory, char *const *words,
                                              const char *stale, const struct identity *identity,
                                              const int fds[3])
{
    const char *argv[WORDS_MAX + 6] = {program, verb, directory};
    size_t count = 3;
    for (size_t i = 0; words[i]; i++)
        argv[count++] = words[i];
    if (stale)
        argv[count++] = stale;
    bool ready = true;
    for (int i = 0; i < 3; i++)
        ready = ready && (fds[i] == i || dup2(fds[i], i) >= 0);
    if (ready && identity_become(identity) == 0)
        (void)execve(program, (char *const *)(uintptr_t)argv, environ);
    _exit(EXIT_NO_EXEC);
}

static int run(const struct settings *settings, const struct identity *identity, const char *agent,
               char *const *words, const char *verb, int input, char **ret_text,
               struct brig_error *err)
{
    char program[PATH_LENGTH_MAX + 1], directory[PATH_LENGTH_MAX + 1];
    int pair[2];
    if (!find_program(program, sizeof program) ||
        !oauth_directory(settings->storage, agent, directory, sizeof directory))
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "brig-token is not installed");
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int from = pair[0];
    autoclose int to = pair[1];
    autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[3] = {input >= 0 ? input : null, to, STDERR_FILENO};
    pid_t pid = fork();
    if (pid == 0)
        execute(program, verb, directory, words, NULL, identity, fds);
    (void)close(take_fd(&to));
    char *text = NULL;
    if (pid > 0 && ret_text)
        (void)host_read_text(from, "brig-token", &text, NULL);
    if (pid < 0 || process_wait(pid) != 0 || (ret_text && !text)) {
        policy_free_secret(text);
        return brig_fail(err, BRIG_E_STATE, 0,
                         "there is no usable credential of '%s'. Log in: brig login %s", agent,
                         agent);
    }
    if (ret_text)
        *ret_text = text;
    return 0;
}

int oauth_keep(const struct settings *settings, const struct identity *identity, const char *agent,
               int input, struct brig_error *err)
{
    char *words[WORDS_MAX + 1];
    autofree char *line = NULL;
    int status = read_facts(settings, identity, agent, &line, err);
    if (status < 0)
        return status;
    split(line, words);
    return run(settings, identity, agent, words, "keep", input, NULL, err);
}

/* ---- Taking a token ---- */

/* Reads "SERIAL EXPIRES ACCOUNT ACCESS" in place. */
static bool parse_line(char *text, struct item *item, char **ret_account, char **ret_access)
{
    char *rest = text, *serial = strsep(&rest, " "), *expires = strsep(&rest, " ");
    *ret_account = strsep(&rest, " ");
    *ret_access = rest;
    if (!rest || !*rest || strchr(rest, ' '))
        return false;
    rest[strcspn(rest, "\n")] = '\0';
    item->serial = strtoull(serial, NULL, 10);
    item->expires = strtoll(expires, NULL, 10);
    return *rest != '\0';
}

static int make_memory(struct oauth *oauth, struct brig_error *err)
{
    oauth->memory = memfd_create("brig-live-secrets", MFD_CLOEXEC);
    if (oauth->memory < 0 ||
        ftruncate(oauth->memory, (off_t)(OAUTH_MAX * sizeof(struct door_live))) < 0 ||
        (oauth->readable = open(path_proc(oauth->memory).text, O_RDONLY | O_CLOEXEC)) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make memory for credentials");
    return 0;
}

static int begin(struct settings *settings, const struct identity *identity, struct brig_error *err)
{
    if (settings->oauth)
        return 0;
    struct oauth *oauth = calloc(1, sizeof *oauth);
    if (!oauth)
        return brig_fail_nomem(err);
    oauth->memory = oauth->readable = -1;
    oauth->identity = identity;
    settings->oauth = oauth;
    if (!find_program(oauth->program, sizeof oauth->program) ||
        !str_fill(oauth->storage, sizeof oauth->storage, settings->storage))
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0, "brig-token is not installed");
    return make_memory(oauth, err);
}

int oauth_take(struct settings *settings, const struct identity *identity, const char *agent,
               char **ret_secret, char **ret_account, struct brig_error *err)
{
    char *text = NULL, *account, *access;
    int status = begin(settings, identity, err);
    if (status < 0)
        return status;
    if (settings->oauth->count == OAUTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "at most %d OAuth tokens in a run", OAUTH_MAX);
    struct item *item = &settings->oauth->items[settings->oauth->count];
    *item = (struct item){.pipe = -1};
    status = read_facts(settings, identity, agent, &item->line, err);
    if (status < 0)
        return status;
    split(item->line, item->words);
    status = run(settings, identity, agent, item->words, "take", -1, &text, err);
    if (status == 0 && !parse_line(text, item, &account, &access))
        status = brig_fail(err, BRIG_E_STATE, 0, "brig-token gave no token");
    if (status == 0) {
        (void)snprintf(item->agent, sizeof item->agent, "%s", agent);
        status = str_copy(access, ret_secret, err);
    }
    if (status == 0 && strcmp(account, "-") != 0)
        status = str_copy(account, ret_account, err);
    if (text)
        explicit_bzero(text, POLICY_SECRET_MAX); /* parse_line() has divided it */
    free(text);
    if (status < 0)
        free(take_ptr(&item->line));
    return status;
}

int oauth_make_live(struct settings *settings, struct brig_error *err)
{
    struct oauth *oauth = settings->oauth;
    struct policy_net *net = &settings->policy->net;
    if (!oauth || net->inject_count == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "no token was taken");
    struct item *item = &oauth->items[oauth->count];
    item->inject = (unsigned)net->inject_count - 1;
    (void)snprintf(item->name, sizeof item->name, "%s", net->inject[item->inject].name);
    net->inject[item->inject].is_live = true;
    net->inject[item->inject].live = (unsigned)oauth->count++;
    net->live_fd = oauth->readable;
    return 0;
}

void oauth_free(struct oauth *oauth)
{
    if (!oauth)
        return;
    for (size_t i = 0; i < oauth->count; i++) {
        struct item *item = &oauth->items[i];
        if (item->pid > 0) {
            (void)close(item->pipe);
            /* It may be about to write a token that is valid only once. */
            (void)process_wait(item->pid);
        }
        explicit_bzero(item->text, sizeof item->text);
        free(item->line);
    }
    own_close(&oauth->memory);
    own_close(&oauth->readable);
    free(oauth);
}

/* ---- Refreshing ---- */

/* Seconds until the next refresh; -1: none. */
static int64_t seconds_left(const struct item *item, int64_t now)
{
    int64_t at = item->due ? now : (item->expires > 0 ? item->expires - EARLY_S : -1);
    if (at < 0 || item->pid > 0)
        return -1;
    at = at < item->retry ? item->retry : at;
    return at > now ? at - now : 0;
}

static void start(struct oauth *oauth, struct item *item)
{
    char directory[PATH_LENGTH_MAX + 1], stale[32];
    int pair[2];
    if (!oauth_directory(oauth->storage, item->agent, directory, sizeof directory) ||
        pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    (void)snprintf(stale, sizeof stale, "stale=%" PRIu64, item->serial);
    autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[3] = {null, pair[1], null};
    item->pid = fork();
    if (item->pid == 0)
        execute(oauth->program, "take", directory, item->words, item->due ? stale : NULL,
                oauth->identity, fds);
    (void)close(pair[1]);
    item->pipe = pair[0];
    item->length = 0;
    item->due = false;
    item->retry = (int64_t)time(NULL) + RETRY_S;
    if (item->pid < 0) {
        (void)close(item->pipe);
        item->pid = 0;
    }
}

/* Writes the value where the broker finds it before its next request. */
static void publish(struct oauth *oauth, struct item *item, const char *access)
{
    size_t slot = (size_t)(item - oauth->items);
    uint64_t next = item->generation + 1;
    off_t at = (off_t)(slot * sizeof(struct door_live));
    char value[DOOR_LIVE_TEXT_MAX] = "";
    (void)snprintf(value, sizeof value, "Bearer %s", access);
    off_t place = at + (off_t)(offsetof(struct door_live, texts) + (next & 1) * sizeof value);
    if (pwrite(oauth->memory, value, sizeof value, place) == sizeof value &&
        pwrite(oauth->memory, &next, sizeof next, at) == sizeof next)
        item->generation = next;
    explicit_bzero(value, sizeof value);
}

static void finish(struct oauth *oauth, struct item *item)
{
    uint64_t before = item->serial;
    char *account, *access;
    (void)close(item->pipe);
    bool good = process_wait(item->pid) == 0;
    item->pid = 0;
    item->pipe = -1;
    item->text[item->length] = '\0';
    if (good && parse_line(item->text, item, &account, &access) && item->serial != before)
        publish(oauth, item, access);
    explicit_bzero(item->text, sizeof item->text);
}

void oauth_poll(struct oauth *oauth, struct pollfd *fds, int *timeout_ms)
{
    int64_t now = (int64_t)time(NULL);
    for (size_t i = 0; i < OAUTH_MAX; i++) {
        bool used = oauth && i < oauth->count;
        fds[i] = (struct pollfd){.fd = used && oauth->items[i].pid > 0 ? oauth->items[i].pipe : -1,
                                 .events = POLLIN};
        int64_t left = used ? seconds_left(&oauth->items[i], now) : -1;
        if (left >= 0 && left < INT_MAX / 1000 && (*timeout_ms < 0 || *timeout_ms > left * 1000))
            *timeout_ms = (int)left * 1000;
    }
}

void oauth_process(struct oauth *oauth, const struct pollfd *fds)
{
    for (size_t i = 0; oauth && i < oauth->count; i++) {
        struct item *item = &oauth->items[i];
        if (item->pid > 0 && fds[i].revents) {
            ssize_t got =
                read(item->pipe, item->text + item->length, sizeof item->text - 1 - item->length);
            if (got > 0)
                item->length += (size_t)got;
            else if (got == 0 || (errno != EAGAIN && errno != EINTR))
                finish(oauth, item);
        } else if (seconds_left(item, (int64_t)time(NULL)) == 0) {
            start(oauth, item);
        }
    }
}

void oauth_event(struct oauth *oauth, const struct brig_net_event *event)
{
    const char *arrow = strstr(event->detail, " -> 401");
    if (!arrow || strcmp(event->via, "inject") != 0)
        return;
    for (size_t i = 0; oauth && i < oauth->count; i++) {
        struct item *item = &oauth->items[i];
        if (strcmp(item->name, event->name) == 0 && item->forced != item->serial &&
            item->pid == 0) {
            item->forced = item->serial;
            item->due = true; /* not before `retry`: the jail can provoke any number of them */
        }
    }
}
