# SPDX-License-Identifier: MIT
"""A disk whose writes and flushes are logged in order, so that it can be had as a power loss at any moment leaves it.

The disk is a file of a FUSE filesystem that this module serves, below a loop device: each block that the filesystem on it
writes is one request, and each flush (barrier) another. Needs root, /dev/fuse and loop devices.
"""

import ctypes
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import wait_for

LOOKUP_NEVER = 3600  # seconds for which the kernel may keep what it knows of the file
BLOCK = 4096
MAX_WRITE = 1 << 20

IN = struct.Struct("=IIQQIIIHH")
OUT = struct.Struct("=IiQ")
ATTR = struct.Struct("=QQQQQQIIIIIIIIII")
RECORD = struct.Struct("=IQ")  # the length of a write, and where; length 0: a flush

GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT = 3, 4, 14, 15, 16, 18, 20, 25, 26
FORGET, DESTROY, BATCH_FORGET = 2, 38, 42
WITHOUT_ANSWER = (FORGET, BATCH_FORGET)
ENOSYS = 38
PR_SET_PDEATHSIG = 1


class Server:
    """Answers the kernel's requests about the one file of the filesystem: its root."""

    def __init__(self, device, image, log, size):
        self.device, self.image, self.log, self.size = device, image, log, size

    def attributes(self):
        return struct.pack("=QII", LOOKUP_NEVER, 0, 0) + ATTR.pack(
            1, self.size, self.size // 512, 0, 0, 0, 0, 0, 0, 0o100600, 1, 0, 0, 0, BLOCK, 0)

    def answer(self, opcode, body):
        if opcode == INIT:
            _, minor, readahead, _ = struct.unpack_from("=IIII", body)
            big_writes, max_pages = 1 << 5, 1 << 22
            return struct.pack("=IIIIHHIIHHI28x", 7, min(minor, 31), readahead, big_writes | max_pages, 16, 12, MAX_WRITE, 1,
                               MAX_WRITE // BLOCK, 0, 0)
        if opcode in (GETATTR, SETATTR):
            return self.attributes()
        if opcode == OPEN:
            return struct.pack("=QII", 1, 0, 0)
        if opcode == READ:
            _, offset, size = struct.unpack_from("=QQI", body)
            return os.pread(self.image, size, offset)
        if opcode == WRITE:
            _, offset, size = struct.unpack_from("=QQI", body)
            data = body[40:40 + size]
            os.write(self.log, RECORD.pack(size, offset) + data)
            os.pwrite(self.image, data, offset)
            return struct.pack("=II", size, 0)
        if opcode == FSYNC:
            os.write(self.log, RECORD.pack(0, 0))
            return b""
        return b"" if opcode in (RELEASE, FLUSH, DESTROY) else None

    def serve(self):
        while True:
            try:
                request = os.read(self.device, MAX_WRITE + BLOCK)
            except OSError:  # it was unmounted
                return
            _, opcode, unique, *_ = IN.unpack_from(request)
            if opcode in WITHOUT_ANSWER:
                continue
            body = self.answer(opcode, request[IN.size:])
            error, body = (-ENOSYS, b"") if body is None else (0, body)
            os.write(self.device, OUT.pack(OUT.size + len(body), error, unique) + body)


def copy_sparse(source, target, size):
    at = 0
    while at < size:
        try:
            begin = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # no more data
            break
        at = os.lseek(source, begin, os.SEEK_HOLE)
        os.lseek(source, begin, os.SEEK_SET)
        os.lseek(target, begin, os.SEEK_SET)
        while begin < at:
            begin += os.sendfile(target, source, None, at - begin)
    os.ftruncate(target, size)


def command(*words, **options):
    return subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


class Disk:
    """A filesystem of the given kind at `place`, on a disk that is logged."""

    # Renames alone do not make ext4 write what is renamed: programs cannot rely on it elsewhere.
    OPTIONS = {"ext4": "noauto_da_alloc", "xfs": "nouuid", "btrfs": "defaults"}

    MAKE = {"ext4": ["-F", "-I", "256", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"], "xfs": ["-K"], "btrfs": ["-K"]}

    def __init__(self, kind, above, options=None):
        self.size = {"ext4": 64, "btrfs": 128, "xfs": 320}[kind] << 20
        self.kind = kind
        self.place, self.file, self.copy = (os.path.join(above, name) for name in ("disk", "blocks", "copy"))
        self.image, self.log = os.memfd_create("image"), os.memfd_create("log")
        self.server = self.base = self.loop = None
        self.begin = 0
        os.ftruncate(self.image, self.size)
        os.mkdir(self.place)
        with open(self.file, "wb"):
            pass
        self.start()
        command("mkfs." + kind, "-q", *self.MAKE[kind], self.file)
        self.mount(self.file, options or self.OPTIONS[kind])
        os.chmod(self.place, 0o755)

    def start(self):
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        os.set_inheritable(device, True)
        # The filesystem's root is the file: mount(8) waits for no answer.
        command("mount", "-i", "-t", "fuse", "-o", f"fd={device},rootmode=100000,user_id=0,group_id=0,max_read={MAX_WRITE}",
                "disk_log", self.file, pass_fds=[device])
        self.server = os.fork()
        if self.server == 0:
            try:
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                Server(device, self.image, self.log, self.size).serve()
            finally:
                os._exit(0)
        os.close(device)

    def mount(self, file, options):
        # The same device each time, as after a boot, unless another program has taken it.
        if not self.loop or subprocess.run(["losetup", self.loop, file], check=False).returncode != 0:
            self.loop = command("losetup", "--show", "-f", file).stdout.decode().strip()
        command("mount", "-t", self.kind, "-o", options, self.loop, self.place)
        command("losetup", "-d", self.loop)  # when it is unmounted, also by a kill

    def unmount(self):
        command("umount", self.place)
        try:  # the namespaces of ended jails are not gone at once
            backing = f"/sys/block/{os.path.basename(self.loop)}/loop/backing_file"
            wait_for(lambda: not os.path.exists(backing), seconds=10)
        except AssertionError:
            self.loop = None

    def position(self):
        return os.fstat(self.log).st_size

    def mark(self):
        """What is there now is on the disk, whatever happens later."""
        while True:
            command("sync", "-f", self.place)
            self.begin = self.position()
            self.base = os.memfd_create("base")
            copy_sparse(self.image, self.base, self.size)
            if self.position() == self.begin:
                return
            os.close(self.base)

    def records(self, end):
        """Since the mark: (offset, data), or None for a flush."""
        found = []
        if end == self.begin:
            return found
        with mmap.mmap(self.log, end, prot=mmap.PROT_READ) as log:
            at = self.begin
            while at < end:
                size, offset = RECORD.unpack_from(log, at)
                at += RECORD.size
                found.append((offset, log[at:at + size]) if size else None)
                at += size
        return found

    def lose_power(self, records, choose):
        """Mounts the disk as it was after these records. Of each block that was written after the last flush, choose() says
        whether it is there."""
        flushes = [number for number, record in enumerate(records) if record is None]
        safe = flushes[-1] if flushes else 0
        target = os.open(self.copy, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        copy_sparse(self.base, target, self.size)
        for number, record in enumerate(records):
            if record is None:
                continue
            offset, data = record
            for part in range(0, len(data), BLOCK):
                if number < safe or choose():
                    os.pwrite(target, data[part:part + BLOCK], offset + part)
        os.close(target)
        self.mount(self.copy, "nouuid" if self.kind == "xfs" else "defaults")

    def remove(self):
        for words in (["umount", self.place], ["umount", self.file]):
            subprocess.run(words, check=False, stderr=subprocess.DEVNULL)
        if self.server:
            os.waitpid(self.server, 0)
        for fd in (self.image, self.log, self.base):
            if fd is not None:
                os.close(fd)
        for file in (self.file, self.copy):
            if os.path.exists(file):
                os.unlink(file)
        shutil.rmtree(self.place, ignore_errors=True)
