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

#define LOCK "review.lock" /* in the storage: held while one is opened, built or removed */
#define ABOUT "review"
#define COUNTED_MAX 8 /* branches of which commits are counted */
#define REVIEWED_MAX 4096

/* ---- the directory ---- */

#define NAME_SIZE (FILES_ID_MAX + 32)

static void name_of(int top, const char *prefix, char ret_name[NAME_SIZE])
{
    char id[FILES_ID_MAX] = "";
    (void)files_identify(top, "", id);
    (void)snprintf(ret_name, NAME_SIZE, "%s" REVIEWED_PREFIX "%s", prefix, id);
}

static int lock_file(int dir, const char *name, int how)
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
    char name[NAME_SIZE], building[NAME_SIZE], random[64];
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
    char aside[NAME_SIZE + 8];
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

/* Opens an existing one: 1, or 0 if there is none that can be continued. */
static int open_existing(struct guard *guard, struct tree *tree, const struct repo *repo,
                         struct str *notes, struct brig_error *err)
{
    char name[NAME_SIZE];
    name_of(tree->top, "", name);
    autoclose int folder = files_open_dir(guard->storage, name);
    if (folder < 0)
        return 0;
    struct brig_error why = {0};
    struct about about = {0};
    struct private_git p;
    int status = read_about(folder, &about)
                     ? private_open(&guard->git, folder, about.number, &p, &why)
                     : brig_fail(&why, BRIG_E_SETUP, 0, "it is incomplete");
    autoclose int alone = lock_file(folder, "lock", LOCK_EX | LOCK_NB);
    if (status == 0 && alone >= 0 && !has_work(&p)) { /* a killed run has left it */
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
        name_space(guard, about.space, tree->space);
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
    autoclose int lock = lock_file(guard->storage, LOCK, LOCK_EX);
    if (lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the jail's storage");
    int status = open_existing(guard, tree, repo, notes, err);
    if (status == 0)
        status = build(guard, root, tree, repo, notes, err);
    if (status < 0)
        return status;
    tree->lock = lock_file(tree->private_git.folder, "lock", LOCK_SH | LOCK_NB);
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
    char name[NAME_SIZE];
    autoclose int lock = lock_file(guard->storage, LOCK, LOCK_EX);
    name_of(tree->top, "", name);
    if (lock >= 0 && tree->lock >= 0 && !has_work(&tree->private_git) &&
        flock(tree->lock, LOCK_EX | LOCK_NB) == 0)
        (void)tree_remove(guard->storage, name, NULL);
    own_close(&tree->lock);
}

/* ---- the end of a run ---- */

static const char *short_name(const char *name)
{
    return str_starts_with(name, "refs/heads/") || str_starts_with(name, "refs/tags/")
               ? strchr(name + strlen("refs/"), '/') + 1
               : name;
}

/* "2 commits on NAME". */
static void count_commits(const struct transfer *t, const struct ref *ref, struct str *out)
{
    char count[32];
    const char *old = refs_find(&t->base.refs, ref->name);
    const char *since = old ? old : refs_find(&t->base.refs, t->base.head);
    autostr struct str range = {0};
    str_concat(&range, since ? since : "", since ? ".." : "", ref->id);
    if (range.failed || LINE(t, NULL, count, NULL, "rev-list", "--count", range.data) < 0)
        return;
    str_append(out, out->length > 0 ? ", " : "");
    if (strcmp(count, "0") == 0)
        str_concat(out, old ? "" : "new ", str_shown(short_name(ref->name)).text,
                   old ? " was reset" : "");
    else
        str_concat(out, count, strcmp(count, "1") == 0 ? " commit on " : " commits on ",
                   str_shown(short_name(ref->name)).text);
}

static void describe(const struct transfer *t, const struct tree *tree, const char *option,
                     struct str *notes)
{
    autostr struct str list = {0};
    size_t count = 0;
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        if (!ref->symbolic && fetch_is_new(t, ref) && ++count <= COUNTED_MAX)
            count_commits(t, ref, &list);
    }
    if (count > COUNTED_MAX)
        str_appendf(&list, " and %zu more refs", count - COUNTED_MAX);
    bool commits = list.length > 0;
    if (strcmp(t->inside.head, t->base.head) != 0 && *t->inside.head)
        str_concat(&list, commits ? ", " : "", "HEAD is ",
                   refs_is_id(t->inside.head) ? t->inside.head
                                              : str_shown(short_name(t->inside.head)).text);
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
        status = lfs_transfer(p->sealed.dir, p->repo.common, err);
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

/* ---- apply and discard ---- */

/* The private git directories of a reviewed directory, those of submodules first. */
struct found {
    char name[NAME_SIZE];
    size_t length; /* of the path of the working tree */
};

static int compare_found(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return a->length < b->length ? 1 : a->length > b->length ? -1 : strcmp(a->name, b->name);
}

static int find_all(const struct guard *guard, const char *root, struct found **ret_found,
                    size_t *ret_count, struct brig_error *err)
{
    autodir DIR *dir = files_list(guard->storage, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        autoclose int folder = str_starts_with(item->d_name, REVIEWED_PREFIX)
                                   ? files_open_dir(guard->storage, item->d_name)
                                   : -1;
        struct about about = {0};
        autostr struct str path = {0};
        bool wanted = folder >= 0 && strlen(item->d_name) < NAME_SIZE &&
                      read_about(folder, &about) && strcmp(about.root, root) == 0;
        str_done(&about.text);
        if (!wanted)
            continue;
        if (*ret_count == TREES_MAX || !array_grow(ret_found, *ret_count))
            return brig_fail_nomem(err);
        struct found *found = &(*ret_found)[(*ret_count)++];
        (void)snprintf(found->name, sizeof found->name, "%s", item->d_name);
        found->length = files_read(folder, "about", &path) && path.data ? strlen(path.data) : 0;
    }
    if (*ret_count > 0)
        qsort(*ret_found, *ret_count, sizeof **ret_found, compare_found);
    return 0;
}

/* The private git directories of a root while a verb works on them: the jail's are locked. */
struct reviewed_set {
    struct guard *guard;
    struct found *found;
    size_t count;
    int lock;
};

static void reviewed_set_done(struct reviewed_set *set)
{
    guard_free(set->guard);
    free(set->found);
    own_close(&set->lock);
}
#define autoset __attribute__((cleanup(reviewed_set_done)))

static int reviewed_set_open(const struct guard_options *options, const char *root,
                             struct reviewed_set *set, struct brig_error *err)
{
    *set = (struct reviewed_set){.lock = -1};
    int status = guard_new(options, NULL, &set->guard, err);
    if (status < 0)
        return status;
    set->lock = lock_file(set->guard->storage, LOCK, LOCK_EX);
    if (set->lock < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the jail's git directories");
    return find_all(set->guard, root, &set->found, &set->count, err);
}

/* Opens one of them. *ret_space is the namespace of its refs. */
static int reviewed_open_private(const struct guard *guard, const char *name, int folder,
                                 struct private_git *ret_private, char *ret_space,
                                 struct brig_error *err)
{
    struct about about = {0};
    int status = folder >= 0 && read_about(folder, &about)
                     ? private_open(&guard->git, folder, about.number, ret_private, err)
                     : brig_fail(err, BRIG_E_SETUP, 0, "'%s' is incomplete", name);
    name_space(guard, status == 0 ? about.space : "", ret_space);
    str_done(&about.text);
    return status;
}

static int refuse_running(struct brig_error *err)
{
    return brig_fail(
        err, BRIG_E_STATE, 0,
        "git: a run of the jail is active, so that its branches cannot be applied yet");
}

/* Whether there is something that is not taken: the last look has found it, or has not seen what a killed run has done. */
bool reviewed_waits(int storage, const char *name)
{
    __attribute__((cleanup(seen_done))) struct seen seen;
    autoclose int folder = files_open_dir(storage, name);
    seen_read(folder, &seen);
    return seen.items > 0 || (folder >= 0 && private_sign_folder(folder) != seen.signature);
}

/* One private git directory. */
struct hand_over_item {
    char name[NAME_SIZE];
    int folder, lock;
    struct private_git p;
    bool made; /* a new repository, which is in the storage until it is placed */
};

struct hand_over {
    struct guard *guard;
    int lock;
    bool lists; /* nothing is taken */
    struct hand_over_item *items;
    struct plan_part *parts;
    size_t count;
    struct str failed; /* messages about those that cannot be handed over */
};

void hand_over_free(struct hand_over *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++) {
        plan_report_done(&h->parts[i].report);
        private_done(&h->items[i].p);
        close_fd(&h->items[i].lock);
        close_fd(&h->items[i].folder);
    }
    guard_free(h->guard);
    own_close(&h->lock);
    str_done(&h->failed);
    free(h->items);
    free(h->parts);
    free(h);
}

int hand_over_begin(const struct guard_options *options, bool lists, struct hand_over **ret,
                    struct brig_error *err)
{
    struct hand_over *h = calloc(1, sizeof *h);
    if (!h)
        return brig_fail_nomem(err);
    *h = (struct hand_over){.lock = -1,
                            .lists = lists,
                            .items = calloc(TREES_MAX, sizeof *h->items),
                            .parts = calloc(TREES_MAX, sizeof *h->parts)};
    int status =
        h->items && h->parts ? guard_new(options, NULL, &h->guard, err) : brig_fail_nomem(err);
    if (status == 0)
        h->lock = lock_file(h->guard->storage, LOCK, LOCK_EX);
    if (status == 0 && h->lock < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the jail's git directories");
    if (status < 0)
        hand_over_free(h);
    else
        *ret = h;
    return status;
}

/* The others go on, and so do files. */
static void hand_over_note(struct hand_over *h, const struct brig_error *why)
{
    str_concat(&h->failed, "git: ", why->message, "\n");
}

/* A new submodule is not moved: nothing has searched its directory. */
static int hand_over_open(struct hand_over *h, const char *name, struct brig_error *err)
{
    struct hand_over_item *item = &h->items[h->count];
    struct plan_part *part = &h->parts[h->count];
    *item = (struct hand_over_item){.folder = files_open_dir(h->guard->storage, name), .lock = -1};
    (void)str_fill(item->name, sizeof item->name, name);
    *part = (struct plan_part){.p = &item->p,
                               .folder = item->name,
                               .flags = PLAN_UNSEARCHED | (h->lists ? PLAN_SEEN : 0),
                               .stays = true};
    if (item->folder >= 0 && !h->lists)
        item->lock = lock_file(item->folder, "lock", LOCK_EX | LOCK_NB);
    int status = h->lists || item->lock >= 0 ? 0 : refuse_running(err);
    if (status == 0)
        status = reviewed_open_private(h->guard, name, item->folder, &item->p, part->space, err);
    if (status < 0) {
        close_fd(&item->lock);
        close_fd(&item->folder);
        return status;
    }
    item->made = item->p.repo.kind == REPO_NONE || private_is_made(&item->p);
    h->count++;
    return 0;
}

int hand_over_add(struct hand_over *h, const char *root, struct brig_error *err)
{
    autofree struct found *found = NULL;
    size_t count = 0;
    int status = find_all(h->guard, root, &found, &count, err);
    if (status == 0 && count > TREES_MAX - h->count)
        status =
            brig_fail(err, BRIG_E_INVALID, 0, "there are more than %d repositories", TREES_MAX);
    for (size_t i = 0; i < count && status == 0; i++) {
        struct brig_error why = {0};
        if (reviewed_waits(h->guard->storage, found[i].name) &&
            hand_over_open(h, found[i].name, &why) < 0)
            hand_over_note(h, &why);
    }
    return status;
}

/* New repositories are made in the storage; what is not a repository is left out. */
static void hand_over_recreate(struct hand_over *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        struct hand_over_item *item = &h->items[i];
        struct brig_error why = {0};
        int status = item->p.repo.kind != REPO_NONE ? 1
                     : h->lists                     ? 0
                                : private_recreate(&h->guard->git, &item->p, &why);
        if (status < 0)
            hand_over_note(h, &why);
        if (status > 0)
            continue;
        private_done(&item->p);
        close_fd(&item->lock);
        close_fd(&item->folder);
        item->name[0] = '\0';
    }
    for (size_t i = 0; i < h->count; i++)
        if (h->items[i].name[0]) {
            h->items[kept] = h->items[i];
            h->parts[kept] = h->parts[i];
            h->parts[kept].p = &h->items[kept].p;
            h->parts[kept].folder = h->items[kept].name;
            h->parts[kept].made = h->items[kept].made;
            kept++;
        }
    h->count = kept;
}

int hand_over_plan(struct hand_over *h, int into, struct brig_error *err)
{
    const struct plan_options options = {.git = &h->guard->git,
                                         .chooser = h->guard->chooser,
                                         .storage = h->guard->storage,
                                         .into = into};
    hand_over_recreate(h);
    return h->count > 0 ? plan_write(&options, h->parts, h->count, err) : 0;
}

/* A repository that is placed needs no private directory any more; one of which something was left would lose its commits. */
static int hand_over_settle(struct hand_over *h, size_t i, struct str *notes,
                            struct brig_error *err)
{
    struct hand_over_item *item = &h->items[i];
    const struct plan_report *report = &h->parts[i].report;
    if (item->made && report->refused)
        return 0;
    int status = item->made ? private_find_placed(&item->p, err) : 0;
    if (status >= 0)
        status = nested_worktrees(&h->guard->git, &item->p, notes, err);
    if (status >= 0 && item->made && report->pending)
        status = private_keep(&item->p, h->guard->storage, err);
    if (status < 0)
        return status;
    return item->made ? tree_remove(h->guard->storage, item->name, err)
                      : seen_write_count(&item->p, report->left || report->pending, err);
}

bool hand_over_end(struct hand_over *h, struct str *notes)
{
    const struct plan_options options = {.git = &h->guard->git};
    plan_end(&options, h->parts, h->count);
    bool left = false;
    for (size_t i = 0; i < h->count; i++) {
        struct plan_part *part = &h->parts[i];
        if (part->status == 0)
            part->status = hand_over_settle(h, i, notes, &part->err);
        if (part->status < 0)
            hand_over_note(h, &part->err);
        left = left || part->report.refused;
        if (part->report.summary.length > 0)
            str_concat(notes, "git: ", part->report.summary.data, "\n");
        if (part->report.notes.length > 0)
            str_append(notes, part->report.notes.data);
    }
    str_append(notes, h->failed.data ? h->failed.data : "");
    return left || h->failed.length > 0;
}

int guard_list(const struct guard_options *options, const char *root, struct brig_error *err)
{
    struct hand_over *h = NULL;
    autoclose int record = -1;
    int status = hand_over_begin(options, true, &h, err);
    if (status == 0 && h->guard->git.program)
        status = hand_over_add(h, root, err);
    if (status == 0 && h->count > 0)
        status = run_open_record(h->items[0].folder, &record, err);
    if (status == 0 && h->count > 0)
        status = hand_over_plan(h, record, err);
    for (size_t i = 0; status >= 0 && i < h->count; i++)
        if (h->parts[i].status < 0)
            status = brig_fail(err, h->parts[i].status, 0, "%s", h->parts[i].err.message);
    hand_over_free(h);
    return status < 0 ? status : 0;
}

/* Notes in base/ what the remote-tracking refs of a remote are now. */
static int note_fetched(const struct guard *guard, const struct private_git *p, const char *remote,
                        struct brig_error *err)
{
    autostr struct str refs = {0}, lines = {0}, space = {0}, objects = {0};
    str_concat(&space, "refs/remotes/", remote, "/");
    str_concat(&objects, p->repo.common_path, "/objects");
    const char *const list[] = {
        "for-each-ref",
        "--format=%(if)%(symref)%(then)%(else)update %(refname) %(objectname)%(end)", space.data,
        NULL};
    static const char *const update[] = {"update-ref", "--stdin", NULL};
    int status =
        git_run(&guard->git,
                &(struct git_call){.words = list, .git_dir = p->repo.git_dir, .out = &refs}, err);
    char *rest = refs.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line) /* not a symbolic ref */
            str_concat(&lines, line, "\n");
    if (status == 0 && lines.length > 0 && !objects.failed)
        status = git_run(
            &guard->git,
            &(struct git_call){
                .words = update, .git_dir = p->base, .objects = objects.data, .input = &lines},
            err);
    return status <= 0 ? status
                       : brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot note what was fetched");
}

static int fetch_remote(const struct guard *guard, const struct private_git *p, const char *remote,
                        struct str *notes, struct brig_error *err)
{
    const char *const fetch[] = {
        "fetch", "--no-recurse-submodules", "--no-auto-gc", "-q", "--", remote, NULL};
    autostr struct str says = {0};
    const struct git_call call = {.words = fetch,
                                  .git_dir = p->repo.git_dir,
                                  .for_user = true,
                                  .fetches = true,
                                  .says = &says};
    int status = git_run(&guard->git, &call, err);
    if (status > 0) {
        str_concat(notes, "git: cannot fetch from ", str_shown(remote).text, ": ");
        str_append_shown(notes, says.data ? says.data : "", says.length, "");
        str_append_char(notes, '\n');
        return 0;
    }
    return status < 0 ? status : note_fetched(guard, p, remote, err);
}

/* A jail cannot write to the configuration of base/, so its remotes are those that the user had. */
static int fetch_remotes(struct guard *guard, const char *name, struct str *notes,
                         struct brig_error *err)
{
    static const char *const words[] = {"remote", NULL};
    autoclose int folder = files_open_dir(guard->storage, name);
    autostr struct str old = {0}, now = {0}, objects = {0};
    char space[TRANSFER_SPACE_MAX];
    struct private_git p;
    int status = reviewed_open_private(guard, name, folder, &p, space, err);
    if (status < 0)
        return status;
    if (p.repo.kind != REPO_NONE)
        str_concat(&objects, p.repo.common_path, "/objects");
    if (p.repo.kind != REPO_NONE)
        status =
            git_run(&guard->git,
                    &(struct git_call){
                        .words = words, .git_dir = p.base, .objects = objects.data, .out = &old},
                    err);
    if (p.repo.kind != REPO_NONE && status == 0)
        status = git_run(&guard->git,
                         &(struct git_call){.words = words, .git_dir = p.repo.git_dir, .out = &now},
                         err);
    char *rest = now.data;
    for (char *remote; status == 0 && rest && (remote = strsep(&rest, "\n"));) {
        autostr struct str line = {0}, all = {0};
        str_concat(&line, "\n", remote, "\n");
        str_concat(&all, "\n", old.data ? old.data : "");
        if (*remote && !line.failed && !all.failed && strstr(all.data, line.data))
            status = fetch_remote(guard, &p, remote, notes, err);
    }
    private_done(&p);
    return status < 0 ? status : 0;
}

int guard_fetch_remotes(const struct guard_options *options, const char *root, struct str *notes,
                        struct brig_error *err)
{
    autoset struct reviewed_set set;
    int status = reviewed_set_open(options, root, &set, err);
    for (size_t i = 0; i < set.count && status == 0 && set.guard->git.program; i++)
        status = fetch_remotes(set.guard, set.found[i].name, notes, err);
    return status;
}

int guard_discard(const struct guard_options *options, const char *root, struct brig_error *err)
{
    autoset struct reviewed_set set;
    int status = reviewed_set_open(options, root, &set, err);
    for (size_t i = 0; i < set.count && status == 0; i++) {
        int storage = set.guard->storage;
        autoclose int folder = files_open_dir(storage, set.found[i].name);
        autoclose int alone = folder < 0 ? -1 : lock_file(folder, "lock", LOCK_EX | LOCK_NB);
        status = alone < 0 ? refuse_running(err) : tree_remove(storage, set.found[i].name, err);
    }
    return status < 0 ? status : (int)set.count;
}

bool guard_has_reviewed(const struct guard_options *options, const char *root)
{
    autofree struct found *found = NULL;
    size_t count = 0;
    const struct guard guard = {.storage = options->storage};
    if (find_all(&guard, root, &found, &count, NULL) < 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (reviewed_waits(guard.storage, found[i].name))
            return true;
    return false;
}

void reviewed_show(int storage, const char *name, struct str *notes)
{
    autoclose int folder = files_open_dir(storage, name);
    struct about about = {0};
    if (folder >= 0 && reviewed_waits(storage, name) && read_about(folder, &about))
        str_appendf(notes, "%s: what was done in git waits for brig apply --all\n",
                    str_shown(about.root).text);
    str_done(&about.text);
}
