/* SPDX-License-Identifier: MIT */
/* Not attempts: what the harness needs done on the host by a program in C. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define VICTIM_FD 9

static char memory_secret[64];

static int plant_key(void)
{
    long ring = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1);
    if (ring < 0)
        return -1;
    long key = syscall(SYS_add_key, "user", arg("ipc_name"), arg("token"), strlen(arg("token")),
                       KEY_SPEC_USER_KEYRING);
    /* Readable for the user, also for processes that do not possess it. */
    if (key >= 0)
        (void)syscall(SYS_keyctl, KEYCTL_SETPERM, key, 0x3f3f0000);
    return (int)key;
}

static int plant_memory(void)
{
    int id = shmget((key_t)arg_number("ipc_key"), 4096, IPC_CREAT | 0666);
    char *memory = id < 0 ? NULL : shmat(id, NULL, 0);
    if (memory && (long)memory != -1)
        (void)snprintf(memory, 64, "%s", arg("token"));
    return id;
}

static int plant_file(void)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "/dev/shm/%s", arg("ipc_name"));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        (void)!write(fd, arg("token"), strlen(arg("token")));
    return fd;
}

/* Lives until its standard input ends, or it is killed; then the harness runs
 * `clear`. */
static int victim(void)
{
    char name[128], byte;
    (void)snprintf(memory_secret, sizeof(memory_secret), "%s", arg("token"));
    (void)snprintf(name, sizeof(name), "/%s", arg("ipc_name"));
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    int secret = open(arg_path("outside", "secret"), O_RDONLY | O_CLOEXEC);
    if (secret < 0 || dup2(secret, VICTIM_FD) < 0 || chdir(arg("outside")) < 0)
        return MISUSED;
    int shm = plant_memory(), key = plant_key();
    int sem = semget((key_t)arg_number("ipc_key"), 1, IPC_CREAT | 0666);
    int msg = msgget((key_t)arg_number("ipc_key"), IPC_CREAT | 0666);
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666, NULL);
    (void)plant_file();
    say("victim=%d address=%ld victim_fd=%d shm_id=%d key_id=%d", getpid(), (long)memory_secret,
        VICTIM_FD, shm, key);
    say("planted sem %d msg %d mq %d", sem, msg, queue);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

static int clear(void)
{
    char name[256];
    key_t key = (key_t)arg_number("ipc_key");
    int shm = shmget(key, 0, 0), sem = semget(key, 1, 0), msg = msgget(key, 0);
    if (shm >= 0)
        (void)shmctl(shm, IPC_RMID, NULL);
    if (sem >= 0)
        (void)semctl(sem, 0, IPC_RMID);
    if (msg >= 0)
        (void)msgctl(msg, IPC_RMID, NULL);
    (void)snprintf(name, sizeof(name), "/%s", arg("ipc_name"));
    (void)mq_unlink(name);
    (void)snprintf(name, sizeof(name), "/dev/shm/%s", arg("ipc_name"));
    (void)unlink(name);
    long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", arg("ipc_name"), 0);
    if (id >= 0)
        (void)syscall(SYS_keyctl, KEYCTL_INVALIDATE, id);
    return 0;
}

/* The number of a file, for read-by-handle. */
static int handle(void)
{
    struct file_handle *file = calloc(1, sizeof(*file) + MAX_HANDLE_SZ);
    int mount;
    if (!file)
        return MISUSED;
    file->handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, arg("path"), file, &mount, 0) < 0)
        return NOT_HERE;
    char text[2 * MAX_HANDLE_SZ + 1] = "";
    for (unsigned i = 0; i < file->handle_bytes; i++)
        (void)snprintf(text + 2 * (size_t)i, 3, "%02x", file->f_handle[i]);
    say("handle=%d:%s", file->handle_type, text);
    return 0;
}

/* As a shell does: runs the words after "--" in a process group that is not orphaned, together with
 * a process that watches nothing but is stopped with the group. */
static int caller(void)
{
    extern char **attempt_arguments;
    char **command = attempt_arguments;
    while (*command && strcmp(*command, "--") != 0)
        command++;
    if (!*command)
        return MISUSED;
    pid_t member = fork();
    if (member == 0) {
        (void)setpgid(0, 0);
        pid_t child = fork();
        if (child == 0) {
            (void)execv(command[1], command + 1);
            _exit(127);
        }
        int status = 0;
        (void)waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    int status = 0;
    (void)waitpid(member, &status, WUNTRACED);
    if (WIFSTOPPED(status)) {
        say("the caller was stopped");
        (void)kill(-member, SIGKILL);
        (void)waitpid(member, NULL, 0);
        return REFUSED;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : MISUSED;
}

/* Stops its whole group, as a terminal would. */
static int stop_group(void)
{
    (void)kill(0, SIGTSTP);
    return REFUSED;
}

/* What a program prints that should not have been started. */
static int say_ran(void)
{
    say("ran-outside");
    return 0;
}

const struct attempt attempts_helpers[] = {
    {"say", say_ran},   {"caller", caller}, {"stop-group", stop_group},
    {"victim", victim}, {"clear", clear},   {"handle", handle},
    {NULL, NULL},
};
