/* SPDX-License-Identifier: MIT */
/* Destinations that wait for the user's answer. */
#include "cli/network/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/settings/settings.h"
#include "home/client.h"
#include "home/storage.h"
#include "jail/job/job.h"
#include "policy/policy.h"

#define BACKLOG 8
#define REQUEST_MS 1000 /* brig allow sends its request at once */
#define TITLE_BEFORE "\033[23;2t"

static int listen_at(struct ask *ask, struct brig_error *err)
{
    struct sockaddr_un address;
    int status = sockets_address(ask->directory, ask->key, &address, err);
    if (status < 0)
        return status;
    ask->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(address.sun_path); /* of an earlier process with our number */
    if (ask->listener < 0 ||
        bind(ask->listener, (const struct sockaddr *)&address, sizeof address) < 0 ||
        listen(ask->listener, BACKLOG) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make the socket for brig allow");
    return 0;
}

int ask_init(struct ask *ask, const struct settings *settings, const struct identity *identity,
             struct brig_error *err)
{
    *ask = ASK_INIT;
    if (!settings->policy->net.ask || !policy_has_door(settings->policy))
        return 0;
    ask->uid = identity_uid(identity);
    ask->jail = settings->jail;
    ask->storage = settings->storage;
    (void)snprintf(ask->key, sizeof ask->key, ASK_SOCKET_PREFIX "%ld", (long)getpid());
    ask->directory = sockets_make(ask->uid, NULL, err);
    if (ask->directory < 0)
        return ask->directory;
    identity_enter(identity); /* the socket belongs to the user */
    int status = listen_at(ask, err);
    identity_leave(identity);
    return status;
}

void ask_done(struct ask *ask)
{
    struct sockaddr_un address;
    if (ask->listener >= 0 && sockets_address(ask->directory, ask->key, &address, NULL) == 0)
        (void)unlink(address.sun_path);
    if (ask->titled)
        (void)write_all(STDERR_FILENO, TITLE_BEFORE, strlen(TITLE_BEFORE));
    own_close(&ask->listener);
    own_close(&ask->directory);
    *ask = ASK_INIT;
}

/* ---- destinations ---- */

static struct ask_destination *find(struct ask *ask, const char *text)
{
    for (size_t i = 0; i < ask->count; i++)
        if (strcmp(ask->destinations[i].text, text) == 0)
            return &ask->destinations[i];
    return NULL;
}

/* Makes room: the program decides how many destinations it asks for, and what it asked for long ago
 * must not hide what waits now. */
static void forget_refused(struct ask *ask)
{
    size_t oldest = 0;
    while (oldest < ask->count && ask->destinations[oldest].waiting)
        oldest++;
    if (oldest == ask->count)
        return;
    ask->count--;
    memmove(&ask->destinations[oldest], &ask->destinations[oldest + 1],
            (ask->count - oldest) * sizeof ask->destinations[0]);
}

void ask_event(struct ask *ask, const struct brig_net_event *event)
{
    char text[sizeof ask->destinations[0].text];
    (void)snprintf(text, sizeof text, "%s:%u", event->name, event->port);
    struct ask_destination *found = find(ask, text);
    if (found)
        found->waiting = event->verdict == BRIG_NET_WAITING;
    if (event->verdict != BRIG_NET_WAITING || found)
        return;
    if (ask->count == ASK_DESTINATIONS_MAX)
        forget_refused(ask);
    if (ask->count == ASK_DESTINATIONS_MAX)
        return;
    found = &ask->destinations[ask->count++];
    found->waiting = true;
    memcpy(found->text, text, sizeof text);
}

static void forget_answered(struct ask *ask)
{
    size_t kept = 0;
    for (size_t i = 0; i < ask->count; i++)
        if (ask->destinations[i].text[0])
            ask->destinations[kept++] = ask->destinations[i];
    ask->count = kept;
}

void ask_show_title(struct ask *ask)
{
    char text[400];
    if (ask->count == 0 || !isatty(STDERR_FILENO))
        return;
    int length = snprintf(text, sizeof text, "%s\033]2;%s is waiting: brig allow\007\007",
                          ask->titled ? "" : "\033[22;2t", ask->destinations[ask->count - 1].text);
    (void)write_all(STDERR_FILENO, text, (size_t)length);
    ask->titled = true;
}

/* ---- requests ---- */

/* Only the user and root may answer, and no process in a jail, should it find the socket. */
static bool is_welcome(const struct ask *ask, int socket)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 &&
           (peer.uid == ask->uid || peer.uid == 0) && !talk_is_nested(peer.pid);
}

static void list(const struct ask *ask, struct str *reply)
{
    str_concat(reply, "jail ", ask->jail, "\nstorage ", ask->storage, "\n");
    for (size_t i = 0; i < ask->count; i++)
        str_concat(reply, ask->destinations[i].waiting ? "waiting " : "refused ",
                   ask->destinations[i].text, "\n");
}

bool ask_is_about(const char *destination, const char *rule)
{
    size_t length = strlen(rule);
    return strncmp(destination, rule, length) == 0 &&
           (destination[length] == '\0' ||
            (destination[length] == ':' && !strchr(destination + length + 1, ':')));
}

static void decide(struct ask *ask, struct brig_job *job, const char *line, struct str *reply)
{
    struct brig_error err = {0};
    if (job_add_net_rule(job, line, &err) < 0) {
        str_append(reply, err.message);
        return;
    }
    for (size_t i = 0; i < ask->count; i++)
        if (ask_is_about(ask->destinations[i].text, strchr(line, ' ') + 1))
            ask->destinations[i].text[0] = '\0';
    forget_answered(ask);
    str_append(reply, "ok");
}

/* The rule must be valid here: the broker would end at another one. */
static bool is_decision(const char *text)
{
    struct net_rules rules = {0};
    bool allow = str_starts_with(text, "allow ");
    bool good = (allow || str_starts_with(text, "deny ")) &&
                (allow ? net_rules_allow(&rules, text + strlen("allow "), NULL)
                       : net_rules_deny(&rules, text + strlen("deny "), NULL)) == 0 &&
                rules.count == 1;
    net_rules_done(&rules);
    return good;
}

void ask_serve(struct ask *ask, struct brig_job *job)
{
    char request[512];
    autostr struct str reply = {0};
    autoclose int client = accept4(ask->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct pollfd waiting = {.fd = client, .events = POLLIN};
    if (client < 0 || !is_welcome(ask, client) || poll(&waiting, 1, REQUEST_MS) <= 0)
        return;
    ssize_t length = recv(client, request, sizeof request - 1, 0);
    if (length <= 0)
        return;
    request[length] = '\0';
    if (strcmp(request, "list") == 0)
        list(ask, &reply);
    else if (is_decision(request))
        decide(ask, job, request, &reply);
    else
        str_append(&reply, "not understood");
    if (!reply.failed)
        (void)send(client, reply.data, reply.length, MSG_NOSIGNAL);
}
