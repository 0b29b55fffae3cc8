# SPDX-License-Identifier: MIT
# What the suites about git share: projects of each user, and jails in which git finds its settings.
# shellcheck disable=SC2034 # variables for the suites
# shellcheck disable=SC2154 # output is set by `run`

# A git that finds its settings in the jail.
GIT=(--setenv GIT_CONFIG_GLOBAL=/dev/null --setenv GIT_AUTHOR_NAME=n --setenv GIT_AUTHOR_EMAIL=e
    --setenv GIT_COMMITTER_NAME=n --setenv GIT_COMMITTER_EMAIL=e)
JAIL=git-${BATS_TEST_NUMBER:-0} # what one test leaves unfinished is not of the next

# repos_setup: no settings of the user's or of the system's; names for commits that are made outside.
repos_setup() {
    needs git
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=o GIT_AUTHOR_EMAIL=o \
        GIT_COMMITTER_NAME=o GIT_COMMITTER_EMAIL=o
    jails_setup
    for who in $(everyone root); do
        jail "$who" "$JAIL"
    done
}

# repos_teardown: for teardown. A loop or a run in the background, JOB, is ended.
repos_teardown() {
    [ -z "${JOB:-}" ] || kill "$JOB" 2>/dev/null || true
    jails_teardown
}

# pairs: who runs brig, and in which mode, for `for pair in $(pairs)`: one of them, by turns from test to test; all with
# BRIG_TEST_PAIRS=all. Root's own home is no test's.
pairs() {
    local pairs=(user:casual root:sealed user:sealed sudo:sealed)
    lib_is_root || pairs=(user:casual user:sealed)
    if [ "${BRIG_TEST_PAIRS:-}" = all ]; then
        echo "${pairs[@]}"
    else
        echo "${pairs[BATS_TEST_NUMBER % ${#pairs[@]}]}"
    fi
}

# enter_project WHO [SCRIPT]: a new directory of the owner of WHO's projects becomes the working directory; PROJECT
# is its path, OWNER the owner. The script is run in it first.
enter_project() {
    OWNER=user
    [ "$1" != root ] || OWNER=root
    scratch_make "$OWNER" "mkdir p; cd p; ${2:-}" || return
    PROJECT=$SCRATCH/p
    cd "$PROJECT" || return
}

# project WHO: the same, a repository with the branch main, one commit and the files a and b.
project() {
    enter_project "$1" 'git init -q -b main; echo a >a; echo b >b; git add a b; git commit -q -m first'
}

# out ARGS…: git outside, as the owner of the project.
out() {
    as "$OWNER" git "$@"
}

# inside PAIR SCRIPT [OPTIONS…]: a shell in a jail.
inside() {
    local who=${1%:*} mode=${1#*:} script=$2
    shift 2
    [ "$mode" != bare ] || set -- -d . "$@"
    by "$who" -m "$mode" -j "$JAIL" "${GIT[@]}" "$@" -- sh -ec "$AWAIT $STATE $script"
}

# within SECONDS COMMAND…: the same of a brig that is ended when it takes longer: exit 124, or 137 if it does not end then.
within() {
    printf '#!/bin/sh\nexec timeout -k 5 %s "%s" "$@"\n' "$(($1 * ${BRIG_SLOW:-1}))" "$BRIG" >"$SCRATCH/within"
    chmod 755 "$SCRATCH/within"
    shift
    BRIG=$SCRATCH/within "$@"
}

# start PAIR SCRIPT [OPTIONS…]: the same in the background, as soon as it has made the file `up`. It goes on
# with `await_file go`. JOB is its pid, and what it prints is in $SCRATCH/out.
start() {
    local pair=$1 script=$2
    shift 2
    rm -f up go
    inside "$pair" ": >up; $script" "$@" >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    await_file up
}

# finish: lets it go on, waits for its end and sets output.
finish() {
    as "$OWNER" touch go
    wait "$JOB" || true
    JOB=
    output=$(cat "$SCRATCH/out")
    rm -f up go
}

# For the shell of a jail: `state` writes to the file `state` what git says of refs, HEAD and the index.
STATE='
state() {
    {
        git symbolic-ref -q HEAD || git rev-parse HEAD
        git for-each-ref --format="%(objectname) %(refname)" refs/heads refs/tags
        git ls-files -s
        git status --porcelain -uno
    } >state
};'

# arrived: what the jail wrote with `state` is what git says outside, and the repository is sound.
arrived() {
    local said=$output
    run as "$OWNER" sh -ec "mv state inside; $STATE state; diff inside state; rm -f inside state; git fsck --no-dangling"
    [ "$status" -eq 0 ] || {
        echo "inside and outside differ, or the repository is not sound: $output" >&2
        echo "brig said: $said" >&2
        return 1
    }
}

# kept SUBJECT: the commits with that subject that are kept for the user.
kept() {
    out for-each-ref --format='%(objectname) %(contents:subject)' "refs/brig/$JAIL" | sed -n "s/ $1\$//p" | sort -u
}

# nothing_left: of a jail's refs and locks nothing is left in the repository.
nothing_left() {
    # shellcheck disable=SC2016 # for that shell
    must as "$OWNER" sh -ec 'git for-each-ref refs/brig; directory=$(git rev-parse --absolute-git-dir); find "$directory" -name "*.lock"'
    [ -z "$output" ] || {
        echo "left: $output" >&2
        return 1
    }
}
