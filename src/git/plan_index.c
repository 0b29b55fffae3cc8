/* SPDX-License-Identifier: MIT */
/* The index that comes with HEAD: a copy of it as it is, and one as it will be. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/tree.h"
#include "git/plan_tree.h"
#include "git/take.h"

/* ---- copies of the index ---- */

/* Calls git for one of the copies, which is in the directory of the record. */
struct git_call plan_on_copy(const struct plan_tree *tree, int number)
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
        char name[32], lock[40];
        (void)snprintf(name, sizeof name, "index-%zu.%s", tree->plan->tree_count, sides[i]);
        (void)snprintf(lock, sizeof lock, "%s.lock", name); /* of a git that was killed */
        (void)unlinkat(tree->plan->options->into, lock, 0);
        if (!str_fill(tree->index_path[i], sizeof tree->index_path[i], path, "/", name))
            return brig_fail(err, BRIG_E_INVALID, 0, "the path of the jail's storage is too long");
        (void)unlinkat(tree->plan->options->into, name, 0);
        status = copying_file(tree->p->repo.git_dir, "index", tree->plan->options->into, name, err);
        files_sync(tree->plan->options->into, name);
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
int plan_make_index(struct plan_tree *tree, const char **ret_why, struct brig_error *err)
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
