#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig import jai: what is offered, converted and copied, and that nothing of jai's changes.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    jails_setup
    JAI=$SCRATCH/jai
    run_as_user bash -c '
        mkdir -p "$1/sub" "$1/work.home" "$1/default.changes/dir" "$1/default.work" && cd "$1"
        printf "mask .jai\nmask .secret-of-test\nscript? .jairc\nsetenv USER=\${JAI_USER}\n" >.defaults
        printf "conf .defaults\nmode casual\nstrange thing\n" >default.conf
        printf "conf .defaults\njail work\nscript sub/extra.sh\ninitjail prepare\n" >tool.conf
        printf "export FROM_JAIRC=yes\n" >.jairc
        printf "#!/bin/sh\n" >prepare; chmod +x prepare
        printf "export FROM_SUB=yes\n" >sub/extra.sh
        printf "mode strict\n" >work.jail
        printf "mode casual\n" >default.jail
        printf "kept\n" >work.home/file
        printf "changed\n" >default.changes/dir/file
        mknod default.changes/.deleted-in-jail c 0 0' - "$JAI"
    before=$(state)
    export BRIG_CONFIG_DIR=$SCRATCH/config
}

teardown() {
    jails_teardown
}

state() {
    (cd "$JAI" && find . -printf '%P %m %s %T@ %l %y\n' | sort | sha256sum)
}

import() {
    run_as_user env BRIG_CONFIG_DIR="$BRIG_CONFIG_DIR" "$BRIG" import jai --from "$JAI" "$@" </dev/null
}

in_jail() {
    run_as_user env BRIG_CONFIG_DIR="$BRIG_CONFIG_DIR" "$BRIG" -D "$@"
}

@test "it says what it would do, and does nothing without an answer" {
    must import --dry-run
    output_has "default.conf -> $SCRATCH/config"
    output_has "line 3: brig has no 'strange'"
    output_has "line 4: 'initjail' can run a program outside of jails"
    output_has "work.home -> $SCRATCH/config"
    output_lacks default.work
    [ ! -e "$SCRATCH/config" ]
    must_exit 125 import
    output_has 'add --yes'
    [ ! -e "$SCRATCH/config" ]
    [ "$(state)" = "$before" ]
}

@test "configuration and jails work afterwards, and jai's are as they were" {
    must import --yes
    output_has 'imported tool.conf'
    [ "$(state)" = "$before" ]
    grep -qx '# strange thing' "$SCRATCH/config/default.conf"
    grep -qx "script $JAI/sub/extra.sh" "$SCRATCH/config/tool.conf"
    [ -x "$SCRATCH/config/prepare" ]
    must in_jail -j work -- sh -c 'cat ~/file'
    [ "$output" = kept ]
    # A file that was deleted in jai's jail is deleted in this one, and real outside.
    run_as_user touch "$HOME_OF_USER/.deleted-in-jail" "$HOME_OF_USER/.secret-of-test"
    must in_jail -m casual -j default -- sh -c 'cat ~/dir/file; ls -A ~; echo "$FROM_JAIRC"'
    output_has changed
    output_lacks .deleted-in-jail
    output_lacks .secret-of-test
    [ "${lines[-1]}" = yes ]
    must in_jail -m casual -j another -- ls -A "$HOME_OF_USER"
    output_has .deleted-in-jail
    run_as_user rm "$HOME_OF_USER/.deleted-in-jail" "$HOME_OF_USER/.secret-of-test"
    must run_as_user env BRIG_CONFIG_DIR="$BRIG_CONFIG_DIR" "$BRIG" -u
    # A second time there is nothing to do.
    must import --yes
    output_has 'not imported, because brig has one'
    output_has 'there is nothing to import'
}

@test "what brig has already is not replaced" {
    run_as_user bash -c 'mkdir -p "$1" && echo "mode bare" >"$1/default.conf" && echo "mode bare" >"$1/work.jail"' - "$SCRATCH/config"
    must import --yes
    output_has 'default.conf: not imported'
    output_has 'work.home: not imported'
    [ "$(cat "$SCRATCH/config/default.conf")" = 'mode bare' ]
    [ ! -e "$SCRATCH/config/work.home" ]
    [ -e "$SCRATCH/config/tool.conf" ]
}

@test "jails are found where jai's default.conf says they are" {
    run_as_user bash -c 'mkdir "$1/elsewhere" && cd "$2" && mv work.* "$1/elsewhere" && echo "storage $1/elsewhere" >>default.conf' - \
        "$SCRATCH" "$JAI"
    must import --yes
    output_has "'storage' is left out"
    must in_jail -j work -- sh -c 'cat ~/file'
    [ "$output" = kept ]
}

# A cloned repository may bring programs, and PATH may name a relative directory.
@test "no program of the working directory is run, and no link in jai's storage is followed" {
    mkdir "$SCRATCH/clone" "$SCRATCH/secrets"
    printf '#!/bin/sh\ntouch "%s/ran"\n' "$SCRATCH/secrets" >"$SCRATCH/clone/cp"
    chmod 0755 "$SCRATCH/clone" "$SCRATCH/clone/cp"
    chmod 0777 "$SCRATCH/secrets"
    touch "$SCRATCH/secrets/key"
    cd "$SCRATCH/clone"
    run_as_user ln -s "$SCRATCH/secrets" "$JAI/linked.home"
    run_as_user touch "$JAI/linked.jail"
    for path in .: "$SCRATCH/clone:"; do
        must run_as_user env PATH="$path$PATH" BRIG_CONFIG_DIR="$BRIG_CONFIG_DIR" "$BRIG" import jai --from "$JAI" --yes
        cd /
        rm -rf "$SCRATCH/config.first"
        mv "$SCRATCH/config" "$SCRATCH/config.first"
        cd "$SCRATCH/clone"
        output_has 'linked.home: not imported, because a part of its jail is a link'
        output_has 'linked.jail: not imported'
        output_has 'imported work.home'
        [ "$(cat "$SCRATCH/config.first/work.home/file")" = kept ]
        [ ! -e "$SCRATCH/config.first/linked.home" ]
        [ ! -e "$SCRATCH/secrets/ran" ]
    done
    cd /
}

@test "errors say what is missing and what to type" {
    must_exit 125 run_as_user "$BRIG" import jai --from "$SCRATCH/nowhere"
    output_has "there are no files of jai in '$SCRATCH/nowhere'"
    output_has 'brig import jai --from DIR'
    must_exit 125 run_as_user "$BRIG" import
    output_has 'brig import jai [--dry-run]'
    must_exit 125 run_as_user "$BRIG" import firejail
    output_has "cannot import from 'firejail'"
    must_exit 125 run_as_user env -u BRIG_CONFIG_DIR JAI_CONFIG_DIR="$JAI" "$BRIG" import jai
    output_has 'uses the files'
    must_exit 125 run_as_user "$BRIG" import jai --bogus
    output_has 'does not take'
}
