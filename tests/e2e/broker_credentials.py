# SPDX-License-Identifier: MIT
"""Tests of tests/e2e/broker: credentials that are added outside the jail, and nonsense on every socket."""
import contextlib
import os
import random
import socket
import ssl
import struct
import threading

import broker_rig as rig_module
from broker_rig import (PUBLIC4, SLOW, UNREACHED4, UpstreamProxy, client_hello, how_it_ends, listen, load, serve, socks_name,
                        test, tls_client, wait_for)

SECRET = "Bearer s3cret-of-the-host"


class Upstream:
    """An HTTP server that keeps what it was sent; what it answers depends on the path."""

    def __init__(self, rig, port, tls=True, address=PUBLIC4):
        self.requests, self.go_on, self.first_chunk = [], threading.Event(), threading.Event()
        self.open_streams, self.stalled = 0, threading.Event()
        context = rig.tls

        def handle(connection, peer):
            connection = context.wrap_socket(connection, server_side=True) if tls else connection
            self.serve(connection, connection.makefile("rb"))
        self.server = serve(listen(address, port), handle)

    def serve(self, connection, stream):
        while True:
            line = stream.readline()
            if not line:
                return
            method, target, _ = line.decode("latin-1").split()
            headers = []
            while (header := stream.readline().decode("latin-1").strip()):
                headers.append(tuple(header.split(": ", 1)) if ": " in header else (header, ""))
            fields = {name.lower(): value for name, value in headers}
            body = b""
            if fields.get("transfer-encoding") == "chunked":
                while size := int(stream.readline() or b"0", 16):
                    body += stream.read(size)
                    self.first_chunk.set()
                    stream.readline()
                stream.readline()
            else:  # of an answer that does not wait for all of it, the beginning
                body = stream.read(4 if target == "/early" else int(fields.get("content-length", 0)))
            self.requests.append((method, target, headers, body))
            if not self.answer(connection, method, target, body, fields):
                return

    def switch(self, connection, fields):
        """Another protocol: says who was asked, then repeats what arrives, "bye" ends it."""
        if fields.get("upgrade") != "websocket":
            connection.sendall(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\n\r\nhttp")
            return True
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           b"Sec-WebSocket-Accept: yes\r\nX-Up: 1\r\n\r\nhello")
        self.open_streams += 1
        with contextlib.suppress(OSError):
            while (data := connection.recv(65536)) and data != b"bye":
                connection.sendall(data)
        self.open_streams -= 1
        return False

    def answer(self, connection, method, target, body, headers):
        path = target.split("?")[0].rsplit("/", 1)[1]
        if path == "stream":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.sendall(b"b\r\ndata: one\n\n\r\n")
            self.open_streams += 1
            self.go_on.wait(rig_module.WAIT)
            connection.sendall(b"b\r\ndata: two\n\n\r\n0\r\n\r\n")
        elif path == "watch":
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            self.open_streams += 1
            with contextlib.suppress(OSError):
                connection.recv(1)
            self.open_streams -= 1
            return False
        elif path == "big":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 << 20))
            left = memoryview(bytes(64 << 20))
            connection.settimeout(0.3)
            with contextlib.suppress(socket.timeout):
                while left:
                    left = left[connection.send(left[:1 << 20]):]
            self.stalled.set()  # who asked for it does not read
            connection.settimeout(None)
            connection.sendall(left)
        elif path == "cut":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            return False
        elif path == "early":
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return False
        elif path == "socket":
            return self.switch(connection, headers)
        elif path == "move":
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /moved\r\nContent-Length: 0\r\n\r\n")
        elif path == "none":
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        elif path == "old":
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nto the end")
            connection.settimeout(1)
            with contextlib.suppress(OSError):
                connection.unwrap()  # without this, TLS says, it could have been cut off
            return False
        else:
            text = b"%d bytes" % len(body)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nAlt-Svc: h3\r\nX-Up: 1\r\n\r\n" % len(text))
            if method != "HEAD":
                connection.sendall(text)
        return True


def injecting(rig, *lines, secrets=(SECRET,), policy="allow", **options):
    door = rig.door("inject 0 name api.example", "inject 0 header Authorization 0", f"ca {rig.certificate}", *lines,
                    secrets=secrets, policy=policy, **options)
    if not door.failure:
        door.give("inject", rig.jail_listen("127.0.0.1", 9000), 0)
    return door


class Client:
    """Plain HTTP from inside the jail, one connection."""

    def __init__(self, rig):
        self.socket = rig.connect("127.0.0.1", 9000)
        self.stream = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())
        return self

    def head(self):
        status = self.stream.readline().decode()
        assert status.startswith("HTTP/1.1 "), status
        fields = {}
        while line := self.stream.readline().decode().strip():
            name, value = line.split(":", 1)
            fields[name.lower()] = value.strip()
        return int(status.split()[1]), fields

    def reply(self, body=True):
        status, fields = self.head()
        data = b""
        if fields.get("transfer-encoding") == "chunked":
            while size := int(self.stream.readline(), 16):
                data += self.stream.read(size)
                assert self.stream.readline() == b"\r\n"
            assert self.stream.readline() == b"\r\n"
        elif body and "content-length" in fields:
            data = self.stream.read(int(fields["content-length"]))
        elif body and status not in (204, 304):
            data = self.stream.read()
        return status, fields, data

    def get(self, target, method="GET", more="", version="1.1", body=""):
        self.send(f"{method} {target} HTTP/{version}\r\nHost: 127.0.0.1:9000\r\n{more}\r\n{body}")
        return self.reply(method != "HEAD")

    def close(self):
        self.stream.close()
        self.socket.close()


def field(request, name):
    return [value for header, value in request[2] if header.lower() == name]


@test
def a_credential_is_added_and_the_clients_own_is_dropped(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443/base", "inject 0 strip X-Extra")
    client = Client(rig)
    status, fields, data = client.get("/v1/things?q=1", more="Authorization: Bearer mine\r\nX-Api-Key: mine\r\n"
                                      "Cookie: mine\r\nX-Extra: mine\r\nX-Own: kept\r\nX-Empty:\r\n"
                                      "Connection: keep-alive, x-hop\r\nX-Hop: mine\r\n")
    assert (status, data) == (200, b"0 bytes") and fields["x-up"] == "1" and "alt-svc" not in fields, (status, fields)
    request = upstream.requests[0]
    assert request[:2] == ("GET", "/base/v1/things?q=1"), request
    assert field(request, "authorization") == [SECRET] and field(request, "host") == ["api.example:8443"], request
    assert field(request, "x-own") == ["kept"] and "mine" not in str(request), request
    status, _, data = client.get("/v1/things", method="POST", more="Content-Length: 5\r\n", body="hello")
    assert (status, data) == (200, b"5 bytes") and upstream.requests[1][3] == b"hello", upstream.requests
    client.close()
    begun, ended = door.event(verdict="allowed"), door.event(verdict="ended")
    assert begun.via == "inject" and begun.name == "api.example" and begun.port == 8443, begun
    assert ended.connection == begun.connection and ended.detail == "GET /v1/things -> 200", ended
    assert ended.address == PUBLIC4 and ended.bytes_in == 7, ended
    upstream.server.close()
    assert door.stop() == 0


@test
def bodies_of_every_framing_are_passed_on(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    client = Client(rig)
    client.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    client.send("2;ext=1\r\nde\r\n0\r\n\r\n")
    assert client.reply()[2] == b"5 bytes" and upstream.requests[-1][3] == b"abcde"
    client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    assert client.head()[0] == 100
    assert client.send("body").reply()[2] == b"4 bytes" and upstream.requests[-1][3] == b"body"
    client.send("POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /d HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.reply()[2] == b"0 bytes" and client.reply()[2] == b"0 bytes"
    assert [request[1] for request in upstream.requests[-2:]] == ["/c", "/d"]
    assert client.get("/e", method="HEAD")[1]["content-length"] == "7"
    assert client.get("/none", method="DELETE")[0] == 204
    assert client.get("/old")[2] == b"to the end"
    assert client.get("/old", version="1.0")[2] == b"to the end"
    assert client.stream.read() == b""
    client.close()
    upstream.server.close()
    assert door.stop() == 0


@test
def what_is_streamed_arrives_as_it_is_sent(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    client = Client(rig)
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.head()[1]["content-type"] == "text/event-stream"
    assert client.stream.readline() == b"b\r\n" and client.stream.read(13) == b"data: one\n\n\r\n"
    upstream.go_on.set()
    assert client.stream.readline() == b"b\r\n" and client.stream.read(13) == b"data: two\n\n\r\n"
    assert client.stream.read(5) == b"0\r\n\r\n"
    # The other way: the upstream has the first part before the client sends the second.
    client.send("POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    assert upstream.first_chunk.wait(rig_module.WAIT)
    client.send("1\r\nb\r\n0\r\n\r\n")
    assert client.reply()[2] == b"2 bytes"
    client.close()
    upstream.server.close()
    assert door.stop() == 0


@test
@load
def who_stops_reading_or_goes_away_is_noticed_upstream(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    client = Client(rig)
    client.send("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n").head()
    assert wait_for(lambda: upstream.open_streams == 1)
    client.close()
    assert wait_for(lambda: upstream.open_streams == 0)
    client = Client(rig)
    client.send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n").head()
    assert upstream.stalled.wait(rig_module.WAIT)
    left = 64 << 20
    while left:
        left -= len(client.stream.read(min(left, 1 << 20)))
    peak = rig_module.peak_memory(door.process)
    assert peak < 60 << 20, peak
    assert client.get("/after")[0] == 200
    body = os.urandom(1 << 20) * 16
    client.send(b"PUT /much HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert client.reply()[0] == 200 and upstream.requests[-1][3] == body
    client.close()
    upstream.server.close()
    assert door.stop() == 0


@test
def only_the_methods_and_paths_that_are_allowed(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443", "inject 0 method GET", "inject 0 method POST",
                     "inject 0 path /v1/messages", "inject 0 path /v1/models/")
    for target in ("/v1/messages", "/v1/messages?x=/v2", "/v1/messages/1", "/v1/models/a"):
        assert Client(rig).get(target)[0] == 200, target
    # Those are compared, and sent, without what leads elsewhere.
    for target, sent in (("//v1/messages//x", "/v1/messages/x"), ("/v2/../v1/./messages?..", "/v1/messages?.."),
                         ("/v1/messages/%61%2fb", "/v1/messages/a%2Fb")):
        assert Client(rig).get(target)[0] == 200, target
        assert upstream.requests[-1][1] == sent, upstream.requests[-1]
    for target in ("/v1/messagesx", "/v1/models", "/", "/v1/messages/../keys", "/v1/messages/%2e%2e/keys",
                   "/v1/messages/..%2fkeys", "/v1/messages/..;/keys", "/v1/messages/..%5ckeys", "/v1/messages%2fx"):
        status, fields, data = Client(rig).get(target)
        assert status == 403 and fields["connection"] == "close", (target, status)
        assert door.event(verdict="denied").because == "path"
    for method in ("DELETE", "PUT", "get"):
        assert Client(rig).get("/v1/messages", method=method)[0] == 403, method
        assert door.event(verdict="denied").because == "method"
    assert len(upstream.requests) == 7, upstream.requests
    upstream.server.close()
    assert door.stop() == 0


@test
def a_name_that_is_found_too_late_brings_no_request(rig):
    """The answer comes when the client was told that there is none, and still holds its connection."""
    upstream, told = Upstream(rig, 8443), threading.Event()
    usual = rig.resolver.names["api.example"]

    def late():
        told.wait(rig_module.WAIT)
        return usual
    rig.resolver.names["api.example"] = late
    door = injecting(rig, "inject 0 upstream https://api.example:8443", "inject 0 path /v1/", "limit connect-ms 500")
    first = Client(rig)
    try:
        assert first.get("/v1/late")[0] == 504
        assert door.event(because="timeout").detail.startswith("GET /v1/late")
    finally:
        told.set()
        rig.resolver.names["api.example"] = usual
    assert wait_for(lambda: Client(rig).get("/v1/again")[0] == 200)  # that answer has been taken before
    assert {request[1] for request in upstream.requests} == {"/v1/again"}, upstream.requests
    first.close()
    upstream.server.close()
    assert door.stop() == 0


WEBSOCKET = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Key: a2V5\r\nX-Empty:\r\n"


def open_websocket(rig, target="/socket", more=""):
    client = Client(rig)
    client.send(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n{WEBSOCKET}{more}\r\n")
    return client


@test
def a_websocket_gets_the_credential_and_is_relayed(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443/base", "inject 0 path /v1/socket")
    client = open_websocket(rig, "/v1/socket?q=1", "Authorization: Bearer mine\r\nX-Own: kept\r\n")
    status, fields = client.head()
    assert status == 101 and fields["upgrade"] == "websocket" and fields["connection"] == "Upgrade", fields
    assert fields["sec-websocket-accept"] == "yes" and client.stream.read(5) == b"hello"
    request = upstream.requests[0]
    assert request[:2] == ("GET", "/base/v1/socket?q=1") and field(request, "authorization") == [SECRET], request
    assert field(request, "host") == ["api.example:8443"] and field(request, "sec-websocket-key") == ["a2V5"], request
    assert field(request, "x-own") == ["kept"] and "mine" not in str(request), request
    data = os.urandom(1 << 20) * 4  # more than the buffers of everybody
    sender = threading.Thread(target=client.socket.sendall, args=(data,))
    sender.start()
    assert client.stream.read(len(data)) == data
    sender.join()
    # Meanwhile other requests are served.
    assert Client(rig).get("/v1/socket/other")[0] == 200
    client.send("x")
    assert client.stream.read(1) == b"x"
    client.send("bye")
    assert client.stream.read() == b""  # the upstream's end is the client's
    ended = door.event(verdict="ended", connection=1)
    assert ended.detail == "GET /v1/socket -> 101" and ended.bytes_in == len(data) + 6, ended
    assert ended.bytes_out == len(data) + 4 and ended.address == PUBLIC4, ended
    client = open_websocket(rig, "/v1/socket")
    assert client.head()[0] == 101 and wait_for(lambda: upstream.open_streams == 1)
    client.close()  # and the client's the upstream's
    assert wait_for(lambda: upstream.open_streams == 0)
    assert open_websocket(rig, "/v1/other").reply()[0] == 403
    assert door.event(verdict="denied").because == "path"
    assert "s3cret" not in str(door.log)
    upstream.server.close()
    assert door.stop() == 0


@test
def an_upstream_may_decline_a_websocket(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    client = Client(rig)
    for target, expected in (("/plain", (200, b"0 bytes")), ("/none", (204, b"")), ("/plain", (200, b"0 bytes"))):
        status, fields, data = client.get(target, more=WEBSOCKET)
        assert (status, data) == expected and "upgrade" not in fields, (target, status, fields, data)
    upstream.go_on.set()
    assert client.get("/stream", more=WEBSOCKET)[2] == b"data: one\n\ndata: two\n\n"
    assert client.get("/old", more=WEBSOCKET)[2] == b"to the end"
    assert client.get("/after")[0] == 200
    assert [field(request, "authorization") for request in upstream.requests] == [[SECRET]] * 6
    client.close()
    client = open_websocket(rig, "/cut")
    assert client.head()[0] == 200 and how_it_ends(client.socket)[1] in ("closed", "reset")
    # Other protocols are not spoken: the request is an ordinary one.
    client = Client(rig)
    for more in ("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA\r\n",
                 "Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n", "Upgrade: websocket\r\n"):
        assert client.get("/socket", more=more)[::2] == (426, b"http"), more
    assert client.get("/socket", method="POST", more=WEBSOCKET + "Content-Length: 1\r\n", body="x")[0] == 426
    assert not [one for one in upstream.requests[-4:] if field(one, "http2-settings") or field(one, "upgrade")]
    upstream.server.close()
    assert door.stop() == 0


@test
def a_websocket_has_the_limits_of_other_connections(rig):
    upstream, proxy = Upstream(rig, 8443), UpstreamProxy(3129, ahead=b"")
    way = "inject 0 upstream https://api.example:8443", "proxy 127.0.0.1:3129"
    door = injecting(rig, *way, f"limit idle-ms {3000 * SLOW}")  # which holds for the handshake, too
    client = open_websocket(rig)
    assert client.head()[0] == 101 and client.stream.read(5) == b"hello"
    assert how_it_ends(client.socket)[1] in ("closed", "reset")
    assert door.event(verdict="ended").because == "timeout"
    assert wait_for(lambda: upstream.open_streams == 0)
    assert door.stop() == 0
    door = injecting(rig, *way, "limit bytes 200000")
    client = open_websocket(rig)
    assert client.head()[0] == 101
    with contextlib.suppress(OSError):
        client.send(bytes(300000))
    assert how_it_ends(client.socket)[1] in ("closed", "reset")
    assert door.event(verdict="ended").because == "bytes"
    assert len(proxy.heads) == 2 and SECRET.encode() not in b"".join(proxy.heads)
    upstream.server.close()
    proxy.server.close()
    assert door.stop() == 0
    door = injecting(rig, "inject 0 upstream https://imposter.example:8443")
    rig.resolver.names["imposter.example"] = [PUBLIC4]
    upstream = Upstream(rig, 8443)
    assert open_websocket(rig).reply()[0] == 502 and not upstream.requests
    assert door.event(verdict="ended").because == "tls"
    upstream.server.close()
    assert door.stop() == 0


@test
def requests_that_could_be_read_in_two_ways_are_refused(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    start = "POST /a HTTP/1.1\r\nHost: x\r\n"
    for text in (start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 start + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", start + "Content-Length: +3\r\n\r\nabc",
                 start + "Transfer-Encoding: xchunked\r\n\r\n", start + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                 start + "X: a\r\n b\r\n\r\n", start + "X: a\nY: b\r\n\r\n", start + "X: a\0b\r\n\r\n",
                 "POST  /a HTTP/1.1\r\nHost: x\r\n\r\n", "POST /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
                 "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
                 "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                 "GET / HTTP/1.1\r\nHost: x\r\nX: " + "a" * 70000 + "\r\n\r\n"):
        client = Client(rig)
        with contextlib.suppress(ConnectionError):
            client.send(text)
        status = client.reply()[0]
        assert status in (400, 431), (text[:80], status)
        assert door.event(verdict="denied").because == "bad_request"
        client.close()
    assert not upstream.requests, upstream.requests
    # A body that turns out to be bad ends the request; what was sent of it is not a request.
    client = Client(rig)
    client.send(start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.reply()[0] == 400
    client.close()
    assert "smuggled" not in str(upstream.requests)
    upstream.server.close()
    assert door.stop() == 0


@test
def an_upstream_that_is_not_who_it_should_be_gets_no_credential(rig):
    upstream = Upstream(rig, 8443)  # its certificate is for tls.example and api.example
    rig.resolver.names["imposter.example"] = [PUBLIC4]
    door = injecting(rig, "inject 0 upstream https://imposter.example:8443")
    assert Client(rig).get("/")[0] == 502
    assert door.event(verdict="ended").because == "tls"
    assert door.stop() == 0
    lines = ["inject 0 name api.example", "inject 0 header Authorization 0", "inject 0 upstream https://api.example:8443"]
    door = rig.door(*lines, secrets=[SECRET])  # the system's certificates do not have ours
    door.give("inject", rig.jail_listen("127.0.0.1", 9000), 0)
    assert Client(rig).get("/")[0] == 502
    assert door.event(verdict="ended").because == "tls"
    assert not upstream.requests
    assert door.stop() == 0
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    assert Client(rig).get("/")[0] == 200
    upstream.server.close()
    assert door.stop() == 0


@test
def a_redirect_is_passed_on_and_not_followed(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    client = Client(rig)
    status, fields, _ = client.get("/move")
    assert status == 302 and fields["location"] == "/moved", fields
    assert client.get("/next")[0] == 200
    assert [request[1] for request in upstream.requests] == ["/move", "/next"], upstream.requests
    upstream.server.close()
    assert door.stop() == 0


@contextlib.contextmanager
def no_certificates():
    """The rig has a mount namespace of its own."""
    places = [path for path in ("/etc/ssl", "/etc/pki") if os.path.isdir(path)]
    for path in places:
        rig_module.run("mount", "-t", "tmpfs", "none", path)
    try:
        yield
    finally:
        for path in places:
            rig_module.run("umount", path)


@test
def only_tls_needs_certificates(rig):
    upstream = Upstream(rig, 8080, tls=False, address="127.0.0.1")
    lines = ["inject 0 name api.example", "inject 0 header Authorization 0"]
    with no_certificates():
        door = rig.door(*lines, "inject 0 upstream https://api.example:8443", secrets=[SECRET])
        assert "no CA certificates" in door.failure, door.failure
        door = rig.door(*lines, "inject 0 upstream http://127.0.0.1:8080", secrets=[SECRET])
        assert not door.failure, door.failure
        door.give("inject", rig.jail_listen("127.0.0.1", 9000), 0)
        assert Client(rig).get("/plain")[2] == b"0 bytes"
    assert field(upstream.requests[0], "authorization") == [SECRET]
    upstream.server.close()
    assert door.stop() == 0


@test
def a_name_with_a_credential_is_reached_in_no_other_way(rig):
    upstream = Upstream(rig, 8080, tls=False, address="127.0.0.1")
    door = injecting(rig, "inject 0 upstream http://127.0.0.1:8080", policy="open", ports=(443,))
    assert Client(rig).get("/plain")[2] == b"0 bytes"
    assert field(upstream.requests[0], "authorization") == [SECRET]
    assert rig.ask("api.example") == (3, [])
    assert door.event(verdict="denied", name="api.example").because == "injected"
    try:
        tls_client(rig.connect(PUBLIC4, 443), "api.example")
        raise AssertionError("the name was reached past its credential")
    except ssl.SSLError:
        pass
    assert door.event(verdict="denied", port=443).because == "injected"
    with tls_client(rig.connect(PUBLIC4, 443), "tls.example") as tls:
        tls.sendall(b"x")
        assert tls.recv(1) == b"x"
    upstream.server.close()
    assert door.stop() == 0


@test
def upstreams_that_fail_are_told_apart(rig):
    upstream = Upstream(rig, 8443)
    # The short limit is for one that needs no lookup, which could take as long.
    for url, because, limit in (("https://missing.example", "no_name", ()),
                                ("https://api.example:8499", "no_connect", ()),
                                (f"https://{UNREACHED4}", "timeout", ("limit connect-ms 500",))):
        door = injecting(rig, f"inject 0 upstream {url}", *limit)
        assert Client(rig).get("/")[0] == 502, url
        assert door.event(because=because).detail.startswith("GET /"), url
        assert door.stop() == 0
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    client = Client(rig)
    client.send("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.head()[0] == 200
    data, end = how_it_ends(client.socket)
    assert end == "reset" or data == b"", (data, end)
    client = Client(rig)
    client.send("POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome")
    assert client.reply()[0] == 413
    assert client.stream.read() == b""
    upstream.server.close()
    assert door.stop() == 0


@test
def the_credential_goes_through_the_hosts_proxy_unseen(rig):
    upstream, proxy = Upstream(rig, 8443), UpstreamProxy(3129, ahead=b"")
    door = injecting(rig, "inject 0 upstream https://api.example:8443", "proxy 127.0.0.1:3129", "proxy-secret 1",
                     secrets=[SECRET, "Basic proxy"])
    assert Client(rig).get("/")[0] == 200
    assert field(upstream.requests[0], "authorization") == [SECRET]
    assert b"CONNECT api.example:8443 " in proxy.heads[0] and b"Basic proxy" in proxy.heads[0], proxy.heads
    assert SECRET.encode() not in proxy.heads[0] and not field(upstream.requests[0], "proxy-authorization")
    upstream.server.close()
    proxy.server.close()
    assert door.stop() == 0


@test
def a_credential_is_nowhere_to_be_seen(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    Client(rig).get("/a")
    for name in ("cmdline", "environ", "maps", "status"):
        with contextlib.suppress(PermissionError):
            assert b"s3cret" not in open(f"/proc/{door.process.pid}/{name}", "rb").read()
    assert "s3cret" not in str(door.log)
    locked = [line for line in open(f"/proc/{door.process.pid}/status") if line.startswith("VmLck")]
    assert int(locked[0].split()[1]) > 0 or "ASAN_OPTIONS" in os.environ, locked  # which takes mlock() away
    upstream.server.close()
    assert door.stop() == 0
    for secrets, word in (([SECRET, "bad\nvalue"], "credential 1"), ([], "credentials are named")):
        door = injecting(rig, secrets=secrets)
        assert word in door.failure and "bad" not in door.failure and "s3cret" not in door.failure, door.failure


# ---- Nonsense ------------------------------------------------------------------------------------

NONSENSE_COUNT = int(os.environ.get("BROKER_NONSENSE", 5000 if os.environ.get("BRIG_THOROUGH") else 500))


def spoil(chance, data):
    """Some bytes changed, cut off, doubled or put in."""
    data = bytearray(data)
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(data))
        what = chance.randint(0, 3)
        if what == 0 and at < len(data):
            data[at] = chance.randint(0, 255)
        elif what == 1:
            del data[at:at + chance.randint(1, 20)]
        elif what == 2:
            data[at:at] = data[at:at + chance.randint(1, 40)]
        else:
            data[at:at] = bytes(chance.choices(b"\0\r\n: ,;/%.\xff0a", k=chance.randint(1, 5)))
    return bytes(data)


@test
@load
def nonsense_on_every_socket_does_no_harm(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443", "allow *.example:443,80,5000", "limit inspect-ms 1000",
                     f"allow {PUBLIC4}:5000")
    door.give("http_proxy", rig.jail_listen("127.0.0.1", 3128))
    door.give("socks", rig.jail_listen("127.0.0.1", 1080))
    chance = random.Random(os.environ.get("BROKER_SEED", "1"))
    request = b"POST /a?b HTTP/1.1\r\nHost: web.example\r\nX-One: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    address = rig.address_of("web.example")
    starts = [("127.0.0.1", 9000, request), ("127.0.0.1", 9000, request.replace(b"Transfer-Encoding: chunked", b"Content-Length: 3")),
              ("127.0.0.1", 9000, f"GET /socket HTTP/1.1\r\nHost: x\r\n{WEBSOCKET}\r\nearly".encode()),
              ("127.0.0.1", 3128, b"CONNECT echo.example:5000 HTTP/1.1\r\nHost: echo.example:5000\r\n\r\nearly"),
              ("127.0.0.1", 3128, request.replace(b"/a", b"http://web.example/a")), (address, 80, request),
              ("127.0.0.1", 1080, b"\x05\x01\x00" + socks_name("echo.example", 5000) + b"early"),
              (address, 443, client_hello("web.example")), (address, 443, client_hello("other.example")),
              ("198.18.0.2", 53, b"\0\x1d" + rig.query("web.example"))]
    clients = []
    with rig.namespaces.jail():
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(NONSENSE_COUNT):
        udp.sendto(spoil(chance, rig.query("web.example")), ("198.18.0.2", 53))
        to, port, data = chance.choice(starts)
        client = rig.connect(to, port)
        clients.append(client)
        with contextlib.suppress(OSError):
            client.sendall(spoil(chance, data))
        if len(clients) > 50:
            gone = clients.pop(chance.randint(0, 50))
            if chance.randint(0, 1) and not isinstance(gone, rig_module.Refused):
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.close()
    for client in clients:
        client.close()
    udp.close()
    with rig.open("echo.example", 5000) as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
    assert Client(rig).get("/fine")[0] == 200
    assert not [one for one in upstream.requests if field(one, "authorization") != [SECRET]]
    assert door.stop() == 0
