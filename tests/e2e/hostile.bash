# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For suites in which a jail attacks git outside: projects with a marker that a plant would execute, and everything that a
# user does with git.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2154 # status and output are set by `run`

load repos

# For the shell of a jail: `evil DIR` makes a repository whose settings execute MARK.
EVIL='evil() { mkdir -p "$1"; git init -q "$1"; git -C "$1" commit -q --allow-empty -m x; git -C "$1" config core.fsmonitor "$MARK"; };'

setup() {
    repos_setup
    needs python3 script
}

teardown() {
    [ -z "${LOOP:-}" ] || kill "$LOOP" 2>/dev/null || true
    repos_teardown
}

# hostile_project: a project, and beside it what a plant executes: it makes the file RAN. A jail can neither see
# it made nor make it, as it is not in the project.
hostile_project() {
    project user || return
    RAN=$SCRATCH/ran
    # What plants may use. As a file monitor it must also fail, or git believes that nothing has changed.
    MARK="touch $RAN; false"
}

# use: everything that a user does with git in the project, also with a terminal, and from a shell prompt, until the marker is
# there. `git submodule status` takes ten times as long as another command, and without a gitlink it starts nothing that a
# plant could exchange.
use() {
    as user timeout 120 sh -c '
        export HOME="$1" TERM=dumb PAGER=cat
        ran() { [ ! -e "$1" ] || exit 0; }
        touch a b
        git status; ran "$2"
        git log -1; git diff; git diff --cached; git st; git branch -a; git stash list; ran "$2"
        for d in */; do [ ! -d "$d" ] || (cd "$d" && git status); done; ran "$2"
        script -qec "git log -1; git diff; git branch" /dev/null </dev/null
        git checkout -q -b used-$$; git checkout -q main; ran "$2"
        echo changed >>b; git diff; git add b; GIT_EDITOR=true git commit -q --allow-empty -m used; ran "$2"
        case $(git ls-files -s) in *160000\ *) git submodule status ;; esac
        git gc -q
        exit 0' - "$SCRATCH" "$RAN" >"$SCRATCH/used" 2>&1 </dev/null
}

# not_executed: after everything that a user does, the marker is not there.
not_executed() {
    use
    [ ! -e "$RAN" ] || {
        echo "executed outside" >&2
        return 1
    }
}

# plant SCRIPT…: each script outside, as a twin, has the marker made; in a jail they have not, and the repository is
# sound. PREPARE is run in the projects first, outside. PAIRS are those who run it, and the modes. The scripts of one call
# are run one after the other in one jail and project: none may undo what another has planted, and outside all of them
# must work together. With BRIG_THOROUGH=1 each has a project of its own.
plant() {
    local pair script
    for script; do
        hostile_project
        must as user sh -ec "${PREPARE:-true}"
        must as user sh -ec "MARK='$MARK'; $script"
        use
        [ -e "$RAN" ] || {
            echo "the twin has no effect: $script" >&2
            cat "$SCRATCH/used" >&2
            return 1
        }
    done
    if [ $# -gt 1 ]; then
        hostile_project
        must as user sh -ec "${PREPARE:-true}"
        for script; do
            must as user sh -ec "MARK='$MARK'; $script"
        done
    fi
    for pair in ${PAIRS:-user:sealed}; do
        if [ -n "${BRIG_THOROUGH:-}" ]; then
            for script; do
                plant_inside "$pair" "$script" || return
            done
        else
            plant_inside "$pair" "$@" || return
        fi
    done
}

plant_inside() { # plant_inside PAIR SCRIPT…
    local pair=$1 all script
    shift
    hostile_project || return
    must as user sh -ec "${PREPARE:-true}" || return
    all="MARK='$MARK'; set +e"
    for script; do
        all+=$'\n'"(set -e; $script)"
    done
    run inside "$pair" "$all"
    [ "$status" -ne 125 ] || {
        echo "$output" >&2
        return 1
    }
    not_executed || {
        echo "planted in $pair: $*" >&2
        echo "$output" >&2
        return 1
    }
    must out fsck --no-dangling
}

# with_loop COMMAND…: runs it while `git status` runs outside all the time. The loop counts in the file `ticks`,
# and for the jail's shell TICKS waits for two more.
with_loop() {
    as user sh -c 'i=0; while [ "$i" -lt 20000 ] && [ ! -e stop ]; do git status >/dev/null 2>&1; git diff >/dev/null 2>&1
        i=$((i + 1)); echo "$i" >ticks.new; mv ticks.new ticks; done' 3>&- &
    LOOP=$!
    await_file ticks
    "$@" || {
        kill "$LOOP"
        return 1
    }
    as user touch stop
    wait "$LOOP" || true
    LOOP=
    rm -f stop ticks
}
# shellcheck disable=SC2034 # used by suites
TICKS='ticked() { [ "$(cat ticks)" -ge "$1" ]; }; ticks() { await ticked $(($(cat ticks) + 3)); };'
