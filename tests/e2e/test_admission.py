"""Admission on a real API server: deploy/examples/admission*.yaml and hami-scheduler's webhook. No kubelet, no scheduler."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

from node.base import BUILD, wait_until
from node.real import CLUSTER, in_network, script
from node.scheduled import PORT, admission_documents

SCHEDULER = "system:serviceaccount:kube-system:hami-scheduler"
AGENT = "system:serviceaccount:kube-system:hami-device-plugin"
ALLOCATED = "hami.io/vgpu-devices-allocated"
GPU = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}


class Api:
    """The API server with one of the manifests, and the webhook beside it."""

    def __init__(self, folder):
        self.folder, self.process, self.made = pathlib.Path(folder), None, 0
        script("up.sh", "--only", "etcd", "kube-apiserver")
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})

    def down(self):
        self.stop_webhook()
        script("down.sh", "--wipe", check=False)

    def start_webhook(self):
        with open(self.folder / "scheduler.log", "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                in_network(BUILD / "bin/hami-scheduler", f"--http_bind=127.0.0.1:{PORT}",
                           f"--cert_file={CLUSTER}/pki/apiserver.crt", f"--key_file={CLUSTER}/pki/apiserver.key",
                           f"--kubeconfig={CLUSTER}/pki/admin.conf", "--scheduler-name=hami-scheduler", "--metrics-bind-address=",
                           "--shutdown-delay=0s", f"--annotation-writers={SCHEDULER},{AGENT}"),
                stdout=log, stderr=log)
        wait_until("the webhook answers", 30, lambda: subprocess.run(
            in_network("curl", "-sk", f"https://127.0.0.1:{PORT}/healthz"),
            check=False, capture_output=True).returncode == 0)

    def stop_webhook(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(30) == 0
            self.process = None

    # --- kubectl --------------------------------------------------------------------------------------------------------
    def ask(self, *args, user=None, tree=None):
        """(did it go well, what it printed, warnings and errors)"""
        who = [f"--as={user}", "--as-group=system:masters"] if user else []
        if tree is not None:
            path = self.folder / "object.json"
            path.write_text(json.dumps(tree))
            args = (*args, "-f", str(path))
        done = script("k", *who, *args, check=False, timeout=120)
        return done.returncode == 0, done.stdout, done.stderr

    def apply(self, tree):
        ok, _, err = self.ask("apply", "--server-side", "--force-conflicts", tree=tree)
        assert ok, err

    def install(self, name):
        for doc in admission_documents(name):
            self.apply(doc)

    def uninstall(self):
        for kind in ("mutatingwebhookconfigurations", "validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            self.ask("delete", kind, "--all", "--wait")

    # --- pods -----------------------------------------------------------------------------------------------------------
    def pod(self, limits=None, annotations=None, labels=None, **spec):
        self.made += 1
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": f"p{self.made}", "namespace": "default", "annotations": annotations or {}, "labels": labels or {}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits or {}}}], **spec}}

    def create(self, *args, user="eve", **kw):
        """The pod as it is stored."""
        ok, out, err = self.ask("create", "-o", "json", user=user, tree=self.pod(*args, **kw))
        assert ok, err
        return json.loads(out)

    def refused(self, *args, user="eve", **kw):
        """Why it was not let in."""
        ok, _, err = self.ask("create", user=user, tree=self.pod(*args, **kw))
        assert not ok
        return err

    def annotate(self, pod, user, *words):
        return self.ask("annotate", "--overwrite", "pod", pod["metadata"]["name"], *words, user=user)

    def installed(self):
        """The API server obeys the manifest: it may take a moment."""
        return not self.ask("create", "--dry-run=server", user="eve", tree=self.pod(GPU, {ALLOCATED: "x"}))[0] and \
            not self.annotate(self.probe, "eve", "--dry-run=server", f"{ALLOCATED}=x")[0]

    def use(self, name):
        self.uninstall()
        self.probe = self.create(user=SCHEDULER)
        self.install(name)
        wait_until("the API server asks the webhook", 60, self.installed, every=0.2)


@pytest.fixture(scope="module")
def server():
    if os.geteuid() != 0:
        pytest.skip("the cluster needs root")
    with tempfile.TemporaryDirectory(prefix="hami-ad-") as folder:
        it = Api(folder)
        try:
            it.start_webhook()
            yield it
        finally:
            it.down()


@pytest.fixture(scope="module", params=["admission.yaml", "admission-1.28.yaml"])
def api(server, request):
    server.use(request.param)
    return server


def test_a_pod_becomes_ours(api):
    pod = api.create({"nvidia.com/gpumem": 3000})
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k"}
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k"}
    assert api.create({"cpu": 1})["spec"]["schedulerName"] == "default-scheduler"
    assert "must be a whole number between 0 and 100" in api.refused({**GPU, "nvidia.com/gpucores": 101})


def test_the_label_that_skips_hami_s_webhook(api):
    assert api.create(GPU, labels={"hami.io/webhook": "ignore"})["spec"]["schedulerName"] == "hami-scheduler"
    assert "may be written by the scheduler" in api.refused(GPU, {ALLOCATED: "x"}, {"hami.io/webhook": "ignore"})


def test_a_node_of_the_author_s_choice(api):
    assert "pod has node assigned" in api.refused(GPU, nodeName="n1")
    assert api.create({"cpu": 1}, nodeName="n1")["spec"]["nodeName"] == "n1"


def test_another_scheduler_s_name(api):
    ok, out, err = api.ask("create", "-o", "json", user="eve", tree=api.pod(GPU, schedulerName="other"))
    assert ok and json.loads(out)["spec"]["schedulerName"] == "other"
    assert "Warning: spec.schedulerName is other: no card is reserved" in err
    for forged in (ALLOCATED, "hami.io/vgpu-signature", "hami.io/vgpu-node"):
        assert f"annotation {forged} may be written by" in api.refused(GPU, {forged: "x"}, schedulerName="other")
        assert f"annotation {forged} may be written by" in api.refused({"cpu": 1}, {forged: "x"}, schedulerName="other")


def test_a_later_patch(api):
    pod = api.create(GPU, {"note": "x"})
    assert api.annotate(pod, "eve", "note=y")[0]
    ok, _, err = api.annotate(pod, "eve", f"{ALLOCATED}=GPU-x,NVIDIA,1,1:;")
    assert not ok and f"annotation {ALLOCATED} may be written by the scheduler and the node agents only, not by eve" in err
    assert api.annotate(pod, SCHEDULER, f"{ALLOCATED}=GPU-x,NVIDIA,1,1:;", "hami.io/bind-phase=allocating")[0]
    for words in ([f"{ALLOCATED}=other"], [f"{ALLOCATED}-"], ["hami.io/bind-phase=success"]):
        ok, _, err = api.annotate(pod, "eve", *words)
        assert not ok and "leave it as it is" in err, words
    # An empty text is a text, too.
    ok, _, err = api.annotate(pod, "eve", "hami.io/bind-time=")
    assert not ok and "leave it out" in err
    assert api.annotate(pod, SCHEDULER, "hami.io/bind-time=")[0]
    ok, _, err = api.annotate(pod, "eve", "hami.io/bind-time-")
    assert not ok and "leave it as it is" in err
    assert api.annotate(pod, "eve", "note=z")[0]
    assert api.annotate(pod, AGENT, "hami.io/bind-phase=success")[0]


def test_a_later_patch_of_the_status(api):
    pod = api.create(GPU)
    patch = json.dumps({"metadata": {"annotations": {ALLOCATED: "x"}}})
    where = ("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge")
    assert not api.ask(*where, "-p", patch, user="eve")[0]
    assert api.ask(*where, "-p", '{"status":{"message":"m"}}', user="eve")[0]
    assert api.ask(*where, "-p", patch, user=AGENT)[0]


def test_a_binding(api):
    pod = api.create(GPU)
    name = pod["metadata"]["name"]
    where = ("create", "--raw", f"/api/v1/namespaces/default/pods/{name}/binding")
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": {ALLOCATED: "x"}},
               "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}
    ok, _, err = api.ask(*where, user="eve", tree=binding)
    assert not ok and "may be written by" in err
    ok, _, err = api.ask(*where, user=SCHEDULER, tree=binding)
    assert ok, err
    bound = json.loads(api.ask("get", "pod", name, "-o", "json")[1])
    assert bound["spec"]["nodeName"] == "n1" and bound["metadata"]["annotations"][ALLOCATED] == "x"


def test_an_ephemeral_container(api):
    pod = api.create({"cpu": 1})
    name = pod["metadata"]["name"]
    where = ("replace", "--raw", f"/api/v1/namespaces/default/pods/{name}/ephemeralcontainers")
    debug = {"name": "d", "image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
             "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod["spec"]["ephemeralContainers"] = [debug]
    ok, _, err = api.ask(*where, user="eve", tree=pod)
    assert not ok and "ephemeral container d: nvidia.com/gpu: no card can be given to it" in err
    del debug["resources"]
    assert api.ask(*where, user="eve", tree=pod)[0]


def workloads(pod):
    """Of each kind that makes pods one, as the API server takes it."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    once = {**template, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    selector = {"matchLabels": {"a": "b"}}
    specs = {("apps/v1", "Deployment"): {"selector": selector, "template": template},
             ("apps/v1", "ReplicaSet"): {"selector": selector, "template": template},
             ("apps/v1", "StatefulSet"): {"selector": selector, "template": template, "serviceName": "s"},
             ("apps/v1", "DaemonSet"): {"selector": selector, "template": template},
             ("v1", "ReplicationController"): {"selector": {"a": "b"}, "template": template},
             ("batch/v1", "Job"): {"template": once},
             ("batch/v1", "CronJob"): {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": once}}}}
    for (version, kind), spec in specs.items():
        yield {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "default"}, "spec": spec}


def test_advice(api):
    for tree in workloads(api.pod(GPU)):
        ok, _, err = api.ask("create", "--dry-run=server", user="eve", tree=tree)
        assert ok and "Warning" not in err, err
        tree["metadata"]["annotations"] = {"nvidia.com/use-gputype": "A100"}
        ok, _, err = api.ask("create", "--dry-run=server", user="eve", tree=tree)
        assert ok and f"Warning: annotation nvidia.com/use-gputype has no effect on the {tree['kind']}" in err, (tree["kind"], err)
    ok, _, err = api.ask("create", user="eve", tree=api.pod({**GPU, "nvidia.com/gpumem": 0}))
    assert ok and "Warning: container c: nvidia.com/gpumem is 0" in err


def test_odd_pods_get_the_api_server_s_own_answer(api):
    """Conditions that cannot be worked out would refuse, in their own words."""
    pod = api.pod()
    pod["spec"]["containers"] = []
    ok, _, err = api.ask("create", user="eve", tree=pod)
    assert not ok and "spec.containers: Required value" in err
    pod["spec"]["containers"] = [{"name": "c", "image": "i"}]
    del pod["metadata"]["annotations"]
    ok, _, err = api.ask("create", user="eve", tree=pod)
    assert ok, err


def test_without_the_webhook_only_gpu_pods_wait(api):
    api.stop_webhook()
    try:
        assert api.create({"cpu": 1}, {"note": "x"})["spec"]["containers"]
        assert "failed calling webhook" in api.refused(GPU)
        assert "failed calling webhook" in api.refused({"cpu": 1}, {ALLOCATED: "x"})
    finally:
        api.start_webhook()
    assert api.create(GPU)["spec"]["schedulerName"] == "hami-scheduler"


def test_the_oldest_manifest_is_taken(server):
    server.uninstall()
    server.install("admission-before-1.28.yaml")
    wait_until("the API server asks the webhook", 60,
               lambda: not server.ask("create", "--dry-run=server", user="eve", tree=server.pod(GPU, {ALLOCATED: "x"}))[0], every=0.2)
    pod = server.create(GPU)
    assert pod["spec"]["schedulerName"] == "hami-scheduler"
    assert not server.annotate(pod, "eve", f"{ALLOCATED}=x")[0] and server.annotate(pod, SCHEDULER, f"{ALLOCATED}=x")[0]
