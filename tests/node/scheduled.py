"""The real cluster with deploy/examples' agent, admission and scheduler, placements signed: a kube-scheduler of its own and
hami-scheduler run as processes beside the API server, with the rights, the configuration and the flags of scheduler.yaml; or
as its Deployment says."""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import yaml

from node.base import BUILD, wait_until
from node.deployed import EXAMPLES, IMAGE
from node.hami import ALLOCATED, shares_in
from node.hami_real import HamiDeployed
from node.real import CLUSTER, in_network, script

PORT = 19443
METRICS = 19395
KEY = "2026-11"
AUDITED = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, users: ["system:serviceaccount:kube-system:hami-scheduler"]}
- {level: None}
"""


def admission_documents(name):
    """The manifest as it stands, but for the place of the webhook."""
    ca = base64.b64encode((CLUSTER / "pki/ca.crt").read_bytes()).decode()
    for doc in yaml.safe_load_all((EXAMPLES / name).read_text()):
        for hook in doc.get("webhooks", []):
            hook["clientConfig"] = {"url": f"https://127.0.0.1:{PORT}{hook['clientConfig']['service']['path']}", "caBundle": ca}
        yield doc


# tools/test-cluster --kube-scheduler v1.22.17: that one in place of the cluster's own.
VERSION = os.environ.get("KUBE_SCHEDULER")
MINOR = int(VERSION.split(".")[1]) if VERSION else 99
KUBE_SCHEDULER = CLUSTER / (f"schedulers/{VERSION}/kube-scheduler" if VERSION else "bin/kube-scheduler")
KUBE_SCHEDULER_IMAGE = "localhost/kube-scheduler:1"
# What the tests' own API server no longer has is storage.k8s.io/v1beta1 of 1.22 and 1.23; without it they would wait for ever.
GATES = ["--feature-gates=CSIStorageCapacity=false"] if MINOR < 24 else []


def example():
    """scheduler.yaml, as its comments want it for kube-scheduler's version."""
    text = (EXAMPLES / "scheduler.yaml").read_text()
    changes = {"config.k8s.io/v1\n": "config.k8s.io/v1beta2\n"} if MINOR < 25 else {}
    if MINOR in range(24, 29):
        changes["# - --pod-max-in-"] = "- --pod-max-in-"
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return list(yaml.safe_load_all(text))


def import_kube_scheduler():
    """As registry.k8s.io's image has it: one static program."""
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp) / "root/usr/local/bin"
        root.mkdir(parents=True)
        shutil.copy2(KUBE_SCHEDULER, root)
        script("mkimage.sh", f"{tmp}/root", KUBE_SCHEDULER_IMAGE, f"{tmp}/image.tar", "[]", '["PATH=/usr/local/bin"]')
        script("in", "ctr", "images", "import", f"{tmp}/image.tar")


class ScheduledNode(HamiDeployed):
    def __init__(self, folder, **kw):
        super().__init__(folder, "hami.yaml", **kw)
        self.started = {}
        policy = self.folder / "audit.yaml"
        policy.write_text(AUDITED)
        self.up_env = {"AUDIT_POLICY": str(policy)}

    # --- cluster ------------------------------------------------------------------------------------------------------
    def up(self):
        super().up()
        self.make_keys()
        self.kubectl("apply", "--dry-run=server", "-f", str(EXAMPLES / "scheduler.yaml"))
        docs = example()
        self.apply(d for d in docs if d["kind"] not in ("Deployment", "Service"))
        self.make_kubeconfig()
        (config,) = [d["data"]["config.yaml"] for d in docs if d["kind"] == "ConfigMap"]
        (pod,) = [d["spec"]["template"]["spec"] for d in docs if d["kind"] == "Deployment"]
        self.kube_config = yaml.safe_load(config)
        commands = {c["name"]: c["command"] for c in pod["containers"]}
        self.flags = {f.partition("=")[0]: f.partition("=")[2] for f in commands["hami-scheduler"][1:]}
        self.kube_flags = [f for f in commands["kube-scheduler"][1:] if not f.startswith("--config=")] + GATES

    def down(self):
        for name in list(self.started):
            self.stop(name)
        super().down()

    def apply(self, docs):
        self.kubectl("apply", "-f", "-", text_in="\n---\n".join(json.dumps(d) for d in docs))

    def make_keys(self):
        """The private key for the scheduler, the public one in the ConfigMap that hami.yaml's agents read."""
        (self.folder / "keys").mkdir()
        private = str(self.folder / "keys" / KEY)
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
        public = subprocess.run(["openssl", "pkey", "-in", private, "-pubout"], capture_output=True, text=True, check=True).stdout
        self.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hami-signature-keys", "namespace": "kube-system"},
                     "data": {KEY: public}}])

    def make_kubeconfig(self):
        token = self.kubectl("-n", "kube-system", "create", "token", "hami-scheduler", "--duration=2h").strip()
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:16443", "certificate-authority": f"{CLUSTER}/pki/ca.crt"}}],
            "users": [{"name": "u", "user": {"token": token}}], "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}))

    # --- the two schedulers -------------------------------------------------------------------------------------------
    def start(self, name, *argv):
        """In the cluster's network; we are its parent."""
        with open(CLUSTER / f"log/{name}.log", "ab") as log:
            self.started[name] = subprocess.Popen(in_network(*argv), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, name, signo=signal.SIGTERM):
        process = self.started.pop(name)
        process.send_signal(signo)
        assert process.wait(30) is not None

    def start_scheduler(self):
        device_config = self.folder / "device-config.yaml"
        (text,) = [d["data"]["device-config.yaml"] for d in yaml.safe_load_all((EXAMPLES / "hami.yaml").read_text()) if d["kind"] == "ConfigMap"]
        device_config.write_text(text)
        flags = {**self.flags, "--http_bind": f"127.0.0.1:{PORT}", "--cert_file": f"{CLUSTER}/pki/apiserver.crt",
                 "--key_file": f"{CLUSTER}/pki/apiserver.key", "--metrics-bind-address": f"127.0.0.1:{METRICS}",
                 "--device-config-file": device_config, "--signature-keys": self.folder / "keys", "--kubeconfig": self.folder / "kubeconfig",
                 "--shutdown-delay": "0s"}
        self.start("hami-scheduler", BUILD / "bin/hami-scheduler", *(f"{k}={v}" for k, v in flags.items()))
        wait_until("hami-scheduler is ready", 60, lambda: self.asks(f"https://127.0.0.1:{PORT}/readyz"), every=0.2)

    def start_kube_scheduler(self):
        tree = {**self.kube_config, "clientConnection": {"kubeconfig": str(self.folder / "kubeconfig")}}
        tree["extenders"][0]["urlPrefix"] = f"https://127.0.0.1:{PORT}"
        config = self.folder / "kube-scheduler.yaml"
        config.write_text(json.dumps(tree))
        self.start("hami-kube-scheduler", KUBE_SCHEDULER, f"--config={config}", "--bind-address=127.0.0.1", "--secure-port=20259", *self.kube_flags)
        log = CLUSTER / "log/hami-scheduler.log"
        wait_until("kube-scheduler has the Lease, and we have seen it", 60, lambda: "we place pods" in log.read_text(), every=0.2)
        assert not VERSION or any(one["userAgent"].startswith(f"kube-scheduler/{VERSION} ") for one in self.audit()), "another version"

    def asks(self, url):
        done = subprocess.run(in_network("curl", "-skf", url), check=False, capture_output=True, text=True)
        return done.stdout or "ok" if done.returncode == 0 else None

    def install_admission(self, name, known):
        """known(): the API server obeys it; it may take a moment."""
        self.apply(admission_documents(name))
        wait_until("the API server asks the webhook", 60, known, every=0.2)

    # --- as pods ------------------------------------------------------------------------------------------------------
    def deploy_scheduler(self):
        """By docs/scheduler.md's own steps, with the manifests as they stand but for the images' names. Two pods, ready."""
        import_kube_scheduler()
        crt, key = (str(self.folder / name) for name in ("tls.crt", "tls.key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-keyout", key, "-out", crt,
                        "-subj", "/CN=hami-scheduler", "-addext", "subjectAltName=DNS:hami-scheduler.kube-system.svc,IP:127.0.0.1"],
                       check=True, capture_output=True)
        self.kubectl("-n", "kube-system", "create", "secret", "tls", "hami-scheduler-tls", f"--cert={crt}", f"--key={key}")
        self.kubectl("-n", "kube-system", "create", "secret", "generic", "hami-signature-keys", f"--from-file={self.folder}/keys/{KEY}")
        docs = [d for d in example() if d["kind"] in ("Deployment", "Service")]
        for container in [c for d in docs if d["kind"] == "Deployment" for c in d["spec"]["template"]["spec"]["containers"]]:
            kube = container["name"] == "kube-scheduler"
            container.update(image=KUBE_SCHEDULER_IMAGE if kube else IMAGE, imagePullPolicy="Never",
                             command=container["command"] + (GATES if kube else []))
        self.apply(docs)
        self.kubectl("-n", "kube-system", "rollout", "status", "deployment/hami-scheduler", "--timeout=100s")

    def scheduler_pods(self):
        """Those that are ready: {name: pod}."""
        query = "labelSelector=app.kubernetes.io%2Fcomponent%3Dhami-scheduler"
        items = self.api("GET", f"/api/v1/namespaces/kube-system/pods?{query}")["items"]
        return {p["metadata"]["name"]: p for p in items if "deletionTimestamp" not in p["metadata"] and
                all(c["ready"] for c in p["status"].get("containerStatuses", [{"ready": False}]))}

    def leader(self):
        """The name of the pod that places pods; None while there is none."""
        pods = self.scheduler_pods()
        return next((n for n, p in pods.items() if p["metadata"]["labels"].get("hami.io/scheduler-role") == "leader"), None)

    def route_service(self, pod):
        """Its Service leads to this pod, as kube-proxy would have it."""
        address = self.api("GET", "/api/v1/namespaces/kube-system/services/hami-scheduler")["spec"]["clusterIP"]
        for chain in ("PREROUTING", "OUTPUT"):
            subprocess.run(in_network("iptables", "-t", "nat", "-I", chain, "-d", address, "-p", "tcp", "--dport", "443",
                                      "-j", "DNAT", "--to-destination", f"{pod['status']['podIP']}:9443"), check=True)

    def install_service_admission(self, name, known):
        ca = base64.b64encode((self.folder / "tls.crt").read_bytes()).decode()
        text = (EXAMPLES / name).read_text()
        assert "# caBundle: " in text
        self.kubectl("apply", "-f", "-", text_in=re.sub(r"# caBundle: .*", f"caBundle: {ca}", text))
        wait_until("the API server asks the webhook", 60, known, every=0.2)

    def undeploy_scheduler(self):
        self.kubectl("-n", "kube-system", "delete", "deployment/hami-scheduler", "service/hami-scheduler", "secret/hami-scheduler-tls",
                     "secret/hami-signature-keys", "lease/hami-scheduler", "--ignore-not-found", "--wait=true")

    # --- what they did ------------------------------------------------------------------------------------------------
    @staticmethod
    def audit():
        """What the two asked of the API server, as its audit log has it."""
        return map(json.loads, (CLUSTER / "log/audit.log").read_text().splitlines())

    def audited(self):
        """hami-scheduler's own, watches apart."""
        return [one for one in self.audit() if one["userAgent"].startswith("hami-scheduler/") and one["verb"] != "watch"]

    def requests(self):
        """[(verb, resource)] of them."""
        asked = [(one["verb"], one.get("objectRef", {"resource": one["requestURI"]})) for one in self.audited()]
        return [(verb, "/".join(filter(None, (what["resource"], what.get("subresource"))))) for verb, what in asked]

    def given(self, name):
        """[(uuid, MiB)] by the pod's annotation."""
        return shares_in(self.annotations(name)[ALLOCATED])

    def told(self, name):
        """Messages of the Events about the pod."""
        items = self.api("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}")["items"]
        return [i.get("message", "") for i in items]
