"""list + watch against a server that goes away, lies and forgets."""
import signal
import sys
import time

import pytest

from api_server import half_chunk, raw, reset, silence, status, stream_then
from node.base import wait_until

PODS = "/api/v1/pods"


def is_watch(h):
    return h.watching


def is_list(h):
    return not h.watching


@pytest.fixture
def pods(api):
    for name in "abc":
        api.put("pods", "default", name)
    return api


def synced(start, *args, **more):
    tool = start(*args, "watch", PODS, **more)
    tool.wait_told("synced")
    return tool


def watch_is_up(api, count=1):
    wait_until("the watch", 30, lambda: len(api.seen(watch=True)) >= count)


def follows(api, tool, name="later"):
    """The reflector is alive: it tells what happens now."""
    version = api.put("pods", "default", name)["metadata"]["resourceVersion"]
    tool.wait_told("changed", name=name, version=version)


def test_a_list_is_told_from_its_first_page_to_its_last(pods, start):
    """Who must know that all of before has been told asks for a list, and waits for its end."""
    tool = start("--page=1", "watch", PODS)
    tool.wait_told("listed")
    watch_is_up(pods)
    follows(pods, tool)
    said = [(x["told"], x.get("name"), x["listing"]) for x in tool.lines]
    assert said == [("lists", None, True), *[("changed", name, True) for name in "abc"], ("synced", None, False),
                    ("listed", None, False), ("changed", "later", False)]
    before = len(tool.lines)
    tool.process.send_signal(signal.SIGUSR1)
    wait_until("the list", 30, lambda: len(tool.told("listed")) == 2)
    again = [(x["told"], x.get("name")) for x in tool.lines[before:]]
    assert again == [("lists", None), *[("changed", name) for name in ("a", "b", "c", "later")], ("listed", None)], "all, changed or not"


def test_what_is_there_and_what_happens(pods, start):
    tool = synced(start)
    assert [x["key"] for x in tool.told("changed")] == ["default/a", "default/b", "default/c"]
    watch_is_up(pods)
    assert pods.seen(watch=True)[0].query["resourceVersion"] == "103"
    tree = pods.put("pods", "kube-system", "d", colour="red")
    line = tool.wait_told("changed", key="kube-system/d")
    assert (line["uid"], line["namespace"], line["annotations"]) == (tree["metadata"]["uid"], "kube-system", {"colour": "red"})
    pods.put("pods", "default", "a", colour="blue")
    assert tool.wait_told("changed", key="default/a", version="105")["annotations"] == {"colour": "blue"}
    pods.delete("pods", "default", "b")
    assert tool.wait_told("deleted", key="default/b")["tree"] is True
    pods.put("pods", "default", "b")
    again = tool.wait_told("changed", key="default/b", version="107")
    assert again["uid"] != tool.told("deleted", key="default/b")[0]["uid"]
    assert len(tool.told("synced")) == 1


def test_selectors_and_names_are_encoded(pods, start):
    pods.put_tree("pods", "default", {"metadata": {"name": "ours"}, "spec": {"nodeName": "a&b"}})
    tool = synced(start, "--field=spec.nodeName=a&b", "--label=x in (y,z)")
    watch_is_up(pods)
    for watch in (False, True):
        assert pods.seen(watch=watch)[0].query.items() >= {"fieldSelector": "spec.nodeName=a&b", "labelSelector": "x in (y,z)"}.items()
    assert [line["key"] for line in tool.told("changed")] == ["default/ours"]


def test_an_empty_collection(api, start):
    tool = synced(start)
    assert not tool.told("changed")
    follows(api, tool)


def test_pages(api, start):
    for i in range(25):
        api.put("nodes", None, f"n{i}")
    tool = start("--page=10", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    assert [x["key"] for x in tool.told("changed")] == [f"n{i}" for i in range(25)]
    assert [r.query["limit"] for r in api.seen(watch=False)] == ["10"] * 3
    assert tool.lines[26]["told"] == "synced", "behind the begin and 25 objects"


def test_410_in_the_middle_of_pages(api, start):
    for i in range(25):
        api.put("nodes", None, f"n{i}")
    api.fault(status(410, "Expired"), when=lambda h: "continue" in h.request_seen.query)
    tool = start("--page=10", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    assert sorted(x["key"] for x in tool.told("changed")) == sorted(f"n{i}" for i in range(25)), "each told once"
    assert len(api.seen(watch=False)) == 5


def test_a_page_that_fails_is_asked_for_again(api, start):
    for i in range(25):
        api.put("nodes", None, f"n{i}")
    for action in (reset, status(503), raw(b"garbage")):
        api.fault(action, when=lambda h: "continue" in h.request_seen.query)
    tool = start("--page=10", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    assert len(tool.told("changed")) == 25


def test_pages_that_are_too_large_shrink(api, start):
    for i in range(16):
        api.put("nodes", None, f"n{i}", text="x" * 100000)
    tool = start("--page=16", "--max-bytes=500000", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    assert len(tool.told("changed")) == 16
    assert [r.query["limit"] for r in api.seen(watch=False)] == ["16", "8"] + ["4"] * 4


def test_pages_grow_again_behind_what_was_large(api, start):
    for i in range(8):
        api.put("nodes", None, f"a{i}", text="x" * 100000)
    for i in range(60):
        api.put("nodes", None, f"b{i:02d}")
    tool = start("--page=16", "--max-bytes=500000", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    assert len(tool.told("changed")) == 68
    assert [r.query["limit"] for r in api.seen(watch=False)] == ["16", "8", "4", "4", "4", "8", "16", "16", "16"]


def managed(name, depth):
    """A pod whose author has said who manages its fields, nested so deeply."""
    fields = {}
    for _ in range(depth):
        fields = {"f:a": fields}
    entry = {"manager": "] \"", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {"metadata": {"name": name, "managedFields": [entry, entry], "labels": {"managedFields": "[["}}}


def test_fields_that_are_nested_deeply_end_no_list_and_no_watch(pods, start):
    sys.setrecursionlimit(10000)  # to write them
    pods.put_tree("pods", "default", managed("listed", 3000))
    tool = synced(start)
    tool.wait_told("changed", key="default/listed")
    watch_is_up(pods)
    pods.put_tree("pods", "default", managed("watched", 3000))
    tool.wait_told("changed", key="default/watched")
    follows(pods, tool)
    assert len(pods.seen(watch=False)) == 1


def test_cached_lists(pods, start):
    """In one piece from the server's cache; later not older than what was seen; from etcd when the cache is behind."""
    tool = synced(start, "--cached")
    watch_is_up(pods)
    follows(pods, tool)
    seen = str(pods.version)
    pods.fault(status(410, "Expired"), when=is_watch)
    pods.fault(status(503), when=is_list)
    pods.fault(status(504, "Timeout"), when=is_list)
    pods.cut()
    wait_until("three more lists", 30, lambda: len(pods.seen(watch=False)) == 4)
    assert [(r.query.get("resourceVersion"), r.query.get("limit")) for r in pods.seen(watch=False)] == [
        ("0", None), (seen, None), (seen, None), (None, "500")]
    watch_is_up(pods, 3)
    pods.fault(status(410, "Expired"), when=is_watch)
    pods.cut()
    wait_until("another list", 30, lambda: len(pods.seen(watch=False)) == 5)
    assert pods.seen(watch=False)[4].query == {"resourceVersion": seen}
    follows(pods, tool, "much-later")


def test_a_cached_list_that_is_too_large_comes_in_pages(api, start):
    for i in range(16):
        api.put("nodes", None, f"n{i}", text="x" * 100000)
    tool = start("--cached", "--page=4", "--max-bytes=500000", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    assert len(tool.told("changed")) == 16
    assert [r.query.get("limit") for r in api.seen(watch=False)] == [None] + ["4"] * 4


def test_a_watch_that_ends_is_resumed(pods, start):
    tool = synced(start, "--watch-s=1")
    watch_is_up(pods, 3)
    follows(pods, tool)
    assert len(pods.seen(watch=False)) == 1, "listed once"
    assert all(1 <= int(r.query["timeoutSeconds"]) <= 2 for r in pods.seen(watch=True))


def test_bookmarks_move_the_resume_point(pods, start):
    tool = synced(start)
    watch_is_up(pods)
    assert pods.seen(watch=True)[0].query["allowWatchBookmarks"] == "true"
    pods.put("nodes", None, "unrelated")
    pods.bookmark("pods")
    version = str(pods.version)
    time.sleep(0.5)
    pods.cut()
    watch_is_up(pods, 2)
    assert pods.seen(watch=True)[1].query["resourceVersion"] == version
    follows(pods, tool)
    assert len(pods.seen(watch=False)) == 1


@pytest.mark.parametrize("action", [reset, raw(b""), raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"ty"),
                                    status(500), status(429, "TooManyRequests", {"Retry-After": "1"}), raw(b"\xff" * 3000)])
def test_a_watch_that_fails_is_resumed_without_a_list(pods, start, action):
    pods.fault(action, times=2, when=is_watch)
    tool = synced(start)
    follows(pods, tool)
    assert len(pods.seen(watch=False)) == 1
    watches = pods.seen(watch=True)
    assert len({r.query["resourceVersion"] for r in watches}) == 1


def test_retry_after_of_a_watch(pods, start):
    pods.fault(status(429, "TooManyRequests", {"Retry-After": "1"}), when=is_watch)
    synced(start)
    watch_is_up(pods, 2)
    first, second = [r.at for r in pods.seen(watch=True)]
    assert second - first >= 0.95


@pytest.mark.parametrize("how", ["status", "event"])
def test_410_lists_again(pods, start, how):
    tool = synced(start)
    watch_is_up(pods)
    with pods.lock:
        pods.cut()
        pods.delete("pods", "default", "b", tell=False)
        pods.put("pods", "default", "c", uid="another-pod-of-that-name")
        pods.put("pods", "default", "d")
        pods.forget_history()
        if how == "status":
            pods.fault(status(410, "Expired"), when=is_watch)
    gone = tool.wait_told("deleted", key="default/b")
    assert gone["tree"] is False and gone["name"] == "b" and gone["namespace"] == "default"
    tool.wait_told("changed", key="default/d")
    other = tool.wait_told("deleted", key="default/c")
    new = tool.wait_told("changed", key="default/c", uid="another-pod-of-that-name")
    assert tool.lines.index(other) < tool.lines.index(new)
    assert len(tool.told("changed", key="default/a")) == 1, "what did not change is not told again"
    assert len(pods.seen(watch=False)) == 2 and len(tool.told("synced")) == 1
    follows(pods, tool)


@pytest.mark.parametrize("events", [
    [("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError"})],
    [("ADDED", {"metadata": {}})],
    [("ADDED", "text")],
    [("BOOKMARK", {"metadata": {"resourceVersion": ""}})]])
def test_events_that_make_no_sense_lead_to_a_list(pods, start, events):
    pods.fault(stream_then(events, silence), when=is_watch)
    tool = synced(start)
    wait_until("another list", 30, lambda: len(pods.seen(watch=False)) == 2)
    follows(pods, tool)


def test_garbage_for_events(pods, start):
    def act(h):
        h.stream()
        h.chunk(b"\x00\xff{}\n" * 100)
        silence(h)
    pods.fault(act, when=is_watch)
    tool = synced(start)
    wait_until("another list", 30, lambda: len(pods.seen(watch=False)) == 2)
    follows(pods, tool)


@pytest.mark.parametrize("action", [silence, lambda h: (h.stream(), silence(h)), lambda h: (h.stream(), half_chunk(h))])
def test_a_half_open_connection_is_noticed(pods, start, action):
    pods.fault(action, when=is_watch)
    tool = synced(start, "--stall-ms=400", "--request-ms=600")
    follows(pods, tool)
    watch_is_up(pods, 2)
    assert len({r.connection for r in pods.seen(watch=True)[:2]}) == 2
    assert len(pods.seen(watch=False)) == 1


def test_an_object_of_three_megabytes(pods, start):
    tool = synced(start)
    watch_is_up(pods)
    pods.put("pods", "default", "big", text="x" * 3_000_000)
    tool.wait_told("changed", key="default/big")
    assert len(pods.seen(watch=False)) == 1


def test_an_event_too_large_comes_by_a_list(pods, start):
    tool = synced(start, "--object-bytes=100000")
    watch_is_up(pods)
    pods.put("pods", "default", "big", text="x" * 300_000)
    tool.wait_told("changed", key="default/big")
    assert len(pods.seen(watch=False)) == 2
    follows(pods, tool)


def test_a_server_that_is_away(pods, start):
    """Times are compressed by the back-off; an hour is the same, at one try each 15 to 30 s."""
    tool = synced(start)
    watch_is_up(pods)
    pods.down()
    pods.delete("pods", "default", "a")
    pods.put("pods", "default", "d")
    wait_until("a complaint", 30, lambda: any("cannot be followed" in x for x in tool.errors))
    time.sleep(1)
    assert not tool.told("deleted"), "what is known stays"
    pods.up()
    tool.wait_told("deleted", key="default/a")
    tool.wait_told("changed", key="default/d")
    assert len(pods.seen(watch=False)) == 1, "resumed, not listed"
    assert sum("cannot be followed" in x for x in tool.errors) == 1
    wait_until("its end is said", 30, lambda: sum("answers again" in x for x in tool.errors) == 1)


def test_a_server_that_came_back_without_its_history(pods, start):
    tool = synced(start)
    watch_is_up(pods)
    pods.down()
    pods.delete("pods", "default", "a")
    pods.forget_history()
    pods.up()
    tool.wait_told("deleted", key="default/a")
    follows(pods, tool)


def test_away_from_the_start(api, start):
    api.put("pods", "default", "a")
    api.down()
    tool = start("watch", PODS)
    wait_until("a complaint", 30, lambda: any("cannot be followed" in x for x in tool.errors))
    api.up()
    tool.wait_told("synced")
    assert len(tool.told("changed")) == 1


def test_back_off_grows_to_its_bound(api, start):
    api.fault(status(500), times=1000)
    tool = start("--backoff-ms=20", "--backoff-max-ms=200", "--for-ms=3000", "watch", PODS, fast=False)
    stats = tool.end()
    # 10-20, 20-40, 40-80, 80-160, then 100-200 ms each: 15 to 34 tries in three seconds, fewer on a busy machine.
    assert 5 <= stats["failures"] <= 34


def test_a_watch_that_always_ends_at_once(pods, start):
    def act(h):
        h.stream()
        h.chunk(b"")
    pods.fault(act, times=1000, when=is_watch)
    tool = start("--backoff-ms=20", "--backoff-max-ms=2000", "--for-ms=3000", "watch", PODS, fast=False)
    stats = tool.end()
    # Half of each wait is the least: 10, 20, ... 640, 1000, 1000 ms.
    assert 3 <= stats["watches"] <= 10 and stats["failures"] >= stats["watches"] - 1


def test_the_back_off_is_over_with_the_first_event(pods, start):
    pods.fault(status(500), times=6, when=is_watch)
    tool = start("--backoff-ms=50", "--backoff-max-ms=8000", "watch", PODS, fast=False)
    watch_is_up(pods, 7)
    follows(pods, tool)
    cut = time.monotonic()
    pods.cut()
    watch_is_up(pods, 8)
    assert pods.seen(watch=True)[7].at - cut < 1, "25 to 50 ms, where without the event it would be 1.6 s or more"


def test_always_410(pods, start):
    pods.fault(status(410, "Expired"), times=1000, when=is_watch)
    tool = start("--backoff-ms=20", "--backoff-max-ms=200", "--for-ms=2000", "watch", PODS, fast=False)
    assert 3 <= tool.end()["lists"] <= 30


def test_401_in_the_middle_of_a_life(pods, start, short_tmp):
    token = short_tmp / "token"
    token.write_text("one")
    pods.tokens = {"one"}
    tool = synced(start, user={"tokenFile": str(token)})
    watch_is_up(pods)
    pods.tokens = {"two"}
    pods.cut()
    wait_until("it is turned away", 30, lambda: len(pods.seen(watch=True)) >= 3)
    token.write_text("two")
    follows(pods, tool)
    assert not tool.told("deleted")


@pytest.mark.parametrize("what", ["lists", "changed", "synced", "listed", "deleted"])
def test_freed_inside_its_callback(pods, start, what):
    if what == "deleted":
        pods.fault(stream_then([("DELETED", pods.objects["pods", "default", "a"]), ("ADDED", pods.objects["pods", "default", "b"])],
                               silence), when=is_watch)
    tool = start(f"--free-at={what}", "watch", PODS)
    tool.end()
    assert len(tool.told(what)) == 1 and tool.lines[-1]["told"] == what


def test_a_slow_server(pods, start):
    """Headers late, an event in small pieces, each within the limits."""
    tree = pods.objects["pods", "default", "a"]

    def act(h):
        time.sleep(0.3)
        h.stream()
        data = b'{"type":"MODIFIED","object":{"metadata":{"name":"slow","uid":"u","resourceVersion":"104"}}}\n'
        for i in range(0, len(data), 10):
            h.chunk(data[i:i + 10])
            time.sleep(0.1)
        silence(h)
    pods.fault(act, when=is_watch)
    tool = synced(start, "--stall-ms=2000")
    tool.wait_told("changed", name="slow", version="104")
    assert len(pods.seen(watch=True)) == 1 and tree


def test_forbidden_and_then_allowed(api, start):
    api.put("pods", "default", "a")
    api.fault(status(403, "Forbidden"), times=5)
    tool = start("watch", PODS)
    tool.wait_told("synced")
    assert any("403 Forbidden" in x for x in tool.errors)


@pytest.mark.parametrize("code", [403, 404])
def test_an_optional_list_that_is_refused(pods, start, code):
    """No failure, and asked for seldom; any other answer is one. Allowed at last, it is as any."""
    pods.fault(status(code), times=1000, when=is_list)
    slow = "--optional", "--backoff-ms=1", "--backoff-max-ms=1000"
    stats = start(*slow, "--for-ms=2200", "watch", PODS, fast=False).end()
    assert stats["refused"] and stats["failures"] == 0 and str(code) in stats["last"]
    assert 2 <= stats["lists"] <= 5, "500 to 1000 ms each"
    stats = start("--backoff-ms=1", "--backoff-max-ms=1000", "--for-ms=500", "watch", PODS, fast=False).end()
    assert not stats["refused"] and stats["failures"] == stats["lists"] > 2, "for who needs it"
    pods.faults.clear()
    for answer in (status(code), status(500), status(code)):
        pods.fault(answer, when=is_list)
    tool = start("--optional", "watch", PODS)
    tool.wait_told("synced")
    watch_is_up(pods)
    follows(pods, tool)
    assert sum("going on without" in x for x in tool.errors) == 2
    # Once it was known, all is as for others.
    pods.fault(status(code), times=2, when=is_list)
    tool.process.send_signal(signal.SIGUSR1)
    wait_until("the list", 30, lambda: len(tool.told("listed")) == 2)
    assert sum("going on without" in x for x in tool.errors) == 2


def test_listing_where_watching_is_not_allowed(api, start):
    """HAMi's role for Nodes has get, list, update and patch."""
    api.put("pods", "default", "a")
    allowed = []
    api.fault(status(403, "Forbidden"), times=1000, when=lambda h: is_watch(h) and not allowed)
    tool = synced(start)
    for name in "bcd":
        follows(api, tool, name)
    api.delete("pods", "default", "b")
    tool.wait_told("deleted", name="b")
    assert sum("watching is not allowed" in x for x in tool.errors) == 1
    assert not any("answers again" in x or "cannot be followed" in x for x in tool.errors)
    assert len(api.seen(watch=False)) >= 4
    allowed.append(True)
    follows(api, tool, "e")
    wait_until("the watch", 30, lambda: api.seen(watch=True)[-1].at > api.seen(watch=False)[-1].at)
    lists = len(api.seen(watch=False))
    follows(api, tool, "f")
    assert len(api.seen(watch=False)) == lists, "the watch has taken over"
