#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a jail has changed in its copy of the home is applied, discarded and undone. The tree outside is compared with
# the one that the jail saw.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own variables
# shellcheck disable=SC2154 # status and output are set by `run`

load lib

RANDOM_TREE=$LIB_ROOT/tests/e2e/random-tree.bash

setup() {
    jails_setup
    JAIL=apply-${BATS_TEST_NUMBER:-0}
    for who in $(everyone); do
        jail "$who" "$JAIL"
    done
    TREE=$HOME_OF_USER/apply.$BATS_TEST_NUMBER
    run_as_user mkdir "$TREE"
    # Nothing reads the checkout as another user.
    install -m 0755 "$RANDOM_TREE" "$SCRATCH/tree"
    RANDOM_TREE=$SCRATCH/tree
}

teardown() {
    jails_teardown
    chmod -R u+rwx "$TREE" 2>/dev/null || true
    rm -rf -- "$TREE"
}

# inside WHO SCRIPT: in the tree, in a copy-on-write home.
inside() {
    by "$1" -m casual -j "$JAIL" -D -- bash -c "cd '$TREE' && $2"
}

# tree: everything in it, as the user sees it.
tree() {
    run_as_user "$RANDOM_TREE" --list "$TREE"
}

# seen WHO: the same inside.
seen() {
    by "$1" -m casual -j "$JAIL" -D -- "$RANDOM_TREE" --list "$TREE" 2>/dev/null
}

# storage: of the user.
storage() {
    echo "$HOME_OF_USER/.local/share/brig"
}

# has_tree TEXT: the tree is this.
has_tree() {
    local now
    now=$(tree)
    [ "$now" = "$1" ] || {
        diff <(echo "$1") <(echo "$now") >&2
        return 1
    }
}

# make_old: files of every type.
make_old() {
    run_as_user sh -ec 'cd "$1"; umask 022
        for type in file directory link fifo none; do
            for kind in file directory link fifo none same; do
                name=$type-$kind
                case $type in
                file) echo old >$name ;;
                directory) mkdir -p $name/in; echo old >$name/in/file ;;
                link) ln -s old $name ;;
                fifo) mkfifo $name ;;
                esac
            done
        done' sh "$TREE"
}

# For the jail: each becomes a file of every type.
MAKE_NEW='umask 022
    for type in file directory link fifo none; do
        for kind in file directory link fifo none; do
            name=$type-$kind
            case $type-$kind in
            file-file) echo new >$name; chmod 755 $name; continue ;;
            directory-directory) rm $name/in/file; echo new >$name/in/other; chmod 700 $name; continue ;;
            esac
            rm -rf $name
            case $kind in
            file) echo new >$name ;;
            directory) mkdir -p $name/below; echo new >$name/below/file; chmod 750 $name ;;
            link) ln -s new $name ;;
            fifo) mkfifo $name ;;
            esac
        done
    done'

@test "a file of each type becomes one of each type, and back" {
    for who in $(everyone); do
        rm -rf -- "${TREE:?}"/*
        make_old
        before=$(tree)
        must inside "$who" "$MAKE_NEW"
        after=$(seen "$who")
        has_tree "$before"
        [ "$after" != "$before" ]
        # FIFOs are flagged.
        must_exit 1 by "$who" apply -j "$JAIL" --all
        output_has FIFO
        output_has 'flagged changes need --risky'
        must by "$who" apply -j "$JAIL" --all --risky
        output_lacks 'flagged changes need'
        has_tree "$after"
        [ "$(seen "$who")" = "$after" ]
        must by "$who" status -j "$JAIL"
        output_has "no changes"
        must by "$who" undo -j "$JAIL"
        must by "$who" undo -j "$JAIL"
        has_tree "$before"
        [ "$(seen "$who")" = "$after" ]
        must by "$who" discard -j "$JAIL" --all
        [ "$(seen "$who")" = "$before" ]
        must by "$who" undo -j "$JAIL"
        [ "$(seen "$who")" = "$after" ]
        must by "$who" discard -j "$JAIL" --all
    done
}

@test "the applied tree is the one that the jail saw, whatever it did" {
    rounds=${BRIG_APPLY_ROUNDS:-8}
    for ((seed = 1; seed <= rounds; seed++)); do
        echo "seed $seed" >&2
        chmod -R u+rwx "$TREE"
        rm -rf -- "${TREE:?}"/*
        run_as_user "$RANDOM_TREE" "$TREE" "$seed" 25
        before=$(tree)
        after=$(inside user "$RANDOM_TREE . $((seed + 1000)) 25; $RANDOM_TREE --list .")
        must by user apply -j "$JAIL" --all --risky
        has_tree "$after"
        [ "$(seen user)" = "$after" ]
        if [ "$after" != "$before" ]; then
            must by user undo -j "$JAIL"
            has_tree "$before"
            [ "$(seen user)" = "$after" ]
        fi
        must by user discard -j "$JAIL" --all
        [ "$(seen user)" = "$before" ]
    done
}

@test "paths and patterns; applied files no longer hide later edits" {
    run_as_user sh -ec 'cd "$1"; mkdir d; echo 1 >a.c; echo 1 >d/b.c; echo 1 >d/b.h' sh "$TREE"
    must inside user 'for f in a.c d/b.c d/b.h; do echo 2 >$f; done; echo 2 >new'
    cd "$TREE"
    must by user apply -j "$JAIL" --dry-run '*.c'
    output_has "modify $TREE/a.c"
    output_has "modify $TREE/d/b.c"
    output_lacks b.h
    [ "$(cat a.c d/b.c)" = $'1\n1' ]
    must by user apply -j "$JAIL" '*.c'
    [ "$(cat a.c d/b.c d/b.h)" = $'2\n2\n1' ]
    [ ! -e new ]
    must_exit 1 by user apply -j "$JAIL" nothing
    output_has "nothing has changed at 'nothing'"
    must by user apply -j "$JAIL" "$TREE/d"
    [ "$(cat d/b.h)" = 2 ]
    run_as_user sh -c 'echo 3 >a.c'
    must inside user 'cat a.c'
    output_has 3
    must_exit 125 by user apply -j "$JAIL"
    output_has "needs a path"
}

@test "a file that the user has changed meanwhile is never overwritten without a decision" {
    for rule in '' skip mine theirs; do
        run_as_user sh -ec 'cd "$1"; rm -f *; echo 1 >f; echo 1 >gone' sh "$TREE"
        must inside user 'echo jail >f; rm gone; echo jail >both'
        run_as_user sh -ec 'cd "$1"; echo mine >f; echo mine >gone; echo mine >both' sh "$TREE"
        run by user apply -j "$JAIL" --all ${rule:+--conflict $rule}
        case $rule in
        theirs)
            [ "$status" -eq 0 ]
            [ "$(cat "$TREE/f" "$TREE/both")" = $'jail\njail' ]
            [ ! -e "$TREE/gone" ]
            must by user undo -j "$JAIL"
            ;;
        mine) [ "$status" -eq 0 ] ;;
        *)
            [ "$status" -eq 1 ]
            output_has "not applied: $TREE/f: "
            if [ "$rule" = skip ]; then output_lacks 'conflicts need'; else output_has 'conflicts need --conflict mine'; fi
            ;;
        esac
        [ "$(cat "$TREE/f" "$TREE/gone" "$TREE/both")" = $'mine\nmine\nmine' ]
        must inside user 'cat f both'
        [ "$rule" != mine ] || output_has $'mine\nmine'
        [ "$rule" = mine ] || output_has $'jail\njail'
        must by user discard -j "$JAIL" --all
    done
}

@test "an undo is refused where a file has changed since, unless forced" {
    run_as_user sh -c "echo 1 >'$TREE/f'; echo 1 >'$TREE/g'"
    must inside user 'echo 2 >f; echo 2 >g'
    must by user apply -j "$JAIL" --all
    run_as_user sh -c "echo 3 >'$TREE/f'"
    must_exit 125 by user undo -j "$JAIL"
    output_has "$TREE/f: it has changed since"
    [ "$(cat "$TREE/f" "$TREE/g")" = $'3\n2' ]
    must by user undo -j "$JAIL" "$TREE/g"
    [ "$(cat "$TREE/f" "$TREE/g")" = $'3\n1' ]
    must by user undo -j "$JAIL" --force
    [ "$(cat "$TREE/f" "$TREE/g")" = $'1\n1' ]
    must by user log -j "$JAIL"
    output_has "undo"
    must by user log -j "$JAIL" --json
    echo "$output" | python3 -c 'import json, sys; log = json.load(sys.stdin); assert [o["kind"] for o in log if o["kind"] != "run"] == ["undo", "undo", "apply"], log'
}

@test "masked files are neither deleted nor replaced" {
    run_as_user sh -ec 'cd "$1"; mkdir -p d/secret; echo key >d/secret/key; echo 1 >d/file' sh "$TREE"
    name=${TREE##*/}
    must by user -m casual -j "$JAIL" -D --mask "$name/d/secret" -- bash -c "cd '$TREE' && rm -r d; test ! -e d/file"
    run_as_user sh -c "echo 'mask $name/d/secret' >>'$(storage)/$JAIL.jail'"
    by user apply -j "$JAIL" --all --risky || true
    [ "$(cat "$TREE/d/secret/key")" = key ]
    [ ! -e "$TREE/d/file" ]
}

# A mapped page that is dirty already gets no new time when it is written again.
@test "a mapped file that was changed after it was shown is not applied; the other one is" {
    needs python3
    run_as_user sh -c "echo 1111 >'$TREE/f'; echo 1111 >'$TREE/g'"
    run_as_user tee "$SCRATCH/project/map.py" >/dev/null <<'END'
import mmap, os, sys, time

def wait(name):
    while not os.path.exists(name):
        time.sleep(0.02)
maps = [mmap.mmap(os.open(f"{sys.argv[1]}/{name}", os.O_RDWR), 4) for name in "fg"]
for one in maps:
    one[0:4] = b"2222"
open("up", "w").close()
wait("go")
maps[0][0:4] = b"3333"
open("changed", "w").close()
wait("end")
END
    by user -m casual -j "$JAIL" -- python3 map.py "$TREE" 3>&- &
    job=$!
    await test -e up
    must by user status -j "$JAIL" --json
    python3 -c 'import json, sys
for layer in json.loads(sys.argv[1])["layers"]:
    for change in layer["changes"]:
        if change["path"].endswith(("/f", "/g")):
            sys.stdout.write("%s %s/%s\0" % (change["token"], layer["root"], change["path"]))' "$output" >"$SCRATCH/shown"
    [ "$(tr '\0' '\n' <"$SCRATCH/shown" | wc -l)" -eq 2 ]
    run_as_user touch go
    await test -e changed
    must_exit 1 by user apply -j "$JAIL" --live --shown <"$SCRATCH/shown"
    output_has "f: it has changed since it was shown"
    [ "$(cat "$TREE/f" "$TREE/g")" = $'1111\n2222' ]
    run_as_user touch end
    wait "$job"
}

@test "during a run the upper directory is not changed, and --live applies" {
    run_as_user sh -c "echo 1 >'$TREE/f'"
    # The project is granted: there the two sides see each other's files.
    by user -m casual -j "$JAIL" -- bash -c "$AWAIT; echo 2 >$TREE/f; : >$TREE/up; await_file go; echo 3 >$TREE/f; : >$TREE/again
        await_file end" 3>&- &
    job=$!
    await grep -q 2 "$(storage)/$JAIL.changes/${TREE##*/}/f"
    await test -e "$(storage)/$JAIL.changes/${TREE##*/}/up"
    must_exit 125 by user apply -j "$JAIL" --all
    output_has "--live"
    must_exit 125 by user discard -j "$JAIL" --all
    must by user apply -j "$JAIL" --live --all
    [ "$(cat "$TREE/f")" = 2 ]
    must by user status -j "$JAIL"
    output_lacks "$TREE/f"
    run_as_user touch go
    # The jail goes on with its own version, which is a change again.
    await test -e "$(storage)/$JAIL.changes/${TREE##*/}/again"
    must by user apply -j "$JAIL" --live --all
    [ "$(cat "$TREE/f")" = 3 ]
    run_as_user touch end
    wait "$job"
}

@test "an undo puts back into the jail what was applied during a run, and what was in a directory that is gone there" {
    run_as_user sh -c "mkdir '$TREE/d' && echo 1 >'$TREE/d/f' && echo 1 >'$TREE/d/g' && echo gone >'$TREE/x'"
    by user -m casual -j "$JAIL" -- bash -c "$AWAIT; (cd $TREE; echo 2 >d/f; rm x; mkdir n; echo n >n/n; chmod 600 d/g; : >up)
        await_file go" 3>&- &
    job=$!
    await test -e "$(storage)/$JAIL.changes/${TREE##*/}/up"
    before=$(tree)
    must by user apply -j "$JAIL" --live --all
    [[ $output =~ brig\ undo\ -j\ $JAIL\ ([0-9]+) ]]
    live=${BASH_REMATCH[1]}
    [ "$(cat "$TREE/d/f")" = 2 ]
    run_as_user touch go
    wait "$job"
    must by user status -j "$JAIL"
    output_lacks "$TREE/d/f"
    must by user undo -j "$JAIL" "$live"
    [ "$(tree)" = "$before" ]
    must inside user 'cat d/f n/n; test ! -e x; stat -c %a d/g'
    output_has $'2\nn\n600'
    must by user apply -j "$JAIL" --all
    [ "$(cat "$TREE/d/f")" = 2 ]
    [ ! -e "$TREE/x" ]
    # Of two that were applied one after the other, the older one is undone first.
    must inside user 'echo 3 >d/f; echo 3 >d/g'
    must by user apply -j "$JAIL" "$TREE/d/f"
    [[ $output =~ brig\ undo\ -j\ $JAIL\ ([0-9]+) ]]
    first=${BASH_REMATCH[1]}
    must by user apply -j "$JAIL" "$TREE/d/g"
    [[ $output =~ brig\ undo\ -j\ $JAIL\ ([0-9]+) ]]
    second=${BASH_REMATCH[1]}
    must by user undo -j "$JAIL" "$first"
    must inside user 'cat d/f d/g'
    output_has $'3\n3'
    [ "$(cat "$TREE/d/f" "$TREE/d/g")" = $'2\n3' ]
    must by user undo -j "$JAIL" "$second"
    output_lacks "not undone"
    [ "$(cat "$TREE/d/f" "$TREE/d/g")" = $'2\n1' ]
    must inside user 'cat d/f d/g'
    output_has $'3\n3'
}

@test "a kill at any point of apply, undo and discard can be continued and aborted" {
    needs strace
    make_small() {
        run_as_user sh -ec 'cd "$1"; umask 022; chmod -R u+rwx .; rm -rf ./*
            mkdir -p d/e ro o td; echo a >a; echo b >b; echo x >d/x; echo y >d/e/y; echo r >ro/r; echo z >td/z
            echo o >o/o; echo t >t; chmod 555 ro' sh "$TREE"
    }
    change='echo A >a; rm b; rm -r d; mkdir n; echo n >n/n; ln n/n n/m; chmod 755 ro; echo R >ro/r; chmod 555 ro
        rm -r o; mkdir o; echo q >o/q; chmod 700 o; rm t; mkdir t; echo i >t/i; rm -r td; ln -s a td'
    calls='renameat2 renameat unlinkat mkdirat fsync fchmod chmod setxattr removexattr write'
    make_small
    must inside user "$change"
    before=$(tree)
    after=$(seen user)
    must by user -u -j "$JAIL"
    # undone: back to what was before the verb.
    undone() {
        case $verb in
        apply | discard) must by user undo -j "$JAIL" ;;
        undo) must by user apply -j "$JAIL" --all --risky ;;
        esac
    }
    # Each verb is killed at calls of every kind, and by turns continued and aborted.
    for verb in apply undo discard; do
        case $verb in
        apply) words=(--all --risky) from=$before to=$after ;;
        undo) words=(--force) from=$after to=$before ;;
        discard) words=(--all) from=$before to=$before ;;
        esac
        # How often it makes each call: the process that makes it most often, as they are counted one by one.
        must run_as_user strace -f --seccomp-bpf -o "$SCRATCH/calls" -e "trace=${calls// /,}" \
            "$BRIG" "$verb" -j "$JAIL" "${words[@]}"
        has_tree "$to"
        undone
        has_tree "$from"
        declare -A made=()
        while read -r count _ call; do
            [ "$count" -le "${made[$call]:-0}" ] || made[$call]=$count
        done < <(sed -n 's/^\([0-9]*\) *\([a-z0-9]*\)(.*/\1 \2/p' "$SCRATCH/calls" | sort | uniq -c)
        kills=0
        for call in $calls; do
            step=9
            [ "$call" != renameat2 ] || step=5
            [ -z "${BRIG_THOROUGH:-}" ] || step=1
            for ((n = 1; n <= ${made[$call]:-0}; n += step)); do
                run run_as_user strace -f -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL:when=$n" \
                    "$BRIG" "$verb" -j "$JAIL" "${words[@]}"
                [ "$status" -eq 137 ] || {
                    # The last one may be made or not.
                    [ "$n" -gt 1 ]
                    [ "$status" -eq 0 ]
                    undone
                    break
                }
                kills=$((kills + 1))
                how=$([ $((n / 2 % 2)) -eq 0 ] && echo --abort || echo --continue)
                must by user apply -j "$JAIL" "$how"
                now=$(tree)
                case $output in
                *completed*) [ "$now" = "$to" ] || has_tree "$to" ;;
                *reverted*) [ "$now" = "$from" ] || has_tree "$from" ;;
                esac
                if [ "$now" = "$from" ]; then
                    run by user "$verb" -j "$JAIL" "${words[@]}"
                    has_tree "$to"
                fi
                undone
                has_tree "$from"
            done
        done
        [ "$kills" -gt 0 ]
        # The next verb begins with what this one ends with.
        case $verb in
        apply) must by user apply -j "$JAIL" --all --risky ;;
        undo) must by user undo -j "$JAIL" ;;
        esac
    done
    [ "$(seen user)" = "$after" ]
}
