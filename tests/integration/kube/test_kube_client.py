"""Requests of the Kubernetes client against a server that misbehaves."""
import base64
import json
import os
import time

import pytest

from api_server import ApiServer, raw, reset, silence, status
from kube_peer import Pki, Tool, write_kubeconfig

PODS = "/api/v1/pods"
POD = "/api/v1/namespaces/default/pods/a"


def only(tool, code=0):
    stats = tool.end(code)
    assert len(tool.answers()) == 1, tool.lines
    return tool.answers()[0], stats


def test_get(api, start):
    uid = api.put("pods", "default", "a", colour="blue")["metadata"]["uid"]
    answer, stats = only(start("get", POD))
    assert (answer["http"], answer["err"]) == (200, "")
    assert answer["body"]["metadata"]["uid"] == uid
    assert stats["GET 200"] == 1
    headers = api.requests[0].headers
    assert headers["User-Agent"] == "kube-tool" and headers["Accept"] == "application/json"
    assert "Authorization" not in headers


def test_connections_are_kept_and_few(api, start):
    api.put("pods", "default", "a")
    tool = start("--connections=3", "get", POD, "60")
    assert tool.end()["GET 200"] == 60
    assert len({r.connection for r in api.requests}) <= 3


@pytest.mark.parametrize("code,reason,outcome,err", [
    (400, "BadRequest", 2, 2), (401, "Unauthorized", 3, 8), (403, "Forbidden", 4, 8), (404, "NotFound", 5, 5),
    (409, "AlreadyExists", 6, 6), (409, "Conflict", 7, 7), (410, "Expired", 8, 5), (422, "Invalid", 9, 2)])
def test_a_status_becomes_an_error(api, start, code, reason, outcome, err):
    """The numbers are those of enum kube_outcome and enum hm_code, written out."""
    api.fault(status(code, reason))
    answer, stats = only(start("get", POD))
    assert (answer["http"], answer["reason"], answer["outcome"], answer["code"]) == (code, reason, outcome, err)
    assert answer["err"] == f"GET {POD}: {code} {reason}: as asked"
    assert len(api.requests) == 1 and stats[f"GET {code}"] == 1


def test_a_get_is_tried_again_after_5xx_and_resets(api, start):
    api.put("pods", "default", "a")
    api.fault(status(503))
    api.fault(reset)
    api.fault(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"half"))
    answer, stats = only(start("get", POD))
    # libcurl itself repeats a request whose kept connection turns out to be closed: that is no retry of ours.
    assert answer["http"] == 200 and stats["retries"] in (2, 3) and len(api.requests) == 4


def test_a_get_gives_up(api, start):
    api.fault(status(500, "InternalError"), times=99)
    answer, stats = only(start("--tries=3", "get", POD))
    assert (answer["http"], answer["outcome"], len(api.requests)) == (500, 11, 3)


@pytest.mark.parametrize("action", [status(500), silence, reset])
def test_a_change_is_not_repeated(api, start, action):
    api.put("pods", "default", "a")
    api.fault(action, times=9)
    answer, _ = only(start("--request-ms=300", "patch", POD, "merge", "{}"))
    assert answer["code"] != 0 and len(api.requests) == 1


def test_429_is_waited_for_by_any_verb(api, start):
    api.put("pods", "default", "a")
    api.fault(status(429, "TooManyRequests", {"Retry-After": "1"}), times=2)
    answer, stats = only(start("annotate", POD, "k=v"))
    assert answer["http"] == 200 and stats["PATCH 429"] == 2
    times = [r.at for r in api.requests]
    assert all(b - a >= 0.95 for a, b in zip(times, times[1:]))


def test_429_without_end(api, start):
    api.fault(status(429, "TooManyRequests"), times=99)
    answer, _ = only(start("get", POD))
    assert answer["http"] == 429 and len(api.requests) == 11


@pytest.mark.parametrize("code", [401, 429, 500])
def test_once_is_once(api, start, short_tmp, code):
    """Whoever decides about each send himself is told at once, with the token read again."""
    token = short_tmp / "token"
    token.write_text("a\n")
    api.put("pods", "default", "a")
    api.fault(status(code, headers={"Retry-After": "30"}))
    answer, stats = only(start("--once", "annotate", POD, "k=v", user={"tokenFile": str(token)}))
    assert answer["http"] == code and len(api.requests) == 1


def test_a_silent_server_is_noticed(api, start):
    api.fault(silence, times=2)
    api.put("pods", "default", "a")
    answer, stats = only(start("--request-ms=300", "get", POD))
    assert answer["http"] == 200 and stats["GET 0"] == 2


def test_silence_after_half_an_answer(api, start):
    def act(h):
        h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"half")
        h.wfile.flush()
        silence(h)
    api.fault(act, times=9)
    answer, _ = only(start("--request-ms=300", "--tries=2", "get", POD))
    assert answer["http"] == 0 and answer["code"] == 10 and "no whole answer within 300 ms" in answer["err"]


def test_no_server_at_all(start):
    answer, _ = only(start("--tries=2", "get", POD, server="http://127.0.0.1:1"))
    assert (answer["http"], answer["outcome"]) == (0, 1)
    assert "127.0.0.1" in answer["err"] and "onnect" in answer["err"]


@pytest.mark.parametrize("data", [b"\x00\xff" * 5000, b"HTTP/1.1 banana\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nxx",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n", b""])
def test_garbage(api, start, data):
    api.fault(raw(data), times=99)
    answer, _ = only(start("--tries=2", "--request-ms=2000", "get", POD))
    assert answer["http"] == 0 and answer["err"].startswith(f"GET {POD}: ")


def test_a_status_that_is_none_does_not_reach_the_log_raw(api, start):
    api.fault(raw(b"HTTP/1.1 403 No\r\nContent-Length: 12\r\n\r\nevil\n\x1b[31mxx"))
    answer, _ = only(start("get", POD))
    assert answer["err"] == f"GET {POD}: 403: evil\\x0a\\x1b[31mxx"


def test_large_answers(api, start):
    api.put("pods", "default", "a", big="x" * 3_000_000)
    answer, _ = only(start("get", POD))
    assert answer["http"] == 200 and answer["bytes"] > 3_000_000
    answer, _ = only(start("--max-bytes=1000000", "get", POD))
    assert answer["code"] == 9 and "larger than 1000000 bytes" in answer["err"]
    assert len(api.requests) == 2, "what is too large is not asked for again"


def test_our_own_rate(api, start):
    api.put("pods", "default", "a")
    tool = start("--per-second=20", "--burst=5", "get", POD, "15")
    stats = tool.end()
    times = [r.at for r in api.requests]
    assert stats["GET 200"] == 15 and stats["throttled"] == 10
    assert times[-1] - times[0] >= 0.4  # ten of them, twenty a second


def test_everything_is_freed_inside_a_callback(api, start):
    api.put("pods", "default", "a")
    tool = start("--free-at=answer", "get", POD, "20")
    tool.end()
    assert len(tool.answers()) == 1


def test_patch(api, start):
    tree = api.put("pods", "default", "a", old="1", kept="2")
    uid, version = tree["metadata"]["uid"], tree["metadata"]["resourceVersion"]
    answer, _ = only(start("annotate", POD, "new=x \"\u00e9\"", uid, version))
    assert answer["http"] == 200
    assert api.requests[-1].headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(api.requests[-1].body) == {"metadata": {"uid": uid, "resourceVersion": version,
                                                              "annotations": {"new": "x \"\u00e9\""}}}
    only(start("annotate", POD, "old-"))
    assert api.objects["pods", "default", "a"]["metadata"]["annotations"] == {"kept": "2", "new": "x \"\u00e9\""}
    answer, _ = only(start("annotate", POD, "new=y", "other-uid"))
    assert (answer["http"], answer["outcome"]) == (422, 7)
    answer, _ = only(start("annotate", POD, "new=y", uid, version))
    assert (answer["http"], answer["outcome"]) == (409, 7)


def test_a_token_file_is_read_again(api, start, short_tmp):
    token = short_tmp / "token"
    token.write_text("first\n")
    api.put("pods", "default", "a")
    api.tokens = {"first"}
    answer, _ = only(start("get", POD, user={"tokenFile": str(token)}))
    assert answer["http"] == 200

    def renew(h):  # another token while the request is under way, in a file that looks like the old one
        before = token.stat()
        token.write_text("other\n")
        os.utime(token, ns=(before.st_atime_ns, before.st_mtime_ns))
        api.tokens = {"other"}
        api.answer(h)
    api.fault(renew)
    answer, stats = only(start("get", POD, user={"tokenFile": str(token)}))
    assert answer["http"] == 200 and stats["GET 401"] == 1 and stats["token_reads"] == 1
    (short_tmp / "new").write_text("third")  # a rename, as the kubelet does
    os.rename(short_tmp / "new", token)
    api.tokens = {"third"}
    answer, stats = only(start("get", POD, user={"tokenFile": str(token)}))
    assert answer["http"] == 200 and "GET 401" not in stats
    api.tokens = {"fourth"}
    before = len(api.requests)
    answer, _ = only(start("get", POD, user={"tokenFile": str(token)}))
    assert answer["http"] == 401 and len(api.requests) == before + 2


def test_a_fixed_token_is_tried_once(api, start):
    api.tokens = {"good"}
    api.put("pods", "default", "a")
    answer, _ = only(start("get", POD, user={"token": "good"}))
    assert answer["http"] == 200
    answer, _ = only(start("get", POD, user={"token": "bad"}))
    assert answer["http"] == 401 and len(api.requests) == 2


# --- TLS ---

@pytest.fixture
def tls_api(pki, request):
    it = ApiServer(tls=pki.server_context(**getattr(request, "param", {})))
    it.put("pods", "default", "a")
    yield it
    it.down()


def data_of(path):
    return base64.b64encode(open(path, "rb").read()).decode()


def url(server):
    return f"https://127.0.0.1:{server.port}"


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("tls_api", [{"ask_client": True}], indirect=True)
def test_client_certificate(tls_api, pki, start, inline):
    if inline:
        user = {"client-certificate-data": data_of(pki.path("client.crt")), "client-key-data": data_of(pki.path("client.key"))}
        cluster = {"certificate-authority-data": data_of(pki.path("ca.crt"))}
    else:
        user = {"client-certificate": pki.path("client.crt"), "client-key": pki.path("client.key")}
        cluster = {"certificate-authority": pki.path("ca.crt")}
    answer, _ = only(start("get", POD, server=url(tls_api), user=user, cluster=cluster))
    assert answer["http"] == 200
    assert tls_api.requests[0].subject["commonName"] == "system:node:n1"
    tool = start("--free-at=answer", "get", POD, "3", server=url(tls_api), user=user, cluster=cluster)
    tool.end()
    assert len(tool.answers()) == 1
    answer, _ = only(start("--tries=1", "get", POD, server=url(tls_api), cluster=cluster))
    assert answer["http"] == 0, "without the certificate nothing is said"


def test_another_ca_is_refused(tls_api, start, tmp_path_factory):
    other = Pki(tmp_path_factory.mktemp("other"))
    answer, _ = only(start("--tries=1", "get", POD, server=url(tls_api), cluster={"certificate-authority": other.path("ca.crt")}))
    assert answer["http"] == 0 and answer["code"] == 8 and "certificate" in answer["err"]
    answer, _ = only(start("--tries=1", "get", POD, server=url(tls_api)))
    assert answer["http"] == 0 and "certificate" in answer["err"], "the machine's CAs do not know it"
    assert not tls_api.requests
    answer, _ = only(start("get", POD, server=url(tls_api), cluster={"insecure-skip-tls-verify": True}))
    assert answer["http"] == 200


def test_server_name(tls_api, pki, start):
    ca = {"certificate-authority": pki.path("ca.crt")}
    answer, _ = only(start("get", POD, server=url(tls_api), cluster={**ca, "tls-server-name": "api.example"}))
    assert answer["http"] == 200
    answer, _ = only(start("--tries=1", "get", POD, server=url(tls_api), cluster={**ca, "tls-server-name": "other.example"}))
    assert answer["http"] == 0 and "other.example" in answer["err"]


def test_kubeconfig_of_the_environment(api, start, short_tmp, build):
    api.put("pods", "default", "a")
    good = write_kubeconfig(short_tmp / "good", f"http://127.0.0.1:{api.port}")
    tool = Tool([build / "tests/kube_tool", "get", POD], {"KUBECONFIG": f"/nowhere/x:{good}", "PATH": os.environ["PATH"]})
    answer, _ = only(tool)
    assert answer["http"] == 200
    tool = Tool([build / "tests/kube_tool", "get", POD], {"HOME": "/nowhere"})
    assert tool.end(1) is None
    assert "no Kubernetes API server: no --kubeconfig, KUBECONFIG" in tool.errors[-1]
