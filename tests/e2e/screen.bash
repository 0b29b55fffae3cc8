# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A shell of the user's in a real terminal (tmux). TMUX_SOCKET names its server, `t` its session.

screen() {
    tmux -L "$TMUX_SOCKET" -f /dev/null "$@"
}

# start_screen COLUMNS LINES COMMAND…: the command is a shell, and VARIABLE=VALUE may stand before it.
start_screen() {
    local columns=$1 lines=$2
    shift 2
    needs tmux
    unset TMUX # of who runs the tests
    TMUX_SOCKET=$LIB_USER-$$-$BATS_TEST_NUMBER
    screen new-session -d -s t -x "$columns" -y "$lines" \
        "exec bash -c '. \"$LIB_DIR/lib.bash\"; run_as_user env PS1=\"% \" TERM=screen HISTFILE= $*'"
    shows '^% *$'
}

stop_screen() {
    [ -z "${TMUX_SOCKET:-}" ] || screen kill-server 2>/dev/null || true
}

keys() {
    screen send-keys -t t "$@"
}

# type_line TEXT: a line and Enter.
type_line() {
    screen send-keys -t t -l "$1" \; send-keys -t t Enter
}

picture() {
    screen capture-pane -p -t t "$@"
}

# on_screen REGEX: whether a line of the screen matches. Blanks at its end do not count.
on_screen() {
    local regex=$1
    [[ $regex != *[!\\]\$ ]] || regex="${regex%\$} *\$"
    picture -J | grep -qE -- "$regex"
}

# shows REGEX: waits until a line of the screen matches.
shows() {
    await on_screen "$1" || {
        picture >&2
        return 1
    }
}
