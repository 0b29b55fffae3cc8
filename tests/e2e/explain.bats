#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a run would be allowed, asked before it: `brig explain` and `brig why`, and the programs that
# run once for a new jail. What why says is held against what happens.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for other shells

load lib

setup() {
    scratch_make user
    CONFIG=$SCRATCH/config
    PROJECT=$SCRATCH/project
    as user mkdir "$CONFIG" "$PROJECT"
    export BRIG_CONFIG_DIR=$CONFIG
    cd "$PROJECT" || return
    if lib_is_root; then HOME_DIR=$LIB_USER_HOME; else HOME_DIR=$HOME; fi
    HOME_OF_USER=$HOME_DIR
}

teardown() {
    cd "$SCRATCH" || return
    local who
    for who in $(everyone); do
        by "$who" -u >/dev/null 2>&1 || true
    done
    cd /
    as user rm -rf "$HOME_DIR/.brigtest-secret" "$HOME_DIR/.brigtest-open"
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

# ---- explain ----

@test "explain prints what --dry-run prints" {
    conf default.conf "rdir $SCRATCH" 'mask Documents'
    conf sh.conf 'mode sealed' 'timeout 7s'
    must brig explain
    local explained=$output
    must brig --dry-run
    [ "$output" = "$explained" ]
    output_has "read-only   $SCRATCH  [$CONFIG/default.conf:1]"
    must brig explain -m bare sh -c 'touch made'
    output_has "mode            bare"
    output_has "7000"
    [ ! -e made ]
    must brig explain --json sh
    must python3 -c 'import json, sys; assert json.loads(sys.argv[1])["mode"] == "sealed"' "$output"
    must_exit 125 brig explain --colour
}

@test "explain shows the home, what is protected and what is hidden" {
    as user mkdir .vscode
    must brig explain
    output_has "home is         the real one, copy-on-write; changes are stored in $CONFIG/project-"
    output_has "protect     $PROJECT/.vscode"
    output_has "mask        $CONFIG, if it exists  [brig's own]"
    output_lacks "hide        .netrc "
    as user sh -c "test -e $HOME_DIR/.netrc || echo key >$HOME_DIR/.netrc"
    must brig explain
    output_has "hide        .netrc  [built-in defaults]"
    as user rm "$HOME_DIR/.netrc"
    must brig explain -j work
    output_has "home is         one of the jail's own, kept in $CONFIG/work.home"
    must brig explain --json -m strict
    must python3 -c 'import json, sys; assert json.loads(sys.argv[1])["home_kind"] == "private"' "$output"
    # Inside a grant a mask is a rule of its own, and says whose it is.
    as user mkdir -p "$HOME_DIR/.brigtest-open/secret"
    conf default.conf 'mask .brigtest-open/secret'
    must brig explain -m sealed -d "$HOME_DIR/.brigtest-open"
    output_has "mask        $HOME_DIR/.brigtest-open/secret, if it exists  [$CONFIG/default.conf:1]"
    [ ! -e "$CONFIG/work.home" ]
}

# ---- why ----

@test "why names the rule and where it stands" {
    as user sh -c "echo s >$HOME_DIR/.brigtest-secret; echo x >file; mkdir sub"
    conf default.conf 'mask .brigtest-secret' "rdir $SCRATCH"
    must brig why file
    output_has "mode            casual  [built-in defaults]"
    output_has "writable      read-write $PROJECT  [working directory]"
    output_has "written       the real file"
    must_exit 1 brig why "$HOME_DIR/.brigtest-secret"
    output_has "hidden        mask .brigtest-secret  [$CONFIG/default.conf:1]"
    must brig why -m sealed --nocwd "$SCRATCH/none" file
    output_has "missing       read-only $SCRATCH  [$CONFIG/default.conf:2]"
    output_has "read-only     read-only $SCRATCH  [$CONFIG/default.conf:2]"
    output_has "written       nowhere: read-only"
    must brig why "$HOME_DIR/.brigtest-new" /tmp/new
    output_has "exists        not yet"
    output_has "written       stored in the changes of the jail"
    output_has "written       the jail's /tmp"
    must_exit 1 brig why -m strict /var/log
    output_has "hidden        view system  [mode strict]"
    must_exit 125 brig why
    output_has "needs a path, a host or a variable"
    must_exit 125 brig why -m nothing x
    # Nothing was made for the sake of an answer.
    [ ! -e "$CONFIG/default.jail" ]
    [ ! -e "$CONFIG/default.changes" ]
    [ ! -e .git ]
}

@test "why answers at home, too" {
    cd "$HOME_DIR"
    must_exit 125 brig explain
    must brig why /etc/passwd .brigtest-open
    output_has "is not granted unless it is asked for: this is what holds with -D"
    output_has "read-only     view host"
    output_has "home, copy-on-write"
    must brig why -d "$HOME_DIR" .brigtest-open
    output_has "the real file"
    cd "$PROJECT"
    must brig why note
    output_lacks "with -D"
}

@test "why answers for variables, and explain lists those that are filtered" {
    export ANTHROPIC_API_KEY=secret MY_PLAIN=x MY_URL=http://me:secret@example.com/
    must_exit 1 brig why ANTHROPIC_API_KEY
    output_has "not passed on unsetenv *_KEY  [built-in defaults]"
    output_has "to pass it on --inject @anthropic (it stays outside), or --setenv ANTHROPIC_API_KEY"
    output_lacks secret
    output_lacks "host name"
    must brig why --setenv ANTHROPIC_API_KEY ANTHROPIC_API_KEY
    output_has "passed on     setenv ANTHROPIC_API_KEY  [command line]"
    must brig why --setenv ANTHROPIC_API_KEY=other ANTHROPIC_API_KEY
    output_has "with another value"
    must brig why MY_PLAIN
    output_has "passed on     no filter matches it"
    must_exit 1 brig why MY_URL NOT_SET_TOKEN
    output_has "unsetenv *://*:*@*"
    output_has "it is not set"
    must_exit 1 brig why -m sealed MY_PLAIN
    output_has "mode sealed passes on only a few variables"
    # A word can be a variable and a host.
    must brig why mail
    output_has "unsetenv MAIL"
    output_has "taken as      a host name"
    must_exit 1 brig why --json ANTHROPIC_API_KEY
    must python3 -c 'import json, sys
answer, = json.loads(sys.argv[1])["answers"]
assert answer["kind"] == "variable" and not answer["passed"] and answer["set"], answer
assert answer["remedy"].startswith("--inject @anthropic"), answer' "$output"
    must brig explain
    output_has "ANTHROPIC_API_KEY"
    output_has "not passed on   MY_URL: its value has an address with a password"
    output_has "patterns, see brig --print-defaults  [built-in defaults]"
    output_lacks "unset       *_KEY"
    output_lacks secret
    must brig explain --json
    must python3 -c 'import json, sys
said = json.loads(sys.argv[1])
assert {"ANTHROPIC_API_KEY", "MY_URL"} <= set(said["filtered"]) and "MY_PLAIN" not in said["filtered"], said["filtered"]
assert any(rule["name"] == "*_KEY" for rule in said["environment"])' "$output"
}

@test "why knows hosts from paths" {
    must brig why example.com:443
    output_has "reachable     net open  [mode casual]"
    must_exit 1 brig why -m sealed example.com https://example.com/path
    output_has "unreachable   net none  [mode sealed]"
    must brig why -m sealed --net host example.com
    output_has "reachable     net host  [command line]"
    conf default.conf 'mode sealed' 'net host'
    must brig why example.com
    output_has "reachable     net host  [$CONFIG/default.conf:2]"
    must brig why --json example.com ./example.com
    must python3 -c 'import json, sys
host, path = json.loads(sys.argv[1])["answers"]
assert host["kind"] == "host" and host["reachable"] is True, host
assert path["kind"] == "path" and path["exists"] is False and path["writable"] is True, path' "$output"
}

# What a jail can do with paths: a line each with the path, whether it can be read, whether there is
# anything in it, whether it can be written.
probe='for path; do
    read=0 any=0 write=0
    if [ -d "$path" ]; then
        found=$(ls -A "$path" 2>/dev/null) && read=1
        [ -z "$found" ] || any=1
        (echo x >"$path/.brigtest-try") 2>/dev/null && write=1
    else
        found=$(head -c 10 "$path" 2>/dev/null) && read=1
        [ -z "$found" ] || any=1
        [ -e "$path" ] || mkdir -p "${path%/*}" 2>/dev/null
        (: >>"$path") 2>/dev/null && write=1
    fi
    printf "%s %s %s %s\n" "$path" "$read" "$any" "$write"
done'

compare='import json, sys
answers = json.loads(sys.argv[1])["answers"]
tried = [line.split(" ") for line in sys.argv[2].splitlines()]
assert len(answers) == len(tried), (answers, tried)
wrong = []
for answer, (path, read, some, write) in zip(answers, tried):
    assert answer["asked"] == path, (answer, path)
    if answer["state"] == "hidden":
        agree = some == "0"
    else:
        agree = answer["writable"] == (write == "1")
        if answer["exists"] is not None: # what is in a /tmp that is kept cannot be told
            agree = agree and answer["readable"] == (read == "1")
    if not agree:
        wrong.append((answer, read, some, write))
assert not wrong, "\n".join(map(str, wrong))'

@test "why says what happens, in every mode" {
    local pair who mode round paths outside options
    as user sh -c "echo key >$HOME_DIR/.brigtest-secret; mkdir -p $HOME_DIR/.brigtest-open/hidden
        echo s >$HOME_DIR/.brigtest-open/hidden/s; echo o >$HOME_DIR/.brigtest-open/o
        echo x >file; mkdir -p sub/deep .git/hooks; echo ref >.git/HEAD; mkdir .git/objects .git/refs
        echo x >sub/secret; echo x >sub/read-only; chmod 0444 sub/read-only; ln -s file link
        ln -s $HOME_DIR/.brigtest-secret to-secret; ln -s /etc/passwd to-passwd; ln -s nowhere dangling
        mkdir $SCRATCH/read $SCRATCH/write $SCRATCH/elsewhere; echo x >$SCRATCH/read/x
        echo x >$SCRATCH/write/x; echo x >$SCRATCH/elsewhere/x; echo x >$SCRATCH/beside"
    outside=$(mktemp /var/tmp/brigtest.XXXXXX)
    echo host >"$outside"
    chmod 0666 "$outside"
    paths=(
        "$PROJECT" "$PROJECT/file" "$PROJECT/new" "$PROJECT/new-dir/deep/new" "$PROJECT/link"
        "$PROJECT/sub/secret" "$PROJECT/sub/deep" "$PROJECT/sub/deep/../read-only"
        "$PROJECT/.git/hooks" "$PROJECT/.git/hooks/new" "$PROJECT/to-secret" "$PROJECT/to-passwd"
        "$SCRATCH/read" "$SCRATCH/read/x" "$SCRATCH/read/new" "$SCRATCH/write/x" "$SCRATCH/write/new"
        "$SCRATCH/beside" "$SCRATCH/elsewhere/x" /mnt/x /mnt/new "$CONFIG"
        "$HOME_DIR" "$HOME_DIR/.bashrc" "$HOME_DIR/.brigtest-new" "$HOME_DIR/.brigtest-secret"
        "$HOME_DIR/.brigtest-open/o" "$HOME_DIR/.brigtest-open/hidden/s"
        /etc/passwd /etc/shadow /etc/hosts /etc/hostname /var/log /root /root/x /usr/bin/env /bin/sh
        /usr/new /new /tmp /tmp/new "$outside" /var/tmp/another /run/new /var/run/another /dev/shm/new
        /dev/null /dev/sda /dev/new /proc/version /sys/kernel
    )
    options=(-d "$SCRATCH/write" -r "$SCRATCH/read" -d "$SCRATCH/elsewhere:/mnt" --mask ./sub/secret
        --mask .brigtest-secret --mask .brigtest-open/hidden -d "$HOME_DIR/.brigtest-open")
    for pair in $(pairs_of "$(everyone)" casual bare strict sealed); do
        who=${pair%:*} mode=${pair#*:}
        # In a fresh jail, and again in one that has written.
        for round in first second; do
            run by "$who" why -m "$mode" -j "$who-$mode" "${options[@]}" --json -- "${paths[@]}"
            [ "$status" -eq 0 ] || {
                echo "$who $mode $round: $output" >&2
                false
            }
            local answers=$output
            must by "$who" -m "$mode" -j "$who-$mode" "${options[@]}" -- sh -c "$probe" - "${paths[@]}"
            drop_told
            run python3 -c "$compare" "$answers" "$output"
            [ "$status" -eq 0 ] || {
                echo "$who $mode $round: $output" >&2
                false
            }
        done
        as user rm -rf new new-dir sub/deep/.brigtest-try "$SCRATCH"/*/new .brigtest-try
    done
    rm "$outside"
}

@test "why says what happens in a jail of root's own, which owns nothing" {
    lib_is_root || cannot "only root has such jails"
    local mode base paths
    scratch_make root
    base=$SCRATCH
    mkdir "$base/config" "$base/project" "$base/read"
    export BRIG_CONFIG_DIR=$base/config
    cd "$base/project"
    echo x >file
    echo x >"$base/read/x"
    echo x >"$base/other"
    chmod 0600 "$base/read/x" "$base/other"
    paths=("$base/project" "$base/project/file" "$base/project/new" "$base/read/x" "$base/read/new"
        "$base/other" "$base/config" /etc/passwd /etc/shadow /root /root/.brigtest-new /var/log
        /tmp/new /usr/bin/env /dev/null /run/new)
    for mode in casual bare strict sealed; do
        must as root "$BRIG" why --json -m "$mode" -j "root-$mode" -r "$base/read" -- "${paths[@]}"
        local answers=$output
        must as root "$BRIG" -m "$mode" -j "root-$mode" -r "$base/read" -- sh -c "$probe" - "${paths[@]}"
        drop_told
        must python3 -c "$compare" "$answers" "$output"
        rm -f new .brigtest-try
    done
    must as root "$BRIG" -u
}

@test "explain and why are completed as runs are, and why with paths" {
    as user mkdir folder
    must brig --complete explain -m s
    [ "$output" = $'strict \nsealed ' ]
    must brig --complete explain -D l
    [ "$output" = $'\t_command_offset 3' ]
    must brig --complete why -D fold
    [ "$output" = $'\t_files 0' ]
    must brig --complete why /etc/passwd --no-def
    output_has '--no-defaults '
    must bash -c 'source "$1"; compopt() { :; }
        COMP_WORDS=("$2" why -D fold); COMP_CWORD=3 COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
        _brig; printf "%s|\n" "${COMPREPLY[@]}"' - "$LIB_ROOT/completions/brig.bash" "$BRIG"
    [ "$output" = 'folder|' ]
}

# ---- where jails are kept ----

@test "list finds jails where the configuration says they are" {
    as user mkdir "$SCRATCH/store"
    conf default.conf "storage $SCRATCH/store"
    must brig -j kept -m bare true
    [ -d "$SCRATCH/store/kept.home" ]
    must brig list
    output_has kept
    must brig stop kept
    must brig rm kept
    [ ! -e "$SCRATCH/store/kept.home" ]
    rm "$CONFIG/default.conf"
    must brig -j other -m bare true
    must run_as_user env BRIG_CONFIG_DIR=../config "$BRIG" list
    output_has other
}

# ---- initjail ----

# program NAME TEXT: a script of the configuration.
program() {
    printf '#!/bin/sh\n%s\n' "$2" | as user tee "$CONFIG/$1" >/dev/null
    chmod 0755 "$CONFIG/$1"
}

@test "initjail runs once for a new home, outside, as the user" {
    local pair who mode kept user
    program init.sh 'echo "$BRIG_JAIL $BRIG_MODE $BRIG_USER $JAI_JAIL $JAI_MODE $(id -u) $(id -G) $PWD" >>'"$SCRATCH"'/ran
        echo from-init >made-by-init; echo printed'
    conf default.conf 'initjail init.sh'
    user=$(run_as_user id -un)
    for pair in $(pairs_of "$(everyone)" casual bare strict); do
        who=${pair%:*} mode=${pair#*:}
        rm -f "$SCRATCH/ran"
        kept=home
        [ "$mode" != casual ] || kept=changes
        must by "$who" -m "$mode" -j "$who-$mode" -- sh -c 'cat ~/made-by-init'
        output_has from-init
        [ "$(cat "$SCRATCH/ran")" = "$who-$mode $mode $user $who-$mode $mode $(run_as_user id -u) $(run_as_user id -g) $CONFIG/$who-$mode.$kept" ]
        must by "$who" -m "$mode" -j "$who-$mode" -- true
        [ "$(wc -l <"$SCRATCH/ran")" -eq 1 ]
        [ "$(stat -c %U "$CONFIG/$who-$mode.$kept/made-by-init")" = "$user" ]
    done
    # Its output is not the command's, nor does it take the command's input.
    program init.sh 'cat; echo printed'
    run bash -c '. "$1"; echo input | run_as_user "$BRIG" -m bare -j streams -- cat 2>/dev/null' - "$LIB_DIR/lib.bash"
    [ "$output" = input ]
    # A sealed jail has no home to begin.
    rm -f "$SCRATCH/ran"
    program init.sh "echo ran >>$SCRATCH/ran"
    must brig -m sealed true
    [ ! -e "$SCRATCH/ran" ]
}

@test "initjail that fails is a warning, one that is missing an error unless optional" {
    program fails.sh 'exit 3'
    conf default.conf 'initjail fails.sh' 'initjail? none.sh'
    must brig -m bare -j failing -- echo went-on
    output_has "fails.sh' failed with status 3"
    output_has went-on
    conf default.conf 'initjail none.sh'
    must_exit 125 brig -m bare -j missing -- touch made
    output_has "initjail ($CONFIG/default.conf:1): cannot run '$CONFIG/none.sh'"
    [ ! -e "$CONFIG/missing.home" ]
    [ ! -e made ]
    program none.sh 'touch begun'
    must brig -m bare -j missing -- sh -c 'test -e ~/begun'
    chmod 0644 "$CONFIG/none.sh"
    must brig -m bare -j not-executable -- true
    output_has "could not be executed"
}

@test "two runs that race for a new jail run initjail once, and both find it done" {
    # It goes on when the other runs have been started.
    program init.sh "$AWAIT; echo ran >>$SCRATCH/ran; await_file $SCRATCH/all; echo filled >made-by-init"
    conf default.conf 'initjail init.sh'
    local i pids=()
    for i in 1 2 3 4; do
        brig -m bare -j race -- sh -c 'cat ~/made-by-init' >"$BATS_TEST_TMPDIR/out.$i" 2>&1 &
        pids+=($!)
        await_file "$SCRATCH/ran"
    done
    touch "$SCRATCH/all"
    for i in 1 2 3 4; do
        wait "${pids[i - 1]}" || {
            cat "$BATS_TEST_TMPDIR/out.$i" >&2
            false
        }
        [ "$(cat "$BATS_TEST_TMPDIR/out.$i")" = filled ]
    done
    [ "$(cat "$SCRATCH/ran")" = ran ]
    [ -z "$(find "$CONFIG" -name '*.initjail')" ]
}

@test "initjail that was interrupted runs again" {
    program init.sh "echo ran >>$SCRATCH/ran; test -e again || { touch again; kill -9 \$PPID; }"
    conf default.conf 'initjail init.sh'
    run brig -m bare -j again -- true
    [ "$status" -ne 0 ]
    must brig -m bare -j again -- true
    output_has "it runs again"
    [ "$(wc -l <"$SCRATCH/ran")" -eq 2 ]
    must brig -m bare -j again -- true
    [ "$(wc -l <"$SCRATCH/ran")" -eq 2 ]
}
