#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What one run leaves in a granted directory must not trick the next: symlinks where grants, masks
# and the working directory are looked up; and directories that are never granted by being in them.

load lib

setup() {
    scratch_make user
    cd "$SCRATCH" || return
    run_as_user mkdir outside work work/real
    run_as_user sh -c 'echo secret >outside/key'
    cd work || return
}

teardown() {
    cd /
    scratch_remove
}

@test "a planted symlink is not followed by a grant below the working directory" {
    must run_as_user "$BRIG" -m sealed -- ln -s "$SCRATCH/outside" sub
    for option in --dir --rdir; do
        must_exit 125 run_as_user "$BRIG" -m sealed "$option" sub -- cat sub/key
        output_has "symbolic link"
        must_exit 125 run_as_user "$BRIG" -m sealed "$option" sub:/data -- cat /data/key
        must run_as_user "$BRIG" -m sealed "$option" real -- test -d real
    done
    # Named itself, by the user, it is granted.
    must run_as_user "$BRIG" -m sealed --rdir "$SCRATCH/outside" -- cat "$SCRATCH/outside/key"
    output_has secret
}

@test "a grant of what does not exist is refused in words, skipped or made, as asked" {
    must_exit 125 run_as_user "$BRIG" -m sealed --rdir "$SCRATCH/missing" -- true
    output_has "cannot grant '$SCRATCH/missing'"
    output_has "No such file"
    must run_as_user "$BRIG" -m sealed --rdir? "$SCRATCH/missing" -- echo skipped
    output_has skipped
    must run_as_user "$BRIG" -m sealed --dir! "$SCRATCH/missing/deep" -- touch "$SCRATCH/missing/deep/made"
    [ -e "$SCRATCH/missing/deep/made" ]
}

@test "nor by one above the directory that is granted" {
    must run_as_user "$BRIG" -m sealed -- sh -c "ln -s '$SCRATCH' up"
    must_exit 125 run_as_user "$BRIG" -m sealed --rdir up/outside -- cat up/outside/key
    must_exit 125 run_as_user "$BRIG" -m sealed --dir! up/new -- true
    [ ! -e "$SCRATCH/new" ]
}

@test "the host's processes are not granted under another name" {
    must_exit 125 run_as_user "$BRIG" -m sealed --nocwd --rdir /proc/self:/data -- ls /data
    run_as_user ln -s /proc "$SCRATCH/procs"
    must_exit 125 run_as_user "$BRIG" -m sealed --nocwd --rdir "$SCRATCH/procs:/data" -- ls /data
    output_has "/proc"
}

@test "a mask of what is not there is a slip, unless it is said to be for later" {
    run_as_user sh -c 'echo secret >.env'
    must_exit 125 run_as_user "$BRIG" -m sealed --mask ./.evn -- cat .env
    output_has ".evn"
    output_lacks secret
    must run_as_user "$BRIG" -m sealed --mask? ./.evn -- cat .env
    # What the view does not show at all need not be there.
    must run_as_user "$BRIG" -m sealed --mask "$SCRATCH/elsewhere" -- true
}

@test "a program of the caller's that the jail lacks is told apart" {
    run_as_user sh -c 'mkdir ../bin; printf "#!/bin/sh\necho mine\n" >../bin/mytool; chmod +x ../bin/mytool'
    must_exit 127 run_as_user env PATH="$SCRATCH/bin:$PATH" "$BRIG" -m sealed mytool
    output_has "-r '$SCRATCH/bin'"
    must run_as_user env PATH="$SCRATCH/bin:$PATH" "$BRIG" -m sealed -r "$SCRATCH/bin" mytool
    output_has mine
}

@test "a masked symlink hides itself and what it points to in the grant" {
    run_as_user sh -c 'echo secret >real/env; ln -s real/env .env'
    must run_as_user "$BRIG" -m sealed -- cat .env
    output_has secret
    run run_as_user "$BRIG" -m sealed --mask ./.env -- sh -c 'cat .env real/env; rm -f .env; cat .env'
    output_lacks secret
    # One that leads elsewhere does not have something else hidden in its place.
    run_as_user ln -sfn /usr/bin tools
    must run_as_user "$BRIG" -m sealed --mask ./tools -- sh -c 'test -x /usr/bin/env'
}

@test "a working directory behind a planted symlink stays in the jail" {
    run_as_user ln -s "/..$SCRATCH/outside" sub
    for _ in $(seq "${BRIG_THOROUGH:+4}5"); do
        run run_as_user "$BRIG" -m sealed --workdir "$PWD/sub" -- sh -c 'cat key; cat ../outside/key'
        output_lacks secret
    done
    must run_as_user "$BRIG" -m sealed --workdir "$PWD/real" -- pwd
    output_has "$PWD/real"
}

@test "directories of the system are not granted for being the working directory" {
    for directory in /etc /usr/share /tmp /var; do
        cd "$directory"
        must_exit 125 run_as_user "$BRIG" -m sealed -- true
        output_has "is not granted"
        must run_as_user "$BRIG" -m sealed --nocwd -- true
    done
    cd /tmp
    must run_as_user "$BRIG" -m sealed --dir /tmp -- true
}

@test "what is granted below a private directory is there by all its names" {
    local a=${SCRATCH##*/}.a b=${SCRATCH##*/}.b
    must run_as_user "$BRIG" -m sealed --nocwd --rdir "$SCRATCH/outside:/dev/shm/$a" \
        --rdir "$SCRATCH/outside:/var/tmp/$b" -- cat "/dev/shm/$a/key" "/run/shm/$a/key" "/tmp/$b/key"
    [ "$(grep -c secret <<<"$output")" = 3 ]
    [ ! -e "/dev/shm/$a" ]
}

@test "all sockets that the host has are hidden in a view of it, however many there are" {
    mkdir "$SCRATCH/s"
    python3 -c 'if True:
        import signal, socket, sys
        sockets = [socket.socket(socket.AF_UNIX) for i in range(400)]
        for i, one in enumerate(sockets):
            one.bind(f"{sys.argv[1]}/s/{i}")
            one.listen()
        open(f"{sys.argv[1]}/up", "w").close()
        signal.pause()' "$SCRATCH" 3>&- &
    local job=$!
    await_file "$SCRATCH/up"
    chmod 777 "$SCRATCH"/s/*
    run run_as_user "$BRIG" -m sealed --view host -D -- python3 -c 'if True:
        import socket, sys
        connected = 400
        for i in range(400):
            try:
                socket.socket(socket.AF_UNIX).connect(f"{sys.argv[1]}/s/{i}")
            except OSError:
                connected -= 1
        print("connected to", connected)' "$SCRATCH"
    [ "${lines[-1]}" = "connected to 0" ]
    run python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$SCRATCH/s/399"
    kill "$job"
    [ "$status" -eq 0 ] # the sockets were still there
}
