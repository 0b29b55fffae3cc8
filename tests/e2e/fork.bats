#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig fork: a second jail on the state of another, whose changes are its own; brig gc.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

setup() {
    repos_setup
    FORK=$JAIL-f
    for who in $(everyone root); do
        jail "$who" "$FORK"
    done
}

teardown() {
    repos_teardown
}

# pairs_all: who runs brig, and in which mode: each who and each mode; with BRIG_THOROUGH=1 more of them together.
pairs_all() {
    if ! lib_is_root; then
        echo user:casual user:strict user:sealed
    elif [ -n "${BRIG_THOROUGH:-}" ]; then
        echo user:casual user:strict user:sealed sudo:casual root:sealed
    else
        echo user:strict sudo:casual root:sealed
    fi
}

# in_fork PAIR SCRIPT [OPTIONS…]: a shell in the forked jail.
in_fork() {
    JAIL=$FORK inside "$@"
}

store() {
    [ "$1" = root ] && echo "$ROOT_STORE" || echo "$HOME_OF_USER/.local/share/brig"
}

@test "both jails have the same state, and change only their own" {
    for pair in $(pairs_all); do
        who=${pair%:*}
        project "$who"
        must inside "$pair" 'echo one >a; rm b; mkdir d; echo n >d/n; git checkout -q -b x; git commit -q -a -m two' -R
        must by "$who" fork "$JAIL" "$FORK"
        must in_fork "$pair" 'cat a d/n; test ! -e b; git log --format=%s; git symbolic-ref HEAD; echo two >a; rm -r d; echo b >b' -R
        output_has $'one\nn\ntwo\nfirst\nrefs/heads/x'
        must inside "$pair" 'cat a d/n; test ! -e b; echo three >>a' -R
        output_has $'one\nn'
        must in_fork "$pair" 'cat a b; test ! -e d' -R
        output_has $'two\nb'
        [ "$(cat a)" = a ]
        [ "$(cat b)" = b ]
        must by "$who" diff --no-pager --jails "$JAIL" "$FORK"
        output_has '+two' && output_has '-three'
        must by "$who" rm -f "$FORK"
        must by "$who" rm -f "$JAIL"
    done
}

@test "a fork of the jail default has its mode" {
    must run_as_user "$BRIG" -D true
    must by user fork default "$FORK"
    must by user list
    [[ $output =~ $FORK\ +casual ]]
}

@test "the upper directory is shared and not copied, until a command rewrites it" {
    project user
    must inside user:sealed 'head -c 3000000 /dev/zero >big; rm b; mkdir d; echo n >d/n; ln -s a l' -R
    must by user fork "$JAIL" "$FORK"
    frozen=$(store user)/$JAIL.review/$(cat "$(store user)/$JAIL.review/1.below")
    [ -s "$frozen/big" ]
    [ -z "$(ls -A "$(store user)/$FORK.review/1.changes")" ]
    [ -z "$(ls -A "$(store user)/$JAIL.review/1.changes")" ]
    must in_fork user:sealed 'echo more >d/more; rm d/n' -R
    must by user apply -j "$FORK" --all --risky
    [ -s big ]
    [ ! -e b ]
    [ -e d/more ]
    [ ! -e d/n ]
    [ "$(readlink l)" = a ]
    must by user status -j "$FORK"
    output_has 'no changes'
    # The other jail still has its own.
    must inside user:sealed 'cat d/n' -R
    must by user gc
    [ -d "$frozen" ] # the first jail uses it
    must by user rm -f "$JAIL"
    must by user gc
    [ ! -e "$frozen" ]
}

@test "a fork of a fork of a fork" {
    project user
    must inside user:sealed 'echo 0 >zero; echo 0 >a' -R
    from=$JAIL
    for i in 1 2 3 4 5 6 7 8 9; do
        jail user "$FORK$i"
        must by user fork "$from" "$FORK$i"
        from=$FORK$i
        JAIL=$from must inside user:sealed "cat zero; echo $i >a; echo $i >f$i; rm -f f$((i - 1))" -R
    done
    JAIL=$from must inside user:sealed 'cat a f9; ls' -R
    output_has $'9\n9'
    JAIL=${FORK}4 must inside user:sealed 'cat a f4; test ! -e f5' -R
    must by user discard -j "$from" --all
    JAIL=$from must inside user:sealed 'cat a; test ! -e zero' -R
    output_has 'a'
    JAIL=${FORK}8 must inside user:sealed 'cat a f8 zero' -R
    output_has $'8\n8\n0'
    [ "$(cat a)" = a ]
}

@test "what was hidden from a run is hidden in its fork" {
    project user
    as user touch secret
    must inside user:sealed 'echo x >secret; echo x >known' -R
    must inside user:sealed 'echo y >more' -R --mask ./secret
    must by user fork "$JAIL" "$FORK"
    for jail in "$JAIL" "$FORK"; do
        must by user status -j "$jail"
        output_has known && output_has more
        output_lacks secret
        must by user apply -j "$jail" --dry-run --all
        output_has known
        output_lacks secret
    done
}

@test "what cannot be forked is refused by name, and leaves nothing behind" {
    project user
    must inside user:sealed 'echo one >a' -R
    run by user fork "$JAIL-no" "$FORK"
    [ "$status" -ne 0 ]
    output_has "no jail '$JAIL-no'"
    run by user fork "$JAIL" "$JAIL"
    [ "$status" -ne 0 ] && output_has 'already'
    run by user fork "$JAIL" a/b
    [ "$status" -ne 0 ]
    output_has "'a/b'"
    run by user fork "$JAIL"
    [ "$status" -ne 0 ] && output_has 'brig fork JAIL NEW'
    as user mkdir "$SCRATCH/both" # the jail's `up` stays in its copy of the project
    inside user:sealed ": >$SCRATCH/both/up; await_file $SCRATCH/both/go" -R -d "$SCRATCH/both" 3>&- &
    JOB=$!
    await_file "$SCRATCH/both/up"
    run by user fork "$JAIL" "$FORK"
    [ "$status" -ne 0 ] && output_has 'in use'
    as user touch "$SCRATCH/both/go"
    wait "$JOB"
    JOB=
    [ -z "$(find "$(store user)" -maxdepth 1 -name "$FORK.*")" ]
    must by user fork "$JAIL" "$FORK"
}

@test "gc removes old operations, and the changes of a directory that is gone" {
    project user
    must inside user:sealed 'echo one >a' -R
    must by user apply -j "$JAIL" --all
    must by user log -j "$JAIL"
    output_has apply
    must by user gc -j "$JAIL"
    must by user log -j "$JAIL" # younger than 30 days
    output_has apply
    must by user gc -j "$JAIL" --older 0 --dry-run
    output_has 'would remove 2 operations'
    must by user gc -j "$JAIL" --older 0
    output_has 'removed 2 operations'
    must by user log -j "$JAIL"
    must_fail output_has apply
    run by user gc -j "$JAIL" --older soon
    [ "$status" -ne 0 ]
    output_has "'soon'"
    must inside user:sealed 'echo two >a' -R
    cd / && rm -rf "$PROJECT"
    must by user gc -j "$JAIL"
    output_has 'does not exist any more; brig gc --gone removes its changes'
    must by user gc -j "$JAIL" --gone
    must by user gc -j "$JAIL"
    ! output_has 'does not exist'
    # Another directory gets its number, but none of its masks.
    project user
    must inside user:sealed 'true' -R --mask ./a
    as user mkdir "$SCRATCH/other"
    cd "$SCRATCH/other" && rm -rf "$PROJECT"
    must by user gc -j "$JAIL" --gone
    must inside user:sealed 'echo three >a' -R
    grep -qx "root $SCRATCH/other" "$(store user)/$JAIL.review/1.root"
    must by user status -j "$JAIL"
    output_has 'A  a  '
}
