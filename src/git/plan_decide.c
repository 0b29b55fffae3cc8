/* SPDX-License-Identifier: MIT */
/* Decides what of a working tree is taken. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "git/plan_tree.h"

#define BRANCH_STAYS "the jail's branch was not moved"
#define ENTRIES_MAX 2000000 /* files and directories in a tree */
#define REFUSED_MAX 500     /* times that a list of refs is halved */

/* ---- what speaks against a ref ---- */

bool plan_count_file(void *count, const char *name, size_t length)
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

struct str_shown plan_shown(const char *name)
{
    return str_shown(refs_short_name(name));
}

/* Whether a branch is checked out, rebased or bisected in another worktree. */
bool plan_is_elsewhere(const struct plan_tree *tree, const char *name)
{
    return side_count_worktrees(&tree->worktrees, name) >
           (strcmp(tree->outside.head, name) == 0 ? 1 : 0);
}

/* Whether the short name of a new ref is that of a remote, for which git takes REMOTE/HEAD, or that of a ref in other letters: one
 * file where case does not count. */
static bool plan_resembles_another(const struct plan_tree *tree, const char *name)
{
    const char *rest = refs_short_name(name);
    size_t length = strlen(rest);
    static const size_t prefix = sizeof "refs/heads/" - 1;
    for (size_t i = 0; i < tree->remotes.refs.count; i++) {
        const char *at = tree->remotes.refs.items[i].name + prefix;
        if (strncasecmp(at, rest, length) == 0 && at[length] == '/')
            return true;
    }
    for (size_t i = 0; i < tree->outside.refs.count; i++) {
        const char *other = tree->outside.refs.items[i].name;
        if (strcmp(other, name) != 0 && strcasecmp(other, name) == 0)
            return true;
    }
    return false;
}

/* Whether the short name of a new ref would be ambiguous with an existing ref. */
static bool plan_hides_another(const struct plan_tree *tree, const char *name)
{
    static const char *const prefixes[] = {"refs/heads/", "refs/tags/"};
    const char *rest = refs_short_name(name);
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        autostr struct str other = {0};
        str_concat(&other, prefixes[i], rest);
        if (other.failed || refs_find(&tree->remotes.refs, other.data) ||
            (strcmp(other.data, name) != 0 && refs_find(&tree->outside.refs, other.data)))
            return true;
    }
    return false;
}

const struct plan_ref *plan_find_ref(const struct plan_tree *tree, const char *name)
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
    if (!now && plan_resembles_another(tree, ref->name))
        return "its name could be taken for a remote or another ref";
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

int plan_ask(const struct plan_tree *tree, struct git_item *item, struct str *why,
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
    tree->report->told |= chosen == 0 && why->length > 0;
    return chosen;
}

/* Whether the working tree comes with its current branch, so that they are one item. If HEAD of the jail is elsewhere, the
 * branch that HEAD leaves is a ref like the others, although it moves only with HEAD. */
static bool plan_has_current(const struct plan_tree *tree)
{
    return tree->goes_on || strcmp(tree->t.inside.head, tree->outside.head) == 0;
}

/* Appends "^OBJECT" for what the user keeps: refs that stay, new values that are taken, and that of the current branch until it is
 * known to stay. */
static void plan_list_kept(const struct plan_tree *tree, struct str *lines)
{
    const struct refs *const lists[] = {&tree->outside.refs, &tree->remotes.refs};
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++)
        for (size_t j = 0; j < lists[i]->count; j++)
            if (i > 0 || !plan_find_ref(tree, lists[i]->items[j].name))
                str_concat(lines, "^", lists[i]->items[j].id, "\n");
    for (size_t i = 0; i < tree->ref_count; i++) {
        const struct plan_ref *ref = &tree->refs[i];
        bool stays = ref->chosen == 0 || (ref->current && tree->chosen == 0);
        const char *kept = stays ? ref->old : ref->chosen > 0 ? ref->new : NULL;
        str_concat(lines, kept ? "^" : "", kept ? kept : "", kept ? "\n" : "");
    }
}

/* Whether a ref or HEAD that moves from `old` leaves commits that nothing else has. */
static bool plan_loses(const struct plan_tree *tree, const char *old, const char *new)
{
    autostr struct str lines = {0}, out = {0};
    if (!old || (new &&plan_is_forward(tree, old, new)))
        return false;
    str_concat(&lines, old, "\n", new ? "^" : "", new ? new : "", new ? "\n" : "");
    plan_list_kept(tree, &lines);
    return lines.failed ||
           RUN(&tree->t, &(struct git_call){.input = &lines}, &out, NULL, "rev-list", "-n", "1",
               "--ignore-missing", "--stdin") != 0 ||
           out.length > 0;
}

/* What a ref takes away from the user, or NULL. An annotated tag is lost with its name. */
static const char *plan_find_loss(const struct plan_tree *tree, const struct plan_ref *ref)
{
    char type[16];
    const struct git_chooser *chooser = tree->plan->options->chooser;
    if (!ref->old || !chooser || chooser->end || (ref->current && plan_has_current(tree)))
        return NULL;
    if (!ref->new &&str_starts_with(ref->name, "refs/tags/") &&
        (LINE(&tree->t, NULL, type, NULL, "cat-file", "-t", ref->old) < 0 ||
         strcmp(type, "tag") == 0))
        return "it is an annotated tag";
    if (!plan_loses(tree, ref->old, ref->new))
        return NULL;
    return ref->new ? "it goes back, and leaves commits that nothing else has"
                    : "nothing else has its commits";
}

/* What HEAD takes away, with the current branch if that is where it stays. */
static const char *plan_find_tree_loss(const struct plan_tree *tree, const struct git_item *item)
{
    const struct git_chooser *chooser = tree->plan->options->chooser;
    bool detached = refs_is_id(tree->outside.head);
    if (!chooser || chooser->end)
        return NULL;
    if ((detached || plan_has_current(tree)) && plan_loses(tree, item->old, item->new))
        return "it goes back, and leaves commits that nothing else has";
    return !detached && refs_is_id(item->new_head) ? "it detaches HEAD from its branch" : NULL;
}

/* Decides about one ref, once. */
static int plan_judge(struct plan_tree *tree, struct plan_ref *ref, struct brig_error *err)
{
    autostr struct str key = {0};
    str_concat(&key, tree->p->repo.common_path, "\n", ref->name);
    if (ref->chosen > 0 && !ref->unusual && tree->chosen == 0 && plan_find_loss(tree, ref))
        ref->chosen = -1; /* the current branch, which stays, does not have it */
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
    ref->unusual = plan_find_loss(tree, ref);
    struct git_item item = {.kind = GIT_ITEM_REF,
                            .name = ref->name,
                            .old = ref->old,
                            .new = ref->new,
                            .unusual = ref->unusual};
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

int plan_list_refs(struct plan_tree *tree, struct brig_error *err)
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
        return BRANCH_STAYS;
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
    return BRANCH_STAYS;
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

/* ---- the working tree ---- */

const char *plan_commit_of(const struct side *side, const char *head)
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
    item.unusual = plan_find_tree_loss(tree, &item);
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
    if (tree->goes_on || !differs || !*why)
        return;
    bool told = strcmp(why, BRANCH_STAYS) == 0; /* why, beside the branch */
    if (told)
        str_append(notes, tree->staged ? "git: the index of the jail is kept as " : "");
    else
        str_concat(notes, "git: HEAD and the index stay as they are: ", why,
                   tree->staged ? ". The index of the jail is kept as " : "");
    if (!told || tree->staged)
        str_concat(notes, tree->staged ? t->inside.staged : "", "\n");
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
        why = asked.length > 0 ? asked.data : "";
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
int plan_decide(struct plan_tree *tree, struct brig_error *err)
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
int plan_preflight(struct plan_tree *tree, bool *ret_refused, struct brig_error *err)
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
