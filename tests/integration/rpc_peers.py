"""Helpers of the rpc tests: the echo server as a process, and HTTP/2 frames by hand."""
import contextlib
import pathlib
import socket
import struct
import subprocess
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """One header field as HPACK literal without indexing; short enough for one length byte."""
    name, value = name.encode(), value.encode()
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request_headers(method):
    return b"".join(literal(n, v) for n, v in (
        (":method", "POST"), (":scheme", "http"), (":path", "/test.Echo/" + method), (":authority", "localhost"),
        ("content-type", "application/grpc"), ("te", "trailers")))


def message(body):
    return b"\0" + struct.pack(">I", len(body)) + body


def request(stream, method, body=b""):
    return (frame(HEADERS, END_HEADERS, stream, request_headers(method)) +
            frame(DATA, END_STREAM, stream, message(body)))


def connect(path, greet=True):
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(path))  # blocking: waits where the backlog is full
    s.settimeout(20)
    if greet:
        s.sendall(PREFACE + frame(SETTINGS, 0, 0))
    return s


def flood(s, bytes_at_once, seconds):
    """Sends the same bytes until the server hangs up (True) or the time is over (False); reads nothing."""
    end = time.monotonic() + seconds
    s.settimeout(0.5)
    try:
        while time.monotonic() < end:
            try:
                s.send(bytes_at_once)
            except socket.timeout:
                pass
    except OSError:
        return True
    return False


def closed_by_server(s):
    """Reads to the end; True when the server closed."""
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
    except socket.timeout:
        return False
    return True


def read_frame(s):
    def read(n):
        got = b""
        while len(got) < n:
            more = s.recv(n - len(got))
            assert more, "the server hung up"
            got += more
        return got
    head = read(9)
    return head[3], head[4], struct.unpack(">I", head[5:])[0], read(struct.unpack(">I", b"\0" + head[:3])[0])


class EchoServer:
    """rpc_echo_server as a process."""

    def __init__(self, build, folder, **popen):
        self.path = folder / "echo.sock"
        self.terminated = False
        self.program = pathlib.Path(build) / "tests" / "rpc_echo_server"
        self.process = subprocess.Popen([self.program, self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        **popen)
        assert self.process.stdout.readline() == b"ready\n", self.process.stderr.read()
        # Sanitizers keep freed memory back, so that a bound says nothing there.
        self.sanitized = b"__asan_init" in self.program.read_bytes()

    def rss_mb(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 0 if self.sanitized else int(line.split()[1]) / 1024
        raise AssertionError("no VmHWM")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def terminate(self):
        """SIGTERM, once: a second one would meet a process without its handler."""
        if not self.terminated:
            self.process.terminate()
        self.terminated = True

    def stop(self):
        self.terminate()
        try:
            code = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        errors = self.process.stderr.read().decode()
        assert code == 0, errors
        return errors


@contextlib.contextmanager
def echo_server(build, folder, **popen):
    s = EchoServer(build, folder, **popen)
    try:
        yield s
    finally:
        s.stop()
    assert not s.path.exists()
