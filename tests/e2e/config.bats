#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Configuration: which files are read, who wins, what mistakes are called, what a project may say,
# and the files and words brig makes of its tables.

load lib

setup() {
    scratch_make user
    CONFIG=$SCRATCH/config
    PROJECT=$SCRATCH/project
    as user mkdir "$CONFIG" "$PROJECT"
    export BRIG_CONFIG_DIR=$CONFIG
    cd "$PROJECT" || return
    if lib_is_root; then HOME_DIR=$LIB_USER_HOME; else HOME_DIR=$HOME; fi
}

teardown() {
    cd /
    [ -z "${JAI_MADE:-}" ] || rm -rf "$HOME_DIR/.jai"
    scratch_remove
}

brig() {
    run_as_user "$BRIG" "$@"
}

# conf NAME LINE...: a file of the configuration.
conf() {
    local name=$1
    shift
    printf '%s\n' "$@" | as user tee "$CONFIG/$name" >/dev/null
}

@test "the file is that of the command, else default.conf, else the one of -C" {
    conf default.conf 'mode sealed' 'setenv WHO=default'
    conf sh.conf 'mode sealed' 'setenv WHO=sh'
    conf other.conf 'mode sealed' 'setenv WHO=other'
    must brig sh -c 'echo $WHO'
    [ "$output" = sh ]
    must brig /bin/sh -c 'echo $WHO'
    [ "$output" = default ]
    must brig -C other sh -c 'echo $WHO'
    [ "$output" = other ]
    must brig -C "$CONFIG/other.conf" sh -c 'echo $WHO'
    [ "$output" = other ]
    must brig '--conf?' nowhere sh -c 'echo $WHO'
    [ "$output" = sh ]
    must_exit 125 brig -C nowhere touch made
    output_has "no such configuration file: nowhere (nor nowhere.conf) in $CONFIG"
    must_exit 125 brig -C ./nowhere touch made
    output_has "no such configuration file: ./nowhere"
    [ ! -e made ]
}

@test "the command line wins over the .jail, which wins over the .conf" {
    conf default.conf 'mode sealed' 'jail work' 'setenv WHO=conf' \
        "rdir $(realpath --relative-to="$HOME_DIR" /usr)" "rdir $SCRATCH"
    conf work.jail 'setenv WHO=jail' 'timeout 7s'
    must brig sh -c 'echo $WHO'
    [ "$output" = jail ]
    must brig --setenv WHO=typed sh -c 'echo $WHO'
    [ "$output" = typed ]
    must brig -j other sh -c 'echo $WHO'
    [ "$output" = conf ]
    must brig --dry-run
    output_has "7000"
    output_has "read-only   $SCRATCH  [$CONFIG/default.conf:5]"
    must brig --timeout 3s -d "$SCRATCH" --dry-run
    output_has "3000"
    output_has "read-write  $SCRATCH  [command line]"
    conf work.jail 'mode strict'
    must brig --dry-run
    output_has "mode            strict"
    must brig -m bare --dry-run
    output_has "mode            bare"
}

@test "without configuration the mode is casual, and strict for a jail with a name" {
    must brig --dry-run
    output_has "mode            casual"
    must brig -j work --dry-run
    output_has "mode            strict"
    [ -z "$(ls -A "$CONFIG")" ]
}

@test "mistakes are called by file and line, and nothing runs" {
    conf default.conf '# a comment' 'mode sealed' 'colour blue'
    must_exit 125 brig touch made
    [ "$output" = "brig: $CONFIG/default.conf:3: unknown directive 'colour'. See brig.conf(5)" ]
    conf default.conf 'mode sealed' 'conf sub/more'
    mkdir "$CONFIG/sub"
    echo 'memory a lot' >"$CONFIG/sub/more"
    must_exit 125 brig touch made
    output_has "$CONFIG/sub/more:1: memory: "
    conf default.conf 'conf? nothing' 'conf again'
    conf again.conf 'conf default.conf'
    must_exit 125 brig touch made
    output_has "configuration loop"
    conf default.conf 'mode sealed' 'setenv NAME = value'
    must_exit 125 brig touch made
    output_has "$CONFIG/default.conf:2: setenv: 'NAME = value' has a blank in the name"
    conf default.conf 'dry-run'
    must_exit 125 brig touch made
    output_has "cannot stand in a file"
    conf default.conf 'mode sealed'
    conf default.jail 'jail other'
    must_exit 125 brig -j default touch made
    output_has "$CONFIG/default.jail:1: 'jail' is not possible in a .jail file"
    [ ! -e made ]
    rm "$CONFIG/default.jail"
    must brig -j default touch made
    [ -e made ]
}

@test "variables are expanded in files, and never on the command line" {
    conf default.conf 'mode sealed' 'setenv A=one' 'setenv B=${A}-${BRIG_USER}-${JAI_JAIL}-${BRIG_MODE}' \
        'setenv C=\${A}'
    must brig -j work --setenv 'D=${A}' sh -c 'echo "$B $C $D"'
    [ "$output" = "one-$(run_as_user id -un)-work-sealed \${A} \${A}" ]
}

@test "paths begin at home in files and here on the command line" {
    local below=${SCRATCH#"$HOME_DIR"/}
    as user mkdir "$SCRATCH/data" "$SCRATCH/da:ta"
    echo inside >"$SCRATCH/data/file"
    echo colon >"$SCRATCH/da:ta/file"
    conf default.conf 'mode sealed' "rdir $below/data" "rdir ~/$below/da:ta" "rdir \${HOME}/$below/data:/data"
    must brig cat "$SCRATCH/data/file" "$SCRATCH/da:ta/file" /data/file
    [ "$output" = $'inside\ncolon\ninside' ]
    conf empty.conf 'mode sealed'
    must brig -C empty -r ../data cat "$SCRATCH/data/file"
    [ "$output" = inside ]
    must_fail brig -C empty cat "$SCRATCH/data/file"
}

@test "configuration is where the environment says" {
    as user mkdir -p "$SCRATCH/xdg/brig" "$SCRATCH/jai"
    printf 'mode sealed\nsetenv WHO=xdg\n' >"$SCRATCH/xdg/brig/default.conf"
    printf 'mode sealed\nsetenv WHO=jai\n' >"$SCRATCH/jai/default.conf"
    conf default.conf 'mode sealed' 'setenv WHO=brig'
    local run=(sh -c 'echo $WHO')
    must run_as_user env JAI_CONFIG_DIR="$SCRATCH/jai" "$BRIG" "${run[@]}"
    [ "$output" = brig ]
    must run_as_user env -u BRIG_CONFIG_DIR JAI_CONFIG_DIR="$SCRATCH/jai" "$BRIG" "${run[@]}"
    [ "$output" = jai ]
    must run_as_user env -u BRIG_CONFIG_DIR XDG_CONFIG_HOME="$SCRATCH/xdg" "$BRIG" "${run[@]}"
    [ "$output" = xdg ]
    must run_as_user env BRIG_CONFIG_DIR=../config "$BRIG" "${run[@]}"
    [ "$output" = brig ]
}

# without_own WHO ARGS…: brig with configuration and jails in the scratch directory alone, none of it
# named for brig; WHO is user, or sudo for root that acts for the user.
without_own() {
    local who=$1 variables=(XDG_CONFIG_HOME="$SCRATCH/xdg-config" XDG_DATA_HOME="$SCRATCH/xdg-data")
    shift
    case $who in
    user) run_as_user env -u BRIG_CONFIG_DIR "${variables[@]}" "$BRIG" "$@" ;;
    sudo)
        env -u BRIG_CONFIG_DIR "${variables[@]}" SUDO_UID="$(id -u "$LIB_USER")" SUDO_GID="$(id -g "$LIB_USER")" \
            SUDO_USER="$LIB_USER" HOME="$HOME_DIR" "$BRIG" "$@"
        ;;
    esac
}

@test "who has a ~/.jai is told once that it is not read, and how to import it" {
    local who run=(-m sealed sh -c 'echo "${WHO-nobody}"')
    [ ! -e "$HOME_DIR/.jai" ] || cannot "there is a $HOME_DIR/.jai"
    for who in $(everyone); do
        must without_own "$who" "${run[@]}"
        [ "$output" = nobody ]
        JAI_MADE=1
        as user mkdir "$HOME_DIR/.jai"
        as user sh -c "echo 'setenv WHO=jai' >'$HOME_DIR/.jai/default.conf'"
        must without_own "$who" --dry-run "${run[@]}"
        output_has "'$HOME_DIR/.jai' is not read"
        must without_own "$who" "${run[@]}"
        output_has "'$HOME_DIR/.jai' is not read"
        output_has "brig import jai, or set JAI_CONFIG_DIR='$HOME_DIR/.jai'"
        output_has nobody
        must without_own "$who" "${run[@]}"
        [ "$output" = nobody ]
        # Who has a configuration of brig's own is not told, and what was copied holds.
        rm -r "$SCRATCH/xdg-data"
        as user mkdir -p "$SCRATCH/xdg-config/brig"
        as user cp "$HOME_DIR/.jai/default.conf" "$SCRATCH/xdg-config/brig"
        must without_own "$who" "${run[@]}"
        [ "$output" = jai ]
        rm -rf "$SCRATCH/xdg-config" "$HOME_DIR/.jai"
    done
}

@test "a link to a configuration that is gone is no missing one" {
    local name
    for name in default.conf touch.conf default.jail; do
        as user ln -s "$SCRATCH/gone" "$CONFIG/$name"
        must_exit 125 brig -j default touch made
        output_has "'$CONFIG/$name' is a symbolic link to a file that does not exist"
        rm "$CONFIG/$name"
    done
    [ ! -e made ]
    conf default.conf 'mode sealed' 'conf? gone'
    as user ln -s "$SCRATCH/nothing" "$CONFIG/gone"
    must brig touch made
}

@test "a configuration others can write is refused" {
    conf default.conf 'mode sealed'
    must brig true
    chmod 0777 "$CONFIG"
    must_exit 125 brig touch made
    output_has "every user can write"
    chmod 0755 "$CONFIG"
    if lib_is_root; then
        chown nobody "$CONFIG"
        must_exit 125 brig touch made
        output_has "belongs to another user"
    fi
    [ ! -e made ]
}

@test "root behind sudo reads the configuration of the user, with the user's rights" {
    lib_is_root || cannot "only root can be behind sudo"
    local uid
    uid=$(id -u "$LIB_USER")
    sudo_brig() {
        env SUDO_UID="$uid" SUDO_GID="$uid" SUDO_USER="$LIB_USER" "$BRIG" "$@"
    }
    conf default.conf 'mode sealed' 'setenv WHO=user'
    must sudo_brig sh -c 'echo $WHO'
    [ "$output" = user ]
    printf 'secret\n' >"$CONFIG/root.conf"
    chmod 0600 "$CONFIG/root.conf"
    must_exit 125 sudo_brig -C root true
    output_has "Permission denied"
    output_lacks secret
}

@test "defaults hold without being included, and can be turned off" {
    conf default.conf 'setenv OTHER=1'
    must brig --dry-run
    output_has "patterns, see brig --print-defaults  [built-in defaults]"
    must brig --no-defaults --dry-run
    output_lacks "patterns, see"
    conf default.conf 'no-defaults'
    must brig --dry-run
    output_lacks "patterns, see"
}

@test "tokens and sockets stay outside, unless they are named" {
    env_inside() {
        run_as_user env MY_TOKEN=t SSH_AUTH_SOCK=/s EDITOR=vi AWS_REGION=eu "$BRIG" "$@" env
    }
    must env_inside -m casual
    output_lacks MY_TOKEN
    output_lacks SSH_AUTH_SOCK
    output_lacks AWS_REGION
    output_has EDITOR=vi
    output_has BRIG_MODE=casual
    output_has JAI_MODE=casual
    output_has BRIG_JAIL=project-
    must env_inside -m casual --setenv MY_TOKEN
    output_has MY_TOKEN=t
    must env_inside -m casual --setenv '*_TOKEN'
    output_has MY_TOKEN=t
    must env_inside -m casual --unsetenv '*' --setenv EDITOR --setenv PATH
    output_has EDITOR=vi
    output_lacks BRIG_MODE
}

@test "a mask that is typed for a file here is not taken for one at home" {
    echo secret >.env-of-the-project
    must_exit 125 brig -m sealed --mask .env-of-the-project cat .env-of-the-project
    output_has "write ./.env-of-the-project"
    output_lacks secret
    must brig -m sealed --mask ./.env-of-the-project cat .env-of-the-project
    output_lacks secret
    must brig -m sealed cat .env-of-the-project
    output_has secret
}

@test "a line of shell starts the command" {
    conf default.conf 'mode sealed' 'command echo "before $0 $#"; exec "$0" "$@"'
    must brig echo a b
    [ "$output" = $'before echo 2\na b' ]
    must brig --command '' echo a b
    [ "$output" = 'a b' ]
}

@test "scripts are read in the jail before the command, and are gone then" {
    conf .brigrc 'export FROM=rc' 'greet() { echo "hello $1 from $FROM"; }'
    must brig sh -c 'echo "$FROM"; ls -A /tmp | grep -c brig-script; test ! -e "$BRIG_SCRIPT"'
    [ "$output" = $'rc\n0' ]
    must brig greet me
    [ "$output" = 'hello me from rc' ]
    conf default.conf 'script two'
    conf two 'export FROM=two'
    as user tee one <<<'export FROM=one BEFORE=$FROM' >/dev/null
    must brig sh -c 'echo "$FROM $BEFORE"'
    [ "$output" = 'two ' ]
    must brig --script one sh -c 'echo "$FROM $BEFORE"'
    [ "$output" = 'two ' ]
    must run_as_user env BRIG_KEEP_SCRIPT=1 "$BRIG" sh -c 'test -r "$JAI_SCRIPT"'
    must_exit 125 brig --script none true
    output_has "script (command line): no such configuration file"
}

@test "a jail's file is made on first use, and remembers the mode" {
    must brig -j work -m bare true
    output_lacks error
    grep -qx 'mode bare' "$CONFIG/work.jail"
    [ "$(stat -c %a "$CONFIG/work.jail")" = 600 ]
    must brig -j work sh -c 'echo $BRIG_MODE'
    [ "$output" = bare ]
    must brig -m strict sh -c 'echo $BRIG_MODE'
    [ "$output" = strict ]
    must brig sh -c 'echo $BRIG_MODE'
    [ "$output" = casual ]
    conf default.conf 'mode bare'
    must brig sh -c 'echo $BRIG_MODE'
    [ "$output" = bare ]
}

@test "init writes files that can be read, and overwrites none" {
    conf .brigrc 'export MINE=1'
    must brig init
    for file in .defaults default.conf; do
        [ "$(stat -c %a "$CONFIG/$file")" = 600 ]
    done
    [ "$(cat "$CONFIG/.brigrc")" = 'export MINE=1' ]
    must brig --dry-run
    output_has "mode            casual"
    local before
    before=$(cat "$CONFIG"/.defaults "$CONFIG"/default.*)
    must brig --init
    output_has "as it is"
    [ "$(cat "$CONFIG"/.defaults "$CONFIG"/default.*)" = "$before" ]
    must brig --print-defaults
    [ "$output" = "$(cat "$CONFIG/.defaults")" ]
    must_exit 125 brig init more
    output_has "brig run init more"
}

@test "files of jai are understood" {
    conf .defaults 'script? .jairc' 'command source "${JAI_SCRIPT:-/dev/null}"; "$0" "$@"' \
        'mask .jai' 'mask .ssh' 'mask .config/gcloud' 'unsetenv *_TOKEN' 'unsetenv MAIL' \
        'setenv USER=${JAI_USER}' 'setenv LOGNAME=${JAI_USER}'
    conf default.conf 'conf .defaults' 'dir! .cache/tool' 'rdir? no/such' 'xdir no/such' \
        'setenv PATH=${HOME}/bin:${PATH}' 'unmask .ssh' 'storage=' 'initjail? setup.sh'
    conf agent.conf 'conf .defaults' 'jail agent' 'mode strict' 'nocwd' 'dir \
        project'
    must brig --dry-run
    output_has "read-write  $HOME_DIR/.cache/tool, created if missing"
    output_has "set         USER=$(run_as_user id -un)"
    must brig --dry-run agent
    output_has "mode            strict"
    output_has "read-write  $HOME_DIR/project"
    output_lacks "[working directory]"
    conf .jairc 'export RC=$JAI_MODE'
    must brig sh -c 'echo "$RC $USER"'
    [ "$output" = "casual $(run_as_user id -un)" ]
}

@test "what is in force is explained, with where it comes from" {
    conf default.conf 'mask Documents' 'unmask .ssh/config'
    must brig --dry-run
    output_has "hide        Documents  [$CONFIG/default.conf:1]"
    output_has "show        .ssh/config  [$CONFIG/default.conf:2]"
    output_has "paths  [built-in defaults; see brig --print-defaults]"
    output_has "storage         $CONFIG"
    must brig --dry-run --json
    must python3 -c 'import json, sys
policy = json.loads(sys.argv[1])
assert policy["jail"].startswith("project-") and policy["mode_origin"] is None, policy
masks = {mask["path"]: mask for mask in policy["masks"]}
assert masks["Documents"]["origin"].endswith("/default.conf:1"), masks
assert masks[".ssh"]["rule"] == "hide" and masks[".ssh/config"]["rule"] == "show", masks' "$output"
}

# ---- Projects ----

@test "a project hides and takes away" {
    echo secret >.env
    must brig -m sealed --setenv EDITOR=vi sh -c 'cat .env; echo "<$EDITOR>"'
    [ "$output" = $'secret\n<vi>' ]
    printf 'mask .env\nunsetenv SHELL\ntimeout 60s\n' >.brig.conf
    must brig -m sealed sh -c 'cat .env; echo "<$SHELL>"'
    output_has "<>"
    output_lacks secret
}

@test "a project's file makes read-only what would be writable" {
    mkdir lib
    chmod 0777 lib .
    must brig -m sealed sh -c 'echo x >lib/before'
    echo 'rdir lib' >.brig.conf
    must_fail brig -m sealed sh -c 'echo x >lib/after'
    [ ! -e lib/after ]
    must brig -m sealed sh -c 'echo x >beside'
    must brig -m sealed -d lib sh -c 'echo x >lib/typed'
}

@test "a project's file is shown when it is new or has changed" {
    printf '# a comment\nmask? .env\n' >.brig.conf
    must brig -m sealed true
    output_has "$PROJECT/.brig.conf"
    output_has "mask? .env"
    output_lacks "a comment"
    must brig -m sealed true
    [ -z "$output" ]
    echo 'net none' >>.brig.conf
    must brig -m sealed true
    output_has "net none"
    must brig -m sealed -D true
    [ -z "$output" ]
}

@test "a project cannot widen" {
    local line
    conf default.conf 'mode strict' 'memory 1G'
    for line in "dir $HOME_DIR" 'rdir /etc' 'net host' 'setenv A=b' 'unmask .ssh' 'no-defaults' \
        'command id' 'script x' 'initjail x' 'conf x' 'mode casual' 'memory none' 'disable seccomp'; do
        echo "$line" >.brig.conf
        must_exit 125 brig --on-unsupported ignore touch made
        output_has "$PROJECT/.brig.conf:1: "
        output_has "only narrow"
        [ ! -e made ]
    done
}

@test "a project's file that is a link is not followed" {
    echo secret >"$SCRATCH/outside"
    ln -s "$SCRATCH/outside" .brig.conf
    must_exit 125 brig -m sealed true
    output_has "not a regular file"
    output_lacks secret
}

# ---- Completions ----

@test "completions know the files" {
    conf claude.conf ''
    conf work.jail ''
    must brig --complete -C c
    [ "$output" = 'claude ' ]
    must brig --complete --jail=
    [ "$output" = '--jail=work ' ]
    must brig --complete -m s
    [ "$output" = $'strict \nsealed ' ]
    must run_as_user env SOME_NAME=1 "$BRIG" --complete --unsetenv SOME_N
    [ "$output" = 'SOME_NAME ' ]
    must brig --complete -d fo
    [ "$output" = $'\t_files 0' ]
    must brig --complete --storage=f
    [ "$output" = $'\t_directories 10' ]
    must brig --complete --net=host ls -
    [ "$output" = $'\t_command_offset 2' ]
    must brig --complete run -D -- l
    [ "$output" = $'\t_command_offset 4' ]
    must_exit 125 brig -D --complete x
}
