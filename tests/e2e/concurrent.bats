#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Two runs of one jail at the same time share its home and its /tmp, but not what each has mounted there.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    jails_setup
}

teardown() {
    [ -z "${FIRST:-}" ] || kill "$FIRST" 2>/dev/null || true
    if mountpoint --quiet "$HOME_OF_USER/.mounted"; then
        umount "$HOME_OF_USER/.mounted"
        rmdir "$HOME_OF_USER/.mounted"
    fi
    jails_teardown
}

# What a run tries with a mount point that another has, and with the directory above it. It prints what has
# worked.
ATTACK='
rm -rf "$1" 2>/dev/null && echo removed it
rmdir "$1" 2>/dev/null && echo removed the directory
mv -T "$1" "$1.moved" 2>/dev/null && echo renamed it
mv -T "$(dirname "$1")" "$(dirname "$1").moved" 2>/dev/null && echo renamed the one above
mkdir "$1.other" && mv --exchange -T "$1.other" "$1" 2>/dev/null && echo exchanged it
python3 -c "import os, sys; os.rename(sys.argv[1] + \".other\", sys.argv[1])" "$1" 2>/dev/null && echo replaced it
rmdir "$1.other"
mkdir -p "$1" && echo planted >"$1/planted"
true'

# start_first WHO ARGS…: a run that has the project mounted, until `enough`: it writes its reports to the real
# directory.
start_first() {
    rm -f up go-* done-* enough
    by "$@" -- sh -c "$AWAIT"'
        : >up
        for round in 1 2; do
            await_file go-$round
            ls -A >list-$round
            echo written >written-$round
            : >done-$round
        done' 3>&- &
    FIRST=$!
    await_file up
}

check_first() { # check_first ROUND
    touch "go-$1"
    await_file "done-$1"
    [ "$(cat "written-$1")" = written ]
    must_fail grep planted "list-$1"
    grep -q keep "list-$1"
}

# attack WHO MODE PATH ARGS…: the project is at PATH in the first run, which has ARGS.
attack() {
    local who=$1 mode=$2 path=$3
    shift 3
    echo "$who $mode $path" >&2
    jail "$who" "two-$mode"
    run_as_user touch keep
    start_first "$who" -m "$mode" -j "two-$mode" "$@"
    must by "$who" -m "$mode" -j "two-$mode" -D -- sh -c "$ATTACK" - "$path"
    output=$(grep -v '^brig: .* changed in ' <<<"$output" || true) # what the attack wrote is told
    [ -z "$output" ] || { echo "$output"; false; }
    check_first 1
    # The other run has a copy of its own below the mount point, and it alone was changed.
    must by "$who" -m "$mode" -j "two-$mode" -D -- ls -A "$path"
    output_has planted
    output_lacks keep
    check_first 2
    wait "$FIRST"
    [ -e keep ]
    [ ! -e planted ]
}

# The same with its twin: when no other run has it, it can be removed, and it is the copy that is.
try_mode() {
    attack "$@"
    local who=$1 mode=$2 path=$3
    must by "$who" -m "$mode" -j "two-$mode" -D -- sh -c 'rm -r "$1" && test ! -e "$1"' - "$path"
    [ -e keep ]
    by "$who" stop "two-$mode"
    by "$who" rm "two-$mode"
}

@test "no run can remove, rename or replace what another has mounted in the home" {
    local pair who mode
    for pair in $(pairs_of "$(everyone root)" casual bare strict); do
        who=${pair%:*} mode=${pair#*:}
        # In a virtual machine root's home is not on a disk, and cannot be id-mapped.
        [ "$who $mode $(findmnt -nT /root -o FSTYPE)" != 'root casual overlay' ] || continue
        if [ "$who" = root ]; then
            try_mode "$who" "$mode" "$HOME/a/b/project" -D -d "$PWD:$HOME/a/b/project" --workdir "$HOME/a/b/project"
        else
            try_mode "$who" "$mode" "$PWD"
        fi
    done
}

@test "no run can remove, rename or replace what another has mounted in /tmp and /dev/shm" {
    try_mode user casual /tmp/a/project -D -d "$PWD:/tmp/a/project" --workdir /tmp/a/project
    try_mode user strict /var/tmp/project -D -d "$PWD:/var/tmp/project" --workdir /var/tmp/project
    try_mode user bare /dev/shm/a/project -D -d "$PWD:/dev/shm/a/project" --workdir /dev/shm/a/project
}

@test "no run can remove, rename or replace what another has mounted in a home of fuse-overlayfs" {
    lib_is_root || cannot "mounts need root"
    [ -e /usr/bin/fuse-overlayfs ] || cannot "fuse-overlayfs is not installed"
    run_as_user test -w /dev/fuse || cannot "the user may not open /dev/fuse"
    mkdir "$HOME_OF_USER/.mounted"
    mount -t tmpfs none "$HOME_OF_USER/.mounted"
    run_as_user mkdir -p ../other/sub
    attack user casual "$PWD"
    must run_as_user "$BRIG" -m casual -j two-casual -D -- rm -r "$SCRATCH/other"
    [ -d ../other/sub ]
}

@test "a directory that no other run has mounted can be removed and renamed" {
    jail user twin
    run_as_user mkdir -p ../other/sub
    start_first user -m casual -j twin
    must run_as_user "$BRIG" -m casual -j twin -D -- sh -c 'mv "$1/sub" "$1/moved" && rm -r "$1" && test ! -e "$1"' - "$SCRATCH/other"
    [ -d ../other/sub ]
    run_as_user touch keep
    check_first 1
    check_first 2
    wait "$FIRST"
}

@test "a file that another run has mounted can be neither removed nor replaced" {
    jail user file
    run_as_user sh -c 'echo real >../granted; echo real >../free'
    start_first user -m casual -j file -r "$SCRATCH/granted"
    must_fail run_as_user "$BRIG" -m casual -j file -D -- rm "$SCRATCH/granted"
    must_fail run_as_user "$BRIG" -m casual -j file -D -- mv "$SCRATCH/free" "$SCRATCH/granted"
    must run_as_user "$BRIG" -m casual -j file -D -- rm "$SCRATCH/free"
    touch go-1 go-2
    wait "$FIRST"
    must run_as_user "$BRIG" -m casual -j file -D -- rm "$SCRATCH/granted"
    [ "$(cat ../granted)" = real ]
}

@test "what is hidden beside a mount point stays hidden after the run that has it" {
    jail user masked
    local beside=${SCRATCH#"$HOME_OF_USER"/}
    run_as_user sh -c 'mkdir ../signals; echo secret >../secret; echo plain >../plain'
    start_first user -m casual -j masked
    run_as_user "$BRIG" -m casual -j masked -D -d "$SCRATCH/signals" -- sh -c "$AWAIT"'
        grep secret "$1/secret" && touch "$1/signals/seen"
        await_hidden "$1/secret"
        touch "$1/signals/hidden"
        await_file "$1/signals/go"
        grep plain "$1/plain" && ! grep secret "$1/secret"' - "$SCRATCH" 3>&- &
    local second=$!
    await_file ../signals/seen
    must run_as_user "$BRIG" mask -j masked "$beside/secret"
    await_file ../signals/hidden
    touch go-1 go-2
    wait "$FIRST"
    touch ../signals/go
    wait "$second"
    must_fail run_as_user "$BRIG" -m casual -j masked -D -- grep secret "$SCRATCH/secret"
    must run_as_user "$BRIG" -m casual -j masked -D -- grep plain "$SCRATCH/plain"
}

@test "another run cannot see what is mounted" {
    jail user apart
    run_as_user touch keep
    start_first user -m casual -j apart
    must run_as_user "$BRIG" -m casual -j apart -D -- sh -c 'echo mine >"$1/mine"; cat "$1/mine"' - "$PWD"
    check_first 1
    must_fail grep mine list-1
    check_first 2
    wait "$FIRST"
    [ ! -e mine ]
}

# A copy of /etc that only one test sees: programs replace such files as a whole.
# shellcheck disable=SC2016
OWN_ETC='
mount -t tmpfs none /mnt || exit
cp -a /etc/. /mnt/ 2>/dev/null # another suite may remove its lock of /etc/passwd meanwhile
[ -s /mnt/passwd ] && mount --bind /mnt /etc || exit'

# shellcheck disable=SC2016
REPLACE=$OWN_ETC'
python3 -c "
import os
text = open(\"/etc/passwd\").read()
print(\"begun\", flush=True)
while True:
    with open(\"/etc/passwd.new\", \"w\") as file:
        file.write(text)
    os.rename(\"/etc/passwd.new\", \"/etc/passwd\")
" >begun 2>/dev/null 3>&- &
until [ -s begun ]; do kill -0 $! || exit; sleep 0.01; done
for _ in $(seq "$1"); do
    "$2" -m bare -j replaced -D -- grep -q "^root:" /etc/passwd || failed=1
done
kill $!
exit ${failed:-0}'

@test "a file that the jail has another one of may be replaced while a run starts" {
    lib_is_root || cannot "mounts need root"
    jail root replaced
    export BRIG_CONFIG_DIR=$ROOT_STORE
    must unshare --mount sh -c "$REPLACE" - "${BRIG_THOROUGH:+10}20" "$BRIG"
}

# ldconfig replaces its cache as a whole, and a sealed jail shows it. Here it is replaced at the first openings of a
# program, so that the second look at it, in the child, finds another file: five times, after which the start succeeds.
# shellcheck disable=SC2016
REPLACE_SHOWN=$OWN_ETC'
trap "kill \$replacer 2>/dev/null" EXIT
for _ in 1 2 3 4; do
    rm -f begun
    python3 -c "
import ctypes, os, struct
libc = ctypes.CDLL(None)
IN_OPEN = 0x20
watch = libc.inotify_init1(os.O_CLOEXEC)
data = open(\"/etc/ld.so.cache\", \"rb\").read()
for turn in range(5):
    if libc.inotify_add_watch(watch, b\"/etc/ld.so.cache\", IN_OPEN) < 0:
        raise SystemExit(\"cannot watch it\")
    print(turn, flush=True)
    while not struct.unpack_from(\"iI\", os.read(watch, 16))[1] & IN_OPEN:
        pass # the watch of the one before has ended with it
    with open(\"/etc/ld.so.cache.new\", \"wb\") as file:
        file.write(data)
    os.rename(\"/etc/ld.so.cache.new\", \"/etc/ld.so.cache\")
" >begun 3>&- &
    replacer=$!
    until [ -s begun ]; do kill -0 $replacer || exit; sleep 0.01; done
    "$@" || exit
    until [ "$(tail -n 1 begun)" -ge 1 ]; do kill -0 $replacer || exit; sleep 0.01; done
    kill $replacer 2>/dev/null
    wait $replacer || true
done'

@test "a file of the host that the jail shows may be replaced while a run starts" {
    lib_is_root || cannot "mounts need root"
    [ -s /etc/ld.so.cache ] || cannot "there is no cache of libraries"
    needs gcc pkg-config
    must unshare --mount sh -c "$REPLACE_SHOWN" - "$BRIG" -m sealed -D -- echo inside
    [ "$(grep -c '^inside$' <<<"$output")" -eq 4 ]
    build_program "$LIB_ROOT/docs/examples/template.c" "$SCRATCH/template"
    must unshare --mount sh -c "$REPLACE_SHOWN" - "$SCRATCH/template"
    [ "$(grep -c '^run 5: fresh$' <<<"$output")" -eq 4 ]
}
