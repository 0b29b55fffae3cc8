/* SPDX-License-Identifier: MIT */
/* What went through the network door, as it happens. */
#include "cli/net_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/write.h"
#include "cli/identity.h"
#include "cli/message.h"
#include "cli/out_path.h"
#include "cli/settings.h"
#include "policy/policy.h"

#define LOG_MODE 0600
/* A jail decides how much there is to log: it is not to fill a disk. */
#define LOG_BYTES_MAX (UINT64_C(256) << 20)

/* ---- the log ---- */

static int open_number(const char *digits, struct net_watch *watch, struct brig_error *err)
{
    uint64_t number = 0;
    int status = parse_uint(digits, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return brig_wrap(err, status, "--net-log");
    int flags = fcntl((int)number, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "--net-log: file descriptor %s is not open for writing; for a file write "
                         "'./%s'",
                         digits, digits);
    watch->log = (int)number;
    return 0;
}

/* Appended to, and never through a symbolic link that a jail may have made. */
static int open_file(const char *where, const struct brig_policy *policy,
                     const struct identity *identity, struct brig_error *err)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK;
    const char *name = where;
    autoclose int dir_fd = -1;
    bool device = str_starts_with(where, "/dev/");
    int status = device ? 0 : out_path_open(where, policy, identity, &name, &dir_fd, err);
    if (status < 0)
        return brig_wrap(err, status, "--net-log");
    int fd = openat(device ? AT_FDCWD : dir_fd, name, flags | O_CLOEXEC | (device ? 0 : O_NOFOLLOW),
                    LOG_MODE);
    if (fd < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "--net-log: cannot write '%s'",
                         str_shown(where).text);
    (void)fcntl(fd, F_SETFL, O_WRONLY | O_APPEND);
    return fd;
}

static int open_log(const struct settings *settings, const struct identity *identity,
                    struct net_watch *watch, struct brig_error *err)
{
    const char *where = settings->net_log;
    if (str_starts_with(where, "fd:"))
        return open_number(where + 3, watch, err);
    if (where[strspn(where, "0123456789")] == '\0')
        return open_number(where, watch, err);
    identity_enter(identity);
    int fd = open_file(where, settings->policy, identity, err);
    identity_leave(identity);
    if (fd < 0)
        return fd;
    watch->log = fd;
    watch->log_owned = true;
    return 0;
}

static void write_log(struct net_watch *watch, const struct brig_net_event *event)
{
    autofree char *text = NULL;
    if (watch->log < 0 || watch->log_failed || brig_net_event_json(event, &text, NULL) < 0)
        return;
    watch->log_bytes += strlen(text);
    int failed =
        watch->log_bytes > LOG_BYTES_MAX ? -EFBIG : write_all(watch->log, text, strlen(text));
    if (failed == 0)
        return;
    watch->log_failed = true;
    message_warning("--net-log: nothing more is written: %s", strerror(-failed));
}

int net_watch_init(struct net_watch *watch, const struct settings *settings,
                   const struct identity *identity, struct brig_error *err)
{
    *watch = NET_WATCH_INIT;
    watch->learn = settings->net_learn;
    watch->shown = settings->verbose || isatty(STDERR_FILENO);
    if (settings->net_log && !policy_has_door(settings->policy))
        message_warning("--net-log: nothing is logged with the network '%s'",
                        policy_network_name(settings->policy->network));
    return settings->net_log ? open_log(settings, identity, watch, err) : 0;
}

void net_watch_done(struct net_watch *watch)
{
    if (watch->log >= 0 && watch->log_owned)
        (void)close(watch->log);
    for (size_t i = 0; i < watch->blocked_count; i++)
        free(watch->blocked[i]);
    for (size_t i = 0; i < watch->learnt_count; i++)
        free(watch->learnt[i].name);
    free(watch->learnt);
    *watch = NET_WATCH_INIT;
}

/* ---- what was refused ---- */

static void destination(const struct brig_net_event *event, char *text, size_t size)
{
    const char *name = event->name[0] ? event->name : event->address;
    bool v6 = strchr(name, ':') != NULL;
    if (event->port == 0)
        (void)snprintf(text, size, "%s", name);
    else
        (void)snprintf(text, size, "%s%s%s:%u", v6 ? "[" : "", name, v6 ? "]" : "", event->port);
}

/* What would let it through; "" where nothing short would, or should. */
static void remedy(const struct brig_net_event *event, char *text, size_t size)
{
    bool usual = event->port == 0 || event->port == 443 || event->port == 80;
    *text = '\0';
    if (strcmp(event->because, "no-rule") == 0 && event->name[0] && usual)
        (void)snprintf(text, size, "allow it with --allow %s", event->name);
    else if (strcmp(event->because, "no-rule") == 0 || strcmp(event->because, "port") == 0) {
        char what[400];
        destination(event, what, sizeof what);
        (void)snprintf(text, size, "allow it with --allow %s", what);
    } else if (strcmp(event->because, "address") == 0 && event->address[0]) {
        bool v6 = strchr(event->address, ':') != NULL;
        (void)snprintf(text, size, "allow it with --allow %s%s%s:%u", v6 ? "[" : "", event->address,
                       v6 ? "]" : "", event->port);
    }
}

void net_watch_line(const struct brig_net_event *event, char line[NET_LINE_MAX])
{
    char what[400], how[480];
    *line = '\0';
    if (event->verdict != BRIG_NET_DENIED)
        return;
    destination(event, what, sizeof what);
    remedy(event, how, sizeof how);
    if (*how && strcmp(event->because, "address") != 0)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s; %s", what, how);
    else if (*how)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (%s); %s", what,
                       event->detail[0] ? event->detail : event->address, how);
    else if (event->rule[0] && strcmp(event->because, "injected") != 0)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (deny %s)", what, event->rule);
    else
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (%s)", what,
                       event->detail[0] ? event->detail : event->because);
}

static void note_blocked(struct net_watch *watch, const struct brig_net_event *event)
{
    char line[NET_LINE_MAX];
    net_watch_line(event, line);
    if (!watch->shown || !*line)
        return;
    for (size_t i = 0; i < watch->blocked_count; i++)
        if (strcmp(watch->blocked[i], line) == 0)
            return;
    char *copy = watch->blocked_count < NET_WATCH_BLOCKED_MAX ? strdup(line) : NULL;
    if (copy)
        watch->blocked[watch->blocked_count++] = copy;
    else
        watch->blocked_more++;
}

void net_watch_show(struct net_watch *watch)
{
    for (; watch->blocked_shown < watch->blocked_count; watch->blocked_shown++)
        message_note("%s", watch->blocked[watch->blocked_shown]);
}

/* ---- what was learnt ---- */

static void note_learnt(struct net_watch *watch, const struct brig_net_event *event)
{
    const char *name = event->name[0] ? event->name : event->address;
    if (!watch->learn || event->verdict != BRIG_NET_ALLOWED || event->port == 0 || !*name ||
        strcmp(event->via, "inject") == 0 || strcmp(event->via, "publish") == 0)
        return;
    for (size_t i = 0; i < watch->learnt_count; i++)
        if (watch->learnt[i].port == event->port && strcmp(watch->learnt[i].name, name) == 0)
            return;
    if (watch->learnt_count == NET_WATCH_LEARNT_MAX)
        return;
    if (watch->learnt_count == watch->learnt_room) {
        size_t room = watch->learnt_room ? watch->learnt_room * 2 : 32;
        struct net_learnt *grown = reallocarray(watch->learnt, room, sizeof *grown);
        if (!grown)
            return;
        watch->learnt = grown;
        watch->learnt_room = room;
    }
    char *copy = strdup(name);
    if (copy)
        watch->learnt[watch->learnt_count++] =
            (struct net_learnt){.name = copy, .port = event->port};
}

static int compare_learnt(const void *left, const void *right)
{
    const struct net_learnt *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (int)a->port - (int)b->port;
}

void net_watch_rules(const struct net_watch *watch, struct str *out)
{
    size_t count = watch->learnt_count;
    if (count > 1)
        qsort(watch->learnt, count, sizeof *watch->learnt, compare_learnt);
    for (size_t i = 0; i < count; i++) {
        const struct net_learnt *at = &watch->learnt[i];
        bool v6 = strchr(at->name, ':') != NULL;
        bool same = i > 0 && strcmp(at->name, watch->learnt[i - 1].name) == 0;
        if (same)
            str_appendf(out, ",%u", at->port);
        else
            str_appendf(out, "%sallow %s%s%s:%u", i > 0 ? "\n" : "", v6 ? "[" : "", at->name,
                        v6 ? "]" : "", at->port);
    }
    if (count > 0)
        str_append_char(out, '\n');
}

/* ---- all of it ---- */

void net_watch_event(struct net_watch *watch, const struct brig_net_event *event, bool now)
{
    write_log(watch, event);
    note_blocked(watch, event);
    note_learnt(watch, event);
    if (now)
        net_watch_show(watch);
}

void net_watch_conclude(struct net_watch *watch)
{
    autostr struct str rules = {0};
    net_watch_show(watch);
    if (watch->blocked_more > 0)
        message_note("blocked: %zu more; --net-log FILE has them all", watch->blocked_more);
    if (!watch->learn)
        return;
    str_append(&rules, "net allow\n");
    net_watch_rules(watch, &rules);
    message_note(watch->learnt_count > 0
                     ? "what was reached; these lines in a configuration allow it and nothing else:"
                     : "nothing was reached; this line in a configuration allows just that:");
    if (!rules.failed)
        (void)write_all(STDERR_FILENO, rules.data, rules.length);
}
