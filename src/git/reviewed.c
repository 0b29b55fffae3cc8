/* SPDX-License-Identifier: MIT */
#include "git/reviewed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/tree.h"
#include "git/plan.h"
#include "git/pushed.h"
#include "git/seen.h"

#define ABOUT "review"
#define COUNTED_MAX 8 /* branches of which commits are counted */
#define REVIEWED_MAX 4096

/* ---- the directory ---- */

static void name_of(int top, const char *prefix, char ret_name[REVIEWED_NAME_SIZE])
{
    char id[FILES_ID_MAX] = "";
    (void)files_identify(top, "", id);
    (void)snprintf(ret_name, REVIEWED_NAME_SIZE, "%s" REVIEWED_PREFIX "%s", prefix, id);
}

int reviewed_lock_file(int dir, const char *name, int how)
{
    autoclose int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, how) < 0)
        if (errno != EINTR)
            return -1;
    return take_fd(&fd);
}

struct about {
    struct str text;
    unsigned number;
    const char *space; /* the last part of the namespace of its refs */
    const char *root;
};

static bool read_about(int folder, struct about *about)
{
    const char *words[3] = {NULL};
    if (!files_read(folder, ABOUT, &about->text))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(words) && (i == 0 || words[i - 1]); i++)
        words[i] = str_list_next(&about->text, i == 0 ? NULL : words[i - 1]);
    if (!words[2])
        return false;
    about->number = (unsigned)strtoul(words[0], NULL, 10);
    about->space = words[1];
    about->root = words[2];
    return about->number >= TREES_MAX && about->number < TREES_MAX + REVIEWED_MAX;
}

/* The mounts of all of them have different paths in the jail. */
static unsigned free_number(int storage)
{
    bool used[REVIEWED_MAX] = {false};
    unsigned number = 0;
    autodir DIR *dir = files_list(storage, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        autoclose int folder = str_starts_with(item->d_name, REVIEWED_PREFIX)
                                   ? files_open_dir(storage, item->d_name)
                                   : -1;
        struct about about = {0};
        if (folder >= 0 && read_about(folder, &about))
            used[about.number - TREES_MAX] = true;
        str_done(&about.text);
    }
    while (number + 1 < REVIEWED_MAX && used[number])
        number++;
    return TREES_MAX + number;
}

/* Whether it has anything that the repository does not have: not if the last look has found nothing. */
static bool has_work(const struct private_git *p)
{
    __attribute__((cleanup(seen_done))) struct seen seen;
    seen_read(p->folder, &seen);
    return private_has_changed(p) && (seen.items > 0 || private_sign(p) != seen.signature);
}

/* "refs/brig/JAIL/ID". */
static void name_space(const struct guard *guard, const char *id,
                       char ret_space[TRANSFER_SPACE_MAX])
{
    struct guard named = {.jail = guard->jail};
    (void)snprintf(named.name, sizeof named.name, "-%s", id);
    run_name_space(&named, 0, ret_space);
}

static int build(struct guard *guard, const char *root, struct tree *tree, struct repo *repo,
                 struct str *notes, struct brig_error *err)
{
    char name[REVIEWED_NAME_SIZE], building[REVIEWED_NAME_SIZE], random[64];
    autostr struct str about = {0};
    autoclose int folder = -1;
    unsigned number = free_number(guard->storage);
    name_of(tree->top, "", name);
    name_of(tree->top, "new-", building);
    int status = files_random_name("", random, sizeof random, err);
    if (status == 0)
        status = tree_remove(guard->storage, building, err);
    if (status == 0)
        status = files_make_dir(guard->storage, building, &folder, err);
    str_list_add(&about, str_number(number).text);
    str_list_add(&about, random);
    str_list_add(&about, root);
    if (status == 0)
        status = about.failed ? brig_fail_nomem(err)
                              : files_write(folder, ABOUT, about.data, about.length, err);
    if (status == 0)
        status = private_build(&guard->git, folder, guard->storage, guard->cache, number, tree->top,
                               repo, &tree->private_git, notes, err);
    if (status < 0)
        return status;
    tree->has_private = true;
    name_space(guard, random, tree->space);
    return renameat(guard->storage, building, guard->storage, name) < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's storage")
               : 0;
}

/* Moves a directory away that cannot be continued: it may contain commits. */
static int set_aside(const struct guard *guard, const char *name, const char *why,
                     struct str *notes, struct brig_error *err)
{
    char aside[REVIEWED_NAME_SIZE + 8];
    autofree char *path = NULL;
    (void)snprintf(aside, sizeof aside, "bad-%s", name);
    int status = tree_remove(guard->storage, aside, err);
    if (status == 0 && renameat(guard->storage, name, guard->storage, aside) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", name);
    if (status == 0 && repo_path_of(guard->storage, &path, NULL) == 0)
        str_appendf(notes, "git: the jail's git directory is put aside in %s/%s: %s\n",
                    str_shown(path).text, aside, why);
    return status;
}

static uint64_t last_signature(int folder)
{
    __attribute__((cleanup(seen_done))) struct seen seen;
    seen_read(folder, &seen);
    return seen.signature;
}

/* Whether the jail has nothing but commits on the branches that it began with. */
static bool has_only_commits(const struct transfer *t)
{
    const struct side *inside = &t->inside, *base = &t->base;
    const char *head = refs_find(&inside->refs, inside->head);
    char tree[REFS_ID_MAX + 1] = "";
    autofree char *name = NULL;
    bool same = strcmp(inside->head, base->head) == 0 && inside->stash_count == base->stash_count;
    for (size_t i = 0; i < inside->stash_count; i++)
        same = same && side_find_stash(base, inside->stashes[i].id) >= 0;
    for (size_t i = 0; i < base->refs.count; i++)
        same = same && refs_find(&inside->refs, base->refs.items[i].name);
    if (!same || !head || t->pending[0] || t->unmerged || t->damaged || fetch_has_intents(t) ||
        str_make(&name, NULL, head, "^{tree}") < 0)
        return false;
    return LINE(t, NULL, tree, NULL, "rev-parse", name) == 0 && strcmp(tree, inside->tree) == 0;
}

/* A branch that has moved outside, too: a run sees the jail's, and apply does not move it. */
static void note_diverged(const struct transfer *t, const struct ref *ref, const char *option,
                          struct str *notes)
{
    char now[REFS_ID_MAX + 1] = "";
    const char *base = refs_find(&t->base.refs, ref->name);
    if (LINE(t, NULL, now, NULL, "rev-parse", "-q", "--verify", ref->name) != 0 || !base || !*now ||
        strcmp(now, base) == 0)
        return;
    str_concat(notes, "git: ", str_shown(refs_short_name(ref->name)).text,
               " has other commits outside than in the jail, which goes on from its own. To merge "
               "them outside: git merge ",
               ref->id, "; to drop all that waits in the jail: brig discard", option, " --all\n");
}

/* Whether the user has merged all that waits in it: then it has no work any more. */
static bool is_merged(const struct guard *guard, const struct private_git *p, const char *space,
                      struct str *notes)
{
    __attribute__((cleanup(fetch_done))) struct transfer t = {
        .git = &guard->git, .p = p, .space = space, .uses_seen = true};
    if (private_sign(p) != last_signature(p->folder) || fetch_all(&t, NULL) < 0)
        return false;
    bool merged = has_only_commits(&t);
    for (size_t i = 0; i < t.inside.refs.count; i++) {
        const struct ref *ref = &t.inside.refs.items[i];
        if (ref->symbolic || !fetch_is_new(&t, ref) ||
            RUN(&t, NULL, NULL, NULL, "merge-base", "--is-ancestor", ref->id, ref->name) == 0)
            continue;
        note_diverged(&t, ref, guard->option, notes);
        merged = false;
    }
    return merged;
}

/* Opens an existing one: 1, or 0 if there is none that can be continued. */
static int open_existing(struct guard *guard, struct tree *tree, const struct repo *repo,
                         struct str *notes, struct brig_error *err)
{
    char name[REVIEWED_NAME_SIZE];
    name_of(tree->top, "", name);
    files_rename_id(guard->storage, REVIEWED_PREFIX, tree->top);
    autoclose int folder = files_open_dir(guard->storage, name);
    if (folder < 0)
        return 0;
    struct brig_error why = {0};
    struct about about = {0};
    struct private_git p;
    int status = read_about(folder, &about)
                     ? private_open(&guard->git, folder, about.number, &p, &why)
                     : brig_fail(&why, BRIG_E_SETUP, 0, "it is incomplete");
    autoclose int alone = reviewed_lock_file(folder, "lock", LOCK_EX | LOCK_NB);
    name_space(guard, status == 0 ? about.space : "", tree->space);
    bool over = status == 0 && alone >= 0 && !has_work(&p); /* a killed run has left it */
    if (status == 0 && alone >= 0 && !over && p.repo.kind != REPO_NONE)
        over = is_merged(guard, &p, tree->space, notes);
    if (over) {
        private_done(&p);
        str_done(&about.text);
        return tree_remove(guard->storage, name, err);
    }
    if (status == 0 && p.repo.kind == REPO_NONE && repo->kind != REPO_NONE) {
        private_done(&p);
        status = brig_fail(&why, BRIG_E_SETUP, 0, "there is a repository outside now");
    }
    if (status == 0 && alone >= 0)
        status = private_refresh(&p, &why);
    if (status == 0) {
        tree->private_git = p;
        tree->has_private = true;
        tree->seen = last_signature(folder);
    }
    str_done(&about.text);
    if (status == 0)
        return 1;
    return alone >= 0 ? set_aside(guard, name, why.message, notes, err)
                      : brig_fail(err, BRIG_E_SETUP, 0, "%s", why.message);
}

int reviewed_open(struct guard *guard, const char *root, struct tree *tree, struct repo *repo,
                  struct str *notes, struct brig_error *err)
{
    autoclose int lock = reviewed_lock_file(guard->storage, REVIEWED_LOCK, LOCK_EX);
    if (lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the jail's storage");
    int status = open_existing(guard, tree, repo, notes, err);
    if (status == 0)
        status = build(guard, root, tree, repo, notes, err);
    if (status < 0)
        return status;
    tree->lock = reviewed_lock_file(tree->private_git.folder, "lock", LOCK_SH | LOCK_NB);
    return tree->lock < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the jail's git directory")
               : 0;
}

bool reviewed_has_changed(const struct tree *tree)
{
    return private_has_changed(&tree->private_git) &&
           private_sign(&tree->private_git) != tree->seen;
}

void reviewed_release(const struct guard *guard, struct tree *tree)
{
    char name[REVIEWED_NAME_SIZE];
    autoclose int lock = reviewed_lock_file(guard->storage, REVIEWED_LOCK, LOCK_EX);
    name_of(tree->top, "", name);
    if (lock >= 0 && tree->lock >= 0 && !has_work(&tree->private_git) &&
        flock(tree->lock, LOCK_EX | LOCK_NB) == 0)
        (void)tree_remove(guard->storage, name, NULL);
    own_close(&tree->lock);
}

/* ---- the end of a run ---- */

static void describe(const struct transfer *t, const struct tree *tree, const char *option,
                     struct str *notes)
{
    autostr struct str list = {0};
    size_t count = 0;
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        if (!ref->symbolic && fetch_is_new(t, ref) && ++count <= COUNTED_MAX)
            plan_summarise(t, ref->name, refs_find(&t->base.refs, ref->name), ref->id, &list);
    }
    if (count > COUNTED_MAX)
        str_appendf(&list, " and %zu more refs", count - COUNTED_MAX);
    bool commits = list.length > 0;
    if (strcmp(t->inside.head, t->base.head) != 0 && *t->inside.head)
        str_concat(&list, commits ? ", " : "", "HEAD is ",
                   refs_is_id(t->inside.head) ? t->inside.head
                                              : str_shown(refs_short_name(t->inside.head)).text);
    if (list.length == 0 && fetch_has_staged(t))
        str_append(&list, "staged files");
    if (list.length > 0 && !list.failed)
        str_concat(notes, "git: ", list.data, ": kept in the jail", commits ? " and below " : "",
                   commits ? tree->space : "", "; brig apply", option,
                   " --all moves your branches\n");
    if (t->inside.refs.skipped > t->base.refs.skipped)
        str_append(notes, "git: refs with names that are not safe were left in the jail\n");
}

/* Writes what was seen, and tells it once: programs such as `git status` rewrite the index, and
 * change nothing that matters. */
static int reviewed_say(const struct transfer *t, const struct str *text, struct str *notes,
                        struct brig_error *err)
{
    __attribute__((cleanup(seen_done))) struct seen before;
    const char *said = text->length > 0 ? text->data : NULL;
    seen_read(t->p->folder, &before);
    if (said && !str_equal(before.said.data, said))
        str_append(notes, said);
    return seen_write(t, said ? said : before.said.data, err);
}

/* Superseded commits need no pin; nor does anything, if nothing is new. */
static int unpin_old(const struct transfer *t, struct brig_error *err)
{
    autostr struct str new = {0};
    fetch_list_new(t, &new);
    return new.failed ? brig_fail_nomem(err) : fetch_unpin(t, &new, new.length > 0, err);
}

int reviewed_fetch(const struct guard *guard, const struct tree *tree, struct str *notes,
                   struct brig_error *err)
{
    const struct private_git *p = &tree->private_git;
    __attribute__((cleanup(fetch_done))) struct transfer t = {
        .git = &guard->git, .p = p, .space = tree->space, .notes = notes};
    if (!files_exists(p->sealed.dir, "HEAD"))
        return 0;
    autostr struct str text = {0};
    if (p->repo.kind == REPO_NONE) {
        if (last_signature(p->folder) == 0)
            str_concat(notes, "git: the new repository is kept in the jail; brig apply",
                       guard->option, " --all creates it\n");
        return seen_write_count(p, 1, err);
    }
    int status = fetch_all(&t, err);
    if (status == 0)
        status = unpin_old(&t, err);
    if (status < 0)
        return status;
    describe(&t, tree, guard->option, &text);
    status = pushed_note(&guard->git, p, &text, err);
    if (status < 0)
        return status;
    return text.failed ? brig_fail_nomem(err) : reviewed_say(&t, &text, notes, err);
}

/* ---- finding them ---- */

static int compare_found(const void *left, const void *right)
{
    const struct reviewed_found *a = left, *b = right;
    return a->length < b->length ? 1 : a->length > b->length ? -1 : strcmp(a->name, b->name);
}

int reviewed_find(int storage, const char *root, struct reviewed_found **ret_found,
                  size_t *ret_count, struct brig_error *err)
{
    autodir DIR *dir = files_list(storage, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        autoclose int folder = str_starts_with(item->d_name, REVIEWED_PREFIX)
                                   ? files_open_dir(storage, item->d_name)
                                   : -1;
        struct about about = {0};
        autostr struct str path = {0};
        bool wanted = folder >= 0 && strlen(item->d_name) < REVIEWED_NAME_SIZE &&
                      read_about(folder, &about) && strcmp(about.root, root) == 0;
        str_done(&about.text);
        if (!wanted)
            continue;
        if (*ret_count == TREES_MAX || !array_grow(ret_found, *ret_count))
            return brig_fail_nomem(err);
        struct reviewed_found *found = &(*ret_found)[(*ret_count)++];
        (void)snprintf(found->name, sizeof found->name, "%s", item->d_name);
        found->length = files_read(folder, "about", &path) && path.data ? strlen(path.data) : 0;
    }
    if (*ret_count > 0)
        qsort(*ret_found, *ret_count, sizeof **ret_found, compare_found);
    return 0;
}

int reviewed_open_private(const struct guard *guard, const char *name, int folder,
                          struct private_git *ret_private, char *ret_space, struct brig_error *err)
{
    struct about about = {0};
    int status = folder >= 0 && read_about(folder, &about)
                     ? private_open(&guard->git, folder, about.number, ret_private, err)
                     : brig_fail(err, BRIG_E_SETUP, 0, "'%s' is incomplete", name);
    name_space(guard, status == 0 ? about.space : "", ret_space);
    str_done(&about.text);
    return status;
}

/* Whether there is something that is not taken: the last look has found it, or has not seen what a killed run has done. */
bool reviewed_waits(int storage, const char *name)
{
    __attribute__((cleanup(seen_done))) struct seen seen;
    autoclose int folder = files_open_dir(storage, name);
    seen_read(folder, &seen);
    return seen.items > 0 || (folder >= 0 && private_sign_folder(folder) != seen.signature);
}

bool guard_has_reviewed(const struct guard_options *options, const char *root)
{
    autofree struct reviewed_found *found = NULL;
    size_t count = 0;
    if (reviewed_find(options->storage, root, &found, &count, NULL) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (reviewed_waits(options->storage, found[i].name))
            return true;
    return false;
}

void reviewed_show(int storage, const char *name, const char *option, struct str *notes)
{
    autoclose int folder = files_open_dir(storage, name);
    struct about about = {0};
    if (folder >= 0 && reviewed_waits(storage, name) && read_about(folder, &about))
        str_appendf(notes, "%s: what was done in git waits for brig apply%s --all\n",
                    str_shown(about.root).text, option);
    str_done(&about.text);
}
