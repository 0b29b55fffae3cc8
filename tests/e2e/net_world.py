#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The world around jails, for tests/e2e/net.bats: a network namespace of its own with a name server, and
behind its gateway another with web servers and others on public and private addresses: nothing can
leave the machine.

    net_world.py DIRECTORY

writes there what clients need: cert.pem, `internet` with the path of the servers' network namespace,
and `ready` with its pid once everything listens. Ends with its standard input. Must be run as root; whoever enters its network and mount namespaces is in the world.
"""
import base64
import contextlib
import hashlib
import os
import socket
import ssl
import struct
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from broker_rig import (METADATA4, NEAR4, OWN4, PRIVATE4, PUBLIC4, PUBLIC4_OTHER, PUBLIC6,  # noqa: E402
                        Resolver, World, answer, echo, http, listen, make_certificate, read_head, run,
                        serve)

NAMES = {
    "good.example": [PUBLIC4],
    "www.good.example": [PUBLIC4],
    "other.example": [PUBLIC4_OTHER],
    "six.example": [PUBLIC6],
    "both.example": [PUBLIC4, PUBLIC6],
    "inner.example": [PRIVATE4],
    "meta.example": [METADATA4],
    "own.example": [OWN4],
    "near.example": [NEAR4],
    "api.example": [PUBLIC4],
}
TLS_NAMES = ["good.example", "*.good.example", "other.example", "six.example", "both.example",
             "api.example"]
WEBSOCKET_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


def rebinding():
    """Public when it is asked for first, private ever after."""
    answers = [[PUBLIC4]]

    def answer():
        return answers.pop() if answers else [PRIVATE4]
    return answer


def banner(connection, _peer):
    """A server that speaks first."""
    connection.sendall(b"220 hello\r\n")
    echo(connection, _peer)


def ssh(connection, _peer):
    """As far as a server of ssh says who it is."""
    connection.sendall(b"SSH-2.0-brigtest\r\n")
    connection.recv(4096)


def web(connection, peer):
    """Websockets for who asks for them, else what the request was."""
    head = read_head(connection)
    if b"upgrade: websocket" in head.lower():
        websocket(connection, head)
    else:
        answer(connection, head)


def frame(opcode, payload):
    length = bytes([len(payload)]) if len(payload) < 126 else b"\x7e" + struct.pack(">H", len(payload))
    return bytes([0x80 | opcode]) + length + payload


def read_frame(stream):
    """A client's, which is masked; nothing at the end."""
    start = stream.read(2)
    if len(start) < 2 or start[0] & 0xf == 8:
        return b""
    length = start[1] & 0x7f
    if length == 126:
        length = struct.unpack(">H", stream.read(2))[0]
    mask = stream.read(4)
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(stream.read(length)))


def websocket(connection, head):
    """Says a number fifty times a second whether it is asked or not, and what it is told, backwards."""
    key = next(line.split(b":")[1].strip() for line in head.split(b"\r\n")
               if line.lower().startswith(b"sec-websocket-key:"))
    accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET_KEY).digest())
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept)
    ended, lock = threading.Event(), threading.Lock()

    def tick():
        number = 0
        while not ended.wait(0.02):
            with lock, contextlib.suppress(OSError):
                connection.sendall(frame(1, b"tick %d" % number))
            number += 1
    threading.Thread(target=tick, daemon=True).start()
    stream = connection.makefile("rb")
    while said := read_frame(stream):
        with lock:
            connection.sendall(frame(1, said[::-1]))
    ended.set()


def much(connection, _peer):
    """Takes as many bytes as it is told and answers with their checksum; then sends as many, and theirs."""
    size = left = struct.unpack(">Q", connection.recv(8, socket.MSG_WAITALL))[0]
    digest, memory = hashlib.sha256(), bytearray(1 << 20)
    while left > 0:
        got = connection.recv_into(memory, min(left, len(memory)))
        if not got:
            return
        digest.update(memoryview(memory)[:got])
        left -= got
    connection.sendall(digest.digest())
    digest, block = hashlib.sha256(), bytearray(os.urandom(1 << 20))
    for number in range(size >> 20):
        block[:8] = struct.pack(">Q", number)
        connection.sendall(block)
        digest.update(block)
    connection.sendall(digest.digest())


def proxy(connection, _peer):
    """A proxy of the host's: CONNECT, if who asks has said the password."""
    head = read_head(connection)
    target = head.split()[1].decode()
    if b"Proxy-Authorization: Basic am9lOnBhc3M=" not in head:
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        return
    host, port = target.rsplit(":", 1)
    print("proxy", target, flush=True)
    upstream = socket.create_connection((PUBLIC4 if host == "only-proxy.example" else host, int(port)), 9)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    back = threading.Thread(target=copy, args=(upstream, connection), daemon=True)
    back.start()
    copy(connection, upstream)
    back.join()


def copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def events(connection, _peer):
    """Server-sent events, one at a time: the next when the client asks by another request."""
    read_head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n")
    for text in (b"data: one\n\n", b"data: two\n\n"):
        connection.sendall(b"%x\r\n%s\r\n" % (len(text), text))
    connection.sendall(b"0\r\n\r\n")


def secured(context, handle):
    def wrapped(connection, peer):
        with context.wrap_socket(connection, server_side=True) as inner:
            with contextlib.suppress(OSError):
                handle(inner, peer)
    return wrapped


def mount_resolver(directory):
    path = os.path.join(directory, "resolv.conf")
    with open(path, "w") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:3\n")
    os.chmod(path, 0o644)
    run("mount", "--make-rprivate", "/")
    run("mount", "--bind", path, os.path.realpath("/etc/resolv.conf"))


def main():
    directory = sys.argv[1]
    world = World()
    with open(os.path.join(directory, "internet"), "w") as file:
        file.write(f"/proc/{os.getpid()}/fd/{world.internet_fd}\n")
    mount_resolver(directory)
    resolver = Resolver("127.0.0.1", 53)
    resolver.names.update(NAMES)
    resolver.names["rebind.example"] = rebinding()
    resolver.cnames["alias.example"] = "good.example"
    certificate, key = make_certificate(directory, *TLS_NAMES)
    os.chmod(certificate, 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for address in (PUBLIC4, PUBLIC4_OTHER, PUBLIC6, PRIVATE4, METADATA4):
        serve(listen(address, 443), secured(context, web))
        serve(listen(address, 80), web)
        serve(listen(address, 5000), echo)
        serve(listen(address, 2525), banner)
        serve(listen(address, 22), ssh)
        serve(listen(address, 5002), much)
        serve(listen(address, 8090), events)
    serve(listen("127.0.0.1", 5432), echo)
    serve(listen("127.0.0.1", 3128), proxy)
    serve(listen(OWN4, 80), http)
    serve(listen(NEAR4, 80), http)
    serve(listen("127.0.0.1", 80), http)
    with open(os.path.join(directory, "ready"), "w") as file:
        file.write(f"{os.getpid()}\n")
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
