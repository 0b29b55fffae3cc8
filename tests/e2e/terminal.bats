#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The jail's terminal: keys, sizes, stopping and going on, driven through a real terminal (tmux).

load lib
load screen

setup() {
    scratch_make user
    cd "$SCRATCH" || return
    start_screen 90 30 BRIG="$BRIG" NO_COLOR=1 bash --norc --noprofile -i
}

teardown() {
    stop_screen
    local jail
    for jail in ${TERMINAL_JAILS:-}; do
        run_as_user "$BRIG" stop "$jail" >/dev/null 2>&1 || true
        run_as_user "$BRIG" rm "$jail" >/dev/null 2>&1 || true
    done
    cd /
    scratch_remove
}

# prompt: waits until the shell asks for the next line. What is typed before brig has ended is the
# jail's.
prompt() {
    await is_prompt || {
        picture >&2
        return 1
    }
}

is_prompt() {
    [[ $(picture -J | grep . | tail -n 1) =~ (^|\^C)%\ *$ ]]
}

# is_raw: whether brig, or a line editor, has the terminal.
is_raw() {
    stty -a < "$(screen display-message -p -t t '#{pane_tty}')" | grep -q -- '-icanon'
}

# to_cat TEXT: types a line for a cat in the jail, and waits until its text is there twice: by the terminal
# inside and by cat, or by the terminal outside and one of them. Before that a key may still be the shell's.
to_cat() {
    type_line "$1"
    await is_answered "$1" || {
        picture >&2
        return 1
    }
    shows "^$1\$"
}

is_answered() {
    [ "$(picture -J | grep -o -- "$1" | wc -l)" -ge 2 ]
}

@test "the command has a terminal, and it is not the host's" {
    local host
    host=$(screen display-message -p -t t '#{pane_tty}')
    type_line '$BRIG -m sealed tty'
    shows '^/dev/(pts/[0-9]+|console)$'
    prompt
    type_line 'echo end'
    shows '^end$'
    # The host's terminal is no name inside, and none of the descriptors leads there.
    type_line "\$BRIG -m sealed sh -c 'ls -l /proc/self/fd; test -e $host && readlink -f $host; stat -c dev:%d /dev/fd/0'"
    shows '^dev:'
}

@test "Ctrl-C reaches the program, not brig" {
    type_line "\$BRIG -m sealed sh -c 'trap \"echo caught\" INT; echo ready; while ! read x; do :; done; echo \"read \$x\"; exit 6'"
    shows '^ready$'
    keys C-c
    shows 'caught'
    type_line one
    shows '^read one$'
    prompt
    type_line 'echo "status $?"'
    shows '^status 6$'
}

@test "a program that Ctrl-C ends gives 130" {
    type_line "\$BRIG -m sealed sh -c 'echo again; exec sleep 1000'"
    shows '^again$'
    keys C-c
    prompt
    type_line 'echo "status $?"'
    shows '^status 130$'
}

@test "the size of the window is there from the start, and its changes arrive" {
    type_line '$BRIG -m sealed stty size'
    shows '^30 90$'
    prompt
    type_line "\$BRIG -m sealed bash -c 'trap \"stty size; exit\" WINCH; echo ready; while sleep 0.1; do :; done'"
    shows '^ready$'
    screen resize-window -t t -x 77 -y 22
    shows '^22 77$'
}

@test "Ctrl-Z stops it and gives the shell back, fg goes on" {
    type_line '$BRIG -m sealed cat'
    to_cat first
    keys C-z
    shows 'Stopped'
    type_line 'echo shell-$((1 + 1))'
    shows '^shell-2$'
    # The terminal is the shell's own again.
    type_line 'stty -a | grep -o " icanon"'
    shows '^ icanon'
    type_line 'clear; fg'
    shows 'cat'
    to_cat second
    keys C-d
    prompt
    type_line 'echo "status $?"'
    shows '^status 0$'
}

@test "stopped and put into the background it goes on there, and comes back" {
    type_line "\$BRIG -m sealed sh -c 'echo ready; read x; echo \"got \$x\"'"
    shows '^ready$'
    keys C-z
    shows 'Stopped'
    type_line 'bg'
    type_line 'echo still-$((40 + 2))'
    shows '^still-42$'
    type_line 'fg'
    shows "sh -c.*ready; read"
    type_line 'word'
    shows '^got word$'
}

@test "a program in raw mode gets single keys and the host's terminal is restored" {
    type_line "\$BRIG -m sealed bash -c 'read -rsn1 -p key? k; echo \" was \$k\"'"
    shows '^key\?'
    keys q
    shows 'key\? was q'
    prompt
    type_line 'stty -a | grep -o " icanon\| echo "'
    shows '^ icanon'
    shows '^ echo'
}

@test "a full-screen editor works" {
    needs vi
    type_line '$BRIG -m sealed vi file'
    shows '^~'
    keys i
    keys -l 'written inside'
    keys Escape
    type_line ':wq'
    prompt
    type_line 'cat file; echo end'
    shows '^written inside$'
}

@test "with output in a pipe, typed lines still arrive and the terminal stays as it is" {
    type_line "\$BRIG -m sealed sh -c 'echo ready >&2; exec cat' | tr a-z A-Z"
    shows '^ready$'
    type_line 'piped line'
    shows '^PIPED LINE$'
    keys C-d
    prompt
    type_line 'stty -a | grep -o " icanon"; echo "status $?"'
    shows '^ icanon'
    shows '^status 0$'
}

@test "with output in a pipe, Ctrl-C ends the whole pipeline" {
    type_line "\$BRIG -m sealed sh -c 'echo ready >&2; exec sleep 1000' | cat"
    shows '^ready$'
    keys C-c
    prompt
    type_line 'echo "statuses ${PIPESTATUS[*]}"'
    shows '^statuses 130 '
}

@test "with input from a pipe, output is on the screen, whole and in lines" {
    type_line "seq 1 2000 | \$BRIG -m sealed sh -c 'cat; echo last' ; echo end"
    shows '^end$'
    picture -S - | grep -xc '[0-9]*' | grep -qx 2000
    shows '^last$'
}

@test "all output is shown before brig ends" {
    type_line "clear; \$BRIG -m sealed seq 1 5000; echo end"
    shows '^end$'
    shows '^5000$'
}

@test "in the background brig leaves the terminal to the shell" {
    type_line "\$BRIG -m sealed sh -c 'echo from-behind; exec sleep 1000' &"
    shows '^from-behind|from-behind'
    type_line 'stty -a | grep -o " icanon"'
    shows '^ icanon'
    type_line 'kill %1; wait; echo gone'
    shows '^gone$'
}

@test "started in the background at a prompt and brought to the front, it reads lines" {
    mkfifo -m 0666 go
    type_line '(read -r _ < go; exec $BRIG -m sealed sh -c "echo runs; read line; echo read \$line") &'
    shows '^\[1\]'
    prompt
    # The line editor of the shell has the terminal now.
    echo > go
    shows '^(% *)?runs$'
    type_line 'fg'
    shows '^\( read'
    await is_raw
    type_line 'some text'
    shows '^some text$'
    shows '^read some text$'
    prompt
}

@test "a timeout is told to people in one line" {
    type_line '$BRIG -m sealed --timeout 300ms --grace 0 sleep 1000; echo "status $?"'
    shows '^status 124$'
    shows '^brig: ended after 300ms \(--timeout\)$'
}

@test "with --no-terminal there is none" {
    type_line '$BRIG -m sealed --no-terminal sh -c "test -t 0 || test -t 1 || test -t 2 || exit 8"; echo "status $?"'
    shows '^status 8$'
    type_line 'clear; $BRIG sh -c "test -t 0 && test -t 1 && test -t 2 && exit 9"; echo "status $?"'
    shows '^status 9$'
}

@test "when the terminal goes away the command gets a hang-up" {
    type_line "\$BRIG -m sealed sh -c 'trap \"echo gone >\$PWD/hup; exit\" HUP; echo ready; while :; do sleep 1; done'"
    shows '^ready$'
    screen kill-server
    await_file "$SCRATCH/hup"
}

@test "a command that ignores the hang-up is ended with its terminal, unless brig ignores it, too" {
    local who run
    cat >deaf <<'EOF'
trap "" HUP TERM
: >"$1"
while :; do sleep 0.05; done
EOF
    cat >patient <<EOF
$AWAIT
EOF
    cat >>patient <<'EOF'
: >"$1"
await_file go
echo finished >"$1"
EOF
    # In the foreground; without a terminal of the jail's own; in a group in the background, which
    # the kernel tells nothing; and as nohup has it.
    cat >runs <<'EOF'
jail() {
    local name=$1 script=$2
    shift 2
    "$BRIG" -m sealed -D -d . --timeout 2m --grace 100ms --result "$name.json" "$@" sh "$script" "$name"
}
jail plain deaf --no-terminal &
(set -m; jail behind deaf &)
(trap "" HUP; jail kept patient >/dev/null 2>&1 &)
jail foreground deaf
EOF
    for who in $(each_user); do
        mkdir -m 777 "$who"
        cp deaf patient runs "$who"
        screen new-session -d -s "of-$who" \
            "exec bash -c '. \"$LIB_DIR/lib.bash\"; cd \"$SCRATCH/$who\" && as $who env BRIG=\"$BRIG\" bash runs'"
        for run in foreground plain behind kept; do
            await_file "$who/$run"
        done
        screen kill-session -t "of-$who"
        for run in foreground plain behind; do
            await_file "$who/$run.json"
            grep -q '"outcome": *"cancelled"' "$who/$run.json"
        done
        must_fail test -e "$who/kept.json"
        : >"$who/go"
        await_file "$who/kept.json"
        [ "$(cat "$who/kept")" = finished ]
    done
}

# ---- in a home: the modes for people ----

# modes: casual or bare, whose command has the project and a home, by turns from test to test; both with BRIG_THOROUGH=1.
modes() {
    local modes=(casual bare)
    [ -n "${BRIG_THOROUGH:-}" ] || modes=("${modes[BATS_TEST_NUMBER % 2]}")
    echo "${modes[@]}"
}

# in_each_mode CALLBACK: it is called with each of modes.
in_each_mode() {
    local mode
    for mode in $(modes); do
        MODE=$mode
        TERMINAL_JAILS="${TERMINAL_JAILS:-} term-$mode"
        type_line "clear; J='-m $mode -j term-$mode'"
        "$1"
        prompt
    done
}

edit_a_file() {
    type_line '$BRIG $J -- vi edited; cat edited; echo end'
    shows '^~'
    keys i
    keys -l "by vi in $MODE"
    keys Escape
    type_line ':wq'
    shows '^end$'
    shows "^by vi in $MODE\$"
    [ "$(cat "$SCRATCH/edited")" = "by vi in $MODE" ]
    # And in the home, which is the jail's.
    type_line 'clear; $BRIG $J -- vi "$HOME/.edited"; $BRIG $J -- cat "$HOME/.edited"; ls "$HOME/.edited"; echo end'
    shows '^~'
    keys i
    keys -l "private $MODE"
    keys Escape
    type_line ':x'
    shows '^end$'
    shows "^private $MODE\$"
    shows 'cannot access'
    rm -f "$SCRATCH/edited"
}

@test "casual or bare: vi edits and saves, in the project and in the jail's home" {
    needs vi
    in_each_mode edit_a_file
}

page_a_file() {
    seq 1 300 >"$SCRATCH/numbers"
    type_line '$BRIG $J -- less numbers; echo "status $?"'
    shows '^29$'
    keys Space
    shows '^58$'
    keys G
    shows '^300$'
    keys -l '/^77'
    keys Enter
    keys g
    shows '^1$'
    keys -l '/^77'
    keys Enter
    shows '^77$'
    keys q
    shows '^status 0$'
    type_line 'stty -a | grep -o " icanon"'
    shows '^ icanon'
}

@test "casual or bare: less pages, searches and gives the terminal back" {
    needs less
    in_each_mode page_a_file
}

interrupt() {
    type_line "\$BRIG \$J -- sh -c 'trap \"echo caught\" INT; echo ready; while ! read x; do :; done; echo \"read \$x\"; exit 6'"
    shows '^ready$'
    keys C-c
    shows 'caught'
    type_line one
    shows '^read one$'
    prompt
    type_line 'echo "status $?"'
    shows '^status 6$'
    type_line "clear; \$BRIG \$J -- sh -c 'echo again; exec sleep 1000'"
    shows '^again$'
    keys C-c
    prompt
    type_line 'echo "status $?"'
    shows '^status 130$'
}

@test "casual or bare: Ctrl-C is for the program" {
    in_each_mode interrupt
}

stop_and_go() {
    type_line '$BRIG $J -- cat'
    to_cat first
    keys C-z
    shows 'Stopped'
    type_line 'echo shell-$((1 + 1))'
    shows '^shell-2$'
    type_line 'clear; fg'
    shows 'cat'
    to_cat second
    keys C-d
    prompt
    type_line 'echo "status $?"'
    shows '^status 0$'
}

@test "casual or bare: Ctrl-Z stops it and gives the shell back, fg goes on" {
    in_each_mode stop_and_go
}

@test "casual: the jail's own shell has job control of its own" {
    TERMINAL_JAILS=term-shell
    type_line "\$BRIG -m casual -j term-shell -- env PS1='in> ' bash --norc --noprofile -i"
    shows '^in> *$'
    type_line "bash -c 'echo begun; exec sleep 1000'"
    shows '^begun$' # before it has the terminal, what is typed is the shell's, which passes it over
    keys C-z
    shows 'Stopped +bash -c'
    type_line 'jobs; kill %1; fg; echo "inner $?"'
    shows '^inner [0-9]+$'
    type_line 'exit 4'
    prompt
    type_line 'echo "status $?"'
    shows '^status 4$'
}

resize() {
    type_line "\$BRIG \$J -- bash -c 'trap \"stty size; exit\" WINCH; echo ready; while sleep 0.1; do :; done'"
    shows '^ready$'
    screen resize-window -t t -x 77 -y 22
    shows '^22 77$'
    prompt
    screen resize-window -t t -x 90 -y 30
    # It has arrived before the next run begins.
    type_line 'clear; until [ "$(stty size)" = "30 90" ]; do sleep 0.1; done; echo back'
    shows '^back$'
}

@test "casual or bare: changes of the window's size arrive" {
    in_each_mode resize
}

# ---- brig enter ----

# A run to be entered, in the background and with no terminal.
start_run() {
    MODE=$1
    TERMINAL_JAILS="${TERMINAL_JAILS:-} enter-$MODE"
    type_line "clear; (\$BRIG -m $MODE -j enter-$MODE -- sh -c 'echo began >began-$MODE; exec sleep 1000' </dev/null >/dev/null 2>&1 &)"
    await_file "$SCRATCH/began-$MODE"
    await run_as_user "$BRIG" enter "enter-$MODE" true </dev/null # the run is published a moment later
    prompt
    type_line "clear; J=enter-$MODE"
    prompt
}

@test "brig enter: a shell with a terminal of the jail's, job control, keys and sizes" {
    local mode
    for mode in $(modes); do
        start_run "$mode"
        type_line "\$BRIG enter \$J env PS1='in> ' bash --norc --noprofile -i"
        shows '^in> *$'
        type_line 'tty; stty size; echo "jail $BRIG_JAIL"'
        shows '^/dev/pts/[0-9]+$'
        shows '^30 90$'
        shows "^jail enter-$mode\$"
        # It says itself when it has the terminal: before, a key would be nobody's.
        type_line "clear; sh -c 'echo again; exec sleep 1000'"
        shows '^again$'
        keys C-c
        type_line 'echo "inner $?"'
        shows '^inner 130$'
        type_line "clear; sh -c 'echo more; exec sleep 1000'"
        shows '^more$'
        keys C-z
        shows 'Stopped +sh -c'
        type_line 'kill %1; clear'
        screen resize-window -t t -x 77 -y 22
        type_line 'until [ "$(stty size)" = "22 77" ]; do sleep 0.1; done; echo sized'
        shows '^sized$'
        screen resize-window -t t -x 90 -y 30
        type_line 'until [ "$(stty size)" = "30 90" ]; do sleep 0.1; done; echo back'
        shows '^back$'
        type_line 'exit 5'
        prompt
        type_line 'echo "status $?"; stty -a | grep -o " icanon"'
        shows '^status 5$'
        shows '^ icanon'
    done
}

@test "brig enter: Ctrl-Z gives the outer shell back, fg goes on, and vi works" {
    needs vi
    start_run casual
    type_line '$BRIG enter $J cat'
    to_cat first
    keys C-z
    shows 'Stopped'
    type_line 'echo shell-$((1 + 1))'
    shows '^shell-2$'
    type_line 'clear; fg'
    shows 'cat'
    to_cat second
    keys C-d
    prompt
    type_line 'clear; $BRIG enter $J vi edited; cat edited; echo end'
    shows '^~'
    keys i
    keys -l "by vi, entered"
    keys Escape
    type_line ':wq'
    shows '^end$'
    shows '^by vi, entered$'
}

@test "brig enter: when the run ends, the shell ends and the terminal is as it was" {
    start_run casual
    type_line "\$BRIG enter \$J env PS1='in> ' bash --norc --noprofile -i"
    shows '^in> *$'
    run_as_user "$BRIG" stop enter-casual
    prompt
    shows 'run of process [0-9]+ has ended'
    type_line 'echo "status $?"; stty -a | grep -o " icanon"'
    shows '^status 137$'
    shows '^ icanon'
    # Also one that was stopped meanwhile: the run does not wait for it.
    start_run bare
    type_line '$BRIG enter $J sleep 1000'
    shows 'enter .J sleep'
    await sleeps_twice
    keys C-z
    shows 'Stopped'
    run_as_user "$BRIG" stop enter-bare
    type_line 'clear; fg; echo "status $?"'
    shows '^status 137$'
}

# Whether the command that was entered runs, beside the run's own.
sleeps_twice() {
    pgrep -u "$LIB_USER" -f '^sleep 1000' -c | grep -q '[2-9]'
}
