#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The completions in the shells they are for: bash and fish are asked, zsh and bash are typed into, in a
# real terminal (tmux).
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for another shell

load lib
load screen

# What zsh finds out about its functions at the first start is kept for the others.
setup_file() {
    scratch_make user
    export ZSH_DUMP=$SCRATCH
}

teardown_file() {
    rm -rf -- "$ZSH_DUMP"
}

setup() {
    scratch_make user
    run_as_user mkdir -p "$SCRATCH/config" "$SCRATCH/here/folder"
    # Without `storage`, jails are kept where the configuration is.
    run_as_user touch "$SCRATCH/config/alpha.jail" "$SCRATCH/config/beta.jail" "$SCRATCH/here/file"
    export BRIG_CONFIG_DIR=$SCRATCH/config
    PATH=$(dirname "$BRIG"):$PATH
    cd "$SCRATCH/here" || return
}

teardown() {
    stop_screen
    cd /
    scratch_remove
}

# ---- bash ----

# in_bash WORDS…: what bash offers for the last word. A shell that is not interactive has no compopt. As in an
# interactive one, '=' and ':' are words of their own.
in_bash() {
    run_as_user bash -c 'source "$1"; quote=$2; shift 2; COMP_LINE="$*" COMP_POINT=${#COMP_LINE}; compopt() { :; }
        for word; do
            while [[ $word == *[=:]* && $word != "$quote"* ]]; do
                before=${word%%[=:]*}
                sign=${word:${#before}:1}
                [[ ! $before ]] || COMP_WORDS+=("$before")
                COMP_WORDS+=("$sign")
                word=${word:${#before} + 1}
                [[ $word ]] || continue 2
            done
            COMP_WORDS+=("$word")
        done
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _brig
        printf "%s\n" "${COMPREPLY[@]}"' - "$LIB_ROOT/completions/brig.bash" "'" "$@"
}

@test "bash: jails after the verbs that take them, then a command" {
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
    must in_bash brig enter alpha truncat
    output_has truncate
}

@test "bash: values of options, also after '='" {
    must in_bash brig --mode=se
    [ "$output" = 'sealed ' ]
    must in_bash brig --mode=
    output_has 'strict '
    must in_bash brig --allow @np
    [ "$output" = '@npm ' ]
    must in_bash brig --inject @anth
    [ "$output" = '@anthropic ' ]
    must in_bash brig --inject "'@github fi"
    [ "$output" = '@github file:' ]
    must in_bash brig --profile cla
    [ "$output" = 'claude ' ]
    must in_bash brig -d fo
    [ "$output" = folder ]
    must in_bash brig --dir=fo
    [ "$output" = folder ]
    must in_bash brig --timeo
    [ "$output" = '--timeout ' ]
}

@test "bash: options and words of verbs" {
    must in_bash brig cp al
    output_has alpha:
    must in_bash brig cp fi
    [ "$output" = file ]
    must in_bash brig apply --conflict th
    [ "$output" = 'theirs ' ]
    must in_bash brig apply --ris
    [ "$output" = '--risky ' ]
    must in_bash brig diff --jails be
    [ "$output" = 'beta ' ]
    must in_bash brig profiles gem
    [ "$output" = 'gemini ' ]
    must in_bash brig help netw
    [ "$output" = 'network ' ]
    must in_bash brig import j
    [ "$output" = 'jai ' ]
}

@test "bash: in a terminal, a name with a blank is quoted" {
    run_as_user mkdir "$SCRATCH/here/two words"
    run_as_user tee "$SCRATCH/bashrc" >/dev/null <<END
. $LIB_ROOT/completions/brig.bash
PS1='% '
END
    start_shell "bash --noprofile --rcfile $SCRATCH/bashrc -i"
    completes 'brig --allow=@np' '^% brig --allow=@npm$'
    completes 'brig cp al' '^% brig cp alpha:$'
    completes 'brig run -d two' '^% brig run -d two\\ words/$'
    completes "brig --inject '@github oau" "^% brig --inject '@github oauth:'?$"
    completes 'brig help secr' '^% brig help secrets$'
}

# A program in a jail can create such files where its changes are applied.
@test "bash: the name of a file is neither a command nor an instruction of brig" {
    local home=$HOME name
    ! lib_is_root || home=$LIB_USER_HOME
    for name in '_command_offset a[$(touch ran)]' '_files a[$(touch ran)]' '_directories a[$(touch ran)]'; do
        run_as_user touch "$home/$name"
        run in_bash brig mask "${name%% *}"
        run_as_user rm "$home/$name"
        [ "$status" -eq 0 ]
        [ "$output" = "$(printf '%q ' "$name")" ]
    done
    run_as_user touch 'file$(touch ran)' 'file;touch ran' "file'touch ran'"
    must in_bash brig cp fi
    # Bash quotes these itself.
    [ "$(sort <<<"$output")" = "$(printf '%s\n' file "file'touch ran'" 'file$(touch ran)' 'file;touch ran' | sort)" ]
    run_as_user touch "$SCRATCH/config/file.jail"
    must in_bash brig cp fi
    [ "$(sort <<<"$output")" = "$(printf '%q\n' file: file "file'touch ran'" 'file$(touch ran)' 'file;touch ran' | sort)" ]
    must in_bash brig cp "'fi"
    [ "$(sort <<<"$output")" = "$(printf '%s\n' file: file 'file;touch ran' | sort)" ]
    [ ! -e ran ]
}

@test "paths of the home after mask and unmask, and candidates of brig itself" {
    local home=$HOME
    ! lib_is_root || home=$LIB_USER_HOME
    run_as_user mkdir -p "$home/brigtest-mask/inner"
    LIB_SCRATCHES="$LIB_SCRATCHES $home/brigtest-mask"
    must in_bash brig mask -j al
    [ "$output" = 'alpha ' ]
    must in_bash brig unmask -j alpha brigtest-ma
    [ "$output" = 'brigtest-mask/' ]
    must in_bash brig mask brigtest-mask/
    [ "$output" = 'brigtest-mask/inner/' ]
    must run_as_user "$BRIG" --complete --mask ./fo
    [ "$output" = $'\t_files 0' ]
    must run_as_user "$BRIG" --complete held --jail b
    [ "$output" = 'beta ' ]
    must run_as_user "$BRIG" --complete discard fo
    [ "$output" = $'\t_files 0' ]
    must run_as_user "$BRIG" --complete mask --j
    [ "$output" = $'--jail \tthe jail; without it, that of this project' ]
    must run_as_user "$BRIG" --complete mcp-wrap --name x --allow=@pyp
    [ "$output" = $'--allow=@pypi \tthe Python package index' ]
    must run_as_user "$BRIG" --complete logout cl
    output_has $'claude \t'
    # After the options of a verb that takes no command there is nothing.
    must run_as_user "$BRIG" --complete list x
    [ -z "$output" ]
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
    must in_fish 'brig run --dir=fo'
    output_has --dir=folder/
    must in_fish 'brig --allow @np'
    output_has $'@npm\tthe registry'
    must in_fish 'brig --inject @git'
    output_has $'@github\t'
    output_has $'@git\t'
    must in_fish 'brig --profile=cla'
    output_has $'--profile=claude\t'
    must in_fish 'brig --script fi'
    output_has file
}

@test "fish: jails after the verbs that take them, then a command" {
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
    must in_fish 'brig cp al'
    output_has alpha:
    must in_fish 'brig apply --conflict th'
    output_has theirs
    must in_fish 'brig apply --ri'
    output_has $'--risky\t'
    must in_fish 'brig enter alpha truncat'
    output_has truncate
    # Behind the command its own words follow, and no option of ours.
    must in_fish 'brig ls --col'
    output_lacks --command
    must in_fish 'brig enter alpha --tim'
    output_lacks --timeout
}

# ---- zsh ----

# start_shell COMMAND [VARIABLE]
start_shell() {
    start_screen 100 40 PATH=\""$PATH"\" BRIG_CONFIG_DIR="$BRIG_CONFIG_DIR" ${2:+"$2"} "$1"
}

start_zsh() {
    needs zsh
    run_as_user mkdir "$SCRATCH/zsh"
    run_as_user tee "$SCRATCH/zsh/.zshrc" >/dev/null <<END
fpath=($LIB_ROOT/completions \$fpath)
autoload -Uz compinit && compinit -u -d $ZSH_DUMP/dump
setopt no_list_beep
PS1='%% '
END
    start_shell 'zsh -d -i' "ZDOTDIR=$SCRATCH/zsh"
}

# completes TYPED REGEX: with Tab behind it, a line of the screen is as said; then the line is given up.
completes() {
    screen send-keys -t t -l "$1" \; send-keys -t t Tab
    shows "$2"
    keys C-u C-l
    shows '^% *$'
}

@test "zsh: it loads, and completes verbs, options, values, files and jails" {
    start_zsh
    completes 'brig ente' '^% brig enter$'
    completes 'brig --timeo' '^% brig --timeout$'
    completes 'brig --net ho' '^% brig --net host$'
    completes 'brig -m se' '^% brig -m sealed$'
    completes 'brig -m ' '^bare +casual +sealed +strict'
    completes 'brig -j al' '^% brig -j alpha$'
    completes 'brig --jail=be' '^% brig --jail=beta$'
    completes 'brig run -d fo' '^% brig run -d folder/$'
    completes 'brig why fi' '^% brig why file$'
    completes 'brig docto' '^% brig doctor$'
    completes 'brig --allow=@np' '^% brig --allow=@npm$'
    completes 'brig --inject @anth' '^% brig --inject @anthropic$'
    completes 'brig run --dir=fo' '^% brig run --dir=folder/$'
    completes 'brig --profile cla' '^% brig --profile claude$'
    completes 'brig help secr' '^% brig help secrets$'
}

@test "zsh: the name of a file is neither a command nor an instruction of brig" {
    local home=$HOME name='_files a[$(touch ran)]'
    ! lib_is_root || home=$LIB_USER_HOME
    start_zsh
    run_as_user touch "$home/$name" 'here$(touch ran)'
    run completes 'brig mask _fi' '^% brig mask _files\\ a\\\[\\\$\\\(touch\\ ran\\\)\\\]$'
    run_as_user rm "$home/$name"
    [ "$status" -eq 0 ]
    completes 'brig cp here' '^% brig cp here\\\$\\\(touch\\ ran\\\)$'
    [ ! -e ran ]
}

@test "zsh: jails after the verbs that take them, then a command" {
    start_zsh
    completes 'brig enter al' '^% brig enter alpha$'
    completes 'brig enter ' '^alpha +beta'
    completes 'brig stop be' '^% brig stop beta$'
    completes 'brig mask -j be' '^% brig mask -j beta$'
    completes 'brig rm alpha be' '^% brig rm alpha beta$'
    completes 'brig enter alpha truncat' '^% brig enter alpha truncate$'
    completes 'brig enter alpha cat fi' '^% brig enter alpha cat file$'
    completes 'brig cat fi' '^% brig cat file$'
    completes 'brig cp al' '^% brig cp alpha:$'
    completes 'brig apply --conflict th' '^% brig apply --conflict theirs$'
    completes 'brig apply --r' '^% brig apply --risky$'
}

# ---- brigctl ----

# ctl_in_bash WORD…: what bash offers for the last word.
ctl_in_bash() {
    run_as_user env PATH="$BUILD_DIR/src/client:$PATH" bash -c '
        . "$1"
        shift
        compopt() { echo "files"; }
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _brigctl
        printf "%s\n" "${COMPREPLY[@]}"' - "$LIB_ROOT/completions/brigctl.bash" "$@"
}

# From the help texts: every command, and every option of each of $commands.
ctl_commands() {
    "$BUILD_DIR/src/client/brigctl" --help | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p'
}
ctl_options() {
    local command
    for command in '' $commands; do
        # shellcheck disable=SC2086 # no word
        "$BUILD_DIR/src/client/brigctl" $command --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'
    done | sort -u
}

@test "brigctl: bash completes commands, languages, options, states and files" {
    [ -x "$BUILD_DIR/src/client/brigctl" ] || cannot "brigctl was not built"
    must ctl_in_bash brigctl he
    [ "$output" = health ]
    must ctl_in_bash brigctl exec py
    [ "$output" = python ]
    must ctl_in_bash brigctl --server unix:/x exec python --no-
    [ "$output" = --no-stream ]
    must ctl_in_bash brigctl submit python --pri
    [ "$output" = --priority ]
    must ctl_in_bash brigctl submit python --mem
    [ "$output" = --memory ]
    must ctl_in_bash brigctl ls --status ti
    [ "$output" = timeout ]
    must ctl_in_bash brigctl --js
    [ "$output" = --json ]
    must ctl_in_bash brigctl exec python ''
    [ "$(head -n 1 <<<"$output")" = files ]
    must ctl_in_bash brigctl exec python --timeout ''
    [ -z "$output" ]
}

@test "brigctl: fish completes the same" {
    needs fish
    offered() {
        run_as_user fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$LIB_ROOT/completions/brigctl.fish" "$1"
    }
    must offered 'brigctl he'
    output_has $'health\tprint'
    must offered 'brigctl exec py'
    output_has python
    must offered 'brigctl exec python --no-'
    output_has --no-stream
    must offered 'brigctl ls --status ti'
    output_has timeout
}

@test "brigctl: zsh completes the same" {
    start_zsh
    completes 'brigctl hea' '^% brigctl health$'
    completes 'brigctl exec pyt' '^% brigctl exec python$'
    completes 'brigctl exec python --no-' '^% brigctl exec python --no-stream$'
    completes 'brigctl submit python --pri' '^% brigctl submit python --priority$'
    completes 'brigctl ls --status ti' '^% brigctl ls --status timeout$'
}

@test "brigctl: the shells know every command and option that the help texts have" {
    [ -x "$BUILD_DIR/src/client/brigctl" ] || cannot "brigctl was not built"
    local option command commands bash zsh fish count=0
    commands=$(ctl_commands)
    bash=$(grep -o "words='.*" "$LIB_ROOT/completions/brigctl.bash")
    zsh=$(<"$LIB_ROOT/completions/_brigctl") fish=$(<"$LIB_ROOT/completions/brigctl.fish")
    has() { # has TEXT REGEX
        [[ $1 =~ $2 ]] || {
            echo "nothing is like $2" >&2
            return 1
        }
    }
    [ "$(wc -l <<<"$commands")" -ge 9 ]
    for command in $commands; do
        has "$bash" "\\b$command\\b"
        has "$zsh" "'$command:"
        has "$fish" "-a $command -d"
    done
    while IFS= read -r option; do
        has "$zsh" "$option[][}'=,]"
        has "$fish" "-l ${option#--} "
        count=$((count + 1))
    done < <(ctl_options)
    [ "$count" -ge 15 ]
}
