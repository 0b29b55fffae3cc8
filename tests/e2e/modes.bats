#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A jail in every mode, as root and as a user: the command runs in its project, its changes stay where the mode
# says, and what lies outside is out of reach. A part of `make check`: the other suites look closer.
# shellcheck disable=SC2016 # the command's text is for the shell in the jail

load lib

setup() {
    jails_setup
    run_as_user sh -c 'echo mine >file; mkdir ../outside; echo secret >../outside/secret'
}

teardown() {
    jails_teardown
}

# runs WHO MODE OPTIONS…: a command that reads and writes the project, and tries what is outside.
runs() {
    local who=$1 mode=$2
    shift 2
    rm -f made
    must by "$who" -m "$mode" "$@" -- sh -c 'cat file && echo new >made && cat made &&
        { ! echo x 2>/dev/null >../outside/made || rm ../outside/made; } && echo ended'
    [ "$output" = $'mine\nnew\nended' ]
    [ "$(cat made)" = new ]
    [ "$(ls ../outside)" = secret ]
    must_exit 7 by "$who" -m "$mode" "$@" -- sh -c 'exit 7'
}

@test "casual: the home is a copy, and a command is run in it" {
    for who in $(everyone); do
        jail "$who" "mode-$who"
        runs "$who" casual -j "mode-$who"
        must by "$who" -m casual -j "mode-$who" -- sh -c 'echo kept >~/kept-by-test; cat ~/kept-by-test'
        drop_told
        [ "$output" = kept ]
        [ ! -e "$HOME_OF_USER/kept-by-test" ]
    done
}

@test "strict: the home is empty and the jail's own" {
    for who in $(everyone); do
        jail "$who" "mode-$who"
        runs "$who" strict -j "mode-$who"
        must_fail by "$who" -m strict -j "mode-$who" -- cat "$SCRATCH/outside/secret"
    done
}

@test "bare: the home is empty and the jail's own, and what is in the user's is hidden" {
    for who in $(everyone root); do
        jail "$who" "mode-$who"
        runs "$who" bare -j "mode-$who" -d .
        # For root the other user's home is not its own, and not hidden.
        [ "$who" = root ] || must_fail by "$who" -m bare -j "mode-$who" -- cat "$SCRATCH/outside/secret"
    done
}

@test "sealed: nothing is kept, and there is no network" {
    for who in $(everyone root); do
        runs "$who" sealed -d .
        must_fail by "$who" -m sealed -D -- cat "$SCRATCH/outside/secret"
        must by "$who" -m sealed -D -- sh -c 'grep -c : /proc/net/dev'
        [ "$output" -le 1 ]
    done
}
