"""hami-device-plugin: its files changed under it, and SIGHUP."""
import json
import os
import pathlib
import re
import signal
import sys
import time
import urllib.request

import pytest

from kubelet_peer import UUIDS, ids, number_of, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube"))
from api_server import ApiServer  # noqa: E402
from kube_peer import write_kubeconfig  # noqa: E402

NODE = "node-1"
REGISTER = "hami.io/node-nvidia-register"


class ConfigMap:
    """A volume as the kubelet makes it: the file is a link into ..data, which is a link that is swapped."""

    def __init__(self, folder, name):
        self.folder, self.name, self.turn = folder, name, 0
        folder.mkdir()
        (folder / name).symlink_to(f"..data/{name}")

    @property
    def path(self):
        return self.folder / self.name

    def set(self, text):
        self.turn += 1
        version = self.folder / f"..version_{self.turn}"
        version.mkdir()
        (version / self.name).write_text(text)
        temp = self.folder / "..data_tmp"
        temp.symlink_to(version.name)
        os.rename(temp, self.folder / "..data")


def limits(agent, number):
    return (agent.state / "alloc" / str(number) / "limits").read_text()


def serve(kubelet, agent, *flags, **more):
    if kubelet.server is None:
        kubelet.start()
    agent.start(*flags, **more)
    kubelet.wait_registered()
    return kubelet.devices()


def port(agent):
    return re.search(r"serving metrics .*port=(\d+)", agent.log())[1]


# ---- slices

def test_new_sizes_for_new_containers_only(kubelet, agent, short_tmp):
    config = ConfigMap(short_tmp / "c", "agent.yaml")
    config.set("cores-per-device: 4\nlog-level: DEBUG\n")
    assert len(serve(kubelet, agent, f"--config={config.path}")) == 8
    first = number_of(kubelet.admit("uid-1", "c", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    assert "cores=25" in limits(agent, first)
    config.set("cores-per-device: 2\nlog-level: DEBUG\n")
    assert len(kubelet.devices()) == 4
    wait_until("said", 5, lambda: "the configuration has changed what=cores-per-device" in agent.log())
    second = number_of(kubelet.admit("uid-2", "c", ids(1, 0)))
    kubelet.plugin.pre_start(ids(1, 0))
    assert "cores=50" in limits(agent, second)
    kubelet.plugin.pre_start(ids(0, 0))  # a restart
    assert "cores=25" in limits(agent, first)
    assert kubelet.registered.empty()


@pytest.mark.parametrize("text, said", [
    ("cores-per-device: 4\nslicing: both\n", 'line 2: slicing: "both" is none of static|dynamic'),
    ("cores-per-device: [\n", "line 2: did not find expected node content"),
    ("mode: dra\n", "line 1: --mode=dra: this version has only --mode=slices and --mode=hami"),
    ("v: 1\nstate-dir: here\n", 'agent.yaml: line 2: --state-dir: "here" is not an absolute path'),
    ("resource-name: gpu\n", 'agent.yaml: line 1: --resource-name: "gpu" is not of the form domain/name'),
    ("memory-mb-per-core: 16000\n", "memory-mb-per-core: "),
])
def test_a_bad_file_changes_nothing(kubelet, agent, short_tmp, text, said):
    config = short_tmp / "agent.yaml"
    config.write_text("cores-per-device: 4\n")
    serve(kubelet, agent, f"--config={config}", "--metrics-bind-address=127.0.0.1:0")
    config.write_text(text)
    line = wait_until("refused", 5, lambda: next((s for s in agent.log().splitlines() if "is refused" in s), None))
    assert said in line.replace('\\"', '"'), line
    kubelet.admit("uid-1", "c", ids(0, 3))
    kubelet.plugin.pre_start(ids(0, 3))
    (number,) = [p.name for p in (agent.state / "claims").iterdir() if p.name.isdigit()]
    assert "cores=25" in limits(agent, number)
    page = urllib.request.urlopen(f"http://127.0.0.1:{port(agent)}/metrics", timeout=5).read().decode()
    assert 'hami_agent_config_reloads_total{result="refused"} 1\n' in page and "hami_agent_config_refused 1\n" in page
    config.write_text("cores-per-device: 2\n")  # and the next good one counts
    assert len(kubelet.devices()) == 4


def test_sighup_alone_does_nothing(node, kubelet):
    node.process.send_signal(signal.SIGHUP)
    wait_until("asked", 5, lambda: "the configuration is what it was" in node.log())
    assert kubelet.plugin.allocate(ids(0, 0))
    assert kubelet.registered.empty()


def test_another_resource_is_served_by_the_same_process(kubelet, agent, short_tmp):
    config = short_tmp / "agent.yaml"
    config.write_text("")
    serve(kubelet, agent, f"--config={config}")
    number = number_of(kubelet.admit("uid-1", "c", ids(0, 0)))
    kubelet.plugin.pre_start(ids(0, 0))
    process = agent.process.pid
    before = limits(agent, number)
    kubelet.resource = "example.com/slice"
    config.write_text("resource-name: example.com/slice\n")
    kubelet.wait_registered()
    assert len(kubelet.devices()) == 8
    assert agent.process.pid == process and agent.process.poll() is None
    assert "made anew what=resource-name" in agent.log()
    assert limits(agent, number) == before  # what runs keeps what it has
    status, seconds = agent.stop()
    assert status == 0 and seconds < 1


def test_sigterm_while_it_is_made_anew(kubelet, agent, short_tmp):
    config = short_tmp / "agent.yaml"
    for wait in (0.19, 0.2, 0.205, 0.21, 0.215, 0.22, 0.225, 0.23, 0.24, 0.25, 0.3):
        config.write_text("")
        serve(kubelet, agent, f"--config={config}")
        config.write_text("cdi-annotations: true\n")
        time.sleep(wait)
        status, seconds = agent.stop()
        assert status == 0 and seconds < 1.5, agent.log()
        while not kubelet.registered.empty():
            kubelet.registered.get()


# ---- mode hami

@pytest.fixture
def cluster(short_tmp):
    api = ApiServer()
    api.kubeconfig = write_kubeconfig(short_tmp / "kubeconfig", f"http://127.0.0.1:{api.port}")
    api.put("nodes", None, NODE)
    yield api
    api.down()


@pytest.fixture
def hami(cluster, kubelet, agent, short_tmp):
    """Mode hami on HAMi's two files; what is registered on the Node is what register() returns."""
    kubelet.resource = "nvidia.com/gpu"
    agent.device = ConfigMap(short_tmp / "d", "device-config.yaml")
    agent.device.set("nvidia:\n  deviceSplitCount: 2\n")
    agent.node_config = ConfigMap(short_tmp / "n", "config.json")
    agent.node_config.set('{"nodeconfig": []}')

    def register():
        text = cluster.objects[("nodes", None, NODE)]["metadata"]["annotations"].get(REGISTER)
        return [(c["id"], c["count"], c["devmem"], c["mode"]) for c in json.loads(text)] if text else None

    def run():
        return serve(kubelet, agent, f"--config-file={agent.device.path}", f"--node-config={agent.node_config.path}",
                     "--binding=late", f"--kubeconfig={cluster.kubeconfig}", "--metrics-bind-address=127.0.0.1:0",
                     env={"NODE_NAME": NODE, "HOOK_PATH": str(short_tmp)}.items())
    agent.register, agent.run = register, run
    return agent


def test_counts_scaling_and_filter_follow_the_files(hami, kubelet):
    assert len(hami.run()) == 4
    wait_until("registered", 5, lambda: hami.register() == [(u, 2, 16384, "hami-core") for u in UUIDS[:2]])
    hami.device.set("nvidia:\n  deviceSplitCount: 3\n  deviceMemoryScaling: 0.5\n")
    assert len(kubelet.devices()) == 6
    wait_until("published", 5, lambda: hami.register() == [(u, 3, 8192, "hami-core") for u in UUIDS[:2]])
    hami.node_config.set(json.dumps({"nodeconfig": [{"name": NODE, "devicesplitcount": 5, "operatingmode": "mps",
                                                     "filterdevices": {"uuid": [UUIDS[0]]}}]}))
    assert [d.ID for d in kubelet.devices()] == [f"{UUIDS[1]}-{i}" for i in range(5)]
    wait_until("published", 5, lambda: hami.register() == [(UUIDS[1], 5, 8192, "mps")])
    hami.node_config.set('{"nodeconfig": []}')
    assert len(kubelet.devices()) == 6
    wait_until("published", 5, lambda: hami.register() == [(u, 3, 8192, "hami-core") for u in UUIDS[:2]])
    assert kubelet.registered.empty()


def test_a_bad_config_json_keeps_what_it_said_before(hami, kubelet, cluster):
    hami.node_config.set(json.dumps({"nodeconfig": [{"name": NODE, "operatingmode": "mps", "devicesplitcount": 3}]}))
    hami.run()
    good = [(u, 3, 16384, "mps") for u in UUIDS[:2]]
    wait_until("registered", 5, lambda: hami.register() == good)
    hami.node_config.set('{"nodeconfig": [{"name": "%s", "libcudaloglevel": 1}]}' % NODE)
    said = "config.json: line 1: nodeconfig[0].libcudaloglevel: 1 is not a text"
    wait_until("refused", 5, lambda: said in hami.log() and "is refused" in hami.log())
    wait_until("an event", 5, lambda: any(o["reason"] == "ConfigurationRefused" for o in cluster.all("events")))
    time.sleep(0.5)
    assert hami.register() == good


@pytest.mark.parametrize("text", [None, "{", '{"nodeconfig": [{"name": "node-1", "libcudaloglevel": 1}]}'])
def test_started_without_a_config_json_that_can_be_used(hami, cluster, text):
    """Where HAMi's plugin runs in mode "" (golden: no-config-json, bad-config-json)."""
    if text is None:
        (hami.node_config.folder / "..data").unlink()
    else:
        hami.node_config.set(text)
    assert len(hami.run()) == 4
    wait_until("registered", 5, lambda: hami.register() == [(u, 2, 16384, "hami-core") for u in UUIDS[:2]])
    assert "nothing of config.json is used" in hami.log()
    hami.node_config.set(json.dumps({"nodeconfig": [{"name": NODE, "operatingmode": "mps"}]}))
    wait_until("published", 5, lambda: hami.register() == [(u, 2, 16384, "mps") for u in UUIDS[:2]])


def test_another_resource_name_is_registered_in_place(hami, kubelet):
    hami.run()
    assert (kubelet.folder / "nvidia-gpu.sock").exists()
    kubelet.resource = "example.com/accelerator"
    hami.device.set("nvidia:\n  deviceSplitCount: 2\n  resourceCountName: example.com/accelerator\n")
    kubelet.wait_registered()
    assert len(kubelet.devices()) == 4
    assert (kubelet.folder / "nvidia-accelerator.sock").exists()
    assert not (kubelet.folder / "nvidia-gpu.sock").exists()
