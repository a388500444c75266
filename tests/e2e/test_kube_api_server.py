"""src/kube against a real kube-apiserver: etcd and the API server alone, no kubelet."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from node.base import BUILD, wait_until
from node.real import CLUSTER, in_network, script, stopped

KUBE = pathlib.Path(__file__).resolve().parents[1] / "integration/kube"
sys.path.insert(0, str(KUBE))
from kube_peer import FAST, Pki, Tool, write_kubeconfig  # noqa: E402

SERVER = "https://127.0.0.1:16443"
NODE = "/api/v1/nodes/n1"
MAPS = "/api/v1/namespaces/default/configmaps"


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.running = []
        script("up.sh", "--only", "etcd", "kube-apiserver")
        self.ca = {"certificate-authority": f"{CLUSTER}/pki/ca.crt"}

    def down(self):
        for tool in self.running:
            if tool.process.returncode is None:
                tool.stop()
        script("down.sh", "--wipe", check=False)

    def kubectl(self, *args):
        return script("k", *args, timeout=120).stdout

    def apply(self, tree):
        path = self.folder / "object.json"
        path.write_text(json.dumps(tree))
        self.kubectl("apply", "-f", str(path))

    def tool(self, *args, user=None, cluster=None, server=SERVER):
        """kube_tool inside the cluster's network; as the admin where no user is given."""
        config = write_kubeconfig(self.folder / f"kubeconfig{len(self.running)}", server,
                                  user or {"client-certificate": f"{CLUSTER}/pki/admin.crt", "client-key": f"{CLUSTER}/pki/admin.key"},
                                  **(self.ca if cluster is None else cluster))
        self.running.append(Tool(in_network(BUILD / "tests/kube_tool", f"--kubeconfig={config}", *FAST, *args)))
        return self.running[-1]

    def ask(self, *args, **more):
        tool = self.tool(*args, **more)
        tool.end()
        (answer,) = tool.answers()
        return answer


@pytest.fixture(scope="module")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    with tempfile.TemporaryDirectory(prefix="kube-") as folder:
        it = Cluster(pathlib.Path(folder))
        try:
            it.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
            yield it
        finally:
            it.down()


@pytest.fixture
def node(cluster):
    return cluster.ask("get", NODE)["body"]["metadata"]


def annotate(cluster, name, text):
    cluster.kubectl("annotate", "--overwrite", "node", name, f"example.com/text={text}")


def test_client_certificate_over_http2(cluster):
    tool = cluster.tool("get", NODE, "20")
    stats = tool.end()
    assert stats["GET 200"] == 20 and stats["http2"] == 20
    assert tool.answers()[0]["body"]["kind"] == "Node"


def test_not_found(cluster):
    answer = cluster.ask("get", "/api/v1/nodes/none")
    assert answer["err"] == 'GET /api/v1/nodes/none: 404 NotFound: nodes "none" not found'


def test_another_ca_is_refused(cluster, tmp_path):
    answer = cluster.ask("--tries=1", "get", NODE, cluster={"certificate-authority": Pki(tmp_path).path("ca.crt")})
    assert answer["http"] == 0 and answer["code"] == 8 and "certificate" in answer["err"]


def test_token(cluster, tmp_path):
    cluster.kubectl("create", "serviceaccount", "reader")
    cluster.kubectl("create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=configmaps")
    cluster.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader")
    token = tmp_path / "token"
    token.write_text(cluster.kubectl("create", "token", "reader"))
    wait_until("the account may read", 30, lambda: cluster.ask("get", MAPS, user={"tokenFile": str(token)})["http"] == 200, every=0.5)
    answer = cluster.ask("get", NODE, user={"tokenFile": str(token)})
    assert (answer["http"], answer["reason"]) == (403, "Forbidden")
    token.write_text("wrong")
    answer = cluster.ask("get", MAPS, user={"tokenFile": str(token)})
    assert answer["http"] == 401


def test_patch_and_its_preconditions(cluster, node):
    answer = cluster.ask("annotate", NODE, "hami.io/test=GPU-1,10,\"x\":\u00fc", node["uid"], node["resourceVersion"])
    assert answer["http"] == 200
    assert answer["body"]["metadata"]["annotations"]["hami.io/test"] == "GPU-1,10,\"x\":\u00fc"
    answer = cluster.ask("annotate", NODE, "hami.io/test=lost", node["uid"], node["resourceVersion"])
    assert (answer["http"], answer["reason"], answer["outcome"]) == (409, "Conflict", 7), answer["err"]
    answer = cluster.ask("annotate", NODE, "hami.io/test=lost", "11111111-2222-3333-4444-555555555555")
    assert (answer["http"], answer["reason"], answer["outcome"]) == (422, "Invalid", 7), answer["err"]
    answer = cluster.ask("annotate", NODE, "hami.io/test-", node["uid"])
    assert "hami.io/test" not in answer["body"]["metadata"].get("annotations", {})
    body = json.dumps({"metadata": {"labels": {"a": "b"}, "uid": node["uid"]}})
    assert cluster.ask("patch", NODE, "strategic", body)["body"]["metadata"]["labels"]["a"] == "b"


def test_a_bad_patch_is_invalid(cluster):
    answer = cluster.ask("patch", NODE, "merge", json.dumps({"metadata": {"labels": {"a b": "c"}}}))
    assert (answer["http"], answer["outcome"]) == (422, 9)


def test_list_and_watch(cluster):
    for i in range(25):
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}", "labels": {"of": "this-test"}}})
    tool = cluster.tool("--page=10", "--label=of=this-test", "watch", MAPS)
    tool.wait_told("synced")
    assert sorted(x["name"] for x in tool.told("changed")) == sorted(f"m{i}" for i in range(25))
    cluster.kubectl("annotate", "configmap", "m3", "colour=blue")
    tool.wait(lambda x: x.get("name") == "m3" and x.get("annotations", {}).get("colour") == "blue")
    cluster.kubectl("delete", "configmap", "m4")
    assert tool.wait_told("deleted", name="m4")["tree"]
    cluster.kubectl("label", "--overwrite", "configmap", "m5", "of=another")
    tool.wait_told("deleted", name="m5")
    assert not tool.errors


def test_fields_that_are_nested_deeply(cluster):
    """Anybody may say who manages an object's fields, and the API server keeps it: no list and no watch may end by it."""
    def deep(name):
        fields = '{"f:a":' * 3000 + "{}" + "}" * 3000
        return (f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}", "labels": {{"of": "deep"}}, "managedFields": '
                f'[{{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {fields}}}]}}}}')

    assert cluster.ask("post", MAPS, deep("listed"))["http"] == 201
    assert cluster.kubectl("get", "configmap", "listed", "-o", "json", "--show-managed-fields").count('"f:a"') == 3000
    tool = cluster.tool("--label=of=deep", "watch", MAPS)
    tool.wait_told("changed", name="listed")
    tool.wait_told("synced")
    assert cluster.ask("post", MAPS, deep("watched"))["http"] == 201
    tool.wait_told("changed", name="watched")
    assert not tool.errors


def test_field_selector(cluster):
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
    for name, at in (("here", "n1"), ("there", "n2")):
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
                       "spec": {"nodeName": at, "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "none"}]}})
    for how in ([], ["--cached"]):
        tool = cluster.tool(*how, "--field=spec.nodeName=n1", "watch", "/api/v1/pods")
        tool.wait_told("synced")
        assert [x["key"] for x in tool.told("changed")] == ["default/here"]
    cluster.kubectl("annotate", "pod", "here", "colour=blue")
    tool.wait(lambda x: x.get("name") == "here" and x.get("annotations", {}).get("colour") == "blue")


def test_binding(cluster):
    """One call: the pod has its node and the annotation; another pod's UID is refused."""
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unbound", "namespace": "default", "annotations": {"a": "b"}},
                   "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "none"}]}})
    path = "/api/v1/namespaces/default/pods/unbound"
    uid = cluster.ask("get", path)["body"]["metadata"]["uid"]
    answer = cluster.ask("bind", "default", "unbound", "11111111-2222-3333-4444-555555555555", "n1", "hami.io/x=GPU-1,\"y\"")
    assert (answer["http"], answer["outcome"]) == (409, 7), answer["err"]
    answer = cluster.ask("bind", "default", "unbound", uid, "n1", "hami.io/x=GPU-1,\"y\"")
    assert answer["http"] == 201
    pod = cluster.ask("get", path)["body"]
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"].items() >= {"a": "b", "hami.io/x": 'GPU-1,"y"'}.items()


def test_a_binding_is_given_up_when_we_say(cluster):
    """?timeout=: the server itself ends what it does not get done by then, here with an etcd that stands still."""
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late", "namespace": "default"},
                   "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "none"}]}})
    with stopped("etcd"):
        answer = cluster.ask("post", "/api/v1/namespaces/default/pods/late/binding?timeout=300ms", json.dumps(
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "late"}, "target": {"kind": "Node", "name": "n1"}}))
    assert (answer["http"], answer["reason"]) == (504, "Timeout"), answer


def test_events(cluster):
    tool = cluster.tool("--for-ms=3000", "event", "default", "here", "uid-1", "6", "2")
    assert tool.end()["sent"] == 2
    items = json.loads(cluster.kubectl("get", "events", "-o", "json", "--field-selector=involvedObject.uid=uid-1"))["items"]
    assert sorted((i["message"], i["count"], i["source"]["component"]) for i in items) == [
        ('message "0"', 3, "kube-tool"), ('message "1"', 3, "kube-tool")]


def test_the_api_server_restarts_under_a_watch(cluster):
    tool = cluster.tool("watch", "/api/v1/nodes")
    tool.wait_told("synced")
    script("down.sh", "--only", "kube-apiserver", env={"SIG": "KILL"})
    wait_until("a complaint", 30, lambda: any("cannot be followed" in x for x in tool.errors))
    script("up.sh", "--only", "kube-apiserver")
    annotate(cluster, "n1", "after")
    tool.wait(lambda x: x.get("annotations", {}).get("example.com/text") == "after", 60)
    assert not tool.told("deleted")


def test_an_api_server_that_hangs(cluster):
    """Stopped: TCP stands, nobody answers, on an HTTP/2 connection that the watch and all else share."""
    tool = cluster.tool("--stall-ms=1500", "--request-ms=1500", "--connect-ms=1500", "watch", "/api/v1/nodes")
    tool.wait_told("synced")
    with stopped("kube-apiserver"):
        wait_until("it is noticed", 30, lambda: any("cannot be followed" in x for x in tool.errors))
    annotate(cluster, "n1", f"hung {time.monotonic()}")
    text = json.loads(cluster.kubectl("get", "node", "n1", "-o", "json"))["metadata"]["annotations"]["example.com/text"]
    tool.wait(lambda x: x.get("annotations", {}).get("example.com/text") == text, 60)
    assert len(tool.told("synced")) == 1


@pytest.fixture
def proxy(cluster):
    """A relay to the API server whose connections freeze on SIGUSR1."""
    process = subprocess.Popen(in_network(KUBE / "freezing_proxy.py", "16444", "16443"), stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_half_open_http2_connection(cluster, proxy):
    """The connection stands and is dead, and the server is well. On HTTP/2 whatever comes next would share it."""
    tool = cluster.tool("--stall-ms=1500", "--request-ms=3000", "watch", "/api/v1/nodes", server="https://127.0.0.1:16444")
    tool.wait_told("synced")
    annotate(cluster, "n1", "before")
    tool.wait(lambda x: x.get("annotations", {}).get("example.com/text") == "before")
    proxy.send_signal(signal.SIGUSR1)
    assert proxy.stdout.readline() == "frozen\n"
    annotate(cluster, "n1", "after")
    tool.wait(lambda x: x.get("annotations", {}).get("example.com/text") == "after", 20)
    failures = [x for x in tool.errors if "list or watch failed" in x]
    assert len(failures) == 1 and "nothing was said within 1500 ms" in failures[0], "the next one did not use it"
