/* SPDX-License-Identifier: MIT */
/* The supervisor's side of a jail's network door. */
#include "jail/net/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/cgroup/cgroup.h"
#include "jail/job/result.h"
#include "jail/net/door_broker.h"
#include "jail/net/door_events.h"
#include "net/broker_wire.h"
#include "net/sockets.h"
#include "policy/policy.h"

/* How long the broker may take to report its last events. It closes the socket after them, so only
 * a busy machine or a hanging broker takes this long. */
#define LAST_WORDS_MS 10000
#define PUBLISH_BACKLOG 128
/* A jail can cause many events: at most this many are read before other fds are served. */
#define EVENTS_AT_ONCE 64

struct door {
    int program;                 /* the broker's program, O_PATH */
    struct door_sockets sockets; /* the jail's sockets, and published ports of the host */
    uid_t uid;                   /* the jail's host uid */
    gid_t gid;
    int config, secrets;         /* memfds, or -1 */
    int rules;                   /* a memfd of rules that replace those of `config`, or -1 */
    int live;                    /* the memfd of live secrets, or -1; borrowed */
    int epoll;                   /* borrowed; -1: not watching */
    int control;                 /* socket to the broker; -1: not started, or gone */
    pid_t broker, connector;     /* 0: none */
    struct cgroup_limits limits; /* of the door's cgroup; all 0: no cgroup */
    struct cgroup *group;
    bool broken; /* the failure was reported */
    struct door_events events;
};

/* ---- sockets ---- */

void door_sockets_add(struct door_sockets *sockets, int kind, int index, int fd)
{
    if (sockets->count == DOOR_SOCKET_LIST_MAX) {
        (void)close(fd);
        return;
    }
    sockets->items[sockets->count++] =
        (struct door_socket_item){.fd = fd, .kind = kind, .index = index};
}

void door_sockets_done(struct door_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++)
        (void)close(sockets->items[i].fd);
    sockets->count = 0;
}

/* ---- before the start ---- */

static int open_program(const struct brig_policy *policy, struct brig_error *err)
{
    const char *path = policy->net.broker ? policy->net.broker : BRIG_BROKER_PATH;
    autoclose int found = open(path, O_PATH | O_CLOEXEC);
    /* Moves the fd above the numbers that the broker uses. */
    int fd = found < 0 ? -1 : fcntl(found, F_DUPFD_CLOEXEC, DOOR_FD_FLOOR);
    if (fd >= 0)
        return fd;
    (void)brig_fail(err, BRIG_E_SETUP, errno, "cannot open the network broker '%s'", path);
    return brig_advise(
        err, BRIG_E_SETUP,
        "Build it with `make` in the source tree, or install it with `make install`; "
        "or use BRIG_NET_NONE (no network) or BRIG_NET_HOST (no door)");
}

static int open_published(const struct policy_publish *publish, struct brig_error *err)
{
    union socket_address name;
    char text[NET_ADDRESS_TEXT_MAX];
    int on = 1;
    socklen_t length = socket_address_fill(&name, &publish->address, publish->host_port);
    autoclose int fd =
        socket(name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd >= 0 && name.any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (fd >= 0 && bind(fd, &name.any, length) == 0 && listen(fd, PUBLISH_BACKLOG) == 0)
        return take_fd(&fd);
    net_address_print(&publish->address, text);
    (void)brig_fail(err, BRIG_E_SETUP, errno, "cannot publish on port %u of %s", publish->host_port,
                    text);
    return brig_advise(err, BRIG_E_SETUP, "Choose another port of the host's (%s)",
                       publish->origin);
}

static int open_all_published(struct door *door, const struct policy_net *net,
                              struct brig_error *err)
{
    for (size_t i = 0; i < net->publish_count; i++) {
        int fd = open_published(&net->publish[i], err);
        if (fd < 0)
            return fd;
        door_sockets_add(&door->sockets, DOOR_SOCKET_PUBLISH, (int)i, fd);
    }
    return 0;
}

int door_new(const struct brig_policy *policy, struct door **ret_door, struct brig_error *err)
{
    struct door *door = calloc(1, sizeof *door);
    if (!door)
        return brig_fail_nomem(err);
    door->config = door->secrets = door->epoll = door->control = door->live = door->rules = -1;
    int result = door->program = open_program(policy, err);
    if (result >= 0)
        result = open_all_published(door, &policy->net, err);
    if (result < 0) {
        door_free(door);
        return result;
    }
    *ret_door = door;
    return 0;
}

/* ---- the broker's cgroup and configuration ---- */

/* A jail with limits must not use the host's memory and CPUs without limit through its door. The
 * broker is not in the jail's cgroup: it would be killed together with the jail before it reported
 * its last events, or because the jail used up the memory. */
static struct cgroup_limits group_limits(const struct brig_policy *policy)
{
    const uint64_t *limits = policy->limits;
    uint64_t connections = limits[BRIG_LIMIT_NET_CONNECTIONS];
    bool memory = limits[BRIG_LIMIT_MEMORY_BYTES] > 0;
    return (struct cgroup_limits){
        .memory_bytes =
            memory ? door_memory_bytes(connections ? connections : DOOR_CONNECTIONS) : 0,
        .cpu_percent = (unsigned)limits[BRIG_LIMIT_CPU_PERCENT],
        .tcp = true,
    };
}

int door_begin(struct door *door, const struct brig_policy *policy, struct door_sockets *sockets,
               uid_t uid, gid_t gid, bool grouped, struct brig_error *err)
{
    if (grouped)
        door->limits = group_limits(policy);
    door->uid = uid;
    door->gid = gid;
    for (size_t i = 0; i < sockets->count; i++)
        door_sockets_add(&door->sockets, sockets->items[i].kind, sockets->items[i].index,
                         sockets->items[i].fd);
    sockets->count = 0;
    /* As root, the broker is told which user to become; otherwise it keeps the caller's. */
    bool root = geteuid() == 0;
    for (size_t i = 0; i < policy->net.inject_count; i++)
        if (policy->net.inject[i].is_live)
            door->live = policy->net.live_fd;
    return door_make_files(policy, root ? uid : (uid_t)-1, gid, &door->config, &door->secrets, err);
}

/* ---- watching ---- */

static int watch_one(int epoll_fd, int fd, struct brig_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the network door");
    return 0;
}

int door_watch(struct door *door, int epoll_fd, struct brig_error *err)
{
    int result = 0;
    door->epoll = epoll_fd;
    for (size_t i = 0; i < door->sockets.count && result == 0; i++)
        result = watch_one(epoll_fd, door->sockets.items[i].fd, err);
    return result;
}

/* An fd that was passed on would stay in the epoll set after close(). */
static void release_sockets(struct door *door)
{
    for (size_t i = 0; door->epoll >= 0 && i < door->sockets.count; i++)
        (void)epoll_ctl(door->epoll, EPOLL_CTL_DEL, door->sockets.items[i].fd, NULL);
    door_sockets_done(&door->sockets);
}

static bool is_mine(const struct door *door, int fd)
{
    for (size_t i = 0; i < door->sockets.count; i++)
        if (door->sockets.items[i].fd == fd)
            return true;
    return false;
}

/* Returns the first published socket of the host, or the first one of the jail; or -1. */
static int find_socket(const struct door *door, bool published)
{
    for (size_t i = 0; i < door->sockets.count; i++)
        if ((door->sockets.items[i].kind == DOOR_SOCKET_PUBLISH) == published)
            return door->sockets.items[i].fd;
    return -1;
}

/* ---- the broker ---- */

static void break_door(struct door *door, struct brig_unenforced *notices, const char *why)
{
    if (!door->broken && notices)
        unenforced_add(notices, "the jail has no network: %s", why);
    door->broken = true;
}

static int hand_over(struct door *door, int control, struct brig_error *err)
{
    int files[3] = {door->config, door->secrets, door->live};
    size_t count = door->secrets < 0 ? 1 : (door->live < 0 ? 2 : 3);
    int result = door_send(control, DOOR_CONFIG, 0, 0, files, count, err);
    if (result == 0 && door->rules >= 0)
        result = door_send(control, DOOR_RULES, 0, 0, &door->rules, 1, err);
    for (size_t i = 0; result == 0 && i < door->sockets.count; i++) {
        const struct door_socket_item *item = &door->sockets.items[i];
        result = door_send(control, DOOR_SOCKET, item->kind, item->index, &item->fd, 1, err);
    }
    return result;
}

/* Starts the connector, which makes connections into the jail for published ports. */
static int start_connector(struct door *door, int control, struct brig_error *err)
{
    int far = -1;
    int result = door_spawn_connector(door->program, find_socket(door, false), door->uid, door->gid,
                                      door->group, &door->connector, &far, err);
    if (result < 0)
        return result;
    result = door_send(control, DOOR_SOCKET, DOOR_SOCKET_CONNECTOR, 0, &far, 1, err);
    (void)close(far);
    return result;
}

/* Missing limits are missing for the jail, too, and were reported there. */
static int make_group(struct door *door, struct brig_error *err)
{
    unsigned missing;
    if (door->limits.memory_bytes == 0 && door->limits.cpu_percent == 0)
        return 0;
    return cgroup_new(&door->limits, &door->group, &missing, err);
}

static int start_broker(struct door *door, struct brig_error *err)
{
    autoclose int control = -1;
    autoclose int far = -1;
    int result = make_group(door, err);
    if (result == 0)
        result = door_make_control(&control, &far, err);
    if (result == 0)
        result = hand_over(door, control, err);
    if (result == 0 && find_socket(door, true) >= 0)
        result = start_connector(door, control, err);
    if (result == 0)
        result = door_spawn_broker(door->program, far, door->group, &door->broker, err);
    if (result == 0 && door->epoll >= 0)
        result = watch_one(door->epoll, control, err);
    if (door->group)
        cgroup_joined(door->group);
    if (result < 0)
        return result;
    door->control = take_fd(&control);
    return 0;
}

/* Starts the broker and passes the sockets on; they are closed here also on failure. */
static void open_door(struct door *door, struct brig_unenforced *notices)
{
    struct brig_error local = {0};
    if (start_broker(door, &local) < 0)
        break_door(door, notices, local.message);
    release_sockets(door);
    own_close(&door->config);
    own_close(&door->secrets);
    own_close(&door->rules);
    door->config = door->secrets = door->rules = -1;
}

static void drop_control(struct door *door)
{
    if (door->control >= 0 && door->epoll >= 0)
        (void)epoll_ctl(door->epoll, EPOLL_CTL_DEL, door->control, NULL);
    own_close(&door->control);
    door->control = -1;
}

static void hear_failure(struct door *door, const void *bytes, size_t length,
                         struct brig_unenforced *notices)
{
    struct door_failure failure;
    if (length != sizeof failure)
        return;
    memcpy(&failure, bytes, sizeof failure);
    failure.message[sizeof failure.message - 1] = 0;
    break_door(door, notices, str_shown(failure.message).text);
}

/* Handles one message; false at the end, and if it is malformed. */
static bool hear(struct door *door, const void *bytes, size_t length,
                 struct brig_unenforced *notices)
{
    struct door_message head;
    if (length < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.version != DOOR_WIRE_VERSION)
        return false;
    if (head.type == DOOR_FAILED)
        hear_failure(door, bytes, length, notices);
    if (head.type == DOOR_EVENT)
        return door_events_add(&door->events, bytes, length);
    return head.type == DOOR_READY || head.type == DOOR_FAILED;
}

/* Reads the available messages, up to a limit; false if no more will come. */
static bool hear_some(struct door *door, struct brig_unenforced *notices)
{
    union {
        struct door_event event;
        struct door_failure failure;
    } message;
    for (int i = 0; i < EVENTS_AT_ONCE; i++) {
        ssize_t length = recv(door->control, &message, sizeof message, MSG_DONTWAIT);
        if (length < 0 && (errno == EINTR || errno == EAGAIN))
            return true;
        /* The broker exited before it read all messages. The kernel reports this once, and then
         * returns the broker's messages, which may say why it failed. */
        if (length < 0 && errno == ECONNRESET)
            continue;
        if (length <= 0 || !hear(door, &message, (size_t)length, notices))
            return false;
    }
    return true;
}

bool door_serve(struct door *door, int fd, struct brig_unenforced *notices)
{
    if (fd < 0)
        return false;
    if (fd == door->control) {
        if (hear_some(door, notices))
            return true;
        break_door(door, notices, "the broker has ended");
        drop_control(door);
        return true;
    }
    if (!is_mine(door, fd))
        return false;
    open_door(door, notices);
    return true;
}

int door_add_rule(struct door *door, const char *line, struct brig_error *err)
{
    struct door_rule message = {.head = {.version = DOOR_WIRE_VERSION, .type = DOOR_RULE}};
    if (!str_fill(message.line, sizeof message.line, line))
        return brig_fail(err, BRIG_E_INVALID, 0, "the rule is too long");
    if (door->control < 0 || !socket_send(door->control, &message, sizeof message, NULL, 0))
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the broker does not run");
    return 0;
}

int door_set_rules(struct door *door, const struct net_rules *rules, struct brig_error *err)
{
    int made = door_make_rules(rules, err);
    if (made < 0)
        return made;
    autoclose int fd = made;
    if (door->control >= 0)
        return door_send(door->control, DOOR_RULES, 0, 0, &fd, 1, err);
    if (door->broken)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "the broker has ended");
    own_close(&door->rules); /* it is started by the first connection */
    door->rules = take_fd(&fd);
    return 0;
}

/* ---- the end ---- */

void door_conclude(struct door *door, struct brig_unenforced *notices)
{
    release_sockets(door);
    if (door->control < 0)
        return;
    (void)shutdown(door->control, SHUT_WR);
    int64_t until = (int64_t)clock_now_ms() + LAST_WORDS_MS, left;
    struct pollfd waiting = {.fd = door->control, .events = POLLIN};
    while (hear_some(door, notices) && (left = until - (int64_t)clock_now_ms()) > 0)
        (void)poll(&waiting, 1, (int)left);
    drop_control(door);
}

void door_free(struct door *door)
{
    if (!door)
        return;
    door_conclude(door, NULL);
    if (door->group)
        cgroup_unthrottle(door->group);
    door_end_process(door->broker);
    door_end_process(door->connector);
    if (door->group)
        cgroup_free(door->group);
    own_close(&door->program);
    own_close(&door->config);
    own_close(&door->secrets);
    own_close(&door->rules);
    door_events_done(&door->events);
    free(door);
}

bool door_take_event(struct door *door, struct brig_net_event *ret_event)
{
    return door_events_take(&door->events, ret_event);
}

void door_take_result(struct door *door, struct brig_net_result *ret_result)
{
    door_events_take_all(&door->events, ret_result);
}
