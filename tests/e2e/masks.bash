# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the suites about masks share. A suite loads it with `load masks`.

load lib

setup() {
    JAILS=
    scratch_make user
    run_as_user mkdir "$SCRATCH/project"
    cd "$SCRATCH/project" || return
    if lib_is_root; then
        H=$LIB_USER_HOME
    else
        H=$HOME
    fi
    MADE=
}

teardown() {
    local name jails=()
    for name in $JAILS; do
        ! compgen -G "$H/.local/share/brig/$name.*" >/dev/null || jails+=("$name")
    done
    remove_jails "${jails[@]}" -- run_as_user "$BRIG"
    cd /
    rm -rf -- "$H"/.local/share/brig/*.aside-*
    for name in $MADE; do
        rm -rf -- "${H:?}/$name"
    done
    scratch_remove
}

# jail NAME: to be stopped and removed in the end.
jail() {
    JAILS="$JAILS $1"
}

# made NAME…: of the home, to be removed in the end.
made() {
    MADE="$MADE $*"
}

# by_sudo ARGS…: brig as root for the user.
by_sudo() {
    env SUDO_UID="$LIB_USER_ID" SUDO_GID="$LIB_USER_GROUP" SUDO_USER="$LIB_USER" \
        HOME="$H" "$BRIG" "$@"
}
