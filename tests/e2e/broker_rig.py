# SPDX-License-Identifier: MIT
"""What tests/e2e/broker needs: three network namespaces, servers in one of them, and a broker.

The process lives in the "world", where the broker runs. Behind a gateway of it is the "internet",
whose loopback has public, private and other addresses: nothing can leave the machine. The "jail" is
prepared as brig does it.
Sockets are made in either by changing over for a moment; where a socket was made is where it stays.
"""
import array
import contextlib
import ctypes
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from common import PATIENCE as WAIT, SLOW, user_ids, wait_for  # noqa: E402,F401

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000

PUBLIC4, PUBLIC4_OTHER, PRIVATE4 = "93.184.216.34", "93.184.216.35", "10.1.2.3"
METADATA4, UNREACHED4 = "169.254.169.254", "93.184.216.99"
PUBLIC6 = "2606:2800:220:1::34"
# Public, and all the same this machine's own, its neighbours', or behind a tunnel for everything.
OWN4, OWN6 = "93.184.217.7", "2606:2800:221::7"
NEAR4, NEAR6 = "93.184.218.1", "2606:2800:222::1"
TUNNELLED4 = "64.1.2.3"
INTERNET = None
RESOLVER_PORT = 5300

# door_wire.h
VERSION, CONFIG, SOCKET, READY, FAILED, EVENT, RULE, RULES = 1, 1, 2, 3, 4, 5, 6, 7
KINDS = ["dns_udp", "dns_tcp", "redirect", "http_proxy", "socks", "inject", "publish", "connector"]
VERDICTS = ["allowed", "denied", "error", "ended", "waiting"]
BECAUSE = """rule no_rule port address unknown no_sni wrong_sni not_tls wrong_host bad_request method path
injected no_name no_connect timeout connections names bytes reset closed tls""".split()
EVENT_FORMAT = "=4I4IqQQQQ256s48s512s256s"


def check(status):
    if status != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def enter_own_namespace():
    """Runs the whole program again in a network (and, for a user, a user) namespace of its own."""
    if os.environ.get("BROKER_RIG") == "inside":
        return
    options = ["--net", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if os.environ.get("BROKER_RIG_USERNS"):
        options = ["--net", "--mount", "--map-root-user"]
    os.environ["BROKER_RIG"] = "inside"
    os.execvp("unshare", ["unshare", *options, sys.executable, *sys.argv])


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


class World:
    """The world, in which the process is, and the internet behind its gateway."""

    def __init__(self):
        self.world = os.open("/proc/self/ns/net", os.O_RDONLY)
        check(LIBC.unshare(CLONE_NEWNET))
        self.internet_fd = os.open("/proc/self/ns/net", os.O_RDONLY)
        run("ip", "link", "set", "lo", "up")
        for address in (PUBLIC4, PUBLIC4_OTHER, PRIVATE4, METADATA4, TUNNELLED4):
            run("ip", "addr", "add", address + "/32", "dev", "lo")
        run("ip", "addr", "add", PUBLIC6 + "/128", "dev", "lo")
        run("ip", "link", "add", "near", "type", "veth", "peer", "name", "uplink")
        run("ip", "link", "set", "uplink", "netns", f"/proc/{os.getpid()}/fd/{self.world}")
        self.connect_machine("near", 1)
        self.leave()
        run("ip", "link", "set", "lo", "up")
        self.connect_machine("uplink", 2)
        run("ip", "route", "add", "default", "via", "192.0.2.1")
        run("ip", "route", "add", "64.0.0.0/8", "dev", "uplink")  # as a tunnel for everything has it
        run("ip", "route", "add", "default", "via", "2001:db8::1")
        for address in (OWN4 + "/32", OWN6 + "/128"):
            run("ip", "addr", "add", address, "dev", "lo")
        global INTERNET
        INTERNET = self

    @staticmethod
    def connect_machine(device, last):
        """Its addresses on the network between the world and the internet, where neighbours are."""
        run("ip", "addr", "add", f"192.0.2.{last}/24", "dev", device)
        run("ip", "addr", "add", f"{NEAR4[:-1]}{last}/24", "dev", device)
        run("ip", "addr", "add", f"2001:db8::{last}/64", "dev", device, "nodad")
        run("ip", "addr", "add", f"{NEAR6[:-1]}{last}/64", "dev", device, "nodad")
        run("ip", "link", "set", device, "up")

    def leave(self):
        check(LIBC.setns(self.world, CLONE_NEWNET))

    @contextlib.contextmanager
    def inside(self, namespace):
        check(LIBC.setns(namespace, CLONE_NEWNET))
        try:
            yield
        finally:
            self.leave()

    def internet(self):
        return self.inside(self.internet_fd)


class Namespaces(World):
    """And the jail."""

    def __init__(self):
        super().__init__()
        check(LIBC.unshare(CLONE_NEWNET))
        self.jail_fd = os.open("/proc/self/ns/net", os.O_RDONLY)
        run("ip", "link", "set", "lo", "up")
        run("ip", "addr", "add", "198.18.0.1/15", "dev", "lo")
        run("ip", "addr", "add", "fd62:7269:6700::1/48", "dev", "lo")
        # All of the ranges is local, as are all other addresses: brig's redirect needs a route.
        run("ip", "route", "replace", "local", "198.18.0.0/15", "dev", "lo")
        run("ip", "-6", "route", "replace", "local", "fd62:7269:6700::/48", "dev", "lo")
        run("ip", "route", "replace", "local", "default", "dev", "lo")
        run("ip", "-6", "route", "replace", "local", "default", "dev", "lo")
        self.leave()

    def jail(self):
        return self.inside(self.jail_fd)

    def in_jail(self):
        """For subprocess: preexec_fn."""
        check(LIBC.setns(self.jail_fd, CLONE_NEWNET))


# ---- Servers of the world ----------------------------------------------------------------------


def serve(server, handle):
    """Accepts for ever; each connection in a thread."""
    def loop():
        while True:
            try:
                connection, peer = server.accept()
            except OSError:
                return
            threading.Thread(target=guarded, args=(connection, peer), daemon=True).start()

    def guarded(connection, peer):
        with contextlib.suppress(OSError, ssl.SSLError):
            handle(connection, peer)
        connection.close()
    threading.Thread(target=loop, daemon=True).start()
    return server


class Listener(socket.socket):
    """Closes although a thread waits in accept()."""

    def close(self):
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)
        super().close()


LISTENERS = []


class Refused:
    """A connection that was reset before connect() had returned."""

    def recv(self, _size):
        raise ConnectionResetError

    def sendall(self, _data):
        pass

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_args):
        pass


def connected(client, to):
    try:
        client.connect(to)
    except ConnectionResetError:
        client.close()
        return Refused()
    return client


def listen(address, port):
    """A server of the internet; one on loopback is where the caller is."""
    if address.startswith("127.") or address in ("::1", OWN4, OWN6):
        return listen_here(address, port)
    with INTERNET.internet():
        return listen_here(address, port)


def listen_here(address, port, backlog=1024):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = Listener(family, socket.SOCK_STREAM)
    LISTENERS.append(server)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((address, port))
    server.listen(backlog)
    return server


def echo(connection, _peer):
    while True:
        data = connection.recv(65536)
        if not data:
            connection.shutdown(socket.SHUT_WR)
            return
        connection.sendall(data)


def read_head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    return data


def http(connection, _peer):
    """Answers each request with what it was."""
    answer(connection, read_head(connection))


def answer(connection, head):
    body = b"seen: " + head
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class Resolver:
    """A name server over UDP: names to lists of addresses, or to a function that gives one."""

    def __init__(self, address="127.0.0.1", port=RESOLVER_PORT):
        self.names, self.asked, self.cnames, self.ttl = {}, [], {}, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, port))
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            reply = self.answer(query)
            if reply:
                self.socket.sendto(reply, peer)

    def answer(self, query):
        name, end = read_name(query, 12)
        kind = struct.unpack(">H", query[end:end + 2])[0]
        question = query[12:end + 4]
        self.asked.append(name)
        records, count, target = b"", 0, name
        while target in self.cnames:
            canonical = self.cnames[target]
            data = write_name(canonical)
            records += write_name(target) + struct.pack(">HHIH", 5, 1, 60, len(data)) + data
            count, target = count + 1, canonical
        found = self.names.get(target)
        if callable(found):
            found = found()
        if found == "silent":
            return None
        if found == "failing":
            return query[:2] + b"\x81\x82" + struct.pack(">HHHH", 1, 0, 0, 0) + question
        if found is None:
            return query[:2] + b"\x81\x83" + struct.pack(">HHHH", 1, 0, 0, 0) + question
        for address in found:
            v6 = ":" in address
            if kind != (28 if v6 else 1):
                continue
            data = socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, address)
            records += write_name(target) + struct.pack(">HHIH", kind, 1, self.ttl, len(data)) + data
            count += 1
        return query[:2] + b"\x81\x80" + struct.pack(">HHHH", 1, count, 0, 0) + question + records


def write_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def read_name(message, at):
    labels = []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    return ".".join(labels).lower(), at + 1


def make_certificate(directory, *names):
    """A certificate that signs itself: (certificate, key)."""
    certificate, key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=" + names[0],
        "-addext", "subjectAltName=" + ",".join("DNS:" + name for name in names))
    return certificate, key


# ---- The broker ----------------------------------------------------------------------------------


def memfd(data):
    fd = os.memfd_create("rig", os.MFD_CLOEXEC)
    os.write(fd, data)
    return fd


class Event(dict):
    __getattr__ = dict.get


def read_event(data):
    fields = struct.unpack(EVENT_FORMAT, data)
    texts = [field.split(b"\0")[0].decode() for field in fields[13:]]
    return Event(verdict=VERDICTS[fields[4]], because=BECAUSE[fields[5]], via=KINDS[fields[6]],
                 port=fields[7], time=fields[8], connection=fields[9], bytes_in=fields[10],
                 bytes_out=fields[11], duration=fields[12], name=texts[0], address=texts[1],
                 rule=texts[2], detail=texts[3])


class Broker:
    """A brig-broker, and what it says."""

    def __init__(self, rig, lines, secrets=None, start=True, policy="allow"):
        self.rig = rig
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        text = ["brig-door 1", "policy " + policy] if policy else []
        if rig.drops_root:
            text.append("user %d %d" % user_ids())
        elif os.geteuid() == 0:
            text.append("user 0 0")
        if not any(line.startswith("resolver") for line in lines):
            text.append(f"resolver 127.0.0.1:{RESOLVER_PORT}")
        text += [line for line in lines if line != "resolver none"]
        fds = [memfd(("\n".join(text) + "\n").encode())]
        if secrets is not None:
            fds.append(memfd(b"".join(secret.encode() + b"\0" for secret in secrets)))
        self.send(CONFIG, fds=fds)
        self.events, self.log = [], []
        self.process = subprocess.Popen([rig.program, "serve"], stdin=subprocess.DEVNULL,
                                        pass_fds=[3], close_fds=True, env=rig.environment,
                                        extra_groups=[12345] if rig.drops_root else None,
                                        preexec_fn=lambda: os.dup2(theirs.fileno(), 3))
        theirs.close()
        rig.processes.append(self.process)
        self.failure = None
        self.control.settimeout(WAIT)
        kind, data = self.receive()
        if kind == FAILED:
            self.failure = data[16:].split(b"\0")[0].decode()
        elif kind != READY:
            raise RuntimeError(f"the broker said {kind}")
        elif start:
            self.pump = threading.Thread(target=self.read_events, daemon=True)
            self.arrived = threading.Condition()
            self.control.settimeout(None)
            self.pump.start()

    def send(self, kind, socket_kind=0, index=0, fds=()):
        message = struct.pack("=4I", VERSION, kind, socket_kind, index)
        self.control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        for fd in fds:
            os.close(fd)

    def give(self, kind, sock, index=0):
        self.send(SOCKET, KINDS.index(kind), index, [os.dup(sock.fileno())])
        socket.socket.close(sock)  # theirs stays open

    def rule(self, line):
        """The user's answer, with `policy ask`."""
        self.control.send(struct.pack("=4I528s", VERSION, RULE, 0, 0, line.encode()))

    def rules(self, *lines):
        """Replaces all rules."""
        fd = memfd("".join(line + "\n" for line in lines).encode())
        os.lseek(fd, 0, os.SEEK_SET)
        self.send(RULES, fds=[fd])

    def receive(self):
        data = self.control.recv(4096)
        if not data:
            return None, b""
        return struct.unpack("=4I", data[:16])[1], data

    def read_events(self):
        while True:
            try:
                kind, data = self.receive()
            except OSError:
                kind = None
            if kind != EVENT:
                return
            with self.arrived:
                event = read_event(data)
                self.events.append(event)
                self.log.append(event)
                self.arrived.notify_all()

    def event(self, **wanted):
        """Waits for an event with these fields, and takes it off the list."""
        end = time.monotonic() + WAIT
        with self.arrived:
            while True:
                for event in self.events:
                    if all(event[key] == value for key, value in wanted.items()):
                        self.events.remove(event)
                        return event
                if not self.arrived.wait(end - time.monotonic()):
                    raise AssertionError(f"no event {wanted} among {self.events}")

    def stop(self):
        self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        return self.process.wait(WAIT)


def peak_memory(process):
    """The most that has been resident of it so far, in bytes."""
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))


class Rig:
    def __init__(self):
        self.program = os.path.join(os.environ["BUILD_DIR"], "src/net/brig-broker")
        self.drops_root = os.geteuid() == 0 and "0 4294967295" in " ".join(
            open("/proc/self/uid_map").read().split()[0::2])
        self.environment, self.processes, self.lasting = {}, [], 0
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.namespaces = Namespaces()
        self.resolver = Resolver()
        self.directory = tempfile.mkdtemp(prefix="broker-rig.")
        os.chmod(self.directory, 0o755)

    def connector(self, theirs):
        """The process in the jail's network that connects to its servers."""
        def prepare():
            self.namespaces.in_jail()
            os.dup2(theirs.fileno(), 3)
        process = subprocess.Popen([self.program, "connect"], stdin=subprocess.DEVNULL, pass_fds=[3],
                                   env=self.environment, preexec_fn=prepare)
        theirs.close()
        self.processes.append(process)
        return process

    def forget(self):
        """Ends what a test that failed has left."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []
        while len(LISTENERS) > self.lasting:
            LISTENERS.pop().close()

    def done(self):
        shutil.rmtree(self.directory)

    def jail_listen(self, address, port):
        with self.namespaces.jail():
            return listen_here(address, port)

    def jail_udp(self, address, port):
        with self.namespaces.jail():
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind((address, port))
            return server

    def connect(self, address, port, timeout=WAIT):
        """A connection from inside the jail."""
        with self.namespaces.jail():
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            client = socket.socket(family, socket.SOCK_STREAM)
            client.settimeout(timeout)
            return connected(client, (address, port))

    def door(self, *lines, ports=(443, 80, 5000), **options):
        """A broker with a name server and listeners, as where there is no redirect."""
        broker = Broker(self, lines, **options)
        if broker.failure:
            return broker
        broker.give("dns_udp", self.jail_udp("198.18.0.2", 53))
        broker.give("dns_tcp", self.jail_listen("198.18.0.2", 53))
        for port in ports:
            broker.give("redirect", self.jail_listen("0.0.0.0", port))
            broker.give("redirect", self.jail_listen("::", port))
        return broker

    def ask_raw(self, query):
        """Asks again, as resolvers do: a datagram may be lost where many come."""
        with self.namespaces.jail():
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.settimeout(WAIT / 4)
        with client:
            for _ in range(4):
                client.sendto(query, ("198.18.0.2", 53))
                with contextlib.suppress(socket.timeout):
                    while (reply := client.recv(4096))[:2] != query[:2]:
                        pass  # to an earlier socket with the same port
                    return reply
        raise AssertionError("the name server does not answer")

    def query(self, name, kind=1):
        return os.urandom(2) + b"\x01\x00" + struct.pack(">HHHH", 1, 0, 0, 0) + \
            write_name(name) + struct.pack(">HH", kind, 1)

    def ask(self, name, kind=1):
        """(code, [addresses]) as the jail's name server says."""
        return read_reply(self.ask_raw(self.query(name, kind)))

    def address_of(self, name, kind=1):
        code, addresses = self.ask(name, kind)
        assert code == 0 and len(addresses) == 1, (name, code, addresses)
        return addresses[0]

    def open(self, name, port):
        return self.connect(self.address_of(name), port)


def read_reply(reply):
    code = reply[3] & 15
    answers = struct.unpack(">H", reply[6:8])[0]
    _, at = read_name(reply, 12)
    at += 4
    addresses = []
    for _ in range(answers):
        at = at + 2 if reply[at] & 0xc0 else read_name(reply, at)[1]
        kind, _, _, length = struct.unpack(">HHIH", reply[at:at + 10])
        data = reply[at + 10:at + 10 + length]
        at += 10 + length
        addresses.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data))
    return code, addresses


def how_it_ends(client):
    """What a client gets until the end: (bytes, "closed" or "reset" or "silent")."""
    data = []
    try:
        while more := client.recv(1 << 20):
            data.append(more)
        end = "closed"
    except ConnectionResetError:
        end = "reset"
    except socket.timeout:
        end = "silent"
    return b"".join(data), end


def add_extension(hello, kind, body):
    """A ClientHello in one record, with one extension more."""
    at = 5 + 4 + 2 + 32  # the record's head, the message's, the version and the random bytes
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 1 + hello[at]
    more = struct.pack(">HH", kind, len(body)) + body
    extensions = hello[at + 2:] + more
    message = hello[9:at] + struct.pack(">H", len(extensions)) + extensions
    return hello[:3] + struct.pack(">H", len(message) + 4) + hello[5:6] + len(message).to_bytes(3, "big") + message


def client_hello(name, ech=False):
    """What a TLS client would send first; with `ech`, with an encrypted hello, as browsers make one up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    return add_extension(hello, 0xfe0d, b"\x00\x00\x01\x00\x01\x00\x00\x20" + bytes(32) + b"\x00\x10" + bytes(16)) if ech else hello


# ---- What several tests need ---------------------------------------------------------------------


def tls_client(client, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(client, server_hostname=name)


def socks_name(name, port):
    return b"\x05\x01\x00\x03" + bytes([len(name)]) + name.encode() + struct.pack(">H", port)


class UpstreamProxy:
    """The host's own proxy, which knows names nobody else does."""

    def __init__(self, port, ahead=b"ahead"):
        self.heads, self.ahead = [], ahead
        self.server = serve(listen("127.0.0.1", port), self.handle)

    def handle(self, connection, _peer):
        head = read_head(connection)
        self.heads.append(head)
        target = head.split()[1].decode()
        if target.startswith("refused"):
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            return
        onward = socket.create_connection((PUBLIC4, int(target.rsplit(":", 1)[1])))
        connection.sendall(b"HTTP/1.1 200 OK\r\nVia: test\r\n\r\n" + self.ahead)
        other = threading.Thread(target=self.copy, args=(onward, connection), daemon=True)
        other.start()
        self.copy(connection, onward)
        other.join()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


# ---- Running them --------------------------------------------------------------------------------

TESTS = []


def test(function):
    """A test; its name is the sentence it proves."""
    TESTS.append(function)
    return function


def load(function):
    """A test of many connections or much data, which is the same for root and a user once the broker has started."""
    function.is_load = True
    return function


def proxied(rig, *lines, **options):
    """A broker that is an HTTP proxy and a SOCKS proxy."""
    door = rig.door(*lines, ports=(), **options)
    door.give("http_proxy", rig.jail_listen("127.0.0.1", 3128))
    door.give("socks", rig.jail_listen("127.0.0.1", 1080))
    return door


def main():
    enter_own_namespace()
    wanted = sys.argv[1:]
    rig = Rig()
    rig.resolver.names.update({name + ".example": [PUBLIC4] for name in ("echo", "tls", "web", "lazy", "api")})
    certificate = make_certificate(rig.directory, "tls.example", "api.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    rig.certificate, rig.tls = certificate[0], context

    def tls_echo(connection, peer):
        with context.wrap_socket(connection, server_side=True) as tls:
            echo(tls, peer)
    for address in (PUBLIC4, PRIVATE4, "127.0.0.1", METADATA4, PUBLIC6):
        serve(listen(address, 5000), echo)
    serve(listen(PUBLIC4_OTHER, 5000), echo)
    serve(listen(PUBLIC4, 5001), echo)
    for port in (443, 5443, 5444):
        serve(listen(PUBLIC4, port), tls_echo)
    serve(listen(PUBLIC4, 80), http)
    rig.lasting = len(LISTENERS)
    number = failed = 0
    light = os.environ.get("BROKER_LIGHT") and not os.environ.get("BRIG_THOROUGH")
    for function in TESTS:
        if light and hasattr(function, "is_load"):
            continue
        if wanted and not any(part in function.__name__ for part in wanted):
            continue
        number += 1
        start = time.monotonic()
        try:
            function(rig)
            print(f"ok {number} - {function.__name__.replace('_', ' ')}", flush=True)
        except Exception:  # noqa: BLE001
            failed += 1
            print(f"not ok {number} - {function.__name__.replace('_', ' ')}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), flush=True)
        rig.forget()
        if os.environ.get("BROKER_TIMES"):
            print(f"# {time.monotonic() - start:.2f} s", flush=True)
    print(f"1..{number}", flush=True)
    rig.done()
    os._exit(1 if failed else 0)
