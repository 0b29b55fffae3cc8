/* SPDX-License-Identifier: MIT */
/* Namespaces that are made before the run they are for. */
#include "jail/prepare/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/child/child_say.h"
#include "jail/child/child_start.h"
#include "jail/job/spawn.h"
#include "jail/plan/plan.h"
#include "jail/wire.h"

#define SHAPE_VERSION 1
#define STEPS_MAX 16
#define MADE_AHEAD (CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

void ready_set_done(struct ready_set *set)
{
    for (size_t i = 0; i < READY_NAMESPACES; i++)
        if (set->namespaces[i] >= 0)
            (void)close(set->namespaces[i]);
    for (size_t i = 0; i < set->socket_count; i++)
        (void)close(set->sockets[i].fd);
    *set = READY_SET_NONE;
}

/* ---- the shape ---- */

/* Who makes a set must be where the run is, and under the same limits: a user namespace has a parent and keeps
 * four limits of its maker's, and what a host name's has besides the name comes from the one before. */
struct origin {
    uint64_t user, uts; /* inode numbers of the namespaces */
    uint64_t limits[4]; /* what of these a user may have in all */
};

struct shape_head {
    uint32_t version, step_count;
    uint64_t flags; /* CLONE_NEW… */
    struct origin origin;
    uint32_t loopback, has_door;
    uint32_t routes_length, redirect_length, listener_count, reserved;
};

struct shape_step {
    uint32_t op, path_length, data_length;
};

struct shape_listener {
    int32_t kind, index, soft, family, type;
    uint32_t address_length;
    unsigned char address[sizeof((struct plan_listener *)0)->address];
};

static bool find_origin(struct origin *ret_origin)
{
    static const int kept[] = {RLIMIT_NPROC, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK};
    struct stat user, uts;
    if (stat("/proc/self/ns/user", &user) < 0 || stat("/proc/self/ns/uts", &uts) < 0)
        return false;
    *ret_origin = (struct origin){.user = user.st_ino, .uts = uts.st_ino};
    for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
        struct rlimit limit;
        if (getrlimit(kept[i], &limit) < 0)
            return false;
        ret_origin->limits[i] = limit.rlim_cur;
    }
    return true;
}

/* The steps that plan_begin() takes in the namespaces are all writing and naming; only making the tree of
 * mounts private is another matter, and no set has mounts. */
static bool is_ahead(const struct plan_step *step)
{
    return step->op == PLAN_HOSTNAME || (step->op == PLAN_WRITE && step->slot == PLAN_NO_SLOT);
}

/* Not where groups are mapped from outside, or ids taken; nor where a later namespace is refused, which
 * the run makes itself; nor with one CPU, where nothing is begun with early. */
static bool can_be_ahead(const struct plan *plan)
{
    if (plan->rung != PLAN_FULL || plan->become || plan->parent_maps || plan->join_userns >= 0 ||
        plan->range_count > 0 || plan->step_count > STEPS_MAX || plan->missing != 0 ||
        !plan->two_cpus)
        return false;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];
        if ((!is_ahead(step) && step->op != PLAN_PRIVATE) ||
            (step->path && strstr(step->path, "cgroup")))
            return false;
    }
    return true;
}

static void add_step(const struct plan_step *step, struct str *out)
{
    size_t path_length = step->path ? strlen(step->path) : 0;
    const struct shape_step head = {.op = step->op,
                                    .path_length = (uint32_t)path_length,
                                    .data_length = (uint32_t)step->length};
    str_append_bytes(out, &head, sizeof head);
    str_append_bytes(out, step->path ? step->path : "", path_length);
    str_append_bytes(out, step->data, step->length);
}

/* Those for a kernel that does not redirect are left out: on such a one nothing is made ahead. */
static uint32_t add_listeners(const struct plan_door *door, struct str *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < door->listener_count; i++) {
        const struct plan_listener *from = &door->listeners[i];
        if (from->when == PLAN_LISTEN_FALLBACK)
            continue;
        struct shape_listener listener = {.kind = from->kind,
                                          .index = from->index,
                                          .soft = from->soft,
                                          .family = from->family,
                                          .type = from->type,
                                          .address_length = from->address_length};
        memcpy(listener.address, from->address, sizeof listener.address);
        str_append_bytes(out, &listener, sizeof listener);
        count++;
    }
    return count;
}

bool ready_describe(const struct plan *plan, struct str *out)
{
    const struct plan_door *door = plan->door;
    struct shape_head head = {.version = SHAPE_VERSION,
                              .flags = plan->clone_flags & MADE_AHEAD,
                              .loopback = plan->loopback,
                              .has_door = door != NULL};
    if (!can_be_ahead(plan) || !find_origin(&head.origin))
        return false;
    str_append_bytes(out, &head, sizeof head);
    for (size_t i = 0; i < plan->step_count; i++)
        if (is_ahead(&plan->steps[i])) {
            add_step(&plan->steps[i], out);
            head.step_count++;
        }
    if (door) {
        head.routes_length = (uint32_t)door->routes_length;
        head.redirect_length = (uint32_t)door->redirect_length;
        str_append_bytes(out, door->routes, door->routes_length);
        str_append_bytes(out, door->redirect, door->redirect_length);
        head.listener_count = add_listeners(door, out);
    }
    if (out->failed || out->length > READY_SHAPE_MAX || head.listener_count > READY_SOCKETS_MAX)
        return false;
    memcpy(out->data, &head, sizeof head);
    return true;
}

/* ---- making a set ---- */

/* A shape, read: everything points into its bytes, or is here. */
struct shape {
    struct shape_head head;
    struct {
        uint32_t op;
        char path[64];
        const char *data;
        size_t length;
    } steps[STEPS_MAX];
    struct plan_door door;
    struct plan_listener listeners[READY_SOCKETS_MAX];
};

/* The next bytes, or NULL if there are not so many. */
static const char *take(const char **at, size_t *left, size_t length)
{
    const char *bytes = *at;
    if (length > *left)
        return NULL;
    *at += length;
    *left -= length;
    return bytes;
}

static bool read_steps(struct shape *shape, const char **at, size_t *left)
{
    for (uint32_t i = 0; i < shape->head.step_count; i++) {
        struct shape_step step;
        const char *bytes = take(at, left, sizeof step);
        if (!bytes)
            return false;
        memcpy(&step, bytes, sizeof step);
        const char *path = take(at, left, step.path_length);
        const char *data = take(at, left, step.data_length);
        if (!path || !data || step.path_length >= sizeof shape->steps[i].path)
            return false;
        shape->steps[i].op = step.op;
        memcpy(shape->steps[i].path, path, step.path_length);
        shape->steps[i].data = data;
        shape->steps[i].length = step.data_length;
    }
    return true;
}

static bool read_door(struct shape *shape, const char **at, size_t *left)
{
    const struct shape_head *head = &shape->head;
    shape->door = (struct plan_door){.listeners = shape->listeners,
                                     .listener_count = head->listener_count,
                                     .routes = take(at, left, head->routes_length),
                                     .routes_length = head->routes_length,
                                     .redirect = take(at, left, head->redirect_length),
                                     .redirect_length = head->redirect_length};
    for (uint32_t i = 0; i < head->listener_count; i++) {
        struct shape_listener from;
        const char *bytes = take(at, left, sizeof from);
        if (!bytes)
            return false;
        memcpy(&from, bytes, sizeof from);
        if (from.address_length > sizeof from.address)
            return false;
        shape->listeners[i] = (struct plan_listener){.kind = from.kind,
                                                     .index = from.index,
                                                     .when = PLAN_LISTEN_ALWAYS,
                                                     .soft = from.soft != 0,
                                                     .family = from.family,
                                                     .type = from.type,
                                                     .address_length = from.address_length};
        memcpy(shape->listeners[i].address, from.address, sizeof from.address);
    }
    return shape->door.routes && shape->door.redirect;
}

static bool read_shape(const char *bytes, size_t length, struct shape *ret_shape)
{
    struct shape shape = {0};
    const char *at = bytes, *head = take(&at, &length, sizeof shape.head);
    if (!head)
        return false;
    memcpy(&shape.head, head, sizeof shape.head);
    if (shape.head.version != SHAPE_VERSION || shape.head.step_count > STEPS_MAX ||
        shape.head.listener_count > READY_SOCKETS_MAX || (shape.head.flags & ~MADE_AHEAD) != 0 ||
        !read_steps(&shape, &at, &length))
        return false;
    *ret_shape = shape;
    return !shape.head.has_door || read_door(ret_shape, &at, &length);
}

static bool write_text(const char *path, const char *data, size_t length)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, data, length) == (ssize_t)length;
}

static bool take_steps(const struct shape *shape)
{
    for (uint32_t i = 0; i < shape->head.step_count; i++) {
        const char *data = shape->steps[i].data;
        size_t length = shape->steps[i].length;
        if (shape->steps[i].op == PLAN_HOSTNAME ? sethostname(data, length) < 0
                                                : !write_text(shape->steps[i].path, data, length))
            return false;
    }
    return true;
}

static bool send_namespaces(const struct shape *shape, int wire)
{
    static const struct {
        const char *path;
        unsigned long flag;
    } all[READY_NAMESPACES] = {
        [READY_USER] = {"/proc/self/ns/user", CLONE_NEWUSER},
        [READY_IPC] = {"/proc/self/ns/ipc", CLONE_NEWIPC},
        [READY_UTS] = {"/proc/self/ns/uts", CLONE_NEWUTS},
        [READY_NET] = {"/proc/self/ns/net", CLONE_NEWNET},
    };
    for (int i = 0; i < READY_NAMESPACES; i++) {
        if (!(shape->head.flags & all[i].flag))
            continue;
        autoclose int fd = open(all[i].path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || child_say_fd(wire, WIRE_READY, i, fd) < 0)
            return false;
    }
    return true;
}

/* In a process of its own, which ends with it. */
static int make_namespaces(const struct shape *shape, int wire)
{
    struct plan plan = PLAN_INIT;
    plan.loopback = shape->head.loopback != 0;
    plan.door = shape->head.has_door ? &shape->door : NULL;
    const struct start start = {.plan = &plan, .wire = wire};
    if (unshare((int)shape->head.flags) < 0 || !take_steps(shape) ||
        child_make_network(&start) != 0)
        return 1;
    return send_namespaces(shape, wire) ? 0 : 1;
}

/* Takes what the process has sent before it ended; false if it had anything to complain about. */
static bool receive_set(int wire, struct ready_set *set)
{
    struct wire_message message = {0};
    int fd = -1;
    while (spawn_receive(wire, &message, &fd) == 1) {
        if (fd >= 0 && message.type == WIRE_READY && message.a >= 0 &&
            message.a < READY_NAMESPACES && set->namespaces[message.a] < 0) {
            set->namespaces[message.a] = fd;
        } else if (fd >= 0 && message.type == WIRE_DOOR && set->socket_count < READY_SOCKETS_MAX) {
            set->sockets[set->socket_count++] = (struct door_socket_item){
                .fd = fd, .kind = message.a >> 8, .index = message.a & 0xff};
        } else {
            if (fd >= 0)
                (void)close(fd);
            return false;
        }
    }
    return true;
}

bool ready_make(const char *shape_bytes, size_t length, struct ready_set *ret_set)
{
    struct shape shape;
    struct origin origin;
    int pair[2];
    if (!read_shape(shape_bytes, length, &shape) || !find_origin(&origin) ||
        memcmp(&origin, &shape.head.origin, sizeof origin) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    autoclose int wire = pair[0];
    autoclose int theirs = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        _exit(make_namespaces(&shape, theirs));
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)close(take_fd(&theirs));
    struct ready_set set = READY_SET_NONE;
    if (pid > 0 && status == 0 && receive_set(wire, &set)) {
        *ret_set = set;
        return true;
    }
    ready_set_done(&set);
    return false;
}

/* ---- using one ---- */

void ready_use(struct plan *plan, size_t described, struct ready_set *set)
{
    int *const namespaces = set->namespaces;
    plan->given = true;
    plan->join_userns = namespaces[READY_USER];
    plan->join_netns = namespaces[READY_NET];
    plan->join_more[plan->join_more_count++] = namespaces[READY_IPC];
    plan->join_more[plan->join_more_count++] = namespaces[READY_UTS];
    for (size_t i = 0; i < READY_NAMESPACES; i++)
        if (namespaces[i] >= 0)
            plan_own_fd(plan, take_fd(&namespaces[i]));
    plan->clone_flags &= ~(unsigned long)MADE_AHEAD;
    plan->loopback = false;
    plan->door = NULL;
    for (size_t i = 0; i < described; i++)
        plan->steps[i].done = is_ahead(&plan->steps[i]);
    plan->first_steps =
        plan->step_count; /* with no network to be made, all that is known can be built */
}
