"""Peers that mean no good: our gRPC server lives, stays small and goes on serving others."""
import os
import random
import resource
import socket
import struct
import threading
import time

import grpc
import pytest

from rpc_peers import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS,
                       closed_by_server, connect, echo_server, flood, frame, literal, read_frame, request,
                       request_headers)

LIMIT_MB = 16


@pytest.fixture
def server(build, short_tmp):
    with echo_server(build, short_tmp) as s:
        yield s
        assert_serves(s)


def assert_serves(server):
    with grpc.insecure_channel(f"unix:{server.path}", options=[("grpc.use_local_subchannel_pool", 1)]) as c:
        # wait_for_ready: the backlog may be full for a moment
        assert c.unary_unary("/test.Echo/Echo")(b"alive", timeout=20, wait_for_ready=True) == b"alive"


def test_garbage(server):
    rng = random.Random(1)
    for i in range(200):
        s = connect(server.path, greet=False)
        try:
            s.sendall((PREFACE if i % 2 else b"") + rng.randbytes(rng.randrange(1, 3000)))
        except ConnectionError:
            pass
        s.close()
    assert server.rss_mb() < LIMIT_MB


def test_random_frames(server):
    rng = random.Random(2)
    for _ in range(200):
        s = connect(server.path)
        try:
            for _ in range(20):
                s.sendall(frame(rng.randrange(12), rng.randrange(256), rng.randrange(8),
                                rng.randbytes(rng.randrange(64))))
        except ConnectionError:
            pass
        s.close()
    assert server.rss_mb() < LIMIT_MB


def test_flipped_bits(server):
    rng = random.Random(3)
    good = PREFACE + frame(SETTINGS, 0, 0) + request(1, "Echo", b"hello") + request(3, "Stream", b"3 10")
    for _ in range(500):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        s = connect(server.path, greet=False)
        try:
            s.sendall(bad)
        except ConnectionError:
            pass
        s.close()
    assert server.rss_mb() < LIMIT_MB


def test_http1(server):
    s = connect(server.path, greet=False)
    s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert closed_by_server(s)


def test_huge_frame(server):
    s = connect(server.path)
    s.sendall(b"\xff\xff\xff" + bytes([DATA, 0]) + struct.pack(">I", 1) + b"x" * 1000)
    assert closed_by_server(s)
    assert server.rss_mb() < LIMIT_MB


def test_half_open_connections_while_calls_go_on(server):
    with grpc.insecure_channel(f"unix:{server.path}") as c:
        call = c.unary_unary("/test.Echo/Echo")
        watch = c.unary_stream("/test.Echo/Watch")(b"1 5 0")
        assert len(next(watch)) == 5
        silent = []
        for i in range(200):
            silent.append(connect(server.path, greet=False))
            assert call(b"%d" % i, timeout=10) == b"%d" % i
        assert call(b"end", timeout=10) == b"end"
        assert watch.is_active()
        watch.cancel()
    for s in silent:
        s.close()
    assert server.rss_mb() < LIMIT_MB


def test_1000_connections(server):
    """Silent ones, as many as the process may hold: each new one takes the oldest one's place."""
    with grpc.insecure_channel(f"unix:{server.path}") as c:
        call = c.unary_unary("/test.Echo/Echo")
        assert call(b"first", timeout=10) == b"first"
        silent = [connect(server.path, greet=False) for _ in range(1000)]
        stats = c.unary_unary("/test.Echo/Stats")(b"", timeout=10)
        assert stats.startswith(b"connections=64 "), stats
        assert_serves(server)
        for s in silent:
            s.close()
    assert server.rss_mb() < LIMIT_MB


def test_silent_connection_is_closed(server):
    s = connect(server.path, greet=False)
    start = time.monotonic()
    assert closed_by_server(s)
    assert 9 < time.monotonic() - start < 15


@pytest.mark.parametrize("name,payload,must_close", [
    ("ping", frame(PING, 0, 0, b"12345678"), True),
    ("settings", frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)), True),
    ("continuation", frame(HEADERS, 0, 1, request_headers("Echo")) + frame(CONTINUATION, 0, 1, literal("a", "b")) * 20,
     True),
    ("ping ack", frame(PING, ACK, 0, b"12345678"), False),
    ("window", frame(8, 0, 0, struct.pack(">I", 1)), False),
    ("priority", frame(2, 0, 1, struct.pack(">IB", 3, 10)), False),
    ("empty data", frame(DATA, 0, 1), False),
])
def test_floods_of_a_peer_that_never_reads(server, name, payload, must_close):
    s = connect(server.path)
    closed = flood(s, payload * 100, 3)
    assert closed or not must_close
    assert server.rss_mb() < LIMIT_MB
    s.close()


def test_rapid_reset(server):
    s = connect(server.path)
    stream, closed, end = 1, False, time.monotonic() + 10
    try:
        while time.monotonic() < end:
            s.sendall(b"".join(request(stream + 2 * i, "Watch", b"1 1000 0") +
                               frame(RST_STREAM, 0, stream + 2 * i, struct.pack(">I", 8)) for i in range(50)))
            stream += 100
    except OSError:
        closed = True
    assert closed and stream < 20000
    assert server.rss_mb() < LIMIT_MB


def test_requests_without_reading(server):
    """100 open calls of 4 MiB answers: bounded by what one connection may hold."""
    s = connect(server.path)
    s.sendall(b"".join(request(1 + 2 * i, "Big", b"4000000") for i in range(100)))
    time.sleep(1)
    assert server.rss_mb() < 100
    s.close()


def test_header_bomb(server):
    """A 4000-byte field in HPACK's table, then named by one byte again and again."""
    field = b"\x40\x01a\x7f" + bytes([0x80 | (4000 - 127) & 0x7f, (4000 - 127) >> 7]) + b"v" * 4000
    s = connect(server.path)
    s.sendall(frame(HEADERS, END_HEADERS | END_STREAM, 1, request_headers("Echo") + field + b"\xbe" * 12000))
    while True:
        kind, flags, stream, _ = read_frame(s)
        if stream == 1:
            assert kind == HEADERS and flags & END_STREAM  # an error, not an echo
            break
    assert server.rss_mb() < LIMIT_MB
    s.close()


def test_watcher_that_never_reads(server):
    """100 snapshots of 1 MB to a peer with an open window that does not read its socket."""
    s = connect(server.path, greet=False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0x7fffffff)) +
              frame(8, 0, 0, struct.pack(">I", 0x7fff0000)) + request(1, "Watch", b"100 1000000 2"))
    time.sleep(1.5)
    assert server.rss_mb() < 12
    # When it reads at last, the newest snapshot is there: 99 + 0, 99 + 1, ...
    newest = b"\0" + struct.pack(">I", 1000000) + bytes(range(99, 120))
    got = b""
    while newest not in got:
        got += s.recv(1 << 20)
        assert len(got) < 6000000
    s.close()


def test_full_socket_goes_on_when_it_is_read(server):
    """A wide open window, so that only the socket holds the answer up; reading is all the peer does."""
    s = connect(server.path, greet=False)
    s.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0x7fffffff)) +
              frame(8, 0, 0, struct.pack(">I", 0x7fff0000)) + request(1, "Big", b"4000000"))
    time.sleep(0.3)
    s.settimeout(5)  # less than the handshake's timer, which would wake the connection too
    received = 0
    while received < 4000005:
        kind, _, stream, payload = read_frame(s)
        if stream == 1 and kind == DATA:
            received += len(payload)
    assert received == 4000005
    s.close()


def test_slow_header(server):
    """A connection stuck in the middle of a frame costs one place, no more, and no CPU."""
    s = connect(server.path)
    s.sendall(request(1, "Echo", b"x")[:20])
    before = server.cpu_seconds()
    time.sleep(1)
    assert server.cpu_seconds() - before < 0.2
    s.close()


def test_no_more_descriptors(build, short_tmp):
    """The process runs out of descriptors: no spinning, and it accepts again when there are some."""
    limits = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    with echo_server(build, short_tmp, preexec_fn=limits) as server:
        many = [connect(server.path) for _ in range(60)]
        time.sleep(0.3)
        before = server.cpu_seconds()
        time.sleep(1)
        assert server.cpu_seconds() - before < 0.3
        for s in many:
            s.close()
        assert_serves(server)


def test_connect_and_close(server):
    def hammer():
        for _ in range(500):
            connect(server.path).close()
    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert server.rss_mb() < LIMIT_MB
    fds = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    assert fds < 100
