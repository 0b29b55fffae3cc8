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

# The names of src/guard/names.c, and the files that stand for those that are directories.
FILES='.envrc .devcontainer.json .mcp.json .claude/settings.json .claude/settings.local.json opencode.json '
FILES+='.aider.conf.yml .hg/hgrc .brig.conf'
DIRECTORIES='.vscode .idea .zed .devcontainer .husky .claude/hooks .codex .cursor .gemini .qwen .opencode .windsurf .roo'
# For a shell: a file of each name, and one in each directory, whose text is a comment with its name.
MAKE="for f in $FILES; do mkdir -p \"\$(dirname \$f)\"; echo \"# \$f\" >\$f; done
    for d in $DIRECTORIES; do mkdir -p \$d; echo \"# \$d\" >\$d/file; done;"

# stored WHO: the directory in which WHO's jail keeps what was held back.
stored() {
    local base=$HOME_OF_USER/.local/share/brig
    [ "$1" != root ] || base=$ROOT_STORE
    echo "$base/$JAIL.held"
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

@test "the names of this suite are those of the table" {
    names=$(sed -n 's/^    {"\([^"]*\)", ".*},$/\1/p' "$LIB_ROOT/src/guard/names.c" | sort)
    # shellcheck disable=SC2086 # words
    [ "$names" = "$(printf '%s\n' $FILES $DIRECTORIES | sort)" ]
}

@test "new files are visible inside, and held back when the run ends, in every mode" {
    for who in $(everyone root); do
        for mode in casual strict bare sealed; do
            [ "$who" != root ] || [ "$mode" = bare ] || [ "$mode" = sealed ] || continue
            project "$who"
            before=$(listing)
            must inside "$who:$mode" "$MAKE"' cat .vscode/file .envrc .claude/settings.json; echo data >.claude/notes; echo plain >plain'
            output_has $'# .vscode\n# .envrc\n# .claude/settings.json'
            for name in $FILES $DIRECTORIES; do
                output_has "held back: $name,"
                [ ! -e "$name" ] || { echo "still there: $name" >&2; false; }
                has_stored "$who" "# $name"
            done
            # What is only beside them stays.
            [ "$(cat .claude/notes plain)" = $'data\nplain' ]
            as "$OWNER" rm -rf .claude plain
            as "$OWNER" rmdir .hg 2>/dev/null || true
            [ "$(listing)" = "$before" ]
            # shellcheck disable=SC2086 # words
            by "$who" discard $FILES $DIRECTORIES
        done
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
    for who in $(everyone root); do
        project "$who"
        as "$OWNER" sh -ec "$MAKE"
        before=$(listing)
        for mode in casual sealed; do
            [ "$who:$mode" != root:casual ] || continue
            for name in $FILES; do
                # All in one run: none may work.
                must inside "$who:$mode" "set +e; n=$name; [ \"\$(cat \$n)\" = '# $name' ] || echo UNREADABLE
                    for a in 'echo x >\$n' 'rm \$n' 'mv \$n moved' 'echo x >new && mv -f new \$n' 'chmod 777 \$n' 'ln \$n link' 'touch -d 2000-01-01 \$n' 'ln -sf /etc/passwd \$n'; do
                        eval \"\$a\" 2>/dev/null && echo \"LOST: \$a\"; rm -f new; rm -rf moved link
                    done; true"
                output_lacks LOST
                output_lacks UNREADABLE
                output_lacks "held back"
            done
            must inside "$who:$mode" "set +e; for n in $DIRECTORIES; do
                [ \"\$(cat \$n/file)\" = \"# \$n\" ] || echo UNREADABLE
                for a in 'echo x >\$n/new' 'echo x >\$n/file' 'rm -r \$n' 'mv \$n moved' 'mkdir x && mv -T x \$n' 'rm \$n/file'; do
                    eval \"\$a\" 2>/dev/null && echo \"LOST: \$a\"; [ ! -d x ] || rmdir x; rm -rf moved
                done; done; mv .claude c 2>/dev/null && echo LOST; mv .hg h 2>/dev/null && echo LOST; true"
            output_lacks LOST
            output_lacks UNREADABLE
            output_lacks "held back"
        done
        now=$(listing)
        run diff <(echo "$before") <(echo "$now")
        [ "$status" -eq 0 ] || { echo "$who: $output" >&2; false; }
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
        run grep -rq secret "$(stored "${pair%:*}")" --include=content
        [ "$status" -ne 0 ]
        must by "${pair%:*}" discard .envrc .vscode .mcp.json .codex opencode.json
        begun=$SECONDS
        run inside "$pair" 'mkfifo .envrc; mkdir .idea; mkfifo .idea/f; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\".mcp.json\")"
            mkdir -p .vscode/d; ln -s / .vscode/d/root; echo kept >.vscode/d/file'
        [ "$status" -ne 125 ]
        [ $((SECONDS - begun)) -lt 60 ]
        for name in .envrc .idea .mcp.json .vscode; do
            [ ! -e "$name" ] || { echo "still there: $name: $output" >&2; false; }
        done
        has_stored "${pair%:*}" kept
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
    output_has "commit"
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

@test "what the user makes during a run is not held back from two runs at once" {
    project user
    start user:sealed 'echo theirs >.envrc; echo >ready; await_file go; test ! -e .envrc'
    await_file ready
    # A second run begins while the file of the first is there: it must not take it for the user's.
    must inside user:sealed true
    finish
    [ ! -e .envrc ] || { echo "left: $output" >&2; false; }
}

@test "the end of brig enter holds back as well" {
    project user
    start user:casual 'await_file go'
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
    for who in $(everyone root); do
        for mode in casual strict bare sealed; do
            [ "$who" != root ] || [ "$mode" = bare ] || [ "$mode" = sealed ] || continue
            for kind in plain repository full; do
                case $kind in
                plain) enter_project "$who" ;;
                *) project "$who" ;;
                esac
                [ "$kind" != full ] || as "$OWNER" sh -ec "$MAKE"
                before=$(listing)
                start_quietly "$who:$mode"
                during=$(listing)
                [ "$kind" != plain ] || during=$(grep -v '^\./\.git d' <<<"$during" || true)
                [ "$kind" != plain ] || [ ! -e .git ] || [ -z "$(ls -A .git)" ]
                [ "$kind" = plain ] || [ "$(out --no-optional-locks status --porcelain -uno)" = "" ]
                end_input
                wait "$JOB"
                JOB=
                run diff <(echo "$before") <(echo "$during")
                [ "$status" -eq 0 ] || { echo "during $who $mode $kind: $output" >&2; false; }
                now=$(listing)
                run diff <(echo "$before") <(echo "$now")
                [ "$status" -eq 0 ] || { echo "after $who $mode $kind: $output" >&2; false; }
            done
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
