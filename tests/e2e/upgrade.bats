#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storage, configuration and history that versions 0.1 and 0.2 have written (tests/fixtures/upgrade) open in this one.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for another shell

load lib

PLACE=/var/tmp/brigtest-fixture-01 # where the project was: its jail is found by this path

setup() {
    needs xz tar
    jails_setup
    mkdir -m 0755 "$PLACE" 2>/dev/null || cannot "there is a $PLACE"
    MADE=yes
    ! lib_is_root || chown "$LIB_USER" "$PLACE"
}

teardown() {
    brig_of_user -u >/dev/null 2>&1 || true
    if [ -n "${MADE:-}" ]; then
        rm -rf "$PLACE"
        (cd "$HOME_OF_USER" && rm -rf notes gone folder Documents made)
    fi
    jails_teardown
}

# unpack NAME: the configuration and storage into the scratch, the files of the real home into it.
unpack() {
    run_as_user sh -c 'tar --xattrs --xattrs-include="user.*" -xJf "$1" -C "$2" && cd "$2" && mkdir config data &&
        mv .config/brig config && mv .local/share/brig data && mv notes gone folder Documents "$3" &&
        cp -a project "$4"' - "$LIB_ROOT/tests/fixtures/upgrade/$1.tar.xz" "$SCRATCH" "$HOME_OF_USER" "$PLACE"
    cd "$PLACE/project" || return
}

brig_of_user() {
    run_as_user env XDG_CONFIG_HOME="$SCRATCH/config" XDG_DATA_HOME="$SCRATCH/data" "$BRIG" "$@"
}

# The casual jail $1 has what a run of 0.1 changed, and the real home has not.
has_changes() {
    must brig_of_user -j "$1" sh -c 'cat ~/notes ~/made ~/folder/*; ls -A ~'
    output_has $'changed\nnew\nc'
    must_fail grep -qx gone <<<"$output"
    [ "$(cat "$HOME_OF_USER/notes")" = original ]
    must brig_of_user status -j "$1"
    grep -qE '^ +D +gone ' <<<"$output"
    grep -qE '^ +A +made ' <<<"$output"
}

@test "jails, masks and configuration of 0.1" {
    unpack 0.1-home
    must brig_of_user list
    grep -qE '^default +casual' <<<"$output"
    grep -qE '^keep +strict' <<<"$output"
    has_changes default
    must brig_of_user -j keep sh -c 'cat ~/file ~/.config/x'
    output_has $'kept\nx'
    # The mask of keep.jail, and the line of default.conf.
    must_fail brig_of_user -j keep -r "$HOME_OF_USER" cat "$HOME_OF_USER/folder/a"
    must brig_of_user -j other -m strict -r "$HOME_OF_USER" cat "$HOME_OF_USER/folder/a"
    must_fail brig_of_user -j default cat "$HOME_OF_USER/Documents/secret"
    must brig_of_user -j default --dry-run true
    # echo.conf chooses a jail and a mode.
    must brig_of_user explain echo
    grep -qE '^mode +strict' <<<"$output"
    output_has FROM_TOOL
    # What 0.1 changed can be applied, and undone.
    must brig_of_user apply -j default "$HOME_OF_USER/made"
    [ "$(cat "$HOME_OF_USER/made")" = new ]
    must brig_of_user undo -j default
    [ ! -e "$HOME_OF_USER/made" ]
}

@test "held files, log, reviewed directory and git state of the last 0.1" {
    unpack 0.1-last-home
    must brig_of_user list
    grep -qE '^project-[0-9a-f]+ +casual .*/project$' <<<"$output"
    must brig_of_user held
    output_has "$PLACE/project/.envrc  10 bytes  (direnv)"
    must brig_of_user held .envrc
    [ "$output" = 'use flake' ]
    run_as_user rm .envrc
    must brig_of_user keep .envrc
    [ "$(cat .envrc)" = 'use flake' ]
    must brig_of_user log
    output_has 'git: 1 commit on main, 1 commit on topic'
    has_changes "$(basename "$SCRATCH"/data/brig/project-*.jail .jail)"
    must brig_of_user status -j reviewed
    grep -qE '^ +A +other ' <<<"$output"
    must brig_of_user apply -j reviewed --all --conflict theirs
    [ "$(cat other)" = reviewed ]
    # A run was killed: its commits wait. The repository is a copy here, which brig does not write to by itself.
    must brig_of_user sync -j killed
    output_has 'is not the directory it was'
    [ -s "$(echo "$SCRATCH"/data/brig/killed.git/kept-*)/0/private/refs/heads/unfinished" ]
    must brig_of_user -j new sh -c 'git log --format=%s -1'
    output_has second
}

@test "held files, log, checkpoint, reviewed directories and home of 0.2" {
    unpack 0.2-home
    must brig_of_user held
    [ "${#lines[@]}" -eq 4 ]
    output_has "$PLACE/project/.envrc  10 bytes  (direnv)"
    output_has "$PLACE/project/.vscode  directory, 2 files, 6 bytes  (Visual Studio Code)"
    output_has "$PLACE/project/.mcp.json  link to a  (agents that use MCP)"
    [ ! -e "$SCRATCH/data/brig/kept.held" ]
    must brig_of_user keep .envrc .vscode .mcp.json
    output_has '1 older version stays held back'
    [ "$(cat .envrc .vscode/tasks.json; readlink .mcp.json .vscode/d/up)" = $'second\ntasks\na\n../..' ]
    run_as_user rm -r .envrc .vscode .mcp.json
    must brig_of_user log -j checked
    output_has 'git: 1 commit on main'
    must brig_of_user undo -j checked 1
    [ "$(cat file sub/x; readlink link; stat -c %a run.sh)" = $'file\nx\nfile\n755' ]
    [ ! -e n ]
    must brig_of_user undo -j checked "$(brig_of_user log -j checked | sed -n 's/^#\([0-9]*\) .*  undo .*/\1/p')"
    [ "$(cat file n/m/f)" = $'run\nn' ]
    must brig_of_user status -j killed
    grep -qE '^ +A +ready ' <<<"$output"
    must brig_of_user apply -j reviewed --all --risky --conflict theirs
    [ "$(cat other r/s n)" = $'reviewed\nr\nf' ]
    must brig_of_user undo -j reviewed
    [ "$(cat other n/m/f)" = $'other\nn' ]
    has_changes home2
}

# ---- The server ----

# serve CONFIG: brigd with a configuration of 0.1, with the directories of this test.
serve() {
    run_as_user sed -i "s,/srv/brigd,$SCRATCH,g" "$SCRATCH/$1"
    run_as_user mkdir -p "$SCRATCH/run"
    : >"$SCRATCH.log" # at once: what the server before has said is not waited for
    run_as_user "$BRIGD" --config "$SCRATCH/$1" >"$SCRATCH.log" 2>&1 3>&- &
    SERVER=$!
    LIB_SCRATCHES="$LIB_SCRATCHES $SCRATCH.log"
    await grep -q 'listening on' "$SCRATCH.log"
}

stop_server() {
    pkill -TERM -P "$SERVER" -x brigd 2>/dev/null || kill "$SERVER"
    wait "$SERVER" 2>/dev/null || true
}

unpack_server() {
    BRIGD=$(dirname "$BRIG")/../server/brigd
    BRIGCTL=$(dirname "$BRIG")/../client/brigctl
    [ -x "$BRIGD" ] && [ -x "$BRIGCTL" ] || cannot "there is no brigd here"
    run_as_user tar -xJf "$LIB_ROOT/tests/fixtures/upgrade/0.1-server.tar.xz" -C "$SCRATCH"
}

@test "brigd.yaml and the history in SQLite" {
    unpack_server
    serve brigd.yaml
    must run_as_user "$BRIGCTL" -s "unix:$SCRATCH/sock" --json ls
    stop_server
    output_has '"id":"184da1ac-de5e-406c-bd4e-7de56a5935e3","language":"python","status":"ok"'
    output_has '"id":"8aad5025-1224-4dd1-b059-4d1501652307","language":"python","status":"error","exit_code":3'
}

@test "rows that wait in the spool of 0.1, with SQLite and with PostgreSQL" {
    unpack_server
    run_as_user cp -a "$SCRATCH/spool" "$SCRATCH/copy"
    run_as_user sh -c 'head -c 100 "$1" >>"$1"' - "$SCRATCH/copy/00000000000000000001.spool" # a record that is torn off
    run_as_user sed -i "s,^  retention:,  spool_dir: \"$SCRATCH/copy\"\n&," "$SCRATCH/brigd.yaml"
    serve brigd.yaml
    must run_as_user "$BRIGCTL" -s "unix:$SCRATCH/sock" --json ls
    output_has '"id":"782d6f62-8500-466d-b00b-4b031e3044a8","language":"bash","status":"ok","exit_code":0'
    output_has '"id":"11c761fa-ceea-482e-838a-27eea642ad7a","language":"bash","status":"error","exit_code":7'
    output_has 184da1ac-de5e-406c-bd4e-7de56a5935e3
    must run_as_user "$BRIGCTL" -s "unix:$SCRATCH/sock" --json show 782d6f62-8500-466d-b00b-4b031e3044a8
    stop_server
    output_has '"code":"echo spooled"'
    output_has '"output":"spooled\n"'
    [ -z "$(ls "$SCRATCH"/copy/*.spool 2>/dev/null)" ]
    grep -q '8 bytes of brigd 0.1 .* are damaged' "$SCRATCH.log"
    [ -e "$SCRATCH/copy/00000000000000000001.spool.damaged" ]
    # With PostgreSQL they go to the spool of this version, and wait there.
    serve brigd-pg.yaml
    await grep -q 'took [1-9][0-9]* rows of brigd 0.1' "$SCRATCH.log"
    stop_server
    [ -z "$(ls "$SCRATCH"/spool/*.spool 2>/dev/null)" ]
    serve brigd-pg.yaml
    await grep -q '2 rows wait in the spool' "$SCRATCH.log"
    stop_server
}
