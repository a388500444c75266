"""Static MIG: instances that an administrator made, offered under one resource or under each profile's own."""
import json
import subprocess

import pytest

from node.base import Container, MIB, Pod, wait_until
from node.hami import GPU, REGISTER, HamiNode
from node.late import metric
from node.mig import a100_node, instances
from node.simulated import SimulatedNode

pytestmark = pytest.mark.usefixtures("needs_root")
SMALL, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"


def allocatable(node, resource):
    return node.status()["resources"].get(resource, {}).get("allocatable", 0)


@pytest.fixture
def make_node(short_tmp):
    made = []

    def make(kind, cards):
        node = kind(short_tmp / "n", card_file=str(a100_node(short_tmp / "node.yaml", cards)))
        made.append(node)
        node.driver_up()
        node.up()
        return node

    yield make
    for node in made:
        node.down()


def start(node, *flags):
    node.start_agent(f"--mig-minors={node.sim}/proc/driver/nvidia-caps/mig-minors", f"--device-root={node.sim}", *flags)


def run(node, name, resource, command, count=1):
    pod = {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "command": command, "resources": {"limits": {resource: count}}}]}}
    node.ask("run", wait="none", pod=pod)
    node.pods.add(name)


def test_mixed_has_a_resource_for_each_profile(make_node):
    node = make_node(SimulatedNode, ["", instances(("3g.20gb", 4), ("1g.5gb", 0), ("1g.5gb", 1))])
    start(node, "--mig-strategy=mixed", "--metrics-bind-address=127.0.0.1:0")
    wait_until("all registered", 10, lambda: (allocatable(node, SMALL), allocatable(node, LARGE),
                                              allocatable(node, "hami.com/vgpu")) == (2, 1, 4))
    migs = {m["uuid"]: m for m in node.driver_status()["cards"][1]["mig_devices"]}
    run(node, "small", SMALL, ["vgpu-probe", "info"])
    run(node, "large", LARGE, ["vgpu-probe", "info"])
    run(node, "both", SMALL, ["sleep", "60"])
    for name, mib in (("small", 4864), ("large", 20096)):
        assert node.wait_phase(name, "Succeeded", "Failed") == "Succeeded", node.output(name)
        assert str(mib * MIB) in node.output(name)
    node.wait_running(["both"])
    env = dict(line.split("=", 1) for line in node.execute("both", ["env"]).split())
    uuid = env["NVIDIA_VISIBLE_DEVICES"]
    assert migs[uuid]["profile"] == "1g.5gb"
    # Its card's node, and the two that the driver lists for the instance; not another card's, and no libvgpu.
    minors = dict(line.rsplit(" ", 1) for line in
                  (node.sim / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines())
    gi = migs[uuid]["gpu_instance"]
    caps = {f"nvidia-cap{minors[f'gpu1/gi{gi}/access']}", f"nvidia-cap{minors[f'gpu1/gi{gi}/ci0/access']}"}
    assert set(node.execute("both", ["ls", "/dev/nvidia-caps"]).split()) == caps
    devices = node.execute("both", ["ls", "/dev"]).split()
    assert "nvidia1" in devices and "nvidia0" not in devices
    assert "libvgpu" not in node.execute("both", ["cat", "/proc/self/maps"])
    claims = [p.read_text() for p in (node.state / "claims").iterdir()]
    assert sum(f" mig={uuid} gi={gi} ci=0\n" in c for c in claims) == 1
    # Three devices on the second card, "both" has one; the other containers have ended, and may be cleaned up by now.
    card = node.driver_status()["cards"][1]["uuid"]
    slots = {state: metric(node, "hami_gpu_slots", device_uuid=card, state=state)
             for state in ("free", "allocated", "active", "ended")}
    assert sum(slots.values()) == 3 and slots["active"] >= 1, slots
    node.delete_all()
    wait_until("cleaned up", 20, node.no_leftovers)
    # A card that is lost takes all of its devices with it, and no other card's.
    node.simctl("gpu", "1", "lost")
    wait_until("none left", 10, lambda: (allocatable(node, SMALL), allocatable(node, LARGE),
                                         allocatable(node, "hami.com/vgpu")) == (0, 0, 4))


def test_mixed_follows_the_instances(make_node):
    node = make_node(SimulatedNode, [instances(("1g.5gb", 0))])
    start(node, "--mig-strategy=mixed")
    wait_until("registered", 10, lambda: allocatable(node, SMALL) == 1)
    node.simctl("gpu", "0", "mig", "create", "3g.20gb", "4")
    wait_until("a new profile", 20, lambda: allocatable(node, LARGE) == 1)
    uuid = next(m["uuid"] for m in node.driver_status()["cards"][0]["mig_devices"] if m["profile"] == "1g.5gb")
    node.simctl("gpu", "0", "mig", "destroy", uuid)
    wait_until("none any more", 20, lambda: allocatable(node, SMALL) == 0)


def test_none_leaves_cards_in_mig_mode_out(make_node):
    node = make_node(HamiNode, ["", instances(("1g.5gb", 0))])
    start(node)
    wait_until("registered", 10, lambda: allocatable(node, GPU) == 10)
    wait_until("published", 10, lambda: REGISTER in node.node_annotations())
    assert [d["id"] for d in json.loads(node.node_annotations()[REGISTER])] == node.uuids()[:1]


def test_single_gives_mig_devices_under_the_gpu_s_name(make_node):
    node = make_node(HamiNode, [instances(("2g.10gb", 0), ("2g.10gb", 2)), instances(("2g.10gb", 4))])
    start(node, "--mig-strategy=single")
    wait_until("registered", 10, lambda: allocatable(node, GPU) == 3)
    uuids = [m["uuid"] for c in node.driver_status()["cards"] for m in c["mig_devices"]]
    wait_until("published", 10, lambda: REGISTER in node.node_annotations())
    told = json.loads(node.node_annotations()[REGISTER])
    assert [(d["id"], d["count"], d["devmem"]) for d in told] == [(u, 1, 9984) for u in uuids]
    assert told[0]["type"] == "NVIDIA A100-SXM4-40GB MIG 2g.10gb"
    # A pod that no scheduler of HAMi's has seen, in a namespace of its own choice.
    pod = Pod("plain", [Container(["vgpu-probe", "info"], 2)])
    node.create(pod)
    assert node.wait_phase("plain", "Succeeded", "Failed") == "Succeeded", node.output("plain")
    assert node.output("plain").count(str(9984 * MIB)) >= 1


@pytest.mark.parametrize("cards, error", [
    ([instances(("2g.10gb", 0)), ""], "is not in MIG mode, others are"),
    ([instances(("2g.10gb", 0), ("1g.5gb", 4))], "of profile 2g.10gb and of 1g.5gb; all must be of one"),
    (["mig: true"], "is in MIG mode and has no instance")])
def test_single_refuses_what_is_not_uniform(make_node, cards, error):
    node = make_node(HamiNode, cards)
    start(node, "--mig-strategy=single")
    assert node.agent.wait(10) != 0
    assert error in node.agent_log.read_text()
    node.agent = None
