"""Our gRPC against an independent one (grpcio), both ways round."""
import concurrent.futures
import subprocess
import threading
import time

import grpc
import pytest

from rpc_peers import echo_server

PREFIX = "/test.Echo/"


@pytest.fixture
def server(build, short_tmp):
    with echo_server(build, short_tmp) as s:
        yield s


def channel(server, *options):
    return grpc.insecure_channel(f"unix:{server.path}", options=[("grpc.use_local_subchannel_pool", 1), *options])


@pytest.fixture
def chan(server):
    with channel(server) as c:
        yield c


def unary(chan, method, request=b"", **kw):
    return chan.unary_unary(PREFIX + method)(request, timeout=kw.pop("timeout", 20), **kw)


def fails(chan, method, request=b"", **kw):
    with pytest.raises(grpc.RpcError) as e:
        unary(chan, method, request, **kw)
    return e.value.code(), e.value.details()


# ---- a grpcio client on our server ----

def test_unary(chan):
    for size in (0, 1, 5, 16379, 16384, 65535, 1000000, 4194304 - 64):
        body = bytes(i % 251 for i in range(1000)) * (size // 1000) + b"x" * (size % 1000)
        assert unary(chan, "Echo", body) == body


def test_many_at_once(chan):
    call = chan.unary_unary(PREFIX + "Echo")
    futures = [call.future(b"%d" % i, timeout=20) for i in range(2000)]
    assert [f.result() for f in futures] == [b"%d" % i for i in range(2000)]


def test_stream(chan):
    stream = chan.unary_stream(PREFIX + "Stream")
    assert [len(m) for m in stream(b"7 1000", timeout=20)] == [1000] * 7
    assert list(stream(b"0 0", timeout=20)) == []
    assert list(stream(b"2 0", timeout=20)) == [b"", b""]
    messages = list(stream(b"20 1000000", timeout=20))
    assert len(messages) == 20
    for i, m in enumerate(messages):
        assert m == bytes((i + k % 251) % 256 for k in range(251)) * (1000000 // 251) + \
            bytes((i + k) % 256 for k in range(1000000 % 251))


def test_status_and_text(chan):
    for code in grpc.StatusCode:
        number = code.value[0]
        if number:
            assert fails(chan, "Fail", b"%d why" % number) == (code, "why")
    text = "K\u00f6ln: 100 % \u20ac\n\U0001f600 \"quoted\" \\ \x7f"
    assert fails(chan, "Fail", b"9 " + text.encode()) == (grpc.StatusCode.FAILED_PRECONDITION, text)
    assert fails(chan, "Fail", b"9 " + b"x" * 2000)[1] == "x" * 1024
    assert fails(chan, "Fail", b"9") == (grpc.StatusCode.FAILED_PRECONDITION, "")
    assert fails(chan, "Nope") == (grpc.StatusCode.UNIMPLEMENTED, "unknown method /test.Echo/Nope")


def test_large_request(chan, server):
    assert unary(chan, "Size", b"x" * (10 << 20)) == b"10485760"
    assert unary(chan, "Size", b"x" * (16 << 20)) == b"16777216"
    assert fails(chan, "Size", b"x" * ((16 << 20) + 1)) == \
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "message of 16777217 bytes is above the limit of 16777216")
    assert unary(chan, "Echo", b"still there") == b"still there"
    assert server.rss_mb() < 60


def test_large_answer_is_refused_with_its_size(server):
    with channel(server, ("grpc.max_receive_message_length", -1)) as chan:
        assert len(unary(chan, "Big", b"4194304")) == 4194304
        assert fails(chan, "Big", b"4194305") == \
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "message of 4194305 bytes is above gRPC's limit of 4194304")


def test_deadline(chan):
    start = time.monotonic()
    assert fails(chan, "Sleep", b"10000", timeout=0.2)[0] == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - start < 5
    end = time.monotonic() + 5
    while b"gone=1" not in unary(chan, "Stats"):
        assert time.monotonic() < end
    assert unary(chan, "Sleep", b"10", timeout=5) == b"woke"


def test_cancel(chan):
    call = chan.unary_unary(PREFIX + "Sleep").future(b"60000")
    watch = chan.unary_stream(PREFIX + "Watch")(b"1 10 0")
    assert len(next(watch)) == 10
    call.cancel()
    watch.cancel()
    end = time.monotonic() + 5
    while b"gone=2" not in unary(chan, "Stats"):
        assert time.monotonic() < end


def test_5000_cancelled_streams(chan, server):
    stream = chan.unary_stream(PREFIX + "Watch")
    refused = 0
    for i in range(5000):
        call = stream(b"1 10 0", wait_for_ready=True)
        try:
            next(call)
        except grpc.RpcError as e: # the server had enough resets, said GOAWAY, and the client connects again
            assert e.code() == grpc.StatusCode.UNAVAILABLE, e
            refused += 1
        call.cancel()
    assert refused < 50
    assert unary(chan, "Echo", b"still there", wait_for_ready=True) == b"still there"
    assert server.rss_mb() < 16


def test_gzip_is_refused_and_the_connection_lives(chan):
    code, text = fails(chan, "Echo", b"x" * 10000, compression=grpc.Compression.Gzip)
    assert code == grpc.StatusCode.UNIMPLEMENTED and "identity" in text
    assert unary(chan, "Echo", b"plain") == b"plain"


@pytest.mark.parametrize("authority", ["localhost", "%2Fvar%2Flib%2Fkubelet%2Fx.sock",
                                       "/var/lib/kubelet/device-plugins/x.sock"])
def test_authority(server, authority):
    with channel(server, ("grpc.default_authority", authority)) as chan:
        assert unary(chan, "Echo", b"hello") == b"hello"


def test_keepalive_is_not_policed(server):
    with channel(server, ("grpc.keepalive_time_ms", 100), ("grpc.http2.max_pings_without_data", 0),
                 ("grpc.keepalive_permit_without_calls", 1),
                 ("grpc.http2.min_time_between_pings_ms", 100)) as chan:
        watch = chan.unary_stream(PREFIX + "Watch")(b"1 10 0", timeout=20)
        assert len(next(watch)) == 10
        time.sleep(2)
        assert unary(chan, "Stats").startswith(b"connections=1 ")
        watch.cancel()


def test_goodbye(build, short_tmp):
    """SIGTERM: an unfinished stream ends UNAVAILABLE with our text, and the file is gone (echo_server looks)."""
    with echo_server(build, short_tmp) as server, channel(server) as chan:
        watch = chan.unary_stream(PREFIX + "Watch")(b"1 10 0")
        assert len(next(watch)) == 10
        server.terminate()
        with pytest.raises(grpc.RpcError) as e:
            next(watch)
        assert e.value.code() == grpc.StatusCode.UNAVAILABLE
        assert e.value.details() == "the server is shutting down"


def test_restart_under_the_same_channel(build, short_tmp):
    with echo_server(build, short_tmp) as server:
        chan = channel(server)
        assert unary(chan, "Echo", b"one") == b"one"
    with echo_server(build, short_tmp):
        try:
            answer = unary(chan, "Echo", b"two", wait_for_ready=True)
        except grpc.RpcError as e: # grpcio looks at an idle channel only when it is used
            assert e.code() == grpc.StatusCode.UNAVAILABLE
            answer = unary(chan, "Echo", b"two", wait_for_ready=True)
        assert answer == b"two"
    chan.close()


# ---- our client on a grpcio server ----

class Echo(grpc.GenericRpcHandler):
    """Echo, Stream ("N"), Fail (text), Sleep (seconds) for bytes as they are; notes what it saw."""

    def __init__(self):
        self.remaining = None
        self.cancelled = threading.Event()

    def service(self, details):
        return {
            PREFIX + "Echo": grpc.unary_unary_rpc_method_handler(lambda request, context: request),
            PREFIX + "Stream": grpc.unary_stream_rpc_method_handler(self.stream),
            PREFIX + "Fail": grpc.unary_unary_rpc_method_handler(
                lambda request, context: context.abort(grpc.StatusCode.ABORTED, request.decode())),
            PREFIX + "Sleep": grpc.unary_unary_rpc_method_handler(self.sleep),
            PREFIX + "Forever": grpc.unary_stream_rpc_method_handler(self.forever),
        }.get(details.method)

    def stream(self, request, context):
        for i in range(int(request)):
            yield b"m%d" % i

    def sleep(self, request, context):
        self.remaining = context.time_remaining()
        time.sleep(float(request))
        return b"woke"

    def forever(self, request, context):
        context.add_callback(self.cancelled.set)
        i = 0
        while context.is_active():
            yield b"m%d" % i
            i += 1
            time.sleep(0.01)


@pytest.fixture
def grpcio(short_tmp):
    handler = Echo()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), [handler])
    handler.path = short_tmp / "grpcio.sock"
    server.add_insecure_port(f"unix:{handler.path}")
    server.start()
    yield handler
    server.stop(None)


@pytest.fixture
def ask(build, grpcio):
    def run(method, text, *more):
        r = subprocess.run([build / "tests" / "rpc_echo_client", grpcio.path, PREFIX + method, text,
                            *map(str, more)], capture_output=True, text=True, timeout=30)
        assert r.returncode == 0, r.stdout + r.stderr
        return r.stdout.splitlines()
    return run


def test_client_unary(ask):
    assert ask("Echo", "hello") == ["message 5 hello", "status 0 "]
    assert ask("Echo", "") == ["message 0 ", "status 0 "]
    assert ask("Echo", "@4000000") == ["message 4000000 " + "x" * 32, "status 0 "]


def test_client_stream(ask):
    assert ask("Stream", "1000") == [f"message {len(str(i)) + 1} m{i}" for i in range(1000)] + ["status 0 "]
    assert ask("Stream", "0") == ["status 0 "]


def test_client_error(ask):
    assert ask("Fail", "K\u00f6ln: 100 % \u20ac") == ["status 10 K\u00f6ln: 100 % \u20ac"]
    assert ask("Nope", "x")[0].startswith("status 12 ")


def test_client_deadline(ask, grpcio):
    start = time.monotonic()
    line = ask("Sleep", "3", 300)[0]
    assert line.startswith("status 4 ")
    assert time.monotonic() - start < 2
    assert 0 < grpcio.remaining <= 0.3
    assert ask("Sleep", "0", 20000) == ["message 4 woke", "status 0 "]
    assert 10 < grpcio.remaining <= 20


def test_client_cancel(ask, grpcio):
    assert ask("Forever", "", 0, 3) == ["message 2 m0", "message 2 m1", "message 2 m2", "status 1 cancelled"]
    assert grpcio.cancelled.wait(10)


def test_client_without_server(build, short_tmp):
    r = subprocess.run([build / "tests" / "rpc_echo_client", short_tmp / "none.sock", PREFIX + "Echo", "x"],
                       capture_output=True, text=True, timeout=30)
    assert r.returncode == 1
    assert "none.sock" in r.stdout and "No such file or directory" in r.stdout
