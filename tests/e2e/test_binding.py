"""/filter and /bind on a real API server: what a pod has when it is read back. No kubelet, no kube-scheduler."""
import base64
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest
import yaml

from node.base import BUILD, wait_until
from node.deployed import EXAMPLES
from node.many import node_with_cards, pod_with_cards
from node.real import CLUSTER, in_network, script
from node.scheduled import KEY, PORT


class Cell:
    """The API server, and the scheduler beside it with the rights of scheduler.yaml."""

    def __init__(self, folder):
        self.folder, self.process = pathlib.Path(folder), None
        script("up.sh", "--only", "etcd", "kube-apiserver")
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
        for doc in yaml.safe_load_all((EXAMPLES / "scheduler.yaml").read_text()):
            if doc["kind"] not in ("Deployment", "Service"):
                self.apply(doc)

    def kubectl(self, *args):
        return script("k", *args, timeout=120).stdout

    def apply(self, tree):
        path = self.folder / "object.json"
        path.write_text(json.dumps(tree))
        return json.loads(self.kubectl("apply", "-o", "json", "-f", str(path)))

    def openssl(self, *args, check=True):
        return subprocess.run(["openssl", *map(str, args)], cwd=self.folder, check=check, capture_output=True).returncode == 0

    def kubeconfig(self):
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:16443", "certificate-authority": f"{CLUSTER}/pki/ca.crt"}}],
            "users": [{"name": "u", "user": {"token": self.kubectl("-n", "kube-system", "create", "token", "hami-scheduler").strip()}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}))
        return path

    def start(self):
        (self.folder / "keys").mkdir()
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", f"keys/{KEY}")
        self.openssl("pkey", "-in", f"keys/{KEY}", "-pubout", "-out", "public")
        with open(self.folder / "scheduler.log", "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                in_network(BUILD / "bin/hami-scheduler", f"--http_bind=127.0.0.1:{PORT}", f"--cert_file={CLUSTER}/pki/apiserver.crt",
                           f"--key_file={CLUSTER}/pki/apiserver.key", f"--kubeconfig={self.kubeconfig()}", "--metrics-bind-address=",
                           f"--signature-keys={self.folder}/keys", "--shutdown-delay=0s"), stdout=log, stderr=log)
        wait_until("the cluster is known", 60, lambda: self.curl("/readyz").returncode == 0, every=0.2)

    def down(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
        script("down.sh", "--wipe", check=False)

    def curl(self, path, *args, text_in=None):
        return subprocess.run(in_network("curl", "-skf", *args, f"https://127.0.0.1:{PORT}{path}"), input=text_in, check=False,
                              capture_output=True, text=True)

    def post(self, path, tree):
        done = self.curl(path, "-d", "@-", "-H", "Content-Type: application/json", text_in=json.dumps(tree))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def signed(self, signature, *lines):
        """By openssl's word, over the text of docs/contracts/hami-annotations.md."""
        (self.folder / "signature").write_bytes(base64.urlsafe_b64decode(signature + "=="))
        (self.folder / "text").write_text("".join(f"{line}\n" for line in lines))
        return self.openssl("pkeyutl", "-verify", "-pubin", "-inkey", "public", "-rawin", "-in", "text", "-sigfile", "signature", check=False)


@pytest.fixture(scope="module")
def cell():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    with tempfile.TemporaryDirectory(prefix="hami-bi-") as folder:
        it = Cell(folder)
        try:
            it.apply(node_with_cards("n1"))
            it.start()
            yield it
        finally:
            it.down()


def test_one_binding_carries_all(cell):
    tree = pod_with_cards("a", 3000, 2)
    tree["spec"]["containers"].insert(0, {"name": "plain", "image": "i"})
    pod = cell.apply(tree)
    uid = pod["metadata"]["uid"]
    assert cell.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": ["n0", "n1"]})["NodeNames"] == ["n1"]
    asked = {"PodName": "a", "PodNamespace": "default", "PodUID": uid, "Node": "n1"}
    assert cell.post("/bind", asked)["Error"] == ""

    stored = json.loads(cell.kubectl("get", "pod", "a", "-o", "json"))
    marks = stored["metadata"]["annotations"]
    assert (stored["metadata"]["uid"], stored["spec"]["nodeName"], marks["hami.io/vgpu-node"]) == (uid, "n1", "n1")
    cards = re.fullmatch(r";GPU-n1-([0-7]),NVIDIA,3000,0:GPU-n1-([0-7]),NVIDIA,3000,0:;", marks["hami.io/vgpu-devices-allocated"])
    assert cards and cards[1] != cards[2], marks
    assert marks["hami.io/vgpu-devices-to-allocate"] == marks["hami.io/vgpu-devices-allocated"]
    assert (marks["hami.io/bind-phase"], marks["hami.io/bind-time"]) == ("allocating", marks["hami.io/vgpu-time"])
    version, key, signature = marks["hami.io/vgpu-signature"].split(".")
    what = [marks["hami.io/vgpu-time"], marks["hami.io/vgpu-devices-allocated"], ""]
    assert (version, key) == ("v1", KEY) and cell.signed(signature, "hami-vgpu-v1", uid, "n1", *what)
    assert not cell.signed(signature, "hami-vgpu-v1", uid, "n2", *what)
