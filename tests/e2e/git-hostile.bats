#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Nothing that a jail plants in git's own data is executed outside, during the run or after it. Each plant has a
# twin: the same script, run outside in a project like it, makes git execute the marker.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load repos

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
    project user
    RAN=$SCRATCH/ran
    # What plants may use. As a file monitor it must also fail, or git believes that nothing has changed.
    MARK="touch $RAN; false"
}

# use: everything that a user does with git in the project, also with a terminal, and from a shell prompt.
use() {
    as user timeout 120 sh -c '
        export HOME="$1" TERM=dumb PAGER=cat
        touch a b
        git status; git log -1; git diff; git diff --cached; git st; git branch -a; git stash list
        script -qec "git log -1; git diff; git branch" /dev/null </dev/null
        GIT_EDITOR=true git commit -q --allow-empty -m used
        git checkout -q -b used-$$; git checkout -q main
        echo changed >>b; git diff; git add b; git commit -q -m used
        git submodule status; git gc --auto; git gc -q
        for d in */; do [ ! -d "$d" ] || (cd "$d" && git status); done
        exit 0' - "$SCRATCH" >"$SCRATCH/used" 2>&1 </dev/null
}

# not_executed: after everything that a user does, the marker is not there.
not_executed() {
    use
    [ ! -e "$RAN" ] || {
        echo "executed outside" >&2
        return 1
    }
}

# plant SCRIPT: the script outside, as a twin, has the marker made; in a jail it has not, and the repository
# is sound. PREPARE is run in both projects first, outside. PAIRS are those who run it, and the modes.
plant() {
    local pair
    hostile_project
    must as user sh -ec "${PREPARE:-true}"
    must as user sh -ec "MARK='$MARK'; $1"
    use
    [ -e "$RAN" ] || {
        echo "the twin has no effect: $1" >&2
        cat "$SCRATCH/used" >&2
        return 1
    }
    for pair in ${PAIRS:-user:sealed}; do
        hostile_project
        must as user sh -ec "${PREPARE:-true}"
        run inside "$pair" "MARK='$MARK'; $1"
        [ "$status" -ne 125 ] || {
            echo "$output" >&2
            return 1
        }
        not_executed || {
            echo "planted in $pair: $1" >&2
            echo "$output" >&2
            return 1
        }
        must out fsck --no-dangling
    done
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
TICKS='ticked() { [ "$(cat ticks)" -ge "$1" ]; }; ticks() { await ticked $(($(cat ticks) + 3)); };'

# ---- Settings and hooks --------------------------------------------------------------------------

@test "settings that execute something" {
    PAIRS=$(pairs | sed 's/ *root:sealed//') plant 'git config core.fsmonitor "$MARK"'
    plant 'git config core.pager "$MARK"; git config core.editor "$MARK"'
    plant 'git config alias.st "!$MARK"'
    plant 'git config diff.external "$MARK"'
    plant 'git config core.hooksPath hooks; mkdir hooks; printf "#!/bin/sh\n$MARK\n" >hooks/post-checkout; chmod +x hooks/post-checkout'
}

@test "settings written over the file, and in a file that settings include" {
    plant 'printf "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"$MARK\"\n" >c; mv c .git/config'
    plant 'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >settings; git config include.path ../settings'
    plant 'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >settings; git config includeIf.onbranch:main.path ../settings'
    plant 'git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$MARK"'
    plant 'git config extensions.worktreeConfig true; printf "[core]\n\tfsmonitor = \"$MARK\"\n" >.git/config.worktree'
}

@test "a file of the working tree that the user's own settings name" {
    # The user's repository includes a file of the tree: a jail must not be able to write it, or the run is refused.
    PREPARE='echo "[x]" >settings; git config include.path ../settings'
    plant 'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >settings'
    plant 'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >new; mv new settings'
    PREPARE='mkdir -p tools/hooks; git config core.hooksPath tools/hooks'
    plant 'printf "#!/bin/sh\n$MARK\n" >tools/hooks/post-checkout; chmod +x tools/hooks/post-checkout'
    plant 'mkdir x; printf "#!/bin/sh\n$MARK\n" >x/post-checkout; chmod +x x/post-checkout; mv tools/hooks tools/old; mv x tools/hooks'
    plant 'mkdir -p x/hooks; printf "#!/bin/sh\n$MARK\n" >x/hooks/post-checkout; chmod +x x/hooks/post-checkout; mv tools old; mv x tools'
    PREPARE=
}

@test "a file of the tree that settings name and that does not exist: the run is refused" {
    hostile_project
    out config include.path ../missing
    must_exit 125 by user -m sealed -j "$JAIL" -- true
    output_has missing
    as user touch missing
    must by user -m sealed -j "$JAIL" -- true
    must_fail by user -m sealed -j "$JAIL" -- sh -c 'echo "[x]" >missing'
}

@test "filters and attributes" {
    plant 'git config filter.x.clean "$MARK"; git config filter.x.smudge "$MARK"; echo "* filter=x" >.gitattributes'
    plant 'git config filter.x.clean "$MARK"; echo "* filter=x" >.git/info/attributes'
    plant 'git config diff.x.textconv "$MARK"; echo "* diff=x" >.git/info/attributes; echo more >>a'
    plant 'git config diff.x.command "$MARK"; echo "* diff=x" >.gitattributes; echo more >>a'
}

@test "hooks" {
    for hook in post-checkout pre-commit post-index-change reference-transaction post-commit; do
        plant "hook=$hook;"' mkdir -p .git/hooks; printf "#!/bin/sh\n$MARK\n" >.git/hooks/$hook; chmod +x .git/hooks/$hook'
    done
    plant 'rm -rf .git/hooks; mkdir h; printf "#!/bin/sh\n$MARK\n" >h/post-checkout; chmod +x h/post-checkout; ln -s ../h .git/hooks'
}

@test "commondir, a git directory elsewhere, and a .git file" {
    # The name is hidden from `use`: a user who enters a directory that looks like a repository obeys it, which a
    # shared working tree cannot prevent.
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; echo ../.evil >.git/commondir'
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; git --git-dir=.evil config core.worktree "$PWD"; mv .git old; echo "gitdir: .evil" >.git'
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; mv .git old; ln -s .evil .git'
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; mv .git old; mv .evil .git'
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; rm -rf .git; mv .evil .git'
}

@test "a directory above the project that is granted too: another project is not put in its place" {
    # The twin is the user's own move.
    hostile_project
    as user sh -ec "cp -R . ../q; git -C ../q config core.fsmonitor '$MARK'; cd ..; mv p old; mv q p"
    cd "$PROJECT"
    use
    [ -e "$RAN" ]
    for pair in user:casual user:sealed; do
        hostile_project
        run inside "$pair" "cd '$SCRATCH'; cp -R p q; git -C q config core.fsmonitor '$MARK'; mv p old; mv q p" -d "$SCRATCH"
        [ ! -e "$SCRATCH/old" ]
        as user rm -f "$RAN" # the jail can make it here
        cd "$PROJECT"
        not_executed
    done
}

# ---- The index and gitlinks ----------------------------------------------------------------------

# For a shell: `links NAME…` writes an index with a gitlink under each name, which git would not write. Other
# entries are those of the index. `evil DIR` makes a repository that executes the mark.
LINKS='
links() {
    git ls-files -s >.git/entries
    python3 -I - "$@" <<PYTHON
import hashlib, struct, sys
lines = open(".git/entries").read().splitlines()
entries = [(line.split("\t")[1].encode(), int(line.split()[0], 8), line.split()[1]) for line in lines]
entries += [(name.encode(), 0o160000, entries[0][2]) for name in sys.argv[1:]]
data = struct.pack(">4sII", b"DIRC", 2, len(entries))
for name, mode, oid in sorted(entries):
    entry = struct.pack(">10I20sH", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0, bytes.fromhex(oid), min(len(name), 4095)) + name
    data += entry + b"\0" * (8 - len(entry) % 8)
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
PYTHON
    rm -f .git/entries
}
evil() {
    git init -q -b main "$1"
    (cd "$1"; GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e git commit -q --allow-empty -m x)
    git -C "$1" config core.fsmonitor "$MARK"
};'

@test "a gitlink of every kind of name in a hand-made index" {
    for name in evil ./evil .git/evil sub/../evil; do
        plant "$LINKS name=$name;"' mkdir -p sub; evil "$name"; links "$name"'
    done
    plant "$LINKS"' evil evil; links "$PWD/evil"'
    # Beside the project, where somebody else has put it.
    PREPARE="$LINKS"' MARK="touch $(dirname "$PWD")/ran; false"; evil ../evil'
    plant "$LINKS"' links ../evil'
    plant "$LINKS"' links "$(dirname "$PWD")/evil"'
    PREPARE=
}

@test "index extensions: split, untracked cache and file monitor, with a gitlink" {
    plant "$LINKS"' evil evil; git update-index --add --cacheinfo 160000,"$(git -C evil rev-parse HEAD)",evil; git update-index --split-index'
    plant "$LINKS"' evil evil; git update-index --add --cacheinfo 160000,"$(git -C evil rev-parse HEAD)",evil; git update-index --untracked-cache || true; git update-index --index-version 4'
    plant "$LINKS"' evil evil; git config index.threads 4; git add evil 2>/dev/null'
}

@test "a nested repository that is added, committed, and exchanged" {
    PAIRS='user:casual user:sealed' plant "$LINKS"' evil evil; git add evil 2>/dev/null'
    plant "$LINKS"' evil evil; git add evil 2>/dev/null; git -c user.name=n -c user.email=e commit -q -m link'
    plant "$LINKS"' mkdir -p deep/er; evil deep/er/evil; git add deep 2>/dev/null; git -c user.name=n -c user.email=e commit -q -m link'
    plant "$LINKS"' evil x; mkdir evil; mv x/.git evil/.git; git add evil 2>/dev/null'
    plant "$LINKS"' evil x; mkdir evil; echo "gitdir: ../x/.git" >evil/.git; git add evil 2>/dev/null'
}

@test "a nested repository whose settings name its working tree, added" {
    plant "$LINKS"' evil evil; git -C evil config core.worktree "$PWD/evil"; git add evil 2>/dev/null'
}

@test "a submodule of the user's: its directory and its git directory" {
    PREPARE='git clone -q . ../inner; git -c protocol.file.allow=always submodule --quiet add "$PWD/../inner" sub; git commit -q -m sub'
    plant 'git -C sub config core.fsmonitor "$MARK"'
    plant 'git config -f .git/modules/sub/config core.fsmonitor "$MARK"'
    plant "$LINKS"' rm -f sub/.git; evil .x; mv .x/.git sub/.git'
    plant "$LINKS"' evil .x; mv sub old; mv .x sub'
    plant "$LINKS"' evil .x; rm -f sub/.git; echo "gitdir: ../.x/.git" >sub/.git'
    plant 'printf "#!/bin/sh\n$MARK\n" >.git/modules/sub/hooks/post-index-change; chmod +x .git/modules/sub/hooks/post-index-change; touch sub/a'
    # Not checked out: its directory is empty.
    PREPARE="$PREPARE; git submodule --quiet deinit -f sub"
    plant "$LINKS"' evil .x; mv .x/.git sub/.git'
    plant "$LINKS"' evil .x; rmdir sub; mv .x sub'
    PREPARE=
}

# For a shell: runs that are longer than a second are searched. `await over` makes it one.
LONG='now() { date +%s; }; from=$(now); over() { [ "$(now)" -ge $((from + 3)) ]; };'

@test "a repository in a new directory is made anew" {
    # Its commits are kept.
    plant "$AWAIT $LINKS $LONG"' evil new; await over'
    [ "$(out -C new log --format=%s)" = x ]
    plant "$AWAIT $LINKS $LONG"' mkdir -p some/where; evil some/where/new; ln -s some/where/new new; await over'
    plant "$AWAIT $LINKS $LONG"' evil x; mkdir new; echo "gitdir: ../x/.git" >new/.git; await over'
}

@test "a repository in a directory with files that git knows is made anew" {
    PREPARE='mkdir d; echo x >d/x; git add d; git commit -q -m d'
    plant "$AWAIT $LINKS $LONG"' evil .x; mv .x/.git d/.git; await over'
}

@test "a repository in a directory that git ignores is made anew" {
    PREPARE='echo /ignored/ >.gitignore; git add .gitignore; git commit -q -m ignore'
    plant "$AWAIT $LINKS $LONG"' evil ignored; await over'
}

@test "metadata of worktrees" {
    plant 'git worktree add -q wt; git config core.fsmonitor "$MARK"'
    plant 'git worktree add -q wt; cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; echo "$PWD/.evil" >.git/worktrees/wt/commondir'
    # A linked worktree of the user's, whose own files are private.
    PREPARE='git worktree add -q ../wt; ln -s ../wt wt'
    plant 'git config extensions.worktreeConfig true; printf "[core]\n\tfsmonitor = \"$MARK\"\n" >.git/worktrees/wt/config.worktree'
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; echo "$PWD/.evil" >.git/worktrees/wt/commondir'
    PREPARE=
}

@test "a bare layout at the top of a directory without a repository" {
    bare='mkdir objects refs refs/heads; echo "ref: refs/heads/m" >HEAD
        printf "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = \"%s\"\n" "$MARK" >config'
    PREPARE='rm -rf .git'
    plant_without_fsck() {
        local pair
        hostile_project
        must as user sh -ec "rm -rf .git; MARK='$MARK'; $bare"
        use
        [ -e "$RAN" ]
        for pair in user:casual user:sealed; do
            hostile_project
            as user rm -rf .git
            must inside "$pair" "MARK='$MARK'; $bare"
            output_has "held back"
            as user sh -c 'git status; cd objects; git status' >/dev/null 2>&1 || true
            [ ! -e "$RAN" ]
            [ -e a ] && [ -e b ]
        done
    }
    plant_without_fsck
    PREPARE=
    # In a repository the layout means nothing, and is left: these are names of files like any other.
    hostile_project
    must inside user:sealed "MARK='$MARK'; $bare"
    [ -e HEAD ] && [ -e config ]
    not_executed
}

# ---- While the run goes on -----------------------------------------------------------------------

@test "git status in a loop outside executes nothing while plants are made" {
    for pair in user:casual user:sealed; do
        hostile_project
        with_loop must inside "$pair" "MARK='$MARK'; $LINKS $TICKS"'
            git config core.fsmonitor "$MARK"; ticks
            git config core.hooksPath "$PWD/hooks"; ticks
            printf "#!/bin/sh\n$MARK\n" >.git/hooks/post-index-change; chmod +x .git/hooks/post-index-change; touch a; ticks
            evil evil; git add evil 2>/dev/null; ticks
            links ../evil ./evil .git/evil "$PWD/evil"; ticks; rm .git/index
            git read-tree HEAD; echo "$PWD/evil/.git" >.git/commondir; ticks; rm .git/commondir
            mv evil other; ticks; mv other evil; ticks'
        [ ! -e "$RAN" ]
        not_executed
        must out fsck --no-dangling
    done
    # The twin: outside the loop executes it.
    hostile_project
    executed() { [ -e "$RAN" ]; }
    with_loop as user sh -ec "$AWAIT; MARK='$MARK'; $TICKS"' git config core.fsmonitor "$MARK"; ticks'
    executed
}

@test "a commit with a gitlink arrives only when its repository is harmless" {
    # A live transfer must not show a gitlink outside while the jail can still write the nested repository.
    hostile_project
    with_loop must inside user:casual "MARK='$MARK'; $LINKS $TICKS"'
        evil evil; git add evil 2>/dev/null; git commit -q -m link; ticks; ticks; ticks'
    [ ! -e "$RAN" ]
    not_executed
}

@test "two runs at once cannot plant for each other" {
    hostile_project
    start user:sealed "MARK='$MARK'; $LINKS"' evil .evil; await_file go; git add .evil 2>/dev/null; git commit -q -m link'
    must inside user:sealed 'echo c >c; git add c; git commit -q -m c; ls -A .git/hooks'
    not_executed
    finish
    not_executed
}

# ---- What is served to git fetch -----------------------------------------------------------------

@test "ref names that mean something to a shell, a terminal or git stay in the jail" {
    hostile_project
    write='id=$(git rev-parse main)
        set -- -x HEAD "\$(touch\${IFS}ran)" ";touch\${IFS}ran" "a|b" "a&b" "\`id\`" "a..b" "x.lock" "..x" "a b" "$(printf "a\033[31mb")" "$(printf "a\302\233b")" "@{u}"
        for n; do echo "$id" >".git/refs/heads/$n"; echo "$id" >".git/refs/tags/$n"; done; true'
    # The twin: outside git has such branches.
    as user sh -ec "$write"
    run out for-each-ref --format='%(refname)' refs/heads
    output_has '$(touch${IFS}ran)'
    for pair in user:casual user:sealed; do
        hostile_project
        must inside "$pair" "$write"'; git update-ref refs/heads/good $(git commit-tree -m good -p main main^{tree})'
        [ "$(out log -1 --format=%s good)" = good ]
        [ "$(find .git/refs -type f ! -path '*/refs/brig/*' | sort)" = $'.git/refs/heads/good\n.git/refs/heads/main' ]
        printf '%s' "$output" | LC_ALL=C grep -q $'\033' && return 1
        must out fsck --no-dangling
        not_executed
    done
}

# For a shell: what can be in place of the file $f of git's; $1 is the same file of another repository.
KINDS=('mkfifo "$f"' 'ln -s "$1" "$f"' 'ln -s /dev/zero "$f"' 'mkdir -p "$f"'
    'python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])" "$f"')

# replaced FILE…: each file of git's is replaced by each kind in a run. brig ends, nothing is changed outside, and
# the next run works.
replaced() {
    local file kind before
    for file; do
        for kind in "${KINDS[@]}"; do
            hostile_project
            as user git init -q "$SCRATCH/other"
            before="$(out rev-parse HEAD; out ls-files -s; out symbolic-ref HEAD; cat .git/config)"
            run within 60 inside user:sealed "f=.git/$file; set -- '$SCRATCH/other/.git/$file'; rm -rf \"\$f\"; $kind"
            [ "$status" -lt 124 ] || {
                echo "exit $status: $file: $kind: $output" >&2
                return 1
            }
            run diff <(echo "$before") <(out rev-parse HEAD; out ls-files -s; out symbolic-ref HEAD; cat .git/config)
            [ "$status" -eq 0 ] || {
                echo "changed by $file: $kind: $output" >&2
                return 1
            }
            run within 60 inside user:sealed 'git log --format=%s; git update-ref refs/heads/good $(git commit-tree -m good -p main main^{tree})'
            [ "$(out log -1 --format=%s good)" = good ] || {
                echo "the run after $file: $kind: $output" >&2
                return 1
            }
        done
    done
}

@test "a FIFO, link, socket or directory in place of HEAD: brig ends, and nothing is changed" {
    # The twin: git outside waits for a FIFO.
    hostile_project
    as user sh -c 'rm .git/HEAD; mkfifo .git/HEAD'
    must_exit 124 timeout 2 git -c safe.directory='*' status
    replaced HEAD
}

@test "the same in place of refs" {
    replaced refs/heads/main refs packed-refs
}

@test "the same in place of the index and the config" {
    replaced index config
}

@test "the same in place of objects" {
    replaced objects objects/info objects/info/alternates
}

@test "the same in place of files that say what goes on" {
    replaced shallow info hooks MERGE_HEAD rebase-merge
}

@test "alternates and refs that lead to another repository bring nothing of it" {
    hostile_project
    as user sh -ec 'git init -q -b main ../secret; cd ../secret; echo sesame >s; git add s; git commit -q -m sesame'
    secret=$(as user git -C ../secret rev-parse HEAD)
    # The twin
    as user sh -ec "git clone -q . ../twin; cd ../twin; echo '$SCRATCH/secret/.git/objects' >.git/objects/info/alternates; git update-ref refs/heads/leak $secret; git cat-file -e leak:s"
    for attempt in "echo '$SCRATCH/secret/.git/objects' >.git/objects/info/alternates" \
        "echo '$SCRATCH/secret/.git/objects' >>.git/objects/info/alternates" \
        "rm -rf .git/objects; ln -s '$SCRATCH/secret/.git/objects' .git/objects" \
        "echo '../../../secret/.git/objects' >.git/objects/info/alternates" \
        "rm -rf .git/refs; ln -s '$SCRATCH/secret/.git/refs' .git/refs" \
        "echo '$SCRATCH/secret/.git' >.git/commondir" \
        "ln -s '$SCRATCH/secret/.git/refs/heads/main' .git/refs/heads/leak"; do
        run inside user:sealed "$attempt; echo $secret >.git/refs/heads/leak"
        must_fail out cat-file -e "$secret"
        must_fail out rev-parse -q --verify refs/heads/leak
        must out fsck --no-dangling
        [ "$(out symbolic-ref HEAD)" = refs/heads/main ]
    done
}

@test "objects that are garbage, missing or not what their name says are not taken over" {
    for damage in 'echo garbage >"$o"' ': >"$o"' 'rm "$o"' 'cp "$(find .git/objects -type f -path "*/??/*" ! -path "$o" | head -n 1)" "$o"' 'rm "$o"; mkfifo "$o"'; do
        hostile_project
        main=$(out rev-parse main)
        run within 60 inside user:sealed 'echo c >c; git add c; git commit -q -m c
            for o in $(find .git/objects -type f -path "*/??/*"); do chmod u+w "$o"; done
            id=$(git rev-parse main); o=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-); '"$damage"
        [ "$status" -lt 124 ] || {
            echo "exit $status: $damage: $output" >&2
            return 1
        }
        [ "$(out rev-parse main)" = "$main" ]
        must out fsck --no-dangling
        [ -z "$(find .git -name '*.lock')" ]
        not_executed
    done
}

@test "a branch that is not a commit, a tag of a blob and a hostile .gitmodules" {
    hostile_project
    must within 100 inside user:sealed 'git rev-parse main:a >.git/refs/heads/blob; git rev-parse "main^{tree}" >.git/refs/heads/tree
        git tag blob main:a; git update-ref refs/heads/good $(git commit-tree -m good -p main main^{tree})'
    said=$output
    must_fail out rev-parse -q --verify refs/heads/blob
    must_fail out rev-parse -q --verify refs/heads/tree
    [ "$(out log -1 --format=%s good)" = good ] || {
        echo "$said" >&2
        return 1
    }
    must out fsck --no-dangling
    hostile_project
    run within 60 inside user:sealed 'printf "[submodule \"x\"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !touch ran\n" >.gitmodules; git add .gitmodules; git commit -q -m modules'
    must out fsck --no-dangling
    not_executed
}

@test "twenty thousand refs arrive in time" {
    hostile_project
    must within 120 inside user:sealed 'id=$(git rev-parse main); { echo "# pack-refs with: peeled fully-peeled sorted "
        for i in $(seq 10001 30000); do echo "$id refs/heads/many/$i"; done; } >.git/packed-refs'
    [ "$(out for-each-ref refs/heads/many | wc -l)" = 20000 ]
    must out fsck --no-dangling
    # The next run is not slow either.
    must within 20 inside user:sealed 'git log -1 --format=%s'
}

# For a shell: `trees LEVELS WIDTH` writes as many trees, each with so many entries that are the next one, and
# prints the first. The last has one file.
TREES='trees() { python3 -I - "$@" <<PYTHON
import hashlib, os, sys, zlib
def put(kind, data):
    data = b"%s %d\0" % (kind, len(data)) + data
    oid = hashlib.sha1(data).hexdigest()
    os.makedirs(".git/objects/" + oid[:2], exist_ok=True)
    open(".git/objects/" + oid[:2] + "/" + oid[2:], "wb").write(zlib.compress(data, 1))
    return bytes.fromhex(oid)
levels, width = int(sys.argv[1]), int(sys.argv[2])
below = put(b"tree", b"100644 f\0" + put(b"blob", b"x\n"))
for level in range(levels):
    below = put(b"tree", b"".join(b"40000 d%d\0" % i + below for i in range(width)))
print(below.hex())
PYTHON
};'

@test "two thousand levels of trees: brig ends, and git outside works" {
    hostile_project
    run within 60 inside user:sealed "$TREES"'git update-ref refs/heads/deep $(git commit-tree -m deep -p main $(trees 2000 1))'
    [ "$status" -lt 124 ]
    must out status --porcelain
    must timeout 60 git -c safe.directory='*' fsck --no-dangling
    [ "$(out log --format=%s main)" = first ]
    not_executed
}

# few_bytes COMMAND…: with so little address space that a bomb fails instead of taking the machine down.
few_bytes() {
    (ulimit -v 3000000 && "$@")
}

@test "a tree of a thousand million entries is not unpacked into the index" {
    # Checked out by its branch, and by the cache of trees in the index, which git write-tree believes.
    for way in 'git update-ref HEAD $(git commit-tree -m bomb -p main $bomb)' \
        'python3 -I - "$bomb" <<PYTHON
import hashlib, sys
data = open(".git/index", "rb").read()[:-20]
at = data.find(b"TREE")
data = data if at < 0 else data[:at]
tree = b"\0" + b"2 0\n" + bytes.fromhex(sys.argv[1])
data += b"TREE" + len(tree).to_bytes(4, "big") + tree
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
PYTHON'; do
        hostile_project
        index=$(out ls-files -s)
        run few_bytes within 60 inside user:sealed "$TREES"' bomb=$(trees 9 10); '"$way"
        [ "$status" -lt 124 ] || {
            echo "exit $status: $output" >&2
            return 1
        }
        [ "$(out ls-files -s)" = "$index" ]
        [ -z "$(find .git -name '*.lock')" ]
        must few_bytes timeout 60 git -c safe.directory='*' status --porcelain
    done
}

@test "config of every size and form: brig ends and takes nothing over" {
    for text in '[remote "x"' '[remote "x"]url' '[remote "x"]\nurl = ext::touch\n' '[include]\npath = /dev/zero\n' '[core]\nrepositoryformatversion = 99\n'; do
        hostile_project
        before=$(cat .git/config)
        run within 60 inside user:sealed "printf '$text' >.git/config; true"
        [ "$status" -eq 0 ] && [ "$(cat .git/config)" = "$before" ]
        not_executed
    done
    hostile_project
    before=$(cat .git/config)
    run within 60 inside user:sealed 'yes "[a]b = c" | head -c 50000000 >.git/config; true'
    [ "$status" -eq 0 ] && [ "$(cat .git/config)" = "$before" ]
}

@test "variables that redirect git never reach the transfer" {
    hostile_project
    as user git init -q ../other
    must env GIT_DIR="$SCRATCH/other/.git" GIT_WORK_TREE="$SCRATCH/other" GIT_INDEX_FILE=/nowhere GIT_EXEC_PATH=/nowhere \
        GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0="$MARK" GIT_OBJECT_DIRECTORY=/nowhere \
        bash -c ". '$LIB_DIR/lib.bash'; run_as_user '$BRIG' -m sealed -j '$JAIL' ${GIT[*]} -- env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE -u GIT_EXEC_PATH -u GIT_OBJECT_DIRECTORY -u GIT_CONFIG_COUNT sh -ec 'echo c >c; git add c; git commit -q -m c'"
    [ "$(out log -1 --format=%s)" = c ]
    [ ! -e "$RAN" ]
}

@test "a git of the project's or of the jail's is not run outside" {
    hostile_project
    as user mkdir bin
    must inside user:sealed "printf '#!/bin/sh\n$MARK\n' >bin/git; chmod +x bin/git"
    must run_as_user env PATH="$PROJECT/bin:$PATH" "$BRIG" -m sealed -j "$JAIL" "${GIT[@]}" --setenv PATH=/usr/bin:/bin -- sh -ec 'echo c >c; git add c; git commit -q -m c'
    [ ! -e "$RAN" ]
    [ "$(out log -1 --format=%s)" = c ]
}
