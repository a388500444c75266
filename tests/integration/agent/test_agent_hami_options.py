"""hami-device-plugin as HAMi's chart 2.10 starts its own plugin: its command, environment, files and mounts, and that
each has its effect."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

from kubelet_peer import UUIDS, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube"))
from api_server import ApiServer  # noqa: E402
from kube_peer import write_kubeconfig  # noqa: E402

NODE = "node-1"
REGISTER, SCORE = "hami.io/node-nvidia-register", "hami.io/node-nvidia-score"
COMMAND = ["--config-file=/device-config.yaml", "--mig-strategy=none", "--disable-core-limit=false", "-v=4"]
ENVIRONMENT = {"NODE_NAME": NODE, "NVIDIA_MIG_MONITOR_DEVICES": "all", "DEVICE_LIST_STRATEGY": "envvar",
               "HOOK_PATH": "/usr/local", "PASS_DEVICE_SPECS": "false"}
DEVICE_CONFIG = """\
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  overwriteEnv: false
  defaultMemory: 0
  defaultCores: 0
  defaultGPUNum: 1
  memoryFactor: 1
  deviceSplitCount: 10
  deviceMemoryScaling: 1
  deviceCoreScaling: 1
  preConfiguredDeviceMemory: 0
  gpuCorePolicy: default
  libCudaLogLevel: 1
  runtimeClassName: ""
  migProfileAllowlist:
  - models: [ "A30" ]
    profiles: [ "1g.6gb", "2g.12gb", "4g.24gb" ]
cambricon:
  resourceCountName: cambricon.com/vmlu
vnpus:
- chipName: 910B
  templates: [{name: vir02, memory: 2184, aiCore: 2}]
"""
NODE_CONFIG = {"nodeconfig": [{"name": "your-node-name", "operatingmode": "hami-core", "devicememoryscaling": 1,
                               "devicesplitcount": 10, "migstrategy": "none",
                               "filterdevices": {"uuid": [], "index": []}}]}


@pytest.fixture
def cluster(short_tmp):
    api = ApiServer()
    api.kubeconfig = write_kubeconfig(short_tmp / "kubeconfig", f"http://127.0.0.1:{api.port}")
    yield api
    api.down()


def make_node(api, runtime="containerd://2.2.9", kubelet="v1.34.4"):
    api.put_tree("nodes", None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "annotations": {}},
                                 "status": {"nodeInfo": {"kubeletVersion": kubelet,
                                                         "containerRuntimeVersion": runtime}}})


def annotations(api):
    return api.objects["nodes", None, NODE]["metadata"]["annotations"]


def registered(api):
    return wait_until("registered", 10, lambda: json.loads(annotations(api).get(REGISTER, "null")))


class Chart:
    """The agent with HAMi's flags and environment, its files where the test has them."""

    def __init__(self, kubelet, agent, api, folder):
        self.kubelet, self.agent, self.api = kubelet, agent, api
        self.device_config, self.node_config = folder / "device-config.yaml", folder / "config.json"
        self.device_config.write_text(DEVICE_CONFIG)
        self.node_config.write_text(json.dumps(NODE_CONFIG))
        self.hook = folder / "hook"
        kubelet.resource = "nvidia.com/gpu"

    def start(self, *flags, env=(), resource=None, **node):
        make_node(self.api, **node)
        self.kubelet.resource = resource or "nvidia.com/gpu"
        if self.kubelet.server is None:
            self.kubelet.start()
        command = [f"--config-file={self.device_config}", *COMMAND[1:], f"--node-config={self.node_config}", *flags]
        environment = {**ENVIRONMENT, "HOOK_PATH": str(self.hook), **dict(env)}
        self.agent.start(*command, f"--kubeconfig={self.api.kubeconfig}", "--metrics-bind-address=127.0.0.1:0",
                         env=environment.items())
        self.kubelet.wait_registered()
        return self.kubelet.devices()

    def answer(self, text=f"{UUIDS[1]},NVIDIA,3000,30:;", env=(), count=1):
        """The Allocate answer of classic binding for a pod that HAMi's scheduler has placed: its entries, `text`."""
        name, now = f"p-{uuid.uuid4().hex[:6]}", str(int(time.time()))
        spec = {"name": "c", "env": [{"name": k, "value": v} for k, v in env],
                "resources": {"limits": {"nvidia.com/gpu": str(count)}}}
        marks = {"hami.io/vgpu-devices-allocated": text, "hami.io/vgpu-devices-to-allocate": text,
                 "hami.io/vgpu-node": NODE, "hami.io/vgpu-time": now, "hami.io/bind-time": now,
                 "hami.io/bind-phase": "allocating"}
        self.api.put_tree("pods", "default", {
            "apiVersion": "v1", "kind": "Pod", "status": {"phase": "Pending"},
            "metadata": {"name": name, "namespace": "default", "uid": str(uuid.uuid4()), "annotations": marks},
            "spec": {"nodeName": NODE, "containers": [spec]}})
        ids = [f"{UUIDS[0]}-{i}" for i in range(count)]

        def allocate():
            try:
                return self.kubelet.plugin.allocate(ids)[0]
            except Exception as e:  # the watch has not told of the pod yet
                self.last = e
                return None
        return wait_until("an answer", 5, allocate)


@pytest.fixture
def chart(kubelet, agent, cluster, short_tmp):
    return Chart(kubelet, agent, cluster, short_tmp)


def env_of(answer):
    return {e.key: e.value for e in answer.envs}


# ---- as it stands

def test_the_charts_command(chart, kubelet, cluster):
    devices = chart.start()
    assert sorted(d.ID for d in devices) == sorted(f"{u}-{i}" for u in UUIDS[:2] for i in range(10))
    assert not any(d.HasField("topology") for d in devices)
    assert (kubelet.folder / "nvidia-gpu.sock").exists()
    assert [(c["id"], c["count"], c["devmem"], c["devcore"], c["mode"]) for c in registered(cluster)] == \
        [(u, 10, 16384, 100, "hami-core") for u in UUIDS[:2]]
    assert SCORE not in annotations(cluster)
    log = chart.agent.log()
    assert "mode=hami binding=late resource=nvidia.com/gpu" in log
    assert " WARN " not in log and " ERROR " not in log, log
    assert " DEBUG " in log  # -v=4


@pytest.mark.parametrize("flags, text", [
    (["--mig-strategy=all"], '--mig-strategy: "all" is none of none|single|mixed'),
    (["--device-list-strategy=cdi"], '--device-list-strategy: "cdi" is none of '
     "envvar|volume-mounts|cdi-annotations|cdi-cri"),
    (["--imex-channel-ids=1"], '--imex-channel-ids: "1" is neither empty nor 0'),
    (["--device-split-count=0"], '--device-split-count: "0" is not a number between 1 and 1000'),
    (["--logtostderr"], 'unknown option "--logtostderr"; see --help'),
])
def test_refused_as_hami_does(build, chart, flags, text):
    done = subprocess.run([str(build / "bin/hami-device-plugin"), f"--config-file={chart.device_config}", "--node-config=",
                           *flags], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2 and done.stderr == f"hami-device-plugin: {text}\n"


def test_version_as_a_word(build):
    done = subprocess.run([str(build / "bin/hami-device-plugin"), "version"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 0 and done.stdout.startswith("NVIDIA Device Plugin version: ")


# ---- what HAMi only parses

def test_flags_that_hami_never_used_do_what_they_say(chart, cluster, kubelet):
    devices = chart.start("--device-split-count=3", "--device-memory-scaling=1.5", "--device-cores-scaling", "2",
                          "--resource-name=example.com/gpu", "--disable-core-limit", "--binding=classic",
                          resource="example.com/gpu")
    assert len(devices) == 6 and (kubelet.folder / "nvidia-gpu.sock").exists()
    assert [(c["count"], c["devmem"], c["devcore"]) for c in registered(cluster)] == [(3, 24576, 200)] * 2


def test_the_core_limit_is_off_where_it_is_said(chart):
    chart.start("--disable-core-limit=true", "--binding=classic")
    assert env_of(chart.answer())["GPU_CORE_UTILIZATION_POLICY"] == "disable"


# ---- one by one, classic binding

@pytest.mark.parametrize("env, check", [
    ({}, lambda a: env_of(a)["NVIDIA_VISIBLE_DEVICES"] == UUIDS[1] and not a.devices and not a.cdi_devices),
    ({"DEVICE_LIST_STRATEGY": "volume-mounts"},
     lambda a: env_of(a)["NVIDIA_VISIBLE_DEVICES"] == "/var/run/nvidia-container-devices"
     and any(m.container_path == f"/var/run/nvidia-container-devices/{UUIDS[1]}" for m in a.mounts)),
    ({"DEVICE_LIST_STRATEGY": "cdi-cri"},
     lambda a: [d.name for d in a.cdi_devices] == [f"k8s.device-plugin.nvidia.com/gpu={UUIDS[1]}"]),
    ({"DEVICE_LIST_STRATEGY": "envvar,cdi-annotations", "CDI_ANNOTATION_PREFIX": "cdi.example.com/"},
     lambda a: env_of(a)["NVIDIA_VISIBLE_DEVICES"] == UUIDS[1]
     and any(n.key.startswith("cdi.example.com/nvidia-device-plugin_")
             and n.value == f"k8s.device-plugin.nvidia.com/gpu={UUIDS[1]}" for n in a.annotations)),
    ({"DEVICE_ID_STRATEGY": "index"}, lambda a: env_of(a)["NVIDIA_VISIBLE_DEVICES"] == "1"),
    ({"GDRCOPY_ENABLED": "true", "GDS_ENABLED": "1", "MOFED_ENABLED": "t"},
     lambda a: [env_of(a).get(f"NVIDIA_{n}") for n in ("GDRCOPY", "GDS", "MOFED")] == ["enabled"] * 3),
    ({"HOOK_PATH": "/opt/hook"},
     lambda a: any(m.container_path == "/opt/hook/vgpu/libvgpu.so" for m in a.mounts)
     and env_of(a)["CUDA_DEVICE_MEMORY_SHARED_CACHE"].startswith("/opt/hook/vgpu/")),
])
def test_an_environment_variable(chart, env, check):
    chart.start("--binding=classic", env=env)
    answer = chart.answer()
    assert check(answer), answer


def test_device_specs(chart):
    chart.start("--binding=classic", env={"PASS_DEVICE_SPECS": "true", "NVIDIA_DRIVER_ROOT": "/run/driver"})
    answer = chart.answer()
    nodes = [(d.container_path, d.host_path, d.permissions) for d in answer.devices]
    assert ("/dev/nvidia1", "/run/driver/dev/nvidia1", "rw") in nodes, nodes


def test_the_topology_score(chart, cluster):
    chart.start(env={"ENABLE_TOPOLOGY_SCORE": "true"})
    registered(cluster)
    score = json.loads(wait_until("the score", 5, lambda: annotations(cluster).get(SCORE)))
    assert [s["uuid"] for s in score] == UUIDS[:2]


def test_what_the_section_says(chart, cluster):
    chart.device_config.write_text("nvidia:\n  deviceSplitCount: 4\n  deviceMemoryScaling: 2\n  deviceCoreScaling: 1.15\n"
                                   "  libCudaLogLevel: 3\n  disableCoreLimit: true\n  enableNumaTopology: true\n"
                                   "  resourceCountName: nvidia.com/gpu\n")
    devices = chart.start("--binding=classic")
    assert len(devices) == 8 and all(d.HasField("topology") for d in devices)
    assert [(c["count"], c["devmem"], c["devcore"]) for c in registered(cluster)] == [(4, 32768, 114)] * 2
    env = env_of(chart.answer())
    assert env["LIBCUDA_LOG_LEVEL"] == "3" and env["GPU_CORE_UTILIZATION_POLICY"] == "disable"
    assert env["CUDA_OVERSUBSCRIBE"] == "true"


@pytest.mark.parametrize("without", ["deviceSplitCount", "deviceMemoryScaling", "deviceCoreScaling", "libCudaLogLevel"])
def test_keys_without_which_hami_ends(chart, cluster, without):
    """Golden: nodes no-split-in-config, no-scaling-in-config, no-log-level-in-config."""
    lines = [line for line in DEVICE_CONFIG.splitlines() if without not in line]
    chart.device_config.write_text("\n".join(lines))
    assert len(chart.start("--binding=classic")) == 20
    assert [(c["count"], c["devmem"], c["devcore"]) for c in registered(cluster)] == [(10, 16384, 100)] * 2
    assert env_of(chart.answer())["LIBCUDA_LOG_LEVEL"] == "1"


def test_no_card_for_a_filtered_one(chart, cluster):
    chart.node_config.write_text(json.dumps({"nodeconfig": [{"name": NODE, "filterdevices": {"index": [0]}}]}))
    assert {d.ID[:40] for d in chart.start()} == {UUIDS[1]}
    assert [c["id"] for c in registered(cluster)] == [UUIDS[1]]


# ---- in HAMi's pod

POD = textwrap.dedent("""\
    set -e
    cd "$POD"
    mount --bind root root
    cd root/..
    for d in usr bin sbin lib lib64 lib32 proc dev sys tmp etc root $(echo "$1" | cut -d/ -f2); do
        [ -d /$d ] && [ ! -L /$d ] && mkdir -p root/$d && mount --rbind /$d root/$d
        [ -L /$d ] && cp -P /$d root/
        true
    done
    mount -t tmpfs none root/usr/local
    mkdir -p root/var/lib/kubelet/device-plugins root/usr/local/vgpu root/config root/var/run/cdi root/driver-root
    touch root/device-config.yaml
    mount --bind "$PLUGINS" root/var/lib/kubelet/device-plugins
    mount --bind hook root/usr/local/vgpu
    mount --bind config root/config
    mount --bind device-config.yaml root/device-config.yaml
    mount --bind cdi root/var/run/cdi
    mount --bind driver root/driver-root
    exec chroot root "$@"
    """)


def test_with_the_mounts_of_the_pod(build, chart, kubelet, cluster, short_tmp, needs_root):
    """Nothing but what the chart passes, at its paths. Its volumes have no state folder of ours: the state lies in the
    kubelet's. NVML is in the driver's root."""
    make_node(cluster)
    for folder in ("root", "hook", "config", "cdi", "driver/usr/lib64"):
        (short_tmp / folder).mkdir(parents=True)
    (short_tmp / "config/config.json").write_text(json.dumps(NODE_CONFIG))
    shutil.copy(build / "tests/libfile_nvml.so", short_tmp / "driver/usr/lib64/libnvidia-ml.so.550.1")
    (short_tmp / "driver/usr/lib64/libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.550.1")
    kubelet.start()
    environment = {**os.environ, **ENVIRONMENT, "KUBECONFIG": str(cluster.kubeconfig), "POD": str(short_tmp),
                   "PLUGINS": str(kubelet.folder), "FILE_NVML": str(chart.agent.nvml),
                   "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with open(chart.agent.log_path, "ab") as log:
        chart.agent.process = subprocess.Popen(["unshare", "--mount", "--propagation=private", "sh", "-c", POD, "pod",
                                                str(build / "bin/hami-device-plugin"), *COMMAND],
                                               env=environment, stdout=log, stderr=log)
    try:
        kubelet.wait_registered(20)
    except Exception:
        raise AssertionError(chart.agent.log()) from None
    assert len(kubelet.devices()) == 20
    assert [c["id"] for c in registered(cluster)] == UUIDS[:2]
    state = kubelet.folder / "hami-vgpu"
    assert (state / "claims").is_dir() and list((state / "lib").iterdir())
    status, seconds = chart.agent.stop()
    assert status == 0 and seconds < 2
