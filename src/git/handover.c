/* SPDX-License-Identifier: MIT */
/* What is taken of the private git directories of reviewed directories: as a part of an operation, listed, or dropped. */
#include <errno.h>
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
#include "git/reviewed.h"
#include "git/seen.h"

#define DROPPED_PREFIX "dropped-" /* and the number of an operation, which has discarded it */
#define DROPPED_MAX 32

#define LISTED "listed" /* in the folder of a private git directory */

static int refuse_running(struct brig_error *err)
{
    return brig_fail(
        err, BRIG_E_STATE, 0,
        "git: a run of the jail is active, so that its branches cannot be applied yet");
}

/* One private git directory. */
struct hand_over_item {
    char name[REVIEWED_NAME_SIZE];
    int folder, lock;
    struct private_git p;
    bool made; /* a new repository, which is in the storage until it is placed */
};

struct hand_over {
    struct guard *guard;
    int lock;
    bool lists;   /* nothing is taken */
    bool planned; /* there is a record */
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
        if (h->lists)
            (void)tree_remove(h->items[i].folder, LISTED, NULL);
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
        h->lock = reviewed_lock_file(h->guard->storage, REVIEWED_LOCK, LOCK_EX);
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
        item->lock = reviewed_lock_file(item->folder, "lock", LOCK_EX | LOCK_NB);
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
    autofree struct reviewed_found *found = NULL;
    size_t count = 0;
    int status = reviewed_find(h->guard->storage, root, &found, &count, err);
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

/* To list it, a new repository is made in a folder that goes afterwards. */
static int hand_over_wrap(struct hand_over *h, struct hand_over_item *item, struct brig_error *err)
{
    autoclose int folder = -1;
    struct private_git p;
    int status = tree_remove(item->folder, LISTED, err);
    if (status == 0)
        status = files_make_dir(item->folder, LISTED, &folder, err);
    if (status == 0)
        status = private_wrap(folder, item->p.sealed.dir, item->p.top, &p, err);
    if (status < 0)
        return status;
    private_done(&item->p);
    item->p = p;
    return private_recreate(&h->guard->git, &item->p, err);
}

/* New repositories are made in the storage; what is not a repository is left out. */
static void hand_over_recreate(struct hand_over *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->count; i++) {
        struct hand_over_item *item = &h->items[i];
        struct brig_error why = {0};
        int status = item->p.repo.kind != REPO_NONE ? 1
                     : h->lists                     ? hand_over_wrap(h, item, &why)
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
    int status = h->count > 0 ? plan_write(&options, h->parts, h->count, err) : 0;
    h->planned = status > 0;
    return status;
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

bool hand_over_end(struct hand_over *h, bool taken, struct str *notes)
{
    const struct plan_options options = {.git = &h->guard->git};
    bool left = h->planned && !taken;
    if (left)
        return true; /* all of it waits, as it did before */
    plan_end(&options, h->parts, h->count);
    for (size_t i = 0; i < h->count; i++) {
        struct plan_part *part = &h->parts[i];
        if (part->status == 0)
            part->status = hand_over_settle(h, i, notes, &part->err);
        if (part->status < 0)
            hand_over_note(h, &part->err);
        left = left || part->report.told;
        run_tell(h->count > 1 ? h->items[i].p.top_path : NULL, &part->report, notes);
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
static int fetch_remotes(const struct guard *guard, const struct private_git *p, struct str *notes,
                         struct brig_error *err)
{
    static const char *const words[] = {"remote", NULL};
    autostr struct str old = {0}, now = {0}, objects = {0};
    struct git_call call = {.words = words, .git_dir = p->base, .out = &old};
    str_concat(&objects, p->repo.common_path, "/objects");
    call.objects = objects.data;
    str_append_char(&old, '\n');
    int status = git_run(&guard->git, &call, err);
    call = (struct git_call){.words = words, .git_dir = p->repo.git_dir, .out = &now};
    if (status == 0)
        status = git_run(&guard->git, &call, err);
    char *rest = now.data;
    for (char *remote; status == 0 && rest && (remote = strsep(&rest, "\n"));) {
        autostr struct str line = {0};
        str_concat(&line, "\n", remote, "\n");
        if (*remote && !line.failed && !old.failed && strstr(old.data, line.data))
            status = fetch_remote(guard, p, remote, notes, err);
    }
    return status < 0 ? status : 0;
}

int hand_over_fetch(struct hand_over *h, struct str *notes, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < h->count && status == 0; i++)
        if (h->items[i].p.repo.kind != REPO_NONE)
            status = fetch_remotes(h->guard, &h->items[i].p, notes, err);
    return status;
}

/* Only the last operation that has dropped something keeps it. */
static int drop_older(int storage, const char *prefix, struct brig_error *err)
{
    autodir DIR *dir = files_list(storage, ".");
    int status = 0;
    for (const struct dirent *item; status == 0 && dir && (item = files_next(dir));)
        if (str_starts_with(item->d_name, DROPPED_PREFIX) && !str_starts_with(item->d_name, prefix))
            status = tree_remove(storage, item->d_name, err);
    return status;
}

static int drop_one(int storage, const char *name, const char *prefix, struct brig_error *err)
{
    autofree char *dropped = NULL;
    int status = str_make(&dropped, err, prefix, name);
    if (status < 0 || !*prefix)
        return status < 0 ? status : tree_remove(storage, name, err);
    status = tree_remove(storage, dropped, err);
    if (status == 0 && renameat(storage, name, storage, dropped) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", name);
    return status;
}

int hand_over_drop(struct hand_over *h, const char *root, uint64_t id, struct brig_error *err)
{
    autofree struct reviewed_found *found = NULL;
    char prefix[DROPPED_MAX] = "";
    size_t count = 0;
    int storage = h->guard->storage;
    int status = reviewed_find(storage, root, &found, &count, err);
    if (id)
        (void)snprintf(prefix, sizeof prefix, DROPPED_PREFIX "%ju-", (uintmax_t)id);
    if (status == 0 && id && count > 0)
        status = drop_older(storage, prefix, err);
    for (size_t i = 0; i < count && status == 0; i++) {
        autoclose int folder = files_open_dir(storage, found[i].name);
        autoclose int alone =
            folder < 0 ? -1 : reviewed_lock_file(folder, "lock", LOCK_EX | LOCK_NB);
        status = alone < 0 ? refuse_running(err) : drop_one(storage, found[i].name, prefix, err);
    }
    return status < 0 ? status : (int)count;
}

static int restore_one(int storage, const char *dropped, const char *name, struct str *notes,
                       struct brig_error *err)
{
    autoclose int folder = files_open_dir(storage, name);
    autoclose int alone = folder < 0 ? -1 : reviewed_lock_file(folder, "lock", LOCK_EX | LOCK_NB);
    if (folder >= 0 && (alone < 0 || reviewed_waits(storage, name))) {
        str_append(notes, "git: the branches that were discarded stay away, because the jail has "
                          "new work; their commits are below refs/brig\n");
        return 0;
    }
    int status = tree_remove(storage, name, err);
    if (status == 0 && renameat(storage, dropped, storage, name) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", dropped);
    return status < 0 ? status : 1;
}

int guard_restore(int storage, uint64_t id, struct str *notes, struct brig_error *err)
{
    char prefix[DROPPED_MAX];
    autoclose int lock = reviewed_lock_file(storage, REVIEWED_LOCK, LOCK_EX);
    autodir DIR *dir = files_list(storage, ".");
    int status = lock < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot lock the storage") : 0;
    int count = 0;
    (void)snprintf(prefix, sizeof prefix, DROPPED_PREFIX "%ju-", (uintmax_t)id);
    for (const struct dirent *item; status >= 0 && dir && (item = files_next(dir));)
        if (str_starts_with(item->d_name, prefix)) {
            status = restore_one(storage, item->d_name, item->d_name + strlen(prefix), notes, err);
            count += status > 0;
        }
    return status < 0 ? status : count;
}
