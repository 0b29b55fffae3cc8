/* SPDX-License-Identifier: MIT */
/* What cannot be protected, as git must write it: looked at before the run and after it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/gitindex.h"
#include "cli/message.h"
#include "cli/protect.h"
#include "cli/protect_parts.h"
#include "cli/worktree.h"

#define HEAD_LENGTH_MAX 255 /* as much as git reads */
#define HASH_LENGTH 40
#define SUBMODULES_MAX 2048 /* compared, each with each */
#define ASIDE_TRIES 64
#define SETTLED_NS 100000000 /* two changes of a file this far apart have different times */

/* The commands in these are run when somebody goes on with what they are about. */
static const char *const unfinished[] = {"rebase-merge", "rebase-apply"};

/* One working tree with its repository, before the run. */
struct protect_seen {
    char *path;
    int top_fd;
    int git_fd;          /* of its repository, or -1 */
    bool top_is_git_dir; /* the directory itself */
    bool git_is_git_dir; /* not where the repository is a worktree's */
    bool has_head;
    bool is_unfinished[ARRAY_LENGTH(unfinished)];
    bool submodules; /* are to be compared */
    bool index_known;
    bool index_settled; /* if it changes, it has other times than these: */
    struct stat index_info;
    struct str links;     /* submodules in the index, each ended by a NUL */
    struct str populated; /* those that have a repository */
    struct str modules;   /* submodules' repositories in this one */
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

/* ---- submodules in the index ---- */

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

static bool read_links(const void *bytes, size_t length, size_t hash_size, struct str *links)
{
    struct gitindex index;
    const char *name = NULL;
    int status = gitindex_begin(&index, bytes, length, hash_size) ? 1 : -1;
    for (int count = 0; status > 0 && (status = gitindex_next(&index, &name)) > 0; count++) {
        if (count == SUBMODULES_MAX)
            return false;
        str_append_bytes(links, name, strlen(name) + 1);
    }
    return status == 0 && !links->failed;
}

/* The submodules in the index. False if it is not understood; where there is none, there are none. */
static bool find_links(int git_fd, struct str *links)
{
    if (!name_exists(git_fd, "index"))
        return true;
    size_t length = 0;
    autofree void *bytes = read_index(git_fd, &length);
    if (!bytes)
        return false;
    if (read_links(bytes, length, GITINDEX_SHA1, links))
        return true;
    links->length = 0;
    return read_links(bytes, length, GITINDEX_SHA256, links);
}

static bool has_settled(const struct stat *info)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return false;
    return (now.tv_sec - info->st_ctim.tv_sec) * 1000000000LL + now.tv_nsec -
               info->st_ctim.tv_nsec >
           SETTLED_NS;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whether the index is what it was: nobody but the kernel sets the time of a file's last change. */
static bool is_index_same(const struct protect_seen *seen)
{
    struct stat now;
    const struct stat *then = &seen->index_info;
    return seen->index_settled && fstatat(seen->git_fd, "index", &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
           now.st_size == then->st_size && is_same_time(&now.st_mtim, &then->st_mtim) &&
           is_same_time(&now.st_ctim, &then->st_ctim);
}

static const char *next_of(const struct str *list, const char *at)
{
    at = at ? at + strlen(at) + 1 : list->data;
    return at && at < list->data + list->length ? at : NULL;
}

static bool has_name(const struct str *list, const char *name)
{
    for (const char *at = NULL; (at = next_of(list, at));)
        if (strcmp(at, name) == 0)
            return true;
    return false;
}

/* ---- before ---- */

int protect_remember(struct protect *protect, int top_fd, const char *path, const char *git_dir,
                     bool submodules, struct brig_error *err)
{
    struct protect_seen *all =
        reallocarray(protect->seen, protect->seen_count + 1, sizeof *protect->seen);
    if (!all)
        return brig_fail_nomem(err);
    protect->seen = all;
    struct protect_seen seen = {.git_fd = -1, .top_is_git_dir = worktree_is_git_dir(top_fd)};
    int status = str_copy(path, &seen.path, err);
    if (status < 0)
        return status;
    seen.top_fd = openat(top_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (git_dir[0])
        seen.git_fd = open(git_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (seen.git_fd >= 0) {
        seen.git_is_git_dir = worktree_is_git_dir(seen.git_fd);
        seen.has_head = has_head(seen.git_fd);
        for (size_t i = 0; i < ARRAY_LENGTH(unfinished); i++)
            seen.is_unfinished[i] = name_exists(seen.git_fd, unfinished[i]);
        seen.submodules = submodules;
        seen.index_settled = /* the time is taken before the index is read */
            fstatat(seen.git_fd, "index", &seen.index_info, AT_SYMLINK_NOFOLLOW) == 0 &&
            has_settled(&seen.index_info);
        seen.index_known = find_links(seen.git_fd, &seen.links);
        protect_list_modules(seen.git_fd, &seen.modules);
    }
    protect->seen[protect->seen_count++] = seen;
    return 0;
}

const char *protect_next_link(const struct protect *protect, size_t index, const char *link,
                              int *ret_top_fd)
{
    *ret_top_fd = protect->seen[index].top_fd;
    return next_of(&protect->seen[index].links, link);
}

void protect_has_repository(struct protect *protect, size_t index, const char *link)
{
    str_append_bytes(&protect->seen[index].populated, link, strlen(link) + 1);
}

void protect_leave_links(struct protect *protect, size_t index, const char *link)
{
    for (size_t i = index; i < protect->seen_count; i++, link = NULL)
        for (const char *at = link ? link : next_of(&protect->seen[i].links, NULL); at;
             at = next_of(&protect->seen[i].links, at))
            protect_has_repository(protect, i, at);
}

/* ---- after ---- */

/* Gives a name in a directory another, "X.made-in-jail" or with a number, in `to_fd`. Nobody is left in
 * the jail who could take that up in between. */
static bool put_aside(int dir_fd, const char *name, int to_fd, const char *to_name, char *ret_name,
                      size_t size)
{
    for (int i = 0; i < ASIDE_TRIES; i++) {
        (void)snprintf(ret_name, size, i ? "%s.made-in-jail.%d" : "%s.made-in-jail", to_name, i);
        if (name_exists(to_fd, ret_name))
            continue;
        return renameat(dir_fd, name, to_fd, ret_name) == 0;
    }
    return false;
}

/* Whether there is a repository where a submodule's files are: in it, git would obey its settings. */
static bool open_populated(int top_fd, const char *link, int *ret_fd)
{
    return path_open_beneath(top_fd, link, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, ret_fd, NULL) ==
               0 &&
           name_exists(*ret_fd, ".git") && !protect_is_empty(*ret_fd, ".git");
}

/* `git status` runs in every submodule that the index names. A prompt may run it before the user has
 * read a line: so a repository that was not there before the run is put aside. */
static void compare_link(const struct protect_seen *seen, const char *link)
{
    autoclose int fd = -1;
    char name[64];
    if (!open_populated(seen->top_fd, link, &fd))
        return;
    if (put_aside(fd, ".git", fd, ".git", name, sizeof name))
        message_warning(
            "the run made '%s/%s' a submodule; 'git status' would obey its settings, so its .git "
            "was renamed to '%s'. To use it, check its config and hooks, then rename it back",
            seen->path, link, name);
    else
        message_warning("the run made '%s/%s' a submodule, whose settings 'git status' obeys. To "
                        "undo it: git rm --cached",
                        seen->path, link);
}

static void compare_index(const struct protect_seen *seen)
{
    autostr struct str links = {0};
    bool same = is_index_same(seen);
    if (!seen->index_known)
        return;
    if (!same && !find_links(seen->git_fd, &links)) {
        message_warning("the index of the repository of '%s' is not as before, and cannot be "
                        "searched for new submodules. Look with: git ls-files -s | grep ^160000",
                        seen->path);
        return;
    }
    for (const char *at = NULL; (at = next_of(same ? &seen->links : &links, at));)
        if (!has_name(&seen->populated, at))
            compare_link(seen, at);
}

/* Whether something in a list lies below a path. */
static bool has_below(const struct str *list, const char *path)
{
    size_t length = strlen(path);
    for (const char *at = NULL; (at = next_of(list, at));)
        if (strncmp(at, path, length) == 0 && at[length] == '/')
            return true;
    return false;
}

/* `git submodule` takes what it finds in `modules` for the repository of a submodule. What other
 * submodules' repositories lie in stays where it is. */
static void compare_modules(const struct protect_seen *seen)
{
    autostr struct str modules = {0};
    protect_list_modules(seen->git_fd, &modules);
    for (const char *at = NULL; (at = next_of(&modules, at));) {
        char name[64];
        if (has_name(&seen->modules, at) || !name_exists(seen->git_fd, at))
            continue; /* as before, or put aside with what it was in */
        bool aside = !has_below(&seen->modules, at) &&
                     put_aside(seen->git_fd, at, seen->git_fd, "modules", name, sizeof name);
        message_warning("the run made '%s' in the repository of '%s': a submodule would use its "
                        "hooks and settings%s%s",
                        at, seen->path, aside ? ": it is now in " : "", aside ? name : "");
    }
}

static void compare(const struct protect_seen *seen)
{
    if (seen->top_fd >= 0 && !seen->top_is_git_dir && worktree_is_git_dir(seen->top_fd))
        message_warning("the run made '%s' a git repository, whose settings git may obey. Remove "
                        "HEAD, objects and refs there before you use git",
                        seen->path);
    if (seen->git_fd < 0)
        return;
    if ((seen->has_head && !has_head(seen->git_fd)) ||
        (seen->git_is_git_dir && !worktree_is_git_dir(seen->git_fd)))
        message_warning("the run damaged the repository of '%s' (HEAD, objects or refs), so that "
                        "git would use one in a directory above. Repair it before you use git; "
                        "HEAD contains a line such as 'ref: refs/heads/main'",
                        seen->path);
    for (size_t i = 0; i < ARRAY_LENGTH(unfinished); i++)
        if (!seen->is_unfinished[i] && name_exists(seen->git_fd, unfinished[i]))
            message_warning(
                "the run has left '%s' in the repository of '%s': going on with that "
                "rebase runs the commands in it. Look at them, or use: git rebase --quit",
                unfinished[i], seen->path);
    if (seen->submodules) {
        compare_index(seen);
        compare_modules(seen);
    }
}

void protect_compare(struct protect *protect, bool tell)
{
    for (size_t i = 0; i < protect->seen_count; i++) {
        struct protect_seen *seen = &protect->seen[i];
        if (tell)
            compare(seen);
        own_close(&seen->top_fd);
        own_close(&seen->git_fd);
        free(seen->path);
        str_done(&seen->links);
        str_done(&seen->populated);
        str_done(&seen->modules);
    }
    free(protect->seen);
    protect->seen = NULL;
    protect->seen_count = 0;
}
