#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the verbs about changes say: counts, interrupted operations, and the command to type next.

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

# verb VERB ARGS…: a verb for the jail of this test.
verb() {
    local name=$1
    shift
    by user "$name" -j "$JAIL" "$@"
}

# interrupted VERB ARGS…: the same, with Ctrl-C after the first file has been moved.
interrupted() {
    local name=$1
    shift
    run_as_user strace -f -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=INT:when=1 \
        "$BRIG" "$name" -j "$JAIL" "$@"
}

@test "the line at the end of a run does not count what an earlier run has deleted" {
    project user
    must inside user:sealed 'rm b' -R
    output_has '1 file changed in'
    output_has '1 deleted'
    must inside user:sealed 'echo c >c' -R
    output_has "1 file changed in $PROJECT, 1 new; see"
    output_lacks deleted
    # A file that an earlier run has changed, and this one deletes.
    must inside user:sealed 'rm c; echo d >d' -R
    must inside user:sealed 'echo x >a' -R
    must inside user:sealed 'rm a' -R
    output_has "1 file changed in $PROJECT, 1 deleted; see"
    # Files that come back and go again are not old.
    must inside user:sealed 'echo b >b' -R
    must inside user:sealed 'rm b' -R
    output_has '1 deleted'
}

# remedies_name_jail: each command of brig that was printed names the jail. held, keep and sync are about all jails.
remedies_name_jail() {
    local rest
    rest=$(grep -oE 'brig (status|diff|review|apply|discard|undo|log)\b.{0,12}' <<<"$output" | grep -v -- " -j $JAIL"'\?' |
        grep -vF -- '-j' || true)
    [ -z "$rest" ] || {
        echo "without the jail: $rest" >&2
        return 1
    }
}

@test "commands that verbs print name the jail if it was named" {
    project user
    must inside user:sealed 'echo x >a; rm b; echo n >n; printf "#!/bin/sh\n" >t; chmod +x t; git commit -q -am x' -R
    output_has "brig status -j $JAIL"
    remedies_name_jail
    as "$OWNER" sh -c 'echo mine >a'
    must verb status
    output_has "Next: brig diff -j $JAIL, brig review -j $JAIL, brig apply -j $JAIL PATH, brig discard -j $JAIL PATH"
    output_has "conflict"
    remedies_name_jail
    must verb sync --show
    output_has "brig apply -j $JAIL --all"
    for words in "apply" "apply /nowhere" "apply --all" "discard" "undo 77" "undo /nowhere" "log 77" "diff /nowhere" "apply --all --conflict theirs --risky" \
        "undo" "undo" "undo" "status" "discard --all" "undo" "status /nowhere"; do
        # shellcheck disable=SC2086 # words
        run verb $words
        remedies_name_jail || {
            echo "of: $words: $output" >&2
            false
        }
    done
}

@test "an undo that finds nothing here names the newest operation elsewhere, and a discard says what it deleted" {
    project user
    must inside user:casual 'echo 1 >~/elsewhere' -R
    must verb apply "$HOME_OF_USER/elsewhere"
    must_exit 125 verb undo "$PROJECT/b"
    output_has "there is no operation at '$PROJECT/b' that can be undone. The newest elsewhere is: brig undo -j $JAIL "
    must inside user:sealed 'echo x >.envrc'
    must verb discard --all
    output_has "deleted $PROJECT/.envrc"
    output_lacks 'nothing to discard'
    must verb discard --all
    output_has 'nothing to discard'
}

@test "a merge that fails names the next step" {
    needs git
    project user
    must inside user:sealed 'echo jail >a' -R
    as "$OWNER" sh -c 'echo mine >a'
    must_exit 1 verb apply --all --conflict merge
    output_has 'both versions have changed the same lines'
    output_has "brig diff -j $JAIL PATH shows the jail's part; edit your file, then brig apply -j $JAIL --conflict mine PATH"
}

@test "a damaged list names itself and what to do" {
    project user
    must inside user:sealed 'echo x >a' -R
    list=$(echo "$HOME_OF_USER/.local/share/brig/$JAIL.record"/*.base)
    run_as_user sh -c 'echo damaged >"$1"' - "$list"
    must_exit 125 verb status
    output_has "the list of files '$list' is damaged. Conflicts are found by it. Remove it to go on without it"
    run_as_user rm "$list"
    must verb status
    output_has '  M  a'
}

@test "an undo brings conflicts in a replaced or deleted directory back" {
    project user
    for words in 'apply --all --conflict theirs' 'apply --all --conflict mine' 'discard --all'; do
        run_as_user sh -c 'rm -rf d gone; mkdir -p d gone/sub; echo 1 >d/1; echo 1 >gone/sub/1; echo 1 >gone/sub/2'
        must inside user:sealed 'rm -r d gone; echo jail >d' -R
        run_as_user sh -c 'echo mine >d/mine; echo mine >gone/sub/1'
        must verb status
        before=$output
        # shellcheck disable=SC2086 # several words
        run verb $words
        must verb undo
        must verb status
        [ "$output" = "$before" ]
        must_exit 1 verb apply --all
        [ "$(cat d/1 d/mine gone/sub/1)" = $'1\nmine\nmine' ]
        must verb discard --all
    done
    # What the user has not changed is no conflict after an undo.
    run_as_user sh -c 'rm -rf d gone; mkdir -p d gone/sub; echo 1 >d/1; echo 1 >gone/sub/1'
    must inside user:sealed 'rm -r d gone; echo jail >d' -R
    must verb apply --all
    must verb undo
    must verb apply --all
    [ "$(cat d)" = jail ]
    [ ! -e gone ]
}

@test "a directory that the user has made or changed is not deleted without a decision" {
    project user
    for jail in 'rm -r d' 'rm -r d; echo jail >d'; do
        for user in 'mkdir d/new' 'chmod 700 d/sub' 'rm -r d/sub; mkdir d/sub' 'chmod 700 d' 'chmod 755 d'; do
            run_as_user sh -c 'rm -rf d; mkdir -p d/sub; chmod 755 d'
            must inside user:sealed "$jail" -R
            run_as_user sh -c "$user"
            if [ "$user" = 'chmod 755 d' ]; then # as it was
                must verb apply --all
                [ ! -d d ]
            else
                must_exit 1 verb apply --all
                output_has conflict
                [ -d d ]
                must verb discard --all
            fi
        done
    done
}

@test "a deleted directory in which something stays is not listed as deleted" {
    project user
    run_as_user sh -c 'mkdir d; echo 1 >d/1; echo 2 >d/2'
    must inside user:sealed 'rm -r d' -R
    run_as_user sh -c 'echo mine >d/2'
    must_exit 1 verb apply --dry-run --all
    output_has "delete $PROJECT/d/1"
    [[ $output != *"delete $PROJECT/d"$'\n'* ]]
    must_exit 1 verb apply --all
    output_has 'applied 1 change;'
    # The twin: with nothing in the way it is.
    must verb apply --dry-run --all --conflict theirs
    [[ $output == *"delete $PROJECT/d" ]]
}

# shown PATH...: writes these changes as brig status --json has them, for --shown.
shown() {
    run_as_user "$BRIG" status -j "$JAIL" --json | python3 -c '
import json, sys
for layer in json.load(sys.stdin)["layers"]:
    for change in layer["changes"]:
        if change["path"] in sys.argv[1:]:
            sys.stdout.write("%s %s/%s\0" % (change["token"], layer["root"], change["path"]))' "$@" >"$SCRATCH/shown"
    chmod 644 "$SCRATCH/shown"
}

@test "discard --shown does not claim to drop a directory in which something is left" {
    project user
    must inside user:sealed 'mkdir k; echo 1 >k/1' -R
    shown k
    must_exit 1 verb discard --shown <"$SCRATCH/shown"
    output_has "not discarded: $PROJECT/k: it is not empty: discard what is in it too"
    output_lacks 'discarded 1'
    must verb status
    output_has '  A  k/1'
    shown k k/1
    must verb discard --shown <"$SCRATCH/shown"
    output_has 'discarded 2 changes'
    must verb status
    output_has 'no changes'
}

@test "what was shown is what is applied, discarded and compared" {
    project user
    must inside user:sealed 'echo harmless >a; printf "#!/bin/sh\n" >run; chmod +x run; mkdir -p d; echo 1 >d/1' -R
    shown a run
    must verb diff --shown <"$SCRATCH/shown"
    output_has +harmless
    output_lacks d/1
    # The risk that was shown becomes another one.
    must inside user:sealed 'echo evil >a; rm run; ln -s /etc/passwd run' -R
    must_exit 1 verb diff --shown <"$SCRATCH/shown"
    output_has "$PROJECT/a: it has changed since it was shown"
    output_lacks evil
    for what in apply 'apply --risky' discard; do
        # shellcheck disable=SC2086 # words
        must_exit 1 verb $what --shown <"$SCRATCH/shown"
        output_has "$PROJECT/a: it has changed since it was shown" "$PROJECT/run: it has changed since it was shown"
    done
    [ "$(cat a)" = "$(run_as_user git show HEAD:a)" ]
    [ ! -L run ]
    # The twins: what it is now. Flagged items are still asked for.
    shown a run d d/1
    must verb diff --shown <"$SCRATCH/shown"
    output_has +evil
    must_exit 1 verb apply --shown <"$SCRATCH/shown"
    output_has 'applied 3 changes' "not applied: $PROJECT/run: a link to an absolute path"
    [ "$(cat a d/1)" = $'evil\n1' ]
    [ ! -L run ]
    shown run
    must verb apply --shown --risky <"$SCRATCH/shown"
    [ -L run ]
    # An item that is no change any more, and words that are no items.
    must_exit 1 verb apply --shown <"$SCRATCH/shown"
    must_exit 125 verb apply --shown <<<"a"
    output_has '--shown: '
}

@test "what the user has changed since, and an ignored directory, are not what was shown" {
    project user
    run_as_user sh -c 'echo out/ >.gitignore; mkdir del; echo 1 >del/1'
    must inside user:sealed 'rm -r del; mkdir out; echo 1 >out/1; echo 2 >out/2; echo x >a' -R
    item() { # the ignored directory as one item
        run_as_user "$BRIG" status -j "$JAIL" --json --grouped | python3 -c '
import json, sys
for layer in json.load(sys.stdin)["layers"]:
    for change in layer["changes"]:
        if change["path"] == "out":
            sys.stdout.write("%s %s/out/" % (change["token"], layer["root"]))' >"$SCRATCH/out"
        chmod 644 "$SCRATCH/out"
    }
    shown del a
    item
    must inside user:sealed 'echo 3 >out/3' -R
    run_as_user sh -c 'echo new >del/2; echo mine >>a'
    must_exit 1 verb apply --shown --conflict theirs <"$SCRATCH/shown"
    output_has "$PROJECT/a: it has changed" "$PROJECT/del: it has changed"
    [ "$(cat del/*)" = $'1\nnew' ]
    must_exit 1 verb apply --shown <"$SCRATCH/out"
    output_has "$PROJECT/out: it has changed since it was shown"
    [ ! -e out ]
    item
    must verb apply --shown <"$SCRATCH/out"
    [ "$(cat out/*)" = $'1\n2\n3' ]
    shown del
    must verb apply --shown --conflict theirs <"$SCRATCH/shown"
    [ ! -e del ]
}

@test "the line mode of brig review shows a change again instead of applying another one" {
    project user
    must inside user:sealed 'echo harmless >a' -R
    mkfifo "$SCRATCH/keys"
    exec 8<>"$SCRATCH/keys"
    run_as_user "$BRIG" review --plain -j "$JAIL" <&8 >"$SCRATCH/review" 2>&1 3>&- 8>&- &
    local review=$!
    echo v >&8
    await grep -q harmless "$SCRATCH/review"
    must inside user:sealed 'echo evil >a' -R
    echo a >&8
    await grep -q '^+evil' "$SCRATCH/review"
    grep -q 'It has changed since it was shown' "$SCRATCH/review"
    [ "$(cat a)" = "$(run_as_user git show HEAD:a)" ]
    echo a >&8
    wait "$review"
    exec 8>&-
    grep -q '1 applied, 0 discarded' "$SCRATCH/review"
    [ "$(cat a)" = evil ]
}

@test "hints name the jail, unless it is the default one" {
    project user
    must inside user:sealed 'echo x >a; git commit -q -a -m second' -R
    output_has "; brig apply -j $JAIL --all moves your branches"
}

@test "Ctrl-C says how to go on; status, log, undo and fork name it" {
    needs strace
    project user
    must inside user:sealed 'echo x >a; echo y >b' -R
    must_exit 130 interrupted apply --all
    output_has "brig: interrupted. brig apply -j $JAIL --continue completes what was begun, brig apply -j $JAIL --abort reverts it"
    must verb status
    output_has "was interrupted: brig apply -j $JAIL --continue completes it, brig apply -j $JAIL --abort reverts it"
    must verb log
    output_has "(interrupted: brig apply -j $JAIL --continue or --abort)"
    for words in undo 'apply a' 'discard a'; do
        # shellcheck disable=SC2086 # words
        must_exit 125 verb $words
        output_has "was interrupted. Complete it with brig apply -j $JAIL --continue, or revert it with brig apply -j $JAIL --abort"
    done
    must_exit 125 by user fork "$JAIL" "$JAIL-2"
    output_has "brig apply -j $JAIL --continue"
    must verb apply --continue
    [ "$(cat a b)" = $'x\ny' ]
    must_exit 130 interrupted undo
    must_exit 125 verb undo
    output_has "brig apply -j $JAIL --continue"
    must verb apply --abort
    [ "$(cat a b)" = $'x\ny' ]
    must verb undo --force # the times of the files are those of the abort
    [ "$(cat a b)" = $'a\nb' ]
}

@test "an interrupted undo of a run with a checkpoint is shown, though the jail has no copies" {
    needs strace
    project user
    must inside user:sealed 'rm a b' --checkpoint
    must_exit 130 interrupted undo
    must verb status
    output_has "was interrupted: brig apply -j $JAIL --continue completes it"
    must_exit 125 verb undo
    output_has "brig apply -j $JAIL --continue"
    must verb apply --continue
    [ "$(cat a b)" = $'a\nb' ]
    must verb status
    output_lacks interrupted
}

@test "fork names a directory that it cannot copy" {
    project user
    must inside user:strict 'mkdir ~/closed; echo 1 >~/closed/1; chmod 0 ~/closed'
    must_exit 125 by user fork "$JAIL" "$JAIL-2"
    output_has "'closed' of the jail cannot be copied"
    must inside user:strict 'chmod 700 ~/closed'
    must by user fork "$JAIL" "$JAIL-2"
    must by user rm -f "$JAIL-2"
}

@test "mask says when an active run may still see the file" {
    project user
    run_as_user sh -c 'echo s >secret; mkdir ../signal'
    inside user:sealed ': >../signal/up; await_file ../signal/go' -R -d ../signal >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    await_file ../signal/up
    must verb mask ./secret
    output_has "from its next run on; the run that is active in '$PROJECT' may still see it"
    run_as_user touch ../signal/go
    wait "$JOB"
    JOB=
    must verb mask ./secret
    output_has 'from its next run on'
    output_lacks 'still see it'
}

@test "a change of an ACL is shown as one" {
    needs python3
    project user
    acl='import os, struct
entries = [(1, 6, -1), (2, 4, os.getuid()), (4, 4, -1), (16, 4, -1), (32, 4, -1)]
os.setxattr("a", "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *e) for e in entries))'
    must inside user:sealed "python3 -c '$acl'" -R
    must verb status
    output_has '  m  a  ACL'
    output_lacks 'extended attributes'
    must verb diff --no-pager
    output_has 'ACL changed'
}

@test "an ignored directory is one line in dry runs, diffs and the review, unless it is named" {
    project user
    run_as_user sh -ec 'echo out/ >.gitignore; git add .gitignore; git commit -q -m ignore'
    must inside user:sealed 'mkdir -p out/deep; for i in 1 2 3; do echo $i >out/$i; echo $i >out/deep/$i; done; echo n >new' -R
    must verb apply --dry-run --all
    output_has "add $PROJECT/new"
    output_has "add $PROJECT/out/ (6 ignored files)"
    output_lacks out/1
    must verb apply --dry-run out
    output_has "add $PROJECT/out/deep/3"
    must verb diff --no-pager
    output_has '+n'
    output_has "$PROJECT/out: 6 ignored files, 12 bytes; brig diff -j $JAIL with this path shows them"
    output_lacks out/1
    must verb diff --no-pager --stat
    output_lacks out/1
    must verb diff --no-pager out/deep
    output_has '+++ b/out/deep/1'
    must verb diff --name-only
    output_has "$PROJECT/out/"
    output_lacks out/1
    # A patch is complete.
    must verb diff --patch -
    output_has 'b/out/deep/3'
    must verb status --json --grouped
    output_has '"path":"out","kind":"added","type":"directory","files":6,"bytes":12,"ignored":true'
    output_lacks out/1
    must verb status --json
    output_has out/1
    # The review applies it as a whole.
    answers() { printf '%s\n' "$@" | by user review --plain -j "$JAIL"; }
    must answers s a
    output_has '2 changes in jail'
    output_has "$PROJECT/out/"
    [ "$(cat out/1 out/deep/3)" = $'1\n3' ]
    [ ! -e new ]
    must inside user:sealed 'echo 4 >out/4' -R
    must answers s d
    must verb status
    output_lacks out
}

@test "in a dry run, flagged files of an ignored directory are one line" {
    project user
    run_as_user sh -ec 'echo node_modules >.gitignore; git add .gitignore; git commit -q -m ignore'
    must inside user:sealed 'mkdir -p node_modules/a; echo 1 >node_modules/a/1.js; echo 2 >node_modules/a/2.js' -R
    must_exit 1 verb apply --dry-run --all
    output_has "not applied: $PROJECT/node_modules/: 2 ignored files with a risk or conflict"
    output_lacks 1.js
    must verb apply --dry-run --all --risky
    output_has "add $PROJECT/node_modules/ (2 ignored files)"
}
