#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# brig doctor: one line for each thing probed, one remedy, and an exit status that can be trusted.

load lib

setup() {
    [ -x "$WITHOUT" ] || cannot "no $WITHOUT: build the test tools"
}

@test "the doctor finds a full jail where one works" {
    for who in $(each_user); do
        must as "$who" "$BRIG" doctor
        [ "${lines[-1]}" = "A full jail works." ]
        output_has "user namespaces"
        output_has "Landlock"
        output_lacks MISSING
    done
}

@test "the doctor agrees with a run" {
    for who in $(each_user); do
        run as "$who" "$BRIG" doctor
        local verdict=$status
        run as "$who" "$BRIG" run --mode sealed --nocwd -- /bin/true
        if [ "$verdict" -eq 0 ]; then
            [ "$status" -eq 0 ]
        else
            [ "$status" -ne 0 ]
        fi
    done
}

@test "every line is aligned and short" {
    must as user "$BRIG" doctor
    # A mark, a label, a meaning; the labels' column is the same on every line of a probe.
    run sh -c 'printf "%s\n" "$1" | sed "/^\$/,\$d" | grep -vE "^(ok     |limited|MISSING|       ) "' - "$output"
    [ -z "$output" ]
}

@test "without user namespaces the doctor says so, with one remedy, and exits 1" {
    must_exit 1 run_as_user "$WITHOUT" userns -- "$BRIG" doctor
    output_has "MISSING  user namespaces"
    output_has "-> "
    output_has "needs user namespaces"
    output_has "No full jail works."
}

@test "without user namespaces and Landlock only limits are left" {
    must_exit 1 run_as_user "$WITHOUT" userns,landlock -- "$BRIG" doctor
    output_has "limits only"
}

@test "without the mount API the doctor names it" {
    must_exit 1 run_as_user "$WITHOUT" mountapi -- "$BRIG" doctor
    output_has "MISSING  new mount API"
    output_has "MISSING  mount_setattr"
}

@test "without clone3 a full jail works all the same" {
    must run_as_user "$WITHOUT" clone3 -- "$BRIG" doctor
    output_has "limited  clone3"
}

@test "the JSON is one object that says the same" {
    needs python3
    run run_as_user "$BRIG" doctor --json
    [ "$status" -eq 0 ]
    python3 -c '
import json, sys
report = json.loads(sys.argv[1])
assert report["full_jail"] is True and report["rung"] == "full" and report["error"] is None
ids = [check["id"] for check in report["checks"]]
assert len(ids) == len(set(ids)) and {"userns", "landlock", "proc", "cgroup"} <= set(ids)
for check in report["checks"]:
    assert check["state"] in ("ok", "limited", "missing"), check
    assert check["label"] and check["meaning"], check
    assert check["state"] != "ok" or check["remedy"] is None, check
' "$output"
    run run_as_user "$WITHOUT" userns -- "$BRIG" doctor --json
    [ "$status" -eq 1 ]
    python3 -c '
import json, sys
report = json.loads(sys.argv[1])
assert report["full_jail"] is False and report["rung"] == "landlock" and report["error"]
assert report["unenforced"]
' "$output"
}

@test "the doctor leaves nothing behind" {
    local home before
    home=$(lib_is_root && echo "$LIB_USER_HOME" || echo "$HOME")
    # But for what suites beside this one make.
    before=$(ls -A -I 'brigtest.*' "$home" | wc -l)
    run run_as_user "$BRIG" doctor
    [ "$(ls -A -I 'brigtest.*' "$home" | wc -l)" -eq "$before" ]
}

@test "words the doctor does not know are refused" {
    must_exit 125 "$BRIG" doctor --nonsense
    output_has "brig run doctor"
    must_exit 125 "$BRIG" doctor --json more
}

@test "setup is refused to users with the command to type, and a dry run is not" {
    must_exit 125 run_as_user "$BRIG" setup
    output_has "only root can do"
    output_has "sudo "
    must_exit 125 run_as_user "$BRIG" setup --revert
    output_has "setup --revert, or brig setup --revert --dry-run"
    must run_as_user "$BRIG" setup --dry-run
    must_exit 125 run_as_user "$BRIG" setup --nonsense
}

# In a user namespace with a sysctl and directories of its own.
@test "where a sysctl refuses user namespaces the doctor names it, and setup opens it and closes it again" {
    must run_as_user unshare --user --map-root-user --mount true || cannot "unshare makes no user namespace"
    must run_as_user unshare --user --map-root-user --mount sh -ec '
        mount -t tmpfs tmpfs /mnt && cp "$1" /mnt/brig && brig=/mnt/brig # the tests may be in /var/lib
        mount -t tmpfs tmpfs /etc/sysctl.d && mount -t tmpfs tmpfs /var/lib && cd /
        echo 0 > /proc/sys/user/max_user_namespaces
        echo "== closed"; ! "$brig" doctor; ! "$brig" -m sealed --nocwd -- echo ran
        echo "== setup"; "$brig" setup; cat /proc/sys/user/max_user_namespaces /etc/sysctl.d/*
        echo "== open"; "$brig" -m sealed --nocwd -- echo ran in a jail
        echo "== revert"; "$brig" setup --revert; cat /proc/sys/user/max_user_namespaces; ls -A /etc/sysctl.d /var/lib/brig
        echo "== again"; ! "$brig" -m sealed --nocwd -- echo ran' - "$BRIG"
    local closed=${output%%== setup*} setup=${output#*== setup} open revert
    open=${setup#*== open} revert=${setup#*== revert}
    [[ $closed == *'(user.max_user_namespaces is 0)'*"-> sudo /mnt/brig setup"* ]]
    [[ ${setup%%== open*} == *'set user.max_user_namespaces from 0 to 65536'*$'\n65536\n'*'user.max_user_namespaces = 65536'* ]]
    [[ ${open%%== revert*} == *'ran in a jail'* ]]
    [[ ${revert%%== again*} == *'remove /etc/sysctl.d/60-brig-user.max_user_namespaces.conf'*$'\n0\n'* ]]
    [[ ${revert#*== again} == *'user.max_user_namespaces is 0'* ]]
}
