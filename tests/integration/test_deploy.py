"""deploy/: the image, built without a daemon, and the manifests."""
import hashlib
import json
import os
import re
import subprocess
import tarfile

import pytest
import yaml

from kubelet_peer import REPO
from node.base import BUILD, PLAIN

EXAMPLES = REPO / "deploy/examples"


def load(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def daemonset(name):
    return next(d for d in load(name) if d["kind"] == "DaemonSet")


# What users have from a guide to hami.com/vgpu, copied out by hand: names, environment and arguments as they stand.
GUIDE = {
    "apiVersion": "apps/v1", "kind": "DaemonSet",
    "metadata": {"name": "hami-device-plugin", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"name": "hami-device-plugin"}},
        "template": {"metadata": {"labels": {"name": "hami-device-plugin"}}, "spec": {
            "nodeSelector": {"hami.com/gpu": "true"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "hostNetwork": True,
            "volumes": [
                {"name": "device-plugin", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}},
                {"name": "dev", "hostPath": {"path": "/dev"}},
                {"name": "hami-driver", "hostPath": {"path": "/usr/local/hami/driver", "type": "Directory"}}],
            "containers": [{
                "image": "registry.example.com/hami/device-plugin:v1.5.0", "name": "hami-dp",
                "securityContext": {"privileged": True},
                "volumeMounts": [
                    {"name": "device-plugin", "mountPath": "/var/lib/kubelet/device-plugins"},
                    {"name": "dev", "mountPath": "/dev"},
                    {"name": "hami-driver", "mountPath": "/usr/local/hami/driver", "readOnly": True}],
                "env": [
                    {"name": "HAMI_VGPU_MEMORY_MB_PER_CORE", "value": "5120"},
                    {"name": "HAMI_VGPU_CORES_PER_DEVICE", "value": "4"},
                    {"name": "HAMI_LOG_LEVEL", "value": "INFO"},
                    {"name": "HAMI_ENABLE_TOPOLOGY", "value": "true"}],
                "resources": {"limits": {"memory": "200Mi", "cpu": "100m"}, "requests": {"memory": "100Mi", "cpu": "50m"}},
                "args": ["--v=4", "--fail-on-init-error=true"]}]}}}}


def test_the_classic_example_is_the_guide_s():
    assert load("slices-classic.yaml") == [GUIDE]


def test_the_slices_example_is_the_guide_s_and_two_mounts():
    found = daemonset("slices.yaml")
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    extra = {v["name"]: v["hostPath"]["path"] for v in pod["volumes"][3:]}
    assert extra == {"cdi": "/var/run/cdi", "state": "/var/lib/hami-vgpu"}
    assert {m["name"]: m["mountPath"] for m in container["volumeMounts"][3:]} == extra
    del pod["volumes"][3:], container["volumeMounts"][3:]
    assert found == GUIDE


def test_least_privilege_is_little():
    pod = daemonset("slices-least-privilege.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert not security["privileged"] and not security["allowPrivilegeEscalation"] and security["readOnlyRootFilesystem"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
    assert not pod.get("hostNetwork") and not pod["automountServiceAccountToken"]
    written = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert written == {"/var/lib/kubelet/device-plugins", "/var/run/cdi", "/var/lib/hami-vgpu"}


@pytest.mark.parametrize("name", sorted(p.name for p in EXAMPLES.glob("*.yaml") if not p.name.startswith("admission")))
def test_every_mount_has_its_volume_and_every_argument_is_known(build, name):
    (workload,) = (d for d in load(name) if d["kind"] in ("DaemonSet", "Deployment"))
    pod = workload["spec"]["template"]["spec"]
    volumes = {v["name"] for v in pod["volumes"]}
    for container in pod["containers"]:
        assert {m["name"] for m in container["volumeMounts"]} <= volumes
        program, *arguments = container.get("command") or ["hami-device-plugin", *container.get("args", [])]
        if name != "hami-chart.yaml" and program.startswith("hami-"):
            known = subprocess.run([str(build / "bin" / program), "--help"], capture_output=True, text=True, check=True).stdout
            assert arguments and {a.split("=")[0] for a in arguments} <= set(re.findall(r"--[a-z_-]+", known))


@pytest.fixture(scope="module")
def image(build, tmp_path_factory):
    """The archive's folder, and the root that its one layer makes."""
    folder = tmp_path_factory.mktemp("image")
    done = subprocess.run([str(REPO / "deploy/docker/build-image.sh"), "--build", str(build), "--name", "localhost/x:7",
                           str(folder / "x.tar")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(folder / "x.tar") as archive:
        archive.extractall(folder / "oci")
    index = json.loads((folder / "oci/index.json").read_text())
    (manifest,) = index["manifests"]
    assert manifest["annotations"]["io.containerd.image.name"] == "localhost/x:7"

    def blob(descriptor):
        data = (folder / "oci/blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        assert len(data) == descriptor["size"] and hashlib.sha256(data).hexdigest() == descriptor["digest"][7:]
        return data
    tree = json.loads(blob(manifest))
    (folder / "layer").write_bytes(blob(tree["layers"][0]))
    with tarfile.open(folder / "layer") as layer:
        layer.extractall(folder / "root")
    return json.loads(blob(tree["config"])), folder / "root"


def inside(root, *command):
    """Run with the image as its root; the environment is the image's PATH alone."""
    return subprocess.run(["chroot", str(root), *command], capture_output=True, text=True, timeout=20, check=False,
                          env={"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})


def test_the_image_runs_by_its_name_and_by_hami_s(image, needs_root):
    config, root = image
    if PLAIN != BUILD:
        pytest.skip("a sanitizer's runtime needs /proc, which the bare root does not have")
    assert config["config"]["Entrypoint"] == ["/k8s-vgpu/bin/hami-device-plugin"]
    version = inside(root, "/k8s-vgpu/bin/hami-device-plugin", "--version")
    assert version.returncode == 0 and version.stdout.startswith("hami-device-plugin "), version.stderr
    assert inside(root, "/k8s-vgpu/bin/nvidia-device-plugin", "--version").stdout == version.stdout
    assert inside(root, "/k8s-vgpu/bin/hami-smi", "--version").returncode == 0
    scheduler = inside(root, "/k8s-vgpu/bin/scheduler", "version")
    assert scheduler.returncode == 0 and scheduler.stdout.startswith("version: "), scheduler.stderr
    # As HAMi's chart runs it after the start.
    hook = inside(root, "/bin/sh", "-c", "/k8s-vgpu/bin/vgpu-init.sh /usr/local/vgpu/")
    assert (hook.returncode, hook.stdout, hook.stderr) == (0, "", "")
    assert "NVIDIA_VISIBLE_DEVICES=all" in config["config"]["Env"]


def test_the_library_lies_where_the_agent_looks(image):
    _config, root = image
    assert (root / "k8s-vgpu/lib/hami-vgpu/libvgpu.so").stat().st_mode & 0o555 == 0o555


def test_the_monitor_s_stand_in_ends_when_asked(image, needs_root):
    _config, root = image
    (root / "dev").mkdir(exist_ok=True)
    (root / "dev/null").touch()  # as every container has one
    process = subprocess.Popen(["chroot", str(root), "/k8s-vgpu/bin/vGPUmonitor", "-v=4"], stdout=subprocess.PIPE, text=True,
                               env={"PATH": "/bin:/usr/sbin:/sbin:/usr/bin"})
    assert "served by the agent" in process.stdout.readline()
    process.terminate()
    assert process.wait(10) == 0
    process.stdout.close()


def named(prefix, text):
    """The texts of the header's names that begin so."""
    return set(re.findall(rf'#define {prefix}\w+ "([^"]+)"', text))


def quoted(text, *starts):
    return {word for word in re.findall(r"'([^']+)'", text) if word.startswith(starts)}


def test_admission_guards_what_the_contract_names():
    """The API server's conditions are texts: each list in them is one of contract/hami.h's."""
    header = (REPO / "src/contract/hami.h").read_text()
    marks = {k for k in named("HAMI_POD_", header) if k.startswith("hami.io/") and not k.startswith("hami.io/scheduler-")}
    wishes = named("HAMI_WISH_", header)
    resources = {r for r in named("HAMI_RESOURCE_", header) if not r.endswith("-")}
    assert len(marks) == 8 and len(wishes) == 9 and len(resources) == 5
    for name in ("admission.yaml", "admission-1.28.yaml"):
        docs = load(name)
        hooks = {h["name"]: h for h in docs[0]["webhooks"]}
        asks = hooks["vgpu.hami.io"]["matchConditions"][0]["expression"]
        assert quoted(asks, "nvidia.com/") == resources | {w for w in wishes if w.startswith("nvidia.com/")}, name
        assert quoted(hooks["debug.vgpu.hami.io"]["matchConditions"][0]["expression"], "nvidia.com/") == resources, name
        assert quoted(hooks["workloads.vgpu.hami.io"]["matchConditions"][0]["expression"], "nvidia.com/", "hami.io/") == wishes, name
        rules = [(group, what) for r in hooks["workloads.vgpu.hami.io"]["rules"] for group in r["apiGroups"] for what in r["resources"]]
        assert sorted(rules) == [
            ("", "replicationcontrollers"), ("apps", "daemonsets"), ("apps", "deployments"), ("apps", "replicasets"),
            ("apps", "statefulsets"), ("batch", "cronjobs"), ("batch", "jobs")], name
        guard = docs[1]["spec"] if len(docs) > 1 else hooks["allocations.vgpu.hami.io"]
        assert quoted(json.dumps(guard), "hami.io/") == marks, name
    for name in ("admission.yaml", "admission-1.28.yaml", "admission-before-1.28.yaml"):
        for hook in load(name)[0]["webhooks"]:
            assert "objectSelector" not in hook, f"{name}: a pod's author could set what it looks at"


# Of k8s.io/kube-scheduler's types: what v1beta2 (Kubernetes 1.22) and v1 both have. kube-scheduler refuses what it does not know.
TLS = {name: None for name in ("insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData")}
SCHEDULER_FIELDS = {
    "apiVersion": None, "kind": None, "parallelism": None, "percentageOfNodesToScore": None, "podInitialBackoffSeconds": None,
    "podMaxBackoffSeconds": None, "enableProfiling": None, "enableContentionProfiling": None,
    "leaderElection": {name: None for name in ("leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceLock",
                                               "resourceName", "resourceNamespace")},
    "clientConnection": {name: None for name in ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")},
    "profiles": {"schedulerName": None, "plugins": {name: {"enabled": None, "disabled": None} for name in (
        "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind")},
        "pluginConfig": {"name": None, "args": {"addedAffinity": None}}},
    "extenders": {**{name: None for name in ("urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb",
                                             "enableHTTPS", "httpTimeout", "nodeCacheCapable", "ignorable")},
                  "tlsConfig": TLS, "managedResources": {"name": None, "ignoredByScheduler": None}}}


def unknown_fields(tree, known, path=""):
    if isinstance(tree, list):
        return [found for item in tree for found in unknown_fields(item, known, path + "[]")]
    if known is None:
        return []
    return [found for key, value in tree.items() for found in (
        unknown_fields(value, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}"])]


@pytest.mark.parametrize("added", [False, True], ids=["as it stands", "with what is commented out"])
def test_kube_scheduler_s_configuration_is_good_from_v1beta2_on(added):
    text, = (d["data"]["config.yaml"] for d in load("scheduler.yaml") if d["kind"] == "ConfigMap")
    if added:
        first, rest = text.split("  # pluginConfig:", 1)
        commented, others = re.match(r"((?:.*\n(?=  #))*.*\n)(.*)", rest, re.S).groups()
        text = first + "  pluginConfig:" + re.sub(r"(?m)^  # ", "  ", commented) + others
    tree = yaml.safe_load(text)
    assert tree["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert ("pluginConfig" in tree["profiles"][0]) == added and tree["extenders"]
    assert not unknown_fields(tree, SCHEDULER_FIELDS)
