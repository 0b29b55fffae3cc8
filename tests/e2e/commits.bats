#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a jail has committed, staged or stashed is judged like its files, before it reaches the user's repository.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own variables
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos
load screen

setup() {
    repos_setup
}

teardown() {
    stop_screen
    repos_teardown
}

# A commit of files that something would execute unasked, which are not in the working tree any more.
EVIL='mkdir -p .github/workflows .vscode; echo evil >.envrc; echo run >.github/workflows/ci.yml; echo {} >.vscode/tasks.json
    git add -A -f; git commit -q -m "small fix"; rm -rf .github .vscode .envrc;'

# verb WHO VERB ARGS…: a verb for the jail of this test.
verb() {
    local who=$1 name=$2
    shift 2
    by "$who" "$name" -j "$JAIL" "$@"
}

@test "--review=auto does not move a branch with a commit that something would execute; an ordinary one it does" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        must inside "$pair" 'echo c >c; git add c; git commit -q -m ordinary' --review=auto
        output_has 'git: 1 commit on main'
        [ "$(out log -1 --format=%s)" = ordinary ]
        must inside "$pair" "$EVIL" --review=auto
        output_has 'git: main was not moved: '
        output_has ': .envrc: obeyed by direnv'
        output_has "brig apply -j $JAIL --risky $PROJECT"
        [ "$(out log -1 --format=%s)" = ordinary ]
        [ -z "$(out status --porcelain)" ]
        [ -n "$(out for-each-ref refs/brig)" ]
        # It is still the jail's, and is taken when that is said.
        must inside "$pair" 'git log -1 --format=%s' --review=auto
        output_has 'small fix'
        run verb "$who" apply "$PROJECT"
        output_has 'git: main was not moved: '
        [ "$(out log -1 --format=%s)" = ordinary ]
        run verb "$who" apply --risky "$PROJECT"
        [ "$(out log -1 --format=%s)" = 'small fix' ]
        out cat-file -e HEAD:.envrc
        nothing_left
        by "$who" rm -f "$JAIL"
    done
}

@test "what a later commit removes, other branches, tags, the index and stashes are judged too" {
    project user
    out stash list
    must inside user:sealed "$EVIL"' git rm -rq .github .vscode .envrc; echo b >a; git commit -q -am fix; git branch other HEAD~1
        git tag v1 HEAD~1; git branch plain HEAD~2' --review=auto
    for name in main other v1; do
        output_has "git: $name was not moved: "
    done
    [ "$(out log --all --no-walk --format=%s --exclude='refs/brig/*' --branches --tags | sort -u)" = first ] ||
        [ "$(out for-each-ref --format='%(refname)' refs/heads refs/tags)" = $'refs/heads/main\nrefs/heads/plain' ]
    [ "$(out log -1 --format=%s main)" = first ]
    by user rm -f "$JAIL"

    project user
    must inside user:sealed 'echo evil >.envrc; git add -f .envrc; rm .envrc; echo n >n' --review=auto
    output_has 'the index: .envrc: obeyed by direnv'
    [ "$(out ls-files)" = $'a\nb' ]
    [ -e n ]
    by user rm -f "$JAIL"

    project user
    must inside user:sealed 'echo evil >.envrc; echo x >>a; git stash -q -u; echo y >>b; git stash -q' --review=auto
    output_has '.envrc: obeyed by direnv'
    [ "$(out stash list | wc -l)" -eq 1 ]
    must out ls-tree -r --name-only stash
    output_lacks .envrc
    by user rm -f "$JAIL"
}

@test "the branch that HEAD of the jail leaves is an item of its own: it is listed, and judged" {
    for leave in 'git checkout -q -b wip HEAD~1' 'git checkout -q --detach HEAD~1' 'git symbolic-ref HEAD refs/heads/unborn; git rm -rqf --cached .'; do
        project user
        must inside user:sealed "$EVIL $leave" --review=auto
        output_has 'git: main was not moved: '
        [ "$(out log -1 --format=%s main)" = first ]
        by user rm -f "$JAIL"
    done

    project user
    must inside user:sealed "$EVIL git checkout -q -b wip HEAD~1" -R
    must verb user status
    output_has 'G  branch main  1 commit  ! '
    output_has 'G  branch wip '
    output_has 'G  HEAD and index, wip '
    run verb user apply --all
    [ "$status" -eq 1 ]
    output_has 'git: main was not moved: '
    [ "$(out log -1 --format=%s main)" = first ]
    [ "$(out symbolic-ref HEAD)" = refs/heads/wip ]
    must verb user apply --risky "$PROJECT"
    by user rm -f "$JAIL"

    # The twin: an ordinary commit moves with HEAD.
    project user
    must inside user:sealed 'echo c >c; git add c; git commit -q -m ordinary; git checkout -q -b wip' --review=auto
    output_has 'git: 1 commit on main, '
    [ "$(out log -1 --format=%s main)" = ordinary ]
    [ "$(out symbolic-ref HEAD)" = refs/heads/wip ]
}

@test "what runs with the project stops a commit as it stops a file, with its class" {
    project user
    must inside user:sealed 'echo all: >Makefile; git add Makefile; git commit -q -m fix; git rm -q --cached Makefile; rm Makefile; git reset -q' --review=auto
    output_has ': Makefile: runs when you build or test'
    [ "$(out log -1 --format=%s)" = first ]
    must verb user status
    output_has 'A  Makefile  ! runs when you build or test (when run)'
    run verb user apply --all
    [ "$status" -eq 1 ]
    [ "$(out log -1 --format=%s)" = first ]
    must verb user apply --risky "$PROJECT"
    [ "$(out log -1 --format=%s)" = fix ]
    by user rm -f "$JAIL"
}

@test "what the user has fetched is new for a branch that is set to it, unless that is its upstream" {
    project user
    as user sh -ec 'git clone -q --bare . ../up.git; git remote add origin "$PWD/../up.git"; git fetch -q; git branch -q -u origin/main main; git branch release
        git switch -q -c pr; echo evil >.envrc; git add -f .envrc; git commit -q -m stranger; git update-ref refs/remotes/origin/pr/1 HEAD
        git switch -q main; git branch -q -D pr; git branch ahead; git switch -q ahead; echo all: >Makefile; git add Makefile; git commit -q -m upstream
        git update-ref refs/remotes/origin/main HEAD; git switch -q main; git branch -q -D ahead'
    must inside user:sealed 'git branch -f release origin/pr/1; git branch mine origin/pr/1; git reset -q --soft origin/pr/1; git read-tree HEAD' --review=auto
    output_has 'git: release was not moved: '
    output_has 'git: main was not moved: '
    [ "$(out log --format=%s main release)" = first ]
    out cat-file -e mine:.envrc # a new name
    by user rm -f "$JAIL"
    must inside user:sealed 'git reset -q --soft origin/main; git read-tree HEAD' --review=auto
    [ "$(out log -1 --format=%s main)" = upstream ]
    by user rm -f "$JAIL"
}

@test "what takes something away waits for a question: deleted branches, dropped stashes, and a branch that goes back" {
    project user
    as user sh -ec 'git branch merged; git switch -q -c work; echo w >w; git add w; git commit -q -m weeks; git tag -a -m t v1; git tag light main; git switch -q main
        echo c >c; git add c; git commit -q -m second; echo x >>a; git stash -q'
    must inside user:sealed 'git branch -q -D work merged; git tag -d v1; git tag -d light; git stash drop -q; git reset -q --soft HEAD~1; git read-tree HEAD' --review=auto
    output_has 'git: work was not deleted: nothing else has its commits'
    output_has 'git: v1 was not deleted: '
    output_has 'git: a stash was not dropped: '
    output_has 'git: main was not moved: it goes back, and leaves commits that nothing else has'
    [ "$(out for-each-ref --format='%(refname)' refs/heads refs/tags)" = $'refs/heads/main\nrefs/heads/work\nrefs/tags/v1' ]
    [ "$(out stash list | wc -l)" -eq 1 ]
    [ "$(out log -1 --format=%s)" = second ]
    must verb user status
    output_has 'G  branch work  is dropped  ! '
    must verb user apply --risky "$PROJECT"
    [ "$(out for-each-ref --format='%(refname)' refs/heads refs/tags)" = refs/heads/main ]
    [ "$(out log -1 --format=%s)" = first ]
    by user rm -f "$JAIL"

    # The twins: what it had is elsewhere, under another name or in the branch that HEAD is on.
    project user
    as user sh -ec 'git switch -q -c topic; echo w >w; git add w; git commit -q -m topic; git switch -q main'
    must inside user:sealed 'git merge -q topic; git branch -q -d topic; git branch -q other; git branch -q -m other third' --review=auto
    [ "$(out for-each-ref --format='%(refname)' refs/heads)" = $'refs/heads/main\nrefs/heads/third' ]
    [ "$(out log -1 --format=%s)" = topic ]
    by user rm -f "$JAIL"
}

@test "a run without review names what is committed, after however many refs, and what is not judged" {
    project user
    must inside user:casual 'for i in $(seq 20); do git tag a$i; echo $i >f; git add f; git commit -q -m $i; done
        echo evil >.envrc; git add -f .envrc; git commit -q -m e; git rm -q --cached .envrc; rm .envrc'
    output_has 'git: something executes a file of this commit when it is checked out: '
    output_has ': .envrc: obeyed by direnv'
    by user rm -f "$JAIL"
    project user
    must inside user:casual 'e=$(git rev-parse "HEAD^{tree}"); p="-p HEAD"; for i in $(seq 17); do p="$p -p $(git commit-tree -m $i $e)"; done
        git reset -q "$(git commit-tree $p -m m $e)"'
    output_has 'git: not all that is committed here was judged: '
    by user rm -f "$JAIL"
    project user
    must inside user:casual 'git tag t; git commit -q --allow-empty -m plain'
    output_lacks 'judged'
    output_lacks 'when it is checked out'
    by user rm -f "$JAIL"
}

@test "a new ref cannot take the name of a remote, or that of a ref in other letters" {
    project user
    as user sh -ec 'git clone -q --bare . ../up.git; git remote add up "$PWD/../up.git"; git fetch -q up'
    must inside user:sealed 'git branch up; git tag UP; git branch Main; git branch plain' --review=auto
    output_has 'git: up was not moved: its name could be taken for a remote or another ref'
    output_has 'git: UP was not moved: '
    output_has 'git: Main was not moved: '
    [ "$(out for-each-ref --format='%(refname)' refs/heads refs/tags)" = $'refs/heads/main\nrefs/heads/plain' ]
    by user rm -f "$JAIL"
}

@test "status shows an upstream with both values, flagged if it is another branch" {
    project user
    as user sh -ec 'git clone -q --bare . ../up.git; git remote add up "$PWD/../up.git"; git push -q up main main:other; git branch two'
    must inside user:sealed 'git commit -q --allow-empty -m second; git branch -q -u up/other main; git config branch.two.remote up; git config branch.two.merge refs/heads/two' -R
    must verb user status
    output_has 'setting branch.main.merge  not set → refs/heads/other  ! it changes what git pull merges into this branch'
    grep -q 'branch.two.merge  not set → refs/heads/two$' <<<"$output"
    by user rm -f "$JAIL"
}

@test "a submodule's commits are judged, and a commit that sets it to one of these stays" {
    project user
    as user sh -ec 'git init -q -b main ../s; cd ../s; echo s >s; git add s; git commit -q -m sub'
    as user sh -ec 'git -c protocol.file.allow=always submodule --quiet add ../s lib; git commit -q -m both; cd lib; git checkout -q -b work'
    must inside user:sealed 'cd lib; echo e >.envrc; echo t >s; git add -A -f; git commit -q -m sub; rm .envrc; cd ..; git commit -q -am bump' --review=auto
    output_has "git: $PROJECT/lib: work was not moved: "
    output_has "git: $PROJECT: main was not moved: "
    output_has 'lib: a commit that your copy of the submodule does not have'
    [ "$(out log -1 --format=%s)" = both ]
    [ "$(out -C lib log -1 --format=%s work)" = sub ]
    by user rm -f "$JAIL"
}

@test "brig apply asks, and without a terminal leaves what is flagged and says so; --risky takes it" {
    project user
    must inside user:sealed 'mkdir -p .github/workflows; echo run >.github/workflows/ci.yml; git add -A; git commit -q -m evil
        git rm -rq .github; echo b >a; git commit -qam fix; git branch extra HEAD~1' -R
    must verb user status
    output_has '.github/workflows/ci.yml: executed by continuous integration (unasked)'
    [ "$(grep -c '^      [0-9a-f]* evil (' <<<"$output")" = 1 ]
    output_has '      and 1 that is above'
    must verb user status --json
    python3 -c 'import json, sys
items = {g["name"]: g for g in json.loads(sys.argv[1])["git"]}
main, extra = items["refs/heads/main"], items["refs/heads/extra"]
assert (main["kind"], extra["kind"]) == ("worktree", "ref") and main["class"] == extra["class"] == "unasked", items
assert len(main["token"]) == 32 and main["token"] != extra["token"] and main["old_head"] == main["name"], items' "$output"
    run verb user apply --all
    [ "$status" -eq 1 ]
    output_has 'git: main was not moved: '
    output_has '.github/workflows/ci.yml: executed by continuous integration'
    output_has 'git: extra was not moved: '
    [ "$(cat a)" = b ] # the file is another item
    [ "$(out log -1 --format=%s)" = first ]
    must verb user apply --risky "$PROJECT"
    [ "$(out log -1 --format=%s)" = fix ]
    [ "$(out log -1 --format=%s extra)" = evil ]
    nothing_left
}

@test "in a terminal brig apply asks about a flagged file and a branch: no leaves it, yes takes it" {
    project user
    must inside user:sealed 'mkdir -p .github/workflows; echo run >.github/workflows/ci.yml; git add -A; git commit -q -m evil
        git rm -rq .github; git commit -q -m tidy; echo all: >Makefile' -R
    start_screen 200 40 PATH="'$PATH'" GIT_CONFIG_GLOBAL=/dev/null bash --norc --noprofile -i
    type_line "'$BRIG' apply -j $JAIL --all; echo ended \$?"
    shows 'Makefile: .*$'
    shows 'Apply it all the same\? \[y\]es, \[n\]o'
    type_line n
    shows 'ci.yml: executed by continuous integration'
    type_line n
    shows '^ended 1$'
    [ ! -e Makefile ]
    [ "$(out log -1 --format=%s)" = first ]
    screen clear-history -t t \; send-keys -t t -R
    type_line "clear; '$BRIG' apply -j $JAIL --all; echo ended \$?"
    shows 'Makefile: '
    type_line y
    shows 'ci.yml: executed by continuous integration'
    type_line y
    shows '^ended 0$'
    [ "$(cat Makefile)" = all: ]
    [ "$(out log -1 --format=%s)" = tidy ]
    nothing_left
}

@test "brig apply --fetch asks the remotes first: what they have is not the jail's" {
    project user
    as user sh -ec 'git clone -q --bare . ../up.git; git remote add origin "$PWD/../up.git"; git fetch -q; git clone -q ../up.git ../work
        cd ../work; mkdir -p .github/workflows; echo run >.github/workflows/ci.yml; git add .; git commit -q -m upstream'
    # The jail has the commit of upstream from somewhere.
    as user git -C ../work bundle create -q "$PROJECT/fetched" main
    must inside user:sealed 'git fetch -q ./fetched main:topic' -R
    run verb user apply --all
    output_has 'git: topic was not moved: '
    # Not yet pushed there, it is still the jail's.
    run verb user apply --fetch "$PROJECT"
    output_has 'git: topic was not moved: '
    as user git -C ../work push -q origin main
    must verb user apply --fetch "$PROJECT"
    output_has 'git: 1 commit on topic'
    [ "$(out log -1 --format=%s topic)" = upstream ]
}

@test "brig status looks at the jail's git directory again only if it has changed" {
    project user
    must inside user:sealed 'echo x >>a; git stash -q' -R
    must verb user status
    output_has 'stash WIP on main'
    # What the last look found, under another name: it is not looked for again.
    seen=$(run_as_user sh -c "ls $HOME_OF_USER/.local/share/brig/$JAIL.git/review-*/seen")
    run_as_user sed -i 's/WIP on main/seen before/' "$seen"
    must verb user status
    output_has 'stash seen before'
    # The twins: it has changed, also if only an older stash is dropped.
    must inside user:sealed 'echo y >>a; git stash -q' -R
    must verb user status
    [ "$(grep -c 'stash WIP on main' <<<"$output")" -eq 2 ]
    must inside user:sealed 'git stash drop -q stash@{1}' -R
    must verb user status
    [ "$(grep -c 'stash WIP on main' <<<"$output")" -eq 1 ]
    must verb user apply --all
    [ "$(out stash list | wc -l)" -eq 1 ]
}

# shown EXPRESSION: writes the items of git for which it is true as brig status --json has them, for --shown.
shown() {
    run_as_user "$BRIG" status -j "$JAIL" --json | python3 -c '
import json, sys
for g in json.load(sys.stdin)["git"]:
    if eval(sys.argv[1]):
        sys.stdout.write("%s git:%s\0" % (g["token"], g["name"]))' "$1" >"$SCRATCH/shown"
    chmod 644 "$SCRATCH/shown"
}

@test "the items of git that were shown are taken, others stay, and one that has changed is refused" {
    project user
    must inside user:sealed 'git commit -q --allow-empty -m one; git branch other; git tag v1; echo x >>a; git stash -q' -R
    shown 'g["name"] == "refs/heads/other" or g["kind"] == "stash"'
    must verb user apply --shown <"$SCRATCH/shown"
    output_lacks 'was not moved' 'stay as they are'
    [ "$(out for-each-ref --format='%(refname)' refs/heads refs/tags)" = $'refs/heads/main\nrefs/heads/other' ]
    [ "$(out log -1 --format=%s main)" = first ]
    [ "$(out stash list | wc -l)" -eq 1 ]
    # The jail, and then the user, changes what was shown.
    shown 'g["kind"] == "worktree" or g["name"] == "refs/tags/v1"'
    must inside user:sealed 'git commit -q --allow-empty -m two' -R
    must_exit 1 verb user apply --shown --risky <"$SCRATCH/shown"
    output_has 'not applied: refs/heads/main: it has changed since it was shown'
    output_lacks 'refs/tags/v1:'
    [ "$(out log -1 --format=%s main)" = first ]
    out rev-parse -q --verify v1
    shown 'g["kind"] == "worktree"'
    run_as_user git -c user.name=a -c user.email=a@b commit -q --allow-empty -m mine
    must_exit 1 verb user apply --shown <"$SCRATCH/shown"
    output_has 'not applied: refs/heads/main: it has changed since it was shown'
    [ "$(out log -1 --format=%s main)" = mine ]
    # The twin.
    run_as_user git reset -q --soft HEAD~1
    shown 'g["kind"] == "worktree"'
    must verb user apply --shown <"$SCRATCH/shown"
    [ "$(out log -1 --format=%s main)" = two ]
    # A flagged one needs a word more.
    must inside user:sealed "$EVIL" -R
    must verb user status
    output_has ': .envrc: obeyed by direnv (unasked)'
    shown 'g["class"] == "unasked"'
    must_exit 1 verb user apply --shown <"$SCRATCH/shown"
    output_has 'git: main was not moved: '
    must verb user apply --shown --risky <"$SCRATCH/shown"
    [ "$(out log -1 --format=%s)" = 'small fix' ]
    must_exit 125 verb user apply --shown a <"$SCRATCH/shown"
    nothing_left
}

@test "a new repository is listed with its commits, and created if all of it was shown" {
    project user
    run_as_user rm -rf .git
    must inside user:sealed 'git init -q -b main .; echo n >n; git add -A; git commit -q -m one; git branch other' -R
    must verb user status
    output_has "new repository $PROJECT  is created" 'branch other  1 commit' 'HEAD and index, main  1 commit'
    must verb user apply n
    shown 'g["name"] == "refs/heads/other"'
    must_exit 1 verb user apply --shown <"$SCRATCH/shown"
    output_has 'was not created: not all of it was chosen'
    output_lacks 'it has changed'
    # A commit more, and the token of a branch is another.
    shown True
    must inside user:sealed 'git commit -q --allow-empty -m two' -R
    must_exit 1 verb user apply --shown <"$SCRATCH/shown"
    output_has 'not applied: refs/heads/main: it has changed since it was shown' 'not all of it was chosen'
    [ ! -e .git/HEAD ]
    # The twin.
    shown True
    must verb user apply --shown <"$SCRATCH/shown"
    [ "$(run_as_user git log -1 --format=%s main)" = two ]
    [ "$(run_as_user git log -1 --format=%s other)" = one ]
}
