#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What of a desktop session is let in where somebody asks for it: single sockets and their variables,
# and nothing else. Each with its twin without the option.
# shellcheck disable=SC2154 # status and output are set by `run`
# shellcheck disable=SC2016 # what is in single quotes is for the shell in the jail

load lib

setup() {
    needs python3
    scratch_make user
    as user mkdir "$SCRATCH/project" "$SCRATCH/config" "$SCRATCH/run" "$SCRATCH/run/pulse"
    export BRIG_CONFIG_DIR=$SCRATCH/config
    cd "$SCRATCH/project" || return
    if lib_is_root; then HOME_DIR=$LIB_USER_HOME; else HOME_DIR=$HOME; fi
    TMP_DIR=$(as user mktemp -d /tmp/brigtest.XXXXXXXX)
    LISTENER=
    XSOCKET=
}

teardown() {
    local who
    for who in $(everyone); do
        by "$who" -u >/dev/null 2>&1 || true
    done
    [ -z "$LISTENER" ] || kill "$LISTENER" 2>/dev/null || true
    [ -z "$XSOCKET" ] || rm -f "$XSOCKET"
    cd /
    rm -rf "$TMP_DIR"
    scratch_remove
}

# by WHO ARGS…: brig as an ordinary user (user), as root for that user (sudo), with the variables of
# VARIABLES.
by() {
    local who=$1
    shift
    case $who in
    user) run_as_user env "${VARIABLES[@]}" "$BRIG" "$@" ;;
    sudo)
        env "${VARIABLES[@]}" SUDO_UID="$LIB_USER_ID" SUDO_GID="$LIB_USER_GROUP" \
            SUDO_USER="$LIB_USER" HOME="$HOME_DIR" "$BRIG" "$@"
        ;;
    esac
}

# listen PATH…: sockets of the user that say their own name.
listen() {
    [ -z "$LISTENER" ] || kill "$LISTENER"
    rm -f "$SCRATCH/listening"
    as user python3 -IS -c 'import os, select, sys, _socket as socket
sockets = {}
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(16)
    sockets[s.fileno()] = s, path
print(os.getpid(), flush=True)
while True:
    for s, path in map(sockets.get, select.select(list(sockets), [], [])[0]):
        c = s._accept()[0]
        os.write(c, b"hello from " + path.encode() + b"\n")
        os.close(c)' "$@" >"$SCRATCH/listening" 3>&- &
    await test -s "$SCRATCH/listening"
    LISTENER=$(<"$SCRATCH/listening")
}

# Without the module site, and with _socket: to import socket takes longer than the rest of a run.
python=(python3 -IS)
connect='import sys, _socket as socket
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(100).decode(), end="")'

# reaches OPTION PATH: with the option in every mode, as everyone; and not without it.
reaches() {
    local option=$1 path=$2 pair who mode type
    type=$(findmnt -nT "$path" -o FSTYPE)
    for pair in $(pairs_of "$(everyone)" casual bare strict sealed); do
        who=${pair%:*} mode=${pair#*:}
        # In a virtual machine /tmp is not on a disk, and cannot be id-mapped.
        [ "$who $mode $type" != 'sudo strict overlay' ] || continue
        must by "$who" -m "$mode" --seccomp dev "$option" -- "${python[@]}" -c "$connect" "$path"
        output_has "hello from $path"
        output_has "brig: $option opens "
        # Again, where a mount point may have been left behind.
        must by "$who" -m "$mode" --seccomp dev "$option" -- "${python[@]}" -c "$connect" "$path"
        output_has "hello from $path"
        must_fail by "$who" -m "$mode" --seccomp dev -- "${python[@]}" -c "$connect" "$path"
        output_lacks hello
    done
}

# says VARIABLE: its value inside, with the options.
says() {
    local name=$1
    shift
    by user "$@" -- sh -c "printf '%s\n' \"\$$name\"" 2>/dev/null
}

@test "--x11 lets the display and its key in" {
    lib_is_root || [ -w /tmp/.X11-unix ] || cannot "no directory for displays that could be written"
    [ -d /tmp/.X11-unix ] || mkdir -m 1777 /tmp/.X11-unix
    # Displays that nobody has, nor another suite.
    local display=$((1000 + BASHPID % 30000)) none
    while [ -e "/tmp/.X11-unix/X$display" ]; do display=$((display + 1)); done
    none=$((display + 30000))
    XSOCKET=/tmp/.X11-unix/X$display
    listen "$XSOCKET"
    as user sh -c "echo cookie >$SCRATCH/run/authority"
    VARIABLES=(DISPLAY=":$display.0" XAUTHORITY="$SCRATCH/run/authority")
    reaches --x11 "$XSOCKET"
    [ "$(says DISPLAY -m sealed --x11)" = ":$display.0" ]
    [ "$(says XAUTHORITY -m casual --x11)" = "$SCRATCH/run/authority" ]
    [ -z "$(says XAUTHORITY -m casual)" ]
    must by user -m bare --x11 -- sh -c 'cat "$XAUTHORITY"; ! echo x >>"$XAUTHORITY"'
    output_has cookie
    output_has "any program on it can be watched and typed into"
    VARIABLES=(DISPLAY="unix:$display")
    must by user -m sealed --x11 -- true
    VARIABLES=(DISPLAY=":$display" XAUTHORITY="$SCRATCH/none")
    must_exit 125 by user --x11 -- true
    output_has "XAUTHORITY names '$SCRATCH/none'"
    VARIABLES=(DISPLAY=":$none")
    must_exit 125 by user --x11 -- true
    output_has "DISPLAY names '/tmp/.X11-unix/X$none'"
    VARIABLES=(DISPLAY=elsewhere:0)
    must_exit 125 by user --x11 -- true
    output_has "not a display of this machine"
    VARIABLES=(-u DISPLAY)
    must_exit 125 by user --x11 -- true
    output_has "--x11: DISPLAY is not set"
}

@test "--wayland lets one socket of the runtime directory in" {
    listen "$SCRATCH/run/wayland-7" "$SCRATCH/run/other"
    VARIABLES=(XDG_RUNTIME_DIR="$SCRATCH/run" WAYLAND_DISPLAY=wayland-7)
    reaches --wayland "$SCRATCH/run/wayland-7"
    must_fail by user -m casual --wayland -- "${python[@]}" -c "$connect" "$SCRATCH/run/other"
    [ "$(says WAYLAND_DISPLAY -m sealed --wayland)" = wayland-7 ]
    [ "$(says XDG_RUNTIME_DIR -m sealed --wayland)" = "$SCRATCH/run" ]
    VARIABLES=(-u WAYLAND_DISPLAY XDG_RUNTIME_DIR="$SCRATCH/run")
    must_exit 125 by user --wayland -- true
    output_has "WAYLAND_DISPLAY is not set"
    VARIABLES=(XDG_RUNTIME_DIR="$SCRATCH/run" WAYLAND_DISPLAY=wayland-8)
    must_exit 125 by user --wayland -- true
    output_has "WAYLAND_DISPLAY names '$SCRATCH/run/wayland-8'"
}

@test "--audio lets PulseAudio and PipeWire in, whichever there is" {
    listen "$SCRATCH/run/pulse/native" "$SCRATCH/run/pipewire-0"
    VARIABLES=(-u PULSE_SERVER -u PIPEWIRE_REMOTE XDG_RUNTIME_DIR="$SCRATCH/run")
    reaches --audio "$SCRATCH/run/pulse/native"
    must by user -m strict --audio -- "${python[@]}" -c "$connect" "$SCRATCH/run/pipewire-0"
    rm "$SCRATCH/run/pipewire-0"
    must by user -m strict --audio -- "${python[@]}" -c "$connect" "$SCRATCH/run/pulse/native"
    VARIABLES=(PULSE_SERVER="unix:$SCRATCH/run/pulse/native" XDG_RUNTIME_DIR=/nowhere)
    must by user -m strict --audio -- "${python[@]}" -c "$connect" "$SCRATCH/run/pulse/native"
    [ "$(says PULSE_SERVER --audio)" = "unix:$SCRATCH/run/pulse/native" ]
    VARIABLES=(-u XDG_RUNTIME_DIR PULSE_SERVER="unix:$SCRATCH/run/pulse/native")
    must by user -m strict --audio -- "${python[@]}" -c "$connect" "$SCRATCH/run/pulse/native"
    VARIABLES=(-u PULSE_SERVER XDG_RUNTIME_DIR=/nowhere)
    must_exit 125 by user --audio -- true
    output_has "neither pulse/native nor pipewire-0"
}

@test "--ssh-agent lets the agent in" {
    listen "$TMP_DIR/agent.1"
    VARIABLES=(SSH_AUTH_SOCK="$TMP_DIR/agent.1")
    reaches --ssh-agent "$TMP_DIR/agent.1"
    [ "$(says SSH_AUTH_SOCK --ssh-agent)" = "$TMP_DIR/agent.1" ]
    [ -z "$(says SSH_AUTH_SOCK)" ]
    # What is beside it stays outside, and its name is only a mount point.
    as user touch "$TMP_DIR/beside"
    must by user -m casual --ssh-agent -- sh -c 'ls "${SSH_AUTH_SOCK%/*}"; ! rm "$SSH_AUTH_SOCK" 2>/dev/null'
    output_lacks beside
    # A socket in a directory that is masked is let in alone.
    as user mkdir -p "$SCRATCH/masked"
    as user touch "$SCRATCH/masked/id_rsa"
    listen "$SCRATCH/masked/agent"
    VARIABLES=(SSH_AUTH_SOCK="$SCRATCH/masked/agent")
    must by user -m casual -j masked --mask "${SCRATCH#"$HOME_DIR"/}/masked" --ssh-agent -- \
        sh -c 'python3 -IS -c "$1" "$SSH_AUTH_SOCK"; ls "${SSH_AUTH_SOCK%/*}"' - "$connect"
    output_has "hello from"
    output_lacks id_rsa
    VARIABLES=(SSH_AUTH_SOCK=/etc/passwd)
    must_exit 125 by user --ssh-agent -- true
    output_has "SSH_AUTH_SOCK names '/etc/passwd', which is not a socket"
}

@test "--dbus lets the session bus in" {
    listen "$SCRATCH/run/bus"
    VARIABLES=(DBUS_SESSION_BUS_ADDRESS="unix:path=$SCRATCH/ru%6e/bus,guid=1234")
    reaches --dbus "$SCRATCH/run/bus"
    must by user --dbus -- true
    output_has "one can start programs outside"
    [ "$(says DBUS_SESSION_BUS_ADDRESS --dbus)" = "unix:path=$SCRATCH/ru%6e/bus,guid=1234" ]
    [ -z "$(says DBUS_SESSION_BUS_ADDRESS)" ]
    VARIABLES=(DBUS_SESSION_BUS_ADDRESS=unix:abstract=/tmp/dbus)
    must_exit 125 by user --dbus -- true
    output_has "has no unix:path="
    VARIABLES=(-u DBUS_SESSION_BUS_ADDRESS)
    must_exit 125 by user --dbus -- true
    output_has "DBUS_SESSION_BUS_ADDRESS is not set"
}

@test "a single socket can be granted in the jail's runtime directory" {
    listen "$SCRATCH/run/sock"
    local mode inside round
    inside=/run/user/$LIB_USER_ID/brigtest/sock
    VARIABLES=()
    for mode in casual bare strict sealed; do
        for round in first second; do
            echo "$mode, the $round time" >&2
            must by user -m "$mode" --seccomp dev -d "$SCRATCH/run/sock:$inside" -- "${python[@]}" -c "$connect" "$inside"
            output_has hello
        done
        must_fail by user -m "$mode" --seccomp dev -- "${python[@]}" -c "$connect" "$inside"
    done
}

@test "the desktop can be named in files, but not in a project's" {
    listen "$TMP_DIR/agent.1"
    VARIABLES=(SSH_AUTH_SOCK="$TMP_DIR/agent.1")
    echo ssh-agent | as user tee "$SCRATCH/config/default.conf" >/dev/null
    must by user -m bare -- "${python[@]}" -c "$connect" "$TMP_DIR/agent.1"
    output_has hello
    must by user explain
    output_has "read-write  $TMP_DIR/agent.1  [$SCRATCH/config/default.conf:1]"
    must by user why "$TMP_DIR/agent.1"
    output_has "writable      read-write $TMP_DIR/agent.1  [$SCRATCH/config/default.conf:1]"
    rm "$SCRATCH/config/default.conf"
    echo ssh-agent >.brig.conf
    must_exit 125 by user -m bare -- true
    output_has "may only narrow"
}

@test "root does not let in what the user could not reach" {
    lib_is_root || cannot "only root can act for somebody"
    local secret=$SCRATCH/roots
    mkdir -m 0700 "$secret"
    as root python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$secret/agent"
    VARIABLES=(SSH_AUTH_SOCK="$secret/agent")
    must_exit 125 by sudo --ssh-agent -- true
    output_has "SSH_AUTH_SOCK names"
}

@test "--gpg-agent signs commits, and no private key is inside" {
    needs gpg gpgconf git
    local mode where='"$HOME" '$HOME_DIR' "$PWD" /tmp /var/tmp /dev /run'
    # A key could only be in what is the user's or the jail's. The whole of the host has a great many files.
    [ -z "${BRIG_THOROUGH:-}" ] || where=/
    lib_is_root || cannot "it would use your own keys"
    as user gpg --batch --quiet --passphrase '' --quick-gen-key 'Me <me@example.com>' ed25519 sign
    as user git init -q "$SCRATCH/signed"
    cd "$SCRATCH/signed"
    as user git config user.name Me
    as user git config user.email me@example.com
    as user git config user.signingkey me@example.com
    for mode in casual bare strict sealed; do
        must by user -m "$mode" -j "gpg-$mode" --gpg-agent -- sh -c '
            echo "$1" >file; git add file; git commit -q -S -m "$1"
            gpg --batch --export-secret-keys; find '"$where"' -name "*.key" -path "*private-keys*" 2>/dev/null; true' - "$mode"
        output_lacks private-keys
        output_lacks "BEGIN PGP PRIVATE"
        [ "$(as user git log -1 --format='%s %G?')" = "$mode G" ]
        # The twin: without it there is no key to sign with.
        must_fail by user -m "$mode" -j "gpg-$mode" -- git commit -q --allow-empty -S -m none
    done
    # Outside, the agent gives the key to its owner.
    must as user gpg --batch --armor --export-secret-keys
    output_has "BEGIN PGP PRIVATE"
    as user gpgconf --kill gpg-agent
    rm -rf "$HOME_DIR/.gnupg"
}
