#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is hidden of a home: behind links, at other mounts and in what is granted. masks-live.bats has what
# changes while a jail runs.
# Each secret is also read where nothing hides it: otherwise a test that finds nothing proves nothing.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load masks

# ---- links -----------------------------------------------------------------------------------------

@test "a mask below a link holds where the link leads, in the home" {
    made .mcfg mdot
    jail links
    run_as_user sh -c "mkdir -p $H/mdot/cfg/gh; echo token >$H/mdot/cfg/gh/hosts; echo open >$H/mdot/cfg/open; ln -s mdot/cfg $H/.mcfg"
    # The twin: without the mask it can be read by both names.
    must run_as_user "$BRIG" -m casual -j links -- cat "$H/.mcfg/gh/hosts" "$H/mdot/cfg/gh/hosts"
    output_has token
    must run_as_user "$BRIG" -m casual -j links --mask .mcfg/gh -- sh -c 'cat ~/.mcfg/gh/hosts ~/mdot/cfg/gh/hosts 2>/dev/null; cat ~/.mcfg/open'
    output_lacks token
    output_has open
    # And for root acting for the user, and by an absolute link.
    run_as_user ln -sfn "$H/mdot/cfg" "$H/.mcfg"
    must run_as_user "$BRIG" -u -j links
    must run_as_user "$BRIG" -m casual -j links --mask .mcfg/gh -- sh -c 'cat ~/.mcfg/gh/hosts ~/mdot/cfg/gh/hosts 2>/dev/null; cat ~/.mcfg/open'
    output_lacks token
    output_has open
    ! lib_is_root || {
        jail links-sudo
        must by_sudo -m casual -j links-sudo --mask .mcfg/gh -- sh -c 'cat ~/.mcfg/gh/hosts ~/mdot/cfg/gh/hosts 2>/dev/null; cat ~/.mcfg/open'
        output_lacks token
        output_has open
    }
}

@test "a mask that is spelt with a tilde, which no shell has replaced, is one of the home" {
    made .mtilde
    jail tilde
    run_as_user sh -c "echo token >$H/.mtilde"
    must run_as_user "$BRIG" -m casual -j tilde -- cat "$H/.mtilde" # the twin
    # shellcheck disable=SC2088 # on purpose
    must_fail run_as_user "$BRIG" -m casual -j tilde --mask '~/.mtilde' -- cat "$H/.mtilde"
}

@test "a masked link is hidden with what it points to" {
    made .mrc mdot
    jail target
    run_as_user sh -c "mkdir -p $H/mdot; echo token >$H/mdot/rc; ln -s mdot/rc $H/.mrc"
    must run_as_user "$BRIG" -m casual -j target -- cat "$H/.mrc" "$H/mdot/rc"
    must_fail run_as_user "$BRIG" -m casual -j target --mask .mrc -- cat "$H/mdot/rc"
    must_fail run_as_user "$BRIG" -m casual -j target --mask .mrc -- cat "$H/.mrc"
}

@test "a mask holds where a link leads out of the home, in every mode where that shows" {
    made .mcfg .mrc
    local outside mode
    outside=$(run_as_user mktemp -d /var/tmp/brigtest.XXXXXXXX)
    lib_is_root || cannot "needs a directory that is neither in the home nor in /tmp"
    mv "$outside" "${BRIG_SCRATCH:-/var/lib}/"
    outside=${BRIG_SCRATCH:-/var/lib}/${outside##*/}
    LIB_SCRATCHES="$LIB_SCRATCHES $outside"
    run_as_user sh -c "mkdir -p $outside/gh; echo token >$outside/gh/hosts; echo open >$outside/open; echo token >$outside/rc; ln -s $outside $H/.mcfg; ln -s $outside/rc $H/.mrc"
    for mode in casual bare; do
        jail "out-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" -- cat "$outside/gh/hosts" "$outside/rc"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" --mask .mcfg/gh --mask .mrc -- sh -c "cat $outside/gh/hosts ~/.mcfg/gh/hosts $outside/rc ~/.mrc 2>/dev/null; cat $outside/open"
        output_lacks token
        output_has open
    done
    # Granted, it shows in modes that have nothing else of the host.
    for mode in strict sealed; do
        jail "out-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" -d "$outside" -- cat "$outside/gh/hosts" "$outside/rc"
        must run_as_user "$BRIG" -m "$mode" -j "out-$mode" --mask .mcfg/gh --mask .mrc -d "$outside" -- sh -c "cat $outside/gh/hosts $outside/rc 2>/dev/null; cat $outside/open"
        output_lacks token
        output_has open
    done
    jail out-sudo
    for mode in casual strict; do
        must by_sudo -m "$mode" -j out-sudo --mask .mcfg/gh --mask .mrc -r "$outside" -- sh -c "cat $outside/gh/hosts $outside/rc 2>/dev/null; cat $outside/open"
        output_lacks token
        output_has open
    done
    by_sudo -u >/dev/null 2>&1 || true
}

@test "a default mask follows links into what is granted, in every mode" {
    made .mdot-ssh
    local mode
    [ ! -e "$H/.netrc" ] || cannot "the home has a .netrc"
    made .netrc
    run_as_user sh -c "mkdir $H/.mdot-ssh; echo token >$H/.mdot-ssh/netrc; echo open >$H/.mdot-ssh/open; ln -s .mdot-ssh/netrc $H/.netrc"
    for mode in casual bare strict sealed; do
        jail "default-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "default-$mode" -D -d "$H/.mdot-ssh" --no-defaults -- cat "$H/.mdot-ssh/netrc"
        output_has token
        must run_as_user "$BRIG" -m "$mode" -j "default-$mode" -D -d "$H/.mdot-ssh" -- sh -c "cat $H/.mdot-ssh/netrc 2>/dev/null; cat $H/.mdot-ssh/open"
        output_lacks token
        output_has open
    done
}

@test "a masked link to a device or to the system takes nothing away" {
    made .mhist .mlib
    jail null
    run_as_user sh -c "ln -s /dev/null $H/.mhist; ln -s /usr $H/.mlib"
    must run_as_user "$BRIG" -m casual -j null --mask .mhist --mask .mlib -- sh -c 'echo x >/dev/null; test -c /dev/null && ls /usr/bin/env'
}

@test "a mask holds inside a grant that a link leads into, or that is spelt otherwise" {
    made .mcfg mdot mlink
    local mode
    run_as_user sh -c "mkdir -p $H/mdot/gh; echo token >$H/mdot/gh/hosts; echo open >$H/mdot/open; ln -s mdot $H/.mcfg; ln -s . $H/mlink"
    for mode in casual strict sealed; do
        jail "into-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "into-$mode" -D -d "$H/mdot" -- cat "$H/mdot/gh/hosts"
        must run_as_user "$BRIG" -m "$mode" -j "into-$mode" -D -d "$H/mdot" --mask .mcfg/gh -- sh -c "cat $H/mdot/gh/hosts 2>/dev/null; cat $H/mdot/open"
        output_lacks token
        output_has open
        must run_as_user "$BRIG" -m "$mode" -j "into-$mode" -D -d "$H/mlink/mdot" --mask mdot/gh -- sh -c "cat $H/mlink/mdot/gh/hosts 2>/dev/null; cat $H/mlink/mdot/open"
        output_lacks token
        output_has open
    done
}

@test "what is granted by a link is the real thing, and protected as such" {
    made mlink mproj
    jail bylink
    run_as_user sh -c "mkdir -p $H/mproj; cd $H/mproj; git init -q . 2>/dev/null; mkdir .vscode; ln -s mproj $H/mlink"
    [ -d "$H/mproj/.git/hooks" ]
    must run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo real >~/mlink/file; cat ~/mproj/file'
    output_has real
    [ "$(cat "$H/mproj/file")" = real ]
    must_fail run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo x >~/mlink/.vscode/tasks.json'
    must_fail run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo x >~/mproj/.vscode/tasks.json'
    run run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo x >~/mlink/.git/hooks/pre-commit'
    run run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" -- sh -c 'echo x >~/mproj/.git/hooks/pre-commit'
    [ ! -e "$H/mproj/.git/hooks/pre-commit" ]
    must run_as_user "$BRIG" -m casual -j bylink -D -d "$H/mlink" --no-protect -- sh -c 'echo x >~/mlink/.git/hooks/pre-commit'
    [ -e "$H/mproj/.git/hooks/pre-commit" ]
}

@test "why knows of links" {
    made .mcfg mdot
    jail why
    run_as_user sh -c "mkdir -p $H/mdot/gh; echo token >$H/mdot/gh/hosts; ln -s mdot $H/.mcfg"
    must_fail run_as_user "$BRIG" why -m casual -j why --mask .mcfg/gh -- "$H/.mcfg/gh/hosts"
    output_has hidden
    must_fail run_as_user "$BRIG" why -m casual -j why --mask .mcfg/gh -- "$H/mdot/gh/hosts"
    output_has hidden
    must run_as_user "$BRIG" why -m casual -j why -- "$H/mdot/gh/hosts"
}

# ---- grants of what the jail has of its own ----------------------------------------------------------

@test "who grants /tmp, /var/tmp or /dev/shm has the host's, and not the jail's" {
    local pair mode place file
    for pair in $(pairs_of "/tmp /var/tmp /dev/shm" casual bare strict); do
        place=${pair%:*} mode=${pair#*:}
        jail "own-$mode"
        file=$place/brigtest.$BASHPID.$mode
        run_as_user sh -c "echo host >$file"
        # The twin: otherwise they are the jail's own.
        must_fail run_as_user "$BRIG" -m "$mode" -j "own-$mode" -- cat "$file"
        must run_as_user "$BRIG" -m "$mode" -j "own-$mode" -r "$place" -- cat "$file"
        output_has host
        must_fail run_as_user "$BRIG" -m "$mode" -j "own-$mode" -r "$place" -- touch "$file.made"
        must run_as_user "$BRIG" -m "$mode" -j "own-$mode" -d "$place" -- sh -c "echo jail >$file"
        [ "$(cat "$file")" = jail ]
        rm "$file"
    done
}

@test "who grants /run has the host's, also where the user has no runtime directory" {
    local mode
    jail run-strict
    must_exit 125 run_as_user "$BRIG" -m strict -j run-strict -r /run -- true
    output_has "-m bare"
    for mode in casual bare; do
        jail "run-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "run-$mode" -r /run -- sh -c 'ls -i -d /run'
        [ "${output%% *}" = "$(stat -c %i /run)" ]
        must run_as_user "$BRIG" -m "$mode" -j "run-$mode" -- sh -c 'ls -i -d /run'
        [ "${output%% *}" != "$(stat -c %i /run)" ]
    done
}

@test "the whole home is granted to who insists, with its secrets hidden, and to nobody else" {
    made .mfile .ssh
    local mode
    run_as_user sh -c "echo real >$H/.mfile; mkdir -p $H/.ssh; echo token >$H/.ssh/id_test"
    for mode in casual bare strict; do
        jail "whole-$mode"
        # By identity, whatever it is called.
        run_as_user ln -sfn "$H" "$SCRATCH/link"
        cd "$SCRATCH/link"
        must_exit 125 run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -- true
        output_has "home directory"
        output_has "to grant it anyway"
        cd "$SCRATCH/project"
        must run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -r "$H" -- cat "$H/.mfile"
        output_has real
        must_fail run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -D -r "$H" -- sh -c 'echo x >~/.mfile'
        must run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -d "$H" -- sh -c "echo $mode >~/.mfile; cat ~/.ssh/id_test 2>/dev/null; true"
        output_lacks token
        [ "$(cat "$H/.mfile")" = "$mode" ]
        run_as_user sh -c "echo real >$H/.mfile"
        must run_as_user "$BRIG" -m "$mode" -j "whole-$mode" -d "$H" --unmask .ssh -- cat "$H/.ssh/id_test"
        output_has token
    done
    # And a script has a place of its own.
    run_as_user sh -c 'echo "echo from-script" >script'
    must run_as_user "$BRIG" -m casual -j whole-casual -d /tmp --script script -- true
    output_has from-script
}

@test "default masks hold in every mode where the path would show" {
    made .ssh .mopen
    local mode
    run_as_user sh -c "mkdir -p $H/.ssh; echo token >$H/.ssh/id_test; echo open >$H/.mopen"
    for mode in casual bare strict sealed; do
        jail "every-$mode"
        must run_as_user "$BRIG" -m "$mode" -j "every-$mode" -D -r "$H" -- sh -c "cat $H/.ssh/id_test 2>/dev/null; cat $H/.mopen"
        [ "$output" = open ]
        must run_as_user "$BRIG" -m "$mode" -j "every-$mode" -D -r "$H" --unmask .ssh -- cat "$H/.ssh/id_test"
        output_has token
        must run_as_user "$BRIG" -m "$mode" -j "every-$mode" -D -r "$H" --no-defaults -- cat "$H/.ssh/id_test"
        output_has token
    done
    # Where the host is shown to a jail without a home of its own.
    must run_as_user "$BRIG" -m sealed -D --view host -- sh -c "cat $H/.ssh/id_test 2>/dev/null; cat $H/.mopen"
    [ "$output" = open ]
    must run_as_user "$BRIG" -m sealed -D --view host --unmask .ssh -- cat "$H/.ssh/id_test"
    output_has token
}

# ---- other mounts ------------------------------------------------------------------------------------

# elsewhere COMMAND…: as the user, where /mnt/twin shows what the home is on, and /mnt/part a part of it.
elsewhere() {
    unshare -m --propagation private sh -c '
        mount -t tmpfs none /mnt && mkdir /mnt/twin /mnt/part &&
        mount --bind "${1%/*}" /mnt/twin && mount --bind "$1/mpart" /mnt/part && user=$2 && home=$1 && shift 2 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" "$@"' - "$H" "$LIB_USER" "$@"
}

@test "another mount of the home shows neither it nor its secrets nor brig's own" {
    lib_is_root || cannot "mounts need root"
    made mpart .ssh
    local mode name=${H##*/}
    run_as_user sh -c "mkdir -p $H/.ssh $H/mpart/gh; echo token >$H/.ssh/id_test; echo token >$H/mpart/gh/hosts; echo open >$H/mpart/open"
    for mode in casual bare; do
        jail "twin-$mode"
        # The twin of the test: they are there, and can be read outside and where nothing hides them.
        must elsewhere cat "/mnt/twin/$name/.ssh/id_test" /mnt/part/gh/hosts
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" --unmask .ssh -- cat /mnt/part/gh/hosts
        output_has token
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" --mask mpart/gh -- sh -c "cat /mnt/twin/$name/.ssh/id_test /mnt/part/gh/hosts 2>/dev/null; ls -A /mnt/twin/$name /mnt/twin/$name/.local/share/brig 2>/dev/null | grep -v :; cat /mnt/part/open"
        [ "$output" = open ]
        must elsewhere "$BRIG" -u -j "twin-$mode"
    done
    # Granted by such a name: who insists has it, without its secrets.
    for mode in casual strict; do
        jail "twin-$mode"
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" -D -d "/mnt/twin/$name" --mask mpart/gh -- sh -c "cat /mnt/twin/$name/.ssh/id_test /mnt/twin/$name/mpart/gh/hosts 2>/dev/null; ls -A /mnt/twin/$name/.local/share/brig 2>/dev/null; cat /mnt/twin/$name/mpart/open"
        [ "$output" = open ]
        must elsewhere "$BRIG" -m "$mode" -j "twin-$mode" -D -d /mnt/part --mask mpart/gh -- sh -c "cat /mnt/part/gh/hosts 2>/dev/null; cat /mnt/part/open; echo made >/mnt/part/made"
        [ "$output" = open ]
        [ "$(cat "$H/mpart/made")" = made ]
        must elsewhere "$BRIG" -u -j "twin-$mode"
    done
    # And the working directory is refused by identity.
    run elsewhere sh -c "cd /mnt/twin/$name && exec '$BRIG' -m casual -j twin-casual -- true"
    [ "$status" -eq 125 ]
    output_has "home directory"
}

# ---- where holders are found -------------------------------------------------------------------------

@test "the places for sockets are not visible where /run is granted" {
    lib_is_root || cannot "needs root's own jail"
    jail root sockets
    install -d -m 700 /run/brig-0
    touch "/run/brig-0/probe-$$"
    run by root -m bare -j sockets -D -d /run -- sh -c 'ls /run; ls -A /run/brig-0'
    rm "/run/brig-0/probe-$$"
    [ "$status" -eq 0 ]
    output_has brig-0 # the twin: /run is there
    output_lacks "probe-$$"
}

@test "somebody else who has taken the place for sockets in /tmp stops nobody" {
    lib_is_root || cannot "needs a second user"
    local place who
    jail squat
    must run_as_user "$BRIG" -u
    for who in "$(id -u "$LIB_USER")" "$((1900000000 + $(id -u "$LIB_USER")))"; do
        place=/tmp/brig-$who
        rm -rf "$place"
        setpriv --reuid=65534 --regid=65534 --clear-groups mkdir "$place"
        LIB_SCRATCHES="$LIB_SCRATCHES $place"
    done
    must run_as_user "$BRIG" -m casual -j squat -- sh -c 'echo kept >/tmp/kept'
    must run_as_user "$BRIG" -m casual -j squat -- cat /tmp/kept
    output_has kept
    must run_as_user "$BRIG" list
    output_has "(kept)"
    # Found as well when the place is free again.
    rmdir "/tmp/brig-$(id -u "$LIB_USER")"
    must run_as_user "$BRIG" -m casual -j squat -- cat /tmp/kept
    must by_sudo -m casual -j squat -- cat /tmp/kept
    output_has kept
    must by_sudo -m strict -j squat -D -- sh -c 'echo strict >/tmp/kept'
    must by_sudo -m strict -j squat -D -- cat /tmp/kept
    output_has strict
    must by_sudo -u
}

# ---- snapshots ---------------------------------------------------------------------------------------

@test "copies of hidden files in a snapshot directory of the home are hidden as well" {
    local name keys=() unmask=()
    jail snapshots
    for name in .zfs .snapshot .snapshots .snap .config/.snapshot .local/share/.snap; do
        [ ! -e "$H/$name" ] || cannot "there is a $H/$name"
        made "$name"
        keys+=("$H/$name/one/.ssh/key")
        unmask+=(--unmask "$name")
        run_as_user sh -c "mkdir -p $H/$name/one/.ssh; echo token >$H/$name/one/.ssh/key"
    done
    must_fail run_as_user "$BRIG" -m casual -j snapshots -- grep token "${keys[@]}"
    output_lacks :token
    must_fail run_as_user "$BRIG" -m sealed -r "$H" -- grep token "${keys[@]}"
    output_lacks :token
    ! lib_is_root || {
        must_fail by_sudo -m casual -j snapshots -- grep token "${keys[@]}"
        output_lacks :token
    }
    # The twin.
    jail twin
    must run_as_user "$BRIG" -m casual -j twin "${unmask[@]}" -- grep token "${keys[@]}"
    for name in "${keys[@]}"; do
        output_has "$name:token"
    done
}

@test "nor are they seen in that of a filesystem that has the home in it" {
    lib_is_root || cannot "it takes a mount"
    # In a mount namespace of its own, what is above the home is another filesystem, with a snapshot.
    cat >"$SCRATCH/above" <<'END'
set -eu
above=${H%/*}
mount --rbind "$above" /mnt
mount -t tmpfs -o mode=755 tmpfs "$above"
mkdir "$H"
mount --rbind "/mnt/${H##*/}" "$H"
umount -l /mnt
copy=$above/.zfs/snapshot/one/${H##*/}
mkdir -p "$copy" && echo token >"$copy/key" && chmod 644 "$copy/key"
cd "$SCRATCH/project"
. "$LIB_DIR/lib.bash"
trap 'run_as_user "$BRIG" -u >/dev/null 2>&1; run_as_user "$BRIG" rm above-twin' EXIT
for mode in casual bare; do
    run_as_user "$BRIG" -m "$mode" -j "above-$mode" -- sh -c "cat $copy/key 2>/dev/null || echo hidden"
    run_as_user "$BRIG" stop "above-$mode" && run_as_user "$BRIG" rm "above-$mode"
done
run_as_user "$BRIG" -m bare -j above-twin --unmask "$above/.zfs" -- cat "$copy/key"
END
    must env H="$H" SCRATCH="$SCRATCH" LIB_DIR="$LIB_DIR" BRIG="$BRIG" unshare -m --propagation private bash "$SCRATCH/above"
    [ "$output" = $'hidden\nhidden\ntoken' ]
}

@test "nor in that of a filesystem that the home is a link into, nor in one that is granted" {
    lib_is_root || cannot "it takes a mount"
    # The home is a link to a directory of another filesystem, which has a snapshot.
    cat >"$SCRATCH/behind" <<'END'
set -eu
above=${H%/*}
mkdir -p /mnt
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir -p /mnt/data/u /mnt/data/other
mount --rbind "$H" /mnt/data/u
mount -t tmpfs -o mode=755 tmpfs "$above"
ln -s /mnt/data/u "$H"
copy=/mnt/data/.snap/one/u
mkdir -p "$copy" && echo token >"$copy/key" && echo other >/mnt/data/other/file
cd /mnt/data/other
. "$LIB_DIR/lib.bash"
trap 'run_as_user "$BRIG" -u >/dev/null 2>&1' EXIT
read="cat $copy/key 2>/dev/null || echo hidden; cat /mnt/data/other/file"
run_as_user "$BRIG" -m bare -j behind-bare -D -- sh -c "$read"
run_as_user "$BRIG" -m sealed -r /mnt/data/.snap:/seen -r /mnt/data/other -- sh -c "cat /seen/one/u/key; cat /mnt/data/other/file"
for grant in /mnt /mnt/data; do
    run_as_user "$BRIG" -m strict -j behind-strict -D -r "$grant" -- sh -c "$read"
done
run_as_user "$BRIG" -m sealed -r /mnt:/seen -- cat /seen/data/.snap/one/u/key 2>/dev/null || echo hidden
run_as_user "$BRIG" -m bare -j behind-bare -D --unmask /mnt/data/.snap -- cat "$copy/key"
for jail in behind-bare behind-strict; do
    run_as_user "$BRIG" stop "$jail" >/dev/null && run_as_user "$BRIG" rm "$jail" >/dev/null
done
END
    must env H="$H" SCRATCH="$SCRATCH" LIB_DIR="$LIB_DIR" BRIG="$BRIG" unshare -m --propagation private bash "$SCRATCH/behind"
    [ "$output" = $'hidden\nother\ntoken\nother\nhidden\nother\nhidden\nother\nhidden\ntoken' ]
}

# ---- the environment ---------------------------------------------------------------------------------

@test "variables with a secret are not passed on, by name in any case or by value, and explain says so" {
    local secrets=(SSHPASS=1-secret BW_SESSION=2-secret npm_config__auth=3-secret my_api_key=4-secret "HTTPS_PROXY=http://me:5-secret@proxy:1"
        "PIP_INDEX_URL=https://me:6-secret@pypi.example/simple" STRIPE_KEY=10-secret
        SERVICE_KEYS=11-secret STRIPE_KEY_LIVE=12-secret KEY=13-secret MY_KEYRING=14-secret)
    local plain=(KEYBOARD=15-plain KEYTIMEOUT=16-plain XKB_DEFAULT_LAYOUT=17-plain LESSKEY=18-plain MONKEYS=19-plain
        GIT_AUTHOR_NAME=7-plain MAX_THINKING_TOKENS=8-plain "SERVICE_URL=http://service:1/9-plain")
    jail environment
    must run_as_user env "${secrets[@]}" "${plain[@]}" "$BRIG" -m bare -j environment -- env
    for i in 1-secret 2-secret 3-secret 4-secret 5-secret 6-secret 10-secret 11-secret 12-secret 13-secret 14-secret; do
        output_lacks "$i"
    done
    for i in 7-plain 8-plain 9-plain 15-plain 16-plain 17-plain 18-plain 19-plain; do
        output_has "$i"
    done
    # The twin.
    must run_as_user env "${secrets[@]}" "$BRIG" -m bare -j environment --setenv HTTPS_PROXY --setenv my_api_key \
        --setenv STRIPE_KEY -- env
    output_has 5-secret
    output_has 4-secret
    output_has STRIPE_KEY=10-secret
    output_lacks 6-secret
    must run_as_user env "${secrets[@]}" "$BRIG" explain -m bare -j environment
    output_has "HTTPS_PROXY: its value has an address with a password"
    output_has "PIP_INDEX_URL: its value"
    output_lacks 5-secret
    must run_as_user env "${secrets[@]}" "$BRIG" explain -m bare -j environment --setenv HTTPS_PROXY
    output_lacks "HTTPS_PROXY: its value"
    must run_as_user env "${secrets[@]}" "$BRIG" explain -m bare -j environment --json
    output_has '"withheld_by_value":["HTTPS_PROXY","PIP_INDEX_URL"]'
}

# ---- homes and jails of an odd kind ------------------------------------------------------------------

# linked COMMAND…: as the user, whose home is a link to the real one according to the passwd file.
linked() {
    unshare -m --propagation private sh -c '
        mount -t tmpfs none /mnt && ln -s "$1" /mnt/home && sed "s|^\($2:.*\):$1:|\1:/mnt/home:|" /etc/passwd >/mnt/passwd &&
        mount --bind /mnt/passwd /etc/passwd && user=$2 && shift 2 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME=/mnt/home "$@"' - "$H" "$LIB_USER" "$@"
}

@test "a home that is a link is like any other" {
    lib_is_root || cannot "needs another passwd file"
    made .ssh mproj
    local mode
    run_as_user sh -c "mkdir -p $H/.ssh $H/mproj; echo token >$H/.ssh/id_test; echo token >$H/mproj/secret; echo real >$H/mproj/file"
    must linked sh -c 'cat ~/mproj/file ~/.ssh/id_test; grep :/mnt/home: /etc/passwd'
    output_has token
    cd "$H/mproj"
    for mode in casual bare strict; do
        jail "linked-$mode"
        must linked "$BRIG" -m "$mode" -j "linked-$mode" --mask mproj/secret -- sh -c 'echo $HOME; cat ~/.ssh/id_test secret 2>/dev/null; cat file; echo new >file; echo mine >~/mine; cat ~/mine'
        output_lacks token
        output_has /mnt/home
        output_has real
        output_has mine
        [ "$(cat "$H/mproj/file")" = new ]
        [ ! -e "$H/mine" ]
        run_as_user sh -c 'echo real >file'
        # By the name of the link as by the real one.
        must linked "$BRIG" -m "$mode" -j "linked-$mode" -D -d /mnt/home/mproj --mask mproj/secret -- sh -c 'cat ~/mproj/secret 2>/dev/null; echo new >~/mproj/file'
        output_lacks token
        [ "$(cat "$H/mproj/file")" = new ]
        run_as_user sh -c 'echo real >file'
        must linked "$BRIG" -u -j "linked-$mode"
        linked "$BRIG" rm "linked-$mode" >/dev/null 2>&1 || true
    done
}

@test "root lists jails with the rights of their user" {
    lib_is_root || cannot "this is about root"
    jail listed
    local secret=/var/lib/brigtest.secret.$BASHPID
    mkdir -m 0700 "$secret"
    LIB_SCRATCHES="$LIB_SCRATCHES $secret"
    head -c 300000 /dev/zero >"$secret/large"
    must run_as_user "$BRIG" -m bare -j listed -D -- sh -c 'head -c 200000 /dev/zero >~/file'
    must by_sudo list
    [[ $output =~ listed\ +bare\ +-\ +19[0-9]\.[0-9]K ]] || [[ $output =~ listed\ +bare\ +-\ +20[0-9]\.[0-9]K ]]
    run_as_user ln -s "$secret" "$H/.local/share/brig/listed.changes"
    must by_sudo list
    [[ $output =~ listed\ +bare\ +-\  ]]
    rm "$H/.local/share/brig/listed.changes"
}

@test "as root: what somebody puts in the place of a jail's parts is neither given away nor used" {
    lib_is_root || cannot "only root can give a jail an id of its own"
    local storage=$SCRATCH/store
    run_as_user mkdir -p -m 0700 "$storage"
    # A directory of the user's where the jail's own should be, and a link.
    mkdir -m 0700 "$SCRATCH/victim"
    ln -s "$SCRATCH/victim" "$storage/odd.home"
    must_exit 125 by_sudo -m strict -j odd --storage "$storage" -D -- true
    [ "$(stat -c %U "$SCRATCH/victim")" = root ]
    rm "$storage/odd.home"
    mkdir -m 0700 "$storage/odd.home"
    must_exit 125 by_sudo -m strict -j odd --storage "$storage" -D -- true
    output_has "belongs to uid 0"
    [ "$(stat -c %U "$storage/odd.home")" = root ]
    rmdir "$storage/odd.home"
    must by_sudo -m strict -j odd --storage "$storage" -D -- sh -c 'echo kept >~/kept'
    [ "$(stat -c %U "$storage/odd.home/kept")" = "$LIB_USER" ]
    must by_sudo --storage "$storage" -u
}

@test "removing a jail changes nothing that a link in it points to" {
    jail chmods
    run_as_user mkdir -m 0500 "$SCRATCH/outside"
    must run_as_user "$BRIG" -m bare -j chmods -D -- sh -c "mkdir ~/d; ln -s '$SCRATCH/outside' ~/d/link; mkdir ~/d/none; touch ~/d/none/x; chmod 0 ~/d/none"
    must run_as_user "$BRIG" rm chmods
    [ ! -e "$H/.local/share/brig/chmods.home" ]
    [ "$(stat -c %a "$SCRATCH/outside")" = 500 ]
}

@test "nobody joins a jail from inside another namespace of processes" {
    jail nested
    must run_as_user "$BRIG" -m casual -j nested -- true
    must_exit 125 run_as_user unshare --user --map-current-user --pid --fork --mount-proc "$BRIG" -m casual -j nested -- true
    output_has "cannot be joined from here"
    must run_as_user "$BRIG" -m casual -j nested -- true
}

# ---- what changes are laid over with -----------------------------------------------------------------

# mounted COMMAND…: as the user, with something mounted below the home.
mounted() {
    unshare -m --propagation private sh -c '
        mount -t tmpfs -o "mode=0755,uid=$(id -u "$2"),gid=$(id -g "$2")" none "$1/mmounted" && echo below >"$1/mmounted/file" && chown "$2:" "$1/mmounted/file" && user=$2 && home=$1 && shift 2 &&
        exec setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$home" "$@"' - "$H" "$LIB_USER" "$@"
}

@test "a home with a mount below it is laid over by fuse-overlayfs, and its changes are not mixed with others" {
    lib_is_root || cannot "mounts need root"
    needs fuse-overlayfs
    made mmounted mlive mdir .ssh
    jail fuse
    run_as_user sh -c "mkdir -p $H/mmounted $H/mdir $H/.ssh; echo real >$H/mlive; echo old >$H/mdir/old; echo token >$H/.ssh/id_test"
    must mounted "$BRIG" -m casual -j fuse -- sh -c 'cat ~/mmounted/file ~/mlive; cat ~/.ssh/id_test 2>/dev/null; echo changed >~/mlive; echo changed >~/mmounted/file; rm -r ~/mdir; mkdir ~/mdir; ls -A ~/mdir; touch here; cat ~/mlive'
    output_lacks token
    output_lacks old
    drop_told
    [ "$output" = "below
real
changed" ]
    [ "$(cat "$H/mlive" "$H/mdir/old")" = "real
old" ]
    [ -e here ]
    # The same jail, a second run at the same time and a mask that holds at once.
    rm -f begun go
    mounted "$BRIG" -m casual -j fuse -- sh -c "$AWAIT"'; cat ~/mlive; echo >begun; await_file go; cat ~/mlive ~/mmounted/file >seen 2>/dev/null; true' 3>&- &
    local run=$!
    await_file begun
    must mounted "$BRIG" -m casual -j fuse --mask mmounted -- sh -c 'cat ~/mmounted/file 2>/dev/null; cat ~/mlive'
    [ "$output" = changed ]
    run_as_user touch go
    wait "$run"
    [ "$(cat seen)" = changed ]
    # Alone it is mounted anew, when the old one has ended.
    must mounted "$BRIG" -m casual -j fuse --mask .profile -- sh -c 'cat ~/.profile 2>/dev/null; echo more >~/mmore'
    drop_told
    [ "$output" = "" ]
    must mounted "$BRIG" -m casual -j fuse -- cat "$H/mlive" "$H/mmore"
    [ "$output" = "changed
more" ]
    must mounted "$BRIG" -u -j fuse
    # Without the mount the kernel does it, which does not know the other's marks.
    must run_as_user "$BRIG" -m casual -j fuse -- sh -c 'cat ~/mlive ~/mdir/old'
    output_has real
    output_has old
    output_has "set aside in '$H/.local/share/brig/fuse.changes.aside-1'"
    [ "$(cat "$H/.local/share/brig/fuse.changes.aside-1/mlive")" = changed ]
    must run_as_user "$BRIG" -m casual -j fuse -- true
    output_lacks "set aside"
    must run_as_user "$BRIG" -u -j fuse
}

@test "changes with marks that do not hold are set aside, never deleted" {
    needs python3
    local changes
    jail marks
    changes=$H/.local/share/brig/marks.changes
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'echo first >~/mkept'
    must run_as_user "$BRIG" -u -j marks
    run_as_user python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.opaque", b"y")' "$changes"
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'test ! -e ~/mkept; echo second >~/mkept'
    output_has "set aside in '$changes.aside-1'"
    [ "$(cat "$changes.aside-1/mkept")" = first ]
    must run_as_user "$BRIG" -u -j marks
    # The twin: what fits stays.
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'cat ~/mkept; rm ~/.bashrc 2>/dev/null; true'
    drop_told
    [ "$output" = second ]
    must run_as_user "$BRIG" -u -j marks
    ! lib_is_root || { # as an overlay of root's leaves them
        mknod "$changes/.gone" c 0 0
        must run_as_user "$BRIG" -m casual -j marks -- sh -c 'test ! -e ~/mkept'
        output_has "set aside in '$changes.aside-2'"
        [ "$(cat "$changes.aside-2/mkept")" = second ]
        must run_as_user "$BRIG" -u -j marks
    }
    # Where they are elsewhere by a link, they are set aside there.
    run_as_user mkdir "$SCRATCH/disk"
    run_as_user rm -r "$changes"
    run_as_user ln -s "$SCRATCH/disk" "$changes"
    must run_as_user "$BRIG" -m casual -j marks -- sh -c 'echo third >~/mkept'
    must run_as_user "$BRIG" -u -j marks
    run_as_user python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.redirect", b"x")' "$SCRATCH/disk"
    must run_as_user "$BRIG" -m casual -j marks -- sh -c "test ! -e ~/mkept; ls -A '$SCRATCH/disk.aside-1' '$SCRATCH/disk' 2>/dev/null | grep -v :; true"
    output_has "set aside in '$SCRATCH/disk.aside-1'"
    output_lacks mkept
    [ "$(cat "$SCRATCH/disk.aside-1/mkept")" = third ]
    must run_as_user "$BRIG" -u -j marks
}

@test "a pattern that is spelt as a path hides what it matches in the home, and is refused elsewhere" {
    made mpattern
    jail pattern
    run_as_user sh -c "mkdir -p $H/mpattern; echo token >$H/mpattern/a.key; echo open >$H/mpattern/b"
    must run_as_user "$BRIG" -m casual -j pattern -D -- cat "$H/mpattern/a.key"
    must_fail run_as_user "$BRIG" -m casual -j pattern -D --mask "$H/mpattern/*.key" -- cat "$H/mpattern/a.key"
    output_lacks token
    must run_as_user "$BRIG" -m casual -j pattern -D --mask "$H/mpattern/*.key" -- cat "$H/mpattern/b"
    must_exit 125 run_as_user "$BRIG" -m casual -j pattern -D --mask '/usr/*.key' -- true
    output_has "'/usr/*.key' is a pattern, which only the home directory can have"
    # What is really called so is no pattern.
    run_as_user sh -c "echo token >$H/mpattern/'[x]'"
    run run_as_user "$BRIG" -m casual -j pattern -D --mask "$H/mpattern/[x]" -- cat "$H/mpattern/[x]"
    output_lacks token
}

# ---- what is private and not in the home ---------------------------------------------------------------

@test "mail is hidden, by the name of the spool, by MAIL and in the home" {
    lib_is_root || cannot "only root can deliver mail"
    local pair who mode seen box=/var/mail/$LIB_USER maildir
    [ -d /var/mail ] || cannot "there is no /var/mail"
    made Maildir mmail
    maildir=$SCRATCH/Boxes
    run_as_user mkdir -p "$maildir/new" "$maildir/cur" "$H/mmail/new" "$H/mmail/cur" "$H/Maildir/new"
    run_as_user sh -c "for box; do echo token >\$box; done" - "$maildir/new/1" "$H/mmail/new/1" "$H/Maildir/new/1"
    [ ! -e "$box" ] || cannot "there is a $box"
    LIB_SCRATCHES="$LIB_SCRATCHES $box"
    install -m 600 -o "$LIB_USER" /dev/null "$box"
    echo token >"$box"
    local read="cat $box /var/spool/mail/$LIB_USER $H/mmail/new/1 $H/Maildir/new/1 2>/dev/null; true"
    for pair in $(pairs_of "run_as_user by_sudo" casual bare); do
        who=${pair%:*} mode=${pair#*:}
        jail "mail-$mode-$who"
        local brig=(run_as_user env MAIL="$H/mmail" "$BRIG")
        [ "$who" = run_as_user ] || brig=(env MAIL="$H/mmail" SUDO_UID="$LIB_USER_ID" SUDO_GID="$LIB_USER_GROUP" HOME="$H" "$BRIG")
        must "${brig[@]}" -m "$mode" -j "mail-$mode-$who" -- sh -c "$read; ls -A /var/mail"
        [ -z "$output" ]
        must "${brig[@]}" -m "$mode" -j "mail-$mode-$who" --unmask /var/mail -- cat "$box"
        [ "$output" = token ]
    done
    # The same in what is granted of the host, by whatever name, but not where the spool itself is granted.
    ln -s /var "$SCRATCH/link"
    for mode in "strict -j mail-granted" sealed; do
        for seen in /var /var:/seen "$SCRATCH/link:/seen" "$SCRATCH/link"; do
            must run_as_user "$BRIG" -m $mode -r "$seen" -- sh -c "cat ${seen#*:}/mail/$LIB_USER; test -d ${seen#*:}/lib && echo seen"
            output_lacks token
            output_has seen
        done
        must run_as_user "$BRIG" -m $mode -r /var --unmask /var/mail -- cat "$box"
        [ "$output" = token ]
        must run_as_user "$BRIG" -m $mode -r /var -r /var/mail -- cat "$box"
        [ "$output" = token ]
        must run_as_user "$BRIG" -m $mode -d /var/mail -- cat "$box"
        [ "$output" = token ]
        must run_as_user "$BRIG" -m $mode -r "$box" -- cat "$box"
        [ "$output" = token ]
    done
    jail mail-granted
    # MAIL names a mailbox elsewhere, and does not hide what is none.
    local elsewhere=${BRIG_SCRATCH:-/var/lib}/brigtest.mail.$$
    LIB_SCRATCHES="$LIB_SCRATCHES $elsewhere"
    install -d -o "$LIB_USER" "$elsewhere"
    run_as_user sh -c "echo token >$elsewhere/box"
    jail mail-where
    must run_as_user env MAIL="$elsewhere/box" "$BRIG" -m bare -j mail-where -- cat "$elsewhere/box"
    [ -z "$output" ]
    must run_as_user env MAIL="$elsewhere" "$BRIG" -m bare -j mail-where -- cat "$elsewhere/box"
    [ "$output" = token ]
}

@test "a hidden file that comes and goes is no obstacle to a run" {
    local mode flips
    made .netrc
    run_as_user touch "$SCRATCH/more"
    run_as_user python3 -IS -c '
import os, sys
while os.path.exists(sys.argv[2]):
    open(sys.argv[1], "w").close()
    os.unlink(sys.argv[1])' "$H/.netrc" "$SCRATCH/more" 3>&- &
    flips=$!
    for mode in bare casual; do
        jail "flips-$mode"
        for _ in $(seq "${BRIG_THOROUGH:+1}4"); do
            must run_as_user "$BRIG" -m "$mode" -j "flips-$mode" -- true
        done
    done
    rm "$SCRATCH/more"
    wait "$flips"
}

@test "what cron and at are to run, and the memory of crashed programs, is hidden" {
    lib_is_root || cannot "only root can make such directories"
    cat >"$SCRATCH/spools" <<'END'
set -eu
# Nothing is made that other suites would see.
mkdir "$SCRATCH/var"
mount --bind /var "$SCRATCH/var"
mount -t tmpfs -o mode=755 tmpfs /var
for part in lib tmp; do mkdir "/var/$part"; mount --bind "$SCRATCH/var/$part" "/var/$part"; done
mkdir -p /var/spool/cron/crontabs /var/spool/at /var/crash
mount -t tmpfs -o mode=755 tmpfs /var/lib/systemd
mkdir /var/lib/systemd/coredump
for directory in /var/spool/cron/crontabs /var/spool/at /var/crash /var/lib/systemd/coredump; do
    echo "token of $directory" >"$directory/own"
done
cd "$SCRATCH/project"
. "$LIB_DIR/lib.bash"
files="/var/spool/cron/crontabs/own /var/spool/at/own /var/crash/own /var/lib/systemd/coredump/own"
run_as_user "$BRIG" -m bare -j spools -- sh -c "cat $files 2>/dev/null || echo hidden"
run_as_user "$BRIG" -m bare -j spools --unmask /var/spool/cron --unmask /var/spool/at --unmask /var/crash \
    --unmask /var/lib/systemd/coredump -- cat $files
run_as_user "$BRIG" -u >/dev/null 2>&1
END
    jail spools
    must env SCRATCH="$SCRATCH" LIB_DIR="$LIB_DIR" BRIG="$BRIG" unshare -m --propagation private bash "$SCRATCH/spools"
    [ "$(printf '%s\n' "$output" | head -n 1)" = hidden ]
    [ "$(printf '%s\n' "$output" | grep -c '^token of')" = 4 ]
}
