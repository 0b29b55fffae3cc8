#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Git in a jail, in repositories that are large or of a newer format.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2154 # output is set by `run`

load lib
load hostile

@test "with 100,000 refs: a commit arrives, and a new branch is there in the next run" {
    local first
    for pair in $(pairs); do
        project "${pair%:*}"
        first=$(out rev-parse HEAD)
        seq -f "create refs/heads/b/%.0f $first" 100000 | out update-ref --stdin
        out pack-refs --all
        must inside "$pair" 'echo c >c; git add c; git commit -q -m c; git branch new; git branch -q -D b/7'
        output_has "git: 1 commit on main"
        [ "$(out log --format=%s new)" = $'c\nfirst' ]
        [ "$(out for-each-ref refs/heads | wc -l)" = 100001 ]
        must_fail out rev-parse -q --verify refs/heads/b/7
        must inside "$pair" 'git rev-parse -q --verify new; git for-each-ref refs/heads | wc -l'
        output_has 100001
        [ -z "$(out for-each-ref refs/brig)" ] # what b/7 was is in main
    done
}

@test "with 100,000 refs made in the jail" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'seq -f "create refs/heads/b/%.0f $(git rev-parse HEAD)" 100000 | git update-ref --stdin'
        [ "$(out for-each-ref refs/heads | wc -l)" = 100001 ]
        nothing_left
    done
}

@test "with an index of 100 MB: a commit and a staged file arrive" {
    local blob
    for pair in $(pairs); do
        project "${pair%:*}"
        blob=$(out rev-parse HEAD:a)
        # Skipped in the working tree, as in a sparse checkout: so many files are not needed on disk.
        seq -f "100644 $blob	a/long/path/of/a/file/in/a/very/large/repository/%.0f" 900000 | out update-index --index-info
        seq -f "a/long/path/of/a/file/in/a/very/large/repository/%.0f" 900000 | out update-index --skip-worktree --stdin
        out commit -q -m large
        [ "$(stat -c %s .git/index)" -gt 100000000 ]
        must inside "$pair" 'echo c >c; git add c; git commit -q -m c; echo d >d; git add d'
        output_has "git: 1 commit on main, 1 file staged"
        [ "$(out diff --cached --name-only)" = d ]
        [ "$(out ls-files -t | grep -c '^S')" = 900000 ]
        [ -z "$(out status --porcelain -uno | grep -v '^A  d$')" ]
        nothing_left
    done
}

@test "with the reftable format: it works, or git's own error is shown before the run" {
    for pair in $(pairs); do
        enter_project "${pair%:*}"
        if as "$OWNER" git init -q -b main --ref-format=reftable 2>/dev/null; then
            as "$OWNER" sh -ec 'echo a >a; git add a; git commit -q -m first'
            must inside "$pair" 'echo c >c; git add c; git commit -q -m c; git switch -q -c new; git tag t; state'
            arrived
            [ "$(out log --format=%s new)" = $'c\nfirst' ]
            nothing_left
            continue
        fi
        as "$OWNER" sh -ec 'git init -q -b main; echo a >a; git add a; git commit -q -m first'
        out config core.repositoryFormatVersion 1
        out config extensions.refStorage reftable
        run inside "$pair" 'echo ran >ran'
        [ "$status" -eq 125 ]
        [ ! -e ran ]
        output_has "unknown repository extension found:  refstorage"
        # The twin: without the extension it runs.
        sed -i '/refStorage/d' .git/config
        must inside "$pair" 'echo ran >ran'
        [ -e ran ]
    done
}

@test "more directories than are searched: a new submodule does not arrive" {
    hostile_project
    run inside user:sealed "MARK='$MARK'; $EVIL"'evil z/z/e; git add z 2>/dev/null; git commit -q -m link; git branch other
        mkdir a1 && cd a1 && seq 200001 | xargs mkdir'
    output_has "more than 200000 directories"
    output_has "main was not moved"
    output_has "other was not moved"
    use
    [ ! -e "$RAN" ]
    chmod -R u+rwx a1
}
