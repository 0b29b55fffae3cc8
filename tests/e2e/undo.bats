#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --checkpoint: what a run has changed in a directory of the user can be undone, as a whole or file by file.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

setup() {
    repos_setup
}

teardown() {
    repos_teardown
}

# undo PAIR ARGS…: brig undo for the jail of this test.
undo() {
    local who=${1%:*}
    shift
    by "$who" undo -j "$JAIL" "$@"
}

# keep: remembers the files of the project, without .git at its top.
keep() {
    rm -rf "$SCRATCH/expected"
    cp -a . "$SCRATCH/expected"
    listing >"$SCRATCH/listing"
}

listing() {
    find . -mindepth 1 -path ./.git -prune -o -printf '%p %y %m %U %l\n' | LC_ALL=C sort
}

# is_as_kept: the project has the same files, contents, modes and links again.
is_as_kept() {
    listing | diff "$SCRATCH/listing" - || return
    diff -r --no-dereference -x .git "$SCRATCH/expected" . || return
    [ ! -d .git ] || out fsck --no-dangling
}

ODD='mkdir -p c/d empty deep/er; echo one >c/one; chmod 755 c/one; chmod 700 empty; chmod 400 b
    printf "two\r\nlines\r\n" >c/crlf; git config core.autocrlf true
    printf "* text=auto eol=lf\n*.id ident\n*.f filter=evil\n" >.gitattributes
    git config filter.evil.clean "touch $PWD/../evil; cat"; git config filter.evil.smudge "touch $PWD/../evil; cat"
    printf "\$Id\$\n" >x.id; echo f >x.f; ln -s c/one link; ln -s /nonexistent dangling; ln -s c linkdir
    echo n >"new
line"; echo b >"$(printf "bytes\377")"; echo q >"quo\"te"
    git init -q nested; echo n >nested/file; (cd nested; git add file; git commit -qm nested)
    mkdir closed; echo c >closed/c; chmod 500 closed; echo o >old; touch -d "1960-01-01 00:00:00.5 UTC" old
    printf "small/\nbig/\n" >.gitignore; mkdir small big; echo s >small/s; head -c 20000000 /dev/zero >big/b'

@test "after rm -rf everything comes back, for every user and mode" {
    for pair in $(BRIG_TEST_PAIRS=all pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -ec "$ODD"
        keep
        must inside "$pair" 'chmod -R u+w . 2>/dev/null; rm -rf * .gitattributes .gitignore 2>/dev/null || :; : >evil' \
            --checkpoint
        output_has "left out: big/ (19.1 MiB)"
        output_has "brig undo"
        [ ! -e c ]
        [ ! -e nested/file ]
        [ -e evil ]
        output_has "not in the checkpoint, so brig undo cannot restore it: big (deleted)"
        must_exit 1 undo "$pair"
        output_has "big: it was deleted, and the checkpoint left it out"
        rm -rf "$SCRATCH/expected/big"
        sed -i '/^\.\/big/d' "$SCRATCH/listing"
        must is_as_kept
        [ ! -e "$SCRATCH/evil" ]
        [ ! -e "../evil" ]
    done
}

@test "an ignored directory is in it if --checkpoint-size says so" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'echo big >.gitignore; mkdir big; { echo first; head -c 20000000 /dev/zero; echo last; } >big/b'
    keep
    must inside "$pair" 'rm -rf big' --checkpoint --checkpoint-size 20M
    output_lacks "left out"
    must undo "$pair"
    must is_as_kept
}

@test "one file, a directory and a file in a deleted directory are restored alone" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'mkdir -p d/e f; echo 1 >d/one; echo 2 >d/e/two; echo 3 >f/three; echo 4 >f/four'
    must inside "$pair" 'rm -rf d f; echo changed >a; echo changed >b; mkdir new; echo n >new/n' --checkpoint
    must undo "$pair" a
    [ "$(cat a)" = a ]
    [ "$(cat b)" = changed ]
    [ ! -e d ]
    id=$(by "${pair%:*}" log -j "$JAIL" | sed -n 's/^#\([0-9]*\) .* run .*/\1/p')
    must undo "$pair" "$id" d/e/two f
    [ "$(cat d/e/two)" = 2 ]
    [ ! -e d/one ]
    [ "$(cat f/three f/four)" = "$(printf '3\n4')" ]
    must undo "$pair" "$id" new
    [ ! -e new ]
    [ "$(cat b)" = changed ]
    must undo "$pair" "$id"
    [ "$(cat b)" = b ]
    [ "$(cat d/one)" = 1 ]
}

@test "a file that has changed since is not overwritten, unless with --force" {
    pair=$(pairs)
    project "${pair%:*}"
    must inside "$pair" 'echo jail >a; rm b; mkdir new; echo n >new/n' --checkpoint
    as "$OWNER" sh -c 'echo mine >a'
    run undo "$pair"
    [ "$status" -ne 0 ]
    output_has "a: it has changed since"
    output_has "nothing was undone"
    [ "$(cat a)" = mine ]
    [ ! -e b ]
    [ -e new/n ]
    must undo "$pair" b # the others can be restored
    [ "$(cat b)" = b ]
    [ "$(cat a)" = mine ]
    as "$OWNER" sh -c 'echo mine >new/mine'
    run undo "$pair" new
    [ "$status" -ne 0 ]
    output_has "new: there are new files in it"
    [ "$(cat new/mine)" = mine ]
    run undo "$pair" --force
    output_has "new: it is not empty"
    [ "$(cat a)" = a ]
    [ ! -e new/n ]
    [ "$(cat new/mine)" = mine ]
}

@test "an undo can be undone, and that again" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'mkdir -p d/e; echo 1 >d/e/1; chmod 700 d; ln -s a l; chmod 500 d/e'
    keep
    must inside "$pair" 'chmod -R u+w d; rm -r d; echo jail >a; ln -sfn b l; mkdir -p n/m; echo n >n/m/n; chmod 500 n/m' \
        --checkpoint
    cp -a . "$SCRATCH/after"
    must undo "$pair"
    id=$(sed -n 's/.* \([0-9]*\) reverts.*/\1/p' <<<"$output")
    must is_as_kept
    must undo "$pair" "$id"
    must diff -r --no-dereference -x .git "$SCRATCH/after" .
    [ "$(stat -c %a n/m)" = 500 ]
    must undo "$pair"
    must is_as_kept
}

@test "a type that has changed is restored" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'mkdir -p d/sub; echo 1 >d/1; echo 2 >d/sub/2; echo f >f; ln -s a l'
    keep
    must inside "$pair" 'rm -r d; echo file >d; rm f; mkdir f; echo in >f/in; rm l; mkdir -p l/x; rm a; ln -s b a' \
        --checkpoint
    must undo "$pair"
    must is_as_kept
}

@test "a second run has its own checkpoint, and both can be undone" {
    pair=$(pairs)
    project "${pair%:*}"
    keep
    must inside "$pair" 'echo one >a' --checkpoint
    must inside "$pair" 'echo two >a; echo two >b' --checkpoint
    must undo "$pair"
    [ "$(cat a)" = one ]
    [ "$(cat b)" = b ]
    must undo "$pair"
    must is_as_kept
    run undo "$pair"
    [ "$status" -ne 0 ]
    output_has "no operation that can be undone"
}

@test "an interrupted undo of a run is completed or reverted, though the jail has no layers" {
    for how in --continue --abort; do
        project user
        keep
        must inside user:sealed 'echo one >a; echo new >c' --checkpoint
        must undo user
        must is_as_kept
        # As if the undo had been killed after its last step.
        done_mark=$(find "$HOME_OF_USER/.local/share/brig/$JAIL.record/operations" -name done -printf '%T@ %p\n' | sort -n | tail -n 1)
        rm "${done_mark#* }"
        must by user apply -j "$JAIL" "$how"
        if [ "$how" = --continue ]; then
            output_has completed
            must is_as_kept
        else
            output_has reverted
            [ "$(cat a)" = one ]
            [ "$(cat c)" = new ]
        fi
    done
}

@test "a directory that its owner cannot search is left out" {
    project user
    as "$OWNER" sh -ec 'mkdir closed; echo c >closed/c; chmod 600 closed'
    must inside user:sealed 'echo one >a' --checkpoint
    output_has "left out: closed/ (unreadable)"
    must undo user
    [ "$(cat a)" = a ]
    must inside user:casual 'echo two >a' --review
    must by user apply -j "$JAIL" --all
    [ "$(cat a)" = two ]
}

@test "what the checkpoint left out is named when a run has changed it, by the run and by undo" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'printf "*.bin\n" >.gitignore; for f in one two three; do head -c 2000000 /dev/zero >$f.bin; done'
    local options=(--checkpoint --checkpoint-size 1M)
    must inside "$pair" 'echo x >>one.bin; rm two.bin; rm b' "${options[@]}"
    output_has "not in the checkpoint, so brig undo cannot restore it: one.bin (changed), two.bin (deleted)"
    output_has "1 deleted in your files; brig undo"
    must_exit 1 undo "$pair"
    output_has "one.bin: it has changed, and the checkpoint left it out"
    output_has "two.bin: it was deleted, and the checkpoint left it out"
    output_lacks three.bin
    [ "$(cat b)" = b ]
    # A run that has changed nothing else,
    must inside "$pair" 'rm one.bin' "${options[@]}"
    output_has "cannot restore it: one.bin (deleted)"
    output_lacks "in your files"
    must_exit 125 undo "$pair"
    output_has "one.bin: it was deleted"
    output_has "only what the checkpoint left out"
    # and one that has not changed it.
    must inside "$pair" 'echo other >b' "${options[@]}"
    output_lacks "not in the checkpoint"
    must undo "$pair"
    [ "$(cat b)" = b ]
}

@test "a run that changes nothing leaves nothing to undo, and none without --checkpoint" {
    pair=$(pairs)
    project "${pair%:*}"
    must inside "$pair" ': <a' --checkpoint
    output_lacks "brig undo"
    must inside "$pair" 'echo changed >a'
    output_lacks "brig undo"
    run undo "$pair"
    [ "$status" -ne 0 ]
}

@test "without a repository, and through a symbolic link" {
    pair=$(pairs)
    enter_project "${pair%:*}"
    as "$OWNER" sh -ec 'mkdir d; echo 1 >d/1; echo 2 >two; ln -s p ../link'
    keep
    must inside "$pair" 'rm -rf d two' --checkpoint
    must undo "$pair"
    must is_as_kept
    cd ../link
    must inside "$pair" 'rm -rf d; echo x >two' --checkpoint
    must undo "$pair" two
    [ "$(cat two)" = 2 ]
    [ ! -e d ]
    must undo "$pair" "$PROJECT/d"
    must is_as_kept
}

@test "other granted directories and single files are in the checkpoint" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'mkdir ../other; echo o >../other/o; echo s >../single; echo r >../beside'
    must inside "$pair" 'rm "$OTHER/o"; echo x >"$SINGLE"; rm a' --checkpoint -d ../other -d ../single \
        --setenv OTHER="$SCRATCH/other" --setenv SINGLE="$SCRATCH/single"
    must undo "$pair"
    [ "$(cat ../other/o)" = o ]
    [ "$(cat ../single)" = s ]
    [ -e a ]
    [ -e ../beside ]
}

@test "a checkpoint needs something that can be written, and says so" {
    project user
    must by user -m sealed -j "$JAIL" -D --checkpoint -- true
    output_has "no checkpoint is taken"
    must by user -m sealed -j "$JAIL" --checkpoint -- true
    output_lacks "no checkpoint is taken"
}

@test "the store of checkpoints is not visible in any jail" {
    project user
    must inside user:casual 'echo x >a' --checkpoint
    store=$HOME_OF_USER/.local/share/brig/$JAIL.record
    [ -d "$store/store.git" ]
    must inside user:casual "test ! -e '$store' && rm -rf '$store'"
    [ -d "$store/store.git" ]
    must undo user 1
    [ "$(cat a)" = a ]
}

@test "masked files are not in it" {
    project user
    as user sh -ec 'mkdir secret; echo s >secret/s; echo k >key'
    must inside user:sealed 'rm -f a' --checkpoint --mask ./secret --mask ./key
    [ -z "$(as user git --git-dir="$HOME_OF_USER/.local/share/brig/$JAIL.record/store.git" \
        log --all --name-only --format= | grep -E 'secret|key')" ]
    must undo user
    [ "$(cat a secret/s key)" = "$(printf 'a\ns\nk')" ]
}

@test "a killed run is undone by the next command" {
    project user
    keep
    inside user:sealed 'rm -rf b; echo jail >a; : >up; sleep 1000' --checkpoint >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    await_file up
    pid=$(find_brig "$JOB")
    kill -9 "$pid"
    wait "$JOB" || true
    JOB=
    rm -f up
    # What the user has done since could be counted as the run's.
    await sh -c '! "$@" 2>&1 | grep -q "still active\|in use"' - run_as_user "$BRIG" undo -j "$JAIL"
    must_exit 125 undo user
    output_has "was killed, and what has changed until it was noticed counts as its changes"
    must undo user --force
    must is_as_kept
}

@test "a checkpoint that is killed leaves a state from which the next one works" {
    project user
    as user sh -ec 'mkdir m; for i in $(seq 500); do echo $i >m/$i; done'
    keep
    for delay in 0.00 0.02 0.04 0.06 0.08 0.10 0.14; do
        run_as_user timeout -s KILL "$delay" "$BRIG" -m sealed -j "$JAIL" --checkpoint -- rm -rf m || true
        await_not pgrep -u "$LIB_USER" -f 'rm -rf m$' # brig and the command end later than timeout
        [ -e m/500 ] || break
    done
    [ -e m/500 ] || cp -a "$SCRATCH/expected/m" .
    chown -R --reference=a m
    must inside user:sealed 'rm -rf m' --checkpoint
    must undo user
    must is_as_kept
}

@test "a project on another filesystem than the storage" {
    lib_is_root || skip "needs a mount"
    enter_project user
    mount -t tmpfs tmpfs "$PROJECT"
    chown --reference="$SCRATCH" "$PROJECT"
    cd "$PROJECT"
    as user sh -ec 'mkdir -p d/e; echo 1 >d/e/1; echo a >a; ln -s a l'
    keep
    must inside user:sealed 'rm -rf d; echo x >a; mkdir n; echo n >n/n; rm l' --checkpoint
    cp -a . "$SCRATCH/after"
    run undo user
    said=$output
    result=$(is_as_kept && echo same)
    undo user "$(sed -n 's/.* \([0-9]*\) reverts.*/\1/p' <<<"$said")" || true
    again=$(diff -r --no-dereference "$SCRATCH/after" . && echo same)
    left=$(ls -A)
    cd ..
    umount "$PROJECT"
    echo "$said $result $again $left"
    [ "$result" = same ]
    [ "$again" = same ]
    [[ $left != *.brig-* ]]
}

@test "a full disk ends it before the command starts" {
    lib_is_root || skip "needs a mount"
    project user
    store=$SCRATCH/store
    mkdir "$store"
    mount -t tmpfs -o size=2M tmpfs "$store"
    chown --reference=a "$store"
    as user sh -ec 'head -c 6000000 /dev/urandom >large'
    run by user -m sealed -j "$JAIL" --storage "$store" --checkpoint -- rm a
    status_of_full=$status
    said=$output
    run by user -m sealed -j "$JAIL" --storage "$store" --no-checkpoint -- rm b
    umount "$store"
    [ "$status_of_full" -eq 125 ]
    [ -e a ]
    [[ $said == *"cannot take a checkpoint"* && $said == *"--no-checkpoint"* ]]
    [ "$status" -eq 0 ]
    [ ! -e b ]
}

@test "without room in a storage of its own nothing is applied, and with it everything" {
    lib_is_root || skip "needs a mount"
    project user
    store=$SCRATCH/store
    mkdir "$store"
    mount -t tmpfs -o size=16M tmpfs "$store"
    chown --reference=a "$store"
    as user sh -ec 'for i in 1 2 3; do head -c 2000000 /dev/zero >f$i; done; ln f1 other'
    cp -a . "$SCRATCH/before"
    there() { as user env XDG_DATA_HOME="$store" "$BRIG" "$@"; }
    must there -m sealed -j "$JAIL" -R -- sh -c 'for i in 1 2 3; do head -c 2000000 /dev/urandom >f$i; done'
    as user sh -c 'head -c 4000000 /dev/zero >"$1/filler"' - "$store"
    run there apply -j "$JAIL" --all
    refused="$status $output"
    untouched=$(diff -r "$SCRATCH/before" . && ls -A)
    rm "$store/filler"
    run there apply -j "$JAIL" --all
    applied="$status $output"
    run there undo -j "$JAIL"
    undone="$status $(diff -r "$SCRATCH/before" . && stat -c %h f1)"
    there -u -j "$JAIL" || true
    umount "$store"
    echo "$refused; $untouched; $applied; $undone"
    [[ $refused == "125 "*"nothing was changed"*"Make room"* ]]
    [[ -n $untouched && $untouched != *.brig-* ]]
    [[ $applied == "0 "* ]]
    [ "$undone" = "0 2" ] # the hard link is there again
}

@test "with --review a checkpoint keeps the contents, and there is nothing to undo" {
    project user
    must inside user:casual 'echo jail >a' --checkpoint --review
    [ "$(cat a)" = a ]
    output_lacks "brig undo"
    as user sh -c "ls $HOME_OF_USER/.local/share/brig/$JAIL.record/store.git/objects/pack/*.pack"
}

@test "undo means the last run, says what it did, and touches nothing else" {
    project user
    as "$OWNER" sh -ec 'echo two >a; git commit -q -a -m two'
    old=$(out rev-parse --short=7 HEAD)
    must inside user:sealed 'echo t1 >a' -R
    must by user discard -j "$JAIL" --all
    must inside user:sealed 'git reset -q --hard HEAD~1'
    new=$(out rev-parse --short=7 HEAD)
    must_exit 125 undo user
    output_has "moved main from $old to $new"
    output_has "without a checkpoint"
    output_has "brig undo -j $JAIL --git 3 brings that back"
    output_has "brig undo -j $JAIL 2 reverts operation 2 (discard"
    must by user log -j "$JAIL"
    output_lacks "undone by"
    # What it says works, and leaves the files, of which nothing is known.
    must undo user --git 3
    output_has "git: moved main from $new to $old, changed the index"
    [ "$(out log -1 --format=%s)" = two ]
    [ "$(out status --porcelain)" = ' M a' ]
    must_exit 125 undo user --git 2
    output_has "operation 2 is undone as a whole"
    must out checkout -q a
    must undo user 2
    output_has "operation 2 (discard"
    must by user status -j "$JAIL"
    output_has " M  a"
}

@test "undo of a run with a checkpoint restores the files, refs and the index, or nothing" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        must inside "$pair" 'echo jail >a; git commit -q -a -m jail; git branch topic; echo s >s; git add s' --checkpoint
        # A file that is named is restored alone.
        must undo "$who" 1 a
        output_has "git stays as it is"
        [ "$(cat a)" = a ]
        [ "$(out log -1 --format=%s)" = jail ]
        must undo "$who" 2
        must undo "$who" 1
        output_has "git: moved main from "
        output_has "deleted topic"
        [ "$(cat a)" = a ]
        [ "$(out log -1 --format=%s)" = first ]
        [ "$(out for-each-ref --format='%(refname)' refs/heads)" = refs/heads/main ]
        [ -z "$(out status --porcelain)" ]
        must by "$who" log -j "$JAIL" --json
        echo "$output" | python3 -c 'import json, sys
log = json.load(sys.stdin); assert [(e["files"], e["git"]) for e in (log[0], log[-1])] == [("listed", "listed")] * 2, log'
        # Twice more: it is as the run has left it, and as before again.
        must undo "$who" 4
        [ "$(cat a s)" = $'jail\ns' ]
        [ "$(out log -1 --format=%s topic)" = jail ]
        [ "$(out status --porcelain)" = 'A  s' ]
        must undo "$who" 5
        [ -z "$(out status --porcelain)" ]
        # Where the user has gone on, nothing changes.
        must inside "$pair" 'echo again >a; git commit -q -a -m again' --checkpoint
        out commit -q --allow-empty -m mine
        must_exit 125 undo "$who"
        output_has "refs/heads/main has changed meanwhile"
        [ "$(cat a)" = again ]
        [ "$(out log -1 --format=%s)" = mine ]
        by "$who" rm -f "$JAIL"
    done
}

@test "a run with --review=auto is undone as a whole, or not at all" {
    project user
    run_as_user mkdir ../signal
    inside user:sealed 'echo x >a; await_file ../signal/go; echo y >b; git commit -q -a -m auto' --review=auto -r ../signal \
        >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    await grep -q x a
    run_as_user touch ../signal/go
    wait "$JOB"
    JOB=
    [ "$(out log -1 --format=%s)" = auto ]
    run_as_user sh -c 'echo mine >a'
    must_exit 125 undo user
    output_has "1 file has changed since operation"
    output_lacks "was undone;"
    [ "$(cat a b)" = $'mine\ny' ]
    [ "$(out log -1 --format=%s)" = auto ]
    # The twin.
    must undo user --force
    [ "$(cat a b)" = $'a\nb' ]
    [ "$(out log -1 --format=%s)" = first ]
    [ -z "$(out status --porcelain)" ]
}

@test "a repository that a run has made is taken away by undo, and put back; not one in which the user has worked" {
    for options in --checkpoint -R; do
        enter_project user
        must inside user:sealed 'echo a >a; git init -q -b trunk; git add a; git commit -q -m made; git stash list; echo b >b; git add b' \
            "$options"
        [ "$options" != -R ] || must by user apply -j "$JAIL" --all
        [ "$(out log -1 --format=%s)" = made ]
        [ "$(out status --porcelain)" = 'A  b' ]
        must undo user
        output_has "git: took away the repository $PROJECT"
        [ -z "$(ls -A)" ]
        must by user log -j "$JAIL" --json
        last=$(echo "$output" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
        must undo user "$last"
        output_has "git: made the repository $PROJECT"
        [ "$(cat a b)" = $'a\nb' ]
        [ "$(out log -1 --format=%s)" = made ]
        [ "$(out status --porcelain)" = 'A  b' ]
        out fsck --no-dangling
        # Where the user has gone on, nothing changes.
        out commit -q -m mine
        must_exit 125 undo user "$((last + 1))"
        output_has "the repository in '$PROJECT', which the jail has made, has changed meanwhile"
        [ "$(out log -1 --format=%s)" = mine ]
        [ "$(cat a b)" = $'a\nb' ]
        must by user rm -f "$JAIL"
    done
}

@test "an operation on a name of stray bytes is undone, and named" {
    project user
    must inside user:sealed 'echo y >"$(printf "\\200%.0s" $(seq 1 100))"' --review
    must by user discard -j "$JAIL" "$(printf '\200%.0s' $(seq 1 100))"
    must within 60 undo user
    output_has "(discard "
    output_has "was undone"
}

@test "undos in a row take what they have put back for the file itself, but not a copy of somebody else" {
    pair=$(pairs)
    project "${pair%:*}"
    as "$OWNER" sh -ec 'mkdir d; echo d >d/one; touch -d 2020-02-02 a d/one'
    keep
    must inside "$pair" 'echo first | tee -a a >>b; touch -d 2021-02-02 a' --checkpoint
    must inside "$pair" 'echo second >>a; mkdir n; echo n >n/n' --review
    must by "${pair%:*}" apply -j "$JAIL" --all
    must inside "$pair" 'echo third >>a; rm -r d n' --checkpoint
    must undo "$pair"
    [ "$(cat a d/one n/n)" = $'a\nfirst\nsecond\nd\nn' ]
    must undo "$pair"
    [ "$(cat a d/one)" = $'a\nfirst\nd' ]
    [ ! -e n ]
    must undo "$pair" a
    must_exit 125 undo "$pair" a
    output_has "is undone already"
    must undo "$pair"
    must is_as_kept
    # The twin: size, mode and time of contents are the same, and brig has not made it.
    must by "${pair%:*}" discard -j "$JAIL" --all
    must inside "$pair" 'echo third >>a' --review
    must by "${pair%:*}" apply -j "$JAIL" --all
    as "$OWNER" sh -ec 'cp -p a z; printf "a\nTHIRD\n" >z; touch -r a z; mv z a'
    must_exit 125 undo "$pair"
    output_has "a: it has changed since"
    [ "$(cat a)" = $'a\nTHIRD' ]
}

@test "undo of a checkpoint writes only to the directory that it is of: not to a copy, nor through a link" {
    project user
    local above=$PROJECT.above
    must inside user:sealed 'echo theirs >a; echo new >c' --checkpoint
    as "$OWNER" cp -a "$PROJECT" "$above"
    as "$OWNER" mv "$PROJECT" "$PROJECT.old"
    for how in "mv $above $PROJECT" "ln -s $above $PROJECT"; do
        # shellcheck disable=SC2086 # words
        as "$OWNER" $how
        run undo user:sealed --force
        [ "$status" -eq 125 ]
        output_has "$PROJECT"
        [ "$(cat "$PROJECT/a") $(cat "$PROJECT/c")" = "theirs new" ]
        as "$OWNER" mv -T "$(readlink -f "$PROJECT")" "$above.kept"
        as "$OWNER" rm -f "$PROJECT"
        as "$OWNER" mv "$above.kept" "$above"
    done
    # The twin: it is back at its path.
    as "$OWNER" mv "$PROJECT.old" "$PROJECT"
    must undo user:sealed
    [ "$(cat "$PROJECT/a")" != theirs ]
    [ ! -e "$PROJECT/c" ]
    rm -rf "$above"
}

@test "git status in a repository that a run has made does not keep undo from removing it; a commit does" {
    for then in status 'commit -q -m mine --allow-empty'; do
        project user
        keep
        must inside user:sealed 'git init -q new; echo n >new/n; cd new; git add n; git commit -q -m n; touch n' --checkpoint
        run_as_user git -C new update-index --force-write-index -q --refresh
        run_as_user git -C new -c user.name=U -c user.email=u@example.org $then
        if [ "$then" = status ]; then
            must undo user
            must is_as_kept
        else
            must_exit 125 undo user
            output_has "changed since"
            [ -e new/n ]
        fi
        by user rm -f "$JAIL"
    done
}

@test "undo of a run in which a rebase goes on names the command that ends it, which works" {
    project user
    as user sh -ec 'git switch -q -c side; echo s >s; git add s; git commit -q -m s; echo side >a; git commit -q -am side
        echo t >t; git add t; git commit -q -m t; git switch -q main; echo main >a; git commit -q -am main; git switch -q side'
    keep
    must inside user:sealed 'git rebase main >/dev/null 2>&1 || :; [ ! -e t ]' --checkpoint
    must undo user
    output_has "git: a rebase in $PROJECT still goes on in the jail"
    command=$(sed -n "s/.*To end it: brig -j $JAIL //p" <<<"$output")
    must is_as_kept
    eval "must by user -m sealed -j '$JAIL' ${GIT[*]} -- $command"
    output_lacks "rebase"
    must inside user:sealed 'git status; git log -1 --format=%s'
    output_has "On branch side"
    output_lacks "rebase"
    must is_as_kept
    # The twin: after a run without one, nothing is said.
    must inside user:sealed 'echo x >a' --checkpoint
    must undo user
    output_lacks "goes on"
}
