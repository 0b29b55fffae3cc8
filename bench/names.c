/* SPDX-License-Identifier: MIT */
/* What the kernel alone takes for names that are held for protection: makes as many directories as brig
 * does where there is no repository, mounts each on itself, read-only, in a mount namespace in which
 * a command runs, and removes them: names on|off. With `off` it does all but that, so that the difference is
 * what they cost. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#define MOVE_MOUNT_T_EMPTY_PATH 0x40
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static const char *const names[] = {".git",          "refs",    ".envrc",    ".vscode", ".idea",
                                    ".devcontainer", ".husky",  ".mcp.json", ".claude", ".codex",
                                    ".cursor",       ".gemini", ".brig.conf"};
enum { NAMES = sizeof names / sizeof names[0] };

static void die(const char *what)
{
    fprintf(stderr, "names: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static int clone_tree(int dir, const char *path)
{
    long tree = syscall(SYS_open_tree, dir, path,
                        OPEN_TREE_CLONE | O_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
    if (tree < 0)
        die(path);
    return (int)tree;
}

/* The working directory is granted, as brig does it. */
static int grant(void)
{
    int here = open(".", O_PATH | O_CLOEXEC), tree = clone_tree(AT_FDCWD, ".");
    if (here < 0 || syscall(SYS_move_mount, tree, "", here, "",
                            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        die("move_mount");
    return tree;
}

static void hold(int dir, const char *name)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    int tree = clone_tree(dir, name);
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) <
            0 ||
        syscall(SYS_move_mount, tree, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        die(name);
}

static void run(int count)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        die("unshare");
    int dir = grant();
    for (int i = 0; i < count; i++)
        hold(dir, names[i]);
    execl("/bin/true", "true", (char *)NULL);
    die("/bin/true");
}

int main(int argc, char **argv)
{
    int count = argc > 1 && strcmp(argv[1], "on") == 0 ? NAMES : 0, status;
    for (int i = 0; i < count; i++)
        if (mkdir(names[i], 0755) < 0)
            die(names[i]);
    pid_t pid = fork();
    if (pid == 0)
        run(count);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < count; i++)
        if (rmdir(names[i]) < 0)
            die(names[i]);
    return pid > 0 && status == 0 ? 0 : 1;
}
