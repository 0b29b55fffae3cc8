/* SPDX-License-Identifier: MIT */
/* What the user is told about a working tree. */
#include <string.h>

#include "base/cleanup.h"
#include "git/plan_tree.h"

#define COUNTED_BRANCHES_MAX 8 /* whose new commits the summary counts */

/* ---- telling ---- */

/* The summary, prepared for another part. */
struct str *plan_next_part(struct plan_tree *tree)
{
    str_append(&tree->report->summary, tree->report->summary.length ? ", " : "");
    return &tree->report->summary;
}

void plan_summarise(const struct transfer *t, const char *name, const char *old, const char *new,
                    struct str *summary)
{
    char count[32];
    const struct side *base = &t->base;
    const char *since = old ? old : refs_find(&base->refs, base->head);
    autostr struct str range = {0};
    str_concat(&range, since ? since : "", since ? ".." : "", new);
    if (range.failed || LINE(t, NULL, count, NULL, "rev-list", "--count", range.data) < 0)
        return;
    str_append(summary, summary->length > 0 ? ", " : "");
    if (strcmp(count, "0") != 0)
        str_concat(summary, count, strcmp(count, "1") == 0 ? " commit on " : " commits on ",
                   plan_shown(name).text);
    else if (old)
        str_appendf(summary, "%s reset to %.7s", plan_shown(name).text, new);
    else
        str_concat(summary, "new ", plan_shown(name).text);
}

void plan_summarise_staged(struct plan_tree *tree)
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
    const char *name = refs_short_name(ref->name);
    bool elsewhere = plan_is_elsewhere(tree, ref->name);
    if (ref->why.length == 0) { /* it was not chosen */
        str_list_add(&tree->report->keep, ref->new ? ref->new : "");
        return;
    }
    str_concat(notes, "git: ", str_shown(name).text,
               ref->new ? " was not moved: " : " was not deleted: ", ref->why.data,
               ref->new ? ". " : "\n");
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

void plan_tell_refs(struct plan_tree *tree)
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
            plan_summarise(&tree->t, ref->name, ref->old, ref->new, &tree->report->summary);
    }
    if (count > COUNTED_BRANCHES_MAX)
        str_appendf(&tree->report->summary, " and %zu more refs", count - COUNTED_BRANCHES_MAX);
    plan_tell_deleted(tree);
}

void plan_tell_state(struct plan_tree *tree)
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
