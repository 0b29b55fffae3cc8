#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig diff: what a jail has changed in its copy of the home, shown by git. Nothing in the trees of the jail
# or of a repository decides how; the user's global configuration does.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    needs git
    jails_setup
    TREE=$HOME_OF_USER/difftree
    rm -rf "$TREE"
    run_as_user mkdir "$TREE"
    # Git's global configuration of this test alone.
    export GIT_CONFIG_GLOBAL=$SCRATCH/gitconfig GIT_CONFIG_NOSYSTEM=1
    run_as_user touch "$GIT_CONFIG_GLOBAL"
}

teardown() {
    rm -rf "$TREE"
    jails_teardown
}

# As the jails of both are in a user's home, only these two.
users() {
    everyone
}

# in_tree SCRIPT: as the user, in the tree.
in_tree() {
    run_as_user sh -c 'cd "$1" && eval "$2"' - "$TREE" "$1"
}

# change WHO JAIL SCRIPT: in a jail, in its copy of the tree.
change() {
    jail "$1" "$2"
    must by "$1" -m casual -j "$2" -- sh -c 'cd "$1" && eval "$2"' - "$TREE" "$3"
}

# On both sides of a change: every type, and existing or absent.
MAKE='
    mkdir -p gone/deep emptied kept replaced; echo deep >gone/deep/file; echo top >gone/top; ln -s top gone/link
    echo one >emptied/one; echo two >kept/two; echo three >replaced/three; mkdir was-empty
    printf "a\nb\nc\n" >text; printf "a\0b" >binary; echo run >program; echo mode >secret; : >empty; : >filled
    ln -s old link; ln -s old becomes-file; echo file >becomes-link; echo file >becomes-directory
    seq 1 60 >name; printf "no newline" >unended; printf "a\r\nb\r\n" >crlf; head -c 70000 /dev/urandom >random'
CHANGE='
    rm -r gone; rm emptied/one; rm -r replaced; echo file >replaced; rmdir was-empty; mkdir new-empty
    printf "a\nB\nc\n" >text; printf "a\0c" >binary; chmod +x program; chmod 600 secret; rm empty; echo full >filled
    ln -sfn new link; rm becomes-file; echo file >becomes-file; rm becomes-link; ln -s target becomes-link
    rm becomes-directory; mkdir becomes-directory; echo in >becomes-directory/file
    mv name other-name; echo 61 >>other-name; printf "a newline\n" >unended; printf "a\r\nB\r\n" >crlf
    head -c 70000 /dev/urandom >random; head -c 5000 /dev/urandom >added-binary; : >added-empty
    mkdir -p added/deep; echo added >added/deep/file; ln -s /etc/passwd added/link; echo "#!/bin/sh" >added/run
    chmod +x added/run; echo odd >"$(printf "odd\n\"name\\\\ \377\t")"; echo blank >" blank "; echo minus >-p'

# contents DIRECTORY: what git knows of it.
contents() {
    (cd "$1" && find . -type f -printf '%p %y %m ' -exec sh -c 'sha256sum <"$1"' - {} \; -o -type l -printf '%p %l\n' |
        sed 's/ f [0-7]*[1357][0-7][0-7] / program /; s/ f [0-7]* / file /' | LC_ALL=C sort)
}

@test "every kind of change is shown" {
    local who
    in_tree "$MAKE"
    for who in $(users); do
        change "$who" "kinds-$who" "$CHANGE; mkfifo fifo"
        must by "$who" diff -j "kinds-$who" "$TREE"
        output_has $'-b\n+B\n'
        output_has 'Binary files a/difftree/binary and b/difftree/binary differ'
        output_has $'diff --git a/difftree/program b/difftree/program\nold mode 100644\nnew mode 100755'
        output_has $'rename from difftree/name\nrename to difftree/other-name'
        output_has $'diff --git a/difftree/gone/deep/file b/difftree/gone/deep/file\ndeleted file mode 100644'
        output_has $'+++ b/difftree/becomes-link\n@@ -0,0 +1 @@\n+target'
        output_has '"b/difftree/odd\n\"name\\ \377\t"'
        output_has "# $TREE/secret: mode 0600, was 0644"
        output_has "# $TREE/was-empty: directory deleted"
        output_has "# $TREE/new-empty: directory added"
        output_has "# $TREE/fifo: FIFO added"
        output_lacks "kept"
        must by "$who" diff -j "kinds-$who" --stat "$TREE"
        output_has 'difftree/{name => other-name}'
        output_has 'files changed'
        must by "$who" diff -j "kinds-$who" --name-only "$TREE"
        output_has $'\n'"$TREE/gone/deep/file"$'\n'
        output_has "\"$TREE/odd\\n\\\"name\\\\ \\377\\t\""
        output_has "$TREE/new-empty"
        # Some of it, by paths relative to the working directory.
        cd "$TREE"
        must by "$who" diff -j "kinds-$who" --name-only ./text gone/deep
        [ "$output" = "$TREE/gone/deep/file"$'\n'"$TREE/text" ]
        cd "$SCRATCH/project"
    done
}

@test "a patch applied with git gives the tree that the jail sees" {
    local who
    in_tree "$MAKE"
    for who in $(users); do
        change "$who" "patch-$who" "$CHANGE"
        run_as_user mkdir "from-$who" "to-$who"
        run_as_user cp -a "$TREE" "from-$who"
        must by "$who" diff -j "patch-$who" --patch "$who.patch" "$TREE"
        must by "$who" -m casual -j "patch-$who" -- cp -a "$TREE" "to-$who"
        (cd "from-$who" && must run_as_user git apply --whitespace=nowarn "../$who.patch")
        [ "$(contents "from-$who")" = "$(contents "to-$who")" ] ||
            diff <(contents "from-$who") <(contents "to-$who") >&2
        # It does not depend on the configuration of the user, and goes to standard output too.
        run_as_user git config --file "$GIT_CONFIG_GLOBAL" diff.noprefix true
        run_as_user git config --file "$GIT_CONFIG_GLOBAL" color.ui always
        run_as_user git config --file "$GIT_CONFIG_GLOBAL" diff.external false
        by "$who" diff -j "patch-$who" --patch - "$TREE" 2>/dev/null | cmp - "$who.patch"
        : >"$GIT_CONFIG_GLOBAL"
    done
}

# Everything that could make git run a program or hide a change, planted in the tree and around it.
PLANT='
    printf "* diff=planted filter=planted merge=planted\n*.hidden -diff\n[attr]binary -diff\n* binary\n" >.gitattributes
    cp .gitattributes .git-attributes; mkdir -p .git/info .git/hooks sub; cp .gitattributes sub
    printf "[core]\n\trepositoryformatversion = 0\n\tpager = touch $OUT/pager\n\tfsmonitor = touch $OUT/fsmonitor\n" >.git/config
    printf "\tattributesFile = $PWD/.gitattributes\n[diff]\n\texternal = touch $OUT/external\n" >>.git/config
    printf "[diff \"planted\"]\n\ttextconv = touch $OUT/textconv\n\tcommand = touch $OUT/command\n" >>.git/config
    printf "[filter \"planted\"]\n\tclean = touch $OUT/clean\n\tsmudge = touch $OUT/smudge\n" >>.git/config
    mkdir -p .git/objects .git/refs; echo "ref: refs/heads/x" >.git/HEAD; cp .gitattributes .git/info/attributes
    cp .git/config .gitconfig; printf "[submodule \"x\"]\n\tpath = sub\n\turl = ext::touch\n" >.gitmodules
    echo changed >file; echo changed >sub/file; echo changed >x.hidden'

@test "attributes, configuration and filters of a tree are not used; those of the user are" {
    local who
    in_tree 'mkdir sub; echo file >file; echo file >sub/file; echo file >x.hidden'
    for who in $(users); do
        run_as_user mkdir -p out
        change "$who" "hostile-$who" "OUT=$PWD/out; $PLANT"
        run_as_user sh -c "OUT=$PWD/out; $PLANT"  # the working directory is such a repository, too
        must by "$who" diff -j "hostile-$who" "$TREE"
        output_has $'+++ b/difftree/file\n@@ -1 +1 @@\n-file\n+changed'
        output_has $'+++ b/difftree/x.hidden\n@@ -1 +1 @@\n-file\n+changed'
        output_has 'b/difftree/.git%/config'
        must by "$who" diff -j "hostile-$who" --stat "$TREE"
        must by "$who" diff -j "hostile-$who" --patch x.patch "$TREE"
        PAGER='cat' must in_terminal by "$who" diff -j "hostile-$who" "$TREE"
        [ -z "$(ls out)" ] || { ls out >&2; false; }
        # The same by the user's own configuration.
        run_as_user sh -c 'printf "%s\n" "*.hidden diff=mine" >attributes'
        run_as_user git config --file "$GIT_CONFIG_GLOBAL" core.attributesFile "$PWD/attributes"
        run_as_user git config --file "$GIT_CONFIG_GLOBAL" diff.mine.textconv "sed s/^/converted:/"
        must by "$who" diff -j "hostile-$who" "$TREE/x.hidden"
        output_has '+converted:changed'
        run_as_user git config --file "$GIT_CONFIG_GLOBAL" diff.external "echo external"
        must by "$who" diff -j "hostile-$who" "$TREE/file"
        output_has 'external difftree/file'
        : >"$GIT_CONFIG_GLOBAL"
        run_as_user rm -rf .git .gitattributes .gitmodules .git-attributes .gitconfig out sub file x.hidden
    done
}

# in_terminal CMD…: with a terminal, whose output it prints.
in_terminal() {
    local line
    needs script
    line=$(printf '%q ' "$@")
    # shellcheck disable=SC2031
    export -f by as run_as_user lib_is_root
    export BRIG LIB_USER HOME_OF_USER ROOT_STORE
    SHELL=/bin/bash TERM=xterm script -qec "$line" /dev/null </dev/null
}

@test "the pager is the user's, and a terminal gets no escape sequences of a file" {
    in_tree 'echo file >file'
    change user pager 'printf "\033]0;title\007\033[8mhidden\302\233\342\200\256\n" >file'
    run_as_user git config --file "$GIT_CONFIG_GLOBAL" core.pager "sed s/^/paged:/"
    must in_terminal by user diff -j pager "$TREE"
    output_has 'paged:'
    output_lacks $'\033]'
    output_lacks $'\033[8m'
    output_has '<U+001B>]0;title<U+0007><U+001B>[8mhidden<U+009B><U+202E>'
    must in_terminal by user diff --no-pager -j pager "$TREE"
    output_lacks paged
    output_lacks $'\033[8m'
    # A variable of the user chooses it, too.
    GIT_PAGER='sed s/^/variable:/' must in_terminal by user diff -j pager "$TREE"
    output_has 'variable:'
    # A text conversion of the user gets the file as it is, and others are still escaped.
    change user pager 'printf "\033[8mother\n" >other'
    run_as_user sh -c 'echo "file diff=mine" >attributes'
    run_as_user git config --file "$GIT_CONFIG_GLOBAL" core.attributesFile "$PWD/attributes"
    run_as_user git config --file "$GIT_CONFIG_GLOBAL" diff.mine.textconv "od -An -c"
    must in_terminal by user diff -j pager "$TREE"
    output_has '033   ]   0   ;   t'
    output_has '<U+001B>[8mother'
    # Without a terminal, contents are exact, and there is no pager.
    : >"$GIT_CONFIG_GLOBAL"
    must by user diff -j pager "$TREE"
    output_has $'+\033]0;title\007'
    output_lacks paged
}

@test "masked files are not shown, and nothing is left in the record" {
    run_as_user mkdir -p "$HOME_OF_USER/.ssh"
    run_as_user sh -c "echo key >$HOME_OF_USER/.ssh/id_test"
    change user masked 'echo new >file'
    run_as_user mkdir -p "$HOME_OF_USER/.local/share/brig/masked.changes/.ssh"
    run_as_user sh -c "echo planted >$HOME_OF_USER/.local/share/brig/masked.changes/.ssh/id_test"
    must by user diff -j masked
    output_has '+new'
    output_lacks ssh
    must by user diff -j masked --name-only
    output_lacks ssh
    # What a killed command has left is removed by the next.
    run_as_user mkdir "$HOME_OF_USER/.local/share/brig/masked.record/scratch.1"
    must by user diff -j masked
    [ -z "$(find "$HOME_OF_USER/.local/share/brig/masked.record" -name 'scratch*')" ]
    run_as_user rm -r "$HOME_OF_USER/.ssh"
}

@test "while the jail runs, it works and says so" {
    in_tree 'echo file >file'
    jail user running
    run_as_user "$BRIG" -m casual -j running -- sh -c "$AWAIT; echo changed >$TREE/file; : >up; await_file enough" 3>&- &
    local run=$!
    await_file up
    must by user diff -j running "$TREE"
    output_has '+changed'
    output_has "the jail 'running' is running"
    run_as_user touch enough
    wait "$run"
    must by user diff -j running "$TREE"
    output_lacks 'is running'
}

@test "two jails are compared" {
    in_tree 'echo user >only-a; echo user >only-b; echo user >both; echo user >same; echo user >neither; mkdir dir; echo user >dir/file; echo user >mode'
    change user first 'echo a >only-a; echo a >both; echo same >same; rm -r dir; echo a >dir; echo a >new; chmod +x mode'
    change user second 'echo b >only-b; echo b >both; echo same >same; echo b >dir/file; rm neither; echo b >mode'
    must by user diff --jails first second "$TREE"
    output_has $'+++ b/difftree/both\n@@ -1 +1 @@\n-a\n+b'
    output_has $'+++ b/difftree/only-a\n@@ -1 +1 @@\n-a\n+user'
    output_has $'+++ b/difftree/only-b\n@@ -1 +1 @@\n-user\n+b'
    output_has $'--- a/difftree/neither\n+++ /dev/null'
    output_has $'--- a/difftree/dir\n+++ /dev/null'
    output_has $'+++ b/difftree/dir/file\n@@ -0,0 +1 @@\n+b'
    output_has $'--- a/difftree/new\n+++ /dev/null'
    output_has $'old mode 100755\nnew mode 100644'
    output_lacks same
    must by user diff --jails first second --name-only "$TREE"
    output_has "$TREE/both"
    output_lacks same
}

@test "a reviewed directory, alone and beside the home" {
    local who
    in_tree 'echo home >file'
    run_as_user sh -c 'echo project >file; mkdir sub; echo sub >sub/file; git init -q . 2>/dev/null; printf "* -diff\n" >.gitattributes'
    for who in $(users); do
        jail "$who" "review-$who"
        must by "$who" -R -m casual -j "review-$who" -- sh -c 'echo changed >file; rm -r sub; echo "* diff=x" >.gitattributes
            git config diff.external "touch external"; git config core.pager "touch pager"'
        must by "$who" diff -j "review-$who" .
        output_has $'+++ b/file\n@@ -1 +1 @@\n-project\n+changed'
        output_has $'--- a/sub/file\n+++ /dev/null'
        output_lacks 'b/.git'$'\n'
        # The patch is for the project.
        must by "$who" diff -j "review-$who" --patch ../x.patch .
        run_as_user cp -a . ../copy
        (cd ../copy && must run_as_user git apply ../x.patch && [ "$(cat file)" = changed ] && [ ! -e sub ])
        run_as_user rm -rf ../copy ../x.patch
        # With changes of the home as well, paths are those of the host.
        must by "$who" -R -m casual -j "review-$who" -- sh -c 'echo changed >"$1/file"' - "$TREE"
        must by "$who" diff -j "review-$who" . "$TREE"
        output_has "+++ b$PWD/file"
        output_has "+++ b$TREE/file"
        must by "$who" diff -j "review-$who" --patch x.patch . "$TREE"
        output_has 'apply it in /'
        must by "$who" diff -j "review-$who" --name-only sub
        [ "$output" = "$PWD/sub/file" ]
        [ "$(cat file "$TREE/file")" = $'project\nhome' ]
        [ ! -e external ]
        [ ! -e pager ]
        run_as_user rm x.patch
    done
}

@test "parts are chosen with git add -p, and what is refused stays" {
    needs script
    run_as_user sh -c 'mkdir -p gone became; echo keep >gone/file; echo keep >became/file; seq 1 30 >lines; echo "* -diff" >.gitattributes'
    jail user parts
    must by user -R -m casual -j parts -- sh -c 'rm -r gone became; echo file >became; seq 1 30 | sed "s/^1$/one/; s/^30$/thirty/" >lines
        echo new >new; echo "* diff=planted" >.gitattributes'
    # .gitattributes, gone/file, the two hunks of lines, new; then the file that has replaced a directory.
    printf 'n\nn\ny\nn\ny\nn\n' >answers
    export -f by as run_as_user lib_is_root
    export BRIG LIB_USER HOME_OF_USER
    SHELL=/bin/bash TERM=xterm must script -qec 'by user apply -j parts -p .' /dev/null <answers
    [ "$(sed -n '1p;30p' lines)" = $'one\n30' ]
    [ "$(cat new gone/file became/file .gitattributes)" = $'new\nkeep\nkeep\n* -diff' ]
    must by user diff -j parts --name-only .
    output_has "$PWD/gone/file"
    output_has "$PWD/lines"
    output_lacks "$PWD/new"
}

# answer ANSWERS WORDS…: brig at a terminal, with lines that are typed.
answer() {
    local typed=$1
    shift
    printf '%b' "$typed" >answers
    export -f by as run_as_user lib_is_root
    export BRIG LIB_USER HOME_OF_USER
    SHELL=/bin/bash TERM=xterm script -qec "by user $*" /dev/null <answers
}

@test "nothing is applied after q, also no directory" {
    needs script
    run_as_user sh -c 'mkdir gone; echo keep >gone/file'
    jail user quits
    must by user -R -m casual -j quits -- sh -c 'mkdir -p new/deep empty other; echo x >new/deep/file; rm -r gone'
    run answer 'q\nq\n' apply -j quits -p .
    output_has 'nothing was applied'
    [ ! -e new ]
    [ ! -e empty ]
    [ ! -e other ]
    [ -e gone/file ]
    # The directories above a file that is chosen are made.
    run answer 'n\ny\ny\nq\n' apply -j quits -p .
    output_has 'brig undo -j quits '
    [ "$(cat new/deep/file)" = x ] && [ -d empty ] && [ ! -e other ] && [ -e gone/file ]
}

@test "an answer is a letter or a word, and can stand for all flagged changes" {
    needs script
    run_as_user sh -c 'seq 1 30 >lines; echo a >a; echo b >b'
    jail user answers
    must by user -R -m casual -j answers -- sh -c 'sed -i s/^1$/one/ lines; echo jail >a; echo jail >b
        for name in x y z; do echo ":" >$name; chmod +x $name; done; echo plain >plain'
    run_as_user sh -c 'sed -i s/^30$/thirty/ lines; echo mine >a'
    # The conflicts of a and lines, then all that is flagged.
    run answer 'maybe\nmine\nmerge\nonly\n' apply -j answers --all
    output_has 'applied 3 changes, kept your version of 1 file; brig undo -j answers '
    output_has '3 changes were left out'
    output_lacks 'not applied'
    [ "$(sed -n '1p;30p' lines)" = $'one\nthirty' ]
    [ "$(cat a b plain)" = $'mine\njail\nplain' ]
    [ ! -e x ]
    run answer 'n\na\n' apply -j answers --all
    output_has 'applied 2 changes'
    output_has '1 change was left out'
    [ ! -e x ] && [ -x y ] && [ -x z ]
}

@test "jails of root, and mistakes" {
    if lib_is_root; then
        jail root roots
        must by root -D -m bare -j roots -- true
        must by root diff -j roots
        output_has 'has no changes'
    fi
    must_exit 125 by user diff -j missing
    output_has "there is no jail 'missing'"
    must_exit 125 by user diff --stat --name-only
    must_exit 125 by user diff --wrong
    change user mistakes 'echo x >file'
    must_exit 125 by user diff -j mistakes /etc/passwd
    output_has "has no copy of '/etc/passwd'"
    must_exit 125 by user diff -j mistakes --patch /missing/file
    must by user diff -j mistakes "$TREE/no-such-file"
    output_has 'no changes'
}
