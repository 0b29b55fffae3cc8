#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Repositories below the top of a project, which a jail makes, hides or exchanges: nothing in them is executed outside,
# by the user's git or by brig itself, and nothing outside the project is read or written.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load hostile

# two_runs FIRST SECOND: two runs with the same files, then everything that a user does. The twin is the second script alone,
# outside.
two_runs() {
    hostile_project
    must as user sh -ec "MARK='$MARK'; $EVIL $1"
    must as user sh -ec "MARK='$MARK'; $EVIL $2"
    use
    [ -e "$RAN" ]
    hostile_project
    must inside user:sealed "MARK='$MARK'; $EVIL $1"
    run inside user:sealed "MARK='$MARK'; $EVIL $2"
    not_executed
    # And in a third run brig itself looks at it.
    run inside user:sealed true
    not_executed
}

@test "a git directory that an earlier run has left empty" {
    two_runs 'mkdir -p e/.git' 'evil e; git add e 2>/dev/null; git commit -q -m link'
}

@test "a broken git directory that an earlier run has left in a large tree" {
    two_runs 'mkdir m; cd m; seq 1100 | xargs mkdir; cd ..; mkdir e; ln -s nowhere e/.git' \
        'rm -f e/.git; evil e; git add e 2>/dev/null; git commit -q -m link'
}

@test "a repository in a large tree that an earlier run has left" {
    two_runs 'mkdir m; cd m; seq 1100 | xargs mkdir' 'evil e'
}

@test "a directory that can be entered and not read, or not written" {
    plant "$EVIL"'evil e; git add e 2>/dev/null; git commit -q -m link; chmod 311 e' \
        "$EVIL"'mkdir d; evil d/e; git add d 2>/dev/null; git commit -q -m link; chmod 311 d' \
        "$EVIL"'evil f; git add f 2>/dev/null; git commit -q -m link; chmod 555 f'
    # Also without the right to read the git directory: nothing of it is lost.
    project user
    must inside user:sealed 'git init -q e; git -C e commit -q --allow-empty -m kept; chmod 000 e/.git'
    [ "$(out -C e log -1 --format=%s)" = kept ]
}

@test "a bare repository that is completed in a second run, and one at the top beside a directory .git" {
    two_runs 'git init -q --bare x; git -C x config core.bare false; git -C x config core.worktree ..; git -C x config core.fsmonitor "$MARK"; mv x/objects o' \
        'mv o x/objects'
    # At the top of a second directory, with something named .git that is no repository.
    hostile_project
    as user mkdir ../c
    must inside user:sealed 'cd ../c; mkdir .git; echo x >.git/x; git init -q --bare b; mv b/* .' -d ../c
    output_has "held back"
    must_fail out -C ../c rev-parse --git-dir
}

@test "a git directory that is no repository yet" {
    # The user's git init would adopt its config.
    hostile_project
    must inside user:sealed "MARK='$MARK'; "'mkdir -p e/.git/docs; printf "[core]\n\tfsmonitor = \"$MARK\"\n" >e/.git/config
        git init -q --bare e/.git/docs; ln -s e/.git/docs docs'
    output_has "is not a repository"
    [ ! -e e/.git ]
    as user sh -c 'git init -q e; cd e; git status; cd ../docs; git status' >/dev/null 2>&1 || true
    [ ! -e "$RAN" ]
}

@test "a run that ends leaves the empty .git of another run below its directory alone" {
    enter_project user
    start user:sealed 'await_file go'
    mv up up-below
    (
        cd ..
        run_as_user mkdir -p stop
        JAIL=$JAIL-above inside user:sealed 'mkdir -p q/.git; : >stop/up; await_file stop/go' -d .
    ) >"$SCRATCH/above" 2>&1 3>&- &
    above=$!
    await_file ../stop/up
    kill -0 "$JOB"
    run_as_user touch ../stop/go
    wait "$above"
    [ -d .git ]
    # The one that its own jail made is removed.
    [ ! -e ../q/.git ]
    finish
    [ "$output" = "" ]
    [ ! -e .git ]
}

@test "a run of root that ends leaves the empty .git of the user's run alone" {
    lib_is_root || skip "only root's run does not make a .git of its own in a directory of the user's"
    enter_project user
    BRIG_CONFIG_DIR=$ROOT_STORE as root "$BRIG" -m sealed -j "$JAIL" -d . -- sh -c ': >begun; while :; do sleep 1; done' >"$SCRATCH/root" 2>&1 3>&- &
    above=$!
    await_file begun
    start user:sealed 'await_file go'
    [ -d .git ]
    kill "$(find_brig "$above")"
    wait "$above" || true
    [ -d .git ]
    finish
    [ "$output" = "" ]
    [ ! -e .git ]
}

@test "the empty .git of the user's run stays until a run of root ends that has it too" {
    lib_is_root || skip "only root's run does not make a .git of its own in a directory of the user's"
    enter_project user
    start user:sealed 'await_file go'
    [ -d .git ]
    BRIG_CONFIG_DIR=$ROOT_STORE as root "$BRIG" -m sealed -j "$JAIL" -d . -- sh -c ': >begun; until [ -e end ]; do sleep 0.1; done' >"$SCRATCH/root" 2>&1 3>&- &
    above=$!
    await_file begun
    finish
    [ -d .git ]
    : >end
    wait "$above"
    [ ! -e .git ]
}

@test "one that cannot be made anew does not keep the others from it" {
    # More than the hundred that brig makes anew, which takes a second for seven of them: most are empty git directories. In
    # memory the search goes up or down the numbers, so that the first, or the last, is among those beyond the hundred.
    local every=8
    [ -z "${BRIG_THOROUGH:-}" ] || every=1
    hostile_project
    run inside user:sealed "MARK='$MARK'; every=$every; $EVIL"'mkdir d; cd d
        git init -q r0; git -C r0 config core.fsmonitor "$MARK"; rm -r r0/.git/hooks
        for i in $(seq 104); do if [ $((i % every)) = 0 ]; then cp -R r0 r$i; else mkdir -p r$i/.git; fi; done
        cd ..; n=$(printf "%0200d" 0); mkdir deep; cd deep; for i in $(seq 30); do mkdir $n; cd $n; done; mkdir .git'
    output_has "there are more than 100 new repositories"
    output_has "was made anew"
    as user sh -c 'for d in d/*/; do (cd "$d" && git status); done' >/dev/null 2>&1 || true
    [ ! -e "$RAN" ]
    chmod -R u+rwx deep
}

@test "with --unprotect .git the user's own repositories stay as they are" {
    project user
    as user sh -ec 'git init -q n; git -C n commit -q --allow-empty -m x; git -C n config my.setting 1; git init -q --bare b.git'
    must inside user:sealed 'git -C n commit -q --allow-empty -m y; git -C b.git config my.setting 2' --unprotect .git
    [ "$(out -C n config my.setting)" = 1 ]
    [ "$(out -C n log -1 --format=%s)" = y ]
    [ -e b.git/HEAD ]
}

@test "a submodule whose directory is missing, and a branch with one while the run goes on" {
    hostile_project
    as user sh -ec 'git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lib/sub; git commit -q -m sub; rm -rf lib'
    start user:sealed "MARK='$MARK'; $EVIL"'evil lib/sub; git branch other; git switch -q -c feature; evil new; git add new 2>/dev/null; git commit -q -m link
        git branch linked; git switch -q main; echo >ready; await_file go'
    await_file ready
    must by user sync
    must_fail out rev-parse -q --verify linked
    out rev-parse -q --verify other
    as user sh -c 'git status; git diff; git log -1; git switch -q other; git status; git submodule status; git switch -q main' >/dev/null 2>&1
    [ ! -e "$RAN" ]
    finish
    not_executed
}

@test "a program of the user's settings that is a link, and a ref that is deleted twice in one run" {
    PREPARE='mkdir real; echo cat >real/strip; chmod +x real/strip; ln -s real/strip strip; git config filter.s.clean ./strip; echo "*.txt filter=s" >.gitattributes; echo t >a.txt; git add .; git commit -q -m filter'
    plant 'echo "$MARK; cat" >real/strip; touch a.txt'
    project user
    as user sh -ec 'git branch work $(git commit-tree -m precious HEAD^{tree})'
    start user:sealed 'git branch -q -D work; echo >one; await_file two; git branch work; echo >three; await_file go; git branch -q -D work'
    await_file one
    must by user sync
    as user touch two
    await_file three
    must by user sync
    finish
    run out log --all --format=%s
    output_has precious
}

@test "the storage of brig itself is not searched, nor is what the user cannot read" {
    project user
    as user sh -ec 'mkdir closed; chmod 000 closed'
    must inside user:sealed 'echo c >c; git add c; git commit -q -m c' -d "$LIB_USER_HOME"
    output_lacks "bare repository"
    output_lacks searched
    [ "$(out log -1 --format=%s)" = c ]
    must inside user:sealed true -d "$LIB_USER_HOME"
    [ -z "$output" ]
    # The twin: one that the run closes is opened and searched.
    must inside user:sealed 'git init -q --bare new/b; chmod 000 new'
    output_has "'new/b' is a new bare repository"
}

@test "brig starts no transport, whatever the config of a repository says" {
    # A partial clone lacks an object; git would fetch it with the program that the config names.
    lacking='git init -q e; cd e; mkdir d; echo x >d/x; echo y >y; git add .; git commit -q -m x
        git sparse-checkout init --cone --sparse-index; rm -f .git/objects/$(git rev-parse HEAD:d | sed "s,^..,&/,")
        git config extensions.partialClone o; git config remote.o.promisor true; git config protocol.ext.allow always
        git config remote.o.url "ext::sh -c $(echo "$MARK" | sed "s/ /% /g")"'
    hostile_project
    must as user sh -ec "MARK='touch $RAN'; $lacking"
    run as user git -C e ls-files -s
    [ -e "$RAN" ]
    rm -f "$RAN"
    # It is the user's own by now, as if from an archive.
    run inside user:sealed true
    [ ! -e "$RAN" ]
    cd e
    run inside user:sealed true
    [ ! -e "$RAN" ]
}

@test "alternates that name another directory, and objects that lead elsewhere" {
    hostile_project
    as user sh -ec 'mkdir ../secret; echo secret >../secret/key; echo "$PWD/../secret" >.git/objects/info/alternates'
    for mode in sealed strict casual; do
        must_exit 125 by user -m "$mode" -j "$JAIL" -- sh -c 'cat /run/brig/objects/*/*/key'
        output_has "is not the object directory of a repository"
    done
    as user sh -ec 'rm .git/objects/info/alternates; mv .git/objects ../secret/o; ln -s ../../secret/o .git/objects'
    must_exit 125 by user -m sealed -j "$JAIL" -- true
    # The twin: those of another repository.
    as user sh -ec 'rm .git/objects; mv ../secret/o .git/objects; git init -q ../other; echo "$PWD/../other/.git/objects" >.git/objects/info/alternates'
    must by user -m sealed -j "$JAIL" -- git log -1
}

@test "a clone of the project, which borrows its objects in the jail, is complete outside" {
    hostile_project
    # git clone copies the alternates, which are paths in the jail; --shared names the private directory.
    must inside user:sealed '
        echo new >n; git add n; git commit -q -m inside
        git clone -q . c; cd c; echo more >m; git add m; git commit -q -m more; cd ..
        git clone -q --shared . shared; cd shared; echo less >m; git add m; git commit -q -m less'
    for name in c:more shared:less; do
        [ "$(out -C "${name%:*}" log --format=%s | tr '\n' ' ')" = "${name#*:} inside first " ]
        must out -C "${name%:*}" fsck --no-dangling
        [ -z "$(out -C "${name%:*}" status --porcelain)" ]
        [ ! -e "${name%:*}/.git/objects/info/alternates" ]
        as user rm -rf "${name%:*}"
    done
    # In another granted directory.
    as user mkdir ../other
    must inside user:sealed 'git clone -q . ../other/c; cd ../other/c; git commit -q --allow-empty -m work' -d ../other
    [ "$(out -C ../other/c log -1 --format=%s)" = work ]
    must out -C ../other/c fsck --no-dangling
    # A reviewed one arrives as it is, with a path that is right outside.
    must inside user:sealed 'git clone -q . r; cd r; git commit -q --allow-empty -m work' -R
    must by user apply -j "$JAIL" --all --risky
    [ "$(out -C r log -1 --format=%s)" = work ]
    [ "$(cat r/.git/objects/info/alternates)" = "$PWD/.git/objects" ]
    must out -C r fsck --no-dangling
    # The twin: what a jail could not read, a clone does not get.
    as user sh -ec 'git init -q ../secret; git -C ../secret commit -q --allow-empty -m secret'
    secret=$(out -C ../secret rev-parse HEAD)
    run inside user:sealed 'git init -q t; cd t; git commit -q --allow-empty -m t; mkdir -p .git/refs/heads
        printf "%s\n" "$PWD/../../secret/.git/objects" "/run/brig/objects${PWD%/*/*}/secret/.git/objects" >.git/objects/info/alternates
        echo '"$secret"' >.git/refs/heads/stolen'
    must_fail out -C t cat-file -e "$secret"
}

@test "names of worktrees and branches that are options or links" {
    hostile_project
    as user sh -ec 'mkdir -p ../outside/empty'
    before=$(find ../outside | sort)
    run inside user:sealed '
        mkdir -- -bX; echo "gitdir: /x" >./-bX/.git; ln -s "$PWD/../outside" link; mkdir -p .git/worktrees/w
        echo "$PWD/-bX/.git" >.git/worktrees/w/gitdir; echo "ref: refs/heads/link/empty" >.git/worktrees/w/HEAD
        echo c >c; git add c; git commit -q -m c; git branch link/empty; git branch empty'
    [ "$(find ../outside | sort)" = "$before" ]
    # The twin: an honest worktree arrives.
    must inside user:sealed 'git worktree add -q -b topic wt'
    output_has "the worktree 'wt' was added"
    [ "$(out -C wt symbolic-ref HEAD)" = refs/heads/topic ]
    [ -z "$(out -C wt status --porcelain)" ]
}

@test "an upstream that is a path, and a program that the user's settings name" {
    hostile_project
    as user sh -ec 'git init -q --bare ../up; git remote add origin ../up; git push -q -u origin main'
    must inside user:sealed 'git init -q --bare r; git config branch.main.remote r; git branch other; git config branch.other.remote r
        git config branch.third.remote origin; git config branch.third.merge refs/heads/main'
    [ "$(out config branch.main.remote)" = origin ]
    must_fail out config branch.other.remote
    [ "$(out config branch.third.remote)" = origin ]
    # Existing programs in the project are read-only if the user's settings execute them.
    PREPARE='echo cat >strip.sh; chmod +x strip.sh; git config filter.s.clean ./strip.sh; echo "*.txt filter=s" >.gitattributes; echo t >a.txt; git add .; git commit -q -m filter'
    plant 'echo "$MARK; cat" >strip.sh; touch a.txt'
    PREPARE='echo "cat \$1" >strip; git config diff.s.textconv "sh strip"; echo "*.txt diff=s" >.gitattributes; echo t >a.txt; git add .; git commit -q -m filter; echo u >a.txt'
    plant 'echo "$MARK; cat \$1" >strip'
}

@test "many and deep things in a git directory neither hang brig nor keep it from working" {
    project user
    must within 60 inside user:sealed 'git init -q n; rm n/.git/config; mkfifo n/.git/config'
    must within 60 inside user:sealed 'mkfifo .git/refs/heads/x; chmod 555 .git/refs/heads; true'
    must within 60 inside user:sealed 'git branch $(printf "a/%.0s" $(seq 70))a; git branch fine'
    out rev-parse -q --verify fine
    must within 60 inside user:sealed 'git switch -q -c side; echo side >a; git commit -q -am side; git switch -q main; echo main >a; git commit -q -am main
        ! git merge side >/dev/null 2>&1 || exit 1; cd .git/objects; mkdir -p $(printf "d/%.0s" $(seq 70)); chmod 111 .'
    must_exit 125 within 60 inside user:sealed 'git status'
    output_has "cannot be continued"
    must within 60 inside user:sealed 'echo c >c; git add c; git commit -q -m works'
    [ "$(out log -1 --format=%s)" = works ]
}

# ---- Races ---------------------------------------------------------------------------------------

MANY=10
[ -z "${BRIG_THOROUGH:-}" ] || MANY=50

# For a jail: STOP PAIR… exchanges pairs of names until the file STOP exists.
EXCHANGE='
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
end = time.time() + 600
pairs = [p.split(":") for p in sys.argv[2:]]
while time.time() < end and not os.path.exists(sys.argv[1]):
    for a, b in pairs:
        libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
    time.sleep(0.0005)
'

@test "names that are exchanged with links to outside while other runs begin and end" {
    hostile_project
    as user sh -ec 'mkdir ../victim; cd ../victim; git init -q -b main; echo v >v; git add v; git commit -q -m victim
        mkdir .claude .vscode; echo keep >.envrc; echo keep >.claude/settings.json'
    before=$(cd ../victim && find . ! -path './.git/*' -printf '%p %i %s\n' | sort; out -C ../victim for-each-ref; cat ../victim/.git/config)
    as user sh -ec 'for d in n1 n2; do git init -q $d; git -C $d commit -q --allow-empty -m x; ln -s ../victim $d.l; done
        mkdir c; ln -s ../victim c.l'
    inside user:sealed "mkdir -p .claude v; echo x >v/t; ln -s '$SCRATCH/victim' .vscode.l; echo >up
        python3 -c '$EXCHANGE' stop n1:n1.l n2:n2.l c:c.l v:.vscode.l" -j other >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    jail user other
    await_file up
    for _ in $(seq "$MANY"); do
        run inside user:sealed 'mkdir -p c/.claude; echo x >.envrc; echo x >c/.claude/settings.json; echo $$ >f; git add f; git commit -q -m f; git init -q new-$$; echo x >.vscode; true' -d c
        run by user sync
    done
    as user touch stop
    wait "$JOB" || true
    JOB=
    after=$(cd ../victim && find . ! -path './.git/*' -printf '%p %i %s\n' | sort; out -C ../victim for-each-ref; cat ../victim/.git/config)
    diff <(echo "$before") <(echo "$after")
    use
    [ ! -e "$RAN" ]
}

@test "a link or a repository that is put where a new repository is being made" {
    hostile_project
    as user mkdir ../victim
    jail user other
    # While a run ends, another waits for the moment in which the git directory is out of the way.
    start user:sealed "MARK='$MARK'; $EVIL"'evil hostile; ln -s "$PWD/../victim" trap; echo >ready
        i=0; while [ $i -lt 20000 ] && [ ! -e go ]; do i=$((i + 1))
            for y in 1 2 3 4 5 6; do [ -e y$y/.git ] || { mv -T trap y$y/.git || mv -T hostile/.git y$y/.git; } 2>/dev/null; done; done' -j other
    await_file ready
    run inside user:sealed 'for i in 1 2 3 4 5 6; do git init -q y$i; git -C y$i commit -q --allow-empty -m x; done'
    finish
    [ -z "$(find ../victim -mindepth 1)" ]
    [ ! -e "$RAN" ]
}

@test "as root: a directory that is exchanged with one of root's is never granted" {
    lib_is_root || cannot "it is about root"
    project user
    secret=$(mktemp -d /var/tmp/brig-other.XXXXXX)
    echo hidden-content >"$secret/file"
    as user sh -ec "ln -s '$secret' ../l; mkdir ../q"
    # The user, outside: the project, a link to root's directory and another directory change places.
    as user python3 -c "$EXCHANGE" "$SCRATCH/stop" "$PROJECT:$SCRATCH/l" "$PROJECT:$SCRATCH/q" 3>&- &
    JOB=$!
    for _ in $(seq $((3 * MANY))); do
        cd "$SCRATCH/p" 2>/dev/null || continue
        [ "$(readlink /proc/self/cwd)" != "$secret" ] || continue # then we are in it ourselves
        run by sudo -m sealed -j "$JAIL" -- sh -c 'cat file; echo planted >planted'
        [[ $output != *hidden-content* ]] || { echo "$output" >&2; false; }
        run by root -m sealed -j "$JAIL" --foreign -- sh -c 'echo planted >planted; mkdir -p .claude; echo x >.envrc'
    done
    cd /
    touch "$SCRATCH/stop"
    wait "$JOB" || true
    JOB=
    [ "$(ls -A "$secret")" = file ]
    rm -rf "$secret"
}
