/* SPDX-License-Identifier: MIT */
/* Tracing: each system call that the filter refuses causes a notification to the supervisor, which
 * records it and then refuses it; without namespaces also those with a path, see trace_files.c. All
 * others are as fast as without tracing. If the supervisor is gone, the kernel returns ENOSYS. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "call/call.h"
#include "jail/child/child_start.h"
#include "jail/confine/seccomp.h"
#include "jail/job/result.h"
#include "jail/job/spawn.h"
#include "jail/sys.h"

int trace_open(struct brig_call *call, struct brig_error *err)
{
    const struct sock_fprog *filter = call_plan(call)->seccomp;
    if (!filter)
        return 0;
    struct sock_filter *copy = calloc(TRACE_FILES_FILTER + filter->len, sizeof *copy);
    if (!copy)
        return brig_fail_nomem(err);
    size_t before = call->caller->ruleset >= 0 ? trace_files_filter(copy) : 0;
    call->trace_filter =
        (struct sock_fprog){.len = (unsigned short)(before + filter->len), .filter = copy};
    memcpy(copy + before, filter->filter, filter->len * sizeof *copy);
    for (size_t i = before; i < call->trace_filter.len; i++)
        if (copy[i].code == (BPF_RET | BPF_K) && copy[i].k != SECCOMP_RET_ALLOW)
            copy[i].k = SECCOMP_RET_USER_NOTIF;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    call->trace = pair[0];
    call->trace_child = pair[1];
    call->traced = filter;
    if (call->own)
        call->own->seccomp = NULL; /* trace_install() installs the tracing filter instead */
    return 0;
}

int trace_install(struct brig_call *call)
{
    long listener = SYS(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &call->trace_filter);
    /* Only one filter of a process can have a listener, and an outer filter may have it: install
     * the plain filter then. */
    long result = listener < 0 ? SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, call->traced)
                               : child_say_fd(call->trace_child, WIRE_STARTED, 0, (int)listener);
    if (listener >= 0)
        (void)close((int)listener);
    /* A process with this fd could send the caller any fd as the listener. */
    close_fd(&call->trace_child);
    return (int)result;
}

static void note(struct brig_call *call, int number, int sys_errno)
{
    const char *name = seccomp_name(number);
    struct brig_call_denial denial = {
        .kind = BRIG_CALL_SYSCALL, .sys_errno = sys_errno, .traced = 1};
    if (sys_errno == ENOSYS) /* programs probe for these calls and do without */
        return;
    if (name)
        (void)snprintf(denial.subject, sizeof denial.subject, "%s", name);
    else
        (void)snprintf(denial.subject, sizeof denial.subject, "syscall %d", number);
    (void)snprintf(denial.rule, sizeof denial.rule, "%s",
                   denial_syscall_rule(call->caller, number));
    outcome_note_traced(call, &denial);
}

static void answer(struct brig_call *call)
{
    struct notice notice;
    if (!notice_receive(call->trace, call->traced, &notice))
        return;
    if (notice.verdict == 0)
        trace_files_look(call, &notice);
    if (notice_reply(call->trace, &notice) && notice.verdict != 0)
        note(call, notice.number, notice.verdict);
}

static void stop(struct brig_call *call)
{
    if (call->epoll >= 0)
        (void)epoll_ctl(call->epoll, EPOLL_CTL_DEL, call->trace, NULL);
    close_fd(&call->trace);
}

void trace_serve(struct brig_call *call, bool hung_up)
{
    if (call->listening && !hung_up) {
        answer(call);
        return;
    }
    struct wire_message message;
    int fd = -1;
    bool came = !call->listening && spawn_receive(call->trace, &message, &fd) == 1 && fd >= 0;
    stop(call);
    if (!came)
        return;
    call->trace = fd;
    call->listening = true;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (call->epoll >= 0)
        (void)epoll_ctl(call->epoll, EPOLL_CTL_ADD, fd, &event);
}

void trace_done(struct brig_call *call)
{
    free(call->trace_filter.filter);
}
