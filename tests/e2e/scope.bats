#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a verb without paths is about: in a reviewed directory this directory, elsewhere all changes of the jail. What
# is left elsewhere is named with the command for it.

# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

setup() {
    repos_setup
}

teardown() {
    rm -f "$HOME_OF_USER/dotfile" "$HOME_OF_USER/second"
    repos_teardown
}

# verb VERB ARGS…: a verb for the jail of this test.
verb() {
    local name=$1
    shift
    by user "$name" -j "$JAIL" "$@"
}

# work: a run that changes a file of the project and one of the home.
work() {
    project user
    run_as_user mkdir -p sub
    must inside user:casual 'echo x >a; echo h >~/dotfile; git checkout -q -b feature; git commit -q -a -m second' -R
}

@test "apply --all and diff in a reviewed directory leave the home alone, and name the command for it" {
    work
    must verb diff --no-pager
    output_has '+x'
    output_lacks dotfile
    output_has "brig: 1 change is elsewhere: brig diff -j $JAIL $HOME_OF_USER"
    must verb apply --dry-run --all
    output_has "modify $PROJECT/a"
    output_lacks dotfile
    cd sub # the whole directory is meant
    must verb apply --all
    cd ..
    output_has 'brig: applied 1 change'
    output_has 'git: 1 commit on feature'
    output_has "brig: 1 change is elsewhere: brig diff -j $JAIL $HOME_OF_USER"
    [ "$(cat a)" = x ]
    [ ! -e "$HOME_OF_USER/dotfile" ]
    must verb apply --all
    output_has 'there is nothing to apply'
    # The twin: with its path.
    must verb apply "$HOME_OF_USER"
    output_has 'applied 1 change'
    output_lacks elsewhere
    [ "$(cat "$HOME_OF_USER/dotfile")" = h ]
}

@test "from outside the reviewed directory, everything is meant" {
    work
    cd "$HOME_OF_USER"
    must verb diff --no-pager
    output_has '+x'
    output_has '+h'
    must verb apply --all
    output_has 'applied 2 changes'
    output_lacks elsewhere
    [ "$(cat "$PROJECT/a" dotfile)" = $'x\nh' ]
}

@test "apply . at the top moves the branches, as apply --all does, and apply FILE does not" {
    work
    must verb apply a
    output_has "git: the jail's commits wait"
    [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
    must verb apply .
    output_has 'applied what was done in git; brig undo'
    output_has 'git: 1 commit on feature'
    output_lacks elsewhere
    [ "$(out symbolic-ref HEAD)" = refs/heads/feature ]
}

@test "apply . below the top does not move the branches" {
    work
    cd sub
    must_exit 1 verb apply .
    output_lacks 'git:'
    [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
}

@test "discard --all in a reviewed directory leaves the home's changes" {
    work
    must verb discard --all
    output_has 'brig: discarded 1 change'
    output_has "git: the jail's branches are dropped"
    output_has "brig: 1 change is elsewhere: brig diff -j $JAIL $HOME_OF_USER"
    must verb status
    output_has dotfile
    output_lacks '  M  a'
    must verb discard "$HOME_OF_USER"
    must verb status
    output_has 'no changes'
}

@test "undo in a reviewed directory means the last operation there" {
    work
    must verb apply --all
    must verb apply "$HOME_OF_USER"
    must verb undo
    output_has "(apply $PROJECT) was undone"
    output_has "changed something elsewhere: brig undo -j $JAIL "
    [ "$(cat a)" = a ]
    [ "$(cat "$HOME_OF_USER/dotfile")" = h ]
    must_exit 125 verb undo
    output_has "there is no operation at '$PROJECT' that can be undone"
    cd "$HOME_OF_USER"
    must verb undo
    [ ! -e dotfile ]
}

@test "undo in a reviewed directory reverts its part of an operation that was made elsewhere" {
    work
    cd "$HOME_OF_USER"
    must verb apply --all
    cd "$PROJECT"
    must verb undo
    output_has 'a part of operation'
    output_has "changed something elsewhere: brig undo -j $JAIL "
    [ "$(cat a "$HOME_OF_USER/dotfile")" = $'a\nh' ]
}

@test "undo with a word that no operation has changed names it" {
    work
    must verb apply --all
    must_exit 125 verb undo nosuch
    output_has "there is no operation at '$PROJECT/nosuch' that can be undone. The newest elsewhere is: brig undo -j $JAIL "
    id=$(by user log -j "$JAIL" --json | python3 -c '
import json, sys
print([o["id"] for o in json.load(sys.stdin) if o["kind"] == "apply"][0])')
    must_exit 125 verb undo "$id" nosuch
    output_has "operation $id has nothing to undo at '$PROJECT/nosuch'. See brig log -j $JAIL $id"
    must verb undo a
    [ "$(cat a)" = a ]
}

@test "status lists the reviewed directory first, and everything" {
    work
    must verb status
    [[ $output == *"$PROJECT, reviewed"*dotfile* ]]
    cd "$HOME_OF_USER"
    must verb status
    [[ $output == *dotfile*"$PROJECT, reviewed"* ]]
}

@test "review shows the reviewed directory, a path, or everything" {
    work
    answers() { printf '%s\n' "$1" | by user review --plain -j "$JAIL" "${@:2}"; }
    must answers q
    output_has '3 changes in jail' # the file, the branch, and HEAD with the index
    output_has "$PROJECT/a"
    output_lacks /dotfile
    output_has "brig: 1 change is elsewhere: brig review -j $JAIL $HOME_OF_USER"
    must answers q "$HOME_OF_USER"
    output_has "$HOME_OF_USER/dotfile"
    output_lacks "$PROJECT/a"
    cd "$HOME_OF_USER"
    must answers q
    output_has '4 changes in jail'
}
