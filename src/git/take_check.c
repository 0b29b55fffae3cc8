/* SPDX-License-Identifier: MIT */
/* The locks of a hand-over, and whether each value is the old or the new one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "git/taking.h"

#define LOCK_WAIT_MS 5000
#define LOCK_STEP_MS 20

/* ---- the hash of an index ---- */

struct take_hash {
    struct sha256 hash;
    bool has_empty; /* an entry without contents, which may be one that is to be added */
};

static bool take_hash_entry(void *data, const char *entry, size_t length)
{
    static const char *const empty[] = {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"};
    struct take_hash *h = data;
    for (size_t i = 0; i < ARRAY_LENGTH(empty); i++)
        h->has_empty |= strstr(entry, empty[i]) != NULL;
    sha256_add(&h->hash, entry, length + 1);
    return true;
}

int git_hash_index(const struct git *git, int git_dir, const char *index, char ret_hash[65],
                   struct brig_error *err)
{
    struct take_hash h = {0};
    char ids[64] = "";
    autostr struct str empty = {0};
    const char *const list[] = {"ls-files", "-s", "-v", "-z", NULL};
    const char *const tree[] = {"hash-object", "-t", "tree", "--stdin", NULL};
    struct git_call call = {
        .git_dir = git_dir, .index = index, .words = list, .each = take_hash_entry, .data = &h};
    sha256_begin(&h.hash);
    int status = git_run(git, &call, err);
    if (status == 0 && h.has_empty) {
        status =
            git_run(git, &(struct git_call){.git_dir = git_dir, .words = tree, .out = &empty}, err);
        if (status == 0)
            (void)snprintf(ids, sizeof ids, "%.*s", (int)strcspn(empty.data, "\n"), empty.data);
        const char *const known[] = {"diff-index",  "--cached", "--ita-invisible-in-index",
                                     "--name-only", "-z",       empty.data,
                                     "--",          NULL};
        if (empty.length > 0)
            empty.data[strcspn(empty.data, "\n")] = '\0';
        call.words = known;
        if (status == 0)
            status = git_run(git, &call, err);
    }
    if (status > 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot read an index");
    if (status == 0)
        sha256_end(&h.hash, ret_hash);
    return status;
}

/* ---- the locks ---- */

/* Removes a file of ours, which is one if its identity was written down. */
void take_drop_lock(const struct git_taking *t, const struct take_tree *tree)
{
    static const char *const names[] = {INDEX_LOCK, INDEX_AHEAD};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char id[FILES_ID_MAX];
        if (files_identify(tree->git_dir, names[i], id) && str_list_has(&t->locks, id))
            (void)unlinkat(tree->git_dir, names[i], 0);
    }
}

static int take_note_lock(struct git_taking *t, const struct take_tree *tree,
                          struct brig_error *err)
{
    char id[FILES_ID_MAX];
    if (!files_identify(tree->git_dir, INDEX_AHEAD, id))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the index of '%s'",
                         str_shown(tree->path).text);
    str_list_add(&t->locks, id);
    return t->locks.failed ? brig_fail_nomem(err)
                           : files_write_durable(t->record, GIT_RECORD_LOCKS, t->locks.data,
                                                 t->locks.length, err);
}

void take_index_name(const struct git_taking *t, size_t tree, char ret_name[32])
{
    (void)snprintf(ret_name, 32, "index-%zu.%s", tree, t->towards == GIT_TO_NEW ? "new" : "old");
}

/* Makes the file that becomes the lock, and then the index. */
static int take_make_lock(struct git_taking *t, size_t number, struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[number];
    char name[32];
    take_index_name(t, number, name);
    (void)unlinkat(tree->git_dir, INDEX_AHEAD, 0);
    int status = take_find(t, number, TAKE_INDEX)
                     ? copying_file(t->copies, name, tree->git_dir, INDEX_AHEAD, err)
                     : 0;
    if (status < 0)
        return status;
    autoclose int fd =
        openat(tree->git_dir, INDEX_AHEAD, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    struct stat old;
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to '%s'",
                         str_shown(tree->git_path).text);
    if (fstatat(tree->git_dir, "index", &old, AT_SYMLINK_NOFOLLOW) == 0) {
        (void)fchmod(fd, old.st_mode & 0777);
        /* git reads a file that is not older than its index, whose entries have the same times as before */
        (void)futimens(fd, (const struct timespec[]){{.tv_nsec = UTIME_OMIT}, old.st_mtim});
    }
    return fsync(fd) < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to '%s'",
                                     str_shown(tree->git_path).text)
                         : take_note_lock(t, tree, err);
}

/* Gives the file the name of the lock, as git's own lock without replacing one: -1 with errno. */
static int take_place_lock(const struct take_tree *tree)
{
    int dir = tree->git_dir;
    if (linkat(dir, INDEX_AHEAD, dir, INDEX_LOCK, 0) == 0)
        return unlinkat(dir, INDEX_AHEAD, 0);
    return errno == EEXIST ? -1 : renameat2(dir, INDEX_AHEAD, dir, INDEX_LOCK, RENAME_NOREPLACE);
}

int take_lock(struct git_taking *t, size_t number, struct brig_error *err)
{
    struct take_tree *tree = &t->trees[number];
    int status = take_make_lock(t, number, err);
    if (status < 0)
        return status;
    for (int waited_ms = 0; take_place_lock(tree) < 0; waited_ms += LOCK_STEP_MS) {
        if (errno != EEXIST)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s/" INDEX_LOCK "'",
                             str_shown(tree->git_path).text);
        if (waited_ms >= LOCK_WAIT_MS)
            return brig_fail(err, BRIG_E_STATE, 0,
                             "another git process works in '%s', or has left '%s/" INDEX_LOCK
                             "' behind",
                             str_shown(tree->path).text, str_shown(tree->git_path).text);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_MS * 1000000L}, NULL);
    }
    tree->locked = true;
    return 0;
}

/* In the order of paths, so that two hand-overs do not wait for each other. */
int take_lock_all(struct git_taking *t, struct brig_error *err)
{
    int status = 0;
    t->again = t->partly = files_read(t->record, GIT_RECORD_LOCKS, &t->locks);
    if (t->placed_count > 0 && !t->again)
        status = files_write(t->record, GIT_RECORD_LOCKS, "", 1, err);
    for (size_t i = 0; i < t->tree_count; i++)
        take_drop_lock(t, &t->trees[i]);
    for (size_t i = 0; i < t->tree_count && status == 0; i++) {
        size_t next = t->tree_count;
        for (size_t k = 0; k < t->tree_count; k++)
            if (!t->trees[k].locked && (next == t->tree_count ||
                                        strcmp(t->trees[k].git_path, t->trees[next].git_path) < 0))
                next = k;
        status = take_lock(t, next, err);
    }
    return status;
}

/* ---- checking ---- */

static int take_differs(const char *what, const char *value, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_STATE, 0, "%s%s has changed meanwhile", what,
                     str_shown(value).text);
}

/* In how many working trees of the record a branch is: HEAD and index are in it, too. */
static size_t take_count_own(const struct git_taking *t, size_t repo, const char *branch)
{
    size_t count = 0;
    for (size_t i = 0; i < t->tree_count; i++)
        count += t->trees[i].repo == repo && take_find(t, i, TAKE_INDEX) &&
                 strcmp(t->trees[i].head, branch) == 0;
    return count;
}

static int take_check_ref(struct git_taking *t, const struct take_entry *entry,
                          struct brig_error *err)
{
    size_t number = t->trees[entry->tree].repo;
    const struct take_repo *repo = &t->repos[number];
    const struct ref *ref = refs_get(&repo->now.refs, entry->name);
    const char *now = ref ? ref->id : NULL;
    if (str_equal(now, take_to(t, entry)))
        return 0;
    if (!str_equal(now, take_from(t, entry)) || (ref && ref->symbolic))
        return take_differs("", entry->name, err);
    return side_count_worktrees(&repo->worktrees, entry->name) >
                   take_count_own(t, number, entry->name)
               ? brig_fail(err, BRIG_E_STATE, 0,
                           "%s is checked out, rebased or bisected in another working tree",
                           entry->name)
               : 0;
}

static int take_check_head(const struct git_taking *t, const struct take_entry *entry,
                           struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[entry->tree];
    return str_equal(tree->head, take_to(t, entry)) || str_equal(tree->head, take_from(t, entry))
               ? 0
               : take_differs("HEAD of ", tree->path, err);
}

static int take_check_index(const struct git_taking *t, const struct take_entry *entry,
                            struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[entry->tree];
    char hash[65];
    int status = git_hash_index(t->git, tree->git_dir, NULL, hash, err);
    if (status < 0)
        return status;
    return str_equal(hash, take_to(t, entry)) || str_equal(hash, take_from(t, entry))
               ? 0
               : take_differs("the index of ", tree->path, err);
}

size_t take_id_length(const char *stash)
{
    return strcspn(stash, " ");
}

bool take_is_stash(const char *text, const char *id)
{
    return take_id_length(text) == strlen(id) && strncmp(text, id, strlen(id)) == 0;
}

size_t take_count_values(const struct git_taking *t, const struct take_entry *entry,
                         enum git_direction side)
{
    size_t count = 0;
    for (size_t i = entry->first; i < entry->first + entry->count; i++)
        count += t->values[i].side == side;
    return count;
}

/* Whether the stashes that are there are those of one side or, `partly`, some of them. */
static bool take_are_stashes(const struct git_taking *t, const struct take_entry *entry,
                             const struct side *now, enum git_direction side, bool partly)
{
    size_t count = take_count_values(t, entry, side), at = 0;
    for (size_t i = 0; i < count; i++)
        at += at < now->stash_count &&
              take_is_stash(take_value(t, entry, side, i), now->stashes[at].id);
    return at == now->stash_count && (partly || count == at);
}

static int take_check_stashes(const struct git_taking *t, const struct take_entry *entry,
                              struct brig_error *err)
{
    const struct side *now = &t->repos[t->trees[entry->tree].repo].now;
    return take_are_stashes(t, entry, now, GIT_TO_OLD, t->again) ||
                   take_are_stashes(t, entry, now, GIT_TO_NEW, t->again)
               ? 0
               : take_differs("the list of stashes of ", t->trees[entry->tree].path, err);
}

/* The value of a key in `file`; "" if there is none. */
int take_read_config(const struct git_taking *t, const struct take_entry *entry,
                     const struct git_call *how, struct str *ret_value, struct brig_error *err)
{
    struct git_call call = *how;
    call.out = ret_value;
    int status = GIT(t, &call, err, "config", "--file", "config", "-z", "--get", entry->name);
    return status < 0 ? status : 0;
}

static int take_check_config(const struct git_taking *t, const struct take_entry *entry,
                             struct brig_error *err)
{
    const struct git_call how = {.git_dir = t->repos[t->trees[entry->tree].repo].common};
    const char *from = take_from(t, entry), *to = take_to(t, entry);
    autostr struct str now = {0};
    int status = take_read_config(t, entry, &how, &now, err);
    const char *value = now.length > 0 ? now.data : NULL;
    if (status < 0 || str_equal(value, to) || str_equal(value, from))
        return status;
    return take_differs("the setting ", entry->name, err);
}

static int take_check_entry(struct git_taking *t, const struct take_entry *entry,
                            struct brig_error *err)
{
    switch (entry->kind) {
    case TAKE_REF:
        return take_check_ref(t, entry, err);
    case TAKE_HEAD:
        return take_check_head(t, entry, err);
    case TAKE_INDEX:
        return take_check_index(t, entry, err);
    case TAKE_STASHES:
        return take_check_stashes(t, entry, err);
    case TAKE_CONFIG:
        return take_check_config(t, entry, err);
    case TAKE_STAGED:
        return 0;
    }
    return 0;
}

int take_check(struct git_taking *t, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < t->repo_count && status == 0; i++) {
        struct take_repo *repo = &t->repos[i];
        status = side_read(t->git, &(struct git_call){.git_dir = repo->common}, &repo->now, err);
        if (status == 0)
            status = side_list_worktrees(t->git, repo->common, &repo->worktrees, err);
    }
    for (size_t i = 0; i < t->tree_count && status == 0; i++) {
        struct take_tree *tree = &t->trees[i];
        status =
            side_read_head(t->git, &(struct git_call){.git_dir = tree->git_dir}, tree->head, err);
        if (status == 0 && take_find(t, i, TAKE_INDEX) && side_goes_on(tree->git_dir))
            status = brig_fail(err, BRIG_E_STATE, 0, "a rebase, merge or bisect goes on in '%s'",
                               str_shown(tree->path).text);
    }
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        status = take_check_entry(t, &t->entries[i], err);
    for (size_t i = 0; i < t->placed_count && status == 0; i++)
        status = take_check_placed(t, &t->placed[i], err);
    return status;
}
