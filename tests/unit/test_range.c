/* SPDX-License-Identifier: MIT */
/* What a ref, a stash or an index makes reachable, judged in real repositories: `base` is what the user had when the run began,
 * `repo` the repository with what the jail has made. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/tree.h"
#include "git/range.h"
#include "tap.h"

static char scratch[] = "/tmp/brig-range-XXXXXX";
static struct git git;

/* In `repo`, with functions: commit MESSAGE adds all and commits; base: that is what the user had. */
static const char prelude[] =
    "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent;"
    "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e;"
    "commit() { git add -Af . && git commit -q --allow-empty -m \"$1\"; };"
    "put() { mkdir -p \"$(dirname \"$1\")\" && echo \"$2\" >\"$1\"; };"
    "base() { rm -rf ../base; git clone -q --mirror --no-local . ../base; };";

static void shell(const char *script, struct str *out)
{
    autostr struct str text = {0};
    char line[4096];
    str_concat(&text, "cd ", scratch, "/repo; ", prelude, script);
    FILE *pipe = text.failed ? NULL : popen(text.data, "re");
    if (!pipe)
        tap_bail("no shell");
    while (fgets(line, sizeof line, pipe))
        if (out)
            str_append(out, line);
    if (pclose(pipe) != 0)
        tap_bail("this failed: %s", script);
}

/* A new repository with one commit, which is the base. */
static void repository(void)
{
    autostr struct str text = {0};
    str_concat(&text,
               "cd ..; rm -rf repo base lib; mkdir repo; cd repo; git init -q -b main; echo a >a;",
               "commit first; base");
    shell(text.data, NULL);
}

static char *object(const char *name)
{
    autostr struct str out = {0}, script = {0};
    char *text = NULL;
    str_concat(&script, "git rev-parse '", name, "'");
    shell(script.data, &out);
    out.data[strcspn(out.data, "\n")] = '\0';
    return str_take(&out, &text, NULL) < 0 ? NULL : text;
}

/* Judges; NULL as `old` is a new ref, and as `tree` an index that follows HEAD. */
static void judge(enum git_item_kind kind, const char *old, const char *new, const char *tree,
                  struct range *range)
{
    char repo[128], base[128];
    struct brig_error err = {0};
    (void)snprintf(repo, sizeof repo, "%s/repo", scratch);
    (void)snprintf(base, sizeof base, "%s/base", scratch);
    autofree char *old_id = old ? object(old) : NULL;
    autofree char *new_id = new ? object(new) : NULL;
    autofree char *tree_id = tree ? object(tree) : NULL;
    autoclose int top = open(repo, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int git_dir = openat(top, ".git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int base_dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct git_item item = {.kind = kind,
                                  .top = repo,
                                  .name = "refs/heads/x",
                                  .old = old_id,
                                  .new = new_id,
                                  .new_tree = tree_id,
                                  .git = &git,
                                  .outside = {.git_dir = git_dir},
                                  .base = {.git_dir = base_dir}};
    if (range_judge(&item, range, &err) < 0)
        tap_fail("%s", err.message);
}

/* The strongest mark as "CLASS PATH: REASON", or "none". */
static void expect(enum git_item_kind kind, const char *old, const char *new, const char *tree,
                   const char *expected, const char *what)
{
    static const char *const classes[NAMES_CLASSES] = {[NAMES_UNASKED] = "unasked ",
                                                       [NAMES_WHEN_RUN] = "when run ",
                                                       [NAMES_UNUSUAL] = "unusual ",
                                                       [NAMES_NOT_JUDGED] = "not judged "};
    struct range range;
    autostr struct str text = {0};
    judge(kind, old, new, tree, &range);
    const struct range_mark *mark = range_stops(&range);
    if (mark)
        str_concat(&text, classes[mark - range.first], mark->path ? mark->path : "", ": ",
                   mark->reason);
    else
        str_append(&text, "none");
    tap_is_str(text.data, expected, "%s", what);
    range_done(&range);
}

#define WORKFLOW ".github/workflows/ci.yml"
#define CI "unasked " WORKFLOW ": executed by continuous integration"
#define REF GIT_ITEM_REF

static void plain(void)
{
    repository();
    shell("put src/b.c b; commit two; put a aa; commit three", NULL);
    expect(REF, "HEAD~2", "HEAD", NULL, "none", "ordinary commits have no mark");
    struct range range;
    judge(REF, "HEAD~2", "HEAD", NULL, &range);
    tap_is_int((long)range.total, 2, "there are two");
    tap_ok(range.count == 2 && strcmp(range.commits[1].subject, "two") == 0 &&
               strcmp(range.commits[1].author, "n") == 0 && range.commits[1].file_count == 1 &&
               strcmp(range.commits[1].files[0].path, "src/b.c") == 0 &&
               range.commits[1].files[0].letter == 'A' && range.commits[0].files[0].letter == 'M',
           "with their subjects, authors and files, the newest first");
    range_done(&range);
    expect(REF, "HEAD", "HEAD~1", NULL, "none", "going back makes only those reachable");
}

static void hidden(void)
{
    repository();
    shell("put " WORKFLOW " x; commit evil; git rm -rq .github; commit good", NULL);
    expect(REF, "HEAD~2", "HEAD", NULL, CI, "what a later commit removes is found");
    shell("git reset -q --hard HEAD~2; put x evil; commit one; mkdir -p .github/workflows;"
          "git mv x " WORKFLOW "; commit two; git mv " WORKFLOW " x; commit three",
          NULL);
    expect(REF, "HEAD~3", "HEAD", NULL, CI, "and what is renamed there and back");
    shell("git checkout -q --orphan other; put .envrc x; commit root", NULL);
    expect(REF, NULL, "HEAD", NULL, "unasked .envrc: obeyed by direnv", "a root commit too");
    shell("git tag -a -m t v1 HEAD", NULL);
    expect(REF, NULL, "v1", NULL, "unasked .envrc: obeyed by direnv", "through an annotated tag");
    expect(REF, NULL, "HEAD^{tree}", NULL, "not judged : it is no commit",
           "a tag of a tree is not judged");
}

static void merges(void)
{
    repository();
    shell("git branch x; git switch -qc up; put " WORKFLOW
          " x; put Makefile x; commit upstream; git switch -q main; base;"
          "put b b; commit mine; git merge -q -m merged up",
          NULL);
    expect(REF, "main~1", "main", NULL, CI,
           "what a merge takes from another branch is new for this one");
    shell("git branch -q --set-upstream-to up x", NULL);
    expect(REF, "main~1", "main", NULL, "none", "what it takes from the upstream has no mark");
    shell("put " WORKFLOW " evil; git add .; git commit -q --amend --no-edit", NULL);
    expect(REF, "main~1", "main", NULL, CI, "what the merge itself changes has");
    shell("git reset -q --hard main~1; git switch -qc topic; git merge -q -m one up; git switch -q "
          "main;"
          "put c c; commit c; git merge -q -m two topic",
          NULL);
    expect(REF, "main~2", "main", NULL, "none", "nor what comes by a merge of a merge");
    shell("git reset -q --hard main~1; git switch -q up; git rm -rq .github; commit gone; base; "
          "git switch -q main;"
          "git merge -q --no-commit -s ours up~1; git checkout up~1 -- .github; git commit -qm old",
          NULL);
    expect(REF, "main~1", "main", NULL, CI, "an old version of the user's is no tip");
}

static void upstream(void)
{
    repository();
    shell("put " WORKFLOW
          " x; commit up; git update-ref refs/remotes/origin/main HEAD; git reset -q --hard HEAD~1;"
          "base; git branch x; git merge -q --ff-only origin/main; git config remote.origin.url .;"
          "git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'",
          NULL);
    expect(REF, "main~1", "main", NULL, CI,
           "what was fetched is new for a branch that is set to it");
    expect(REF, NULL, "main", NULL, "none", "a new name for it has no mark");
    expect(GIT_ITEM_WORKTREE, "main~1", "main", NULL, CI, "HEAD on it has");
    shell("git branch -q --set-upstream-to origin/main x", NULL);
    expect(REF, "main~1", "main", NULL, "none",
           "what a remote-tracking ref of the base has is no news");
    shell("git update-ref -d refs/remotes/origin/main; base; git update-ref -d "
          "refs/remotes/origin/main;"
          "put .envrc x; commit more; git update-ref refs/remotes/origin/main HEAD",
          NULL);
    expect(REF, "main~1", "main", NULL, "unasked .envrc: obeyed by direnv",
           "one that appeared since then proves nothing");
    shell("git update-ref -d refs/remotes/origin/main; git branch gone; base; git branch -qD gone; "
          "git switch -qc again main; git branch -qD main",
          NULL);
    expect(REF, NULL, "again", NULL, "unasked .envrc: obeyed by direnv",
           "nor does a branch that the user has deleted");
}

static void ends(void)
{
    repository();
    shell("put Makefile x; commit make; git rm -q Makefile; commit gone", NULL);
    expect(REF, "HEAD~2", "HEAD", NULL, "none", "what runs with the project counts at the ends");
    expect(REF, "HEAD~2", "HEAD~1", NULL, "when run Makefile: runs when you build or test",
           "and there it does");
    shell("echo x >t.sh; chmod +x t.sh; commit x", NULL);
    expect(REF, "HEAD~1", "HEAD", NULL, "unusual t.sh: a new executable file",
           "as a new executable file");
    shell("echo '{\"name\":\"x\"}' >package.json; commit p; echo '{\"name\":\"y\"}' >package.json; "
          "commit q;"
          "echo '{\"name\":\"y\",\"scripts\":{\"test\":\"evil\"}}' >package.json; commit r",
          NULL);
    expect(REF, "HEAD~2", "HEAD~1", NULL, "none", "a package.json without scripts has no mark");
    expect(REF, "HEAD~1", "HEAD", NULL,
           "when run package.json: scripts that a package manager runs", "one with scripts has");
    shell("put yarn.lock 'resolved \"https://evil.example/x.tgz\"'; commit lock; put c "
          "ghp_0123456789012345678901234567890123456; commit c; put c 'more text'; put \"$(printf "
          "'x\\342\\200\\256y')\" x; commit n; git rm -q x*y; commit m",
          NULL);
    expect(REF, "HEAD~4", "HEAD~3", NULL,
           "when run yarn.lock: downloads packages from a place that is new in it",
           "lock files are judged like those of the user");
    expect(REF, "HEAD~3", "HEAD~2", NULL, "when run c: looks as if it contains a credential",
           "and credentials");
    expect(REF, "HEAD~2", "HEAD~1", NULL,
           "unusual x\342\200\256y: its name contains characters that are not shown",
           "and the characters of names");
    shell("ln -s a within; commit w; ln -s ../../x out; commit o; git rm -q out; commit n", NULL);
    expect(REF, "HEAD~3", "HEAD~2", NULL, "none", "a link within has no mark");
    expect(REF, "HEAD~2", "HEAD", NULL, "unasked out: a link that leads out of the directory",
           "one that leads out has");
    shell("ln -s /etc/passwd abs; commit a", NULL);
    expect(REF, "HEAD~1", "HEAD", NULL, "unasked abs: a link to an absolute path",
           "an absolute one too");
    repository();
    shell("mkdir d; ln -s ../a d/a; commit i; ln -s ../.git/hooks d/out; commit h", NULL);
    expect(REF, "HEAD~2", "HEAD~1", NULL, "none", "one to an ordinary name within has none");
    expect(REF, "HEAD~1", "HEAD", NULL,
           "unasked d/out: a link to a name that something executes or obeys unasked",
           "one to a name that is executed has");
}

static void staged(void)
{
    repository();
    shell("put .envrc x; git add -f .envrc; git branch -f tree $(git commit-tree -m t $(git "
          "write-tree)); rm .envrc",
          NULL);
    expect(GIT_ITEM_WORKTREE, "HEAD", "HEAD", "tree^{tree}", "unasked .envrc: obeyed by direnv",
           "what is staged is judged");
    expect(GIT_ITEM_WORKTREE, "HEAD", "HEAD", "HEAD^{tree}", "none",
           "an index like HEAD has no mark");
    expect(GIT_ITEM_WORKTREE, NULL, NULL, "tree^{tree}", "unasked .envrc: obeyed by direnv",
           "before the first commit too");
}

static void stashes(void)
{
    repository();
    shell("put a changed; git stash -q", NULL);
    expect(GIT_ITEM_STASH, NULL, "stash@{0}", NULL, "none", "a stash of ordinary work has no mark");
    shell("put Makefile x; put b b; git stash -qu", NULL);
    expect(GIT_ITEM_STASH, NULL, "stash@{0}", NULL,
           "when run Makefile: runs when you build or test", "untracked files count");
    struct range range;
    judge(GIT_ITEM_STASH, NULL, "stash@{0}", NULL, &range);
    bool whole = false;
    for (size_t i = 0; i < range.count; i++)
        for (size_t j = 0; j < range.commits[i].file_count; j++)
            whole = whole || strcmp(range.commits[i].files[j].path, "a") == 0;
    tap_ok(!whole, "and the whole tree is not listed");
    range_done(&range);
    shell("put .vscode/tasks.json x; git stash -qu", NULL);
    expect(GIT_ITEM_STASH, NULL, "stash@{0}", NULL,
           "unasked .vscode/tasks.json: obeyed by Visual Studio Code", "and are judged");
    shell("git switch -qc pr; put .envrc x; commit pr; git switch -q main; base;"
          "u=$(git commit-tree -p pr -m untracked pr^{tree}); i=$(git commit-tree -p main -m index "
          "main^{tree});"
          "git tag -f stashed $(git commit-tree -p main -p $i -p $u -m wip main^{tree})",
          NULL);
    expect(GIT_ITEM_STASH, NULL, "stashed", NULL, "unasked .envrc: obeyed by direnv",
           "all that is untracked counts, whatever its parent is");
}

static void submodules(void)
{
    repository();
    shell("git init -q -b main lib; cd lib; echo s >s; commit s; cd ..; git add lib 2>/dev/null; "
          "git commit -qm lib; base;"
          "cd lib; echo t >s; commit t; cd ..; git commit -qam bump",
          NULL);
    expect(REF, "HEAD~1", "HEAD", NULL, "none", "a commit that the submodule outside has is fine");
    shell("cd lib; git update-ref refs/brig/x/heads/main HEAD; git reset -q --hard HEAD~1", NULL);
    expect(REF, "HEAD~1", "HEAD", NULL,
           "not judged lib: a commit that your copy of the submodule does not have",
           "one that is only kept below refs/brig is not");
    shell("git config -f .gitmodules submodule.lib.path lib; git config -f .gitmodules "
          "submodule.lib.ignore all",
          NULL);
    expect(REF, "HEAD~1", "HEAD", NULL,
           "not judged lib: a commit that your copy of the submodule does not have",
           "whatever .gitmodules says");
}

static void incomplete(void)
{
    repository();
    shell("put b b; commit two; put c c; commit three; rm -rf ../base; git clone -q --mirror . "
          "../base;"
          "git -C ../base update-ref refs/heads/main HEAD~2; git rev-parse HEAD~1 >.git/shallow",
          NULL);
    expect(REF, NULL, "main", NULL, "not judged : a parent is missing",
           "a shallow range is not judged");
    shell("rm .git/shallow; id=$(git rev-parse HEAD~1^{tree}); rm -f .git/objects/$(echo $id | cut "
          "-c1-2)/$(echo $id | cut -c3-)",
          NULL);
    expect(REF, NULL, "main", NULL, "not judged : git cannot read them",
           "nor one with a missing tree");
    repository();
    shell("put " WORKFLOW " x; commit evil; put b b; git rm -rq .github; commit good; git tag "
          "start HEAD~2; git replace HEAD~1 HEAD~2",
          NULL);
    expect(REF, "start", "main", NULL, CI, "replace refs hide nothing");
}

static void names(void)
{
    repository();
    shell("put \"$(printf 'dir\\nx/.envrc')\" x; git add -Af .; git commit -qm \"$(printf "
          "'sub\\033[31mject')\"",
          NULL);
    struct range range;
    autostr struct str text = {0};
    judge(REF, "HEAD~1", "HEAD", NULL, &range);
    if (range_stops(&range))
        range_append_mark(&text, range_stops(&range));
    tap_ok(text.data && strlen(text.data) > 12 &&
               strcmp(text.data + 12, "dir\\nx/.envrc: obeyed by direnv") == 0,
           "a name is escaped in a message");
    range_done(&range);
}

int main(void)
{
    struct brig_error err = {0};
    if (!mkdtemp(scratch) || git_find_own(&git, &err) < 0 || !git.program)
        tap_bail("no git");
    autostr struct str make = {0};
    str_concat(&make, scratch, "/repo");
    if (mkdir(make.data, 0755) < 0)
        tap_bail("no directory");
    plain();
    hidden();
    merges();
    upstream();
    ends();
    staged();
    stashes();
    submodules();
    incomplete();
    names();
    git_done(&git);
    (void)tree_remove(AT_FDCWD, scratch, NULL);
    return tap_done();
}
