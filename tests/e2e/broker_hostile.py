# SPDX-License-Identifier: MIT
"""Tests of tests/e2e/broker: a hostile program in the jail, and hostile servers outside."""
import contextlib
import os
import socket
import stat
import struct
import time

import broker_rig as rig_module
from broker_credentials import SECRET, Client, Upstream, field, injecting
from broker_rig import (PUBLIC4, Refused, UpstreamProxy, client_hello, echo, how_it_ends, listen, load, peak_memory, proxied,
                        read_reply, serve, socks_name, test, tls_client, wait_for)

# ---- Credentials ---------------------------------------------------------------------------------


@test
def no_spelling_of_a_header_brings_a_credential_of_the_clients(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443", "inject 0 strip X-Extra")
    mine = ("AUTHORIZATION", "Authorization", "X-API-KEY", "x_api_key", "X.Api.Key", "Api_Key", "private_token",
            "PROXY_AUTHORIZATION", "X_Extra", "Transfer_Encoding", "Content_Length")
    for name in mine:
        assert Client(rig).get("/", more=f"{name}: 77\r\n")[0] == 200, name
        request = upstream.requests[-1]
        assert field(request, "authorization") == [SECRET] and "77" not in str(request[2]), request
    for line in ("Authorization : mine", " Authorization: mine", "Authorization\t: mine", "Author\0ization: mine",
                 "Authorization\r: mine", "X: a\r\n\tAuthorization: mine", "X: a\rAuthorization: mine"):
        before = len(upstream.requests)
        assert Client(rig).get("/", more=f"{line}\r\n")[0] == 400, line
        assert len(upstream.requests) == before, line
    assert Client(rig).get("/", more="X-Own: kept\r\nX_Own_Too: kept\r\n")[0] == 200
    assert field(upstream.requests[-1], "x-own") == field(upstream.requests[-1], "x_own_too") == ["kept"]
    upstream.server.close()
    assert door.stop() == 0


@test
def no_method_has_the_server_send_the_credential_back(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    for method in ("TRACE", "TRACK", "trace"):
        assert Client(rig).get("/", method=method)[0] == 403, method
        assert door.event(verdict="denied").because == "method"
    assert not upstream.requests
    for method in ("OPTIONS", "PROPFIND"):
        assert Client(rig).get("/", method=method)[0] == 200, method
    upstream.server.close()
    assert door.stop() == 0


@test
def no_header_stands_in_for_the_method_or_the_path_that_was_judged(rig):
    upstream = Upstream(rig, 8443)
    overrides = "".join(f"{name}: 77\r\n" for name in (
        "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X_Rewrite_Url"))
    for line in ("inject 0 method GET", "inject 0 path /v1/"):
        door = injecting(rig, "inject 0 upstream https://api.example:8443", line)
        assert Client(rig).get("/v1/x", more=overrides)[0] == 200
        assert "77" not in str(upstream.requests[-1][2]), upstream.requests[-1]
        assert door.stop() == 0
    # Where everything may be asked for, there is nothing to get around.
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    assert Client(rig).get("/v1/x", more=overrides)[0] == 200
    assert str(upstream.requests[-1][2]).count("77") == 5, upstream.requests[-1]
    upstream.server.close()
    assert door.stop() == 0


@test
def no_path_leads_out_of_the_prefix_of_the_upstream(rig):
    upstream = Upstream(rig, 8443)
    outside = ("/../admin", "/%2e%2e/admin", "/.%2E/admin", "/..%2fadmin", "/x/..%2f..%2fadmin", "/x/../../admin",
               "//../admin", "/..;/admin", "/..%3b/admin", "/..\\admin", "/..%5cadmin", "/%252e%252e/admin",
               "/%c0%ae%c0%ae/admin", "/x%2f../../../admin", "/..")
    inside = (("/x", "/base/x"), ("/@scope%2fname", "/base/@scope%2Fname"), ("/x/../y?../z", "/base/y?../z"),
              ("/..x/...", "/base/..x/..."), ("/", "/base/"))
    overrides = "X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n"
    for lines in ((), ("inject 0 path /",), ("inject 0 path /x/", "inject 0 path /")):
        door = injecting(rig, "inject 0 upstream https://api.example:8443/base", *lines)
        before = len(upstream.requests)
        for target in outside:
            assert Client(rig).get(target)[0] == 403, (lines, target)
            assert door.event(verdict="denied").because == "path"
        assert len(upstream.requests) == before, upstream.requests
        for target, sent in inside:
            assert Client(rig).get(target, more=overrides)[0] == 200, (lines, target)
            assert upstream.requests[-1][1] == sent, (lines, target, upstream.requests[-1])
            assert "admin" not in str(upstream.requests[-1][2]), upstream.requests[-1]
        assert door.stop() == 0
    # Where the upstream has no prefix and every path is allowed, it is sent as it came.
    for lines in ((), ("inject 0 path /",)):
        door = injecting(rig, "inject 0 upstream https://api.example:8443", *lines)
        for target in ("/../admin", "/a;b//c", "/@scope%2fname"):
            assert Client(rig).get(target)[0] == 200, (lines, target)
            assert upstream.requests[-1][1] == target, upstream.requests[-1]
        assert door.stop() == 0
    upstream.server.close()


@test
def what_follows_a_refusal_is_not_read(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443", "inject 0 path /v1/")
    good = "GET /v1/good HTTP/1.1\r\nHost: x\r\n\r\n"
    for bad in ("GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n", "TRACE /v1/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET /v1/\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST /v2/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
                "GET /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"):
        client = Client(rig).send(bad + good * 3)
        assert client.reply()[0] in (400, 403), bad
        assert client.stream.read() == b"", bad
        client.close()
    assert not upstream.requests, upstream.requests
    client = Client(rig).send(good * 3)
    assert [client.reply()[0] for _ in range(3)] == [200] * 3 and len(upstream.requests) == 3
    upstream.server.close()
    assert door.stop() == 0


@test
def chunks_are_read_as_every_server_reads_them(rig):
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    start = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    for body in ("3 \r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n",
                 "3;a=\"\nb\"\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n",
                 "ffffffffffffffff\r\nabc", "3;" + "e" * 70000 + "\r\nabc\r\n0\r\n\r\n", "0\r\nX : a\r\n\r\n",
                 "0\r\nGET /b HTTP/1.1\r\n\r\n", "-1\r\n\r\n"):
        client = Client(rig)
        with contextlib.suppress(ConnectionError):
            client.send(start + body)
        status = client.reply()[0]
        assert status == 400, (body[:40], status)
        client.close()
    assert not [one for one in upstream.requests if one[1] != "/a"], upstream.requests
    client = Client(rig).send(start + "3;x=\"y\"\r\nabc\r\n0\r\nX-Trailer: 1\r\nAuthorization: mine\r\n\r\n")
    assert client.reply()[2] == b"3 bytes"
    assert field(upstream.requests[-1], "authorization") == [SECRET] and not field(upstream.requests[-1], "x-trailer")
    upstream.server.close()
    assert door.stop() == 0


HOSTILE_REPLIES = {
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw" + bytes(1000),
    "lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "negative": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc",
    "both": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
    "nothing": b"",
    "other": b"SSH-2.0-hello\r\n",
    "folded": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: a\r\n b\r\n\r\nok",
    "gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
}


@test
def a_hostile_upstream_harms_nobody_but_its_own_request(rig):
    endless = {"heads": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 1000 + b"\r\n", "advice": b"HTTP/1.1 103 Early Hints\r\n\r\n"}

    def answer(connection, _peer):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(4096)
        path = head.split()[1].decode()[1:]
        if path in endless:
            connection.sendall(endless[path])
            with contextlib.suppress(OSError):
                for _ in range(20000):
                    connection.sendall(endless[path][-1005:] if path == "heads" else endless[path] * 30)
            return
        connection.sendall(HOSTILE_REPLIES[path])
    hostile = serve(listen(PUBLIC4, 8085), answer)
    upstream = Upstream(rig, 8443)
    door = injecting(rig, "inject 0 upstream http://api.example:8085", "limit idle-ms 3000")
    for path in [*HOSTILE_REPLIES, *endless]:
        client = Client(rig).send(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n")
        data, end = how_it_ends_soon(client)
        assert b"s3cret" not in data, path
        assert end in ("closed", "reset", "idle"), (path, end)
        client.close()
    assert peak_memory(door.process) < 60 << 20, peak_memory(door.process)
    assert door.stop() == 0
    hostile.close()
    door = injecting(rig, "inject 0 upstream https://api.example:8443")
    assert Client(rig).get("/")[0] == 200
    upstream.server.close()
    assert door.stop() == 0


def how_it_ends_soon(client, seconds=5):
    """As how_it_ends(), but a connection that is kept for the next request is "idle"."""
    client.socket.settimeout(seconds)
    data = b""
    try:
        while more := client.socket.recv(65536):
            data += more
            if len(data) > 4 << 20:
                return data, "much"
    except socket.timeout:
        return data, "idle"
    except OSError:
        return data, "reset"
    return data, "closed"


# ---- Proxies -------------------------------------------------------------------------------------


def through(rig, port, request, greeting=b""):
    client = rig.connect("127.0.0.1", port)
    if greeting:
        client.sendall(greeting)
        client.recv(2, socket.MSG_WAITALL)
    client.sendall(request)
    return client


@test
def localhost_is_never_the_hosts(rig):
    proxy = UpstreamProxy(3129, ahead=b"")
    door = proxied(rig, "proxy 127.0.0.1:3129", policy="open")
    for name in ("localhost", "LOCALHOST", "localhost.", "a.localhost"):
        head = f"CONNECT {name}:5000 HTTP/1.1\r\nHost: {name}:5000\r\n\r\n".encode()
        assert how_it_ends(through(rig, 3128, head))[0].startswith(b"HTTP/1.1 403 "), name
        assert door.event(verdict="denied").because == "address"
        head = f"GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()
        assert how_it_ends(through(rig, 3128, head))[0].startswith(b"HTTP/1.1 403 "), name
        data, _ = how_it_ends(through(rig, 1080, socks_name(name, 5000), b"\x05\x01\x00"))
        assert data[:2] == b"\x05\x02", (name, data)
    assert not proxy.heads, proxy.heads
    client = through(rig, 3128, b"CONNECT echo.example:5000 HTTP/1.1\r\nHost: echo.example:5000\r\n\r\n")
    assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert len(proxy.heads) == 1
    client.close()
    proxy.server.close()
    assert door.stop() == 0


@test
def a_plain_request_is_no_way_around_tls(rig):
    plain = serve(listen(PUBLIC4, 8445), lambda connection, _: connection.sendall(b"reached"))
    door = proxied(rig, "allow tls.example:443", "allow tls.example:8445/tls", "allow web.example:80")
    for port in (443, 8445):
        head = f"GET http://tls.example:{port}/ HTTP/1.1\r\nHost: tls.example:{port}\r\n\r\n".encode()
        data, _ = how_it_ends(through(rig, 3128, head))
        assert b"reached" not in data, data
        assert door.event(verdict="denied").because == "not_tls"
    client = through(rig, 3128, b"CONNECT tls.example:443 HTTP/1.1\r\nHost: tls.example:443\r\n\r\n")
    client.recv(39, socket.MSG_WAITALL)
    with tls_client(client, "tls.example") as tls:
        tls.sendall(b"x")
        assert tls.recv(1) == b"x"
    with through(rig, 3128, b"GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n") as client:
        assert b"seen: GET / " in client.recv(4096)
    plain.close()
    assert door.stop() == 0


@test
def a_proxy_takes_one_destination_and_no_second(rig):
    door = proxied(rig, "allow web.example", "allow echo.example:5000")
    second = b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"
    client = through(rig, 3128, b"CONNECT echo.example:5000 HTTP/1.1\r\nHost: echo.example:5000\r\n\r\n" + second)
    assert client.recv(39, socket.MSG_WAITALL).startswith(b"HTTP/1.1 200 ")
    assert client.recv(len(second), socket.MSG_WAITALL) == second  # it is data, for the server that was meant
    client.close()
    for head in (b"CONNECT echo.example:5000 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                 b"CONNECT echo.example:5000 HTTP/1.1\r\nHost: echo.example\r\nContent-Length: 5\r\n\r\nabcde",
                 b"CONNECT http://echo.example:5000/ HTTP/1.1\r\nHost: echo.example\r\n\r\n",
                 b"CONNECT echo.example HTTP/1.1\r\nHost: echo.example\r\n\r\n",
                 b"CONNECT user@echo.example:5000 HTTP/1.1\r\nHost: echo.example\r\n\r\n",
                 b"CONNECT echo.example:05000x HTTP/1.1\r\nHost: echo.example\r\n\r\n",
                 b"GET http://web.example@evil.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n",
                 b"GET http://web.example\\evil.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n",
                 b"GET http://web.example#evil.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n",
                 b"GET http://evil.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n"):
        data, _ = how_it_ends(through(rig, 3128, head))
        assert data.startswith(b"HTTP/1.1 400 "), (head, data)
        assert door.event(verdict="denied").because == "bad_request"
    for request in (b"\x05\x01\x00\x03\x0cecho\0example" + struct.pack(">H", 5000), b"\x05\x03\x00\x01" + bytes(6),
                    b"\x05\x01\x00\x03\x00" + struct.pack(">H", 5000), b"\x05\x01\x00\x09" + bytes(6)):
        data, _ = how_it_ends(through(rig, 1080, request, b"\x05\x01\x00"))
        assert data[:1] == b"\x05" and data[1:2] != b"\0", (request, data)
    data, _ = how_it_ends(through(rig, 1080, socks_name("127.0.0.1", 5000), b"\x05\x01\x00"))
    assert data[:1] == b"\x05" and data[1:2] != b"\0", data
    assert door.stop() == 0


# ---- Names ---------------------------------------------------------------------------------------


def wire_query(*labels, kind=1):
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + name + struct.pack(">2H", kind, 1)


@test
def a_name_in_disguise_is_the_same_name_or_none(rig):
    door = rig.door("allow good.example", "allow *.below.example", "deny no.below.example")
    address = rig.address_of("good.example")
    for labels in ((b"GOOD", b"Example"), (b"gOOd", b"eXample")):
        assert read_reply(rig.ask_raw(wire_query(*labels))) == (0, [address]), labels
    for labels in ((b"good.example",), (b"good", b"example\0"), (b"good\0", b"example"), (b"good", b"example."),
                   (b"x.good", b"example"), (b"g\xc3\xb6od", b"example"), (b"good", b"exa\xadmple"), (b"good ", b"example"),
                   (b"NO", b"below", b"EXAMPLE"), (b"no", b"below", b"example"), (b"a.no", b"below", b"example"), (b"-", b"example"),
                   (b"198", b"18", b"0", b"16")):
        assert read_reply(rig.ask_raw(wire_query(*labels))) == (3, []), labels
    assert rig.ask("xn--gd-fka.below.example")[0] == 0
    assert door.stop() == 0


@test
@load
def all_addresses_can_be_used_up_and_what_has_one_keeps_it(rig):
    door = rig.door("allow *.many.example:5000", "allow echo.example:5000")
    first = rig.address_of("echo.example")
    with rig.namespaces.jail():
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(10)
    codes, seen = [], set()
    for number in range(4200):
        client.sendto(rig.query(f"n{number}.many.example"), ("198.18.0.2", 53))
        code, addresses = read_reply(client.recv(4096))
        codes.append(code)
        seen.update(addresses)
    client.close()
    assert codes.count(0) == 4095 and codes[:4095] == [0] * 4095 and set(codes[4095:]) == {3}, codes.count(0)
    assert len(seen) == 4095 and first not in seen
    assert rig.address_of("echo.example") == first
    with rig.open("echo.example", 5000) as connection:
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"
    assert peak_memory(door.process) < 40 << 20, peak_memory(door.process)
    assert door.stop() == 0


# ---- TLS -----------------------------------------------------------------------------------------


def extension(kind, body):
    return struct.pack(">2H", kind, len(body)) + body


def server_name(*names, kind=0):
    entries = b"".join(bytes([kind]) + struct.pack(">H", len(name)) + name for name in names)
    return extension(0, struct.pack(">H", len(entries)) + entries)


def hello_of(extensions, records=1, more=b""):
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body + more
    size = -(-len(message) // records)
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(message[at:at + size])) + message[at:at + size]
                    for at in range(0, len(message), size))


@test
def hellos_that_two_servers_would_read_differently_go_nowhere(rig):
    got = []

    def reached(connection, _peer):
        got.append(connection.recv(1 << 16))
        connection.sendall(b"reached")
    server = serve(listen(PUBLIC4, 8446), reached)
    door = rig.door("allow tls.example:8446/tls", ports=(8446,))
    good = server_name(b"tls.example")
    for name, hello in {
            "two names": hello_of(server_name(b"tls.example", b"evil.example")),
            "two extensions": hello_of(good + server_name(b"evil.example")),
            "the same twice": hello_of(good + good),
            "evil first": hello_of(server_name(b"evil.example") + good),
            "of another type": hello_of(server_name(b"tls.example", kind=1)),
            "NUL": hello_of(server_name(b"tls.example\0.evil.example")),
            "an address": hello_of(server_name(PUBLIC4.encode())),
            "empty": hello_of(server_name(b"")),
            "no extension": hello_of(b""),
            "cut short": hello_of(good[:-3]),
            "another hello behind it": hello_of(good, more=hello_of(server_name(b"evil.example"))[5:]),
            "too many records": hello_of(good, records=60),
            "too long": hello_of(good + extension(21, bytes(17000))),
            "not TLS": b"GET / HTTP/1.1\r\nHost: tls.example\r\n\r\n",
            "SSL 2": b"\x80\x2e\x01\x00\x02" + bytes(41)}.items():
        with rig.open("tls.example", 8446) as client:
            with contextlib.suppress(OSError):
                client.sendall(hello)
            data, _ = how_it_ends(client)
            assert b"reached" not in data, name
        door.event(verdict="denied")
    assert not got, got
    for hello in (hello_of(good), hello_of(good, records=20), hello_of(server_name(b"TLS.example")),
                  hello_of(good + extension(0xfe0d, bytes(100)) + extension(21, bytes(9000)))):
        with rig.open("tls.example", 8446) as client:
            client.sendall(hello)
            assert client.recv(7, socket.MSG_WAITALL) == b"reached"
    assert len(got) == 4
    server.close()
    assert door.stop() == 0


@test
def a_first_request_that_is_none_goes_nowhere(rig):
    door = rig.door("allow web.example", "limit inspect-ms 1000")
    with rig.open("web.example", 80) as client:
        client.sendall(b"GET /\r\n")
        assert b"seen:" not in how_it_ends(client)[0]
    door.event(verdict="error", because="timeout")
    assert door.stop() == 0
    door = rig.door("allow web.example")
    for text in (b"GET / HTTP/0.9\r\nHost: web.example\r\n\r\n", b"\r\nGET / HTTP/1.1\r\nHost: web.example\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: web.example\r\n Host: evil.example\r\n\r\n",
                 b"GET / HTTP/1.1\nHost: web.example\n\n", b"GET / HTTP/1.1\r\nHost : web.example\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: web.example, evil.example\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: web.example:0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x@web.example\r\n\r\n",
                 b"GET http://web.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                 b"GET http://evil.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n",
                 b"CONNECT evil.example:443 HTTP/1.1\r\nHost: web.example\r\n\r\n",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", client_hello("web.example"),
                 b"POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
        with rig.open("web.example", 80) as client:
            client.sendall(text)
            data, _ = how_it_ends(client)
            assert b"seen:" not in data, (text, data)
        door.event(verdict="denied")
    for text in (b"GET / HTTP/1.1\r\nHost: WEB.example.\r\n\r\n", b"GET http://web.example/ HTTP/1.1\r\nHost: web.example:80\r\n\r\n"):
        with rig.open("web.example", 80) as client:
            client.sendall(text)
            assert b"seen:" in client.recv(4096), text
    assert door.stop() == 0


# ---- What a broker may take ----------------------------------------------------------------------


@test
def slow_and_silent_clients_are_given_up(rig):
    door = rig.door("allow web.example", "allow echo.example:5000", "limit connections 40", "limit inspect-ms 700")
    address, other = rig.address_of("web.example"), rig.address_of("echo.example")
    slow = [rig.connect(address, port) for port in (80, 443) * 20]
    for number, client in enumerate(slow):
        if number % 3:
            with contextlib.suppress(OSError):  # it may have been given up before
                client.sendall(b"G" if number % 2 == 0 else b"\x16")
    assert wait_for(lambda: [one for one in door.log if one.because == "timeout"])
    assert wait_for(lambda: len([one for one in door.log if one.because == "timeout"]) == 40)

    def has_room():  # the event comes before the connection is forgotten
        with rig.connect(other, 5000) as client, contextlib.suppress(ConnectionResetError):
            client.sendall(b"x")
            return client.recv(1) == b"x"
    wait_for(has_room, "room for another connection")
    for client in slow:
        client.close()
    assert door.stop() == 0


@test
def memory_is_bounded_whatever_is_sent(rig):
    door = rig.door("allow web.example", "limit connections 64", "limit inspect-ms 60000")
    limits = [line for line in open(f"/proc/{door.process.pid}/limits") if line.startswith("Max data size")]
    bound = (64 << 20) + 64 * (320 << 10)
    sanitized = b"__asan_init" in open(rig.program, "rb").read()  # whose shadow is larger than any bound
    assert sanitized or limits[0].split()[3:5] == [str(bound)] * 2, limits
    address = rig.address_of("web.example")
    clients = []
    for _ in range(64):  # each as much as is read ahead, of a head that never ends
        client = rig.connect(address, 80)
        assert not isinstance(client, Refused)
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 60000)
        clients.append(client)
    for client in clients:
        client.sendall(b"\r\nHost: web.example\r\n\r\n")
    for client in clients:
        assert client.recv(1) == b"H"
        client.close()
    assert sanitized or peak_memory(door.process) < 40 << 20, peak_memory(door.process)
    assert door.stop() == 0


@test
def the_kernels_buffers_of_many_connections_are_bounded(rig):
    """What the kernel keeps of a connection grows to megabytes: where there are more than 32, their sockets have
    buffers of a fixed size, and all of those together are 16 MiB, of which the kernel says twice as much."""
    server = serve(listen(PUBLIC4, 5012), echo)
    door = rig.door("allow echo.example:5012", ports=(5012,))
    address = rig.address_of("echo.example")
    clients = []
    for count, bounded in ((32, 0), (88, 88)):
        clients += [rig.connect(address, 5012) for _ in range(count)]
        for client in clients[-count:]:
            client.sendall(b"x")
            assert client.recv(1) == b"x"
        sizes = fixed_buffers(door, 5012)
        assert len(sizes) == bounded and all(size <= 2 * (16 << 20) // 33 for size in sizes), sizes
    for client in clients:
        client.close()
    server.close()
    assert door.stop() == 0


SYS_PIDFD_GETFD, SO_BUF_LOCK, SOCK_RCVBUF_LOCK = 438, 72, 2


def fixed_buffers(door, port):
    """The sizes of the receive buffers, where they are fixed, of the broker's connections to this port."""
    pidfd, sizes = os.pidfd_open(door.process.pid), []
    for number in map(int, os.listdir(f"/proc/{door.process.pid}/fd")):
        fd = rig_module.LIBC.syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
        if fd < 0 or not stat.S_ISSOCK(os.fstat(fd).st_mode):
            continue
        with socket.socket(fileno=fd) as copy, contextlib.suppress(OSError):
            locked = copy.getsockopt(socket.SOL_SOCKET, SO_BUF_LOCK) & SOCK_RCVBUF_LOCK
            if locked and copy.family == socket.AF_INET and copy.getpeername()[1] == port:
                sizes.append(copy.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
    os.close(pidfd)
    return sizes


def open_files(door):
    return len(os.listdir(f"/proc/{door.process.pid}/fd"))


def ask_without_reading(client, frame, door, before):
    """Sends queries until the connection ends. Where the client's buffer is full its kernel may not see the end: then
    the broker, which has as many open files as before, shows it."""
    waiting, deadline = b"", time.monotonic() + rig_module.WAIT
    while open_files(door) > before:
        assert time.monotonic() < deadline, "the broker keeps the connection"
        waiting = waiting or frame * 64
        try:
            waiting = waiting[client.send(waiting, socket.MSG_DONTWAIT):]
        except BlockingIOError:
            time.sleep(0.001)
        except ConnectionError:
            return


@test
def a_client_of_the_name_server_that_does_not_read_loses_its_connection_alone(rig):
    rig.resolver.names["real.example"] = [PUBLIC4]
    door = rig.door(policy="open")
    for name in ("hidden.onion", "real.example"):  # the first one is answered without a resolver
        with rig.namespaces.jail():
            client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        before = open_files(door)
        rig_module.connected(client, ("198.18.0.2", 53))
        with client:
            query = rig.query(name)
            query = struct.pack(">H", len(query)) + query
            client.sendall(query)
            assert client.recv(2) != b""  # the broker has the connection
            ask_without_reading(client, query, door, before)
        assert rig.ask("real.example")[0] == 0
    assert rig.ask("hidden.onion") == (3, [])
    assert door.stop() == 0
