#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The completions in the shells they are for: bash and fish are asked, zsh is typed into, in a real
# terminal (tmux).
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for another shell

load lib

setup() {
    scratch_make user
    run_as_user mkdir -p "$SCRATCH/config" "$SCRATCH/here/folder"
    # Without `storage`, jails are kept where the configuration is.
    run_as_user touch "$SCRATCH/config/alpha.jail" "$SCRATCH/config/beta.jail" "$SCRATCH/here/file"
    export BRIG_CONFIG_DIR=$SCRATCH/config
    PATH=$(dirname "$BRIG"):$PATH
    cd "$SCRATCH/here" || return
    TMUX_SOCKET=brigtest-c$$-$BATS_TEST_NUMBER
}

teardown() {
    screen kill-server 2>/dev/null || true
    cd /
    scratch_remove
}

screen() {
    env -u TMUX tmux -L "$TMUX_SOCKET" -f /dev/null "$@"
}

# on_screen REGEX: waits until a line of the screen matches, half a minute at most.
on_screen() {
    local i
    for ((i = 0; i < 300; i++)); do
        screen capture-pane -p -J -t t | sed 's, *$,,' | grep -qE -- "$1" && return
        read -r -t 0.1 <> <(:) || true
    done
    echo "not on the screen: $1" >&2
    screen capture-pane -p -t t | grep . >&2
    return 1
}

# ---- bash ----

# in_bash WORDS…: what bash offers for the last word. A shell that is not interactive has no compopt.
in_bash() {
    run_as_user bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _brig
        printf "%s\n" "${COMPREPLY[@]}"' - "$LIB_ROOT/completions/brig.bash" "$@"
}

@test "bash: jails behind the verbs that take them, then a command" {
    must in_bash brig enter ''
    [ "$(sort <<<"$output")" = $'alpha \nbeta ' ]
    must in_bash brig enter be
    [ "$output" = 'beta ' ]
    must in_bash brig stop al
    [ "$output" = 'alpha ' ]
    must in_bash brig rm alpha b
    [ "$output" = 'beta ' ]
    must in_bash brig -j a
    [ "$output" = 'alpha ' ]
    must in_bash brig ente
    output_has enter
}

@test "bash: a jail behind -j, and paths: of the home behind mask and unmask" {
    local home=$HOME
    ! lib_is_root || home=$(lib_user_home)
    run_as_user mkdir -p "$home/brigtest-mask/inner"
    LIB_SCRATCHES="$LIB_SCRATCHES $home/brigtest-mask"
    must in_bash brig mask -j al
    [ "$output" = 'alpha ' ]
    must in_bash brig unmask -j alpha brigtest-ma
    [ "$output" = 'brigtest-mask/' ]
    must in_bash brig mask brigtest-mask/
    [ "$output" = 'brigtest-mask/inner/' ]
    must run_as_user "$BRIG" --complete mask -j b
    [ "$output" = 'beta ' ]
    must run_as_user "$BRIG" --complete unmask brigtest-ma
    [ "$output" = 'brigtest-mask/' ]
    must in_bash brig keep -j al
    [ "$output" = 'alpha ' ]
    must run_as_user "$BRIG" --complete held --jail b
    [ "$output" = 'beta ' ]
    must run_as_user "$BRIG" --complete discard fo
    [ "$output" = 'folder/' ]
    must run_as_user "$BRIG" --complete mask --j
    [ "$output" = '--jail ' ]
}

# ---- fish ----

# in_fish LINE: what fish offers at its end.
in_fish() {
    run_as_user fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$LIB_ROOT/completions/brig.fish" "$1"
}

@test "fish: it loads, and completes verbs, options, values, files and jails" {
    needs fish
    must run_as_user fish --no-config -c 'source $argv[1]' "$LIB_ROOT/completions/brig.fish"
    [ -z "$output" ]
    must in_fish 'brig ente'
    output_has $'enter\topen a shell'
    must in_fish 'brig --timeo'
    output_has $'--timeout\t'
    must in_fish 'brig --net '
    output_has host
    output_has none
    must in_fish 'brig -m s'
    output_has sealed
    output_has strict
    output_lacks $'casual\t'
    must in_fish 'brig -j al'
    output_has alpha
    output_lacks beta
    must in_fish 'brig run -d fo'
    output_has folder/
    output_lacks file
    must in_fish 'brig --script fi'
    output_has file
}

@test "fish: jails behind the verbs that take them, then a command" {
    needs fish
    must in_fish 'brig enter '
    output_has alpha
    output_has beta
    must in_fish 'brig mask -j al'
    output_has alpha
    must in_fish 'brig stop al'
    output_has alpha
    output_lacks beta
    must in_fish 'brig rm alpha be'
    output_has beta
    # Behind the command its own words follow, and no option of ours.
    must in_fish 'brig ls --col'
    output_lacks --command
    must in_fish 'brig enter alpha --tim'
    output_lacks --timeout
}

# ---- zsh ----

start_zsh() {
    needs tmux zsh
    run_as_user mkdir "$SCRATCH/zsh"
    run_as_user tee "$SCRATCH/zsh/.zshrc" >/dev/null <<END
fpath=($LIB_ROOT/completions \$fpath)
autoload -Uz compinit && compinit -u -d $SCRATCH/zsh/dump
setopt no_list_beep
PS1='%% '
END
    screen new-session -d -s t -x 100 -y 40 \
        "exec bash -c '. \"$LIB_DIR/lib.bash\"; run_as_user env TERM=screen ZDOTDIR=$SCRATCH/zsh PATH=\"$PATH\" BRIG_CONFIG_DIR=$BRIG_CONFIG_DIR zsh -d -i'"
    on_screen '^% *$'
}

# completes TYPED REGEX: with Tab behind it, a line of the screen is as said; then the line is given up.
completes() {
    screen send-keys -t t -l "$1"
    screen send-keys -t t Tab
    on_screen "$2"
    screen send-keys -t t C-u C-l
    on_screen '^% *$'
}

@test "zsh: it loads, and completes verbs, options, values, files and jails" {
    start_zsh
    completes 'brig ente' '^% brig enter$'
    completes 'brig --timeo' '^% brig --timeout=$'
    completes 'brig --net ho' '^% brig --net host$'
    completes 'brig -m se' '^% brig -m sealed$'
    completes 'brig -m ' '^bare +casual +sealed +strict'
    completes 'brig -j al' '^% brig -j alpha$'
    completes 'brig --jail=be' '^% brig --jail=beta$'
    completes 'brig run -d fo' '^% brig run -d folder/$'
    completes 'brig why fi' '^% brig why file$'
    completes 'brig docto' '^% brig doctor$'
}

@test "zsh: jails behind the verbs that take them, then a command" {
    start_zsh
    completes 'brig enter al' '^% brig enter alpha$'
    completes 'brig enter ' '^alpha +beta'
    completes 'brig stop be' '^% brig stop beta$'
    completes 'brig mask -j be' '^% brig mask -j beta$'
    completes 'brig rm alpha be' '^% brig rm alpha beta$'
    completes 'brig enter alpha truncat' '^% brig enter alpha truncate$'
    completes 'brig enter alpha cat fi' '^% brig enter alpha cat file$'
    completes 'brig cat fi' '^% brig cat file$'
}
