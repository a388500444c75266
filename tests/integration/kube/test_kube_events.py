"""core/v1 Events of the Kubernetes client."""
import json
import re

from api_server import status


def test_the_same_event_is_counted(api, start):
    tool = start("--for-ms=1500", "event", "default", "pod-a", "uid-1", "5")
    stats = tool.end()
    (event,) = api.all("events")
    assert event["count"] == 5 and stats["sent"] == 1 and stats["merged"] == 4
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "pod-a", "uid": "uid-1"}
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Tested", 'message "0"')
    assert event["source"] == {"component": "kube-tool", "host": "here"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["lastTimestamp"])
    assert api.requests[0].path == "/api/v1/namespaces/default/events"


def test_a_burst_is_cut(api, start):
    tool = start("--for-ms=3000", "event", "default", "pod-a", "uid-1", "40", "40")
    stats = tool.end()
    assert len(api.all("events")) == 25 and stats["limited"] == 15 and stats["sent"] == 25


def test_of_a_node(api, start):
    tool = start("--for-ms=1500", "event", "", "n1", "uid-1", "1")
    tool.end()
    (event,) = api.all("events")
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}
    assert api.requests[0].path == "/api/v1/namespaces/default/events"


def test_count_by_patch(api, start):
    """The first is held back by the server while more of the same happens: the rest comes as one patch."""
    api.fault(status(503), when=lambda h: h.command == "POST")
    tool = start("--for-ms=6000", "event", "default", "pod-a", "uid-1", "3")
    stats = tool.end()
    (event,) = api.all("events")
    assert event["count"] == 3 and stats["sent"] == 1 and stats["POST 503"] == 1


def test_refused(api, start):
    api.fault(status(403, "Forbidden"), times=100)
    tool = start("--for-ms=1500", "event", "default", "pod-a", "uid-1", "3", "3")
    stats = tool.end()
    assert stats["dropped"] == 3 and len(api.requests) == 3
    assert sum("refuses an event" in x for x in tool.errors) == 1
    assert json.loads(api.requests[0].body)["reason"] == "Tested"
