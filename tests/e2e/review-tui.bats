#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `brig review`: the full screen, driven through a real terminal (tmux), and the line mode.

# shellcheck disable=SC2016 # scripts for the jail, and lines for the shell in the terminal
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load screen

setup() {
    export LC_ALL=C.UTF-8 # of tmux, too
    jails_setup
    FILES=$SCRATCH/files
    JAIL=review-$$-$BATS_TEST_NUMBER
    jail user "$JAIL"
    run_as_user mkdir -p "$FILES/sub"
    run_as_user sh -c 'cd "$1" && printf "one\ntwo\nthree\n" >plain.txt && echo bye >gone.txt && echo deep >sub/deep.txt &&
        echo other >sub/other.txt' - "$FILES"
}

teardown() {
    stop_screen
    jails_teardown
}

# changes SCRIPT: what the jail does in its copy of the directory.
changes() {
    must run_as_user "$BRIG" -m casual -j "$JAIL" -- sh -c "cd '$FILES' && $1"
}

# The usual ones: modified, deleted, added, and flagged: a new executable file.
ALL='printf "one\n2\nthree\n" >plain.txt; rm gone.txt; echo new >sub/new.txt; echo DEEP >sub/deep.txt
    printf "#!/bin/sh\n" >tool; chmod +x tool'

# terminal [COLUMNS LINES [VARIABLE=VALUE...]]: a shell as the user.
terminal() {
    local columns=${1:-120} lines=${2:-30}
    shift $(($# > 2 ? 2 : $#))
    start_screen "$columns" "$lines" BRIG="$BRIG" "$@" bash --norc --noprofile -i
}

# fresh_line COMMANDS: runs them on an empty screen, and waits until nothing of earlier ones is left there.
fresh_line() {
    FRESH=$((${FRESH:-0} + 1))
    type_line "clear; echo fresh $FRESH; $1"
    shows "^fresh $FRESH\$"
}

# Without -J: lines of the full screen may be as wide as the terminal, and are not parts of one line.
on_screen() {
    picture | grep -qE -- "$1"
}

# hides REGEX: waits until no line matches.
hides() {
    await_not on_screen "$1" || {
        picture >&2
        return 1
    }
}

# review: the view of the jail, until its list is there.
review() {
    type_line "\$BRIG review -j $JAIL; echo \"status \$?\""
    shows '^ brig review  .* changes?'
}

# to NAME: moves to a change by searching for it.
to() {
    keys g /
    shows '^/_'
    keys -l "$1"
    await has_typed "/$1_"
    keys Enter
    hides '^/'
}

has_typed() {
    picture | grep -qF -- "$1"
}

# is_raw: whether a program has the keys, not the line editor of the terminal.
is_raw() {
    stty -a <"$(screen display-message -p -t t '#{pane_tty}')" | grep -q -- '-icanon'
}

@test "the list, its letters and flags, sizes, and the diff of what is under the cursor" {
    changes "$ALL"
    terminal
    review
    shows '^ brig review  '"$JAIL"'  5 changes, 1 flagged'
    shows '^home '
    shows 'files/ +3'
    shows '^ M   +plain.txt +12'
    shows '^ D   +gone.txt +4'
    shows '^ A! +tool +10'
    shows 'files/sub/ +2'
    shows '^ A   +new.txt +4'
    to plain.txt
    shows '@@ .* @@'
    shows '-two$'
    shows '[+]2$'
    shows '^modified file, 14 to 12 bytes'
    # The colours of both lines.
    picture -e | grep -qF $'\e[31m-two'
    picture -e | grep -qF $'\e[32m+2'
    to tool
    shows '^! '
    # A file that was not changed is not there.
    must_fail on_screen other.txt
    keys q
    shows '^status 0'
}

@test "a applies the change under the cursor, d discards one, and u undoes that" {
    changes "$ALL"
    terminal
    review
    to plain.txt
    keys a
    shows '  4 changes'
    [ "$(cat "$FILES/plain.txt")" = $'one\n2\nthree' ]
    [ -e "$FILES/gone.txt" ]
    to deep.txt
    keys d
    shows '  3 changes'
    [ "$(cat "$FILES/sub/deep.txt")" = deep ]
    keys u
    shows '  4 changes'
    shows 'deep.txt'
    keys u
    shows '  3 changes|  5 changes'
    keys q
    shows '^status 0'
    # The jail sees what was applied.
    must run_as_user "$BRIG" -m casual -j "$JAIL" -- cat "$FILES/plain.txt"
    output_has 2
}

@test "a flagged change asks: any key but y leaves it, y applies it" {
    changes "$ALL"
    terminal
    review
    to tool
    keys a
    shows '^Apply it\? y/N'
    keys n
    shows 'nothing was applied'
    [ ! -e "$FILES/tool" ]
    keys a
    shows '^Apply it\? y/N'
    keys y
    shows '  4 changes'
    [ -x "$FILES/tool" ]
}

@test "marks, and a whole directory" {
    changes "$ALL"
    terminal
    review
    to gone.txt
    keys Space
    shows '^[*]D '
    to deep.txt
    keys Space
    shows ', 2 marked'
    keys A
    shows '^Apply 2 changes\? y/N'
    keys y
    shows '  3 changes'
    [ ! -e "$FILES/gone.txt" ]
    [ "$(cat "$FILES/sub/deep.txt")" = DEEP ]
    [ "$(cat "$FILES/plain.txt")" = $'one\ntwo\nthree' ]
    # Everything in and below the directory, without the flagged file.
    to plain.txt
    keys A
    shows '^1 of 3 flagged: y apply all, o only the others'
    keys o
    shows '  1 change'
    [ "$(cat "$FILES/plain.txt" "$FILES/sub/new.txt")" = $'one\n2\nthree\nnew' ]
    [ ! -e "$FILES/tool" ]
    keys D
    shows '^Discard 1 change\? y/N'
    keys y
    shows 'No changes'
    [ ! -e "$FILES/tool" ]
}

@test "a new directory includes what is in it, one whose mode has changed does not" {
    changes 'chmod 700 sub; echo DEEP >sub/deep.txt; mkdir made; echo x >made/file'
    terminal
    review
    shows '^ m   +sub/'
    to sub
    keys a
    hides '^ m   +sub/'
    [ "$(stat -c %a "$FILES/sub")" = 700 ]
    [ "$(cat "$FILES/sub/deep.txt")" = deep ]
    shows 'deep.txt'
    # A file in a new directory needs it.
    to made/file
    keys a
    hides 'made/'
    [ "$(cat "$FILES/made/file")" = x ]
    keys q
    shows '^status 0'
    changes 'mkdir -p new/deep away; echo 1 >new/a; echo 2 >new/deep/b; echo 3 >away/c'
    type_line clear
    review
    to files/new
    keys a
    shows '^Apply 4 changes\? y/N'
    keys y
    hides 'new/'
    [ "$(cat "$FILES/new/a" "$FILES/new/deep/b")" = $'1\n2' ]
    to files/away
    keys Space
    shows ', 2 marked'
    keys D
    shows '^Discard 2 changes\? y/N'
    keys y
    hides 'away'
    [ ! -e "$FILES/away" ]
    shows 'deep.txt'
}

@test "a conflict asks, and each answer does what it says" {
    changes 'echo jail >plain.txt; echo jail >sub/deep.txt; echo jail >sub/other.txt'
    run_as_user sh -c "echo mine >'$FILES/plain.txt'; echo mine >'$FILES/sub/deep.txt'; echo mine >'$FILES/sub/other.txt'"
    terminal
    review
    shows ', 3 in conflict'
    to plain.txt
    shows '^C '
    keys a
    shows '^Conflict: m mine, t theirs, g merge, s skip'
    keys x
    shows 'nothing was applied'
    [ "$(cat "$FILES/plain.txt")" = mine ]
    keys a
    shows '^Conflict'
    keys t
    shows ', 2 in conflict'
    [ "$(cat "$FILES/plain.txt")" = jail ]
    to deep.txt
    keys a
    shows '^Conflict'
    keys m
    shows ', 1 in conflict'
    [ "$(cat "$FILES/sub/deep.txt")" = mine ]
    to other.txt
    keys a
    shows '^Conflict'
    keys s
    shows 'not applied'
    [ "$(cat "$FILES/sub/other.txt")" = mine ]
}

@test "search, next and previous, flagged only" {
    changes "$ALL; echo x >sub/new2.txt"
    terminal
    review
    to new
    shows '^added file, 4 bytes'
    keys n
    shows '^added file, 2 bytes'
    keys N
    shows '^added file, 4 bytes'
    keys / x y z Enter
    shows '^not found'
    keys f
    shows 'flagged only'
    hides 'plain.txt'
    shows '^ A! +tool'
    keys f
    shows 'plain.txt'
}

@test "help, and keys in the diff" {
    changes 'seq 1 200 >plain.txt'
    terminal
    review
    keys '?'
    shows '^Keys'
    shows 'read the changes again'
    keys Escape
    hides '^Keys'
    keys g
    shows 'a applies all of them' # instead of a diff
    to plain.txt
    shows '[+]10$'
    keys Tab PPage NPage NPage
    shows '[+]60$'
    shows 'line [0-9]+ of 20[0-9]'
    keys G
    shows '[+]200$'
    keys / + 1 0 0 Enter
    shows '[+]100$'
    keys Tab q
    shows '^status 0'
}

@test "parts of a change are chosen as with git add -p" {
    needs git
    run_as_user sh -c "seq 1 30 >'$FILES/plain.txt'"
    changes 'sed -i "s/^2$/two/; s/^29$/end/" plain.txt'
    terminal
    review
    to plain.txt
    keys p
    shows 'y,n,q'
    keys y Enter
    shows '[+]end'
    shows '2/2.*y,n,q'
    keys n Enter
    shows 'Press Enter'
    keys Enter
    shows '^ brig review'
    shows '^ M +plain.txt'
    [ "$(sed -n 2p "$FILES/plain.txt")" = two ]
    [ "$(sed -n 29p "$FILES/plain.txt")" = 29 ]
    hides '[+]two'
    shows '[+]end'
    keys q
    shows '^status 0'
}

# commits: a reviewed repository with a branch, a flagged commit on the current one, and a new file.
commits() {
    run_as_user git -C "$FILES" init -q -b main
    run_as_user sh -c "cd '$FILES' && git add . && git -c user.name=a -c user.email=a@b commit -qm first"
    # shellcheck disable=SC2317 # called by the function of lib.bash
    must run_as_user sh -c "cd '$FILES' && '$BRIG' -m sealed -j '$JAIL' -R -- sh -ec '
        export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n
        git commit -q --allow-empty -m one; git branch other; echo x >.envrc; git add -f .envrc; git commit -qm evil
        rm .envrc; git commit -qam away; echo new >fresh'"
}

@test "commits are items of the list: the same keys look at them and apply them" {
    needs git
    commits
    terminal
    review
    shows '^ brig review  .* 3 changes, 1 flagged'
    shows '^git in .* 2 *│'
    keys c
    shows 'all: 2 changes'
    keys G
    shows '^ref refs/heads/other, commits: 1'
    shows 'commit [0-9a-f]+ +n: one'
    keys p
    shows 'choose a file'
    keys d
    shows 'not discarded: refs/heads/other|goes with its whole directory'
    keys a
    shows '  2 changes'
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s other)" = one ]
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = first ]
    keys G
    shows '^! .*envrc: obeyed by direnv'
    keys a
    shows '^Apply it\? y/N .*direnv'
    keys n
    shows 'nothing was applied'
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = first ]
    keys a
    shows '^Apply it'
    keys y
    shows '  1 change'
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = away ]
    keys u
    shows '  2 changes'
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = first ]
    # All that is marked, files and commits.
    keys g Space j Space A
    shows '^1 of 2 flagged'
    keys y
    shows 'No changes'
    [ "$(cat "$FILES/fresh")" = new ]
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = away ]
    keys q
    shows '^status 0'
}

@test "every size of the window, down to 20x5" {
    changes "$ALL"
    terminal
    review
    to plain.txt
    shows '[+]2$'
    screen resize-window -t t -x 80 -y 24
    # List above, diff below.
    shows '^[+]2$'
    shows '^ M +plain.txt'
    screen resize-window -t t -x 20 -y 5
    shows '^ M +plain.txt'
    hides '[+]2$'
    keys Tab
    shows 'diff|^---'
    keys G
    shows '^.three|^[+]2'
    keys Tab
    shows '^ M +plain.txt'
    screen resize-window -t t -x 9 -y 2
    screen resize-window -t t -x 1 -y 1
    screen resize-window -t t -x 120 -y 30
    shows '^ M +plain.txt'
    shows '[+]2$'
    keys q
    shows 'status 0'
}

@test "Ctrl-Z and fg, and the terminal after every way to end" {
    changes "$ALL"
    terminal
    review
    await is_raw
    keys C-z
    shows 'Stopped'
    type_line 'echo "back $((1 + 1))"'
    shows '^back 2'
    type_line 'fg; echo "status $?"'
    shows '^ M +plain.txt'
    keys q
    shows '^status 0'
    type_line clear
    hides '^status'
    for signal in TERM HUP INT QUIT SEGV; do
        review
        pid=$(pgrep -o -u "$LIB_USER" -f "^[^ ]*brig-review .*$JAIL\$")
        kill -"$signal" "$pid"
        await has_ended "$pid"
        shows '^status 1[0-9][0-9]'
        hides 'brig review  '
        # The line editor of bash has the terminal again, as before.
        fresh_line "stty -a | grep -oE ' (icanon|echo|icrnl)( |\$)' | wc -l"
        shows '^3$'
        type_line clear
        hides '^3$'
    done
    review
    keys C-c
    shows '^status 130'
}

@test "names and contents with escape sequences do not reach the terminal" {
    changes 'printf "x\033]0;owned\007\033[31mred\n\302\2331m\342\200\256rtl\n" >"$(printf "a\033]0;owned\007b")"
        echo y >"$(printf "c\377\342\200\256d")"; ln -s "$(printf "to\033[5m")" link'
    terminal
    # Everything that is written to the terminal is recorded.
    screen pipe-pane -t t "cat >'$SCRATCH/record'"
    review
    shows 'a\\x1b\]0;owned\\x07b'
    shows 'c\\xff\\u\{202e\}d'
    to owned
    shows '[+]x\\x1b\]0;owned\\x07\\x1b\[31mred'
    shows '\\u\{9b\}1m\\u\{202e\}rtl'
    to link
    shows 'to\\x1b\[5m'
    # They are applied under their own names.
    to owned
    keys a
    shows '^Apply it|  2 changes'
    keys y
    shows '  2 changes'
    [ -e "$FILES/$(printf 'a\033]0;owned\007b')" ]
    keys q
    shows '^status 0'
    screen pipe-pane -t t
    [ -s "$SCRATCH/record" ]
    must_fail grep -aqF "$(printf '\033]0;owned')" "$SCRATCH/record"
    must_fail grep -aqF "$(printf '\342\200\256')" "$SCRATCH/record"
    must_fail grep -aqF "$(printf '\302\233')" "$SCRATCH/record"
    must_fail grep -aqF "$(printf '\033[5m')" "$SCRATCH/record"
    [ "$(screen display-message -p -t t '#{pane_title}')" != owned ]
}

@test "a name that is a pattern means that file alone" {
    changes "$ALL; echo star >'*'; echo bracket >'[p]lain.txt'"
    terminal
    review
    to '*'
    keys a
    shows '  6 changes'
    [ "$(cat "$FILES/*")" = star ]
    [ "$(cat "$FILES/plain.txt")" = $'one\ntwo\nthree' ]
    to '[p'
    keys a
    shows '  5 changes'
    [ "$(cat "$FILES/plain.txt")" = $'one\ntwo\nthree' ]
}

@test "without colours, in the C locale, and on a terminal without a full screen" {
    changes "$ALL; echo x >'n\303\251'"
    terminal 120 30 NO_COLOR=1 LC_ALL=C
    review
    to plain.txt
    shows '[+]2$'
    must_fail grep -qF $'\e[32m' <(picture -e)
    keys q
    shows '^status 0'
    fresh_line "LC_ALL=C TERM=dumb \$BRIG review -j $JAIL; echo \"status \$?\""
    shows 'line by line'
    shows 'pply, .d.iscard'
    type_line q
    shows '^status 0'
    type_line "clear; TERM=vt100 \$BRIG review -j $JAIL; echo \"status \$?\""
    shows '^ M +plain.txt'
    keys q
    shows '^status 0'
}

@test "no changes, an unknown jail, and a running jail" {
    changes true
    terminal
    type_line "\$BRIG review -j $JAIL; echo \"status \$?\""
    shows 'No changes'
    keys a d A D p Space Tab j k G g / x Enter n f f Escape
    shows 'No changes|No flagged'
    keys q
    shows '^status 0'
    fresh_line '$BRIG review -j nonesuch-at-all; echo "status $?"'
    shows 'nonesuch-at-all'
    shows '^status 125'
}

# ---- the line mode ----

plain() {
    run_as_user sh -c 'printf "$1" | "$2" review --plain -j "$3"' - "$1" "$BRIG" "$JAIL"
}

@test "--plain asks for each change, and answers come from a pipe" {
    changes "$ALL"
    # gone.txt, plain.txt, tool, sub/deep.txt, sub/new.txt
    must plain 'd\n?\nv\na\na\nn\ns\nq\n'
    output_has "5 changes in jail $JAIL"
    output_has "(1/5) D $FILES/gone.txt"
    output_has "v  view the diff"
    output_has "-two"
    output_has "(3/5) A ! $FILES/tool"
    output_has "1 applied, 1 discarded"
    [ -e "$FILES/gone.txt" ]
    [ "$(cat "$FILES/plain.txt")" = $'one\n2\nthree' ]
    [ ! -e "$FILES/tool" ]
    [ "$(cat "$FILES/sub/deep.txt")" = deep ]
    must plain 'a\ny\n'
    [ -x "$FILES/tool" ]
    must plain ''
    output_has "2 changes"
    must plain 'a\na\n'
    must plain ''
    output_has "0 changes"
}

@test "--plain asks for each branch, too" {
    needs git
    commits
    must plain 's\na\nn\nd\ns\na\n'
    output_has '3 changes in jail' '(1/3) A ' '(2/3) G ! git:refs/heads/main' 'Flagged: ' '.envrc: obeyed by direnv (unasked)' \
        'n: evil' '(3/3) G git:refs/heads/other'
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = first ]
    output_has 'not discarded: refs/heads/'
    must plain 's\na\ny\na\n'
    output_has '2 applied, 0 discarded'
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s main)" = away ]
    [ "$(run_as_user git -C "$FILES" log -1 --format=%s other)" = one ]
}

@test "--plain escapes names and contents, and asks about conflicts" {
    changes 'printf "x\033[31mred\n" >"$(printf "a\033[5mb")"; echo jail >plain.txt'
    run_as_user sh -c "echo mine >'$FILES/plain.txt'"
    must plain 'v\ns\na\nt\n'
    output_has 'a\x1b[5mb'
    output_has '+x\x1b[31mred'
    output_has 'Conflict: '
    output_lacks $'\e[31m'
    output_lacks $'\e[5m'
    [ "$(cat "$FILES/plain.txt")" = jail ]
}

@test "brig review refuses other words, and needs its program" {
    must_exit 125 run_as_user "$BRIG" review --all
    output_has "does not take '--all'"
    must_exit 125 run_as_user "$BRIG" review --plain -j nonesuch-at-all
    output_has nonesuch-at-all
    must_exit 125 run_as_user "$(dirname "$BRIG")/../review/brig-review"
    output_has "started by brig review"
}

# reviewed_run [SCRIPT]: a run with --review in the terminal, up to the question at its end. MODE is that of the run.
reviewed_run() {
    type_line clear
    await_not on_screen 'look at the' # the question of an earlier run
    type_line "cd '$FILES'; clear; \$BRIG -m ${MODE:-sealed} -j $JAIL --review -- sh -c '${1:-echo new >fresh}'; echo \"status \$?\""
    shows 'look at the(m| changes) now\? \[y/N\]'
}

@test "the view that a run offers applies, undoes and takes parts, in every mode" {
    needs git
    terminal
    for MODE in casual bare strict sealed; do
        JAIL=review-$MODE-$$-$BATS_TEST_NUMBER
        jail user "$JAIL"
        printf 'one\ntwo\nthree\n' >"$FILES/plain.txt"
        reviewed_run 'echo four >>plain.txt'
        type_line y
        shows '^ brig review  .* 1 change'
        keys a
        shows 'No changes'
        [ "$(tail -n 1 "$FILES/plain.txt")" = four ]
        keys u
        shows '  1 change'
        [ "$(tail -n 1 "$FILES/plain.txt")" = three ]
        keys p
        shows 'y,n,q'
        keys y Enter
        shows 'Press Enter'
        keys Enter
        shows 'No changes'
        [ "$(tail -n 1 "$FILES/plain.txt")" = four ]
        keys q
        shows '^status 0'
    done
}

@test "a reviewed run at a terminal offers the view, and each answer does what it says" {
    terminal
    # No is the default, whatever else is typed; and what was typed before the question is no answer.
    for answer in '' n x 'no, and a long line that ends later'; do
        reviewed_run
        type_line "$answer"
        shows '^status 0'
        must_fail on_screen '^ brig review '
        [ ! -e "$FILES/fresh" ]
    done
    reviewed_run 'echo y; cat >/dev/null <&- ; echo new >fresh; exit 3'
    type_line n
    shows '^status 3' # of the command
    # Yes opens the view, in which a change can be applied.
    for answer in y Yes; do
        reviewed_run "echo $answer >fresh; exit 3"
        type_line "$answer"
        shows '^ brig review  .* 1 change'
        keys a
        shows '  no changes|  0 changes'
        keys q
        shows '^status 3'
        [ "$(cat "$FILES/fresh")" = "$answer" ]
    done
    # Of a run that has changed nothing, the question says whose changes they are.
    reviewed_run 'echo old >fresh'
    type_line n
    shows '^status 0'
    reviewed_run true
    shows 'changes of earlier runs are not applied yet; look at them now'
    type_line n
    shows '^status 0'
    must run_as_user "$BRIG" discard -j "$JAIL" --all
    # Without changes there is no question.
    fresh_line "\$BRIG -m sealed -j $JAIL --review -- true; echo \"status \$?\""
    shows '^status 0'
    must_fail on_screen 'look at the changes'
}

@test "Ctrl-C, Ctrl-D, Ctrl-Z and a closed terminal at the offer change nothing" {
    terminal
    for key in C-c C-d C-\\; do
        reviewed_run 'echo new >fresh; exit 3'
        keys "$key"
        shows '^status 3' # of the command
    done
    reviewed_run
    keys C-z
    shows 'Stopped'
    type_line fg
    shows '^[$]BRIG .* --review'
    type_line n
    shows '^%'
    reviewed_run
    pid=$(find_brig "$(screen display-message -p -t t '#{pane_pid}')")
    screen kill-server
    await has_ended "$pid"
    must run_as_user "$BRIG" status -j "$JAIL"
    output_has fresh
    [ ! -e "$FILES/fresh" ]
}

@test "what is typed while a reviewed command runs is no answer" {
    terminal
    type_line clear
    await_not on_screen 'look at the changes' # the question of an earlier run
    type_line "cd '$FILES'; clear; \$BRIG -m sealed -j $JAIL -d '$SCRATCH/project' --review -- \\
        sh -c 'echo new >fresh; : >$SCRATCH/project/up; while [ ! -e $SCRATCH/project/go ]; do sleep 0.1; done'; echo \"status \$?\""
    await_file "$SCRATCH/project/up"
    type_line y
    shows '^y$'
    : >"$SCRATCH/project/go"
    shows 'look at the changes now'
    must_fail on_screen '^ brig review '
    type_line n
    shows '^status 0'
}

@test "brig apply: q, the end of input and Ctrl-C at a question apply nothing, and o only the others" {
    changes "$ALL"
    terminal
    for key in q C-d C-c; do
        fresh_line "\$BRIG apply -j $JAIL '$FILES'; echo \"status \$?\""
        shows 'a new executable file'
        shows 'nly the others, \[q\]uit'
        keys "$key"
        [ "$key" != q ] || keys Enter
        # Ctrl-C ends the whole line of the shell.
        if [ "$key" = C-c ]; then shows '^%'; else shows '^status 125'; fi
        [ "$key" = C-c ] || shows 'brig: nothing was applied'
        [ "$(cat "$FILES/plain.txt")" = $'one\ntwo\nthree' ]
    done
    fresh_line "\$BRIG apply -j $JAIL '$FILES'; echo \"status \$?\""
    shows 'nly the others, \[q\]uit'
    keys o Enter
    shows '^status 1'
    [ "$(cat "$FILES/plain.txt")" = $'one\n2\nthree' ]
    [ ! -e "$FILES/tool" ]
}

@test "brig apply -p: Ctrl-C applies nothing" {
    changes 'printf "one\n2\nthree\n" >plain.txt'
    terminal
    fresh_line "\$BRIG apply -j $JAIL -p '$FILES'; echo \"status \$?\""
    shows 'Stage this hunk'
    keys C-c
    shows 'brig: interrupted, so nothing was applied'
    fresh_line "\$BRIG apply -j $JAIL -p '$FILES'; echo \"status \$?\""
    shows 'Stage this hunk'
    keys q Enter
    shows 'brig: nothing was applied'
    [ "$(cat "$FILES/plain.txt")" = $'one\ntwo\nthree' ]
    fresh_line "\$BRIG apply -j $JAIL -p '$FILES'; echo \"status \$?\""
    shows 'Stage this hunk'
    keys y Enter
    shows '^status 0'
    [ "$(cat "$FILES/plain.txt")" = $'one\n2\nthree' ]
}
