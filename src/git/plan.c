/* SPDX-License-Identifier: MIT */
#include "git/plan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/place.h"
#include "base/record.h"
#include "base/sha256.h"
#include "git/config.h"
#include "git/plan_tree.h"
#include "git/pushed.h"
#include "git/seen.h"
#include "git/take.h"

void plan_report_done(struct plan_report *report)
{
    str_done(&report->summary);
    str_done(&report->notes);
    str_done(&report->keep);
}

/* ---- the record ---- */

static void plan_put(struct plan_tree *tree, const char *key, const char *name, const char *old,
                     const char *new)
{
    struct str *record = &tree->plan->record;
    record_add(record, key, name);
    record_add(record, "old", old);
    record_add(record, "new", new);
}

static int plan_put_place(struct plan_tree *tree, const char *key, const char *path, int fd,
                          struct brig_error *err)
{
    struct place place;
    int status = place_of(fd, &place, err);
    record_add(&tree->plan->record, key, path);
    if (status == 0)
        place_add(&tree->plan->record, &place);
    return status;
}

static int plan_put_header(struct plan_tree *tree, struct brig_error *err)
{
    struct str *record = &tree->plan->record;
    const struct repo *repo = &tree->p->repo;
    autostr struct str pins = {0};
    int status = plan_put_place(tree, "repo", repo->common_path, repo->common, err);
    str_concat(&pins, tree->t.space, "/before");
    record_add(record, "pins", pins.data);
    record_add(record, "tree", tree->p->top_path);
    if (status == 0)
        status = plan_put_place(tree, "gitdir", repo->git_path, repo->git_dir, err);
    record_add(record, "private", tree->folder);
    return status;
}

static void plan_put_stash(struct plan_tree *tree, const char *side, const struct side_stash *stash)
{
    autostr struct str text = {0};
    str_concat(&text, stash->id, " ", stash->text);
    record_add(&tree->plan->record, side, text.data);
}

/* Whether a stash of the jail is added; whether one of the user's, that the jail has dropped, is. */
static int plan_choose_stash(struct plan_tree *tree, const struct side_stash *stash, bool adds,
                             struct brig_error *err)
{
    autostr struct str why = {0};
    struct git_item item = {.kind = GIT_ITEM_STASH,
                            .name = stash->text,
                            .old = adds ? NULL : stash->id,
                            .new = adds ? stash->id : NULL,
                            .unusual = adds ? NULL : "nothing else has it"};
    int chosen = plan_ask(tree, &item, &why, err);
    if (chosen == 0) {
        tree->report->left = true;
        if (why.length > 0)
            str_concat(&tree->report->notes, "git: a stash was not ",
                       adds ? "added: " : "dropped: ", why.data, adds ? ". It is kept as " : "",
                       adds ? stash->id : "", "\n");
        str_list_add(&tree->report->keep, stash->id);
    }
    return chosen;
}

/* New stashes of the jail come before the user's. Those that the jail has used or dropped are
 * dropped. */
static int plan_put_stashes(struct plan_tree *tree, struct brig_error *err)
{
    struct transfer *t = &tree->t;
    const struct side *now = &tree->outside;
    autostr struct str new = {0};
    size_t added = 0, dropped = 0;
    bool whole = t->base.stash_count < SIDE_STASHES_MAX && t->inside.stash_count < SIDE_STASHES_MAX;
    autofree bool *drops = calloc(now->stash_count + 1, sizeof *drops);
    autofree bool *adds = calloc(t->inside.stash_count + 1, sizeof *adds);
    if (!drops || !adds)
        return brig_fail_nomem(err);
    for (size_t i = 0; i < t->inside.stash_count; i++) {
        const struct side_stash *stash = &t->inside.stashes[i];
        if (side_find_stash(&t->base, stash->id) >= 0 || side_find_stash(now, stash->id) >= 0)
            continue;
        bool arrived = fetch_has_arrived(t, stash->id);
        int chosen = arrived ? plan_choose_stash(tree, stash, true, err) : 0;
        t->lost |= !arrived;
        if (chosen < 0)
            return chosen;
        adds[i] = chosen;
        added += chosen > 0;
    }
    for (size_t i = 0; i < now->stash_count && whole && !tree->running; i++) {
        const struct side_stash *stash = &now->stashes[i];
        if (side_find_stash(&t->base, stash->id) < 0 || side_find_stash(&t->inside, stash->id) >= 0)
            continue;
        int chosen = plan_choose_stash(tree, stash, false, err);
        if (chosen < 0)
            return chosen;
        drops[i] = chosen;
        dropped += chosen > 0;
    }
    if (added + dropped == 0)
        return 0;
    record_add(&tree->plan->record, "stashes", "all");
    for (size_t i = 0; i < now->stash_count; i++)
        plan_put_stash(tree, "old", &now->stashes[i]);
    for (size_t i = 0; i < t->inside.stash_count; i++)
        if (adds[i])
            plan_put_stash(tree, "new", &t->inside.stashes[i]);
    for (size_t i = 0; i < now->stash_count; i++)
        if (!drops[i])
            plan_put_stash(tree, "new", &now->stashes[i]);
    if (added > 0)
        str_appendf(plan_next_part(tree), "%zu stash%s", added, added == 1 ? "" : "es");
    if (dropped > 0)
        str_appendf(plan_next_part(tree), "%zu stash%s dropped", dropped, dropped == 1 ? "" : "es");
    return 0;
}

/* Whether a branch that the user has gets an upstream of another name. */
static bool plan_redirects(const struct plan_tree *tree, const struct config_change *change)
{
    static const char prefix[] = "branch.", variable[] = ".merge";
    autostr struct str branch = {0};
    if (!str_starts_with(change->key, prefix) || !str_ends_with(change->key, variable))
        return false;
    str_append(&branch, "refs/heads/");
    str_append_bytes(&branch, change->key + strlen(prefix),
                     strlen(change->key) - strlen(prefix) - strlen(variable));
    return branch.failed ||
           (refs_find(&tree->outside.refs, branch.data) && strcmp(branch.data, change->new) != 0);
}

/* Whether an upstream is taken: it has not been set outside meanwhile. */
static int plan_choose_setting(struct plan_tree *tree, const struct config_change *change,
                               struct brig_error *err)
{
    autostr struct str why = {0};
    char now[4096];
    struct git_item item = {.kind = GIT_ITEM_CONFIG,
                            .name = change->key,
                            .old = change->old,
                            .new = change->new,
                            .unusual = plan_redirects(tree, change)
                                           ? "it changes what git pull merges into this branch"
                                           : NULL};
    int status = LINE(&tree->t, NULL, now, err, "config", "--get", change->key);
    if (status < 0 || strcmp(now, change->new) == 0)
        return status;
    int chosen = 0;
    if (strcmp(now, change->old ? change->old : "") != 0)
        str_append(&why, "it was set outside meanwhile");
    else
        chosen = plan_ask(tree, &item, &why, err);
    if (chosen == 0 && why.length > 0)
        str_appendf(&tree->report->notes, "git: the setting %s was not taken: %s\n",
                    str_shown(change->key).text, why.data);
    return chosen;
}

static int plan_put_settings(struct plan_tree *tree, struct brig_error *err)
{
    __attribute__((cleanup(config_changes_done))) struct config_changes changes = {0};
    if (tree->running) /* the end of the run would find them again */
        return 0;
    int status = config_find_changes(tree->t.git, &tree->p->sealed, tree->p->base, &changes, err);
    for (size_t i = 0; i < changes.count && status == 0; i++) {
        struct config_change *change = &changes.items[i];
        int chosen = change->crosses ? plan_choose_setting(tree, change, err) : 0;
        if (chosen > 0)
            plan_put(tree, "config", change->key, change->old, change->new);
        change->crosses = chosen > 0;
        status = chosen < 0 ? chosen : 0;
    }
    if (status == 0)
        config_note(&changes, tree->p->top_path, &tree->report->notes);
    return status;
}

/* Returns 1, or 0 if nothing of this working tree is taken. */
static int plan_put_all(struct plan_tree *tree, struct brig_error *err)
{
    const struct transfer *t = &tree->t;
    int status = plan_put_header(tree, err);
    size_t empty = tree->plan->record.length;
    if (status < 0)
        return status;
    for (size_t i = 0; i < tree->ref_count; i++) {
        const struct plan_ref *ref = &tree->refs[i];
        if (!ref->moves)
            continue;
        plan_put(tree, "ref", ref->name, ref->old, ref->new);
        autostr struct str key = {0};
        str_concat(&key, tree->p->repo.common_path, "\n", ref->name);
        if (!tree->lists) /* the other working tree has its own value */
            str_list_add(&tree->plan->moved, key.failed ? "" : key.data);
    }
    plan_tell_refs(tree);
    if (tree->takes) {
        plan_put(tree, "head", "HEAD", tree->outside.head,
                 tree->goes_on ? tree->outside.head : t->inside.head);
        plan_put(tree, "index", "entries", tree->hash[0], tree->hash[1]);
        if (tree->commit[0][0] || tree->commit[1][0])
            plan_put(tree, "staged", "contents", tree->commit[0][0] ? tree->commit[0] : NULL,
                     tree->commit[1][0] ? tree->commit[1] : NULL);
        if (!tree->goes_on && strcmp(t->inside.head, tree->outside.head) != 0)
            str_concat(plan_next_part(tree), "HEAD is now ",
                       refs_is_id(t->inside.head) ? t->inside.head
                                                  : plan_shown(t->inside.head).text);
    }
    status = plan_put_stashes(tree, err);
    if (tree->takes && !tree->goes_on && tree->staged)
        plan_summarise_staged(tree);
    if (status == 0)
        status = plan_put_settings(tree, err);
    return status < 0 ? status : tree->plan->record.length > empty;
}

/* ---- looking ---- */

static bool plan_hash_entry(void *hash, const char *entry, size_t length)
{
    sha256_add(hash, entry, length + 1);
    return true;
}

/* Whether the index outside is as the jail found it or, as after an interrupted transfer, equals
 * the jail's. Compares entries, not bytes: `git status` outside rewrites the index. */
static int plan_compare_index(struct plan_tree *tree, struct brig_error *err)
{
    const struct transfer *t = &tree->t;
    const char *const indexes[] = {t->base_index, NULL};
    char texts[2][SHA256_HEX_LENGTH + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(indexes); i++) {
        struct sha256 hash;
        sha256_begin(&hash);
        const struct git_call how = {.index = indexes[i], .each = plan_hash_entry, .data = &hash};
        int status = MUST(t, &how, NULL, err, "ls-files", "-s", "-z");
        if (status < 0)
            return status;
        sha256_end(&hash, texts[i]);
    }
    tree->same_index = strcmp(texts[0], texts[1]) == 0;
    if (tree->same_index || !t->inside.tree[0])
        return 0;
    int status = RUN(t, NULL, NULL, err, "diff-index", "--cached", "--quiet", t->inside.tree, "--");
    tree->same_index = status == 0;
    return status < 0 ? status : 0;
}

static int plan_look(struct plan_tree *tree, struct brig_error *err)
{
    struct transfer *t = &tree->t;
    int status = plan_compare_index(tree, err);
    if (status == 0)
        status = side_read(t->git, &(struct git_call){.git_dir = tree->p->repo.git_dir},
                           &tree->outside, err);
    if (status == 0)
        status = side_list_worktrees(t->git, tree->p->repo.common, &tree->worktrees, err);
    if (status == 0) /* under the names of branches */
        status = MUST(t, NULL, &tree->remotes.text, err, "for-each-ref",
                      "--format=%(objectname) refs/heads/%(refname:lstrip=2)", "refs/remotes");
    if (status == 0)
        status = refs_read(tree->remotes.text.data, &tree->remotes.refs, err);
    tree->goes_on = t->pending[0] || t->unmerged;
    tree->staged = fetch_has_staged(t) || fetch_has_intents(t);
    return status;
}

static int plan_add_tree(struct plan_tree *tree, struct brig_error *err)
{
    int status = fetch_all(&tree->t, err);
    if (status == 0)
        status = plan_look(tree, err);
    if (status < 0)
        return status;
    if (side_goes_on(tree->p->repo.git_dir)) {
        str_concat(&tree->report->notes,
                   "git: a rebase or merge goes on outside; what the jail did is kept below ",
                   tree->t.space, "/\n");
        tree->report->left = true;
        fetch_list_new(&tree->t, &tree->report->keep);
        return 0;
    }
    bool refused = false;
    status = plan_list_refs(tree, err);
    if (status == 0)
        status = plan_decide(tree, err);
    if (status == 0)
        status = plan_preflight(tree, &refused, err);
    if (status == 0 && refused) {
        tree->takes = false;
        status = plan_decide(tree, err);
    }
    size_t before = tree->plan->record.length;
    if (status == 0)
        status = plan_put_all(tree, err);
    if (tree->plan->options->chooser && tree->plan->options->chooser->end)
        tree->plan->options->chooser->end(tree->plan->options->chooser->data);
    if (status >= 0 && tree->plan->record.failed)
        status = brig_fail_nomem(err);
    if (status > 0 && tree->lists)
        status = 0;
    if (status > 0) { /* what is taken may need them */
        int copied = lfs_transfer(tree->p->sealed.dir, tree->p->repo.common, err);
        status = copied < 0 ? copied : status;
    }
    if (status <= 0 && tree->plan->record.data) {
        tree->plan->record.length = before;
        tree->plan->record.data[before] = '\0';
    }
    for (int i = 0; i < 2 && status <= 0; i++)
        if (tree->index_path[i][0])
            (void)unlink(tree->index_path[i]);
    tree->plan->tree_count += status > 0;
    return status < 0 ? status : 0;
}

static void plan_tree_done(struct plan_tree *tree)
{
    for (size_t i = 0; i < tree->ref_count; i++)
        str_done(&tree->refs[i].why);
    free(tree->refs);
    side_done(&tree->outside);
    side_done(&tree->remotes);
    str_done(&tree->worktrees);
    fetch_done(&tree->t);
    free(tree);
}

static int plan_add(struct plan *plan, struct plan_part *part, struct brig_error *err)
{
    const struct private_git *p = part->p;
    struct plan_report *report = &part->report;
    plan_report_done(report);
    *report = (struct plan_report){0};
    if (!private_has_changed(p))
        return 0;
    if (!files_exists(p->sealed.dir, "HEAD")) {
        str_appendf(&report->notes,
                    "git: the jail deleted its copy of '%s/.git'; yours is unchanged\n",
                    str_shown(p->top_path).text);
        return 0;
    }
    struct plan_tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return brig_fail_nomem(err);
    *tree = (struct plan_tree){.plan = plan,
                               .t = {.git = plan->options->git,
                                     .p = p,
                                     .space = part->space,
                                     .notes = &report->notes,
                                     .uses_seen = part->flags & PLAN_SEEN},
                               .p = p,
                               .report = report,
                               .folder = part->folder,
                               .running = part->flags & PLAN_RUNNING,
                               .unsearched = part->flags & PLAN_UNSEARCHED,
                               .lists = part->flags & PLAN_SEEN,
                               .chosen = -1};
    int status = plan_add_tree(tree, err);
    if (status == 0 && tree->t.uses_seen)
        status = seen_update(&tree->t, err);
    if (status == 0)
        plan_tell_state(tree);
    if (status == 0 && !(part->flags & PLAN_RUNNING))
        status = pushed_note(plan->options->git, p, &report->notes, err);
    report->lost = tree->t.lost;
    report->left |= tree->t.lost;
    plan_tree_done(tree);
    return status;
}

/* ---- the whole ---- */

#define TRIES_MAX 3 /* if the user changes something at the same time */

int plan_complete(const struct plan_options *options, struct plan_part *part,
                  struct brig_error *err)
{
    autoclose int record = -1;
    struct plan_part inner = *part;
    struct plan_options own = {.git = options->git, .chooser = options->chooser, .storage = -1};
    int status = files_make_dir(part->p->folder, "record", &record, err);
    own.into = record;
    inner.made = false;
    if (status == 0)
        status = plan_hand_over(&own, &inner, 1, err);
    part->report = inner.report;
    return status == 0 && inner.status < 0
               ? brig_fail(err, inner.status, inner.err.sys_errno, "%s", inner.err.message)
               : status;
}

/* Whether a new repository is put in place, if all that is in it is taken. */
static int plan_choose_made(const struct plan *plan, const struct plan_part *part,
                            struct brig_error *err)
{
    const struct git_chooser *chooser = plan->options->chooser;
    const struct git_item item = {.kind = GIT_ITEM_PLACED,
                                  .top = part->p->top_path,
                                  .name = part->p->top_path,
                                  .git = plan->options->git};
    autostr struct str why = {0};
    return chooser ? chooser->choose(chooser->data, &item, &why, err) : 1;
}

/* It stays in the jail. Nothing is said if nothing of it was chosen. */
static void plan_refuse_made(struct plan_part *part, bool chosen)
{
    struct plan_report *report = &part->report;
    if (!report->told && (chosen || report->summary.length > 0)) {
        str_concat(&report->notes, "git: the new repository in ", str_shown(part->p->top_path).text,
                   " was not created: not all of it was chosen\n");
        report->told = true;
    }
    report->refused = true;
    str_done(&report->summary);
}

/* Then it is one item. */
static int plan_add_made(struct plan *plan, struct plan_part *part, bool chosen,
                         struct brig_error *err)
{
    const struct private_git *p = part->p;
    char hash[65];
    struct place place;
    int status = plan_complete(plan->options, part, err);
    bool whole = chosen && !part->report.refused;
    if (status == 0 && !whole) /* its commits would be lost with the private directory */
        plan_refuse_made(part, chosen);
    if (status < 0 || !whole)
        return status;
    status = git_hash_repository(plan->options->git, p->repo.git_dir, hash, err);
    if (status == 0)
        status = place_of(p->top, &place, err);
    if (status < 0)
        return status;
    record_add(&plan->placed, "placed", p->top_path);
    record_add(&plan->placed, "new", hash);
    place_add(&plan->placed, &place);
    record_add(&plan->placed, "from", part->folder);
    return 0;
}

int plan_write(const struct plan_options *options, struct plan_part *parts, size_t count,
               struct brig_error *err)
{
    struct plan plan = {.options = options};
    autostr struct str record = {0};
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        struct plan_part *part = &parts[i];
        bool made = part->made && files_exists(part->p->folder, PRIVATE_NEW);
        bool lists = part->flags & PLAN_SEEN;
        part->err = (struct brig_error){0};
        int chosen = made ? plan_choose_made(&plan, part, &part->err) : 1;
        if (chosen < 0)
            part->status = chosen;
        else if (made && !lists)
            part->status = plan_add_made(&plan, part, chosen > 0, &part->err);
        else
            part->status = plan_add(&plan, part, &part->err);
    }
    bool any = plan.tree_count > 0 || plan.placed.length > 0;
    record_add_number(&record, "version", GIT_RECORD_VERSION);
    str_append(&record, plan.placed.data ? plan.placed.data : "");
    str_append(&record, plan.record.data ? plan.record.data : "");
    record.failed = record.failed || plan.placed.failed || plan.record.failed;
    if (any)
        status = record_write(options->into, GIT_RECORD, &record, true, err);
    str_done(&plan.record);
    str_done(&plan.placed);
    str_done(&plan.moved);
    return status < 0 ? status : any;
}

/* What has arrived of a working tree needs no pin. */
static int plan_unpin(const struct git *git, const struct plan_part *part, struct brig_error *err)
{
    const struct transfer t = {.git = git, .p = part->p, .space = part->space};
    bool running = part->flags & PLAN_RUNNING;
    return private_has_changed(part->p)
               ? fetch_unpin(&t, &part->report.keep, running || (part->stays && part->report.left),
                             err)
               : 0;
}

void plan_end(const struct plan_options *options, struct plan_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct plan_part *part = &parts[i];
        if (part->made && part->status == 0)
            continue; /* it was at its end before it was placed */
        if (part->status == 0)
            part->status = plan_unpin(options->git, part, &part->err);
        if (part->status == 0 && part->report.lost)
            part->status = brig_fail(&part->err, BRIG_E_SYSTEM, 0,
                                     "not everything the jail did in '%s' could be fetched",
                                     str_shown(part->p->top_path).text);
    }
}

int plan_hand_over(const struct plan_options *options, struct plan_part *parts, size_t count,
                   struct brig_error *err)
{
    int status = BRIG_E_STATE;
    if (git_was_interrupted(options->into)) {
        (void)git_take(options->git, options->into, options->storage, GIT_TO_NEW, NULL);
        (void)unlinkat(options->into, GIT_RECORD_LOCKS, 0);
    }
    for (int tries = 0; tries < TRIES_MAX && status == BRIG_E_STATE; tries++) {
        struct brig_error why = {0};
        status = plan_write(options, parts, count, &why);
        if (status == 0 && tries > 0) /* the record is that of the attempt before */
            (void)unlinkat(options->into, GIT_RECORD, 0);
        if (status > 0)
            status = git_take(options->git, options->into, options->storage, GIT_TO_NEW, &why);
        if (status < 0 && err)
            *err = why;
    }
    if (status == 0)
        plan_end(options, parts, count);
    return status;
}
