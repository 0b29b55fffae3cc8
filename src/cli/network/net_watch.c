/* SPDX-License-Identifier: MIT */
/* The network events of a run. */
#include "cli/network/net_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "cli/identity.h"
#include "cli/out_path.h"
#include "cli/report.h"
#include "cli/settings/settings.h"

/* The jail determines the size of the log, and must not fill the disk. */
#define LOG_BYTES_MAX (UINT64_C(256) << 20)

/* ---- the log ---- */

static int open_log(const struct settings *settings, const struct identity *identity,
                    struct net_watch *watch, struct brig_error *err)
{
    const char *where = settings->net_log;
    int status = out_file_number(where, "--net-log", &watch->log, err);
    if (status != 0)
        return status < 0 ? status : 0;
    identity_enter(identity);
    int fd = out_file_append(where, "--net-log", settings->policy, identity, err);
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
    watch->shown = settings->verbose || settings->net_learn || isatty(STDERR_FILENO);
    watch->rules = &settings->policy->net.rules;
    watch->implied = !settings->net_given && settings->policy->network == BRIG_NET_OPEN;
    if (settings->net_log && !policy_has_door(settings->policy))
        message_warning("--net-log: nothing is logged with the network '%s'",
                        policy_word(POLICY_NETWORK, settings->policy->network));
    int status = settings->net_log ? open_log(settings, identity, watch, err) : 0;
    if (status < 0 || !settings->net_rules)
        return status;
    status = out_file_number(settings->net_rules, "--net-rules", &watch->rules_fd, err);
    return status == 0  ? brig_fail(err, BRIG_E_INVALID, 0, "--net-rules: '%s' is not a descriptor",
                                    str_shown(settings->net_rules).text)
           : status < 0 ? status
                        : 0;
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

/* ---- denied connections ---- */

/* "name:443", with an IPv6 address in brackets; without a port only the name. */
static void print_destination(const char *name, unsigned port, char *text, size_t size)
{
    bool v6 = strchr(name, ':') != NULL;
    if (port == 0)
        (void)snprintf(text, size, "%s", name);
    else
        (void)snprintf(text, size, "%s%s%s:%u", v6 ? "[" : "", name, v6 ? "]" : "", port);
}

static const char *name_of(const struct brig_net_event *event)
{
    return event->name[0] ? event->name : event->address;
}

static bool is_public_address(const char *text)
{
    struct net_address address;
    return net_address_read(text, strlen(text), &address) &&
           net_address_class(&address) == NET_PUBLIC;
}

/* The option that would allow it; "" if there is no short one, or it should not be suggested. With
 * `implied` the network is open because no option says otherwise: a public destination in --allow
 * would make it the only one. */
static void remedy(const struct brig_net_event *event, bool implied, char *text, size_t size)
{
    bool usual = strcmp(event->name, NET_HOST_NAME) != 0 &&
                 (event->port == 0 || event->port == 443 || event->port == 80);
    bool no_rule = strcmp(event->because, "no-rule") == 0;
    bool address = strcmp(event->because, "address") == 0 && event->address[0];
    char what[400];
    *text = '\0';
    if (!no_rule && strcmp(event->because, "port") != 0 && !address)
        return;
    print_destination(address ? event->address : name_of(event),
                      no_rule && event->name[0] && usual ? 0 : event->port, what, sizeof what);
    (void)snprintf(text, size, "allow it with %s--allow %s",
                   implied && address && is_public_address(event->address) ? "--net open " : "",
                   what);
}

/* A connection that was allowed and failed for a reason outside the jail. A name that does not
 * exist is not reported: the command is told so. */
static bool is_failure(const struct brig_net_event *event)
{
    static const char *const causes[] = {"no-connection", "no-name", "timeout", "tls"};
    for (size_t i = 0; i < ARRAY_LENGTH(causes); i++)
        if (event->verdict == BRIG_NET_FAILED && event->port != 0 && *name_of(event) &&
            strcmp(event->because, causes[i]) == 0)
            return true;
    return false;
}

void net_watch_line(const struct brig_net_event *event, bool implied, char line[NET_LINE_MAX])
{
    char what[400], how[480];
    *line = '\0';
    print_destination(name_of(event), event->port, what, sizeof what);
    if (event->verdict == BRIG_NET_WAITING)
        (void)snprintf(line, NET_LINE_MAX, "%s is waiting; in another terminal: brig allow %s",
                       what, what);
    if (is_failure(event))
        (void)snprintf(line, NET_LINE_MAX, "failed: %s (%s)", what,
                       event->detail[0] ? event->detail : event->because);
    if (event->verdict != BRIG_NET_DENIED)
        return;
    remedy(event, implied, how, sizeof how);
    if (*how && strcmp(event->because, "address") != 0)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s; %s", what, how);
    else if (*how)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (%s); %s", what,
                       event->detail[0] ? event->detail : event->address, how);
    else if (event->rule[0] && strcmp(event->because, "rule") == 0)
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (deny %s)", what, event->rule);
    else
        (void)snprintf(line, NET_LINE_MAX, "blocked: %s (%s)", what,
                       event->detail[0] ? event->detail : event->because);
}

static void note_blocked(struct net_watch *watch, const struct brig_net_event *event)
{
    char line[NET_LINE_MAX];
    net_watch_line(event, watch->implied, line);
    if (!*line || (!watch->shown && event->verdict != BRIG_NET_WAITING))
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

/* ---- learnt destinations ---- */

static void learn(struct net_watch *watch, const char *name, unsigned port)
{
    for (size_t i = 0; i < watch->learnt_count; i++)
        if (watch->learnt[i].port == port && strcmp(watch->learnt[i].name, name) == 0)
            return;
    if (watch->learnt_count == NET_WATCH_LEARNT_MAX)
        return;
    char *copy = array_grow(&watch->learnt, watch->learnt_count) ? strdup(name) : NULL;
    if (copy)
        watch->learnt[watch->learnt_count++] = (struct net_learnt){.name = copy, .port = port};
}

/* Whether a rule allows the address of a name as an address: then the name alone is not enough. */
static bool is_granted(const struct net_watch *watch, const struct brig_net_event *event)
{
    struct net_address address;
    if (!watch->rules || !event->name[0] ||
        !net_address_read(event->address, strlen(event->address), &address))
        return false;
    const struct net_rule *rule =
        net_rules_resolved(watch->rules, &address, (uint16_t)event->port).rule;
    return rule && !rule->deny;
}

static void note_learnt(struct net_watch *watch, const struct brig_net_event *event)
{
    const char *name = name_of(event);
    if (!watch->learn || event->verdict != BRIG_NET_ALLOWED || event->port == 0 || !*name ||
        strcmp(event->via, "inject") == 0 || strcmp(event->via, "publish") == 0)
        return;
    learn(watch, name, event->port);
    if (is_granted(watch, event))
        learn(watch, event->address, event->port);
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
        char what[400];
        print_destination(at->name, at->port, what, sizeof what);
        if (i > 0 && strcmp(at->name, watch->learnt[i - 1].name) == 0)
            str_appendf(out, ",%u", at->port);
        else
            str_concat(out, i > 0 ? "\nallow " : "allow ", what);
    }
    if (count > 0)
        str_append_char(out, '\n');
}

/* ---- the watch ---- */

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
        message_note("blocked or failed: %zu more; --net-log FILE has them all",
                     watch->blocked_more);
    if (!watch->learn)
        return;
    str_append(&rules, "net allow\n");
    net_watch_rules(watch, &rules);
    message_note(
        watch->learnt_count > 0
            ? "the command connected to these destinations; this configuration allows only them:"
            : "the command made no connection; this configuration allows none:");
    if (!rules.failed)
        (void)write_all(STDERR_FILENO, rules.data, rules.length);
    if (!rules.failed && watch->rules_fd >= 0)
        (void)write_all(watch->rules_fd, rules.data, rules.length);
}
