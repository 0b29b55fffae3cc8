#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Files that a program outside would execute: existing ones are read-only in a jail, and new ones are held back
# when the run ends. brig creates nothing in a project but an empty `.git` where there is none.

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

# Some names of src/held/names.c, and the files that stand for those that are directories. That each name of the table
# is found is tested by unit/test_guard and unit/test_risk.
FILES='.envrc .devcontainer.json .mcp.json .claude/settings.json .claude/settings.local.json opencode.json '
FILES+='opencode.jsonc .aider.conf.yml .brig.conf'
DIRECTORIES='.vscode .idea .zed .devcontainer .husky .claude/hooks .codex .cursor .gemini .qwen .opencode .windsurf .roo'
# For a shell: a file of each name, and one in each directory, whose text is a comment with its name.
MAKE="mkdir -p $DIRECTORIES; for f in $FILES; do [ \$f = \${f#*/} ] || mkdir -p \${f%/*}; echo \"# \$f\" >\$f; done
    for d in $DIRECTORIES; do echo \"# \$d\" >\$d/file; done;"

# pairs_of_modes MODE…: pairs of everyone and these modes; and for root, whose own jails have no home, bare, with
# BRIG_THOROUGH=1 also sealed.
pairs_of_modes() {
    pairs_of "$(everyone)" "$@"
    if lib_is_root; then
        echo root:bare "${BRIG_THOROUGH:+root:sealed}"
    fi
}

# stored WHO: the directory in which WHO's jail keeps what was held back.
stored() {
    local base=$HOME_OF_USER/.local/share/brig
    [ "$1" != root ] || base=$ROOT_STORE
    echo "$base/$JAIL.record/operations"
}

# has_stored WHO TEXT: a file with this text is there.
has_stored() {
    grep -rqxF -- "$2" "$(stored "$1")" || {
        echo "not in $(stored "$1"): $2" >&2
        find "$(stored "$1")" >&2
        return 1
    }
}

# listing: everything in the project, with what would tell that it was touched: of a directory its names.
listing() {
    find . -mindepth 1 \( -type d -printf '%p %y %i %m %U\n' -o -printf '%p %y %i %s %m %U %l %T@\n' \) | sort
}

@test "the names of this suite are in the table" {
    for name in $FILES $DIRECTORIES; do
        grep -qF "\"$name\"" "$LIB_ROOT/src/held/names.c"
    done
}

@test "what an existing Mercurial project and other agents obey is protected and held back" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -c 'mkdir -p .hg/store; echo "[paths]" >.hg/hgrc; echo share-safe >.hg/requires'
        before=$(listing)
        must inside "$pair" 'set +e
            echo x >>.hg/hgrc && echo LOST; echo shared >>.hg/requires && echo LOST; mv .hg h && echo LOST
            echo "[hooks]" >.hg/hgrc-not-shared; printf "$PWD/evil/.hg" >.hg/sharedpath; echo data >.hg/store/data
            mkdir -p .jj/repo .github/hooks .amazonq .bsp; echo x >.jj/repo/config.toml; echo {} >.amazonq/mcp.json
            echo {} >.github/hooks/x.json; echo x >.bsp/x.json; echo {} >crush.json; echo ok'
        output_has ok
        output_lacks LOST
        for name in .hg/hgrc-not-shared .hg/sharedpath .jj .github/hooks .amazonq/mcp.json .bsp crush.json; do
            output_has "held back: $name,"
            [ ! -e "$name" ]
        done
        [ "$(cat .hg/store/data)" = data ]
        as "$OWNER" sh -c 'rm .hg/store/data; rmdir .github .amazonq'
        [ "$(listing)" = "$before" ]
    done
}

@test "a new Mercurial repository is held back as a whole" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'mkdir -p .hg/store; echo "[hooks]" >.hg/hgrc; echo x >.hg/requires'
        output_has "held back: .hg, which its version control would execute"
        output_lacks .hg/hgrc
        [ ! -e .hg ]
    done
}

@test "new files are visible inside, and held back when the run ends, in every mode" {
    for pair in $(pairs_of_modes casual strict bare sealed); do
        who=${pair%:*}
        project "$who"
        before=$(listing)
        must inside "$pair" "$MAKE"' cat .vscode/file .envrc .claude/settings.json; echo data >.claude/notes; echo plain >plain'
        output_has $'# .vscode\n# .envrc\n# .claude/settings.json'
        kept=$'\n'$(grep -rhx -- '# .*' "$(stored "$who")")$'\n'
        for name in $FILES $DIRECTORIES; do
            output_has "held back: $name,"
            [ ! -e "$name" ] || { echo "still there: $name" >&2; false; }
            [[ $kept == *$'\n'"# $name"$'\n'* ]] || { echo "not in $(stored "$who"): # $name" >&2; false; }
        done
        # What is only beside them stays.
        [ "$(cat .claude/notes plain)" = $'data\nplain' ]
        as "$OWNER" rm -rf .claude plain
        [ "$(listing)" = "$before" ]
        # shellcheck disable=SC2086 # words
        by "$who" discard $FILES $DIRECTORIES
    done
}

@test "a directory without a repository, and one granted beside the working directory" {
    for pair in $(pairs); do
        enter_project "${pair%:*}"
        as "$OWNER" mkdir ../more
        must inside "$pair" "echo x >.envrc; mkdir '$SCRATCH/more/.vscode'; echo x >'$SCRATCH/more/.vscode/tasks.json'; echo x >file" -d ../more
        output_has "held back: .envrc"
        output_has "held back: .vscode"
        [ "$(ls -A)" = file ]
        [ -z "$(ls -A ../more)" ]
    done
}

@test "existing ones are read-only, cannot be moved or replaced, and are not held back" {
    for pair in $(pairs_of "$(everyone)" casual sealed) $(if lib_is_root; then echo root:sealed; fi); do
        project "${pair%:*}"
        as "$OWNER" sh -ec "$MAKE"
        before=$(listing)
        # All in one run: none may work.
        must inside "$pair" "set +e; for n in $FILES; do
                [ \"\$(cat \$n)\" = \"# \$n\" ] || echo \"UNREADABLE: \$n\"
                for a in 'echo x >\$n' 'rm \$n' 'mv \$n moved' 'echo x >new && mv -f new \$n' 'chmod 777 \$n' 'ln \$n link' 'touch -d 2000-01-01 \$n' 'ln -sf /etc/passwd \$n'; do
                    eval \"\$a\" 2>/dev/null && echo \"LOST: \$n: \$a\"; rm -rf new moved link
                done; done
            for n in $DIRECTORIES; do
                [ \"\$(cat \$n/file)\" = \"# \$n\" ] || echo \"UNREADABLE: \$n\"
                for a in 'echo x >\$n/new' 'echo x >\$n/file' 'rm -r \$n' 'mv \$n moved' 'mkdir x && mv -T x \$n' 'rm \$n/file'; do
                    eval \"\$a\" 2>/dev/null && echo \"LOST: \$n: \$a\"; [ ! -d x ] || rmdir x; [ ! -e moved ] || rm -rf moved
                done; done
            mv .claude c 2>/dev/null && echo LOST; echo tried all"
        output_has "tried all"
        output_lacks LOST
        output_lacks UNREADABLE
        output_lacks "held back"
        now=$(listing)
        run diff <(echo "$before") <(echo "$now")
        [ "$status" -eq 0 ] || { echo "$pair: $output" >&2; false; }
    done
}

@test "what else of the table a run has created or changed, anywhere, is said in one line" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -c 'mkdir -p sub/.claude .githooks node_modules/old/.vscode; echo {} >sub/.claude/settings.json
            echo x >.githooks/pre-commit'
        must inside "$pair" 'echo x >c; mkdir node_modules/new d; echo x >node_modules/new/.envrc; echo x >node_modules/old/.envrc
            echo x >d/main.c; mkdir shut; chmod 000 shut'
        output_lacks "executed outside"
        [ "$(stat -c %a shut)" = 0 ]
        chmod 700 shut
        must inside "$pair" 'echo "{ }" >sub/.claude/settings.json; echo y >>.githooks/pre-commit
            mkdir -p d/e/f/.vscode node_modules/.bin venv; echo x >d/e/f/.vscode/tasks.json; echo x >d/e/f/.vscode/more
            echo x >node_modules/.bin/tsc; echo x >venv/pyvenv.cfg; echo x >.envrc; mkdir -p d/f/g; echo x >d/f/g/.mcp.json
            echo x >"$(printf "d/f/g/\\033x.code-workspace")"'
        output_has "held back: .envrc"
        line=$(grep 'executed outside' <<<"$output")
        [ "$(wc -l <<<"$line")" = 1 ]
        for text in '.githooks/pre-commit (in a directory that programs outside execute)' \
            "node_modules/.bin (a program that the project's tools start)" 'venv/pyvenv.cfg (names the Python that editors start)' \
            'sub/.claude/settings.json (obeyed by Claude Code)'; do
            [[ $line == *"$text"* ]] || { echo "no $text in $line" >&2; false; }
        done
        output_lacks $'\033'
        output_lacks "executed outside: .envrc"
    done
}

@test "--unprotect excepts a name, --protect report leaves them, --no-protect leaves all" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'echo x >.envrc; mkdir .vscode' --unprotect .envrc
        [ -e .envrc ]
        [ ! -e .vscode ]
        output_lacks "held back: .envrc"
        must inside "$pair" 'echo y >.envrc' --unprotect .envrc
        [ "$(cat .envrc)" = y ]
        must_fail inside "$pair" 'echo z >.envrc'
        must inside "$pair" 'echo x >.mcp.json' --protect report
        [ -e .mcp.json ]
        output_has .mcp.json
        must inside "$pair" 'echo x >opencode.json; echo z >.envrc' --no-protect
        [ -e opencode.json ]
        [ "$(cat .envrc)" = z ]
    done
}

@test "brig held lists them, brig keep restores, brig discard deletes" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'echo "use flake" >.envrc; mkdir -p .vscode .claude; echo tasks >.vscode/tasks.json; echo {} >.claude/settings.json; ln -s a .mcp.json'
        must by "${pair%:*}" held
        output_has "$PROJECT/.envrc"
        output_has direnv
        output_has "$PROJECT/.mcp.json"
        must by "${pair%:*}" keep .envrc
        [ "$(cat .envrc)" = "use flake" ]
        [ "$(stat -c %U .envrc)" = "$(stat -c %U .)" ]
        output_has "$(out hash-object .envrc)"
        must by "${pair%:*}" keep .vscode .claude/settings.json
        [ "$(cat .vscode/tasks.json .claude/settings.json)" = $'tasks\n{}' ]
        must by "${pair%:*}" discard "$PROJECT/.mcp.json"
        must by "${pair%:*}" held
        output_lacks "$PROJECT"
        must_exit 125 by "${pair%:*}" keep .envrc
        # What was kept is the user's, and is read-only from now on.
        must_fail inside "$pair" 'echo x >.envrc'
        # A file of the user's is not overwritten.
        as "$OWNER" rm .envrc
        must inside "$pair" 'echo theirs >.envrc'
        as "$OWNER" sh -c 'echo mine >.envrc'
        must_exit 125 by "${pair%:*}" keep .envrc
        [ "$(cat .envrc)" = mine ]
        must by "${pair%:*}" discard .envrc
    done
}

@test "brig held: sorted by project and time, with jail, number, time, size, kind and program" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        as "$OWNER" mkdir ../a
        must inside "$pair" 'mkdir -p .vscode/d; echo tasks >.vscode/d/t; echo x >.vscode/u'
        must inside "$pair" 'ln -s /etc .mcp.json'
        must inside "$pair" "echo 'use flake' >.envrc; echo x >'$SCRATCH/a/.envrc'" -d ../a
        output_has "held back: .envrc, which direnv would execute. brig held shows it, brig keep .envrc restores it"
        # Elsewhere than in the working directory the name alone would not do.
        output_has "held back: .envrc in $SCRATCH/a, which direnv would execute. See brig held"
        must by "$who" held
        [ "$(sed "s/^$JAIL #[0-9]*  [-0-9]* [0-9:]*  //" <<<"$output")" = "$SCRATCH/a/.envrc  2 bytes  (direnv)
$PROJECT/.vscode  directory, 2 files, 8 bytes  (Visual Studio Code)
$PROJECT/.mcp.json  link to /etc  (agents that use MCP)
$PROJECT/.envrc  10 bytes  (direnv)" ] || { echo "$output" >&2; false; }
        # The number is where it is kept.
        number=$(sed -n "s,^$JAIL #\([0-9]*\) .*$PROJECT/.envrc .*,\1,p" <<<"$output")
        [ "$(cat "$(stored "$who")/$number/objects/0.old")" = "use flake" ]
        by "$who" discard .envrc .vscode .mcp.json ../a/.envrc
    done
}

@test "brig held PATH prints a file, the files of a directory and the target of a link, and changes nothing" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        must inside "$pair" 'printf "one\ntwo\033]0;title\007\233" >.envrc; mkdir -p .vscode/d; echo tasks >.vscode/d/t
            ln -s ../.. .vscode/d/up; ln -s "$(printf "a\nb")" .mcp.json'
        must by "$who" held .vscode
        [ "$output" = "$PROJECT/.vscode/d/t  6 bytes
$PROJECT/.vscode/d/up  link to ../.." ]
        must by "$who" held .vscode/d/t .vscode/d/up
        [ "$output" = $'tasks\n../..' ]
        # Nothing leads out of the copy by a link.
        must_exit 125 by "$who" held .vscode/d/up/p
        must by "$who" held .mcp.json
        [ "$output" = 'a\nb' ]
        # As it is, to a file or a pipe; harmless, to a terminal.
        by "$who" held .envrc >"$SCRATCH/printed"
        printf 'one\ntwo\033]0;title\007\233' | cmp - "$SCRATCH/printed"
        must script -qec "$(declare -f by as run_as_user lib_is_root); $(declare -p BRIG LIB_USER HOME_OF_USER) ROOT_STORE=${ROOT_STORE:-}
            by $who held .envrc" /dev/null
        output_has 'two\x1b]0;title\x07\x9b'
        output_lacks $'\033'
        must_exit 125 by "$who" held .idea
        output_has "'.idea' is not held back"
        # A part of a directory can be looked at, but is not restored or deleted.
        must_exit 125 by "$who" keep .vscode/d/t
        output_has "'.vscode/d/t' is part of '.vscode', which is held back as a whole"
        must_exit 125 by "$who" discard .vscode/d/t
        must by "$who" discard .vscode .envrc .mcp.json
        must by "$who" held
        [ "$output" = "brig: nothing is held back" ]
    done
}

@test "brig held, keep and discard take a path by any name, however long or odd" {
    enter_project user
    long=$(printf '%0250d' 1)
    odd=$SCRATCH/$long/$'o\td\nd \xc2\x9b\\x'
    as user mkdir -p "$odd"
    as user ln -s "$odd" "$SCRATCH/link"
    names=(.envrc "$odd/.envrc" "$SCRATCH/link/.envrc" ../link/.envrc ./.envrc)
    for pair in $(pairs_of "$(everyone)" "${!names[@]}"); do
        who=${pair%:*} given=${names[${pair#*:}]}
        cd "$odd"
        must inside "$who:sealed" 'echo theirs >.envrc'
        must by "$who" held
        output_has "$SCRATCH/$long/"'o\td\nd \xc2\x9b\\x/.envrc  7 bytes'
        [ "${#lines[@]}" -eq 1 ]
        [ "$given" != ../link/.envrc ] || cd "$PROJECT"
        must by "$who" held "$given"
        [ "$output" = theirs ]
        must by "$who" keep "$given"
        [ "$(cat "$odd/.envrc")" = theirs ]
        as user rm "$odd/.envrc"
    done
    cd "$PROJECT"
}

@test "of several versions keep restores the newest, and discard deletes all" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        for i in 1 2 3; do
            must inside "$pair" "echo $i >.envrc; [ $i != 3 ] || { rm .envrc; mkdir .envrc; echo 3 >.envrc/f; }"
        done
        must by "$who" held .envrc
        output_has "$PROJECT/.envrc/f  2 bytes"
        output_has "the newest of 3 versions"
        must by "$who" keep .envrc
        output_has "restored $PROJECT/.envrc: directory, 1 file, 2 bytes"
        output_has "2 older versions stay held back; see brig held"
        [ "$(cat .envrc/f)" = 3 ]
        as "$OWNER" rm -r .envrc
        must by "$who" keep .envrc
        output_has "restored $PROJECT/.envrc: 2 bytes, git object $(out hash-object .envrc)"
        output_has "1 older version stays held back; see brig held"
        [ "$(cat .envrc)" = 2 ]
        as "$OWNER" rm .envrc
        must inside "$pair" 'ln -s target .envrc'
        must inside "$pair" 'ln -s newest .envrc'
        must by "$who" keep .envrc
        output_has "restored $PROJECT/.envrc: link to newest"
        [ "$(readlink .envrc)" = newest ]
        must by "$who" discard .envrc
        [ "$output" = "deleted $PROJECT/.envrc: 2 versions" ]
        [ -L .envrc ]
        must by "$who" held
        output_lacks "$PROJECT"
        must_exit 125 by "$who" discard .envrc
    done
}

@test "brig keep writes only to the directory that the file is from, or to the one that --to names" {
    for pair in $(pairs); do
        who=${pair%:*}
        enter_project "$who" 'mkdir p1'
        cd p1
        must inside "$pair" 'mkdir .claude; echo {} >.claude/settings.json; echo x >.envrc'
        cd ..
        # A link to another directory.
        as "$OWNER" sh -c 'mv p1 moved; ln -s .. p1'
        must_exit 125 by "$who" keep "$PROJECT/p1/.claude/settings.json"
        output_has "is reached through a link now"
        output_has "brig keep --to DIRECTORY"
        [ ! -e ../.claude ]
        # Another directory.
        as "$OWNER" sh -c 'rm p1; mkdir p1'
        must_exit 125 by "$who" keep "$PROJECT/p1/.envrc"
        output_has "is not the directory that it was"
        [ ! -e p1/.envrc ]
        # None.
        as "$OWNER" rmdir p1
        must_exit 125 by "$who" keep "$PROJECT/p1/.envrc"
        must_exit 125 by "$who" keep --to nowhere "$PROJECT/p1/.envrc"
        must by "$who" keep --to moved "$PROJECT/p1/.claude/settings.json"
        [ "$(cat moved/.claude/settings.json)" = {} ]
        # The same directory at its place again.
        as "$OWNER" mv moved p1
        must by "$who" keep "$PROJECT/p1/.envrc"
        [ "$(cat p1/.envrc)" = x ]
        # The same directory at another place, by its new path; another one of that name is not meant.
        cd p1
        as "$OWNER" rm .envrc
        must inside "$pair" 'echo y >.envrc'
        cd ..
        as "$OWNER" sh -c 'mv p1 elsewhere; mkdir p1'
        must_exit 125 by "$who" keep p1/.envrc
        output_has "is not the directory that it was"
        must by "$who" keep elsewhere/.envrc
        output_has "restored $PROJECT/elsewhere/.envrc"
        [ "$(cat elsewhere/.envrc)" = y ]
    done
}

@test "gc --gone --dry-run says that a jail with files that were held back stays" {
    enter_project user
    must by user -m sealed -- sh -c 'echo x >.envrc'
    must by user held
    jail=$(sed -n "s,^\([^ ]*\) #[0-9]* .*$PROJECT/.envrc .*,\1,p" <<<"$output")
    cd ..
    as user mv p moved
    must by user gc --gone --dry-run -j "$jail"
    output_has "the jail '$jail' has files that were held back (1; see brig held -j $jail)"
    output_lacks "the jail would be removed"
    must by user gc --gone -j "$jail"
    output_has "files that were held back (1"
    must by user discard -j "$jail" "$PROJECT/.envrc"
    must by user gc --gone --dry-run -j "$jail"
    output_has "the jail would be removed"
    must by user rm "$jail"
}

@test "keep succeeds where nothing can be printed" {
    project user
    must inside user:sealed 'echo x >.envrc; echo x >.mcp.json'
    by user keep .envrc >/dev/full
    by user discard .mcp.json >/dev/full
    [ -e .envrc ]
}

@test "the log has files that were held back, and transfers of git" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'echo x >.envrc; echo x >>a; git commit -q -a -m logged'
        must by "${pair%:*}" log -j "$JAIL"
        output_has "hold  1 change  .envrc in $PROJECT, which direnv would execute"
        output_has '(git: moved main from '
        id=$(sed -n 's/^#\([0-9]*\) .*  hold  .*/\1/p' <<<"$output")
        must by "${pair%:*}" log -j "$JAIL" "$id"
        output_has "  hold back $PROJECT/.envrc"
        # gc leaves what is not decided about, and keep is an operation that can be undone.
        must by "${pair%:*}" gc -j "$JAIL" --older 0
        must by "${pair%:*}" keep .envrc
        must by "${pair%:*}" log -j "$JAIL"
        output_has "  (kept by #"
        must by "${pair%:*}" undo -j "$JAIL" "$(sed -n 's/.*(kept by #\([0-9]*\)).*/\1/p' <<<"$output")"
        [ ! -e .envrc ]
        must by "${pair%:*}" discard .envrc
        must by "${pair%:*}" log -j "$JAIL"
        output_has "  (discarded)"
        must by "${pair%:*}" gc -j "$JAIL" --older 0
        must by "${pair%:*}" log -j "$JAIL"
        output_lacks hold
    done
}

@test "undo without a number means the run, and not what it left held back" {
    project user
    must inside user:sealed 'echo run >a; echo x >.envrc' --checkpoint
    must by user undo -j "$JAIL"
    [ "$(cat a)" = a ]
    [ ! -e .envrc ]
    must by user held
    output_has "$PROJECT/.envrc"
    must by user keep .envrc
    must by user log -j "$JAIL" --json
    output_has '"kind":"hold"'
}

@test "a keep that was interrupted is named, and continued or reverted" {
    project user
    for how in --abort --continue; do
        must inside user:sealed 'mkdir .vscode; echo t >.vscode/t; chmod 500 .vscode'
        must by user keep .vscode
        id=$(by user log -j "$JAIL" | sed -n 's/^#\([0-9]*\) .*  undo .*/\1/p' | head -n 1)
        rm "$(stored user)/$id/done" # as if the kill had come before the end
        must_exit 125 by user keep .vscode
        must by user status -j "$JAIL"
        output_has "Operation $id was interrupted"
        must by user apply -j "$JAIL" "$how"
        must by user held
        case $how in
        --abort) [ ! -e .vscode ] && output_has "$PROJECT/.vscode" ;;
        *) output_lacks "$PROJECT/.vscode" ;;
        esac
        [ "$how" = --continue ] || must by user keep .vscode
        [ "$(stat -c %a .vscode) $(cat .vscode/t)" = '500 t' ]
        rm -r .vscode
    done
}

@test "-j names a jail; without it all are meant" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        first=$JAIL
        must inside "$pair" 'echo first >.envrc'
        JAIL=$first-b
        jail "$who" "$JAIL"
        must inside "$pair" 'echo second >.envrc'
        JAIL=$first
        must by "$who" held -j "$first"
        output_has "$first #"
        output_lacks "$first-b #"
        must by "$who" held "--jail=$first-b" .envrc
        [ "$output" = second ]
        must by "$who" held
        [ "${#lines[@]}" -eq 2 ]
        must by "$who" keep "-j$first" .envrc
        [ "$(cat .envrc)" = first ]
        as "$OWNER" rm .envrc
        run by "$who" discard --jail "$first" .envrc
        [ "$status" -ne 0 ]
        output_has "not held back"
        must by "$who" held --jail "$first"
        [ "$output" = "brig: nothing is held back" ]
        # An option behind a path is not taken for a path.
        must_exit 125 by "$who" discard .envrc -j "$first"
        output_has "options come before other words"
        must by "$who" discard -j "$first-b" -- .envrc
        must by "$who" sync -j "$first"
        for verb in 'held' 'keep x' 'discard x' 'sync' 'sync --show'; do
            # shellcheck disable=SC2086 # words
            must_exit 125 by "$who" ${verb%% *} -j "${first}x" ${verb#"${verb%% *}"}
            output_has "there is no jail '${first}x'"
        done
        must_exit 125 by "$who" held -j
    done
}

@test "brig sync says that there is nothing to do" {
    project user
    must inside user:sealed true
    for option in '' --show; do
        must by user sync -j "$JAIL" $option
        [ "$output" = "brig: there is nothing to transfer" ]
    done
    start user:casual 'git commit -q --allow-empty -m new; echo >ready; await_file go'
    await_file ready
    must by user sync --show -j "$JAIL"
    output_has "its git directory has changes"
    must by user sync --jail "$JAIL"
    output_has "1 commit on main"
    finish
}

@test "after SIGKILL brig sync holds them back as well" {
    project user
    start user:sealed 'echo theirs >.envrc; echo >ready; await_file go'
    await_file ready
    kill -9 "$(find_brig "$JOB")"
    wait "$JOB" || true
    JOB=
    must by user sync --show
    [ -e .envrc ]
    must by user sync
    output_has "held back: .envrc"
    [ ! -e .envrc ]
    has_stored user theirs
}

@test "brig rm refuses to delete held-back files and git changes, unless it is forced" {
    for pair in $(pairs); do
        who=${pair%:*}
        project "$who"
        must inside "$pair" 'echo x >.envrc'
        by "$who" stop "$JAIL"
        must_exit 125 by "$who" rm "$JAIL"
        output_has "files that were held back (1; see brig held -j $JAIL)"
        output_has "brig rm -f $JAIL"
        has_stored "$who" x
        # A rebase that goes on is kept for the next run.
        must inside "$pair" 'git switch -q -c topic; echo t >a; git commit -q -am t; git switch -q main; echo m >a
            git commit -q -am m; git rebase topic || true; test -d .git/rebase-merge'
        by "$who" stop "$JAIL"
        must_exit 125 by "$who" rm "$JAIL"
        output_has "git changes that were not transferred (see brig sync --show -j $JAIL)"
        must by "$who" sync --show -j "$JAIL"
        output_has rebase
        must by "$who" discard .envrc
        must_exit 125 by "$who" rm "$JAIL"
        output_lacks "held back"
        must by "$who" rm -f "$JAIL"
        must_exit 125 by "$who" rm --force "$JAIL"
        output_has "there is no jail"
        # Without either it needs no force; nor after reviewed commits were applied, or discarded.
        must inside "$pair" true
        by "$who" stop "$JAIL"
        must by "$who" rm "$JAIL"
        for review in --review --review=auto; do
            must inside "$pair" 'echo r >>a; git commit -q -am r' "$review"
            [ "$review" = --review=auto ] || must_exit 125 by "$who" rm "$JAIL"
            [ "$review" = --review=auto ] || must by "$who" apply -j "$JAIL" --all
            [ "$(out log -1 --format=%s)" = r ]
            by "$who" stop "$JAIL"
            must by "$who" sync --show -j "$JAIL"
            output_lacks "waits"
            must by "$who" rm "$JAIL"
        done
    done
}

@test "messages are sentences for every name of the table" {
    project user
    must inside user:sealed "$MAKE"
    while read -r line; do
        [[ $line =~ ^'brig: held back: '[^\ ,]+', which '[A-Za-z\ ]+' would execute. brig held shows it, brig keep '[^\ ]+' restores it'$ ]] || {
            echo "$line" >&2
            false
        }
    done <<<"$output"
    [ "${#lines[@]}" -eq "$(wc -w <<<"$FILES $DIRECTORIES")" ]
}

@test "--unprotect names what it was given" {
    project user
    must_exit 125 inside user:sealed true --unprotect ../x
    output_has "'../x'"
    output_lacks "'/../x'"
    must inside user:sealed true --unprotect ./.envrc
}

@test "a hard link that the jail kept does not change the copy" {
    for pair in $(pairs); do
        project "${pair%:*}"
        must inside "$pair" 'echo first >.envrc; ln .envrc link; mkdir .vscode; echo first >.vscode/t; ln .vscode/t other'
        [ "$(cat link other)" = $'first\nfirst' ]
        must inside "$pair" 'echo changed >link; echo changed >other'
        has_stored "${pair%:*}" first
        run grep -rqx changed "$(stored "${pair%:*}")"
        [ "$status" -ne 0 ]
        must by "${pair%:*}" keep .envrc
        [ "$(cat .envrc)" = first ]
        [ "$(stat -c %h .envrc)" = 1 ]
        must by "${pair%:*}" discard .vscode
    done
}

@test "links, FIFOs, sockets and trees in place of a file" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -c 'echo secret >../secret; mkdir ../other; echo theirs >../other/file'
        must inside "$pair" "ln -s '$SCRATCH/secret' .envrc; ln -s '$SCRATCH/other' .vscode; ln -s a .mcp.json; ln -s .codex .codex; ln -s /dev/zero opencode.json"
        for name in .envrc .vscode .mcp.json .codex opencode.json; do
            [ ! -L "$name" ] || { echo "still there: $name" >&2; false; }
            output_has "held back: $name"
        done
        # Links are kept as links: what they lead to is neither copied nor removed.
        [ "$(cat ../secret ../other/file a)" = $'secret\ntheirs\na' ]
        run grep -rq secret "$(stored "${pair%:*}")" --include='*.old'
        [ "$status" -ne 0 ]
        must by "${pair%:*}" discard .envrc .vscode .mcp.json .codex opencode.json
        run inside "$pair" 'mkfifo .envrc; mkdir .idea; mkfifo .idea/f; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\".mcp.json\")"
            mkdir -p .vscode/d; ln -s / .vscode/d/root; echo kept >.vscode/d/file; mkfifo .vscode/f .vscode/d/g'
        [ "$status" -ne 125 ]
        for name in .envrc .idea .mcp.json .vscode; do
            [ ! -e "$name" ] || { echo "still there: $name: $output" >&2; false; }
        done
        # What has no content is deleted, and is not in the store.
        output_has "deleted: .envrc, which direnv would execute: it was a FIFO"
        output_has "deleted: .mcp.json, which agents that use MCP would execute: it was a socket"
        output_has "held back: .vscode, which Visual Studio Code would execute; FIFOs, sockets and devices in it were deleted (2)."
        must by "${pair%:*}" held
        [ "${#lines[@]}" -eq 2 ]
        output_has ".idea  directory, 0 files, 0 bytes, 1 special file left out"
        output_has ".vscode  directory, 2 files, 5 bytes, 2 special files left out"
        [ -z "$(find "$(stored "${pair%:*}")" -type p -o -type s)" ]
        has_stored "${pair%:*}" kept
        must by "${pair%:*}" keep .vscode
        [ "$(readlink .vscode/d/root)" = / ]
        [ "$(cat .vscode/d/file)" = kept ]
        [ ! -e .vscode/f ]
        must by "${pair%:*}" discard .idea
    done
}

@test "a directory above that is a link, made by the jail or by the user" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -c 'mkdir ../config; echo mine >../config/settings.json'
        # The link is the jail's: what it leads to is not touched.
        run inside "$pair" "ln -s '$SCRATCH/config' .claude"
        [ "$(cat ../config/settings.json)" = mine ]
        as "$OWNER" rm -f .claude
        # In the project: a program outside would follow it.
        run inside "$pair" 'mkdir real; echo planted >real/settings.json; ln -s real .claude'
        [ ! -e .claude/settings.json ] || { echo "not held back: $output" >&2; false; }
        as "$OWNER" rm -rf .claude real
    done
}

@test "very large and very many files are held back or reported, and never left" {
    project user
    must inside user:sealed 'mkdir .vscode; for i in $(seq 3000); do : >.vscode/$i; done; truncate -s 300M .envrc; d=.idea; for i in $(seq 100); do d=$d/d; done; mkdir -p $d'
    for name in .vscode .envrc .idea; do
        [ ! -e "$name" ] || { echo "still there: $name: $output" >&2; false; }
    done
    # The copy of a sparse file is sparse.
    [ "$(du -sk "$(stored user)" | cut -f1)" -lt 100000 ]
}

@test "what was committed as well is said to be" {
    project user
    must inside user:sealed 'echo x >.envrc; git add .envrc; git commit -q -m envrc'
    output_has "held back: .envrc"
    [ ! -e .envrc ]
    output_has "git: something executes a file of this commit when it is checked out: $(out log -1 --format=%H | cut -c1-10): .envrc: obeyed by direnv"
    # Also what is in no directory at the end, and not what nothing executes.
    must inside user:sealed 'mkdir .vscode; echo x >.vscode/tasks.json; git add .vscode; git commit -q -m tasks; git rm -rq .vscode; git commit -q -m none'
    output_has ": .vscode/tasks.json: obeyed by Visual Studio Code"
    must inside user:sealed 'echo x >a; git commit -q -m plain a'
    output_has "1 commit on main"
    output_lacks "when it is checked out"
}

@test "a change of an existing link is undone" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -c 'mkdir real; echo mine >real/tasks.json; ln -s real .vscode; echo mine >s; ln -s s .mcp.json'
        run inside "$pair" 'ln -sfn /tmp .vscode; rm -f .mcp.json; echo theirs >.mcp.json'
        [ "$(readlink .vscode)" = real ]
        [ "$(readlink .mcp.json)" = s ]
        run inside "$pair" 'echo theirs >real/tasks.json'
        [ "$(cat .vscode/tasks.json)" = mine ]
        run inside "$pair" 'echo theirs >s'
        [ "$(cat .mcp.json)" = mine ]
    done
}

@test "after SIGKILL the next run holds them back" {
    for pair in $(pairs); do
        project "${pair%:*}"
        as "$OWNER" sh -c 'mkdir .idea; echo mine >.idea/mine'
        start "$pair" 'echo theirs >.envrc; mkdir .vscode; echo theirs >.vscode/t; echo >ready; await_file go'
        await_file ready
        kill -9 "$(find_brig "$JOB")"
        wait "$JOB" || true
        JOB=
        rm -f up ready
        [ -e .envrc ]
        must inside "$pair" 'test ! -e .envrc; test ! -e .vscode; cat .idea/mine'
        output_has "held back: .envrc"
        output_has "held back: .vscode"
        [ ! -e .envrc ]
        [ ! -e .vscode ]
        [ "$(cat .idea/mine)" = mine ]
        has_stored "${pair%:*}" theirs
        by "${pair%:*}" discard .envrc .vscode
    done
}

@test "after SIGKILL brig sync holds them back, by the rules of the run" {
    project user
    for rule in "--protect hold" "--protect report" "--unprotect .envrc"; do
        # shellcheck disable=SC2086 # two words
        start user:sealed 'echo theirs >.envrc; echo >ready; await_file go' $rule
        await_file ready
        kill -9 "$(find_brig "$JOB")"
        wait "$JOB" || true
        JOB=
        rm -f up ready
        must by user sync
        if [ "$rule" = "--protect hold" ]; then
            output_has "held back: .envrc"
            [ ! -e .envrc ]
            must by user discard .envrc
        else
            [ -e .envrc ]
            rm .envrc
        fi
    done
}

@test "what a run has made is not the user's for another run that begins meanwhile, of any jail" {
    local other
    project user
    start user:sealed 'echo theirs >.envrc; echo >ready; await_file go'
    await_file ready
    JAIL=$JAIL-other inside user:sealed ': >second; await_file gone; rm -f .envrc .exrc; echo theirs >.envrc
        echo theirs >.exrc' 3>&- &
    other=$!
    await_file second
    finish
    [ ! -e .envrc ] || { echo "left: $output" >&2; false; }
    as "$OWNER" touch gone
    wait "$other"
    [ ! -e .envrc ]
    [ ! -e .exrc ]
    by user discard -j "$JAIL" .envrc
    # The twin: what was there before both is the user's.
    as "$OWNER" sh -c 'echo mine >.envrc'
    start user:sealed 'echo >ready; await_file go'
    await_file ready
    must inside user:sealed 'echo theirs >.envrc || test "$(cat .envrc)" = mine'
    finish
    [ "$(cat .envrc)" = mine ]
}

@test "the end of brig enter holds back as well" {
    project user
    start user:casual 'await_file go'
    await by user enter "$JAIL" true
    must by user enter "$JAIL" sh -c "cd '$PROJECT' && echo x >.envrc"
    finish
    [ ! -e .envrc ]
    output_has "held back: .envrc"
}

@test "--result lists them" {
    project user
    must inside user:sealed 'echo x >.envrc' --result "$SCRATCH/result"
    run cat "$SCRATCH/result"
    output_has .envrc
}

# ---- What brig creates ---------------------------------------------------------------------------

# start_quietly PAIR: a run in the background that waits for its standard input and makes no file in the project.
# end_input lets it end.
start_quietly() {
    rm -f "$SCRATCH/fifo" "$SCRATCH/out"
    mkfifo -m 666 "$SCRATCH/fifo"
    : >"$SCRATCH/out"
    inside "$1" 'echo up; read -r line' <"$SCRATCH/fifo" >"$SCRATCH/out" 2>&1 3>&- &
    JOB=$!
    exec 8>"$SCRATCH/fifo"
    await grep -q up "$SCRATCH/out"
}
end_input() {
    echo >&8
    exec 8>&-
}

@test "before, during and after a run nothing but an empty .git is created, in every mode" {
    kinds='repository full'
    for pair in $(pairs_of_modes strict casual sealed bare); do
        # By turns one of those in which nothing at all is created.
        kinds=${kinds#* }\ ${kinds%% *}
        for kind in plain $([ -n "${BRIG_THOROUGH:-}" ] && echo "$kinds" || echo "${kinds%% *}"); do
            case $kind in
            plain) enter_project "${pair%:*}" ;;
            *) project "${pair%:*}" ;;
            esac
            [ "$kind" != full ] || as "$OWNER" sh -ec "$MAKE"
            before=$(listing)
            start_quietly "$pair"
            during=$(listing)
            [ "$kind" != plain ] || during=$(grep -v '^\./\.git d' <<<"$during" || true)
            [ "$kind" != plain ] || [ ! -e .git ] || [ -z "$(ls -A .git)" ]
            [ "$kind" = plain ] || [ "$(out --no-optional-locks status --porcelain -uno)" = "" ]
            end_input
            wait "$JOB"
            JOB=
            now=$(listing)
            [ "$during" = "$before" ] || { echo "during $pair $kind:" "$(diff <(echo "$before") <(echo "$during"))" >&2; false; }
            [ "$now" = "$before" ] || { echo "after $pair $kind:" "$(diff <(echo "$before") <(echo "$now"))" >&2; false; }
        done
    done
}

@test "after SIGKILL and the next run nothing is left in the project" {
    for pair in $(pairs); do
        for kind in plain repository; do
            case $kind in
            plain) enter_project "${pair%:*}" ;;
            *) project "${pair%:*}" ;;
            esac
            before=$(listing)
            start_quietly "$pair"
            kill -9 "$(find_brig "$JOB")"
            wait "$JOB" || true
            JOB=
            exec 8>&-
            must inside "$pair" true
            now=$(listing)
            run diff <(echo "$before") <(echo "$now")
            [ "$status" -eq 0 ] || { echo "$pair $kind: $output" >&2; false; }
        done
    done
}

@test "a .git that the user has made empty stays" {
    enter_project user
    as user mkdir .git
    must inside user:sealed 'echo x >file'
    [ -d .git ]
    [ -z "$(ls -A .git)" ]
}

@test "in a directory that cannot be written nothing is created, and the run works" {
    enter_project user
    as user sh -c 'echo x >file; chmod 555 .'
    must inside user:sealed 'cat file'
    [ "$(ls -A)" = file ]
    chmod 755 .
}

@test "the line at the end of a run names files below a renamed directory or a link, and one of each reason" {
    enter_project user 'mkdir -p pkg/x two; echo x >pkg/x/f'
    must inside user:sealed 'mkdir -p pkg/claude/hooks pkg/plain; echo {} >pkg/claude/settings.json; echo x >pkg/claude/hooks/h; echo x >pkg/plain/f'
    output_lacks 'executed outside'
    must inside user:sealed 'mv pkg/claude pkg/.claude; mv pkg/plain pkg/other'
    output_has 'executed outside: pkg/.claude/'
    output_lacks 'pkg/other'
    must inside user:sealed 'ln -s ../pkg/other two/.claude; ln -s ../pkg/other two/ordinary'
    output_has 'executed outside: two/.claude'
    output_lacks 'two/ordinary'
    must inside user:sealed 'for i in 1 2 3 4 5 6 7; do mkdir a$i; : >a$i/.gitattributes; done; mkdir z; echo evil >z/.envrc'
    output_has 'z/.envrc (obeyed by direnv)'
    by user rm -f "$JAIL"
}
