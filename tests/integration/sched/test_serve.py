"""The scheduler's server, as clients meet it: TLS and its renewal, slow and many clients, large bodies, the end."""
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from sched_peer import Authority, REPO, read_answer, wait_until

pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def serial_of(served):
    with served.connect() as sock:
        return sock.getpeercert()["serialNumber"]


def test_tls(served):
    served.start(*served.flags)
    with served.connect() as sock:
        assert sock.version() in ("TLSv1.2", "TLSv1.3")
        for _ in range(3):
            assert served.ask("GET", "/healthz", on=sock)[0] == 200
    assert served.metric("hami_scheduler_connections_accepted_total") == 1
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as sock:
        try:
            old.wrap_socket(sock, server_hostname="127.0.0.1")
            raise AssertionError("TLS 1.1 was taken")
        except (ssl.SSLError, ConnectionError):
            pass
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as plain:
        plain.sendall(HEALTHZ)
        assert b"200" not in plain.recv(1000)
    assert served.ask("GET", "/healthz")[0] == 200


def test_renewal_under_load(served, authority):
    """New certificates come into force without one failed request; a pair that does not fit changes nothing."""
    served.start(*served.flags)
    first = serial_of(served)
    stop, failures, answers = threading.Event(), [], [0]

    def load(kept):
        sock = served.connect() if kept else None
        while not stop.is_set():
            try:
                assert served.ask("GET", "/healthz", on=sock)[0] == 200
                answers[0] += 1
            except Exception as e:  # pylint: disable=broad-except
                failures.append(repr(e))
                return

    threads = [threading.Thread(target=load, args=(kept,)) for kept in (True, True, False, False)]
    for thread in threads:
        thread.start()
    try:
        served.secret.put(authority, "second", key="first")
        wait_until("the refusal", 30, lambda: "the former stays in force" in served.log())
        assert serial_of(served) == first
        served.secret.put(authority, "second")
        wait_until("the second certificate", 30, lambda: serial_of(served) != first)
        served.secret.put(authority, "first")
        wait_until("the first again", 30, lambda: serial_of(served) == first)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures and answers[0] > 20
    assert served.metric("hami_scheduler_certificate_changes_total", result="used") == 2
    assert served.metric("hami_scheduler_certificate_changes_total", result="refused") == 1


def test_bad_certificates_at_the_start(served, authority, short_tmp):
    """Each is named, and ends the program."""
    empty = short_tmp / "empty"
    empty.write_text("")
    cert, key = authority.folder / "first.crt", authority.folder / "first.key"
    for flags, says in (([f"--cert_file={cert}", f"--key_file={authority.folder}/second.key"], "key values mismatch"),
                        ([f"--cert_file={empty}", f"--key_file={key}"], "empty: the certificate: no start line"),
                        ([f"--cert_file={cert}", f"--key_file={short_tmp}/none"], "none: No such file"),
                        ([f"--cert_file={cert}", f"--key_file={key}", f"--client-ca-file={key}"], "the clients' authorities"),
                        ([f"--cert_file={cert}"], "--cert_file without --key_file")):
        got = subprocess.run([str(served.program), "--http_bind=127.0.0.1:0", "--metrics-bind-address=", *flags],
                             capture_output=True, text=True, timeout=60, check=False)
        assert got.returncode in (1, 2) and says in got.stderr, got.stderr


def test_slow_clients(served):
    """Who asks slowly, or not at all, is dropped; the others are served meanwhile."""
    served.start(*served.flags, "--read-header-timeout=2s", "--read-timeout=2s", "--idle-timeout=2s")
    silent = socket.create_connection(("127.0.0.1", served.port))  # not even a handshake
    head, idle, body = (served.connect() for _ in range(3))
    idle.sendall(HEALTHZ)
    body.sendall(b"POST /filter HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")

    def closed(sock, byte):
        try:
            if byte:
                sock.sendall(byte)
            sock.settimeout(0.001)
            while sock.recv(65536):
                pass
            return True
        except (TimeoutError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True

    left = {silent: b"", head: b"G", idle: b"", body: b"x"}
    end = time.monotonic() + 60
    while left:
        assert time.monotonic() < end, f"{len(left)} are still there"
        assert served.ask("GET", "/healthz")[0] == 200
        left = {sock: byte for sock, byte in left.items() if not closed(sock, byte)}
    for reason, count in (("header-timeout", 2), ("body-timeout", 1), ("idle", 1)):
        assert served.metric("hami_scheduler_connections_dropped_total", reason=reason) == count, reason


def test_a_thousand_connections(scheduler):
    """They are all held; one more makes the longest idle go; a request is answered all the time."""
    scheduler.start()
    many = []
    for _ in range(1000):
        many.append(scheduler.connect())
        if len(many) % 100 == 1:
            assert scheduler.ask("GET", "/healthz", on=many[-1])[0] == 200
    wait_until("all of them", 30, lambda: scheduler.metric("hami_scheduler_connections") == 1000)
    assert scheduler.ask("GET", "/healthz")[0] == 200
    assert scheduler.metric("hami_scheduler_connections_dropped_total", reason="connections") == 1
    many[0].settimeout(30)
    assert many[0].recv(1) == b""
    assert scheduler.ask("GET", "/healthz", on=many[500])[0] == 200
    for sock in many:
        sock.close()
    wait_until("none", 30, lambda: scheduler.metric("hami_scheduler_connections") <= 1)


def test_no_file_descriptor_is_left(scheduler):
    """It neither ends nor spins, and serves again when some are free."""
    scheduler.start(under=("sh", "-c", 'ulimit -n 60; exec "$@"', "sh"))
    assert "few files may be open at once" in scheduler.log()
    many = [scheduler.connect() for _ in range(100)]
    wait_until("all that it can take", 30, lambda: len(list(pathlib.Path(f"/proc/{scheduler.process.pid}/fd").iterdir())) >= 58)
    states = []
    while len(states) < 100:
        states.append(pathlib.Path(f"/proc/{scheduler.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0])
        time.sleep(0.01)
    assert states.count("S") > 50, "it waits most of the time"
    for sock in many[:80]:
        sock.close()
    assert scheduler.ask("GET", "/healthz", on=many[99])[0] == 200
    for sock in many[80:]:
        sock.close()


def test_large_bodies(served):
    """One of 64 MiB is read to its end; several at once are more than is held, and what is left of them is freed."""
    served.start(*served.flags)
    size = 64 << 20
    chunk = b"x" * (1 << 20)

    def send(count):
        sock = served.connect(timeout=120)
        sock.sendall(f"POST /nowhere HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(count):
            sock.sendall(chunk)
        return sock

    with send(64) as sock:
        assert read_answer(sock)[0] == 404
    wait_until("the body is freed", 30, lambda: served.metric("hami_scheduler_held_bytes") == 0)
    socks, dropped = [], 0
    for _ in range(4):
        try:
            socks.append(send(50))
        except OSError:
            dropped += 1
    wait_until("one is dropped", 60, lambda: served.metric("hami_scheduler_connections_dropped_total", reason="memory") >= 1)
    assert served.metric("hami_scheduler_held_bytes") <= 160 << 20
    assert served.ask("GET", "/healthz")[0] == 200
    for sock in socks:
        sock.close()
    with served.connect() as sock:
        sock.sendall(f"POST /filter HTTP/1.1\r\nContent-Length: {size + 1}\r\n\r\n".encode())
        assert read_answer(sock)[0] == 413
    if not served.sanitized:
        assert served.rss_kib("VmHWM") < 400 << 10


def test_who_may_ask(served, authority, short_tmp):
    """The guarded paths want a certificate of the authority or the token, which may change; the probes' paths do not."""
    token = short_tmp / "token"
    token.write_text("first-token\n")
    served.start(*served.flags, f"--client-ca-file={authority.folder}/ca.crt", f"--token-file={token}")
    bare = dict(method="POST", path="/filter", body=b"{}")

    def with_token(text):
        return served.ask(**bare, headers=[("Authorization", f"Bearer {text}")])[0]

    for path in ("/healthz", "/version"):
        assert served.ask("GET", path)[0] == 200
    status, headers, _ = served.ask(**bare)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert [served.ask("POST", path, b"{}")[0] for path in ("/preempt", "/bind", "/webhook")] == [401, 401, 401]
    said, = (line for line in served.log().splitlines() if "who asks" in line)
    assert "--token-file" in said and "path=/filter" in said and "127.0.0.1" in said
    assert (with_token("first-token"), with_token("first-toke"), with_token("first-token1"), with_token("")) == (200, 401, 401, 401)
    token.write_text("second-token")
    wait_until("the new token", 30, lambda: with_token("second-token") == 200)
    assert with_token("first-token") == 401
    served.tls.load_cert_chain(*authority.issue("client", "kube-scheduler"))
    assert served.ask(**bare)[0] == 200
    served.tls.load_cert_chain(*Authority(short_tmp / "other").issue("client"))
    try:
        status = served.ask(**bare)[0]
    except (ssl.SSLError, ConnectionError):
        status = "no connection"
    assert status == "no connection"
    assert served.metric("hami_scheduler_requests_refused_total", reason="not-admitted") >= 6


def test_a_kept_connection_is_good_as_long_as_its_authority(served, authority, short_tmp):
    """A second authority beside the first changes nothing for it; one in place of the first ends it at the next request."""
    other = Authority(short_tmp / "other")
    ca = short_tmp / "ca.crt"
    ca.write_bytes((authority.folder / "ca.crt").read_bytes())
    served.start(*served.flags, f"--client-ca-file={ca}")
    served.tls.load_cert_chain(*authority.issue("client", "kube-scheduler"))

    def asked(sock):
        return served.ask("POST", "/filter", b"{}", on=sock)

    def change(count, text):
        ca.write_bytes(text)
        wait_until("the change", 30, lambda: served.metric("hami_scheduler_certificate_changes_total", result="used") == count)

    with served.connect() as kept:
        assert asked(kept)[0] == 200
        change(1, (authority.folder / "ca.crt").read_bytes() + (other.folder / "ca.crt").read_bytes())
        assert (asked(kept)[0], asked(kept)[0]) == (200, 200)
        change(2, (other.folder / "ca.crt").read_bytes())
        status, headers, _ = asked(kept)
        assert (status, headers["connection"]) == (401, "close")
        assert kept.recv(1) == b""


def own_address():
    """One of this machine that is no loopback address; None where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("198.51.100.1", 9))  # nothing is sent
        except OSError:
            return None
        return sock.getsockname()[0]


def test_the_extender_is_for_this_machine(scheduler, authority, short_tmp):
    """Who reaches the port from elsewhere may ask for an admission, but for no placement and no Binding."""
    address = own_address()
    if address is None:
        pytest.skip("this machine has a loopback address only")

    def statuses(host, *paths, headers=(), source=None):
        got = []
        for path in paths:
            with socket.create_connection((host, scheduler.port), timeout=30, source_address=source and (source, 0)) as sock:
                got.append(scheduler.ask("POST", path, b"{}", headers, on=sock)[0])
        return got

    scheduler.start("--http_bind=:0")
    assert statuses("127.0.0.1", "/filter", "/preempt", "/bind", "/webhook") == [200, 503, 200, 200]
    assert "who asks" not in scheduler.log()
    assert statuses(address, "/filter", "/preempt", "/bind", "/webhook") == [401, 401, 401, 200]
    # What a mesh's proxy passes on, whoever asked.
    assert statuses("127.0.0.1", "/filter", "/preempt", "/bind", "/webhook", source="127.0.0.6") == [401, 401, 401, 200]
    assert scheduler.metric("hami_scheduler_requests_refused_total", reason="not-admitted") == 6
    said, = (line for line in scheduler.log().splitlines() if "who asks" in line)
    assert "--extender-clients=any" in said and "path=/filter" in said and re.search(rf'peer="?(::ffff:)?{re.escape(address)}\b', said), said
    scheduler.end()
    scheduler.start("--http_bind=:0", "--extender-clients=any")
    assert statuses(address, "/filter", "/preempt", "/bind") == [200, 503, 200]
    scheduler.end()
    token = short_tmp / "token"
    token.write_text("secret")
    scheduler.start("--http_bind=:0", f"--token-file={token}")
    assert statuses(address, "/filter", "/preempt", "/bind", headers=[("Authorization", "Bearer secret")]) == [200, 503, 200]
    assert statuses("127.0.0.1", "/filter", "/preempt", "/bind") == [401, 401, 401]


def test_it_ends_gracefully(served):
    """What was begun is answered; those that only wait are closed."""
    served.start(*served.flags)
    waiting, begun = served.connect(), served.connect()
    assert served.ask("GET", "/healthz", on=waiting)[0] == 200
    begun.sendall(b"POST /nowhere HTTP/1.1\r\nContent-Length: 4\r\n\r\nxx")
    wait_until("it is read", 30, lambda: served.metric("hami_scheduler_held_bytes") > 0)
    served.process.send_signal(signal.SIGTERM)
    assert waiting.recv(1) == b""
    begun.sendall(b"xx")
    status, headers, _ = read_answer(begun)
    assert (status, headers["connection"]) == (404, "close")
    assert served.process.wait(timeout=30) == 0


def test_it_serves_on_for_those_who_have_not_heard(served):
    """Until the Service's endpoints say that it is gone, and the webhook's failurePolicy would refuse every pod."""
    served.start(*served.flags, "--shutdown-delay=1m")
    kept = served.connect()
    assert served.ask("GET", "/healthz", on=kept)[0] == 200
    served.process.send_signal(signal.SIGTERM)
    wait_until("it is told", 30, lambda: "asked to end" in served.log())
    status, headers, body = served.ask("GET", "/readyz")
    assert (status, headers["connection"], body) == (503, "close", b"ending\n")
    review = b'{"request": {"uid": "1", "operation": "CREATE", "object": {"spec": {"containers": [{"name": "c"}]}}}}'
    for sock in (None, kept):
        status, headers, body = served.ask("POST", "/webhook", review, [("Content-Type", "application/json")], on=sock)
        assert (status, headers["connection"]) == (200, "close") and b'"allowed":true' in body
    assert kept.recv(1) == b"" and served.process.poll() is None
    served.process.send_signal(signal.SIGTERM)  # at once
    assert served.process.wait(timeout=30) == 0
    served.start(*served.flags, "--shutdown-delay=0.2s")
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(timeout=30) == 0 and "asked again" not in served.log()


def test_the_pages(scheduler):
    scheduler.start("--debug", "--cambricon-mlu-name=x", "--logtostderr", "-v=2")
    assert "options that have no effect here options=\"--debug, --cambricon-mlu-name, --logtostderr\"" in scheduler.log()
    status, _, body = scheduler.ask("GET", "/readyz")
    assert (status, body) == (503, b"not synced\n")
    status, headers, body = scheduler.ask("GET", "/version")
    assert status == 200 and headers["content-type"] == "application/json" and b'"version":"' in body
    said = subprocess.run([str(scheduler.program), "version"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert [line.split(":")[0] for line in said.splitlines()] == ["version", "revision", "build date", "go version", "compiler",
                                                                  "platform"]


def test_the_documents(scheduler, build):
    """docs/scheduler.md has the flags that --help has, docs/contracts/scheduler-metrics.md the source's metrics."""
    text = subprocess.run([str(scheduler.program), "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    flags = set(re.findall(r"^  (--[\w-]+)", text, re.M)) - {"--help", "--version"}
    rows = re.findall(r"^\| `(--[\w-]+)` \|", (REPO / "docs/scheduler.md").read_text(), re.M)
    assert len(rows) == len(set(rows)) and set(rows) == flags
    table = re.findall(r'^M\(\w+, "(\w+)", (\w+), "([\w,]*)", "(.*)"\)$', (REPO / "src/sched/metrics/metrics.def").read_text(), re.M)
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", (REPO / "docs/contracts/scheduler-metrics.md").read_text(), re.M)
    assert [(name, kind.upper(), labels.replace("`", "").replace(", ", ",").strip(), what) for name, kind, labels, what in rows] == table
    assert table
