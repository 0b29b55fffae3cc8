/* SPDX-License-Identifier: MIT */
/* Waits for orders, and carries them out. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jail/child/child_start.h"
#include "jail/plan/plan_flat.h"
#include "jail/prepare/zygote_wire.h"
#include "jail/sys.h"
#include "jail/wire.h"
#include "zygote/zygote.h"

#define SIGNALS 65
#define FIRST_FD 3 /* first fd that is not a standard stream */

/* The state of the zygote; children have copies. */
static struct {
    struct plan plan;
    unsigned long flags;  /* clone flags of the plan */
    bool loopback;        /* of the plan; for runs that bring no network */
    void *memory;         /* stacks for the processes that make a jail */
    char maps[2][48];     /* id maps of the next run */
    int signals[SIGNALS]; /* signals for which the interpreter has set an action */
    struct sigaction actions[SIGNALS];
    size_t signal_count;
    sigset_t mask;
    jmp_buf child; /* where a child continues */
} zygote;

struct order {
    struct zygote_message message;
    int fds[ZYGOTE_FDS_MAX];
    size_t fd_count;
    char *bytes; /* ZYGOTE_PLAN: a part of the plan */
    size_t length;
};

/* ---- receiving ---- */

static void take_fds(struct msghdr *header, struct order *order)
{
    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item; item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
            continue;
        order->fd_count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(order->fds, CMSG_DATA(item), order->fd_count * sizeof(int));
    }
}

/* Exits if the socket is closed: the executor is gone. */
static void receive(struct order *ret_order, char *room)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(ZYGOTE_FDS_MAX * sizeof(int))];
    } control;
    struct order order = {.bytes = room};
    struct iovec parts[] = {{&order.message, sizeof order.message}, {room, ZYGOTE_PIECE_BYTES}};
    struct msghdr header = {.msg_iov = parts,
                            .msg_iovlen = 2,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    ssize_t length;
    do
        length = recvmsg(ZYGOTE_SOCKET_FD, &header, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < (ssize_t)sizeof order.message)
        _exit(0);
    take_fds(&header, &order);
    order.length = (size_t)length - sizeof order.message;
    *ret_order = order;
}

static bool take_plan(char *room)
{
    char *bytes = NULL;
    size_t have = 0;
    struct order order;
    do {
        receive(&order, room);
        if (order.message.type != ZYGOTE_PLAN || have + order.length > order.message.length)
            return false;
        if (!bytes && !(bytes = malloc(order.message.length)))
            return false;
        memcpy(bytes + have, order.bytes, order.length);
        have += order.length;
    } while (have < order.message.length);
    if (order.fd_count != 1 || !plan_unflatten(bytes, have, &zygote.plan))
        return false;
    zygote.plan.init_fd = order.fds[0];
    zygote.flags = zygote.plan.clone_flags;
    zygote.loopback = zygote.plan.loopback;
    zygote.plan.slots = calloc((size_t)zygote.plan.slot_count + 1, sizeof *zygote.plan.slots);
    return zygote.plan.slots != NULL;
}

/* ---- one jail ---- */

static void set_map(const char *path, char text[48], unsigned inside, unsigned outside)
{
    struct plan *plan = &zygote.plan;
    (void)snprintf(text, 48, "%u %u 1\n", inside, outside);
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].op == PLAN_WRITE && strcmp(plan->steps[i].path, path) == 0) {
            plan->steps[i].data = text;
            plan->steps[i].length = strlen(text);
        }
}

static void set_plan(const struct order *order)
{
    struct plan *plan = &zygote.plan;
    const struct zygote_message *message = &order->message;
    size_t next = ZYGOTE_FDS_MIN;
    plan->join_netns = message->has_network ? order->fds[next++] : -1;
    plan->clone_flags = zygote.flags & ~(message->has_network ? (unsigned long)CLONE_NEWNET : 0UL);
    plan->loopback = zygote.loopback && !message->has_network; /* else it is up already */
    plan->cgroup_fd = message->has_cgroup ? order->fds[next++] : -1;
    plan->join_count = message->join_count;
    for (size_t i = 0; i < plan->join_count; i++)
        plan->join_fds[i] = order->fds[next++];
    if (!plan->become_joined)
        return;
    plan->host_uid = message->host_uid;
    plan->host_gid = message->host_gid;
    set_map(PLAN_UID_MAP, zygote.maps[0], plan->inside_uid, plan->host_uid);
    set_map(PLAN_GID_MAP, zygote.maps[1], plan->inside_gid, plan->host_gid);
}

/* Called by the jail's first process, on a separate stack in memory shared with the zygote. The
 * child has a copy of that memory and continues at zygote.child. */
static long fork_interpreter(void *unused)
{
    (void)unused;
    pid_t pid = fork();
    if (pid == 0)
        longjmp(zygote.child, 1);
    return pid < 0 ? -errno : pid;
}

/* Records only actions that differ from the default; others need not be restored. */
static void remember_signals(void)
{
    struct sigaction now;
    for (int i = 1; i < SIGNALS; i++) {
        if (sigaction(i, NULL, &now) < 0 || now.sa_handler == SIG_DFL)
            continue;
        zygote.signals[zygote.signal_count] = i;
        zygote.actions[zygote.signal_count++] = now;
    }
}

/* Building the jail resets the interpreter's signal actions. SIGCHLD, which leave_children()
 * ignores, must have its default action in the child. */
static void restore_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGCHLD, &standard, NULL);
    for (size_t i = 0; i < zygote.signal_count; i++)
        (void)sigaction(zygote.signals[i], &zygote.actions[i], NULL);
}

/* Waits until the supervisor has filled the file and the input, or is gone. */
static void await_release(int gate)
{
    char byte;
    ssize_t length;
    do
        length = read(gate, &byte, 1);
    while (length < 0 && errno == EINTR);
    if (length != 1)
        _exit(125);
}

static void be_command(const struct start *start, const struct order *order, const char *file)
{
    int gate = order->fds[4];
    restore_signals();
    for (int i = 0; i < 3; i++)
        if (dup3(order->fds[1 + i], i, 0) < 0)
            _exit(child_failed(start, PLAN_STEP_FDS, -errno));
    python_after_fork(true);
    int status = child_call_confine(start);
    if (status != 0)
        _exit(status);
    /* Before waiting, because closing some fds takes the kernel time. */
    child_close_all_but(FIRST_FD, (int[]){start->wire, start->gate[0], gate}, 3);
    python_touch(file);
    if (!python_renew(file))
        _exit(125);
    if ((status = child_call_wait(start)) != 0)
        _exit(status);
    await_release(gate);
    child_close_all_but(FIRST_FD, NULL, 0);
    (void)pthread_sigmask(SIG_SETMASK, &zygote.mask, NULL);
}

/* The processes that make jails, and the jails' init processes, are children of the zygote. Their
 * supervisor learns of their end by other means, so nothing here waits for them. */
static void leave_children(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT};
    (void)sigaction(SIGCHLD, &ignore, NULL);
}

/* The zygote dies with its parent, at any time. */
static void end_with_parent(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1)
        _exit(0);
}

/* Returns true in the child. */
static bool fork_jail(const struct order *order, const char *file)
{
    static struct start *start;
    sigset_t all;
    set_plan(order);
    python_before_fork();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (setjmp(zygote.child) != 0) {
        if (!start) /* set before the fork */
            _exit(125);
        be_command(start, order, file);
        return true;
    }
    long result =
        child_fork_jail(&zygote.plan, order->fds[0], zygote.memory, fork_interpreter, NULL, &start);
    if (result < 0)
        (void)child_failed(start, PLAN_STEP_CLONE, result);
    (void)pthread_sigmask(SIG_SETMASK, &zygote.mask, NULL);
    python_after_fork(false);
    for (size_t i = 0; i < order->fd_count; i++)
        (void)close(order->fds[i]);
    return false;
}

/* ---- main loop ---- */

void serve(const char *file, const char *modules)
{
    char *room = malloc(ZYGOTE_PIECE_BYTES);
    zygote.memory = mmap(NULL, CHILD_MEMORY_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (!room || zygote.memory == MAP_FAILED || !take_plan(room) || !python_prepare(modules))
        _exit(125);
    python_practise(file);
    remember_signals();
    leave_children();
    end_with_parent();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &zygote.mask);
    struct zygote_message ready = {.type = ZYGOTE_READY};
    if (send(ZYGOTE_SOCKET_FD, &ready, sizeof ready, MSG_NOSIGNAL) < 0)
        _exit(0);
    static struct order order; /* static: a child uses it after longjmp() */
    for (;;) {
        receive(&order, room);
        if (order.message.type != ZYGOTE_FORK || order.fd_count < ZYGOTE_FDS_MIN)
            _exit(125);
        if (fork_jail(&order, file))
            return;
    }
}
