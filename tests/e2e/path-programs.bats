#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs that a jail or a cloned repository has put into a directory of the project that is in PATH: brig does not start
# them outside.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # scripts for another shell

load lib

setup() {
    needs git
    jails_setup
    JAIL=path-${BATS_TEST_NUMBER:-0}
    jail user "$JAIL"
    run_as_user sh -ec 'git init -q .; echo a >a; git add a; git -c user.name=a -c user.email=a@b commit -q -m a
                        mkdir -p node_modules/.bin sub/.git bin'
    RAN=$SCRATCH/project/ran
}

teardown() {
    jails_teardown
}

# plant NAME: a program that leaves a file, and fails.
plant() {
    run_as_user sh -ec 'printf "#!/bin/sh\necho %s >>%s\nexit 1\n" "$1" "$2" >node_modules/.bin/"$1"; chmod 755 node_modules/.bin/"$1"; cp node_modules/.bin/"$1" bin' sh "$1" "$RAN"
}

# brig in the project, with PATH as developers have it.
planted() {
    PATH=./bin:$SCRATCH/project/node_modules/.bin:$PATH run_as_user "$BRIG" "$@"
}

@test "git is not taken from the project, in any verb" {
    plant git
    # The twin: these directories come first, and a shell runs what is in them.
    PATH=$SCRATCH/project/node_modules/.bin:$PATH run run_as_user sh -c 'git --version'
    [ -e "$RAN" ]
    rm "$RAN"
    must planted -R -j "$JAIL" -- sh -c 'echo b >>a; echo c >c'
    must planted status -j "$JAIL"
    must planted diff -j "$JAIL" --no-pager
    output_has +b
    must planted apply -j "$JAIL" --all
    must planted undo -j "$JAIL"
    must planted discard -j "$JAIL" --all
    run planted doctor
    must planted --checkpoint -j "$JAIL" -- sh -c 'echo d >>a'
    must planted undo -j "$JAIL"
    must planted gc
    # In a repository that the jail has made in the project, too.
    cd sub
    run planted diff -j "$JAIL" --no-pager
    run planted doctor
    [ ! -e "$RAN" ]
}

@test "nor are the programs of options and of git" {
    plant gpgconf
    plant tell
    plant cat
    run planted --gpg-agent -- true
    run planted --net allow --inject "api.example.com authorization=cmd:tell" -- true
    [ "$status" -eq 125 ]
    output_has failed
    must planted -R -j "$JAIL" -- sh -c 'echo b >>a'
    PAGER="cat" must planted diff -j "$JAIL"
    [ ! -e "$RAN" ]
    # The twin: a program of the user, and a path that the user has typed.
    must planted --net allow --inject "api.example.com authorization=cmd:printf x" -- true
    run planted --net allow --inject "api.example.com authorization=cmd:./bin/tell" -- true
    [ -e "$RAN" ]
}
