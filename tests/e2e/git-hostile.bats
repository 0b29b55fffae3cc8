#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Nothing that a jail plants in git's own data is executed outside, during the run or after it. Each plant has a
# twin: the same script, run outside in a project like it, makes git execute the marker.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2030,SC2031 # each test has its own JOB
# shellcheck disable=SC2154 # status and output are set by `run`

load lib
load hostile

# ---- Settings and hooks --------------------------------------------------------------------------

@test "settings that execute something" {
    PAIRS="user:casual user:sealed" plant 'git config core.fsmonitor "$MARK"' \
        'git config core.pager "$MARK"; git config core.editor "$MARK"' \
        'git config alias.st "!$MARK"' \
        'git config diff.external "$MARK"' \
        'git config core.hooksPath hooks; mkdir hooks; printf "#!/bin/sh\n$MARK\n" >hooks/post-checkout; chmod +x hooks/post-checkout'
}

@test "settings written over the file, and in a file that settings include" {
    plant 'printf "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"$MARK\"\n" >c; mv c .git/config' \
        'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >settings; git config include.path ../settings' \
        'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >settings; git config includeIf.onbranch:main.path ../settings' \
        'git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$MARK"' \
        'git config extensions.worktreeConfig true; printf "[core]\n\tfsmonitor = \"$MARK\"\n" >.git/config.worktree'
}

@test "a file of the working tree that the user's own settings name" {
    # The user's repository includes a file of the tree: a jail must not be able to write it, or the run is refused.
    PREPARE='echo "[x]" >settings; git config include.path ../settings'
    plant 'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >settings' \
        'printf "[core]\n\tfsmonitor = \"$MARK\"\n" >new; mv new settings'
    PREPARE='mkdir -p tools/hooks; git config core.hooksPath tools/hooks'
    plant 'printf "#!/bin/sh\n$MARK\n" >tools/hooks/post-checkout; chmod +x tools/hooks/post-checkout' \
        'mkdir x; printf "#!/bin/sh\n$MARK\n" >x/post-checkout; chmod +x x/post-checkout; mv tools/hooks tools/old; mv x tools/hooks' \
        'mkdir -p y/hooks; printf "#!/bin/sh\n$MARK\n" >y/hooks/post-checkout; chmod +x y/hooks/post-checkout; mv tools old; mv y tools'
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
    plant 'git config filter.x.clean "$MARK"; git config filter.x.smudge "$MARK"; echo "* filter=x" >>.gitattributes' \
        'git config filter.x.clean "$MARK"; echo "* filter=x" >>.git/info/attributes' \
        'git config diff.x.textconv "$MARK"; echo "a diff=x" >>.git/info/attributes; echo more >>a' \
        'git config diff.y.command "$MARK"; echo "b diff=y" >>.gitattributes; echo more >>b'
}

@test "hooks" {
    scripts=()
    for hook in post-checkout pre-commit post-index-change reference-transaction post-commit; do
        scripts+=("hook=$hook;"' mkdir -p .git/hooks; printf "#!/bin/sh\n$MARK\n" >.git/hooks/$hook; chmod +x .git/hooks/$hook')
    done
    plant "${scripts[@]}"
    plant 'rm -rf .git/hooks; mkdir h; printf "#!/bin/sh\n$MARK\n" >h/post-checkout; chmod +x h/post-checkout; ln -s ../h .git/hooks'
}

@test "commondir, a git directory elsewhere, and a .git file" {
    # The name is hidden from `use`: a user who enters a directory that looks like a repository obeys it, which a
    # shared working tree cannot prevent.
    plant 'cp -R .git .e; git --git-dir=.e config core.fsmonitor "$MARK"; git --git-dir=.e config core.worktree "$PWD"; mv .git old; echo "gitdir: .e" >.git' \
        'cp -R .git .f; git --git-dir=.f config core.fsmonitor "$MARK"; mv .git old; ln -s .f .git' \
        'cp -R .git .g; git --git-dir=.g config core.fsmonitor "$MARK"; mv .git old; mv .g .git'
    plant 'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; echo ../.evil >.git/commondir'
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
    names=(./evil .git/evil)
    # A plain name is also that of the next tests, and sub/../evil is another that is not in its shortest form.
    [ -z "${BRIG_THOROUGH:-}" ] || names+=(evil sub/../evil)
    for name in "${names[@]}"; do
        plant "$LINKS name=$name;"' mkdir -p sub; evil "$name"; links "$name"'
    done
    plant "$LINKS"' evil evil; links "$PWD/evil"'
    # Beside the project, where somebody else has put it.
    PREPARE="$LINKS"' MARK="touch $(dirname "$PWD")/ran; false"; evil ../evil'
    plant "$LINKS"' links ../evil'
    [ -z "${BRIG_THOROUGH:-}" ] || plant "$LINKS"' links "$(dirname "$PWD")/evil"'
    PREPARE=
}

@test "index extensions: split, untracked cache and file monitor, with a gitlink" {
    plant "$LINKS"' evil evil; git update-index --add --cacheinfo 160000,"$(git -C evil rev-parse HEAD)",evil; git update-index --split-index'
    plant "$LINKS"' evil evil; git update-index --add --cacheinfo 160000,"$(git -C evil rev-parse HEAD)",evil; git update-index --untracked-cache || true; git update-index --index-version 4' \
        "$LINKS"' evil other; git config index.threads 4; git add other 2>/dev/null'
}

@test "a nested repository that is added, committed, and exchanged" {
    PAIRS='user:casual user:sealed' plant \
        "$LINKS"' evil evil; git add evil 2>/dev/null; git -c user.name=n -c user.email=e commit -q -m link' \
        "$LINKS"' mkdir -p deep/er; evil deep/er/evil; git add deep 2>/dev/null; git -c user.name=n -c user.email=e commit -q -m link' \
        "$LINKS"' evil x; mkdir moved; mv x/.git moved/.git; git add moved 2>/dev/null' \
        "$LINKS"' evil y; mkdir named; echo "gitdir: ../y/.git" >named/.git; git add named 2>/dev/null' \
        "$LINKS"' evil added; git add added 2>/dev/null'
    [[ $(out ls-files -s added) == 160000\ * ]] # so what was made in the jail has arrived
}

@test "a nested repository whose settings name its working tree, added" {
    plant "$LINKS"' evil evil; git -C evil config core.worktree "$PWD/evil"; git add evil 2>/dev/null'
}

@test "a submodule of the user's: its directory and its git directory" {
    # As `git submodule add` makes it, which takes much longer.
    PREPARE='mkdir .git/modules; git clone -q --separate-git-dir=.git/modules/sub . sub; git -C sub config core.worktree ../../../sub
        echo "gitdir: ../.git/modules/sub" >sub/.git; printf "[submodule \"sub\"]\n\tpath = sub\n\turl = ../inner\n" >.gitmodules
        git config submodule.sub.url ../inner; git config submodule.sub.active true; git add .gitmodules sub; git commit -q -m sub'
    plant 'git -C sub config core.fsmonitor "$MARK"' \
        'git config -f .git/modules/sub/config core.fsmonitor "$MARK"' \
        'printf "#!/bin/sh\n$MARK\n" >.git/modules/sub/hooks/post-index-change; chmod +x .git/modules/sub/hooks/post-index-change; touch sub/a'
    plant "$LINKS"' rm -f sub/.git; evil .x; mv .x/.git sub/.git' \
        "$LINKS"' evil .z; mv sub old; mv .z sub'
    plant "$LINKS"' evil .y; rm -f sub/.git; echo "gitdir: ../.y/.git" >sub/.git'
    # Not checked out: its directory is empty.
    PREPARE="$PREPARE; rm -rf sub; mkdir sub; git config --remove-section submodule.sub"
    plant "$LINKS"' evil .x; mv .x/.git sub/.git'
    plant "$LINKS"' evil .x; rmdir sub; mv .x sub'
    PREPARE=
}

@test "a repository in a new directory is made anew" {
    # Its commits are kept.
    plant "$LINKS"' mkdir -p some/where; evil some/where/new; ln -s some/where/new link' \
        "$LINKS"' evil x; mkdir named; echo "gitdir: ../x/.git" >named/.git' \
        "$LINKS"' evil new'
    [ "$(out -C new log --format=%s)" = x ]
}

@test "a repository in a directory with files that git knows is made anew" {
    PREPARE='mkdir d; echo x >d/x; git add d; git commit -q -m d'
    plant "$LINKS"' evil .x; mv .x/.git d/.git'
}

@test "a repository in a directory that git ignores is made anew" {
    PREPARE='echo /ignored/ >.gitignore; git add .gitignore; git commit -q -m ignore'
    plant "$LINKS"' evil ignored'
}

@test "metadata of worktrees" {
    plant 'git worktree add -q wt; cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; echo "$PWD/.evil" >.git/worktrees/wt/commondir' \
        'git worktree add -q other; git config core.fsmonitor "$MARK"'
    # A linked worktree of the user's, whose own files are private.
    PREPARE='git worktree add -q ../wt; ln -s ../wt wt'
    plant 'git config extensions.worktreeConfig true; printf "[core]\n\tfsmonitor = \"$MARK\"\n" >.git/worktrees/wt/config.worktree' \
        'cp -R .git .evil; git --git-dir=.evil config core.fsmonitor "$MARK"; echo "$PWD/.evil" >.git/worktrees/wt/commondir'
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
            [ -e a ]
            [ -e b ]
        done
    }
    plant_without_fsck
    PREPARE=
    # In a repository the layout means nothing, and is left: these are names of files like any other.
    hostile_project
    must inside user:sealed "MARK='$MARK'; $bare"
    [ -e HEAD ]
    [ -e config ]
    not_executed
}

@test "a bare repository in a directory, also one whose parts are elsewhere" {
    bare='mkdir $d; cd $d; git init -q --bare .; git config core.bare false; git config core.worktree ..; git config core.fsmonitor "$MARK"'
    # In the second and third the name that HEAD is to get is taken by a directory, or by another link to HEAD.
    plant "d=d; $bare" "d=e; $bare; mkdir HEAD.jail" "d=f; $bare; ln HEAD HEAD.jail"
    # One whose config and objects are elsewhere, in a directory and at the top of one without a repository.
    elsewhere='git init -q --bare "$1/e"; rm "$1/e/HEAD"; echo e >"$1/commondir"; echo "ref: refs/heads/main" >"$1/HEAD"'
    hostile_project
    must as user sh -ec "rm -rf .git; mkdir d; set -- d; $elsewhere"
    [ "$(as user git -C d rev-parse --git-dir)" = . ]
    hostile_project
    must inside user:sealed "mkdir d; set -- d; $elsewhere"
    output_has "'d' is a new bare repository"
    must_fail as user env GIT_CEILING_DIRECTORIES="$PWD" git -C d rev-parse --git-dir
    as user rm -rf .git d
    must inside user:sealed "set -- .; $elsewhere"
    must_fail as user git rev-parse --git-dir
    # One of the user's own is read-only, and stays as it is.
    project user
    must as user git clone -q --bare . remote.git
    must_fail inside user:sealed 'git config -f remote.git/config core.fsmonitor x'
    must inside user:sealed 'git fetch -q "$PWD/remote.git" main'
    must as user git --git-dir=remote.git log -1
    must inside user:sealed 'git config -f remote.git/config x.y z' --unprotect "$PWD/remote.git"
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

@test "brig sync in the middle of a run does not let git into a repository that the run can change" {
    hostile_project
    start user:sealed "git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; git commit -q -m link
        git config -f sub/.git/config core.fsmonitor '$MARK'; echo >ready; await_file go"
    await_file ready
    must by user sync
    output_has "new submodule"
    as user git status >/dev/null
    [ ! -e "$RAN" ]
    # The twin: git that has the gitlink does execute it.
    as user git add sub
    as user git status >/dev/null
    [ -e "$RAN" ]
    as user git update-index --force-remove sub
    rm "$RAN"
    finish
    not_executed
}
