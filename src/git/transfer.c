/* SPDX-License-Identifier: MIT */
#include "git/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/sha256.h"
#include "git/config.h"
#include "git/pushed.h"

#define COUNTED_BRANCHES_MAX 8 /* whose new commits the summary counts */
#define ENTRIES_MAX 2000000    /* files and directories in a tree */
#define INDEX_LOCK "index.lock"

/* ---- deciding ---- */

static bool count_file(void *count, const char *name, size_t length)
{
    (void)name;
    return length <= PATH_LENGTH_MAX && ++*(size_t *)count <= ENTRIES_MAX;
}

/* Whether git outside would take very long for a tree: a few objects can describe any number of
 * files. */
static bool is_too_large(const struct transfer *t, const char *commit)
{
    size_t count = 0;
    const struct git_call how = {.each = count_file, .data = &count};
    return RUN(t, &how, NULL, NULL, "ls-tree", "-r", "-t", "-z", "--name-only", commit) != 0;
}

/* Whether a tree has a submodule that the index outside does not have. Git would look into its
 * directory, where an active run can put any repository. */
static bool has_new_link(const struct transfer *t, const char *tree)
{
    autostr struct str old = {0}, new = {0};
    const struct git_call tree_links = {.each = git_keep_link, .data = &new};
    const struct git_call index_links = {.each = git_keep_link, .data = &old};
    if (RUN(t, &tree_links, NULL, NULL, "ls-tree", "-r", "-z", tree) != 0 ||
        RUN(t, &index_links, NULL, NULL, "ls-files", "-s", "-z") != 0)
        return true;
    for (const char *at = NULL; (at = str_list_next(&new, at));)
        if (!str_list_has(&old, at))
            return true;
    return false;
}

/* The short name of a branch or tag, for a message. */
static const char *short_name(const char *name)
{
    return str_starts_with(name, "refs/heads/") || str_starts_with(name, "refs/tags/")
               ? strchr(name + strlen("refs/"), '/') + 1
               : name;
}

static struct str_shown short_shown(const char *name)
{
    return str_shown(short_name(name));
}

/* The files of the jail's commit are in the working tree already, so they must be moved away before
 * a merge. */
static void note_kept(struct transfer *t, const char *name, const char *why, bool elsewhere)
{
    struct str *notes = &t->report->notes;
    bool branch = str_starts_with(name, "refs/heads/");
    bool current = strcmp(name, t->outside.head) == 0;
    str_concat(notes, "git: ", short_shown(name).text, " was not moved: ", why, ". ");
    if (elsewhere)
        str_append(notes, "To merge it there: git merge ");
    else if (branch && current)
        str_append(notes, "To merge it: git stash -u && git merge ");
    else if (branch && refs_find(&t->outside.refs, name)) {
        str_append(notes, "To merge it: git switch ");
        str_append_word(notes, short_name(name));
        str_append(notes, " && git merge ");
    } else
        str_append(notes, "It is kept as ");
    autostr struct str kept = {0};
    fetch_append_kept(t, &kept, name);
    str_append_word(notes, kept.data ? kept.data : "");
    str_append(notes, "\n");
}

/* Appends the branches that are being rebased or bisected in a worktree, in the format of `git
 * worktree list` for checked-out branches. */
static void add_rebased_in(int git_dir, struct str *worktrees)
{
    static const struct {
        const char *name, *prefix;
    } files[] = {{"rebase-merge/head-name", ""},
                 {"rebase-apply/head-name", ""},
                 {"BISECT_START", "refs/heads/"}};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        char name[REPO_POINTER_MAX] = "";
        autoclose int fd = openat(git_dir, files[i].name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && read(fd, name, sizeof name - 1) > 0)
            str_appendf(worktrees, "\nbranch %s%.*s\n", files[i].prefix, (int)strcspn(name, "\n"),
                        name);
    }
}

static int add_rebased(const struct transfer *t, struct str *worktrees, struct brig_error *err)
{
    int common = t->p->repo.common;
    autodir DIR *dir = files_list(common, "worktrees");
    add_rebased_in(common, worktrees);
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        autoclose int git_dir = files_open_dir(dirfd(dir), item->d_name);
        add_rebased_in(git_dir, worktrees);
    }
    return worktrees->failed ? brig_fail_nomem(err) : 0;
}

/* Whether a branch is checked out, rebased or bisected in another worktree. */
static bool is_busy(const struct transfer *t, const struct str *worktrees, const char *name)
{
    autostr struct str line = {0};
    size_t count = 0;
    str_concat(&line, "\nbranch ", name, "\n");
    for (const char *at = line.failed ? NULL : worktrees->data; at && (at = strstr(at, line.data));
         at++)
        count++;
    return count > (strcmp(t->outside.head, name) == 0 ? 1 : 0);
}

/* Whether the short name of a new ref would be ambiguous with an existing ref. */
static bool hides_another(const struct transfer *t, const char *name)
{
    static const char *const prefixes[] = {"refs/heads/", "refs/tags/"};
    const char *rest = short_name(name);
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        autostr struct str other = {0};
        str_concat(&other, prefixes[i], rest);
        if (other.failed || refs_find(&t->remotes.refs, other.data) ||
            (strcmp(other.data, name) != 0 && refs_find(&t->outside.refs, other.data)))
            return true;
    }
    return false;
}

/* Whether the old value is contained in the new one. */
static bool is_forward(const struct transfer *t, const char *old, const char *new)
{
    return RUN(t, NULL, NULL, NULL, "merge-base", "--is-ancestor", old, new) == 0;
}

/* Whether a ref may move; if not, appends a note with the reason. */
static bool may_move(struct transfer *t, const struct ref *ref, const struct str *worktrees)
{
    bool tag = str_starts_with(ref->name, "refs/tags/");
    bool current = strcmp(t->outside.head, ref->name) == 0;
    bool elsewhere = is_busy(t, worktrees, ref->name);
    const char *now = refs_find(&t->outside.refs, ref->name);
    const char *why =
        !str_equal(refs_find(&t->base.refs, ref->name), now)
            ? tag ? "the tag exists with another object" : "it changed outside meanwhile"
        : !now && refs_is_misleading(ref->name) ? "its name could be taken for something else"
        : !now && hides_another(t, ref->name)   ? "another ref has this name"
        : tag && now                            ? "tags that exist are not changed"
        : current && !t->same_index             ? "the index changed outside meanwhile"
        : elsewhere                             ? "it is checked out in another worktree"
        : (current || strcmp(ref->name, t->inside.head) == 0) && is_too_large(t, ref->id)
            ? "its tree has too many entries or levels"
        : t->running && now && !is_forward(t, now, ref->id) ? "it was rewritten and the run goes on"
        : t->running && has_new_link(t, ref->id) ? "it has a new submodule and the run goes on"
        : t->unsearched && has_new_link(t, ref->id)
            ? "it has a new submodule, and its directory was not searched for repositories"
            : NULL;
    if (why)
        note_kept(t, ref->name, why, elsewhere);
    return !why;
}

static int decide(struct transfer *t, const struct str *worktrees, struct brig_error *err)
{
    int status = fetch_look_at_kept(t, err);
    if (status == 0) /* under the names of branches */
        status = MUST(t, NULL, &t->remotes.text, err, "for-each-ref",
                      "--format=%(objectname) refs/heads/%(refname:lstrip=2)", "refs/remotes");
    if (status == 0)
        status = refs_read(t->remotes.text.data, &t->remotes.refs, err);
    t->moves = calloc(t->inside.refs.count + 1, sizeof *t->moves);
    if (status < 0 || !t->moves)
        return status < 0 ? status : brig_fail_nomem(err);
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        if (!fetch_is_new(t, ref) || str_equal(refs_find(&t->outside.refs, ref->name), ref->id))
            continue;
        if (fetch_has_arrived(t, ref))
            t->moves[i] = may_move(t, ref, worktrees);
        else
            t->lost = true;
    }
    return 0;
}

/* Why HEAD outside cannot be set to the jail's HEAD, with the jail's index; NULL if it can. */
static const char *find_obstacle(const struct transfer *t, const struct str *worktrees)
{
    const char *head = t->inside.head;
    const struct ref *ref = refs_get(&t->inside.refs, head);
    const char *now = refs_find(&t->outside.refs, head);
    if (!t->same_index ||
        (strcmp(t->outside.head, t->base.head) != 0 && strcmp(t->outside.head, head) != 0))
        return "HEAD or the index changed outside meanwhile";
    if (!head[0] || (!refs_is_id(head) && !now && refs_is_misleading(head)))
        return "the name of the jail's branch is not safe";
    if (refs_is_id(head))
        return t->lost ? "its commit could not be fetched" : NULL;
    if (strcmp(head, t->outside.head) != 0 && is_busy(t, worktrees, head))
        return "the jail's branch is checked out in another worktree";
    if (ref ? str_equal(now, ref->id) || t->moves[ref - t->inside.refs.items] : !now)
        return NULL;
    return "the jail's branch was not moved";
}

/* ---- moving ---- */

/* The summary, prepared for another part. */
static struct str *next_part(struct transfer *t)
{
    str_append(&t->report->summary, t->report->summary.length ? ", " : "");
    return &t->report->summary;
}

/* Whether a rebase, a merge or similar is unfinished in the user's repository: then nothing is
 * moved. */
static bool is_outside_busy(int git_dir)
{
    static const char *const names[] = {"rebase-merge", "rebase-apply",     "sequencer",
                                        "MERGE_HEAD",   "CHERRY_PICK_HEAD", "REVERT_HEAD",
                                        "BISECT_LOG"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (files_exists(git_dir, names[i]))
            return true;
    return false;
}

static bool hash_entry(void *hash, const char *entry, size_t length)
{
    sha256_add(hash, entry, length + 1);
    return true;
}

/* Whether the index outside is as the jail found it or, as after an interrupted transfer, equals
 * the jail's. Compares entries, not bytes: `git status` outside rewrites the index. */
static int compare_index(struct transfer *t, struct brig_error *err)
{
    const char *const indexes[] = {t->base_index, NULL};
    char texts[2][SHA256_HEX_LENGTH + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(indexes); i++) {
        struct sha256 hash;
        sha256_begin(&hash);
        const struct git_call how = {.index = indexes[i], .each = hash_entry, .data = &hash};
        int status = MUST(t, &how, NULL, err, "ls-files", "-s", "-z");
        if (status < 0)
            return status;
        sha256_end(&hash, texts[i]);
    }
    t->same_index = strcmp(texts[0], texts[1]) == 0;
    if (t->same_index || !t->inside.tree[0])
        return 0;
    int status = RUN(t, NULL, NULL, err, "diff-index", "--cached", "--quiet", t->inside.tree, "--");
    t->same_index = status == 0;
    return status < 0 ? status : 0;
}

#define OWN_LOCK "locked" /* in the folder: the identity of our lock, in case we are killed */

static int note_lock(const struct transfer *t, struct brig_error *err)
{
    char id[FILES_ID_MAX];
    return files_identify(t->p->repo.git_dir, INDEX_LOCK, id)
               ? files_write(t->p->folder, OWN_LOCK, id, strlen(id), err)
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the index");
}

static void drop_own_lock(const struct transfer *t)
{
    autostr struct str noted = {0};
    char id[FILES_ID_MAX];
    if (files_read(t->p->folder, OWN_LOCK, &noted) &&
        files_identify(t->p->repo.git_dir, INDEX_LOCK, id) && str_equal(noted.data, id))
        (void)unlinkat(t->p->repo.git_dir, INDEX_LOCK, 0);
    (void)unlinkat(t->p->folder, OWN_LOCK, 0);
}

/* Takes the lock of the index as git does, with a copy of the index in it. */
static int lock_index(const struct transfer *t, struct brig_error *err)
{
    drop_own_lock(t);
    autoclose int fd = openat(t->p->repo.git_dir, INDEX_LOCK,
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, 0,
                         "another git process works in '%s', or has left '%s/" INDEX_LOCK
                         "' behind",
                         str_shown(t->p->top_path).text, str_shown(t->p->repo.git_path).text);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s/" INDEX_LOCK "'",
                         str_shown(t->p->repo.git_path).text);
    int status = note_lock(t, err);
    if (status == 0)
        status = copying_file(t->p->repo.git_dir, "index", t->p->repo.git_dir, INDEX_LOCK, err);
    if (status < 0)
        drop_own_lock(t);
    return status < 0 ? status : 0;
}

/* Updates the locked copy to a tree: from the tree `old` if it is given, so that staged changes
 * stay. Stat data, sparse and skip-worktree bits stay. Returns the exit status of git or a negative
 * code. */
static int fill_lock(const struct transfer *t, const char *old, const char *tree,
                     struct brig_error *err)
{
    struct stat info;
    const struct git_call how = {.index = INDEX_LOCK};
    bool empty = fstatat(t->p->repo.git_dir, INDEX_LOCK, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
                 info.st_size == 0;
    if (empty)
        (void)unlinkat(t->p->repo.git_dir, INDEX_LOCK, 0);
    int status = empty ? RUN(t, &how, NULL, err, "read-tree", tree)
                 : old ? RUN(t, &how, NULL, err, "read-tree", "-i", "-m", old, tree)
                       : RUN(t, &how, NULL, err, "read-tree", "-i", "-m", tree);
    return status == 0 ? note_lock(t, err) : status;
}

/* The current branch moves, but the jail's index is not transferred, as during a merge in the jail:
 * the index outside follows the branch. If that is not possible, the branch does not move. */
static int follow_branch(struct transfer *t, bool *ret_changed, struct brig_error *err)
{
    const struct ref *ref = refs_get(&t->inside.refs, t->outside.head);
    bool *moves = ref ? &t->moves[ref - t->inside.refs.items] : NULL;
    bool same = t->inside.tree[0] && !fetch_has_staged(t);
    if (!moves || !*moves || same)
        return 0;
    int status =
        t->running ? 1 : fill_lock(t, refs_find(&t->outside.refs, ref->name), ref->id, err);
    *ret_changed = status == 0;
    if (status <= 0)
        return status;
    *moves = false;
    if (!t->running) /* otherwise it moves later */
        note_kept(t, ref->name, "files are staged that it changes", false);
    return 0;
}

static int switch_head(struct transfer *t, struct brig_error *err)
{
    const char *head = t->inside.head;
    if (strcmp(head, t->outside.head) == 0)
        return 0;
    int status = refs_is_id(head) ? MUST(t, NULL, NULL, err, "update-ref", "--no-deref", "-m",
                                         "brig: checkout", "HEAD", head)
                                  : MUST(t, NULL, NULL, err, "symbolic-ref", "-m", "brig: checkout",
                                         "HEAD", head);
    if (status < 0)
        return status;
    str_concat(next_part(t), "HEAD is now ", refs_is_id(head) ? head : short_shown(head).text);
    return 0;
}

/* "2 commits on NAME": the number of commits on the branch that none of the old tips contains. */
static void summarise(struct transfer *t, const struct ref *ref, struct brig_error *err)
{
    char count[32];
    const char *old = refs_find(&t->base.refs, ref->name);
    const char *since = old ? old : refs_find(&t->base.refs, t->base.head);
    autostr struct str range = {0};
    str_concat(&range, since ? since : "", since ? ".." : "", ref->id);
    if (LINE(t, NULL, count, err, "rev-list", "--count", range.data) < 0)
        return;
    struct str *summary = next_part(t);
    if (strcmp(count, "0") != 0)
        str_concat(summary, count, strcmp(count, "1") == 0 ? " commit on " : " commits on ",
                   short_shown(ref->name).text);
    else if (old)
        str_appendf(summary, "%s reset to %.7s", short_shown(ref->name).text, ref->id);
    else
        str_concat(summary, "new ", short_shown(ref->name).text);
}

static int move_refs(struct transfer *t, struct brig_error *err)
{
    autostr struct str updates = {0};
    size_t count = 0;
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        const char *now = refs_find(&t->outside.refs, ref->name);
        if (t->moves[i])
            str_concat(&updates, now ? "update " : "create ", ref->name, " ", ref->id,
                       now ? " " : "", now ? now : "", "\n");
    }
    int status = updates.failed ? brig_fail_nomem(err) : fetch_update_refs(t, &updates, err);
    for (size_t i = 0; i < t->inside.refs.count && status == 0; i++)
        if (t->moves[i] && ++count <= COUNTED_BRANCHES_MAX)
            summarise(t, &t->inside.refs.items[i], err);
    if (status == 0 && count > COUNTED_BRANCHES_MAX)
        str_appendf(&t->report->summary, " and %zu more refs", count - COUNTED_BRANCHES_MAX);
    return status;
}

static void summarise_staged(struct transfer *t, struct brig_error *err)
{
    size_t count = 0;
    const struct git_call how = {.each = count_file, .data = &count};
    if (RUN(t, &how, NULL, err, "diff-index", "--cached", "--name-only", "-z", "HEAD", "--") != 0)
        return;
    if (count > 0)
        str_appendf(next_part(t), "%zu file%s staged", count, count == 1 ? "" : "s");
}

/* The new initial refs of the jail are those that are the same inside and outside. */
static int note_refs(const struct transfer *t, const struct side *now, struct brig_error *err)
{
    autostr struct str updates = {0};
    int status = 0;
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        if (fetch_is_new(t, ref) && str_equal(refs_find(&now->refs, ref->name), ref->id))
            str_concat(&updates, "update ", ref->name, " ", ref->id, "\n");
    }
    for (size_t i = 0; i < t->base.refs.count; i++) {
        const char *name = t->base.refs.items[i].name;
        if (!refs_find(&t->inside.refs, name) && !refs_find(&now->refs, name))
            str_concat(&updates, "delete ", name, "\n");
    }
    const char *head = t->inside.head;
    if (strcmp(head, now->head) == 0 && strcmp(head, t->base.head) != 0 && refs_is_id(head))
        str_concat(&updates, "option no-deref\nupdate HEAD ", head, "\n");
    if (updates.failed)
        return brig_fail_nomem(err);
    struct git_call how = t->base_git;
    how.input = &updates;
    if (updates.length > 0)
        status = MUST(t, &how, NULL, err, "update-ref", "--stdin");
    if (status == 0 && strcmp(head, now->head) == 0 && str_starts_with(head, "refs/"))
        status = MUST(t, &t->base_git, NULL, err, "symbolic-ref", "HEAD", head);
    return status;
}

/* Deletes the refs that the jail has deleted, except the branch that is now checked out. */
static int delete_refs(struct transfer *t, const char *head, const struct str *worktrees,
                       struct brig_error *err)
{
    autostr struct str updates = {0};
    size_t count = 0;
    const char *name = NULL;
    for (size_t i = 0; i < t->base.refs.count; i++) {
        const struct ref *ref = &t->base.refs.items[i];
        if (refs_find(&t->inside.refs, ref->name) || strcmp(head, ref->name) == 0 ||
            !str_equal(refs_find(&t->outside.refs, ref->name), ref->id) ||
            is_busy(t, worktrees, ref->name))
            continue;
        name = ref->name;
        str_concat(&updates, "update ", t->space, "/before/", name + strlen("refs/"), " ", ref->id,
                   "\ndelete ", name, " ", ref->id, "\n");
        count++;
    }
    if (updates.failed)
        return brig_fail_nomem(err);
    /* All or nothing: no ref is deleted unless its value is kept. */
    int status = count == 0 ? 0
                            : RUN(t, &(struct git_call){.input = &updates}, NULL, err, "update-ref",
                                  "-m", "brig: from the jail", "--stdin");
    struct str *notes = &t->report->notes;
    if (status > 0)
        str_appendf(notes, "git: %zu refs that the jail deleted could not be deleted\n", count);
    else if (status == 0 && count == 1)
        str_concat(notes, "git: ", short_shown(name).text, " was deleted; it is kept as ", t->space,
                   "/before/", str_shown(name + strlen("refs/")).text, "\n");
    else if (status == 0 && count > 1)
        str_appendf(notes, "git: %zu refs were deleted; they are kept below %s/before/\n", count,
                    t->space);
    return status < 0 ? status : 0;
}

/* New stashes of the jail come before the user's. Those that the jail has used or dropped are
 * dropped, and kept below `before`. */
static int move_stashes(struct transfer *t, struct brig_error *err)
{
    size_t stored = 0, dropped = 0;
    for (size_t i = t->inside.stash_count; i-- > 0;) {
        const struct side_stash *stash = &t->inside.stashes[i];
        char name[sizeof REFS_STASHES + REFS_ID_MAX];
        (void)snprintf(name, sizeof name, REFS_STASHES "%s", stash->id);
        if (side_find_stash(&t->base, stash->id) >= 0 ||
            side_find_stash(&t->outside, stash->id) >= 0)
            continue;
        int status = fetch_has_arrived(t, &(struct ref){stash->id, name})
                         ? RUN(t, NULL, NULL, err, "stash", "store", "-q", "-m",
                               str_shown(stash->text).text, stash->id)
                         : 1;
        if (status < 0)
            return status;
        t->lost |= status > 0;
        stored += status == 0;
    }
    bool whole = t->base.stash_count < SIDE_STASHES_MAX && t->inside.stash_count < SIDE_STASHES_MAX;
    for (size_t i = 0; i < t->base.stash_count && whole && !t->running; i++) {
        const char *id = t->base.stashes[i].id;
        int at = side_find_stash(&t->outside, id);
        autostr struct str before = {0};
        char name[32], now[REFS_ID_MAX + 1];
        if (at < 0 || side_find_stash(&t->inside, id) >= 0)
            continue;
        str_concat(&before, "update ", t->space, "/before/stash-", id, " ", id, "\n");
        (void)snprintf(name, sizeof name, "stash@{%zu}", (size_t)at + stored - dropped);
        int status = LINE(t, NULL, now, err, "rev-parse", "-q", "--verify", name);
        if (status == 0 && strcmp(now, id) != 0) /* the user has changed the list meanwhile */
            continue;
        if (status == 0)
            status = fetch_update_refs(t, &before, err);
        if (status == 0)
            status = t->refused ? 1 : RUN(t, NULL, NULL, err, "stash", "drop", "-q", name);
        if (status < 0)
            return status;
        dropped += status == 0;
    }
    if (stored > 0)
        str_appendf(next_part(t), "%zu stash%s", stored, stored == 1 ? "" : "es");
    if (dropped > 0)
        str_appendf(next_part(t), "%zu stash%s dropped", dropped, dropped == 1 ? "" : "es");
    return 0;
}

/* Holds the lock of the index, so that no git outside switches branches or stages meanwhile. */
static int move_locked(struct transfer *t, const struct str *worktrees, struct brig_error *err)
{
    struct str *notes = &t->report->notes;
    bool goes_on = t->pending[0] || t->unmerged;
    bool staged = fetch_has_staged(t);
    const char *head =
        refs_is_id(t->inside.head) ? t->inside.head : refs_find(&t->inside.refs, t->inside.head);
    bool moves = staged || strcmp(t->inside.head, t->outside.head) != 0;
    bool links = (t->running || t->unsearched) && moves &&
                 ((staged && has_new_link(t, t->inside.tree)) || (head && has_new_link(t, head)));
    bool linked = t->running && links;
    const char *obstacle = goes_on ? NULL : find_obstacle(t, worktrees);
    if (!obstacle && links && t->unsearched)
        obstacle = "the index has a new submodule, whose directory was not searched";
    if (!obstacle && !goes_on && staged && t->lost)
        obstacle = "not everything could be fetched";
    if (!obstacle && !goes_on && staged && is_too_large(t, t->inside.staged))
        obstacle = "the tree of the index has too many entries or levels";
    bool switches = !goes_on && !linked && !obstacle;
    bool stages = switches && staged;
    bool changed = stages;
    int status = stages ? fill_lock(t, NULL, t->inside.tree, err) : follow_branch(t, &changed, err);
    if (status > 0)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "git read-tree failed in '%s'",
                           str_shown(t->p->top_path).text);
    t->refused = false;
    if (status == 0)
        status = move_refs(t, err);
    if (status == 0 && t->refused && (switches || changed)) {
        obstacle = "git refused to move a ref";
        switches = stages = changed = false;
    }
    if (status == 0 && switches)
        status = switch_head(t, err);
    if (status == 0 && !t->running) /* once, so that the kept values are not overwritten */
        status = delete_refs(t, switches ? t->inside.head : t->outside.head, worktrees, err);
    if (status == 0)
        status = move_stashes(t, err);
    if (status == 0 && changed &&
        renameat(t->p->repo.git_dir, INDEX_LOCK, t->p->repo.git_dir, "index") < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot replace the index");
    drop_own_lock(t);
    if (status == 0 && stages)
        summarise_staged(t, err);
    if (status == 0 && stages && t->running)
        status = MUST(t, &(struct git_call){.index = t->base_index}, NULL, err, "read-tree",
                      t->inside.tree); /* the new initial index of the jail */
    if (linked)
        str_append(notes, "git: a new submodule arrives when the run ends\n");
    else if (obstacle && (staged || strcmp(t->inside.head, t->outside.head) != 0)) {
        str_concat(notes, "git: HEAD and the index stay as they are: ", obstacle);
        str_concat(notes, staged ? ". The index of the jail is kept as " : "",
                   staged ? t->space : "", staged ? "/staged\n" : "\n");
        t->keeps_staged = staged;
    }
    return status;
}

static int move(struct transfer *t, struct brig_error *err)
{
    autostr struct str worktrees = {0};
    if (is_outside_busy(t->p->repo.git_dir)) {
        t->keeps_staged = true;
        str_concat(&t->report->notes,
                   "git: a rebase or merge goes on outside; what the jail did is kept below ",
                   t->space, "/\n");
        return 0;
    }
    int status = lock_index(t, err);
    if (status < 0)
        return status;
    status = compare_index(t, err);
    if (status == 0)
        status =
            side_read(t->git, &(struct git_call){.git_dir = t->p->repo.git_dir}, &t->outside, err);
    if (status == 0)
        status = RUN(t, NULL, &worktrees, err, "worktree", "list", "--porcelain");
    if (status >= 0)
        status = add_rebased(t, &worktrees, err);
    if (status == 0)
        status = decide(t, &worktrees, err);
    if (status == 0)
        return move_locked(t, &worktrees, err);
    drop_own_lock(t);
    return status;
}

/* ---- the whole ---- */

/* Refs that have moved are not kept a second time. */
static int drop_moved(struct transfer *t, struct brig_error *err)
{
    autostr struct str deletions = {0};
    struct side now = {0};
    int status = side_read(t->git, &(struct git_call){.git_dir = t->p->repo.git_dir}, &now, err);
    if (status == 0)
        status = fetch_look_at_kept(t, err);
    for (size_t i = 0; status == 0 && i < t->kept.refs.count; i++) {
        const struct ref *ref = &t->kept.refs.items[i];
        bool stash = str_starts_with(ref->name, REFS_STASHES);
        if (stash ? side_find_stash(&now, ref->id) < 0
                  : !str_equal(refs_find(&now.refs, ref->name), ref->id))
            continue;
        str_append(&deletions, "delete ");
        fetch_append_kept(t, &deletions, ref->name);
        str_concat(&deletions, " ", ref->id, "\n");
    }
    char base[TRANSFER_SPACE_MAX + 8], head[TRANSFER_SPACE_MAX + 8], staged[TRANSFER_SPACE_MAX + 8];
    (void)snprintf(base, sizeof base, "%s/base", t->space);
    (void)snprintf(head, sizeof head, "%s/HEAD", t->space);
    (void)snprintf(staged, sizeof staged, "%s/staged", t->space);
    /* No other ref contains the commits of a detached HEAD. */
    bool keeps_head = refs_is_id(t->inside.head) && !t->pending[0] &&
                      strcmp(t->inside.head, t->base.head) != 0 &&
                      strcmp(t->inside.head, now.head) != 0;
    if (keeps_head)
        str_concat(&t->report->notes, "git: the jail's detached HEAD is kept as ", head, "\n");
    if (status == 0)
        status = RUN(t, NULL, &deletions, err, "for-each-ref",
                     "--format=delete %(refname) %(objectname)", base, keeps_head ? base : head,
                     t->keeps_staged ? NULL : staged);
    if (status >= 0 && t->running)
        status = note_refs(t, &now, err);
    side_done(&now);
    return status < 0 ? status : fetch_update_refs(t, &deletions, err);
}

int transfer_fetch(const struct git *git, const struct private_git *private_git, const char *space,
                   struct brig_error *err)
{
    __attribute__((cleanup(fetch_done))) struct transfer t = {
        .git = git, .p = private_git, .space = space};
    return private_has_changed(private_git) ? fetch_all(&t, err) : 0;
}

int transfer_finish(const struct git *git, const struct private_git *private_git, const char *space,
                    unsigned flags, struct transfer_report *report, struct brig_error *err)
{
    __attribute__((cleanup(fetch_done))) struct transfer t = {.git = git,
                                                              .p = private_git,
                                                              .space = space,
                                                              .report = report,
                                                              .running = flags & TRANSFER_RUNNING,
                                                              .unsearched =
                                                                  flags & TRANSFER_UNSEARCHED};
    if (!private_has_changed(private_git))
        return 0;
    if (!files_exists(private_git->sealed.dir, "HEAD")) {
        str_appendf(&report->notes,
                    "git: the jail deleted its copy of '%s/.git'; yours is unchanged\n",
                    str_shown(private_git->top_path).text);
        return 0;
    }
    int status = fetch_all(&t, err);
    if (status == 0)
        status = lfs_transfer(private_git->sealed.dir, private_git->repo.common, err);
    if (status == 0)
        status = move(&t, err);
    const struct git_call call = {.git_dir = private_git->repo.git_dir};
    if (status == 0 && !t.running) /* else the end of the run would find them again */
        status = config_cross(git, &private_git->sealed, private_git->base, private_git->top_path,
                              &call, &report->notes, err);
    if (status == 0 && !t.running)
        status = pushed_note(git, private_git, &report->notes, err);
    report->pending = t.pending[0] || t.unmerged;
    if (strcmp(t.pending, "bisect") == 0)
        str_append(&report->notes,
                   "git: a bisect goes on in the jail; the next run continues it\n");
    else if (t.pending[0])
        str_concat(&report->notes, "git: a ", t.pending,
                   " goes on in the jail; the next run continues it, as with: brig git ", t.pending,
                   " --continue\n");
    else if (t.unmerged)
        str_append(
            &report->notes,
            "git: files with conflicts are left in the jail's index; the next run has them\n");
    if (t.inside.refs.skipped > t.base.refs.skipped)
        str_append(&report->notes,
                   "git: refs with names that are not safe were left in the jail\n");
    if (status == 0)
        status = drop_moved(&t, err);
    if (status == 0 && t.lost)
        status =
            brig_fail(err, BRIG_E_SYSTEM, 0, "not everything the jail did in '%s' could be fetched",
                      str_shown(private_git->top_path).text);
    return status;
}
