/* SPDX-License-Identifier: MIT */
#include "git/plan.h"

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
#include "base/place.h"
#include "base/record.h"
#include "base/sha256.h"
#include "base/tree.h"
#include "git/config.h"
#include "git/pushed.h"
#include "git/seen.h"
#include "git/take.h"

#define COUNTED_BRANCHES_MAX 8 /* whose new commits the summary counts */
#define ENTRIES_MAX 2000000    /* files and directories in a tree */
#define REFUSED_MAX 500        /* times that a list of refs is halved */

/* A ref that differs, inside, from the initial state. */
struct plan_ref {
    const char *name, *old, *new; /* NULL: there is none */
    int chosen;                   /* the answer about it; -1: not asked yet */
    bool moves, current;          /* it is checked out outside, so it moves with HEAD and index */
    struct str why;
};

/* The record while it is made. */
struct plan {
    const struct plan_options *options;
    struct str record, placed; /* the second comes first */
    size_t tree_count;
    struct str moved; /* "COMMON DIRECTORY\nREF", which a working tree before has moved */
};

/* One working tree while it is looked at. */
struct plan_tree {
    struct plan *plan;
    struct transfer t;
    const struct private_git *p;
    struct plan_report *report;
    const char *folder;
    bool running, unsearched;
    bool
        lists; /* nothing is taken: each answer counts as yes, so that all that can move is asked about */
    struct side outside, remotes;
    struct str worktrees;
    struct plan_ref *refs;
    size_t ref_count;
    bool same_index; /* outside it is the initial one, or the one inside */
    bool staged;     /* the index inside differs from the initial one */
    bool goes_on;    /* a rebase or merge inside: HEAD and index stay */
    bool takes;      /* the working tree is taken: HEAD, index, current branch */
    int chosen;      /* the answer about it; -1: not asked yet */
    char index_path[2][PATH_LENGTH_MAX];
    char hash[2][65], commit[2][REFS_ID_MAX + 1]; /* of the copies of the index */
};

void plan_report_done(struct plan_report *report)
{
    str_done(&report->summary);
    str_done(&report->notes);
    str_done(&report->keep);
}

/* ---- what speaks against a ref ---- */

static bool plan_count_file(void *count, const char *name, size_t length)
{
    (void)name;
    return length <= PATH_LENGTH_MAX && ++*(size_t *)count <= ENTRIES_MAX;
}

/* Whether git outside would take very long for a tree: a few objects can describe any number of
 * files. */
static bool plan_is_too_large(const struct plan_tree *tree, const char *commit)
{
    size_t count = 0;
    const struct git_call how = {.each = plan_count_file, .data = &count};
    return RUN(&tree->t, &how, NULL, NULL, "ls-tree", "-r", "-t", "-z", "--name-only", commit) != 0;
}

/* Whether a tree has a submodule that the index outside does not have. Git would look into its
 * directory, where an active run can put any repository. */
static bool plan_has_new_link(const struct plan_tree *tree, const char *id)
{
    autostr struct str old = {0}, new = {0};
    const struct git_call tree_links = {.each = git_keep_link, .data = &new};
    const struct git_call index_links = {.each = git_keep_link, .data = &old};
    if (RUN(&tree->t, &tree_links, NULL, NULL, "ls-tree", "-r", "-z", id) != 0 ||
        RUN(&tree->t, &index_links, NULL, NULL, "ls-files", "-s", "-z") != 0)
        return true;
    for (const char *at = NULL; (at = str_list_next(&new, at));)
        if (!str_list_has(&old, at))
            return true;
    return false;
}

/* Whether the old value is contained in the new one. */
static bool plan_is_forward(const struct plan_tree *tree, const char *old, const char *new)
{
    return RUN(&tree->t, NULL, NULL, NULL, "merge-base", "--is-ancestor", old, new) == 0;
}

/* The short name of a branch or tag, for a message. */
static const char *plan_short_name(const char *name)
{
    return str_starts_with(name, "refs/heads/") || str_starts_with(name, "refs/tags/")
               ? strchr(name + strlen("refs/"), '/') + 1
               : name;
}

static struct str_shown plan_shown(const char *name)
{
    return str_shown(plan_short_name(name));
}

/* Whether a branch is checked out, rebased or bisected in another worktree. */
static bool plan_is_elsewhere(const struct plan_tree *tree, const char *name)
{
    return side_count_worktrees(&tree->worktrees, name) >
           (strcmp(tree->outside.head, name) == 0 ? 1 : 0);
}

/* Whether the short name of a new ref would be ambiguous with an existing ref. */
static bool plan_hides_another(const struct plan_tree *tree, const char *name)
{
    static const char *const prefixes[] = {"refs/heads/", "refs/tags/"};
    const char *rest = plan_short_name(name);
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        autostr struct str other = {0};
        str_concat(&other, prefixes[i], rest);
        if (other.failed || refs_find(&tree->remotes.refs, other.data) ||
            (strcmp(other.data, name) != 0 && refs_find(&tree->outside.refs, other.data)))
            return true;
    }
    return false;
}

static const struct plan_ref *plan_find_ref(const struct plan_tree *tree, const char *name)
{
    for (size_t i = 0; i < tree->ref_count; i++)
        if (strcmp(tree->refs[i].name, name) == 0)
            return &tree->refs[i];
    return NULL;
}

/* Whether a ref outside is deleted by this plan. */
static bool plan_deletes(const struct plan_tree *tree, const char *name)
{
    const struct plan_ref *ref = plan_find_ref(tree, name);
    return ref && ref->moves && !ref->new;
}

/* The index of the first ref that is not before a name. */
static size_t plan_first_at(const struct refs *refs, const char *name)
{
    size_t from = 0, to = refs->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(refs->items[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Whether the place of a name is free when the deletions of this plan are done: with f there is no
 * f/a, and the other way round. */
static bool plan_is_free(const struct plan_tree *tree, const char *name)
{
    const struct refs *refs = &tree->outside.refs;
    autofree char *above = strdup(name);
    autofree char *below = NULL;
    if (!above || str_make(&below, NULL, name, "/") < 0)
        return false;
    for (char *slash; (slash = strrchr(above, '/')) && slash > above;) {
        *slash = '\0';
        if (refs_get(refs, above) && !plan_deletes(tree, above))
            return false;
    }
    for (size_t i = plan_first_at(refs, below);
         i < refs->count && str_starts_with(refs->items[i].name, below); i++)
        if (!plan_deletes(tree, refs->items[i].name))
            return false;
    return true;
}

static const char *plan_why_not_deleted(const struct plan_tree *tree, const struct plan_ref *ref)
{
    if (plan_is_elsewhere(tree, ref->name))
        return "it is checked out in another worktree";
    /* A branch that git cannot read, a FIFO for instance, is missing without a word. */
    return strcmp(ref->name, tree->t.inside.head) == 0 ? "HEAD of the jail still names it" : NULL;
}

/* Why a ref cannot have its new value; NULL if it can. */
static const char *plan_why_not(const struct plan_tree *tree, const struct plan_ref *ref)
{
    bool tag = str_starts_with(ref->name, "refs/tags/");
    const char *now = refs_find(&tree->outside.refs, ref->name);
    if (!ref->new)
        return plan_why_not_deleted(tree, ref);
    if (!str_equal(ref->old, now))
        return tag ? "the tag exists with another object" : "it changed outside meanwhile";
    if (!now && refs_is_misleading(ref->name))
        return "its name could be taken for something else";
    if (!now && plan_hides_another(tree, ref->name))
        return "another ref has this name";
    if (tag && now)
        return "tags that exist are not changed";
    if (ref->current && !tree->same_index)
        return "the index changed outside meanwhile";
    if (plan_is_elsewhere(tree, ref->name))
        return "it is checked out in another worktree";
    if ((ref->current || strcmp(ref->name, tree->t.inside.head) == 0) &&
        plan_is_too_large(tree, ref->new))
        return "its tree has too many entries or levels";
    if (tree->running && now && !plan_is_forward(tree, now, ref->new))
        return "it was rewritten and the run goes on";
    if (tree->running && plan_has_new_link(tree, ref->new))
        return "it has a new submodule and the run goes on";
    if (tree->unsearched && plan_has_new_link(tree, ref->new))
        return "it has a new submodule, and its directory was not searched for repositories";
    return NULL;
}

/* ---- asking ---- */

static int plan_ask(const struct plan_tree *tree, struct git_item *item, struct str *why,
                    struct brig_error *err)
{
    const struct git_chooser *chooser = tree->plan->options->chooser;
    if (!chooser)
        return 1;
    item->top = tree->p->top_path;
    item->git = tree->t.git;
    item->outside = (struct git_call){.git_dir = tree->p->repo.git_dir};
    item->base = tree->t.base_git;
    int chosen = chooser->choose(chooser->data, item, why, err);
    if (chosen == 0 && tree->lists)
        return 1;
    tree->report->refused |= chosen == 0;
    return chosen;
}

/* Whether the working tree comes with its current branch, so that they are one item. If HEAD of the jail is elsewhere, the
 * branch that HEAD leaves is a ref like the others, although it moves only with HEAD. */
static bool plan_has_current(const struct plan_tree *tree)
{
    return tree->goes_on || strcmp(tree->t.inside.head, tree->outside.head) == 0;
}

/* Decides about one ref, once. */
static int plan_judge(struct plan_tree *tree, struct plan_ref *ref, struct brig_error *err)
{
    autostr struct str key = {0};
    str_concat(&key, tree->p->repo.common_path, "\n", ref->name);
    if (ref->chosen >= 0)
        return 0;
    const char *why = key.failed ? "memory is lacking"
                      : str_list_has(&tree->plan->moved, key.data)
                          ? "another working tree of the run has moved it"
                          : plan_why_not(tree, ref);
    str_append(&ref->why, why ? why : "");
    ref->chosen = !why;
    if (why || (ref->current && plan_has_current(tree)))
        return 0;
    struct git_item item = {
        .kind = GIT_ITEM_REF, .name = ref->name, .old = ref->old, .new = ref->new};
    int chosen = plan_ask(tree, &item, &ref->why, err);
    ref->chosen = chosen > 0;
    return chosen < 0 ? chosen : 0;
}

/* ---- the refs that differ ---- */

static bool plan_add_ref(struct plan_tree *tree, const char *name, const char *old, const char *new)
{
    if (!array_grow(&tree->refs, tree->ref_count))
        return false;
    tree->refs[tree->ref_count++] =
        (struct plan_ref){.name = name,
                          .old = old,
                          .new = new,
                          .chosen = -1,
                          .current = strcmp(name, tree->outside.head) == 0};
    return true;
}

/* Whether the user has the new value already, or has merged it. */
static bool plan_has_arrived(const struct plan_tree *tree, const struct ref *ref)
{
    const char *now = refs_find(&tree->outside.refs, ref->name);
    const char *before = refs_find(&tree->t.base.refs, ref->name);
    return str_equal(now, ref->id) ||
           (now && !str_equal(now, before) && str_starts_with(ref->name, "refs/heads/") &&
            plan_is_forward(tree, ref->id, now));
}

static int plan_list_refs(struct plan_tree *tree, struct brig_error *err)
{
    struct transfer *t = &tree->t;
    size_t symbolic = 0;
    for (size_t i = 0; i < t->inside.refs.count; i++) {
        const struct ref *ref = &t->inside.refs.items[i];
        const struct ref *now = refs_get(&tree->outside.refs, ref->name);
        const struct ref *before = refs_get(&t->base.refs, ref->name);
        if (ref->symbolic || (now && now->symbolic)) {
            symbolic += ref->symbolic && !(before && before->symbolic);
            continue;
        }
        if (!fetch_is_new(t, ref) || plan_has_arrived(tree, ref))
            continue;
        if (!fetch_has_arrived(t, ref->id))
            t->lost = true;
        else if (!plan_add_ref(tree, ref->name, refs_find(&t->base.refs, ref->name), ref->id))
            return brig_fail_nomem(err);
    }
    for (size_t i = 0; i < t->base.refs.count && !tree->running && !t->damaged; i++) {
        const struct ref *ref = &t->base.refs.items[i];
        if (!ref->symbolic && !refs_find(&t->inside.refs, ref->name) &&
            str_equal(refs_find(&tree->outside.refs, ref->name), ref->id) &&
            !plan_add_ref(tree, ref->name, ref->id, NULL))
            return brig_fail_nomem(err);
    }
    if (symbolic > 0)
        str_appendf(&tree->report->notes,
                    "git: %zu symbolic ref%s left in the jail: set %s outside, with git "
                    "symbolic-ref\n",
                    symbolic, symbolic == 1 ? " was" : "s were", symbolic == 1 ? "it" : "them");
    return 0;
}

/* Which refs move, if HEAD and index do or do not. Deletions first: they make room. */
static int plan_decide_refs(struct plan_tree *tree, bool takes, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < tree->ref_count && status == 0; i++) {
        status = plan_judge(tree, &tree->refs[i], err);
        tree->refs[i].moves = tree->refs[i].chosen > 0 && (takes || !tree->refs[i].current);
    }
    for (size_t i = 0; i < tree->ref_count; i++) {
        struct plan_ref *ref = &tree->refs[i];
        if (ref->moves && ref->new && !ref->old && !plan_is_free(tree, ref->name)) {
            ref->moves = false;
            str_append(&ref->why,
                       ref->why.length > 0 ? "" : "a ref outside is in the way of its name");
        }
    }
    return status;
}

/* ---- HEAD, index and the current branch ---- */

/* Why HEAD outside cannot be set to the jail's HEAD, with the jail's index; NULL if it can. */
static const char *plan_find_obstacle(const struct plan_tree *tree)
{
    const struct transfer *t = &tree->t;
    const char *head = t->inside.head;
    const char *inside = refs_find(&t->inside.refs, head);
    const char *now = refs_find(&tree->outside.refs, head);
    const struct plan_ref *moved = plan_find_ref(tree, head);
    const struct plan_ref *current = plan_find_ref(tree, tree->outside.head);
    if (!tree->same_index ||
        (strcmp(tree->outside.head, t->base.head) != 0 && strcmp(tree->outside.head, head) != 0))
        return "HEAD or the index changed outside meanwhile";
    if (!head[0] || (!refs_is_id(head) && !now && refs_is_misleading(head)))
        return "the name of the jail's branch is not safe";
    if (current && current->chosen == 0 && plan_has_current(tree))
        return "the jail's branch was not moved";
    if (refs_is_id(head))
        return fetch_has_arrived(t, head) || strcmp(head, t->base.head) == 0 ||
                       RUN(t, NULL, NULL, NULL, "cat-file", "-e", head) == 0
                   ? NULL
                   : "its commit could not be fetched";
    if (strcmp(head, tree->outside.head) != 0 && plan_is_elsewhere(tree, head))
        return "the jail's branch is checked out in another worktree";
    if (!inside && t->damaged)
        return "the jail's branch cannot be read";
    if (moved ? moved->moves : str_equal(now, inside))
        return NULL;
    return "the jail's branch was not moved";
}

/* What speaks against the index of the jail, and its HEAD. */
static const char *plan_find_index_obstacle(const struct plan_tree *tree)
{
    const struct transfer *t = &tree->t;
    const char *head =
        refs_is_id(t->inside.head) ? t->inside.head : refs_find(&t->inside.refs, t->inside.head);
    bool moves = tree->staged || strcmp(t->inside.head, tree->outside.head) != 0;
    if ((tree->running || tree->unsearched) && moves &&
        ((tree->staged && plan_has_new_link(tree, t->inside.tree)) ||
         (head && plan_has_new_link(tree, head))))
        return tree->running ? "a new submodule arrives when the run ends"
                             : "the index has a new submodule, whose directory was not searched";
    if (tree->staged && t->lost)
        return "not everything could be fetched";
    if (tree->staged && plan_is_too_large(tree, t->inside.staged))
        return "the tree of the index has too many entries or levels";
    return NULL;
}

/* ---- copies of the index ---- */

/* Calls git for one of the copies, which is in the directory of the record. */
static struct git_call plan_on_copy(const struct plan_tree *tree, int number)
{
    return (struct git_call){.index = tree->index_path[number]};
}

static int plan_copy_index(struct plan_tree *tree, struct brig_error *err)
{
    static const char *const sides[] = {"old", "new"};
    autofree char *path = NULL;
    autostr struct str shared = {0};
    int status = repo_path_of(tree->plan->options->into, &path, err);
    if (status == 0) /* a copy of a split index would need the other file of it */
        status = RUN(&tree->t, NULL, &shared, err, "rev-parse", "--shared-index-path");
    for (int i = 0; i < 2 && status >= 0; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "index-%zu.%s", tree->plan->tree_count, sides[i]);
        if (!str_fill(tree->index_path[i], sizeof tree->index_path[i], path, "/", name))
            return brig_fail(err, BRIG_E_INVALID, 0, "the path of the jail's storage is too long");
        (void)unlinkat(tree->plan->options->into, name, 0);
        status = copying_file(tree->p->repo.git_dir, "index", tree->plan->options->into, name, err);
        const struct git_call how = plan_on_copy(tree, i);
        if (status > 0 && shared.length > 1)
            status = MUST(&tree->t, &how, NULL, err, "update-index", "--no-split-index");
    }
    return status < 0 ? status : 0;
}

/* Marks names as to be added, as `git add -N` does; the files that it needs are in a directory of their own. */
static int plan_add_intents(struct plan_tree *tree, const struct str *names, struct brig_error *err)
{
    autofree char *path = NULL, *option = NULL;
    autoclose int dir = -1;
    int status = tree_remove(tree->plan->options->into, "intents", err);
    if (status == 0)
        status = files_make_dir(tree->plan->options->into, "intents", &dir, err);
    if (status == 0)
        status = repo_path_of(dir, &path, err);
    if (status == 0)
        status = str_make(&option, err, "--work-tree=", path);
    for (const char *at = NULL; status == 0 && (at = str_list_next(names, at));) {
        const char *slash = strrchr(at, '/');
        autofree char *above = strndup(at, slash ? (size_t)(slash - at) : 0);
        autoclose int folder = -1;
        if (!above || (slash && files_make_path(dir, above) < 0) ||
            path_open_beneath(dir, slash ? above : ".", O_RDONLY | O_DIRECTORY, 0, &folder, NULL) <
                0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the jail's storage");
        status = files_write(folder, slash ? slash + 1 : at, "", 0, err);
    }
    struct git_call how = plan_on_copy(tree, 1);
    how.input = names;
    if (status == 0)
        status = RUN(&tree->t, &how, NULL, err, "--literal-pathspecs", option, "add", "-f", "-N",
                     "--pathspec-from-file=-", "--pathspec-file-nul");
    (void)tree_remove(tree->plan->options->into, "intents", NULL);
    return status;
}

/* Makes the new copy that of a tree: from the tree `old` if it is given, so that staged changes
 * stay. Stat data, sparse and skip-worktree bits stay. Returns git's exit status or a code. */
static int plan_fill_index(struct plan_tree *tree, const char *old, const char *new,
                           const struct str *intents, struct brig_error *err)
{
    const struct git_call how = plan_on_copy(tree, 1);
    bool empty = access(how.index, F_OK) < 0;
    int status = empty ? RUN(&tree->t, &how, NULL, err, "read-tree", new)
                 : old ? RUN(&tree->t, &how, NULL, err, "read-tree", "-i", "-m", old, new)
                       : RUN(&tree->t, &how, NULL, err, "read-tree", "-i", "-m", new);
    return status == 0 && intents->length > 0 ? plan_add_intents(tree, intents, err) : status;
}

/* The hashes of both copies, and what they have staged as commits: only those keep its objects. */
static int plan_hash_indexes(struct plan_tree *tree, struct brig_error *err)
{
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        const struct git_call how = plan_on_copy(tree, i);
        char id[REFS_ID_MAX + 1] = "", of_head[REFS_ID_MAX + 1] = "";
        status = git_hash_index(tree->t.git, tree->p->repo.git_dir, how.index, tree->hash[i], err);
        if (status == 0 && i == 0)
            status = LINE(&tree->t, &how, id, err, "write-tree");
        if (status == 0 && i == 0)
            status =
                LINE(&tree->t, NULL, of_head, err, "rev-parse", "-q", "--verify", "HEAD^{tree}");
        if (status == 0 && i == 0 && id[0] && strcmp(id, of_head) != 0)
            status = LINE(&tree->t, NULL, tree->commit[0], err, "commit-tree", "-m",
                          "The index before", id);
    }
    if (tree->staged)
        (void)snprintf(tree->commit[1], sizeof tree->commit[1], "%s", tree->t.inside.staged);
    return status;
}

/* The index that comes with HEAD. Returns 1 if it cannot, with the reason. */
static int plan_make_index(struct plan_tree *tree, const char **ret_why, struct brig_error *err)
{
    const struct transfer *t = &tree->t;
    const struct plan_ref *current = plan_find_ref(tree, tree->outside.head);
    autostr struct str intents = {0};
    int status = plan_copy_index(tree, err);
    if (status < 0)
        return status;
    if (!tree->goes_on && tree->staged)
        status = plan_fill_index(tree, NULL, t->inside.tree, &t->inside_intents, err);
    else if (tree->goes_on && current && current->new) {
        const struct git_call old = plan_on_copy(tree, 0);
        status = fetch_list_intents(t, &old, &intents, err);
        if (status == 0)
            status = tree->running
                         ? 1
                         : plan_fill_index(tree, current->old, current->new, &intents, err);
        *ret_why = tree->running ? "a rebase or merge goes on in the run"
                                 : "files are staged that it changes";
        if (status > 0)
            return 1;
    }
    if (status > 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "git read-tree failed in '%s'",
                         str_shown(tree->p->top_path).text);
    return status < 0 ? status : plan_hash_indexes(tree, err);
}

/* ---- the working tree ---- */

static const char *plan_commit_of(const struct side *side, const char *head)
{
    return refs_is_id(head) ? head : refs_find(&side->refs, head);
}

static int plan_ask_tree(struct plan_tree *tree, struct str *why, struct brig_error *err)
{
    const struct transfer *t = &tree->t;
    const struct plan_ref *current = plan_find_ref(tree, tree->outside.head);
    struct git_item item = {.kind = GIT_ITEM_WORKTREE,
                            .name = "",
                            .old = plan_commit_of(&tree->outside, tree->outside.head),
                            .new = tree->goes_on ? (current ? current->new : NULL)
                                                 : plan_commit_of(&t->inside, t->inside.head),
                            .old_head = tree->outside.head,
                            .new_head = tree->goes_on ? tree->outside.head : t->inside.head,
                            .old_tree = t->base.tree[0] ? t->base.tree : NULL,
                            .new_tree =
                                !tree->goes_on && t->inside.tree[0] ? t->inside.tree : NULL};
    if (tree->chosen < 0)
        tree->chosen = plan_ask(tree, &item, why, err);
    return tree->chosen;
}

static void plan_note_tree(struct plan_tree *tree, const char *why)
{
    const struct transfer *t = &tree->t;
    struct str *notes = &tree->report->notes;
    bool waits = strcmp(why, "a new submodule arrives when the run ends") == 0;
    bool differs = tree->staged || strcmp(t->inside.head, tree->outside.head) != 0;
    tree->report->left = true;
    if (tree->staged)
        str_list_add(&tree->report->keep, t->inside.staged);
    if (refs_is_id(t->inside.head))
        str_list_add(&tree->report->keep, t->inside.head);
    if (waits) {
        str_concat(notes, "git: ", why, "\n");
        return;
    }
    if (tree->goes_on || !differs)
        return;
    str_concat(notes, "git: HEAD and the index stay as they are: ", why);
    str_concat(notes, tree->staged ? ". The index of the jail is kept as " : "",
               tree->staged ? t->inside.staged : "", "\n");
    if (refs_is_id(t->inside.head) && strcmp(t->inside.head, t->base.head) != 0)
        str_concat(notes, "git: the jail's detached HEAD is kept as ", t->inside.head, "\n");
}

/* Whether HEAD, index or the current branch are to move. */
static bool plan_has_tree_item(const struct plan_tree *tree)
{
    return plan_find_ref(tree, tree->outside.head) ||
           (!tree->goes_on &&
            (tree->staged || strcmp(tree->t.inside.head, tree->outside.head) != 0));
}

static int plan_decide_tree(struct plan_tree *tree, struct brig_error *err)
{
    const struct plan_ref *current = plan_find_ref(tree, tree->outside.head);
    autostr struct str asked = {0};
    if (!plan_has_tree_item(tree))
        return 0;
    const char *why = NULL;
    if (tree->goes_on)
        why = current && current->chosen == 0 ? current->why.data
              : current && !current->new      ? "it is checked out"
                                              : NULL;
    else
        why = plan_find_obstacle(tree);
    if (!why && !tree->goes_on)
        why = plan_find_index_obstacle(tree);
    int status = why ? 1 : plan_make_index(tree, &why, err);
    if (status == 0) {
        int chosen = plan_ask_tree(tree, &asked, err);
        status = chosen < 0 ? chosen : !chosen;
        why = asked.length > 0 ? asked.data : "it was not chosen";
    }
    tree->takes = status == 0;
    if (status <= 0)
        return status;
    for (size_t i = 0; i < tree->ref_count; i++)
        if (tree->refs[i].current && tree->refs[i].why.length == 0)
            str_append(&tree->refs[i].why, why);
    plan_note_tree(tree, why);
    return 0;
}

/* A branch that HEAD moves to depends on the room that the current one makes, and HEAD on that branch: so it is first assumed
 * that both move. */
static int plan_decide(struct plan_tree *tree, struct brig_error *err)
{
    int status = plan_decide_refs(tree, true, err);
    if (status == 0)
        status = plan_decide_tree(tree, err);
    return status == 0 && !tree->takes ? plan_decide_refs(tree, false, err) : status;
}

/* ---- what git would refuse ---- */

static int plan_try(const struct plan_tree *tree, const struct plan_ref *const *refs, size_t count,
                    struct brig_error *err)
{
    autostr struct str lines = {0};
    str_append(&lines, "start\n");
    for (size_t i = 0; i < count; i++)
        if (!refs[i]->old)
            str_concat(&lines, "create ", refs[i]->name, " ", refs[i]->new, "\n");
        else
            str_concat(&lines, refs[i]->new ? "update " : "delete ", refs[i]->name, " ",
                       refs[i]->new ? refs[i]->new : "", refs[i]->new ? " " : "", refs[i]->old,
                       "\n");
    str_append(&lines, "prepare\nabort\n");
    return lines.failed ? brig_fail_nomem(err)
                        : RUN(&tree->t, &(struct git_call){.input = &lines}, NULL, err,
                              "update-ref", "--stdin");
}

/* Finds refs that git refuses, by halves, so that one does not keep the others from moving. */
static int plan_try_halves(struct plan_tree *tree, struct plan_ref **refs, size_t count,
                           unsigned *tries, struct brig_error *err)
{
    int status = count == 0 || ++*tries > REFUSED_MAX
                     ? 0
                     : plan_try(tree, (const struct plan_ref *const *)refs, count, err);
    if (status <= 0)
        return status;
    if (count > 1) {
        status = plan_try_halves(tree, refs, count / 2, tries, err);
        return status < 0 ? status
                          : plan_try_halves(tree, refs + count / 2, count - count / 2, tries, err);
    }
    refs[0]->chosen = 0;
    refs[0]->why.length = 0;
    str_append(&refs[0]->why, "it was refused by git update-ref");
    return 0;
}

/* Those that need room are not tried: they are created after others are deleted. */
static int plan_preflight(struct plan_tree *tree, bool *ret_refused, struct brig_error *err)
{
    unsigned tries = 0;
    size_t count = 0;
    autofree struct plan_ref **refs = calloc(tree->ref_count + 1, sizeof(struct plan_ref *));
    if (!refs)
        return brig_fail_nomem(err);
    bool deletes = false;
    for (size_t i = 0; i < tree->ref_count; i++)
        deletes |= tree->refs[i].moves && !tree->refs[i].new;
    for (size_t i = 0; i < tree->ref_count; i++)
        if (tree->refs[i].moves && (!deletes || tree->refs[i].old))
            refs[count++] = &tree->refs[i];
    int status = plan_try_halves(tree, refs, count, &tries, err);
    for (size_t i = 0; i < count; i++)
        *ret_refused |= refs[i]->chosen == 0;
    return status;
}

/* ---- telling ---- */

/* The summary, prepared for another part. */
static struct str *plan_next_part(struct plan_tree *tree)
{
    str_append(&tree->report->summary, tree->report->summary.length ? ", " : "");
    return &tree->report->summary;
}

/* "2 commits on NAME": the number of commits on the branch that none of the old tips contains. */
static void plan_summarise(struct plan_tree *tree, const struct plan_ref *ref)
{
    char count[32];
    const struct side *base = &tree->t.base;
    const char *since = ref->old ? ref->old : refs_find(&base->refs, base->head);
    autostr struct str range = {0};
    str_concat(&range, since ? since : "", since ? ".." : "", ref->new);
    if (range.failed || LINE(&tree->t, NULL, count, NULL, "rev-list", "--count", range.data) < 0)
        return;
    struct str *summary = plan_next_part(tree);
    if (strcmp(count, "0") != 0)
        str_concat(summary, count, strcmp(count, "1") == 0 ? " commit on " : " commits on ",
                   plan_shown(ref->name).text);
    else if (ref->old)
        str_appendf(summary, "%s reset to %.7s", plan_shown(ref->name).text, ref->new);
    else
        str_concat(summary, "new ", plan_shown(ref->name).text);
}

static void plan_summarise_staged(struct plan_tree *tree)
{
    size_t count = 0;
    struct git_call how = plan_on_copy(tree, 1);
    how.each = plan_count_file;
    how.data = &count;
    const char *commit = plan_commit_of(&tree->t.inside, tree->t.inside.head);
    if (commit && RUN(&tree->t, &how, NULL, NULL, "diff-index", "--cached", "--name-only", "-z",
                      commit, "--") != 0)
        return;
    if (!commit && RUN(&tree->t, &how, NULL, NULL, "ls-files", "-z") != 0)
        return;
    if (count > 0)
        str_appendf(plan_next_part(tree), "%zu file%s staged", count, count == 1 ? "" : "s");
}

/* The files of the jail's commit are in the working tree already, so they must be moved away before
 * a merge. */
static void plan_note_kept(struct plan_tree *tree, const struct plan_ref *ref)
{
    struct str *notes = &tree->report->notes;
    const char *name = plan_short_name(ref->name);
    bool elsewhere = plan_is_elsewhere(tree, ref->name);
    str_concat(notes, "git: ", str_shown(name).text,
               ref->new ? " was not moved: " : " was not deleted: ",
               ref->why.data ? ref->why.data : "", ref->new ? ". " : "\n");
    if (!ref->new)
        return;
    str_list_add(&tree->report->keep, ref->new);
    if (!str_starts_with(ref->name, "refs/heads/"))
        str_concat(notes, "It is kept as ", tree->t.space, "/");
    else if (elsewhere)
        str_append(notes, "To merge it there: git merge ");
    else if (ref->current)
        str_append(notes, "To merge it: git stash -u && git merge ");
    else if (refs_find(&tree->outside.refs, ref->name)) {
        str_append(notes, "To merge it: git switch ");
        str_append_word(notes, name);
        str_append(notes, " && git merge ");
    } else if (refs_is_misleading(ref->name)) {
        str_concat(notes, "It is kept as ", tree->t.space, "/");
    } else {
        str_append(notes, "To have it: git branch ");
        str_append_word(notes, name);
        str_append(notes, " ");
    }
    str_concat(notes, ref->new, "\n");
}

/* Names what was deleted, with its objects. */
static void plan_tell_deleted(struct plan_tree *tree)
{
    struct str *notes = &tree->report->notes;
    size_t count = 0;
    for (size_t i = 0; i < tree->ref_count; i++) {
        const struct plan_ref *ref = &tree->refs[i];
        if (!ref->moves || ref->new || ++count > COUNTED_BRANCHES_MAX)
            continue;
        str_concat(notes, count == 1 ? "git: deleted: " : ", ", plan_shown(ref->name).text, " (",
                   ref->old, ")");
    }
    if (count > COUNTED_BRANCHES_MAX)
        str_appendf(notes, " and %zu more; what no branch contains is kept below %s/before/",
                    count - COUNTED_BRANCHES_MAX, tree->t.space);
    str_append(notes, count > 0 ? "\n" : "");
}

static void plan_tell_refs(struct plan_tree *tree)
{
    size_t count = 0;
    for (size_t i = 0; i < tree->ref_count; i++) {
        const struct plan_ref *ref = &tree->refs[i];
        /* It moves later: a rebase is not complete. */
        bool waits = !ref->moves && ref->new && tree->running && tree->goes_on && ref->current;
        tree->report->left |= !ref->moves;
        if (waits)
            str_list_add(&tree->report->keep, ref->new);
        else if (!ref->moves)
            plan_note_kept(tree, ref);
        else if (ref->new && ++count <= COUNTED_BRANCHES_MAX)
            plan_summarise(tree, ref);
    }
    if (count > COUNTED_BRANCHES_MAX)
        str_appendf(&tree->report->summary, " and %zu more refs", count - COUNTED_BRANCHES_MAX);
    plan_tell_deleted(tree);
}

static void plan_tell_state(struct plan_tree *tree)
{
    const struct transfer *t = &tree->t;
    struct str *notes = &tree->report->notes;
    tree->report->pending = tree->goes_on;
    if (strcmp(t->pending, "bisect") == 0)
        str_append(notes, "git: a bisect goes on in the jail; the next run continues it\n");
    else if (t->pending[0])
        str_concat(notes, "git: a ", t->pending,
                   " goes on in the jail; the next run continues it, as with: brig git ",
                   t->pending, " --continue\n");
    else if (t->unmerged)
        str_append(notes, "git: files with conflicts are left in the jail's index; the next run "
                          "has them\n");
    if (t->inside.refs.skipped > t->base.refs.skipped)
        str_append(notes, "git: refs with names that are not safe were left in the jail\n");
    if (t->damaged)
        str_append(notes,
                   "git: some refs of the jail cannot be read, so that none is deleted outside\n");
    if (t->inside.flags[0] && strcmp(t->inside.flags, t->base.flags) != 0 && !tree->running)
        str_append(notes, "git: files are marked assume-unchanged or skip-worktree in the jail, or "
                          "no longer: these marks are not transferred\n");
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
                            .new = adds ? stash->id : NULL};
    int chosen = plan_ask(tree, &item, &why, err);
    if (chosen == 0) {
        tree->report->left = true;
        str_concat(&tree->report->notes, "git: a stash was not ",
                   adds ? "added: " : "dropped: ", why.data ? why.data : "it was not chosen",
                   adds ? ". It is kept as " : "", adds ? stash->id : "", "\n");
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

/* Whether an upstream is taken: it has not been set outside meanwhile. */
static int plan_choose_setting(struct plan_tree *tree, const struct config_change *change,
                               struct brig_error *err)
{
    autostr struct str why = {0};
    char now[4096];
    struct git_item item = {
        .kind = GIT_ITEM_CONFIG, .name = change->key, .old = change->old, .new = change->new};
    int status = LINE(&tree->t, NULL, now, err, "config", "--get", change->key);
    if (status < 0 || strcmp(now, change->new) == 0)
        return status;
    int chosen = 0;
    if (strcmp(now, change->old ? change->old : "") != 0)
        str_append(&why, "it was set outside meanwhile");
    else
        chosen = plan_ask(tree, &item, &why, err);
    if (chosen == 0)
        str_appendf(&tree->report->notes, "git: the setting %s was not taken: %s\n",
                    str_shown(change->key).text, why.data ? why.data : "it was not chosen");
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
        status = lfs_transfer(tree->p->sealed.dir, tree->p->repo.common, err);
    if (status == 0)
        status = plan_look(tree, err);
    if (status < 0)
        return status;
    if (side_is_busy(tree->p->repo.git_dir)) {
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
    if (status >= 0 && tree->plan->record.failed)
        status = brig_fail_nomem(err);
    if (status > 0 && tree->lists)
        status = 0;
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

/* A new repository takes what is in the jail, in the storage; then it is one item. */
static int plan_add_made(struct plan *plan, struct plan_part *part, struct brig_error *err)
{
    const struct private_git *p = part->p;
    autoclose int record = -1;
    char hash[65];
    struct place place;
    struct plan_part inner = *part;
    int status = files_make_dir(p->folder, "record", &record, err);
    const struct plan_options own = {.git = plan->options->git,
                                     .chooser = plan->options->chooser,
                                     .storage = -1,
                                     .into = record};
    inner.made = false;
    if (status == 0)
        status = plan_hand_over(&own, &inner, 1, err);
    part->report = inner.report;
    if (status == 0 && inner.status < 0)
        status = brig_fail(err, inner.status, inner.err.sys_errno, "%s", inner.err.message);
    if (status < 0 ||
        part->report.refused) /* its commits would be lost with the private directory */
        return status;
    status = git_hash_repository(own.git, p->repo.git_dir, hash, err);
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
        part->err = (struct brig_error){0};
        part->status =
            made ? plan_add_made(&plan, part, &part->err) : plan_add(&plan, part, &part->err);
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
