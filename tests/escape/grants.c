/* SPDX-License-Identifier: MIT */
/* Getting more out of a grant than it gives: read-only ones, masks inside, and
 * the line between two. `ro` is granted read-only; `work` holds project/.env,
 * which is masked, and project/.tool/hooks, which is granted read-only. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attempt.h"

#define MASKED "project/.env"
#define MASK_SETTLES_MS (has_arg("twin") ? 300 : 15000)

static int put(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0755);
    int answer = judge(path, fd < 0 ? -1 : write(fd, "changed\n", 8));
    if (fd >= 0)
        (void)close(fd);
    return answer;
}

static int write_read_only(void)
{
    return put(arg_path("ro", "file"), O_APPEND);
}

static int reopen_read_only(void)
{
    int fd = open(arg_path("ro", "file"), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return MISUSED;
    char again[64];
    (void)snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
    return put(again, O_APPEND);
}

static int map_read_only(void)
{
    int fd = open(arg_path("ro", "file"), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return judge("open", -1);
    char *bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return judge("mmap", -1);
    bytes[0] = '!';
    return THROUGH;
}

static int chmod_read_only(void)
{
    int fd = open(arg_path("ro", "file"), O_RDONLY | O_CLOEXEC);
    int by_fd = judge("fchmod", fd < 0 ? -1 : fchmod(fd, 0777));
    return by_fd == THROUGH ? by_fd : judge("chmod", chmod(arg_path("ro", "file"), 0777));
}

static int move_out_of_read_only(void)
{
    return judge("rename", rename(arg_path("ro", "file"), arg_path("work", "moved-out")));
}

static int link_out_of_read_only(void)
{
    const char *link = arg_path("work", "linked-out");
    (void)unlink(link);
    if (syscall(SYS_linkat, AT_FDCWD, arg_path("ro", "file"), AT_FDCWD, link, 0) < 0)
        return judge("linkat", -1);
    return put(link, O_APPEND);
}

static int exchange_with_read_only(void)
{
    const char *mine = arg_path("work", "exchanged");
    (void)put(mine, O_CREAT | O_TRUNC);
    return judge("renameat2 RENAME_EXCHANGE",
                 syscall(SYS_renameat2, AT_FDCWD, mine, AT_FDCWD, arg_path("ro", "file"), 2));
}

/* ---- masks ---- */

static int masked_read(void)
{
    return judge_read(arg_path("work", MASKED));
}

static int masked_read_by_link(void)
{
    const char *link = arg_path("work", "project/env-link");
    (void)unlink(link);
    if (linkat(AT_FDCWD, arg_path("work", MASKED), AT_FDCWD, link, 0) < 0)
        return judge("linkat", -1);
    return judge_read(link);
}

static int masked_move(void)
{
    if (rename(arg_path("work", MASKED), arg_path("work", "project/env")) < 0)
        return judge("rename", -1);
    return judge_read(arg_path("work", "project/env"));
}

static int masked_remove(void)
{
    if (unlink(arg_path("work", MASKED)) < 0)
        return judge("unlink", -1);
    return judge_read(arg_path("work", MASKED));
}

static int masked_write(void)
{
    (void)chmod(arg_path("work", MASKED), 0666);
    return put(arg_path("work", MASKED), O_TRUNC);
}

static int masked_move_parent(void)
{
    if (rename(arg_path("work", "project"), arg_path("work", "elsewhere")) < 0) {
        int answer = judge("rename", -1);
        return judge_read(arg_path("work", MASKED)) == THROUGH ? THROUGH : answer;
    }
    int answer = judge_read(arg_path("work", "elsewhere/.env"));
    (void)rename(arg_path("work", "elsewhere"), arg_path("work", "project"));
    return answer;
}

static int masked_directory(void)
{
    int inside = judge_read(arg_path("work", "project/private/key"));
    int dir = open(arg_path("work", "project/private"), O_PATH | O_CLOEXEC);
    int by_fd =
        judge_read_fd("through O_PATH", dir < 0 ? -1 : openat(dir, "key", O_RDONLY | O_CLOEXEC));
    return inside == THROUGH ? inside : by_fd;
}

/* The host replaces the masked file by another (as editors do) while the jail
 * runs. The kernel then drops the mount; the supervisor has to put it back.
 * Says how long the secret could be read. */
static int masked_replaced(void)
{
    const char *path = arg_path("work", MASKED);
    wait_for_harness();
    long begin = now_ms(), last_seen = -1;
    bool seen = false;
    char text[256] = "";
    while (now_ms() - begin < MASK_SETTLES_MS) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
            (void)close(fd);
        if (length > 0) {
            seen = true;
            last_seen = now_ms() - begin;
        } else if (now_ms() - begin > last_seen + 200) {
            break;
        }
        pause_ms(1);
    }
    say(seen ? "it could be read for about %ld ms" : "it could never be read (%ld)", last_seen);
    return judge_read(path);
}

/* ---- a read-only directory inside a read-write grant ---- */

static int hooks_write(void)
{
    return put(arg_path("work", "project/.tool/hooks/pre-commit"), O_CREAT | O_TRUNC);
}

static int hooks_move_away(void)
{
    if (rename(arg_path("work", "project/.tool"), arg_path("work", "project/old")) < 0)
        return judge("rename", -1);
    (void)mkdir(arg_path("work", "project/.tool"), 0755);
    (void)mkdir(arg_path("work", "project/.tool/hooks"), 0755);
    return hooks_write();
}

static int hooks_move_parent_away(void)
{
    if (rename(arg_path("work", "project"), arg_path("work", "old-project")) < 0)
        return judge("rename", -1);
    (void)mkdir(arg_path("work", "project"), 0755);
    (void)mkdir(arg_path("work", "project/.tool"), 0755);
    (void)mkdir(arg_path("work", "project/.tool/hooks"), 0755);
    return hooks_write();
}

/* Whoever opens it outside would wait. */
static int lease_in_grant(void)
{
    int fd = open(arg_path("work", "leased"), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    int answer = judge("lease", fd < 0 ? -1 : fcntl(fd, F_SETLEASE, F_WRLCK));
    if (fd >= 0)
        (void)close(fd);
    return answer;
}

const struct attempt attempts_grants[] = {
    {"write-read-only", write_read_only},
    {"reopen-read-only", reopen_read_only},
    {"map-read-only", map_read_only},
    {"chmod-read-only", chmod_read_only},
    {"move-out-of-read-only", move_out_of_read_only},
    {"link-out-of-read-only", link_out_of_read_only},
    {"exchange-with-read-only", exchange_with_read_only},
    {"masked-read", masked_read},
    {"masked-read-by-link", masked_read_by_link},
    {"masked-move", masked_move},
    {"masked-remove", masked_remove},
    {"masked-write", masked_write},
    {"masked-move-parent", masked_move_parent},
    {"masked-directory", masked_directory},
    {"masked-replaced", masked_replaced},
    {"hooks-write", hooks_write},
    {"hooks-move-away", hooks_move_away},
    {"hooks-move-parent-away", hooks_move_parent_away},
    {"lease-in-grant", lease_in_grant},
    {NULL, NULL},
};
