/* SPDX-License-Identifier: MIT */
/* What cannot be protected, as git must write it: looked at before the run and after it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/gitindex.h"
#include "cli/message.h"
#include "cli/protect.h"
#include "cli/protect_parts.h"
#include "cli/worktree.h"

#define HEAD_LENGTH_MAX 255 /* as much as git reads */
#define HASH_LENGTH 40
#define SUBMODULES_MAX 2048 /* compared, each with each */

/* The commands in these are run when somebody goes on with what they are about. */
static const char *const unfinished[] = {"rebase-merge", "rebase-apply"};

/* One granted directory, before the run. */
struct protect_seen {
    char *path;
    int top_fd;
    int git_fd;          /* of its repository, or -1 */
    bool top_is_git_dir; /* the directory itself */
    bool git_is_git_dir; /* not where the repository is a worktree's */
    bool has_head;
    bool is_unfinished[ARRAY_LENGTH(unfinished)];
    bool index_known;
    struct str links; /* submodules in the index, each ended by a NUL */
};

static bool name_exists(int dir_fd, const char *name)
{
    struct stat info;
    return fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether HEAD is one that git accepts; it takes a directory without for no repository. */
static bool has_head(int git_fd)
{
    char text[HEAD_LENGTH_MAX + 1] = "";
    if (readlinkat(git_fd, "HEAD", text, sizeof text - 1) > 0)
        return strncmp(text, "refs/", 5) == 0;
    autoclose int fd = openat(git_fd, "HEAD", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    if (strncmp(text, "ref:", 4) == 0) {
        const char *name = text + 4 + strspn(text + 4, " \t\n\r");
        return strncmp(name, "refs/", 5) == 0;
    }
    return strspn(text, "0123456789abcdefABCDEF") >= HASH_LENGTH;
}

/* The bytes of the index, for the caller to free; NULL if there is none, or too much of it. */
static void *read_index(int git_fd, size_t *ret_length)
{
    autoclose int fd = openat(git_fd, "index", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
        info.st_size > GITINDEX_MAX)
        return NULL;
    size_t used = 0, size = (size_t)info.st_size;
    autofree char *bytes = malloc(size);
    while (bytes && used < size) {
        ssize_t got = read(fd, bytes + used, size - used);
        if (got == 0 || (got < 0 && errno != EINTR))
            return NULL;
        used += got > 0 ? (size_t)got : 0;
    }
    *ret_length = used;
    return take_ptr(&bytes);
}

/* The submodules in the index. False if it is not understood; where there is none, there are none. */
static bool find_links(int git_fd, struct str *links)
{
    if (!name_exists(git_fd, "index"))
        return true;
    size_t length = 0;
    autofree void *bytes = read_index(git_fd, &length);
    struct gitindex index;
    if (!bytes || !gitindex_begin(&index, bytes, length))
        return false;
    const char *name = NULL;
    int status;
    for (int count = 0; (status = gitindex_next(&index, &name)) > 0; count++) {
        if (count == SUBMODULES_MAX)
            return false;
        str_append_bytes(links, name, strlen(name) + 1);
    }
    return status == 0 && !links->failed;
}

static bool has_link(const struct str *links, const char *name)
{
    for (const char *at = links->data; at && at < links->data + links->length; at += strlen(at) + 1)
        if (strcmp(at, name) == 0)
            return true;
    return false;
}

int protect_remember(struct protect *protect, const struct protect_root *root, const char *git_dir,
                     struct brig_error *err)
{
    struct protect_seen *all =
        reallocarray(protect->seen, protect->seen_count + 1, sizeof *protect->seen);
    if (!all)
        return brig_fail_nomem(err);
    protect->seen = all;
    struct protect_seen seen = {.git_fd = -1, .top_is_git_dir = worktree_is_git_dir(root->fd)};
    int status = str_copy(root->path, &seen.path, err);
    if (status < 0)
        return status;
    seen.top_fd = openat(root->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (git_dir[0])
        seen.git_fd = open(git_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (seen.git_fd >= 0) {
        seen.git_is_git_dir = worktree_is_git_dir(seen.git_fd);
        seen.has_head = has_head(seen.git_fd);
        for (size_t i = 0; i < ARRAY_LENGTH(unfinished); i++)
            seen.is_unfinished[i] = name_exists(seen.git_fd, unfinished[i]);
        seen.index_known = find_links(seen.git_fd, &seen.links);
    }
    protect->seen[protect->seen_count++] = seen;
    return 0;
}

static void compare_index(const struct protect_seen *seen)
{
    autostr struct str links = {0};
    if (!seen->index_known)
        return;
    if (!find_links(seen->git_fd, &links)) {
        message_warning("the index of the repository of '%s' is not as before, and cannot be "
                        "searched for new submodules. Look with: git ls-files -s | grep ^160000",
                        seen->path);
        return;
    }
    for (const char *at = links.data; at && at < links.data + links.length; at += strlen(at) + 1) {
        if (has_link(&seen->links, at))
            continue;
        message_warning("the index of the repository of '%s' has a new submodule, '%s': 'git "
                        "status' obeys the settings of a repository in there, which the run may "
                        "have made. If you do not want it, use: git rm --cached",
                        seen->path, at);
        return; /* one is enough to be alarmed */
    }
}

static void compare(const struct protect_seen *seen)
{
    if (seen->top_fd >= 0 && !seen->top_is_git_dir && worktree_is_git_dir(seen->top_fd))
        message_warning("the run has made '%s' itself a repository, whose settings git may obey. "
                        "Remove HEAD, objects and refs there before you use git",
                        seen->path);
    if (seen->git_fd < 0)
        return;
    if ((seen->has_head && !has_head(seen->git_fd)) ||
        (seen->git_is_git_dir && !worktree_is_git_dir(seen->git_fd)))
        message_warning("the run has damaged the repository of '%s' (HEAD, objects or refs): git "
                        "takes it for none, and looks for another. Put it back before you use git; "
                        "HEAD holds a line such as 'ref: refs/heads/main'",
                        seen->path);
    for (size_t i = 0; i < ARRAY_LENGTH(unfinished); i++)
        if (!seen->is_unfinished[i] && name_exists(seen->git_fd, unfinished[i]))
            message_warning(
                "the run has left '%s' in the repository of '%s': going on with that "
                "rebase runs the commands in it. Look at them, or use: git rebase --quit",
                unfinished[i], seen->path);
    compare_index(seen);
}

void protect_compare(struct protect *protect)
{
    for (size_t i = 0; i < protect->seen_count; i++) {
        struct protect_seen *seen = &protect->seen[i];
        compare(seen);
        own_close(&seen->top_fd);
        own_close(&seen->git_fd);
        free(seen->path);
        str_done(&seen->links);
    }
    free(protect->seen);
    protect->seen = NULL;
    protect->seen_count = 0;
}
