/* SPDX-License-Identifier: MIT */
/* Leaving shared memory and queues behind on the host, and watching its files. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#include "more.h"

#define ROOM 256

/* The key after the victim's; more_rows.py looks for it. */
static key_t left_key(void)
{
    return (key_t)arg_number("ipc_key") + 1;
}

static int leave_memory(void)
{
    return judge("shmget", shmget(left_key(), 4096, IPC_CREAT | 0666));
}

static int leave_semaphore(void)
{
    return judge("semget", semget(left_key(), 1, IPC_CREAT | 0666));
}

static int leave_sysv_queue(void)
{
    return judge("msgget", msgget(left_key(), IPC_CREAT | 0666));
}

static int leave_posix_queue(void)
{
    char name[ROOM];
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    (void)snprintf(name, sizeof(name), "/%s.left", arg("ipc_name"));
    return judge("mq_open", mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666, &attributes));
}

static int leave_posix_memory(void)
{
    char path[ROOM];
    (void)snprintf(path, sizeof(path), "/dev/shm/%s.left", arg("ipc_name"));
    return judge(path, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
}

/* The harness opens a file there once we are ready: what is seen of it counts, for a watch on the
 * mask in its place is none. */
static int watch_outside(void)
{
    char events[4096];
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0 || inotify_add_watch(fd, arg("outside"), IN_OPEN) < 0)
        (void)judge("inotify_add_watch", -1);
    wait_for_harness();
    return judge("an event", fd < 0 ? -1 : read(fd, events, sizeof(events)));
}

const struct attempt attempts_shared[] = {
    {"leave-sysv-memory", leave_memory},
    {"leave-sysv-semaphore", leave_semaphore},
    {"leave-sysv-queue", leave_sysv_queue},
    {"leave-posix-queue", leave_posix_queue},
    {"leave-posix-memory", leave_posix_memory},
    {"watch-outside", watch_outside},
    {NULL, NULL},
};
