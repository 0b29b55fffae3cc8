/* SPDX-License-Identifier: MIT */
#include "git/take.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "git/seen.h"
#include "git/taking.h"

#define MESSAGE "brig: from the jail"

int take_run(const struct git_taking *t, const struct git_call *how, struct brig_error *err,
             const char *const *words)
{
    struct git_call call = *how;
    call.words = words;
    return git_run(t->git, &call, err);
}

/* ---- moving refs and HEAD, of a repository or of the base of a jail ---- */

/* What is moved by one call of take_refs(): the entries of a repository, or those of one tree. */
struct take_scope {
    size_t repo, tree; /* the tree is SIZE_MAX for all of the repository */
    struct git_call how;
    struct refs *now; /* what is there: only what is not at its target moves */
    bool base;        /* of base/, which follows: a value that is neither stays */
};

static bool take_is_in(const struct git_taking *t, const struct take_scope *scope,
                       const struct take_entry *entry)
{
    return t->trees[entry->tree].repo == scope->repo &&
           (scope->tree == SIZE_MAX || scope->tree == entry->tree);
}

/* Deletions and updates, or creations, in one transaction. */
static int take_update(const struct git_taking *t, const struct take_scope *scope, bool creates,
                       struct brig_error *err)
{
    autostr struct str lines = {0}, says = {0};
    for (size_t i = 0; i < t->entry_count; i++) {
        const struct take_entry *entry = &t->entries[i];
        if (entry->kind != TAKE_REF || !take_is_in(t, scope, entry))
            continue;
        const char *to = take_to(t, entry), *now = refs_find(scope->now, entry->name);
        if (str_equal(now, to) || creates != !now ||
            (scope->base && !str_equal(now, take_from(t, entry))))
            continue;
        if (creates)
            str_concat(&lines, "create ", entry->name, " ", to, "\n");
        else if (to)
            str_concat(&lines, "update ", entry->name, " ", to, " ", now, "\n");
        else
            str_concat(&lines, "delete ", entry->name, " ", now, "\n");
    }
    if (lines.failed)
        return brig_fail_nomem(err);
    struct git_call how = scope->how;
    how.input = &lines;
    how.says = &says;
    int status = lines.length == 0 ? 0 : GIT(t, &how, err, "update-ref", "-m", MESSAGE, "--stdin");
    if (status > 0)
        says.data[strcspn(says.data ? says.data : "", "\n")] = '\0';
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git refuses to move refs: %s",
                                   str_shown(says.data ? says.data : "").text);
}

static int take_move_head(const struct git_taking *t, const struct take_entry *entry,
                          const struct git_call *how, bool base, struct brig_error *err)
{
    const char *to = take_to(t, entry);
    char head[SIDE_HEAD_MAX];
    int status = side_read_head(t->git, how, head, err);
    if (status < 0 || !to || strcmp(head, to) == 0 ||
        (base && !str_equal(head, take_from(t, entry))))
        return status < 0 ? status : 0;
    status = refs_is_id(to)
                 ? GIT(t, how, err, "update-ref", "--no-deref", "-m", "brig: checkout", "HEAD", to)
                 : GIT(t, how, err, "symbolic-ref", "-m", "brig: checkout", "HEAD", to);
    files_sync(how->git_dir, "HEAD"); /* git symbolic-ref does not */
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git refuses to move HEAD to '%s'", to);
}

static int take_read_refs(const struct git_taking *t, const struct git_call *how, struct side *side,
                          struct brig_error *err)
{
    side_done(side);
    *side = (struct side){0};
    return side_read(t->git, how, side, err);
}

/* ---- stashes ---- */

/* The list has an old part that stays, at its end: everything else above it is dropped, and what is missing is stored. */
static int take_move_stashes(const struct git_taking *t, const struct take_entry *entry,
                             const struct git_call *how, const struct side *now,
                             struct brig_error *err)
{
    size_t left = take_count_values(t, entry, t->towards);
    int status = 0;
    for (size_t i = now->stash_count; i-- > 0 && status == 0;) {
        char name[32];
        if (left > 0 &&
            take_is_stash(take_value(t, entry, t->towards, left - 1), now->stashes[i].id)) {
            left--;
            continue;
        }
        (void)snprintf(name, sizeof name, "stash@{%zu}", i); /* those above it are still there */
        status = GIT(t, how, err, "stash", "drop", "-q", name);
    }
    while (left-- > 0 && status == 0) {
        const char *text = take_value(t, entry, t->towards, left);
        char id[REFS_ID_MAX + 1];
        (void)snprintf(id, sizeof id, "%.*s", (int)take_id_length(text), text);
        const char *message = text[strlen(id)] ? text + strlen(id) + 1 : "";
        status = GIT(t, how, err, "stash", "store", "-q", "-m", message, id);
    }
    files_sync(how->git_dir, "logs/refs/stash"); /* the list; git makes only the ref durable */
    return status <= 0
               ? status
               : brig_fail(err, BRIG_E_STATE, 0, "git refuses to change the list of stashes");
}

/* Whether a stash is in the list of one side. */
static bool take_has_stash(const struct git_taking *t, const struct take_entry *entry,
                           enum git_direction side, const char *id)
{
    const char *text;
    for (size_t n = 0; (text = take_value(t, entry, side, n)); n++)
        if (take_is_stash(text, id))
            return true;
    return false;
}

/* The jail's list has not the stashes that the user has made meanwhile: only what comes or goes is
 * added or dropped in its base. */
static int take_follow_stashes(const struct git_taking *t, const struct take_entry *entry,
                               const struct git_call *how, const struct side *now,
                               struct brig_error *err)
{
    enum git_direction other = take_other(t->towards);
    int status = 0;
    for (size_t i = now->stash_count; i-- > 0 && status >= 0;) {
        char name[32];
        (void)snprintf(name, sizeof name, "stash@{%zu}", i);
        if (take_has_stash(t, entry, other, now->stashes[i].id) &&
            !take_has_stash(t, entry, t->towards, now->stashes[i].id))
            status = GIT(t, how, err, "stash", "drop", "-q", name);
    }
    for (size_t i = take_count_values(t, entry, t->towards); i-- > 0 && status >= 0;) {
        const char *text = take_value(t, entry, t->towards, i);
        char id[REFS_ID_MAX + 1];
        (void)snprintf(id, sizeof id, "%.*s", (int)take_id_length(text), text);
        if (!take_has_stash(t, entry, other, id) && side_find_stash(now, id) < 0)
            status = GIT(t, how, err, "stash", "store", "-q", id);
    }
    return status < 0 ? status : 0;
}

/* ---- settings ---- */

/* Sets or removes a key: in base/ only if it has the value before. */
static int take_move_config(const struct git_taking *t, const struct take_entry *entry,
                            const struct git_call *how, bool base, struct brig_error *err)
{
    const char *from = take_from(t, entry), *to = take_to(t, entry);
    autostr struct str now = {0};
    int status = take_read_config(t, entry, how, &now, err);
    const char *value = now.length > 0 ? now.data : NULL;
    if (status < 0 || str_equal(value, to) || (base && !str_equal(value, from)))
        return status;
    status = to ? GIT(t, how, err, "config", "--file", "config", "--replace-all", entry->name, to)
                : GIT(t, how, err, "config", "--file", "config", "--unset-all", entry->name);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_STATE, 0, "git refuses to change '%s'",
                                   str_shown(entry->name).text);
}

/* ---- keeping what would be lost ---- */

/* Appends the objects of one side, and of the staged contents. */
static void take_add_objects(const struct git_taking *t, size_t repo, bool from, const char *before,
                             struct str *lines)
{
    enum git_direction side = from == (t->towards == GIT_TO_NEW) ? GIT_TO_OLD : GIT_TO_NEW;
    for (size_t i = 0; i < t->entry_count; i++) {
        const struct take_entry *entry = &t->entries[i];
        if (t->trees[entry->tree].repo != repo || entry->kind == TAKE_INDEX ||
            entry->kind == TAKE_CONFIG || (entry->kind == TAKE_STAGED && !from))
            continue;
        const char *text;
        for (size_t n = 0; (text = take_value(t, entry, side, n)); n++)
            if (!str_starts_with(text, "refs/"))
                str_appendf(lines, "%s%.*s\n", before, (int)take_id_length(text), text);
    }
}

/* Whether it is the object of a tag, which no commit contains. */
static bool take_is_lost_tag(const struct git_taking *t, size_t repo, const char *id)
{
    for (size_t i = 0; i < t->entry_count; i++)
        if (t->trees[t->entries[i].tree].repo == repo &&
            str_starts_with(t->entries[i].name, "refs/tags/") &&
            str_equal(take_from(t, &t->entries[i]), id))
            return true;
    return false;
}

/* Objects of the values that are left, as far as those that come do not contain them, get a ref. */
static int take_pin(const struct git_taking *t, size_t number, struct brig_error *err)
{
    const struct take_repo *repo = &t->repos[number];
    autostr struct str lines = {0}, tips = {0}, updates = {0};
    take_add_objects(t, number, true, "", &tips);
    if (!repo->pins || tips.length == 0)
        return 0;
    str_append(&lines, tips.data);
    take_add_objects(t, number, false, "^", &lines);
    struct git_call how = {.git_dir = repo->common, .input = &lines};
    autostr struct str lost = {0};
    how.out = &lost;
    if (lines.failed || tips.failed)
        return brig_fail_nomem(err);
    int status = GIT(t, &how, err, "rev-list", "--stdin");
    if (status > 0)
        return brig_fail(err, BRIG_E_STATE, 0, "an object that is to be kept is missing in '%s'",
                         str_shown(repo->path).text);
    for (char *at = tips.data, *end; status == 0 && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        bool again = updates.data && strstr(updates.data, at);
        if (!again && ((lost.data && strstr(lost.data, at)) || take_is_lost_tag(t, number, at)))
            str_concat(&updates, "update ", repo->pins, "/", at, " ", at, "\n");
    }
    how = (struct git_call){.git_dir = repo->common, .input = &updates};
    if (status == 0 && updates.length > 0)
        status = GIT(t, &how, err, "update-ref", "--stdin");
    return status <= 0
               ? status
               : brig_fail(err, BRIG_E_STATE, 0, "git cannot keep objects below %s", repo->pins);
}

/* ---- moving ---- */

static int take_move_index(struct git_taking *t, const struct take_entry *entry,
                           struct brig_error *err)
{
    struct take_tree *tree = &t->trees[entry->tree];
    char hash[65], name[32];
    int status = git_hash_index(t->git, tree->git_dir, NULL, hash, err);
    if (status < 0 || str_equal(hash, take_to(t, entry)))
        return status;
    take_index_name(t, entry->tree, name);
    if (!files_exists(t->copies, name)) {
        if (unlinkat(tree->git_dir, "index", 0) < 0 && errno != ENOENT)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove the index of '%s'",
                             str_shown(tree->path).text);
        return 0;
    }
    if (!tree->locked) /* it was moved already, and is moved back */
        status = take_lock(t, entry->tree, err);
    if (status < 0)
        return status;
    if (renameat(tree->git_dir, INDEX_LOCK, tree->git_dir, "index") < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot replace the index of '%s'",
                         str_shown(tree->path).text);
    tree->locked = false;
    return 0;
}

static int take_move_rest(struct git_taking *t, const struct take_entry *entry,
                          struct brig_error *err)
{
    struct take_repo *repo = &t->repos[t->trees[entry->tree].repo];
    const struct git_call how = {.git_dir = repo->common};
    switch (entry->kind) {
    case TAKE_INDEX:
        return take_move_index(t, entry, err);
    case TAKE_STASHES:
        return take_move_stashes(t, entry, &how, &repo->now, err);
    case TAKE_CONFIG:
        return take_move_config(t, entry, &how, false, err);
    case TAKE_REF:
    case TAKE_HEAD:
    case TAKE_STAGED:
        return 0;
    }
    return 0;
}

/* A branch f makes room for f/a while HEAD may name either: so deletions, HEAD, creations. */
static int take_move_repo(struct git_taking *t, size_t number, struct brig_error *err)
{
    struct take_repo *repo = &t->repos[number];
    struct take_scope scope = {
        .repo = number, .tree = SIZE_MAX, .how = {.git_dir = repo->common}, .now = &repo->now.refs};
    int status = take_pin(t, number, err);
    if (status == 0)
        status = take_update(t, &scope, false, err);
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        if (t->entries[i].kind == TAKE_HEAD && take_is_in(t, &scope, &t->entries[i]))
            status = take_move_head(
                t, &t->entries[i],
                &(struct git_call){.git_dir = t->trees[t->entries[i].tree].git_dir}, false, err);
    if (status == 0)
        status = take_update(t, &scope, true, err);
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        if (take_is_in(t, &scope, &t->entries[i]))
            status = take_move_rest(t, &t->entries[i], err);
    return status;
}

static int take_move_all(struct git_taking *t, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < t->placed_count && status == 0; i++)
        status = take_move_placed(t, &t->placed[i], err);
    for (size_t i = 0; i < t->repo_count && status == 0; i++) {
        size_t number = t->towards == GIT_TO_NEW ? i : t->repo_count - 1 - i;
        struct git_call how = {.git_dir = t->repos[number].common};
        status = take_read_refs(t, &how, &t->repos[number].now, err);
        if (status == 0)
            status = take_move_repo(t, number, err);
    }
    return status;
}

/* ---- the base of a jail ---- */

static void take_drop_lock_of(int base, const char *name)
{
    autostr struct str lock = {0};
    str_concat(&lock, name, ".lock");
    if (!lock.failed)
        (void)unlinkat(base, lock.data, 0);
}

/* Removes the locks of a git that was killed. Nobody else's works here: the private git directory is locked. */
static void take_drop_base_locks(const struct git_taking *t, int base)
{
    static const char *const names[] = {"HEAD", "packed-refs", "index", "config", "refs/stash"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        take_drop_lock_of(base, names[i]);
    for (size_t i = 0; i < t->entry_count; i++)
        if (t->entries[i].kind == TAKE_REF)
            take_drop_lock_of(base, t->entries[i].name);
}

/* base/ says on what jail and user agree, so it follows. A value there that is neither of the two is
 * left: the private git directory has gone on, or is another one. */
static int take_follow(const struct git_taking *t, size_t number, struct brig_error *err)
{
    const struct take_tree *tree = &t->trees[number];
    autoclose int folder =
        tree->folder && t->storage >= 0 ? files_open_dir(t->storage, tree->folder) : -1;
    autoclose int base = folder < 0 ? -1 : files_open_dir(folder, "base");
    autofree char *objects = NULL;
    char name[32];
    struct side now = {0};
    if (base < 0)
        return 0;
    if (t->again)
        take_drop_base_locks(t, base);
    int status = str_make(&objects, err, t->repos[tree->repo].path, "/objects");
    struct take_scope scope = {.repo = tree->repo,
                               .tree = number,
                               .how = {.git_dir = base, .objects = objects},
                               .now = &now.refs,
                               .base = true};
    if (status == 0)
        status = side_read(t->git, &scope.how, &now, err);
    if (status == 0)
        status = take_update(t, &scope, false, err);
    for (size_t i = 0; i < t->entry_count && status == 0; i++)
        if (t->entries[i].tree == number && t->entries[i].kind == TAKE_HEAD)
            status = take_move_head(t, &t->entries[i], &scope.how, true, err);
    if (status == 0)
        status = take_update(t, &scope, true, err);
    take_index_name(t, number, name);
    for (size_t i = 0; i < t->entry_count && status >= 0; i++) {
        const struct take_entry *entry = &t->entries[i];
        if (entry->tree != number)
            continue;
        if (entry->kind == TAKE_STASHES)
            status = take_follow_stashes(t, entry, &scope.how, &now, err);
        if (entry->kind == TAKE_CONFIG)
            status = take_move_config(t, entry, &scope.how, true, err);
        if (entry->kind == TAKE_INDEX && files_exists(t->copies, name))
            status = copying_file(t->copies, name, base, "index", err);
        if (entry->kind == TAKE_INDEX && status > 0)
            files_sync(base, "index");
    }
    seen_forget(folder);
    side_done(&now);
    return status < 0 ? status : 0;
}

/* ---- the whole ---- */

int git_taking_begin(const struct git *git, int record, int storage, enum git_direction towards,
                     struct git_taking **ret_taking, struct brig_error *err)
{
    struct git_taking *t = calloc(1, sizeof *t);
    if (!t)
        return brig_fail_nomem(err);
    *t = (struct git_taking){.git = git,
                             .record = record,
                             .storage = storage,
                             .copies = fcntl(record, F_DUPFD_CLOEXEC, 3),
                             .towards = towards};
    int status = take_read(t, err);
    if (status == 0)
        status = take_open(t, err);
    if (status == 0)
        status = take_lock_all(t, err);
    if (status == 0)
        status = take_check(t, err);
    if (status < 0)
        git_taking_end(t);
    else
        *ret_taking = t;
    return status;
}

bool git_taking_again(const struct git_taking *t)
{
    return t->again;
}

int git_taking_move(struct git_taking *t, struct brig_error *err)
{
    t->partly = true;
    int status = take_move_all(t, err);
    if (status < 0) { /* as far as it goes: the first error counts */
        t->towards = take_other(t->towards);
        t->partly = take_move_all(t, NULL) < 0;
        return status;
    }
    for (size_t i = 0; i < t->tree_count && status == 0; i++)
        status = take_follow(t, i, err);
    t->partly = status < 0;
    return status;
}

void git_taking_end(struct git_taking *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->tree_count; i++)
        if (t->trees[i].git_dir >= 0) {
            take_drop_lock(t, &t->trees[i]);
            (void)close(t->trees[i].git_dir);
        }
    if (!t->partly) /* else the next one goes on from there */
        (void)unlinkat(t->record, GIT_RECORD_LOCKS, 0);
    for (size_t i = 0; i < t->repo_count; i++) {
        if (t->repos[i].common >= 0)
            (void)close(t->repos[i].common);
        side_done(&t->repos[i].now);
        str_done(&t->repos[i].worktrees);
    }
    own_close(&t->copies);
    str_done(&t->text);
    str_done(&t->locks);
    free(t->repos);
    free(t->trees);
    free(t->entries);
    for (size_t i = 0; i < t->placed_count; i++)
        own_close(&t->placed[i].top);
    free(t->placed);
    free(t->values);
    free(t);
}

int git_take(const struct git *git, int record, int storage, enum git_direction towards,
             struct brig_error *err)
{
    struct git_taking *taking = NULL;
    int status = git_taking_begin(git, record, storage, towards, &taking, err);
    if (status == 0)
        status = git_taking_move(taking, err);
    git_taking_end(taking);
    return status;
}

bool git_was_interrupted(int record)
{
    return files_exists(record, GIT_RECORD_LOCKS);
}
