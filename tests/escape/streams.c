/* SPDX-License-Identifier: MIT */
/* More out of the standard streams than bytes, and around the mask of a file. The harness gives the
 * file `victim` of `outside`, open for reading only, or that directory itself as standard input. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attempt.h"

#define MASKED "project/.env"
#define MASK_SETTLES_STEPS (has_arg("twin") ? 10 : 750)
#define MASK_STEP_MS 20

static int stdin_reopen(void)
{
    int fd = open("/proc/self/fd/0", O_WRONLY | O_APPEND | O_CLOEXEC);
    return judge("reopen", fd < 0 ? -1 : write(fd, "changed\n", 8));
}

static int stdin_directory_read(void)
{
    return judge_read_fd("openat", openat(STDIN_FILENO, "secret", O_RDONLY | O_CLOEXEC));
}

static int stdin_directory_list(void)
{
    DIR *directory = fdopendir(STDIN_FILENO);
    const struct dirent *item;
    while (directory && (item = readdir(directory)))
        say("entry %s", item->d_name);
    return directory ? REFUSED : judge("fdopendir", -1);
}

static int stdin_directory_climb(void)
{
    return judge_read_fd("openat ..",
                         openat(STDIN_FILENO, "../outside/secret", O_RDONLY | O_CLOEXEC));
}

static int stdin_directory_mode(void)
{
    return judge("fchmodat", fchmodat(STDIN_FILENO, "victim", 0777, 0));
}

static int stdin_directory_create(void)
{
    return judge("openat", openat(STDIN_FILENO, "created", O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
}

static int stdin_directory_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/proc/self/fd/0/app.sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return judge("connect", -1);
    return judge_read_fd("connect", fd);
}

/* The same directory is granted a second time, elsewhere. */
static int masked_alias(void)
{
    return judge_read(has_arg("twin") ? arg_path("work", MASKED) : "/mnt/" MASKED);
}

/* The host has put another directory in the place of the one above the masked file: the mask may take
 * its time, but must come back. */
static int masked_parent_replaced(void)
{
    const char *path = arg_path("work", MASKED);
    wait_for_harness();
    for (int i = 0; i < MASK_SETTLES_STEPS; i++) {
        struct stat info;
        if (stat(path, &info) < 0 || info.st_size == 0)
            break;
        pause_ms(MASK_STEP_MS);
    }
    return judge_read(path);
}

static int read_in_tmp(void)
{
    return judge_read(arg("secret_tmp"));
}

static int read_in_run(void)
{
    return judge_read(arg("secret_run"));
}

static int read_in_home(void)
{
    return judge_read(arg("secret_home"));
}

/* The byte that is there already, for the secret begins with it. Of no bytes at all the kernel says that
 * they were written without looking for the process. */
static int write_memory_of_outsider(void)
{
    char first = 'T';
    struct iovec ours = {&first, 1};
    struct iovec theirs = {(void *)arg_number("address"), 1};
    return judge("process_vm_writev",
                 process_vm_writev((pid_t)arg_number("victim"), &ours, 1, &theirs, 1, 0));
}

/* Where it gets through it also reaches the harness, and whatever that starts later: so one more
 * than our own, which is the victim's. */
static int renice_outsider(void)
{
    int wanted = getpriority(PRIO_PROCESS, 0) + 1;
    (void)judge("by user", setpriority(PRIO_USER, 0, wanted));
    return judge("by process", setpriority(PRIO_PROCESS, (id_t)arg_number("victim"), wanted));
}

const struct attempt attempts_streams[] = {
    {"stdin-reopen", stdin_reopen},
    {"stdin-directory-read", stdin_directory_read},
    {"stdin-directory-list", stdin_directory_list},
    {"stdin-directory-climb", stdin_directory_climb},
    {"stdin-directory-mode", stdin_directory_mode},
    {"stdin-directory-create", stdin_directory_create},
    {"stdin-directory-socket", stdin_directory_socket},
    {"masked-alias", masked_alias},
    {"masked-parent-replaced", masked_parent_replaced},
    {"read-in-tmp", read_in_tmp},
    {"read-in-run", read_in_run},
    {"read-in-home", read_in_home},
    {"write-memory-of-outsider", write_memory_of_outsider},
    {"renice-outsider", renice_outsider},
    {NULL, NULL},
};
