/* SPDX-License-Identifier: MIT */
/* Reading and changing files that are outside every grant. `outside` is a
 * directory of the jail's own host user, so nothing but the jail stands before
 * it; `work` is granted read-write. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attempt.h"

#define SECRET "secret"
#define VICTIM "victim"
#define DOTDOTS "../../../../../../../../../../../../.."

static int read_by_path(void)
{
    return judge_read(arg_path("outside", SECRET));
}

static int read_by_dotdot(void)
{
    int near = judge_read("../outside/" SECRET);
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s%s/%s", DOTDOTS, arg("outside"), SECRET);
    return near == THROUGH ? near : judge_read(path);
}

static int read_by_symlink(void)
{
    const char *link = arg_path("work", "link-to-secret");
    (void)unlink(link);
    if (symlink(arg_path("outside", SECRET), link) < 0)
        return judge("symlink", -1);
    int answer = judge_read(link);
    (void)unlink(link);
    return answer;
}

static int read_by_symlinked_directory(void)
{
    const char *link = arg_path("work", "link-to-dir");
    (void)unlink(link);
    if (symlink("../outside", link) < 0)
        return judge("symlink", -1);
    int dir = open(link, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir < 0 ? -1 : openat(dir, SECRET, O_RDONLY | O_CLOEXEC);
    int answer = judge_read_fd("through the linked directory", fd);
    (void)unlink(link);
    return answer;
}

static int read_by_hard_link(void)
{
    const char *link = arg_path("work", "hard-link");
    (void)unlink(link);
    if (linkat(AT_FDCWD, arg_path("outside", SECRET), AT_FDCWD, link, 0) < 0)
        return judge("linkat", -1);
    int answer = judge_read(link);
    (void)unlink(link);
    return answer;
}

/* The name of a thing another process has in /proc, then the way on from there.
 */
static int read_behind(const char *middle)
{
    static const char *const who[] = {"self", "thread-self", "1", "2"};
    int answer = REFUSED;
    for (size_t i = 0; i < sizeof(who) / sizeof(who[0]) && answer != THROUGH; i++) {
        char path[8192];
        (void)snprintf(path, sizeof(path), "/proc/%s/%s%s/%s", who[i], middle, arg("outside"),
                       SECRET);
        answer = judge_read(path);
    }
    return answer;
}

static int read_by_proc_root(void)
{
    return read_behind("root");
}

static int read_by_proc_cwd(void)
{
    return read_behind("cwd/" DOTDOTS);
}

static int read_by_proc_fd(void)
{
    int answer = REFUSED;
    DIR *proc = opendir("/proc");
    const struct dirent *item;
    /* All of them: the first that can be read need not be the secret. */
    while (proc && (item = readdir(proc))) {
        if (item->d_name[0] < '0' || item->d_name[0] > '9')
            continue;
        for (int fd = 0; fd < 16; fd++) {
            char path[512];
            struct stat info;
            (void)snprintf(path, sizeof(path), "/proc/%s/fd/%d", item->d_name, fd);
            if (stat(path, &info) < 0)
                continue;
            if (S_ISREG(info.st_mode) && judge_read(path) == THROUGH)
                answer = THROUGH;
            (void)snprintf(path, sizeof(path), "/proc/%s/fd/%d/" SECRET, item->d_name, fd);
            if (S_ISDIR(info.st_mode) && judge_read(path) == THROUGH)
                answer = THROUGH;
        }
    }
    if (proc)
        (void)closedir(proc);
    return answer;
}

static int read_by_path_fd(void)
{
    int path_fd = open(arg_path("outside", SECRET), O_PATH | O_CLOEXEC);
    if (path_fd < 0)
        return judge("open O_PATH", -1);
    char again[64];
    (void)snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
    return judge_read(again);
}

static int read_by_magic_link(void)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
    static const char *const doors[] = {"/proc/self/root", "/proc/1/root", "/proc/1/cwd"};
    int answer = REFUSED;
    for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]) && answer != THROUGH; i++) {
        int dir = open(doors[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        long fd =
            dir < 0 ? -1
                    : syscall(SYS_openat2, dir, arg_path("outside", SECRET) + 1, &how, sizeof(how));
        answer = judge_read_fd(doors[i], (int)fd);
    }
    return answer;
}

/* A directory fd kept while the directory is moved to another grant: `..` from
 * there must not lead past the grant. */
static int read_by_moved_directory(void)
{
    const char *deep = arg_path("work", "deep/er"), *moved = arg_path("second", "moved");
    (void)mkdir(arg_path("work", "deep"), 0777);
    (void)mkdir(deep, 0777);
    if (chdir(deep) < 0)
        return MISUSED;
    int answer = REFUSED;
    if (rename(deep, moved) < 0)
        answer = judge("rename across grants", -1);
    if (answer == REFUSED)
        answer = judge_read("../../outside/" SECRET);
    if (answer == REFUSED)
        answer = judge_read("../outside/" SECRET);
    (void)rmdir(moved);
    (void)rmdir(deep);
    (void)rmdir(arg_path("work", "deep"));
    return answer;
}

static int read_by_handle(void)
{
    struct file_handle *handle = calloc(1, sizeof(*handle) + MAX_HANDLE_SZ);
    if (!handle)
        return MISUSED;
    /* TYPE:HEX as the helper `handle` printed it. */
    char *at = NULL;
    handle->handle_type = (int)strtol(arg("handle"), &at, 10);
    for (at++; at[0] && at[1]; at += 2) {
        char byte[3] = {at[0], at[1], '\0'};
        handle->f_handle[handle->handle_bytes++] = (unsigned char)strtoul(byte, NULL, 16);
    }
    int mount = open(arg("work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return judge_read_fd("open_by_handle_at", open_by_handle_at(mount, handle, O_RDONLY));
}

static int read_shadow(void)
{
    return judge_read("/etc/shadow");
}

static int read_root_only(void)
{
    return judge_read(arg("root_only"));
}

static int read_by_group(void)
{
    return judge_read(arg("group_file"));
}

static int list_outside(void)
{
    DIR *dir = opendir(arg("outside"));
    const struct dirent *item;
    int answer = judge("opendir", dir ? 0 : -1);
    while (dir && (item = readdir(dir)))
        say("entry %s", item->d_name);
    if (dir)
        (void)closedir(dir);
    return answer;
}

/* ---- changing ---- */

static int write_by_path(void)
{
    int fd = open(arg_path("outside", VICTIM), O_WRONLY | O_APPEND | O_CLOEXEC);
    return judge("append", fd < 0 ? -1 : write(fd, "changed\n", 8));
}

static int write_by_symlink(void)
{
    const char *link = arg_path("work", "link-to-victim");
    (void)unlink(link);
    if (symlink(arg_path("outside", VICTIM), link) < 0)
        return judge("symlink", -1);
    int fd = open(link, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int answer = judge("append", fd < 0 ? -1 : write(fd, "changed\n", 8));
    (void)unlink(link);
    return answer;
}

static int truncate_by_path(void)
{
    return judge("truncate", truncate(arg_path("outside", VICTIM), 0));
}

static int remove_file(void)
{
    return judge("unlink", unlink(arg_path("outside", VICTIM)));
}

static int replace_file(void)
{
    const char *mine = arg_path("work", "replacement");
    int fd = open(mine, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return MISUSED;
    (void)!write(fd, "changed\n", 8);
    int answer = judge("rename", rename(mine, arg_path("outside", VICTIM)));
    (void)unlink(mine);
    return answer;
}

static int create_file(void)
{
    return judge("create",
                 open(arg_path("outside", "created"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
}

static int create_directory(void)
{
    return judge("mkdir", mkdir(arg_path("outside", "created"), 0777));
}

static int change_mode(void)
{
    return judge("chmod", chmod(arg_path("outside", VICTIM), 0777));
}

static int change_times(void)
{
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    return judge("utimensat", utimensat(AT_FDCWD, arg_path("outside", VICTIM), times, 0));
}

static int change_attribute(void)
{
    return judge("setxattr", setxattr(arg_path("outside", VICTIM), "user.changed", "1", 1, 0));
}

static int write_system(void)
{
    static const char *const paths[] = {"/usr/bin", "/usr/lib", "/etc", "/bin", "/"};
    int answer = REFUSED;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && answer == REFUSED; i++) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/brig-escape-was-here",
                       has_arg("twin") ? arg("twin_dir") : paths[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        answer = judge(path, fd);
        if (fd >= 0)
            (void)unlink(path);
    }
    return answer;
}

const struct attempt attempts_files[] = {
    {"read-by-path", read_by_path},
    {"read-by-dotdot", read_by_dotdot},
    {"read-by-symlink", read_by_symlink},
    {"read-by-symlinked-directory", read_by_symlinked_directory},
    {"read-by-hard-link", read_by_hard_link},
    {"read-by-proc-root", read_by_proc_root},
    {"read-by-proc-cwd", read_by_proc_cwd},
    {"read-by-proc-fd", read_by_proc_fd},
    {"read-by-path-fd", read_by_path_fd},
    {"read-by-magic-link", read_by_magic_link},
    {"read-by-moved-directory", read_by_moved_directory},
    {"read-by-handle", read_by_handle},
    {"read-shadow", read_shadow},
    {"read-root-only", read_root_only},
    {"read-by-group", read_by_group},
    {"list-outside", list_outside},
    {"write-by-path", write_by_path},
    {"write-by-symlink", write_by_symlink},
    {"truncate-by-path", truncate_by_path},
    {"remove-file", remove_file},
    {"replace-file", replace_file},
    {"create-file", create_file},
    {"create-directory", create_directory},
    {"change-mode", change_mode},
    {"change-times", change_times},
    {"change-attribute", change_attribute},
    {"write-system", write_system},
    {NULL, NULL},
};
