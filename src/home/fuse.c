/* SPDX-License-Identifier: MIT */
/* A copy-on-write home by fuse-overlayfs. */
#include "home/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/sys.h"

#define WAIT_MS 5000
#define STEP_MS 5
#define CAPABILITIES 64

/* A holder has at most one. */
static pid_t running;

/* Looks in the usual directories: a holder has no PATH. */
static const char *find_program(void)
{
    static const char *const places[] = {"/usr/bin/fuse-overlayfs", "/usr/local/bin/fuse-overlayfs",
                                         "/bin/fuse-overlayfs"};
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

const char *fuse_remedy(void)
{
    if (!find_program())
        return "install fuse-overlayfs";
    return access("/dev/fuse", R_OK | W_OK) == 0
               ? NULL
               : "let this user open /dev/fuse, which fuse-overlayfs needs";
}

/* Capabilities in our user namespace survive exec only if they are ambient. */
static void keep_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (SYS(capget, &header, data) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(data); i++)
        data[i].inheritable = data[i].permitted;
    (void)SYS(capset, &header, data);
    for (unsigned long i = 0; i < CAPABILITIES; i++)
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
}

static __attribute__((noreturn)) void become_program(const char *program, const char *options,
                                                     const struct fuse_tree *tree, int lock)
{
    const char *const argv[] = {"fuse-overlayfs", "-f", "-o", options, tree->place, NULL};
    char *const envp[] = {NULL};
    if (fchdir(tree->root) < 0 || chroot(".") < 0)
        _exit(127);
    keep_capabilities();
    (void)fcntl(lock, F_SETFD, 0);
    (void)execve(program, (char *const *)(uintptr_t)argv, envp);
    _exit(127);
}

static bool is_fuse(const char *place)
{
    struct statfs system;
    return statfs(place, &system) == 0 && system.f_type == FUSE_SUPER_MAGIC;
}

int fuse_mount(const struct fuse_tree *tree, int lock, struct brig_error *err)
{
    char options[4096];
    const char *program = find_program();
    int length = snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s",
                          tree->lower, tree->upper, tree->work);
    if (!program || length < 0 || (size_t)length >= sizeof options)
        return brig_fail(err, BRIG_E_SETUP, 0, "fuse-overlayfs cannot be used");
    pid_t pid = fork();
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot start fuse-overlayfs");
    if (pid == 0)
        become_program(program, options, tree, lock);
    for (int waited = 0; waited < WAIT_MS; waited += STEP_MS) {
        if (is_fuse(tree->seen)) {
            running = pid; /* it exits when all its mounts are gone */
            return 0;
        }
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return brig_fail(err, BRIG_E_SETUP, 0, "fuse-overlayfs could not mount");
        (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return brig_fail(err, BRIG_E_SETUP, 0, "fuse-overlayfs did not mount within %d seconds",
                     WAIT_MS / 1000);
}

void fuse_wait(void)
{
    for (int waited = 0; running > 0 && waited < WAIT_MS; waited += STEP_MS) {
        if (waitpid(running, NULL, WNOHANG) != 0)
            running = 0;
        else
            (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
}
