# SPDX-License-Identifier: MIT
"""More attempts, of the tables in network.c, calls.c, shared.c and endings.c: sockets of desktops, the host's network, calls on
groups of processes, things left behind, and not ending in time. Their effects are here too."""

import ctypes
import os
import shutil
import socket
import time

import effects
from rows import OUTSIDE, ROOT, Row, Twin

N, S, L = "namespaces", "seccomp", "landlock"
READ = ("host:" + N,)
X11_DIR = "/tmp/.X11-unix"
RUNTIME_DIR = "/run/user/1900000000"
NICE_OF_GROUP = 7
IPC_RMID = 0
SHARED_NETWORK = ("--net", "host")
LINGER = Twin("linger")
libc = ctypes.CDLL(None, use_errno=True)

# ---- servers that listen while an attempt runs ----

listeners = {}


def _x11(world):
    """Each half of the suite has a display of its own; network.c reckons likewise."""
    return f"{X11_DIR}/X{1000 + world.ipc_key % 50000}"


def _bind(sock, address):
    if address[0] == "\0":
        sock.bind(address)
        return
    for left in reversed(range(500)):  # the other half may be removing the directory
        try:
            os.makedirs(os.path.dirname(address), exist_ok=True)
            if os.stat(os.path.dirname(address)).st_uid == os.geteuid():
                os.chmod(os.path.dirname(address), 0o1777)
            sock.bind(address)
            os.chmod(address, 0o777)
            return
        except OSError:
            if left == 0:
                raise
            time.sleep(0.01)


def _listen(name, address, kind=socket.SOCK_STREAM):
    _close(name)
    sock = socket.socket(socket.AF_UNIX, kind)
    _bind(sock, address)
    if kind == socket.SOCK_STREAM:
        sock.listen(4)
    sock.setblocking(False)
    listeners[name] = sock


def _close(name):
    sock = listeners.pop(name, None)
    if sock is None:
        return
    address = sock.getsockname()
    sock.close()
    if isinstance(address, str) and address.startswith("/"):
        os.unlink(address)
        try:
            os.rmdir(os.path.dirname(address))
        except OSError:
            pass  # others have sockets there


def _came(name):
    """Whether somebody connected or sent; the server is closed."""
    sock = listeners.get(name)
    try:
        if sock is None:
            return False
        if sock.type == socket.SOCK_STREAM:
            sock.accept()[0].close()
        else:
            sock.recv(100)
        return True
    except BlockingIOError:
        return False
    finally:
        _close(name)


def b_listen_x11(world, _run):
    _listen("x11", _x11(world))


def b_listen_x11_abstract(world, _run):
    _listen("x11-abstract", "\0" + _x11(world))


def b_listen_datagram(world, _run):
    _listen("datagram", "\0" + _x11(world) + ".log", socket.SOCK_DGRAM)


def b_listen_runtime(world, _run):
    _listen("runtime", f"{RUNTIME_DIR}/{world.ipc_name}")
    os.chmod(RUNTIME_DIR, 0o755)


def b_came_x11(_world, _run):
    return _came("x11")


def b_came_x11_abstract(_world, _run):
    return _came("x11-abstract")


def b_came_datagram(_world, _run):
    return _came("datagram")


def b_came_runtime(_world, _run):
    came = _came("runtime")
    shutil.rmtree(RUNTIME_DIR, ignore_errors=True)
    return came


def b_connect(world, run):
    with socket.socket() as sock:
        sock.settimeout(1)
        run.b_connected = sock.connect_ex(("127.0.0.1", 20000 + world.ipc_key % 10000)) == 0


def b_connected(_world, run):
    return run.b_connected


def b_touch(world, _run):
    with open(f"{world.outside}/secret") as file:
        file.read()


# ---- processes ----


def b_look_at_priority(_world, run):
    run.b_nice = os.getpriority(os.PRIO_PROCESS, run.pid)


def b_priority_of_caller(_world, run):
    return run.b_nice == NICE_OF_GROUP


# ---- what is left ----


def _left(get, control, world, *more):
    number = get(world.ipc_key + 1, *more, 0)
    if number < 0:
        return False
    control(number, *(0,) * (control is libc.semctl), IPC_RMID, None)
    return True


def b_memory_left(world, _run):
    return _left(libc.shmget, libc.shmctl, world, ctypes.c_size_t(0))


def b_semaphore_left(world, _run):
    return _left(libc.semget, libc.semctl, world, 0)


def b_sysv_queue_left(world, _run):
    return _left(libc.msgget, libc.msgctl, world)


def b_posix_queue_left(world, _run):
    return libc.mq_unlink(f"/{world.ipc_name}.left".encode()) == 0


def b_posix_memory_left(world, _run):
    path = f"/dev/shm/{world.ipc_name}.left"
    if not os.path.exists(path):
        return False
    os.unlink(path)
    return True


for _name, _function in list(globals().items()):
    if _name.startswith("b_"):
        setattr(effects, _name, _function)

TIMED = {"options": ("--timeout", "200ms", "--grace", "50ms"), "statuses": (124,)}
SHORT_OF_CPU = {"options": ("--cpu-time", "300ms", "--grace", "50ms"), "statuses": (124, 137), "whole": True}

THEMES = {
    "sockets": [
        Row("x11-path", "connect to X in /tmp", "b_came_x11", during="b_listen_x11", open=(N + "<9",)),
        Row("x11-abstract", "connect to X by its abstract name", "b_came_x11_abstract",
            during="b_listen_x11_abstract", open=(N + "<6",)),
        Row("x11-abstract-shared-network", "the same where the host's network is shared", "b_came_x11_abstract",
            OUTSIDE, SHARED_NETWORK, during="b_listen_x11_abstract", open=(L,), needs=("abi6",)),
        Row("datagram-abstract", "send to an abstract socket of the host", "b_came_datagram",
            during="b_listen_datagram", open=(N + "<6",)),
        Row("datagram-abstract-shared-network", "the same where the host's network is shared", "b_came_datagram",
            OUTSIDE, SHARED_NETWORK, during="b_listen_datagram", open=(L,), needs=("abi6",)),
        Row("runtime-socket", "connect to a socket in a runtime directory (D-Bus', Wayland's)", "b_came_runtime",
            during="b_listen_runtime", open=(N + "<9",), who=("root",)),
        Row("listen-for-host", "be connected to from the host", "b_connected",
            Twin("jail", ("--net", "host", "--seccomp", "dev")), during="b_connect", open=("host:" + N,)),
        Row("see-interfaces", "see the host's network interfaces", open=(N,)),
        Row("see-connections", "see the host's connections", open=(N,)),
        Row("netlink-audit", "open the audit's netlink", open=(S,)),
        Row("odd-families", "open a socket of a rare family", open=(S,)),
    ],
    "the kernel": [
        Row("io-uring-rest", "io_uring_enter and io_uring_register", twin=ROOT, open=(S,)),
        Row("add-key", "add_key", open=(S,)),
        Row("hardware-switches", "open switches of the hardware in /proc for writing", twin=ROOT),
        Row("memory-layout", "read how the kernel's memory is laid out", twin=ROOT),
        Row("key-users", "read who has keys", open=(N,)),
        Row("tioclinux-high-bits", "TIOCLINUX with bits above the request", "answer", ROOT, terminal=True),
    ],
    "processes outside": [
        Row("move-pages-outsider", "look at a process's pages by move_pages"),
        Row("affinity-of-outsider", "ask for its CPUs", open=(N,)),
        Row("priority-of-outsider", "lower its priority", "reniced", open=(N,)),
        Row("priority-of-group", "lower the priority of the group brig was started in", "b_priority_of_caller",
            during="b_look_at_priority"),
        Row("signal-group", "stop the group brig was started in by kill(0)", "output:the caller was stopped",
            Twin("caller", arguments=("stop-group",)), caller=True, **TIMED),
    ],
    "shared memory, queues and keys": [
        Row("leave-sysv-memory", "leave System V memory behind", "b_memory_left", open=READ),
        Row("leave-sysv-semaphore", "leave a System V semaphore behind", "b_semaphore_left", open=READ),
        Row("leave-sysv-queue", "leave a System V queue behind", "b_sysv_queue_left", open=READ),
        Row("leave-posix-queue", "leave a POSIX queue behind", "b_posix_queue_left", open=READ),
        Row("leave-posix-memory", "leave a file in the host's /dev/shm", "b_posix_memory_left"),
        Row("watch-outside", "watch a directory outside by inotify", open=(N,), during="b_touch"),
    ],
    "outliving the end": [
        Row("exec-storm", "outrun the timeout by exec", "still_alive", LINGER, **TIMED),
        Row("daemon-storm", "outrun it by daemons that fork", "still_alive", LINGER, **TIMED),
        Row("cpu-tree", "use too much CPU time by a tree of processes", "still_alive", LINGER, **SHORT_OF_CPU),
        Row("cpu-crumbs", "use it by many that end at once", "still_alive", LINGER, **SHORT_OF_CPU),
    ],
}

ROWS = [Row(**{**row.__dict__, "theme": theme}) for theme, rows in THEMES.items() for row in rows]
