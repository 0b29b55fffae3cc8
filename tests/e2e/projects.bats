#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each project has a jail of its own: what a command leaves in its home in one project is not there
# in another. Which jail a run uses, and how the jails of projects are listed and removed.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    jails_setup
    ONE=$SCRATCH/project
    TWO=$SCRATCH/two
    run_as_user mkdir "$TWO"
    STORE=$HOME_OF_USER/.local/share/brig
}

teardown() {
    run_as_user rm -rf "$HOME_OF_USER/.config/brig"
    jails_teardown
}

# in_dir DIRECTORY WHO ARGS…: brig there.
in_dir() {
    local at=$1
    shift
    (cd "$at" && by "$@")
}

# jail_in DIRECTORY: the name of the jail that a run without -j uses there.
jail_in() {
    (cd "$1" && run_as_user "$BRIG" -- sh -c 'echo $BRIG_JAIL' 2>/dev/null)
}

@test "what a command leaves in its home in one project does not exist in another" {
    local who
    for who in $(everyone); do
        must in_dir "$ONE" "$who" sh -c 'echo "alias ls=rm" >~/.left; cat ~/.left'
        output_has "alias ls=rm"
        # The twin: in the same project it is still there.
        must in_dir "$ONE" "$who" cat "$HOME_OF_USER/.left"
        must_fail in_dir "$TWO" "$who" cat "$HOME_OF_USER/.left"
        must in_dir "$ONE" "$who" discard --all
    done
}

@test "a repository is one project, from each of its directories" {
    local top
    run_as_user mkdir -p "$ONE/a/b"
    run_as_user git -C "$ONE" init -q
    top=$(jail_in "$ONE")
    [ "$(jail_in "$ONE/a/b")" = "$top" ]
    # The twin: without a repository, each directory is a project.
    run_as_user mkdir -p "$TWO/a"
    [ "$(jail_in "$TWO/a")" != "$(jail_in "$TWO")" ]
    # A worktree is a project of its own.
    run_as_user git -C "$ONE" -c user.name=n -c user.email=e commit -q --allow-empty -m first
    run_as_user git -C "$ONE" worktree add -q "$SCRATCH/tree"
    [ "$(jail_in "$SCRATCH/tree")" != "$top" ]
}

@test "a repository in the home directory does not make the whole home one project" {
    run_as_user git -C "$HOME_OF_USER" init -q
    local one two
    one=$(jail_in "$ONE")
    two=$(jail_in "$TWO")
    rm -rf "$HOME_OF_USER/.git"
    [ "$one" != "$two" ]
}

@test "a repository that another user has made around projects does not make them one" {
    lib_is_root || cannot "only root can act as another user"
    local shared one two
    shared=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brigtest.XXXXXXXX")
    chmod 1777 "$shared"
    run_as_user mkdir "$shared/one" "$shared/two"
    setpriv --reuid=65534 --clear-groups mkdir "$shared/.git"
    one=$(jail_in "$shared/one")
    two=$(jail_in "$shared/two")
    # The twin: a repository of the user's own.
    rmdir "$shared/.git"
    run_as_user mkdir "$shared/.git"
    local both again
    both=$(jail_in "$shared/one")
    again=$(jail_in "$shared/two")
    jail user "$both"
    scratch_remove_jails "$shared"
    rm -rf "$shared"
    [ -n "$one" ]
    [ "$one" != "$two" ]
    [ -n "$both" ]
    [ "$both" = "$again" ]
}

@test "without a project the jail is 'default', and -j and the configuration choose another" {
    jail user default
    jail user work
    must by user -D -- sh -c 'echo $BRIG_JAIL'
    [ "$output" = default ]
    must in_dir "$HOME_OF_USER" user -D -- sh -c 'echo $BRIG_JAIL'
    [ "$output" = default ]
    must by user -j work -- sh -c 'echo $BRIG_JAIL $BRIG_MODE'
    [ "$output" = "work strict" ]
    run_as_user mkdir -p "$HOME_OF_USER/.config/brig"
    echo 'jail default' | run_as_user tee "$HOME_OF_USER/.config/brig/default.conf" >/dev/null
    must by user -- sh -c 'echo $BRIG_JAIL $BRIG_MODE'
    [ "$output" = "default casual" ]
    must by user -j work -- sh -c 'echo $BRIG_JAIL'
    [ "$output" = work ]
}

@test "a project's jail has the mode of the .conf file, and by its name the same mode" {
    local name
    name=$(jail_in "$ONE")
    # By its name, elsewhere: casual, and not strict as for other names.
    must in_dir "$TWO" user -j "$name" -- sh -c 'echo $BRIG_JAIL $BRIG_MODE'
    [ "$output" = "$name casual" ]
    run_as_user mkdir -p "$HOME_OF_USER/.config/brig"
    echo 'mode strict' | run_as_user tee "$HOME_OF_USER/.config/brig/sh.conf" >/dev/null
    must by user sh -c 'echo $BRIG_JAIL $BRIG_MODE'
    [ "$output" = "$name strict" ]
}

@test "verbs mean the jail of the directory they are in" {
    must by user sh -c 'echo 1 >~/.one'
    # No -j is needed here,
    output_has "see brig status"
    output_lacks "-j"
    must by user status
    output_has .one
    # but elsewhere.
    must in_dir "$TWO" user status
    output_lacks .one
    must in_dir "$TWO" user -j "$(jail_in "$ONE")" sh -c 'echo 2 >~/.two'
    output_has "see brig status -j $(jail_in "$ONE")"
    run_as_user sh -c 'echo real >~/.three'
    must by user mask .three
    must_fail by user cat "$HOME_OF_USER/.three"
    must in_dir "$TWO" user cat "$HOME_OF_USER/.three"
    run_as_user rm "$HOME_OF_USER/.three"
    must by user discard --all
}

@test "users with a jail of an earlier version are told once" {
    jail user default
    run_as_user mkdir -p "$STORE"
    run_as_user rm -f "$STORE/.projects/jails"
    echo '# mode casual' | run_as_user tee "$STORE/default.jail" >/dev/null
    must by user true
    output_has "each project now has a jail of its own"
    output_has "brig -j default"
    must by user true
    output_lacks "each project"
    # The twin: whoever makes 'default' with this version knows no other.
    by user stop default || true
    must by user rm -f default
    run_as_user rm -f "$STORE/.projects/jails"
    must by user -D true
    must by user true
    output_lacks "each project"
}

@test "brig list shows the project, brig gc removes jails of projects that are gone" {
    local name
    run_as_user mkdir "$SCRATCH/an odd  näme"
    name=$(jail_in "$SCRATCH/an odd  näme")
    [[ $name == an_odd__n* ]]
    must by user list
    output_has "$SCRATCH/an odd"
    must by user gc
    output_lacks "$name"
    rm -r "$SCRATCH/an odd  näme"
    must by user gc
    output_has "$name: its project"
    output_has "brig gc --gone"
    must by user gc --gone --dry-run
    output_has "would be removed"
    must by user list
    output_has "$name"
    must by user gc --gone
    output_has "is removed"
    must by user list
    output_lacks "$name"
}

@test "a project whose jail would have the name of another project's gets a jail of its own" {
    local name who store
    for who in $(everyone); do
        must in_dir "$ONE" "$who" sh -c 'echo planted >~/.left; echo $BRIG_JAIL'
        name=${lines[0]}
        # Directories can be named so that the hashes are the same; here the record is changed instead.
        [ "$(cat "$STORE/$name.project")" = "$ONE" ]
        printf %s "$SCRATCH/another" | run_as_user tee "$STORE/$name.project" >/dev/null
        must_fail in_dir "$ONE" "$who" cat "$HOME_OF_USER/.left"
        must in_dir "$ONE" "$who" sh -c 'echo $BRIG_JAIL $BRIG_MODE'
        [ "${lines[0]}" = "$name-2 casual" ]
        must in_dir "$ONE" "$who" status
        output_lacks .left
        [ "$(cat "$STORE/$name-2.project")" = "$ONE" ]
        # The twin: with its own record it is the same jail.
        printf %s "$ONE" | run_as_user tee "$STORE/$name.project" >/dev/null
        must in_dir "$ONE" "$who" cat "$HOME_OF_USER/.left"
        by "$who" stop "$name-2" || true
        must by "$who" rm "$name-2"
        must in_dir "$ONE" "$who" discard --all
    done
}

@test "removing the jail of a project leaves the project's files" {
    local name
    echo mine | run_as_user tee "$ONE/file" >/dev/null
    name=$(jail_in "$ONE")
    by user stop "$name"
    must by user rm "$name"
    [ "$(cat "$ONE/file")" = mine ]
    [ ! -e "$STORE/$name.project" ]
}
