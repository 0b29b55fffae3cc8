#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig status: what a jail has changed in its copy of the home, as an ordinary user and as root for one.

# shellcheck disable=SC2016 # scripts for the jail
# shellcheck disable=SC2154 # status and output are set by `run`

load lib

VIEWS=$LIB_DIR/status_views.py

setup() {
    jails_setup
}

# What a test has made in the home is in .t and in the files it names.
teardown() {
    run_as_user sh -c 'cd && chmod -R u+rwX .t 2>/dev/null; rm -rf .t .git .gitignore'
    jails_teardown
}

# home SCRIPT: makes files in the real home.
home() {
    run_as_user sh -ec "cd; $1"
}

# inside WHO SCRIPT: changes the jail's copy.
inside() {
    jail "$1" "st-$1"
    must by "$1" -m casual -j "st-$1" -- sh -ec "cd; $2"
}

# show WHO WORDS…: what brig status says.
show() {
    local who=$1
    shift
    must by "$who" status -j "st-$who" "$@"
}

# json EXPRESSION…: about the last output, with `d` for it and `c` for the changes by path.
json() {
    python3 -c '
import json, sys
d = json.loads(sys.stdin.read())
c = {item["path"]: item for layer in d["layers"] for item in layer["changes"]}
for text in sys.argv[1:]:
    if not eval(text): sys.exit("not so: " + text + "\n" + json.dumps(d, indent=1))' "$@" <<<"$output"
}

# For both shells: make TYPE PATH TEXT, and all pairs of types.
MAKE='make() {
    case $1 in
    absent) ;;
    file) echo "$3" >"$2" ;;
    dir) mkdir "$2"; echo "$3" >"$2/file"; mkdir "$2/deep"; echo "$3" >"$2/deep/$3" ;;
    link) ln -s "$3" "$2" ;;
    fifo) mkfifo "$2" ;;
    esac
}
TYPES="absent file dir link fifo"'

@test "the manual has every reason of the table of risks" {
    page=$(tr '\n' ' ' <"$LIB_ROOT/man/brig.1")
    reasons=$(sed -n 's/^ *{\?\.reason = "\([^"]*\)",.*/\1/p' "$LIB_ROOT/src/held/names.c" | sort -u)
    [ "$(wc -l <<<"$reasons")" -gt 30 ]
    while read -r reason; do
        [[ $page == *".It $reason"* ]] || { echo "not in the manual: $reason" >&2; false; }
    done <<<"$reasons"
}

@test "every type before and after, as rsync, git and lstat see the same trees" {
    needs rsync
    local who
    for who in $(everyone); do
        home "$MAKE"'
            mkdir .t
            for b in $TYPES; do for a in $TYPES; do make $b .t/$b-$a before; done; done
            mkdir .t/kept; echo 1 >.t/kept/1; echo 2 >.t/kept/2; echo 3 >.t/kept/3; chmod 644 .t/kept/*
            echo same >.t/kept/same; mkdir .t/moved; echo moved >.t/moved/file'
        inside "$who" "$MAKE"'
            for b in $TYPES; do for a in $TYPES; do rm -rf .t/$b-$a; make $a .t/$b-$a after; done; done
            echo more >>.t/kept/1; chmod 755 .t/kept/2; rm .t/kept/3; echo same >.t/kept/same; mv .t/moved .t/renamed
            chmod 711 .t/kept'
        # A copy of what is seen inside, in the project, which is the real one.
        must by "$who" -m casual -j "st-$who" -- sh -ec 'cp -a ~/.t copy'
        output=$(by "$who" status -j "st-$who" --json)
        must "$VIEWS" "$HOME_OF_USER/.t" "$PWD/copy" .t <<<"$output"
        output_has "changes are the same"
        show "$who" --json
        json 'c[".t/renamed/file"]["renamed_from"] == ".t/moved/file"' \
            'c[".t/dir-absent"]["files"] == 2 and c[".t/dir-absent"]["bytes"] == 14' \
            'c[".t/dir-file"]["kind"] == "type" and c[".t/dir-file"]["was"] == "directory"' \
            'c[".t/link-link"]["target"] == ["before", "after"]' \
            'c[".t/kept/2"]["risk"] == "a new executable file"' \
            '".t/kept/same" not in c'
        run_as_user rm -rf "$HOME_OF_USER/.t"
        rm -rf copy
        must by "$who" rm -f "st-$who"
    done
}

@test "nothing is done to a file that its owner cannot read; one that the jail made so is read" {
    home 'mkdir .t; echo 1 >.t/mine; chmod 200 .t/mine; echo 1 >.t/theirs'
    inside user 'chmod 600 .t/mine; echo 22 >.t/theirs; chmod 200 .t/theirs'
    before=$(stat -c '%a %z' "$HOME_OF_USER/.t/mine")
    show user
    show user --json
    json 'c[".t/mine"]["mode"][0] == "100200" and "conflict" not in c[".t/mine"] and c[".t/theirs"]["kind"] == "modified"'
    must by user diff -j st-user --no-pager
    output_has +22
    [ "$(stat -c '%a %z' "$HOME_OF_USER/.t/mine")" = "$before" ]
}

@test "the text has deletions and type changes first, a mark for risks, and what to do next" {
    home 'mkdir .t; echo 1 >.t/z-gone; echo 1 >.t/y-type; echo 1 >.t/m; echo 1 >.t/mode'
    inside user 'rm .t/z-gone .t/y-type; mkdir .t/y-type; echo 22 >.t/m; chmod 600 .t/mode; echo all: >.t/Makefile'
    show user
    wanted='  D  .t/z-gone  file, 2 bytes
  T  .t/y-type/  file, 2 bytes -> directory
  M  .t/m  2 bytes -> 3 bytes
  m  .t/mode  mode 0644 -> 0600
  A  .t/Makefile  file, 5 bytes  ! runs when you build or test'
    output_has "$wanted"
    output_has "$HOME_OF_USER, your home"
    output_has "1 deleted, 1 of another type, 1 modified, 1 with other metadata, 1 added, 1 flagged (!), 8 bytes"
    output_has "Next: brig diff"
    # A path selects.
    show user "$HOME_OF_USER/.t/m"
    output_has "M  .t/m"
    output_lacks "Makefile"
    cd "$HOME_OF_USER/.t"
    show user m mode
    output_has "m  .t/mode"
    output_lacks "z-gone"
    must_exit 125 by user status -j st-user /etc
    output_has "has no copy of '/etc'"
    must_exit 125 by user status --nonsense
    must_exit 125 by user status -j no-such-jail
}

@test "masked files are never listed, also if the jail has made them" {
    local who
    for who in $(everyone); do
        home 'mkdir .t; echo 1 >.t/f'
        inside "$who" 'echo 2 >.t/f; mkdir -p .ssh .gnupg; echo k >.ssh/id_new || true; echo h >.bash_history || true
            rm -rf .ssh .netrc; mkdir .ssh; echo again >.ssh/config; rm -rf .t'
        show "$who"
        output_has "D  .t/"
        output_lacks .ssh
        output_lacks .gnupg
        output_lacks .bash_history
        show "$who" --json
        output_lacks .ssh
        # The twin: a directory that no mask hides.
        inside "$who" 'mkdir .sshx; echo k >.sshx/id_new'
        show "$who"
        output_has "A  .sshx/id_new"
        must by "$who" rm -f "st-$who"
        run_as_user rm -rf "$HOME_OF_USER/.t"
    done
}

@test "a mask that only a run was given hides its changes later as well" {
    home 'mkdir .t; echo real >.t/hidden; echo real >.t/other'
    jail user st-user
    must by user -m casual -j st-user --mask .t/hidden --mask '.t/new*' -- \
        sh -ec 'cd; test ! -e .t/hidden; echo made >.t/hidden; echo made >.t/newer; echo made >.t/other'
    show user --json
    json 'list(c) == [".t/other"]'
    must by user apply -j st-user --all --risky
    home 'grep -q real .t/hidden; test ! -e .t/newer; grep -q made .t/other'
    # Without the mask the same changes are listed.
    must by user rm -f st-user
    jail user st-user
    inside user 'echo made >.t/hidden; echo made >.t/newer'
    show user --json
    json 'list(c) == [".t/hidden", ".t/newer"]'
}

@test "files and directories without permissions are listed, and keep their modes" {
    local who
    for who in $(everyone); do
        home 'mkdir -p .t/closed; echo 1 >.t/closed/in; echo 1 >.t/secret; echo 1 >.t/changed'
        inside "$who" 'echo 2 >.t/changed; chmod 0 .t/changed; echo new >.t/new; chmod 0 .t/new
            mkdir -p .t/shut/deep; echo 1 >.t/shut/deep/f; chmod 0 .t/shut/deep; chmod 0 .t/shut'
        home 'chmod 0 .t/closed .t/secret'
        for _ in 1 2; do
            show "$who" --json
            json 'c[".t/changed"]["mode"] == ["100644", "100000"] and c[".t/changed"]["kind"] == "modified"' \
                'c[".t/new"]["mode"] == [None, "100000"]' \
                'c[".t/shut"]["mode"] == [None, "040000"] and c[".t/shut/deep/f"]["size"] == [None, 2]' \
                '".t/closed" not in c and ".t/secret" not in c'
        done
        must by "$who" rm -f "st-$who"
        home 'chmod 700 .t/closed; rm -rf .t'
    done
}

@test "names are escaped in the text, and exact in JSON" {
    inside user 'mkdir .t; cd .t; : >"$(printf "a\nb")"; : >"$(printf "c\033[2Jd")"; : >"$(printf "e\377f")"
        : >"$(printf "g\342\200\256h")"; : >-rf; : >"a b"; : >"gr\303\274n"; : >"$(printf "gr\303\274n")"'
    show user
    output_has 'A  .t/a\nb  file'
    output_has 'A  .t/c\x1b[2Jd  file'
    output_has 'A  .t/e\xfff  file, 0 bytes  ! its name is not UTF-8'
    output_has 'A  .t/g\xe2\x80\xaeh  file, 0 bytes  ! its name contains characters that are not shown'
    output_has 'A  .t/-rf  file, 0 bytes  ! its name looks like an option'
    output_has 'A  .t/a b  file, 0 bytes'
    output_has 'A  .t/grün  file'
    [ "$(LC_ALL=C tr -d '\n' <<<"$output" | LC_ALL=C tr -d '\040-\176\200-\376' | wc -c)" -eq 0 ]
    show user --json
    json 'c[".t/a\nb"]["kind"] == "added" and "path_bytes" not in c[".t/a\nb"]' \
        '__import__("base64").b64decode(c[".t/e\ufffdf"]["path_bytes"]) == b".t/e\xfff"'
}

@test "a reviewed directory and a renamed file need not have names in UTF-8" {
    home 'mkdir -p ".t/$(printf "r\377")"; cd .t/r*; seq 9 >"$(printf "o\377")"'
    jail user st-user
    must run_as_user sh -c 'cd ~/.t/r*; exec "$1" -R -m strict -j st-user -- sh -c "mv o* new"' sh "$BRIG"
    show user --json
    json '__import__("base64").b64decode(d["layers"][0]["root_bytes"]).endswith(b"/.t/r\xff")' \
        '__import__("base64").b64decode(c["new"]["renamed_from_bytes"]) == b"o\xff"'
    must run_as_user sh -c 'yes a | "$1" review --plain -j st-user' sh "$BRIG"
    output_has '2 applied'
    [ "$(run_as_user sh -c 'ls ~/.t/r*')" = new ]
}

@test "opaque directories: what is not there any more is deleted" {
    home 'mkdir -p .t/d/sub; echo 1 >.t/d/a; echo 1 >.t/d/b; echo 1 >.t/d/sub/c'
    inside user 'rm -r .t/d; mkdir .t/d; echo 2 >.t/d/b; echo n >.t/d/n'
    show user
    output_has $'  D  .t/d/a  file, 2 bytes\n  D  .t/d/sub/  directory with 1 file, 2 bytes\n'
    output_has $'  M  .t/d/b  2 bytes\n'
    output_has $'  A  .t/d/n  file, 2 bytes\n'
}

@test "a file that the user has changed since is a conflict" {
    home 'mkdir .t; echo 1 >.t/both; echo 1 >.t/mine; echo 1 >.t/theirs'
    inside user 'echo 2 >.t/both; echo 2 >.t/theirs'
    home 'echo 3 >.t/both; echo 3 >.t/mine'
    show user
    output_has "  M  .t/both  2 bytes  conflict: "
    output_has $'  M  .t/theirs  2 bytes\n'
    output_lacks .t/mine
    output_has "1 conflict"
}

@test "files that the user's git ignores are one line for each directory" {
    inside user 'mkdir -p .t/build/x; echo 1 >.t/build/x/1; echo 22 >.t/build/2; echo 1 >.t/a.o; echo 1 >.t/b.o; echo 1 >.t/c
        mkdir .t/own; echo "*" >.t/own/.gitignore; echo 1 >.t/own/file'
    home 'git init -q .; printf "%s\n" build/ "*.o" >.gitignore'
    show user
    output_has $'  I  .t/build/  2 ignored files, 5 bytes\n  I  .t/  2 ignored files, 4 bytes\n'
    output_has "A  .t/c  "
    output_has "A  .t/own/file"
    output_lacks "A  .t/a.o"
    output_has "4 ignored by git"
    show user --json
    json 'c[".t/a.o"]["ignored"] and c[".t/build/x/1"]["ignored"] and "ignored" not in c[".t/c"]'
}

@test "a reviewed directory: its repository is no change, and a line tells about the run" {
    local who
    for who in $(everyone); do
        run_as_user sh -ec 'mkdir repo; cd repo; git init -q .; echo build/ >.gitignore; echo 1 >a; git add .
            git -c user.name=a -c user.email=a@b commit -qm 1'
        cd repo
        jail "$who" "st-$who"
        must by "$who" -m casual -R -j "st-$who" -- sh -ec 'echo 2 >a; mkdir build .vscode; echo 1 >build/o; echo 1 >.vscode/tasks.json
            git -c user.name=a -c user.email=a@b commit -qam 2'
        output_has "3 files changed in $PWD, 2 new, 1 flagged; see brig status"
        [ "$(cat a)" = 1 ]
        show "$who"
        output_has "$PWD, reviewed"
        output_has "M  a  2 bytes"
        output_has "A  .vscode/tasks.json  file, 2 bytes  ! obeyed by Visual Studio Code"
        output_has "I  build/  1 ignored file, 2 bytes"
        output_lacks "  .git"
        must by "$who" -m casual -R -j "st-$who" -- true
        output_lacks "brig status"
        cd ..
        must by "$who" rm -f "st-$who"
        run_as_user rm -rf repo
    done
}

@test "nothing to show, held back files, another jail in this directory" {
    inside user true
    show user
    output_has "no changes"
    show user --json
    json 'd["jail"] == "st-user" and not d["running"] and d["held"] == 0 and d["interrupted"] is None' \
        'd["layers"][0]["home"] and d["layers"][0]["counts"]["added"] == 0'
    inside user 'cd - >/dev/null; mkdir .vscode; echo 1 >.vscode/tasks.json; echo 1 >plain'
    show user
    output_has "1 file is held back: see brig held"
    jail user other
    must by user -m casual -j other -- sh -c 'mkdir ~/.t; echo 1 >~/.t/f'
    run_as_user mkdir -p "$HOME_OF_USER/.t"
    cd "$HOME_OF_USER/.t"
    show user
    output_has "the jail 'other' has changes in this directory: brig status -j other"
    cd "$SCRATCH/project"
    show user
    output_lacks other
}

@test "an interrupted operation is named" {
    inside user 'mkdir .t; echo 1 >.t/f'
    record=$HOME_OF_USER/.local/share/brig/st-user.record
    # As after a kill: the journal is complete, the steps are not.
    must by user apply -j st-user --all
    home 'mkdir .t/g'
    id=$(basename "$(find "$record/operations" -mindepth 2 -maxdepth 2 -name done -printf '%h\n' | sort -V | tail -n 1)")
    run_as_user rm "$record/operations/$id/done"
    show user
    output_has "Operation $id was interrupted: brig apply -j st-user --continue completes it"
    show user --json
    json "d['interrupted'] == $id"
    # A run says so, and the files that are in the operation are not removed with the jail.
    must by user -m casual -j st-user -R -- true
    output_has "operation $id was interrupted"
    must_exit 125 by user rm st-user
    output_has 'an operation that was interrupted'
    must by user apply -j st-user --continue
    must by user -m casual -j st-user -R -- true
    output_lacks interrupted
    must by user rm st-user
}

@test "status works while the jail runs, and says so" {
    jail user st-user
    by user -m casual -j st-user -- sh -c "$AWAIT"'; mkdir ~/.t; echo 1 >~/.t/f; : >up; await_file enough' 3>&- &
    local run=$!
    await_file up
    show user
    output_has "A  .t/f  "
    output_has "A run of the jail is active: the list can change."
    show user --json
    json 'd["running"]'
    touch enough
    wait "$run"
    show user
    output_lacks "is active"
}

@test "colours are only for terminals, and not with NO_COLOR" {
    needs script
    inside user 'mkdir .t; echo 1 >.t/f'
    show user
    output_lacks $'\033'
    must run_as_user env TERM=xterm script -qec "$BRIG status -j st-user" /dev/null
    output_has $'\033[32mA\033[m'
    must run_as_user env TERM=xterm NO_COLOR=1 script -qec "$BRIG status -j st-user" /dev/null
    output_lacks $'\033'
    output_has "A  .t/f"
}

@test "twenty thousand files are listed in less than 32 MiB of memory" {
    inside user 'mkdir .t; cd .t; for d in $(seq 20); do mkdir $d; (cd $d; seq 1000 | xargs touch; echo text >one); done'
    must run_as_user python3 -c '
import json, resource, subprocess, sys
for words in [], ["--json"]:
    done = subprocess.run([sys.argv[1], "status", "-j", "st-user", *words], stdout=open("out", "w"))
    assert done.returncode == 0
    if words:
        counts = json.load(open("out"))["layers"][0]["counts"]
        assert counts["added"] == 1 + 20 + 20 * 1001, counts
    else:
        assert sum(line.startswith("  A  ") for line in open("out")) == 1 + 20 + 20 * 1001
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print("peak", peak)
    assert peak < 32 * 1024, peak' "$BRIG"
}
