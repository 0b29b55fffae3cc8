#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Jails with a home: copy-on-write and private, shared by what runs at the same time, kept between
# runs; as an ordinary user, as root for that user, and as root. The real home must never change.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    jails_setup
    if lib_is_root; then
        ROOT_COPIES=$(mktemp -d "${BRIG_SCRATCH:-/var/lib}/brigtest.XXXXXXXX")
        chmod 0755 "$ROOT_COPIES"
        LIB_SCRATCHES="$LIB_SCRATCHES $ROOT_COPIES"
    fi
}

teardown() {
    jails_teardown
}

# Of the whole real home, but for brig's own directory and the scratch.
home_hash() {
    (cd "$HOME_OF_USER" && find . -mindepth 1 -path ./.local -prune -o -path './brigtest.*' -prune -o -printf '%P %m %s %T@ %l\n' |
        sort | sha256sum)
}

@test "casual: the home is copied on writing, and the real one does not change" {
    local who before
    run_as_user sh -c "echo real >$HOME_OF_USER/.dotfile; mkdir -p $HOME_OF_USER/.subdir; echo deep >$HOME_OF_USER/.subdir/file"
    for who in $(everyone); do
        jail "$who" "cow-$who"
        before=$(home_hash)
        must by "$who" -m casual -j "cow-$who" -- sh -c 'cat ~/.dotfile && echo changed >~/.dotfile && echo new >~/.made && rm -r ~/.subdir'
        output_has real
        [ "$(home_hash)" = "$before" ]
        # What was changed is still so in the next run,
        must by "$who" -m casual -j "cow-$who" -- sh -c 'cat ~/.dotfile ~/.made; test ! -e ~/.subdir'
        output_has changed
        output_has new
        # and in no other jail.
        jail "$who" "other-$who"
        must by "$who" -m casual -j "other-$who" -- sh -c 'cat ~/.dotfile ~/.subdir/file; test ! -e ~/.made'
        output_has real
    done
    run_as_user rm -r "$HOME_OF_USER/.dotfile" "$HOME_OF_USER/.subdir"
}

@test "casual: removing everything removes nothing but what is granted" {
    local who before
    for who in $(everyone); do
        jail "$who" "rm-$who"
        run_as_user sh -c 'echo granted >file'
        before=$(home_hash)
        by "$who" -m casual -j "rm-$who" -- sh -c 'rm -rf ~ ~/* ~/.[!.]* / 2>/dev/null; true' || true
        [ "$(home_hash)" = "$before" ]
        [ -e /etc/passwd ]
        [ ! -e file ]
    done
}

@test "secrets are hidden, also those that come later, and are no changes" {
    local who
    run_as_user sh -c "mkdir -p $HOME_OF_USER/.ssh && echo key >$HOME_OF_USER/.ssh/id_test"
    for who in $(everyone); do
        jail "$who" "mask-$who"
        must_fail by "$who" -m casual -j "mask-$who" -- cat "$HOME_OF_USER/.ssh/id_test"
        run_as_user sh -c "echo history >$HOME_OF_USER/.bash_history"
        must_fail by "$who" -m casual -j "mask-$who" -- cat "$HOME_OF_USER/.bash_history"
        # It can be shown on purpose, at the next mount.
        must by "$who" -u -j "mask-$who"
        must by "$who" -m casual -j "mask-$who" --unmask .ssh -- cat "$HOME_OF_USER/.ssh/id_test"
        output_has key
        must by "$who" -u -j "mask-$who"
        must by "$who" -m casual -j "mask-$who" --mask .subdir --unmask .subdir/open -- true
    done
    must run_as_user find "$HOME_OF_USER/.local/share/brig" -path '*.work' -prune -o -name '.ssh' -print -o -name '.bash_history' -print
    [ -z "$output" ]
    run_as_user rm -r "$HOME_OF_USER/.ssh" "$HOME_OF_USER/.bash_history"
}

@test "masks hold at once, whatever was seen before, and also while others run" {
    jail user again
    run_as_user sh -c "echo secret >$HOME_OF_USER/.newsecret"
    must run_as_user "$BRIG" -m casual -j again -- cat "$HOME_OF_USER/.newsecret"
    must_fail run_as_user "$BRIG" -m casual -j again --mask .newsecret -- cat "$HOME_OF_USER/.newsecret"
    must run_as_user "$BRIG" -m casual -j again -- cat "$HOME_OF_USER/.newsecret"
    run_as_user "$BRIG" -m casual -j again -- sh -c "$AWAIT"'; cat ~/.newsecret >seen; : >up; await_file enough' 3>&- &
    local run=$!
    await_file up
    # An empty file stands in its place where it is in use, and nothing otherwise.
    run run_as_user "$BRIG" -m casual -j again --mask .newsecret -- cat "$HOME_OF_USER/.newsecret"
    [ "$output" != secret ]
    touch enough
    wait "$run"
    [ "$(cat seen)" = secret ]
    run_as_user rm "$HOME_OF_USER/.newsecret"
}

@test "a masked directory can be shown in part" {
    run_as_user sh -c "mkdir -p $HOME_OF_USER/.part/open $HOME_OF_USER/.part/shut; echo a >$HOME_OF_USER/.part/open/a; echo b >$HOME_OF_USER/.part/shut/b"
    jail user part
    must run_as_user "$BRIG" -m casual -j part --mask .part --unmask .part/open -- cat "$HOME_OF_USER/.part/open/a"
    output_has a
    must_fail run_as_user "$BRIG" -m casual -j part --mask .part --unmask .part/open -- cat "$HOME_OF_USER/.part/shut/b"
    run_as_user rm -r "$HOME_OF_USER/.part"
}

@test "a mask holds inside a grant as well" {
    run_as_user sh -c "mkdir -p $HOME_OF_USER/.conf/secret; echo s >$HOME_OF_USER/.conf/secret/s; echo o >$HOME_OF_USER/.conf/open"
    local mode
    for mode in casual bare strict sealed; do
        jail user "grant-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "grant-$mode" --mask .conf/secret -d "$HOME_OF_USER/.conf" -- cat "$HOME_OF_USER/.conf/open"
        must_fail run_as_user "$BRIG" -m "$mode" -j "grant-$mode" --mask .conf/secret -d "$HOME_OF_USER/.conf" -- cat "$HOME_OF_USER/.conf/secret/s"
    done
    run_as_user rm -r "$HOME_OF_USER/.conf"
}

@test "brig's own directories cannot be seen or written from inside" {
    local pair who mode
    for pair in $(pairs_of "$(everyone)" casual bare strict); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "own-$who-$mode"
        must by "$who" -m "$mode" -j "own-$who-$mode" -- sh -c 'find ~/.local/share/brig ~/.config/brig -mindepth 1 2>/dev/null; true'
        [ -z "$output" ] || {
            echo "$who $mode: $output" >&2
            false
        }
    done
    for who in $(everyone); do
        jail "$who" "own-$who-casual"
        must_fail by "$who" -m casual -j "own-$who-casual" -- sh -c 'echo x >~/.local/share/brig/default.jail'
    done
    # Nor where they really are.
    run_as_user mkdir "$SCRATCH/disk" "$SCRATCH/store"
    run_as_user ln -s "$SCRATCH/disk" "$SCRATCH/store/linked.changes"
    must run_as_user "$BRIG" -m casual -j linked --storage "$SCRATCH/store" -- sh -c "echo kept >~/in-linked; find '$SCRATCH/disk' '$SCRATCH/store' -mindepth 1 2>/dev/null; true"
    [ -z "$(grep -v '^brig: .*see brig status -j [^ ]*$' <<<"$output")" ]
    must run_as_user "$BRIG" --storage "$SCRATCH/store" -u
    [ -e "$SCRATCH/disk/in-linked" ]
    [ -d "$SCRATCH/linked.work" ]
}

@test "brig's own directories are out of reach inside a grant, at whatever place, also if they are new" {
    local mode
    run_as_user mkdir -p "$SCRATCH/x/conf" "$SCRATCH/x/data"
    for mode in casual bare strict sealed; do
        must_fail run_as_user env XDG_CONFIG_HOME="$SCRATCH/x/conf" XDG_DATA_HOME="$SCRATCH/x/data" \
            "$BRIG" -m "$mode" -D -d "$SCRATCH/x:/mnt" -- sh -c 'mkdir -p /mnt/conf/brig; echo unmask .ssh >/mnt/conf/brig/default.conf'
        [ ! -e "$SCRATCH/x/conf/brig/default.conf" ]
        must_fail run_as_user env XDG_CONFIG_HOME="$SCRATCH/x/conf" XDG_DATA_HOME="$SCRATCH/x/data" \
            "$BRIG" -m "$mode" -D -d "$SCRATCH/x" -- sh -c "echo x >$SCRATCH/x/data/brig/default.jail"
    done
    run_as_user env XDG_CONFIG_HOME="$SCRATCH/x/conf" XDG_DATA_HOME="$SCRATCH/x/data" "$BRIG" -u
}

@test "every jail's file is out of reach where a link in the storage leads to it, however many there are" {
    run_as_user sh -c "mkdir '$SCRATCH/dots' '$SCRATCH/many' && cd '$SCRATCH/dots' &&
        for i in \$(seq 150); do echo mode bare >\$i.jail; ln -s '$SCRATCH/dots/'\$i.jail '$SCRATCH/many/'; done"
    local mode
    for mode in bare sealed; do
        must run_as_user "$BRIG" -m "$mode" --storage "$SCRATCH/many" -D -d "$SCRATCH/dots" -- \
            sh -c "cd '$SCRATCH/dots'; cat *.jail; { for i in *.jail; do echo mode casual >\$i; done; rm *.jail; } 2>/dev/null; true"
        [ -z "$output" ]
    done
    [ "$(cat "$SCRATCH"/dots/*.jail | sort | uniq -c | xargs)" = "150 mode bare" ]
    run_as_user "$BRIG" --storage "$SCRATCH/many" -u
}

@test "brig's own directories are granted under no name" {
    local mode
    run_as_user mkdir -p "$SCRATCH/own/brig" "$SCRATCH/elsewhere"
    run_as_user sh -c "echo '# x' >$SCRATCH/own/brig/default.conf"
    for mode in casual bare strict sealed; do
        local given
        for given in "$SCRATCH/own/brig:/mnt" "$SCRATCH/own/brig" "$SCRATCH/own/brig/default.conf:/mnt/x"; do
            must_exit 125 run_as_user env XDG_CONFIG_HOME="$SCRATCH/own" "$BRIG" -m "$mode" -j owned -D -d "$given" -- true
            output_has "'$SCRATCH/own/brig', which is brig's own and never granted"
        done
        must_exit 125 run_as_user env XDG_CONFIG_HOME="$SCRATCH/own" "$BRIG" -m "$mode" -j owned -D -r "$SCRATCH/own/brig:/mnt" -- true
        must run_as_user env XDG_CONFIG_HOME="$SCRATCH/own" "$BRIG" -m "$mode" -j owned -D -d "$SCRATCH/elsewhere:/mnt" -- touch /mnt/made
    done
    # Nor is the jail's own home, or what its changes link to.
    must_exit 125 run_as_user "$BRIG" -m strict -D -d "$HOME_OF_USER/.local/share/brig/owned.home:/mnt" -- true
    must run_as_user "$BRIG" rm owned
}

@test "casual: what the host changes in the home is seen by the next run, while the jail is kept" {
    local who
    for who in $(everyone); do
        [ "$who" != root ] || continue # whose home is not the one below
        jail "$who" "news-$who"
        run_as_user sh -c "cd $HOME_OF_USER && mkdir .news && echo old >.news/replaced && echo there >.news/removed"
        must_fail by "$who" -m casual -j "news-$who" -D -- sh -c 'cd ~/.news; ls -A; cat replaced removed; cat made dir/made'
        output_has old
        # With another run in the jail, and without.
        by "$who" -m casual -j "news-$who" -- sh -c "$AWAIT"'; : >up; await_file enough' 3>&- &
        local run=$!
        await_file up
        run_as_user sh -c "cd $HOME_OF_USER/.news && echo new >.temporary && mv .temporary replaced && rm removed && echo m >made && mkdir dir && echo d >dir/made"
        must by "$who" -m casual -j "news-$who" -D -- sh -c 'cd ~/.news; cat replaced made dir/made; test ! -e removed && ls -A'
        [ "$output" = "$(printf 'new\nm\nd\ndir\nmade\nreplaced')" ]
        run_as_user touch enough
        wait "$run"
        run_as_user rm up enough
        run_as_user sh -c "cd $HOME_OF_USER/.news && echo newer >.temporary && mv .temporary replaced && rm made"
        must by "$who" -m casual -j "news-$who" -D -- sh -c 'cd ~/.news; cat replaced; test ! -e made'
        [ "$output" = newer ]
        run_as_user rm -r "$HOME_OF_USER/.news"
    done
}

@test "cp runs the system's cp and not the jail's" {
    jail user cp
    must run_as_user "$BRIG" -m bare -j cp -D -- sh -c 'mkdir -p ~/bin ~/.local/bin; printf "#!/bin/sh\necho planted; echo x >/run/brig-copy/planted\n" >~/bin/cp; chmod +x ~/bin/cp; command cp ~/bin/cp ~/.local/bin/cp 2>/dev/null || cat ~/bin/cp >~/.local/bin/cp; chmod +x ~/.local/bin/cp; echo data >~/data'
    must run_as_user env PATH="$HOME_OF_USER/bin:$HOME_OF_USER/.local/bin:$PATH" "$BRIG" cp cp:data got
    output_lacks planted
    [ "$(cat got)" = data ]
    [ ! -e planted ]
}

@test "strict as root: what does not belong to the user is not the jail's" {
    lib_is_root || cannot "only root can give a jail an id of its own"
    jail sudo foreign
    mkdir "$SCRATCH/of-root"
    echo root >"$SCRATCH/of-root/file"
    chmod 0600 "$SCRATCH/of-root/file"
    chmod 0755 "$SCRATCH/of-root"
    must_fail by sudo -m strict -j foreign -D -d "$SCRATCH/of-root" -- cat "$SCRATCH/of-root/file"
    must_fail by sudo -m strict -j foreign -D -d "$SCRATCH/of-root" -- touch "$SCRATCH/of-root/made"
    chown -R "$LIB_USER" "$SCRATCH/of-root"
    must by sudo -m strict -j foreign -D -d "$SCRATCH/of-root" -- cat "$SCRATCH/of-root/file"
    must by sudo -u
}

@test "what root has started in a user's jail, root ends, and the user is told" {
    lib_is_root || cannot "this is about root"
    local mode run
    jail sudo stopping
    for mode in casual strict; do
        by sudo -m "$mode" -j stopping -- sh -c ': >up; exec sleep 600' 3>&- &
        run=$!
        await_file up
        if [ "$mode" = casual ]; then
            must_exit 125 run_as_user "$BRIG" stop stopping
            output_has "If root started it: sudo brig stop stopping"
        fi
        must by sudo stop stopping
        wait "$run" || true
        run_as_user rm up
        must by sudo list
        output_lacks "pid "
    done
}

# brig publishes the run after its command has begun; here it takes half a second for it.
@test "root ends what it has started in a user's jail before the run is published, too" {
    lib_is_root || cannot "this is about root"
    needs strace
    jail sudo early
    local slow=$SCRATCH/slow run
    printf '#!/bin/sh\nexec strace -o /dev/null -e trace=memfd_create -e inject=memfd_create:delay_enter=500000 "%s" "$@"\n' \
        "$BRIG" >"$slow"
    chmod +x "$slow"
    BRIG=$slow by sudo -m casual -j early -- sh -c ': >up; exec sleep 600' 3>&- &
    run=$!
    await_file up
    must by sudo stop early
    wait "$run" || true
    must by sudo list
    output_lacks "pid "
}

@test "bare and strict: an empty home of the jail's own, which it keeps" {
    local pair who mode
    for pair in $(pairs_of "$(everyone)" bare strict); do
        who=${pair%:*} mode=${pair#*:}
        jail "$who" "home-$who-$mode"
        must by "$who" -m "$mode" -j "home-$who-$mode" -D -- sh -c 'ls -A ~; echo mine >~/mine'
        [ -z "$output" ]
        must by "$who" -m "$mode" -j "home-$who-$mode" -D -- sh -c 'cat ~/mine; test "$HOME" = ~'
        output_has mine
        [ ! -e "$HOME_OF_USER/mine" ]
    done
}

@test "strict: nothing of the host but system directories and grants" {
    run_as_user sh -c "echo private >$SCRATCH/private"
    jail user strict
    must_fail run_as_user "$BRIG" -m strict -j strict -- cat "$SCRATCH/private"
    must run_as_user "$BRIG" -m strict -j strict -r "$SCRATCH/private" -- cat "$SCRATCH/private"
    output_has private
    must_fail run_as_user "$BRIG" -m strict -j strict -- ls /var/log
    must run_as_user "$BRIG" -m bare -j strict -- ls /var/log
}

@test "strict as root: another uid, whose files are the user's on the host" {
    lib_is_root || cannot "only root can give a jail an id of its own"
    jail sudo other-uid
    must by sudo -m strict -j other-uid -- sh -c 'id -u; echo written >made; grep ^Uid: /proc/self/status'
    output_has "$(id -u "$LIB_USER")"
    [ "$(stat -c %U made)" = "$LIB_USER" ]
    by sudo -m strict -j other-uid -- sh -c "$AWAIT"'; : >up; await_file enough' 3>&- &
    local run=$!
    await_file up
    run pgrep -u "$((1900000000 + $(id -u "$LIB_USER")))" -x sh
    [ "$status" -eq 0 ]
    touch enough
    wait "$run"
    must by sudo -u
}

@test "root's own jail: never uid 0, root's home copied on writing" {
    lib_is_root || cannot "this is about root"
    local mode mine
    mine=$(mktemp "$HOME/brigtest.XXXXXXXX")
    LIB_SCRATCHES="$LIB_SCRATCHES $mine"
    echo real >"$mine"
    for mode in casual bare strict; do
        must by root -m "$mode" -D -- sh -c "echo new >$mine; echo new >$mine.new"
        must_fail by root -m "$mode" -D -- cat /etc/shadow
        must by root -m "$mode" -D -- sh -c "test \"\$(id -u)\" != 0 && cat $mine $mine.new"
        [ "$output" = "new
new" ]
    done
    [ "$(cat "$mine")" = real ]
    [ ! -e "$mine.new" ]
    must by root -u
}

@test "/tmp, /var/tmp and /dev/shm are the jail's, in all its modes, until -u" {
    local who
    for who in $(everyone); do
        jail "$who" "tmp-$who"
        must by "$who" -m casual -j "tmp-$who" -- sh -c 'echo kept >/tmp/kept; cat /var/tmp/kept; echo s >/dev/shm/s'
        output_has kept
        [ ! -e /tmp/kept ]
        must by "$who" -m casual -j "tmp-$who" -- sh -c 'cat /tmp/kept /dev/shm/s'
    done
    must run_as_user "$BRIG" -m bare -j tmp-user -- cat /tmp/kept
    must run_as_user "$BRIG" -m strict -j tmp-user -- cat /var/tmp/kept
    must run_as_user "$BRIG" -u -j tmp-user
    must_fail run_as_user "$BRIG" -m casual -j tmp-user -- cat /tmp/kept
}

@test "two runs at once share the home; the death of one, or of the holder, does not hurt the other" {
    jail user two
    run_as_user "$BRIG" -m casual -j two -- sh -c "$AWAIT"'; : >begun; await test -s ~/.go; cat ~/.go >seen
        await_file enough; echo alive >still' 3>&- &
    local first=$!
    await_file begun
    must run_as_user "$BRIG" -m casual -j two -- sh -c 'echo together >~/.go'
    # A third one is killed in the middle of writing.
    run_as_user sh -c 'echo $$ >third; exec "$@"' - \
        "$BRIG" -m casual -j two -- sh -c ': >writes; while :; do echo x >>~/.endless; done' 3>&- &
    local third=$!
    await_file writes
    kill -KILL "$(cat third)"
    wait "$third" || true
    local holder
    holder=$(holder_of two)
    [ "$holder" -gt 1 ]
    kill -KILL "$holder"
    # While the first still runs, the same changes are not mounted a second time.
    must_exit 125 run_as_user "$BRIG" -m casual -j two -- true
    output_has "a run is left in it"
    touch enough
    wait "$first"
    [ "$(cat seen)" = together ]
    [ "$(cat still)" = alive ]
    must run_as_user "$BRIG" -m casual -j two -- cat "$HOME_OF_USER/.go"
    output_has together
}

# has_deleted PID: it holds files that have been removed open.
has_deleted() {
    find "/proc/$1/fd" -lname '* (deleted)' | grep -q .
}

@test "what is held back is gone with the run, and the holder keeps nothing of it" {
    jail user left
    must run_as_user "$BRIG" -m casual -j left -- sh -c 'mkdir .vscode; echo x >.vscode/tasks.json'
    [ ! -e .vscode ]
    lib_is_root || skip "only root can look into the holder"
    local holder
    holder=$(holder_of left)
    [ "$holder" -gt 1 ]
    # It closes what it was left a moment later.
    await_not has_deleted "$holder"
}

@test "casual: a directory that cannot be written to needs no names held" {
    jail user closed
    run_as_user mkdir closed
    run_as_user chmod 555 closed
    cd closed
    # The first run starts the holder, the second finds it.
    must run_as_user "$BRIG" -m casual -j closed -- true
    must run_as_user "$BRIG" -m casual -j closed -- true
    must_fail run_as_user "$BRIG" -m casual -j closed -- mkdir .vscode
    cd ..
    run_as_user chmod 755 closed
    must run_as_user "$BRIG" -m casual -j closed -d "$PWD/closed" -- touch closed/file
    [ -e closed/file ]
}

@test "a run that comes right after -u finds nothing in its way" {
    jail user again
    local i
    for i in 1 2 3; do
        must run_as_user "$BRIG" -m casual -j again -- sh -c "echo $i >>~/.again"
        must run_as_user "$BRIG" -u -j again
    done
    must run_as_user "$BRIG" -m casual -j again -- sh -c 'wc -l <~/.again'
    output_has 3
}

@test "a holder has a session of its own" {
    local holder
    jail user asked
    must run_as_user "$BRIG" -m casual -j asked -- true
    holder=$(holder_of asked)
    [ "$holder" -gt 1 ]
    [ "$(ps -o sid= -p "$holder" | tr -d ' ')" = "$holder" ]
}

@test "a run that is refused starts no holder" {
    jail user unasked
    run_as_user mkdir -p "$HOME_OF_USER/.ssh"
    run_as_user ln -s "$HOME_OF_USER/.ssh" keys
    run run_as_user "$BRIG" -m casual -j unasked -d keys -- true
    [ "$status" -eq 125 ]
    output_has 'is masked'
    [ "$(holder_of unasked | grep -vcx 0)" = 0 ]
    must run_as_user "$BRIG" -m casual -j unasked -- true
    [ "$(holder_of unasked)" -gt 1 ]
}

@test "runs that race to make the same jail all get it" {
    jail user race
    local i pids=()
    for i in 1 2 3 4 5 6 7 8; do
        run_as_user "$BRIG" -m casual -j race -- sh -c "echo $i >~/.race-$i; echo $i >out-$i" 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i"
    done
    must run_as_user "$BRIG" -m casual -j race -- sh -c 'cat ~/.race-* | wc -l'
    output_has 8
}

# Root gives what it makes to the jail's user a moment later.
@test "root's runs that race to make the same jail all get it" {
    local i round mode=casual pids=()
    # In a virtual machine root's home is not on a disk, and cannot be id-mapped.
    [ "$(findmnt -nT /root -o FSTYPE)" != overlay ] || mode=strict
    for round in 1 2 3; do
        pids=()
        for i in 1 2 3 4 5 6; do
            BRIG_CONFIG_DIR=$SCRATCH/race$round "$BRIG" -m "$mode" -j race -D -- true 3>&- &
            pids+=($!)
        done
        for i in "${pids[@]}"; do
            wait "$i"
        done
        BRIG_CONFIG_DIR=$SCRATCH/race$round "$BRIG" -u
    done
}

@test "rm names what it deletes in the jail's copy of the home" {
    jail user copied
    must run_as_user "$BRIG" -m casual -j copied -- sh -c 'mkdir -p ~/dir; echo x >~/dir/lost; echo y >~/.claude.json'
    run_as_user "$BRIG" stop copied
    must run_as_user "$BRIG" rm copied
    output_has "brig: deleted 1 change of the jail 'copied' in its copy of your home: dir/lost"
    jail user empty
    must run_as_user "$BRIG" -m casual -j empty -- true
    run_as_user "$BRIG" stop empty
    must run_as_user "$BRIG" rm empty
    output_lacks deleted
}

@test "list, stop, rm and cp" {
    jail user verbs
    must run_as_user "$BRIG" -m strict -j verbs -- sh -c 'echo inside >~/file'
    must run_as_user "$BRIG" list
    output_has verbs
    output_has strict
    run_as_user "$BRIG" -j verbs -- sh -c ': >up; exec sleep 600' 3>&- &
    local run=$!
    await_file up
    must run_as_user "$BRIG" list --json
    output_has '"pids":['
    must_exit 125 run_as_user "$BRIG" rm verbs
    output_has "in use by process"
    must_exit 125 run_as_user "$BRIG" -u -j verbs
    output_has "in use by process"
    # Copied while it runs,
    run_as_user sh -c 'echo outside >here'
    must run_as_user "$BRIG" cp here verbs:copied
    must run_as_user "$BRIG" cp verbs:copied back
    [ "$(cat back)" = outside ]
    must run_as_user "$BRIG" stop verbs
    if wait "$run"; then false; fi # it was ended
    # and when it does not.
    must run_as_user "$BRIG" cp verbs:file there
    [ "$(cat there)" = inside ]
    must_exit 125 run_as_user "$BRIG" cp here there
    must_exit 125 run_as_user "$BRIG" cp here nosuch:x
    must run_as_user "$BRIG" rm verbs
    must run_as_user "$BRIG" list
    output_lacks verbs
    must_exit 125 run_as_user "$BRIG" rm verbs
    output_has "no jail 'verbs'"
}

# copiers: the user, and root for the user or for itself, in turns from test to test. With BRIG_THOROUGH=1 everyone.
copiers() {
    if [ -n "${BRIG_THOROUGH:-}" ]; then
        everyone root
    elif lib_is_root && [ $((BATS_TEST_NUMBER % 2)) = 0 ]; then
        echo user root
    else
        everyone
    fi
}

# copies_of WHO: a new directory to copy to. Root copies to no directory of another user.
copies_of() {
    case $1 in
    root) mktemp -d "$ROOT_COPIES/copies.XXXXXX" ;;
    *) run_as_user mktemp -d "$SCRATCH/copies.XXXXXX" ;;
    esac
}

@test "cp brings no link out that leads elsewhere, and says so" {
    local who name to
    for who in $(copiers); do
        jail "$who" "links-$who"
        to=$(copies_of "$who")
        echo secret >"$SCRATCH/secret"
        must by "$who" -m bare -j "links-$who" -D -- sh -c "
            mkdir -p ~/good/sub ~/good/shut ~/bad/sub && cd ~/good && echo one >file && ln file twin
            ln -s sub inside; ln -s ../file sub/up; ln -s inside/up chain; echo two >sub/file; chmod 555 shut
            cd ~/bad && echo one >file && ln -s file inside
            ln -s $SCRATCH/secret absolute; ln -s ../../secret up; ln -s .. top; ln -s loop loop
            ln -s /etc sub/etc; ln -s sub/etc/passwd through; ln -s nothing dangling; ln -s x/../../../../secret later
            mkfifo fifo; ln -s $SCRATCH/secret ~/notes; ln -s file ~/bad-top"
        # The twin: links that stay in the tree come along.
        must by "$who" cp "links-$who:good" "$to/good"
        [ "$(cat "$to/good/chain" "$to/good/sub/up" "$to/good/inside/file")" = $'one\none\ntwo' ]
        [ "$(stat -c %h "$to/good/twin")" = 2 ]
        [ "$(stat -c %a "$to/good/shut")" = 555 ]
        must_exit 1 by "$who" cp "links-$who:bad" "$to"
        for name in absolute up top loop sub/etc through dangling later fifo; do
            output_has "not copied: 'bad/$name' is a "
            [ ! -e "$to/bad/$name" ]
            [ ! -L "$to/bad/$name" ]
        done
        output_has "'bad/absolute' is a link to '$SCRATCH/secret', which is not part of the copy"
        [ "$(cat "$to/bad/inside")" = one ]
        # Not by itself either, nor where the name would lead to a file that is there.
        must_exit 1 by "$who" cp "links-$who:notes" "$to"
        [ ! -L "$to/notes" ]
        must_exit 1 by "$who" cp "links-$who:bad-top" "$to"
        [ ! -L "$to/bad-top" ]
        [ -z "$(find "$to" -name '.brig-cp-*')" ]
        [ "$(cat "$SCRATCH/secret")" = secret ]
        [ "$(stat -c %U "$to/good/file")" = "$(stat -c %U "$to")" ]
    done
}

@test "cp refuses a path through a link that a jail may have made" {
    local who
    run_as_user sh -c 'mkdir ../outside && echo secret >../outside/file'
    for who in $(everyone); do
        jail "$who" "paths-$who"
        must by "$who" -m bare -j "paths-$who" -d "$PWD" -- sh -c "
            echo planted >~/file; cd '$PWD' && ln -sfn ../outside/file file && ln -sfn ../outside results && ln -sfn ../outside/new new"
        must_exit 125 by "$who" cp "paths-$who:file" file
        output_has "leads through the symbolic link '$PWD/file', which a program in a jail may have made"
        output_has "name the path that it leads to"
        must_exit 125 by "$who" cp "paths-$who:file" results/
        must_exit 125 by "$who" cp "paths-$who:file" results
        must_exit 125 by "$who" cp "paths-$who:file" results/file
        must_exit 125 by "$who" cp "paths-$who:file" new
        # Nor is what such a link leads to copied into a jail.
        must_exit 125 by "$who" cp file "paths-$who:stolen"
        must_exit 125 by "$who" cp results/file "paths-$who:stolen"
        must_exit 1 by "$who" -m bare -j "paths-$who" -D -- sh -c 'test -e ~/stolen'
        [ "$(ls ../outside)" = file ]
        [ "$(cat ../outside/file)" = secret ]
        # The twins: the real paths, and a link of the user's own in the home directory.
        run_as_user ln -sfn "$SCRATCH/outside" "$HOME_OF_USER/.brig-own-link"
        run_as_user ln -sfn "$SCRATCH/outside/named" "$HOME_OF_USER/.brig-own-file"
        run_as_user touch ../outside/named
        must by "$who" cp "paths-$who:file" ../outside/real
        must by "$who" cp "paths-$who:file" "$HOME_OF_USER/.brig-own-link/linked"
        must by "$who" cp "paths-$who:file" "$HOME_OF_USER/.brig-own-file"
        [ "$(cat ../outside/real ../outside/linked ../outside/named)" = $'planted\nplanted\nplanted' ]
        [ -L "$HOME_OF_USER/.brig-own-file" ]
        must by "$who" cp "$HOME_OF_USER/.brig-own-link/file" "paths-$who:given"
        must by "$who" -m bare -j "paths-$who" -D -- sh -c 'cat ~/given'
        [ "$output" = secret ]
        run_as_user rm ../outside/real ../outside/linked ../outside/named "$HOME_OF_USER/.brig-own-link" "$HOME_OF_USER/.brig-own-file"
        rm file results new
    done
}

@test "cp as root writes to no directory of another user" {
    lib_is_root || cannot "only root"
    jail root foreign
    must by root -m bare -j foreign -D -- sh -c 'echo data >~/file'
    run_as_user mkdir theirs
    must_exit 125 by root cp foreign:file theirs
    output_has "you are root, and '$PWD/theirs' belongs to another user"
    output_has "such as /root"
    [ -z "$(ls -A theirs)" ]
    # The twin.
    must by root cp foreign:file "$ROOT_COPIES/file"
    [ "$(cat "$ROOT_COPIES/file")" = data ]
    [ "$(stat -c %U "$ROOT_COPIES/file")" = root ]
}

@test "cp writes to the directory that it has made, also if another takes its name" {
    local who to victim try swapper swapped wanted=1
    [ -z "${BRIG_THOROUGH:-}" ] || wanted=2
    for who in $(copiers); do
        jail "$who" "swap-$who"
        must by "$who" -m bare -j "swap-$who" -D -- sh -c 'mkdir ~/tree && echo data >~/tree/file'
        to=$(copies_of "$who") victim=$(copies_of "$who")
        # Who can write there, as a program in a jail can, and does. It may come too late.
        chmod 0777 "$to"
        swapped=0
        for ((try = 0; try < 40 && swapped < wanted; try++)); do
            rm -f up stop
            run_as_user python3 -IS -c '
import os, sys
to, victim = sys.argv[1:]
open("up", "w").close()
while not os.path.exists("stop"):
    for name in os.listdir(to):
        if name.startswith(".brig-cp-"):
            try:
                os.rename(f"{to}/{name}", f"{to}/moved")
            except FileNotFoundError:
                continue
            os.symlink(victim, f"{to}/{name}")
            sys.exit()
sys.exit(1)' "$to" "$victim" 3>&- &
            swapper=$!
            await_file up
            run by "$who" cp "swap-$who:tree/." "$to"
            run_as_user touch stop
            wait "$swapper" && swapped=$((swapped + 1))
            [ -z "$(find "$victim" -mindepth 1)" ]
            find "$to" -mindepth 1 -delete
        done
        [ "$swapped" -gt 0 ]
        # The twin.
        must by "$who" cp "swap-$who:tree/." "$to"
        [ "$(ls -A "$to")" = file ]
    done
}

@test "cp removes what a killed cp has left, and nothing else of that name" {
    local who to
    for who in $(copiers); do
        jail "$who" "left-$who"
        must by "$who" -m bare -j "left-$who" -D -- sh -c 'echo data >~/file'
        to=$(copies_of "$who")
        mkdir -p "$to/.brig-cp-000000000001/files/deep" "$to/.brig-cp-000000000002" "$to/.brig-cp-000000000003/files" "$to/elsewhere"
        touch "$to/.brig-cp-000000000002/kept" "$to/elsewhere/kept"
        chmod 1700 "$to/.brig-cp-000000000001" "$to/.brig-cp-000000000003"
        ln -s ../../elsewhere "$to/.brig-cp-000000000001/files/link"
        ln -s elsewhere "$to/.brig-cp-000000000004"
        chown -Rh --reference="$to" "$to"
        # The third is in use.
        exec 8<"$to/.brig-cp-000000000003"
        flock -n 8
        must by "$who" cp "left-$who:file" "$to" 8<&-
        exec 8<&-
        [ ! -e "$to/.brig-cp-000000000001" ]
        [ -e "$to/.brig-cp-000000000002/kept" ]
        [ -e "$to/.brig-cp-000000000003/files" ]
        [ -L "$to/.brig-cp-000000000004" ]
        [ -e "$to/elsewhere/kept" ]
        [ "$(cat "$to/file")" = data ]
    done
}

@test "cp places a link only if what it leads to was placed" {
    local who to
    for who in $(copiers); do
        jail "$who" "last-$who"
        to=$(copies_of "$who")
        must by "$who" -m bare -j "last-$who" -D -- sh -c '
            mkdir -p ~/tree/keys ~/tree/.git/hooks ~/tree/sub ~/tree/shut && cd ~/tree && echo data | tee keys/authorized .git/hooks/pre-commit sub/file clash >/dev/null
            ln -s keys/authorized notes; ln -s keys more; ln -s more/authorized chain; ln -s .git/hooks hooks; ln -s clash clashed
            ln -s sub good; ln -s good/file good-chain; ln -s ../hooks sub/hooks; ln -s ../sub/file shut/link; chmod 555 shut'
        # The host has a link where the copy has a directory, a repository, and a directory in place of a file.
        mkdir -p "$to/real" "$to/tree/.git/hooks" "$to/tree/clash"
        ln -s ../real "$to/tree/keys"
        echo host >"$to/real/authorized"
        chown -Rh --reference="$to" "$to"
        must_exit 1 by "$who" cp "last-$who:tree" "$to"
        for name in notes more chain hooks clashed sub/hooks; do
            output_has "not copied: 'tree/$name' is a link to"
            [ ! -L "$to/tree/$name" ]
        done
        [ "$(cat "$to/real/authorized")" = host ]
        [ "$(cat "$to/tree/good/file" "$to/tree/good-chain" "$to/tree/shut/link")" = $'data\ndata\ndata' ]
        [ "$(stat -c %a "$to/tree/shut")" = 555 ]
        # The twin: all of it where nothing is, and again over that.
        chmod 755 "$to/tree/shut"
        rm -r "$to/tree"
        must by "$who" cp "last-$who:tree" "$to"
        must_exit 1 by "$who" cp "last-$who:tree" "$to"
        output_has "'tree/.git' is there already"
        for name in notes more/authorized chain clashed good-chain; do
            [ "$(cat "$to/tree/$name")" = data ]
        done
        chmod 755 "$to/tree/shut"
    done
}

@test "cp merges with what is there, and leaves a repository alone" {
    jail user merge
    must run_as_user "$BRIG" -m bare -j merge -D -- sh -c 'mkdir -p ~/tree/sub ~/tree/.git/hooks ~/tree/clash && cd ~/tree && echo new | tee file sub/file .git/hooks/post-checkout >/dev/null'
    run_as_user sh -c 'mkdir -p tree/sub tree/.git && echo old | tee tree/file tree/sub/own tree/clash >/dev/null && ln -s file tree/own'
    must_exit 1 run_as_user "$BRIG" cp merge:tree .
    output_has "'tree/.git' is there already"
    output_has "'tree/clash' cannot be put in the place of what is there"
    [ ! -e tree/.git/hooks ]
    [ -f tree/clash ]
    [ "$(readlink tree/own)" = file ]
    [ "$(cat tree/file tree/sub/file tree/sub/own)" = $'new\nnew\nold' ]
    # What cp cannot do is its status.
    must_exit 1 run_as_user "$BRIG" cp merge:nothing x
    must_exit 125 run_as_user "$BRIG" cp merge:tree no/such/directory
    output_has "no/such"
    must run_as_user "$BRIG" cp merge:tree/. contents
    must_exit 125 run_as_user "$BRIG" cp merge:tree/file /usr
}

@test "a jail full of deep and odd directories can be removed" {
    jail user deep
    must run_as_user "$BRIG" -m bare -j deep -D -- sh -c 'cd ~; deep=$(printf "d/%.0s" $(seq 200)); mkdir -p "$deep" && touch "$deep/f"; mkdir ~/none; touch ~/none/x; chmod 0 ~/none; ln -s / ~/root'
    must run_as_user "$BRIG" rm deep
    [ ! -e "$HOME_OF_USER/.local/share/brig/deep.home" ]
    [ -e /etc/passwd ]
}

@test "another user cannot join a jail, nor hold its place" {
    lib_is_root || cannot "needs a second user"
    jail user mine
    must run_as_user "$BRIG" -m casual -j mine -- true
    local place
    for place in "/run/user/$(id -u "$LIB_USER")/brig" "/tmp/brig-$(id -u "$LIB_USER")"; do
        [ -d "$place" ] || continue
        [ "$(stat -c '%a %U' "$place")" = "700 $LIB_USER" ]
        run setpriv --reuid=65534 --regid=65534 --clear-groups ls "$place"
        [ "$status" -ne 0 ]
    done
}

@test "what cannot be laid over is said with the remedy" {
    lib_is_root || cannot "mounts need root"
    jail user mounted
    mkdir -p "$HOME_OF_USER/.mounted"
    run unshare -m --propagation private sh -c "mount -t tmpfs none '$HOME_OF_USER/.mounted' && { [ ! -e /usr/bin/fuse-overlayfs ] || mount --bind /dev/null /usr/bin/fuse-overlayfs; } && exec setpriv --reuid=$LIB_USER --regid=$LIB_USER --clear-groups env HOME='$HOME_OF_USER' '$BRIG' -m casual -j mounted -D -- true"
    [ "$status" -eq 125 ]
    output_has "$HOME_OF_USER/.mounted"
    output_has "-m bare"
    output_has "fuse-overlayfs"
    if [ -e /usr/bin/fuse-overlayfs ]; then
        run unshare -m --propagation private sh -c "mount -t tmpfs none '$HOME_OF_USER/.mounted' && mount -t tmpfs -o mode=0700 none /dev && exec setpriv --reuid=$LIB_USER --regid=$LIB_USER --clear-groups env HOME='$HOME_OF_USER' '$BRIG' -m casual -j mounted -D -- true"
        [ "$status" -eq 125 ]
        output_has "let this user open /dev/fuse"
    fi
    run unshare -m --propagation private sh -c "mkdir -p /mnt && mount -t ramfs none /mnt && chown $LIB_USER /mnt && exec setpriv --reuid=$LIB_USER --regid=$LIB_USER --clear-groups env HOME='$HOME_OF_USER' '$BRIG' -m casual -j ramfs --storage /mnt/store -D -- true"
    [ "$status" -eq 125 ]
    output_has "--storage"
    rmdir "$HOME_OF_USER/.mounted"
}

@test "a home that root cannot id-map is named, with the remedy" {
    lib_is_root || cannot "only root maps ids"
    run unshare -m --propagation private sh -c "mkdir -p /mnt && mount -t tmpfs none /mnt && cd /mnt &&
        mkdir lower upper work merged && chmod 0755 merged &&
        mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none merged &&
        exec '$BRIG' -m strict -j unmapped --storage /mnt/merged/store -D -- true"
    [ "$status" -eq 125 ]
    output_has "cannot id-map '/mnt/merged/store/unmapped.home'"
    output_has "--storage"
    output_has "as an ordinary user"
}

# with_ranges LINE COMMAND…: with another /etc/subuid.
with_ranges() {
    # A mount over the file itself would be lost when another suite makes a user.
    # Another suite that makes one may remove its locks meanwhile, which cp says.
    [ -d "$SCRATCH/etc" ] || cp -a /etc "$SCRATCH/etc" 2>/dev/null || [ -s "$SCRATCH/etc/passwd" ]
    echo "$1" >"$SCRATCH/etc/subuid"
    shift
    unshare -m --propagation private sh -ec 'mount --bind "$1" /etc; shift; exec "$@"' - "$SCRATCH/etc" "$@"
}

# id_of COMMAND…: the host's id of what runs in the jail, which makes `up` and ends with `enough`.
id_of() {
    local token=id-$BASHPID-$RANDOM run # so that processes of other suites are not mistaken for it
    rm -f up enough
    "$@" sh -c ": $token; $AWAIT; : >up; await_file enough" 3>&- &
    run=$!
    await_file up
    ps -ww -eo uid=,args= | awk -v token="$token" 'index($0, token) && !/brig/ && !/awk/ { print $1; exit }' >id
    touch enough
    wait "$run"
}

@test "root's jails have ids of the range that is set aside for them" {
    lib_is_root || cannot "only root gives ids away"
    [ -f /etc/subuid ] || touch /etc/subuid
    local user
    user=$(id -u "$LIB_USER")
    export BRIG_CONFIG_DIR=$ROOT_STORE
    mkdir -m 0777 shared && cd shared
    local brig=("$BRIG" -m strict -j "ids-$$" -d . --) # root is not given a user's directory unasked
    id_of with_ranges 'ann:100000:65536' "${brig[@]}"
    [ "$(cat id)" = 1900000000 ]
    must with_ranges 'ann:100000:65536' "$BRIG" rm "ids-$$"
    id_of with_ranges 'brig:777000000:100000' "${brig[@]}"
    [ "$(cat id)" = 777000000 ]
    must with_ranges 'brig:777000000:100000' "$BRIG" list
    output_has "ids-$$"
    must with_ranges 'brig:777000000:100000' "$BRIG" rm "ids-$$"
    unset BRIG_CONFIG_DIR
    jail sudo ids
    chown "$LIB_USER:" .
    id_of with_ranges 'brig:777000000:100000' env SUDO_UID="$user" SUDO_GID="$(id -g "$LIB_USER")" SUDO_USER="$LIB_USER" HOME="$HOME_OF_USER" "$BRIG" -m strict -j ids --
    [ "$(cat id)" = $((777000000 + user % 100000)) ] || { echo "it has the id '$(cat id)'"; ps -ww -eo uid=,args= | grep -v brigd | tail -40; return 1; }
    must with_ranges 'brig:777000000:100000' env SUDO_UID="$user" SUDO_GID="$(id -g "$LIB_USER")" SUDO_USER="$LIB_USER" HOME="$HOME_OF_USER" "$BRIG" -u -j ids
}

@test "a user cannot remove the home of a run that root has started for them" {
    lib_is_root || cannot "only root starts such runs"
    jail sudo roots
    rm -f up enough
    by sudo -m strict -j roots -- sh -c "$AWAIT"'; echo kept >~/file; : >up; await_file enough; cat ~/file >after' 3>&- &
    local run=$!
    await_file up
    must_exit 125 run_as_user "$BRIG" rm roots
    output_has "in use by a run that root has started. End that first: sudo brig stop roots"
    run_as_user touch enough
    wait "$run"
    [ "$(cat after)" = kept ]
    must run_as_user "$BRIG" rm roots
}
