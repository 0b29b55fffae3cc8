/* SPDX-License-Identifier: MIT */
/* Shared memory, queues and keys that the harness's victim process made on the
 * host under known names: `ipc_key` for System V, "/<ipc_name>" for POSIX and
 * as the description of a key. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attempt.h"

#define PAYLOAD_ROOM 256

static int sysv_memory(void)
{
    int id = shmget((key_t)arg_number("ipc_key"), 0, 0);
    if (id < 0)
        return judge("shmget", -1);
    const char *memory = shmat(id, NULL, SHM_RDONLY);
    if ((long)memory == -1)
        return judge("shmat", -1);
    say("%.64s", memory);
    return THROUGH;
}

/* The number is enough where the key is not known. */
static int sysv_memory_by_id(void)
{
    const char *memory = shmat((int)arg_number("shm_id"), NULL, SHM_RDONLY);
    if ((long)memory == -1)
        return judge("shmat", -1);
    say("%.64s", memory);
    return THROUGH;
}

static int sysv_semaphore(void)
{
    int id = semget((key_t)arg_number("ipc_key"), 1, 0);
    return judge("semget", id < 0 ? -1 : semctl(id, 0, GETVAL));
}

static int sysv_queue(void)
{
    struct msqid_ds info;
    int id = msgget((key_t)arg_number("ipc_key"), 0);
    return judge("msgget", id < 0 ? -1 : msgctl(id, IPC_STAT, &info));
}

static int posix_queue(void)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "/%s", arg("ipc_name"));
    return judge("mq_open", mq_open(name, O_RDONLY | O_CLOEXEC));
}

static int posix_memory(void)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "/dev/shm/%s", arg("ipc_name"));
    return judge_read(path);
}

/* ---- keyrings ---- */

static int key_search(int keyring, const char *what)
{
    char payload[PAYLOAD_ROOM + 1] = "";
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, keyring, "user", arg("ipc_name"), 0);
    long length = key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, payload, PAYLOAD_ROOM);
    say("%s", payload);
    return judge(what, length);
}

static int key_of_user(void)
{
    return key_search(KEY_SPEC_USER_KEYRING, "user keyring");
}

/* The user's keyring hangs below a session's by custom only. */
static void link_user_keyring(void)
{
    (void)syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING);
}

static int key_of_session(void)
{
    link_user_keyring();
    int answer = key_search(KEY_SPEC_SESSION_KEYRING, "session keyring");
    return answer == THROUGH ? answer
                             : key_search(KEY_SPEC_USER_SESSION_KEYRING, "user session keyring");
}

static int key_by_number(void)
{
    char payload[PAYLOAD_ROOM + 1] = "";
    long length = syscall(SYS_keyctl, KEYCTL_READ, arg_number("key_id"), payload, PAYLOAD_ROOM);
    say("%s", payload);
    return judge("KEYCTL_READ", length);
}

static int key_request(void)
{
    link_user_keyring();
    return judge("request_key", syscall(SYS_request_key, "user", arg("ipc_name"), NULL, 0));
}

static int key_list(void)
{
    return judge_read("/proc/keys");
}

const struct attempt attempts_ipc[] = {
    {"sysv-memory", sysv_memory},
    {"sysv-memory-by-id", sysv_memory_by_id},
    {"sysv-semaphore", sysv_semaphore},
    {"sysv-queue", sysv_queue},
    {"posix-queue", posix_queue},
    {"posix-memory", posix_memory},
    {"key-of-user", key_of_user},
    {"key-of-session", key_of_session},
    {"key-by-number", key_by_number},
    {"key-request", key_request},
    {"key-list", key_list},
    {NULL, NULL},
};
