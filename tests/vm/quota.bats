#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The disk limit of a home on a filesystem with project quotas. Run by root in a virtual machine, as
# not every kernel has such; see tests/suites.py.
# shellcheck disable=SC2154,SC2016 # status and output are set by `run`; programs are single-quoted

load ../e2e/lib

setup() {
    scratch_make root
    cd "$SCRATCH" || return
    truncate -s 256M image
    mkfs.ext4 -q -O quota,project -E quotatype=prjquota,root_owner="$(id -u "$LIB_USER"):$(id -g "$LIB_USER")" image
    mkdir disk
    mount -o loop,prjquota image disk || cannot "this kernel has no project quotas"
    mkdir disk/work disk/store
    chown "$LIB_USER" disk/work disk/store
    chmod 0777 disk/work
    cd disk/work || return
}

is_unmounted() {
    ! mountpoint -q disk || umount disk 2>/dev/null
}

teardown() {
    for who in root sudo user; do
        by "$who" -u >/dev/null 2>&1 || true
    done
    cd "$SCRATCH" || return
    await is_unmounted
    cd /
    scratch_remove
}

# by WHO ARGS…: as an ordinary user (user), as root for that user (sudo), as root (root).
by() {
    local who=$1
    shift
    case $who in
    user) BRIG_CONFIG_DIR=$SCRATCH/disk/store run_as_user "$BRIG" "$@" ;;
    sudo)
        env SUDO_UID="$(id -u "$LIB_USER")" SUDO_GID="$(id -g "$LIB_USER")" SUDO_USER="$LIB_USER" \
            HOME="$LIB_USER_HOME" BRIG_CONFIG_DIR="$SCRATCH/disk/store" "$BRIG" "$@"
        ;;
    root) BRIG_CONFIG_DIR=$SCRATCH/disk/root-store as root "$BRIG" "$@" ;;
    esac
}

fill='dd if=/dev/zero of=$HOME/$0 bs=1M count=$1 status=none'

@test "a home is full by bytes and by files, and is not where it was not asked for" {
    # Root's own home, for a casual jail, is not on a disk here and cannot be id-mapped.
    for pair in root:bare sudo:casual sudo:strict; do
        who=${pair%:*} mode=${pair#*:}
        echo "$who, $mode" >&2
        jail=(by "$who" -m "$mode" -j "quota-$mode" -D)
        # What is there before the first limit counts as well.
        must "${jail[@]}" -- sh -c "mkdir -p ~/deep/er; $fill" deep/er/old 6
        must_fail "${jail[@]}" --disk 8M -- sh -c "$fill" new 4
        output_has 'quota exceeded'
        must "${jail[@]}" --disk 16M -- sh -c "$fill; rm -r ~/new ~/deep" new 4
        must_fail "${jail[@]}" --disk-inodes 50 -- sh -c 'mkdir ~/d; for i in $(seq 100); do : >~/d/$i || exit 3; done'
        must "${jail[@]}" -- sh -c 'rm -r ~/d; mkdir ~/d; for i in $(seq 100); do : >~/d/$i || exit 3; done'
        must "${jail[@]}" -- sh -c "$fill; rm ~/new" new 30
        must by "$who" stop "quota-$mode"
    done
}

# bats test_tags=quick
@test "nothing in a jail leaves its project" {
    must by sudo -m bare -j project -D --disk 8M -- python3 -c '
import fcntl, os, struct, sys
os.chdir(os.environ["HOME"])
fd = os.open(".", os.O_RDONLY)
got = bytearray(28)
fcntl.ioctl(fd, 0x801c581f, got) # FS_IOC_FSGETXATTR
flags, size, extents, project, cow = struct.unpack("5I", got[:20])
assert project != 0 and flags & 0x200, (project, flags)
for wish in (struct.pack("5I8x", flags & ~0x200, 0, 0, project, 0), struct.pack("5I8x", flags, 0, 0, 0, 0)):
    try:
        fcntl.ioctl(fd, 0x401c5820, wish) # FS_IOC_FSSETXATTR
        sys.exit("it left")
    except OSError as error:
        print("refused:", error.strerror)'
    output_has refused
    must_fail by sudo -m bare -j project -D --disk 8M -- sh -c "$fill" new 16
}

# bats test_tags=quick
@test "a user has the limit that root has set, and is told where there is none" {
    must_exit 125 by user -m bare -j mine -D --disk 8M -- true
    output_has "the jail's home is on disk"
    must by sudo -m bare -j mine -D --disk 8M -- true
    must_fail by user -m bare -j mine -D --disk 8M -- sh -c "$fill" new 16
    output_has 'quota exceeded'
    must_exit 125 by user -m bare -j mine -D --disk 4M -- true
    output_has "the jail's home is on disk"
}

@test "a directory that is somebody's project stays it" {
    must by sudo -m bare -j theirs -D -- true
    must by sudo stop theirs
    python3 - "$SCRATCH/disk/store/theirs.home" << 'END'
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(fd, 0x401c5820, struct.pack("5I8x", 0x200, 0, 0, 77, 0))
END
    must_exit 125 by sudo -m bare -j theirs -D --disk 8M -- true
    output_has 'disk limit cannot be enforced here'
}
