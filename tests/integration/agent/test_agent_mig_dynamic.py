"""Operating mode mig: instances that the scheduler reserves, made and ended by the agent."""
import base64
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from node.base import BUILD, MIB, Container, Pod, wait_until
from node.hami import ALLOCATED, PHASE, REGISTER, HamiNode
from node.late import events
from node.mig import a100_node, instances

from api_server import status  # noqa: E402  (node.hami put its folder on the path)

pytestmark = pytest.mark.usefixtures("needs_root")
RECORDS = "hami.io/vgpu-mig-allocations"


class MigNode(HamiNode):
    def start_agent(self, *flags, **kw):
        config = self.folder / "config.json"
        config.write_text(json.dumps({"nodeconfig": [{"name": self.name, "operatingmode": "mig"}]}))
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        super().start_agent(f"--metrics-bind-address=127.0.0.1:{self.port}", f"--mig-minors={self.sim}/proc/driver/nvidia-caps/mig-minors", f"--device-root={self.sim}",
                            f"--node-config={config}", *flags, **kw)

    def hami_folder(self):
        """What the agent has at /tmp/hami, where HAMi's monitor looks: all agents of this machine would share it."""
        folder = self.folder / "hami"
        folder.mkdir(exist_ok=True)
        return folder

    def command(self, argv):
        if not argv[0].endswith("hami-device-plugin"):
            return argv
        own = f'mkdir -p /tmp/hami && mount --bind {self.hami_folder()} /tmp/hami && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", own, "sh", *argv]

    def devices(self, card=0):
        return {(m["profile"], m["start"]): m for m in self.driver_status()["cards"][card]["mig_devices"]}

    def records(self, name):
        return json.loads(self.annotations(name)[RECORDS])

    def is_allocated(self, name):
        checkpoint = self.plugin_dir() / "kubelet_internal_checkpoint"
        return checkpoint.exists() and self.api_pod(name)["metadata"]["uid"] in checkpoint.read_text()

    def place_mig(self, name, *records, command=("vgpu-probe", "info"), run=True, entries=None, restart="Never",
                  **annotations):
        """One container with these (card, profile, start, size)."""
        uuids = self.uuids()
        pod = Pod(name, [Container(list(command), len(records))], restart)
        told = [{"containerIndex": 0, "deviceIndex": i, "gpuUUID": uuids[card], "profile": profile,
                 "placement": {"start": start, "size": size}} for i, (card, profile, start, size) in enumerate(records)]
        entries = entries or [[(uuids[card], 4864, 15) for card, *_ in records]]
        manifest = self.bind(pod, entries, **{RECORDS: json.dumps(told), **annotations})
        if run:
            self.run(manifest)
        return manifest

    def wait_prepared(self, count=7):
        wait_until("cards prepared", 20, lambda: self.allocatable() == count * len(self.uuids()))
        wait_until("published", 10, lambda: REGISTER in self.node_annotations())

    def done(self, name):
        return self.wait_phase(name, "Succeeded", "Failed", seconds=30)


@pytest.fixture
def make_node(short_tmp):
    made = []

    def make(cards, start=True):
        node = MigNode(short_tmp / "n", card_file=str(a100_node(short_tmp / "node.yaml", cards)))
        made.append(node)
        node.driver_up()
        node.up()
        if start:
            node.start_agent()
            node.wait_prepared()
        return node

    yield make
    for node in made:
        node.down()


def metrics(node):
    with urllib.request.urlopen(f"http://127.0.0.1:{node.port}/metrics") as page:
        return page.read().decode()


def test_idle_cards_are_prepared_and_published(make_node):
    node = make_node(["", instances(("1g.5gb", 0), ("3g.20gb", 4))])
    cards = node.driver_status()["cards"]
    assert [(c["mig"], c["mig_devices"]) for c in cards] == [(True, []), (True, [])]
    told = json.loads(node.node_annotations()[REGISTER])
    assert [(d["mode"], d["count"], d["devcore"]) for d in told] == [("mig", 7, 100)] * 2
    profiles = {p["name"]: p for p in told[0]["migProfiles"]}
    assert list(profiles) == ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1g.10gb"]
    assert profiles["2g.10gb"] == {"name": "2g.10gb", "memoryMB": 9984, "core": 29, "sliceCount": 2,
                                   "placements": [{"start": s, "size": 2} for s in (0, 2, 4)]}
    # What the kubelet may give out is what the scheduler counts with.
    assert node.allocatable() == sum(d["count"] for d in told)


def not_prepared(node, why):
    """The node's events of it."""
    return [m for m in events(node, node.name) if f"GPU {node.uuids()[0]} stays as it is" in m and why in m]


def prepared_after_a_start(node):
    """The next try of the same run would be a minute later."""
    node.stop_agent()
    node.start_agent()
    wait_until("prepared", 20, lambda: node.driver_status()["cards"][0]["mig"])


def test_a_card_with_a_process_is_not_prepared_before_that_ends(make_node):
    node = make_node(["", ""], start=False)
    assert not node.driver_status()["cards"][0]["mig"], "a card without MIG"
    user = subprocess.Popen([BUILD / "tests/vgpu-probe", "alloc", "64", "--hold", "60"], stdout=subprocess.PIPE, text=True, env={
        **os.environ, "HAMI_SIM_DIR": str(node.sim), "LD_LIBRARY_PATH": str(BUILD / "sim"), "NVIDIA_VISIBLE_DEVICES": node.uuids()[0]})
    try:
        wait_until("in use", 10, lambda: node.driver_status()["cards"][0]["used_bytes"] > 0)
        node.start_agent()
        wait_until("told", 20, lambda: not_prepared(node, "1 processes are on it"))
        wait_until("the other is prepared", 20, lambda: node.driver_status()["cards"][1]["mig"])
        assert not node.driver_status()["cards"][0]["mig"]
        assert user.poll() is None
    finally:
        user.kill()
        user.wait()
    prepared_after_a_start(node)


def test_a_card_whose_processes_cannot_be_listed_is_not_prepared(make_node):
    calls = [f"nvmlDeviceGet{kind}RunningProcesses{version}" for kind in ("Compute", "Graphics") for version in ("", "_v2", "_v3")]
    node = make_node(["", ""], start=False)
    for call in calls:
        node.simctl("gpu", "0", "nvml-error", call, "999")
    node.start_agent()
    wait_until("told", 20, lambda: not_prepared(node, "whether the card is idle cannot be told"))
    wait_until("the other is prepared", 20, lambda: node.driver_status()["cards"][1]["mig"])
    assert not node.driver_status()["cards"][0]["mig"]
    for call in calls:
        node.simctl("gpu", "0", "nvml-error", call, "0")
    prepared_after_a_start(node)


def test_publishing_waits_while_the_cards_are_prepared(make_node):
    """The start's pause, its acknowledgement and its end, as HAMi's WatchAndRegister has them: nobody reads a card, us
    included, while MIG changes it. Which cards are free cannot be said before the pods are known: that holds it here."""
    def lists_pods(h):
        return h.request_seen.path == "/api/v1/pods"
    node = make_node([""], start=False)
    lock = node.hami_folder() / "hami-mig-apply.lock"
    node.api.fault(status(503), times=10 ** 6, when=lists_pods)
    node.start_agent()
    wait_until("the monitor is told", 20, lock.exists)
    wait_until("the Node is known", 20, lambda: node.api.seen(method="GET", path="/api/v1/nodes", watch=True))
    time.sleep(2)  # longer than a scan
    patches = node.api.seen(method="PATCH", path=f"/api/v1/nodes/{node.name}")
    assert lock.exists() and not patches and not node.driver_status()["cards"][0]["mig"]
    node.api.faults.clear()
    wait_until("the monitor goes on", 60, lambda: not lock.exists())
    assert node.driver_status()["cards"][0]["mig"], "the lock goes when the cards are as they shall be"
    node.wait_prepared()
    assert json.loads(node.node_annotations()[REGISTER])[0]["mode"] == "mig"


def test_an_instance_is_made_told_and_ended(make_node):
    node = make_node([""])
    node.place_mig("a", (0, "2g.10gb", 2, 2), command=["sleep", "60"])
    node.place_mig("b", (0, "1g.5gb", 6, 1), (0, "1g.5gb", 4, 1))
    assert node.done("b") == "Succeeded", node.output("b")
    assert str(4864 * MIB) in node.output("b")
    node.wait_running(["a"])
    made = node.devices()
    assert set(made) >= {("2g.10gb", 2)}
    wait_until("told", 10, lambda: "migUUID" in node.records("a")[0])
    record, device = node.records("a")[0], made["2g.10gb", 2]
    assert (record["migUUID"], record["gpuInstanceID"], record["computeInstanceID"]) == (
        device["uuid"], device["gpu_instance"], device["compute_instance"])
    wait_until("b told", 10, lambda: all("migUUID" in r for r in node.records("b")))
    env = dict(line.split("=", 1) for line in node.execute("a", ["env"]).split())
    assert env["NVIDIA_VISIBLE_DEVICES"] == device["uuid"]
    node.wait_finished("a")
    line = (f'hami_mig_device_info{{namespace="default",pod="a",container="c",vdevice_index="0",device_uuid="{node.uuids()[0]}",'
            f'mig_uuid="{device["uuid"]}",profile="2g.10gb",gpu_instance_id="{device["gpu_instance"]}",'
            'compute_instance_id="0",zone="vGPU"} 1\n')
    wait_until(line, 10, lambda: line in metrics(node))
    assert 'hami_agent_mig_changes_total{result="made"} 3\n' in metrics(node)
    # b is over: its instances go, a's stays.
    node.set_phase("b", "Succeeded")
    wait_until("b's ended", 20, lambda: set(node.devices()) == {("2g.10gb", 2)})
    # A pod that is being deleted runs on and keeps its device.
    node.api.edit("pods", "default", "a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    time.sleep(2.5)
    assert set(node.devices()) == {("2g.10gb", 2)}
    node.delete("a")
    wait_until("a's ended", 20, lambda: node.devices() == {})


def test_a_process_on_an_instance_keeps_it(make_node):
    node = make_node([""])
    manifest = node.place_mig("a", (0, "1g.5gb", 0, 1), run=False)
    wait_until("made", 10, lambda: set(node.devices()) == {("1g.5gb", 0)})
    uuid = node.devices()["1g.5gb", 0]["uuid"]
    user = subprocess.Popen([BUILD / "tests/vgpu-probe", "alloc", "64", "--hold", "60"], stdout=subprocess.DEVNULL, env={
        **os.environ, "HAMI_SIM_DIR": str(node.sim), "LD_LIBRARY_PATH": str(BUILD / "sim"), "NVIDIA_VISIBLE_DEVICES": uuid})
    try:
        wait_until("in use", 10, lambda: node.devices()["1g.5gb", 0]["used_bytes"] > 0)
        node.api.delete("pods", "default", manifest["metadata"]["name"])
        # Others on the card are served meanwhile.
        node.place_mig("b", (0, "1g.5gb", 1, 1))
        assert node.done("b") == "Succeeded", node.output("b")
        assert ("1g.5gb", 0) in node.devices()
    finally:
        user.kill()
        user.wait()
    wait_until("ended", 20, lambda: ("1g.5gb", 0) not in node.devices())


def test_a_container_that_runs_keeps_it_when_its_pod_is_gone(make_node):
    """Deleted by force, the API knows the pod no more while its container runs; it need not be computing just now."""
    node = make_node([""])
    node.place_mig("a", (0, "1g.5gb", 2, 1), command=["sleep", "60"])
    node.wait_running(["a"])
    node.api.delete("pods", "default", "a")
    time.sleep(4)
    assert set(node.devices()) == {("1g.5gb", 2)}
    node.client("delete", "a", check=False)
    wait_until("ended", 30, lambda: node.devices() == {})


def test_a_place_that_is_given_away_again_waits_for_its_end(make_node):
    """The scheduler gives a place away as soon as its pod is over; its container may still run."""
    node = make_node([""])
    node.place_mig("a", (0, "1g.5gb", 0, 1), command=["sleep", "60"])
    node.wait_running(["a"])
    node.api.delete("pods", "default", "a")
    for name, start in (("b", 0), ("c", 3), ("d", 3)):  # and one that is given twice
        node.place_mig(name, (0, "1g.5gb", start, 1), run=False)
        time.sleep(1.5)
    told = {name: "migUUID" in node.records(name)[0] for name in "bcd"}
    assert told == {"b": False, "c": True, "d": False}
    node.client("delete", "a", check=False)
    wait_until("b's made", 20, lambda: "migUUID" in node.records("b")[0])
    time.sleep(3)
    assert set(node.devices()) == {("1g.5gb", 0), ("1g.5gb", 3)} and "migUUID" not in node.records("d")[0]
    assert 'hami_agent_mig_changes_total{result="ended"} 1\n' in metrics(node)
    node.api.delete("pods", "default", "c")
    wait_until("d's made", 20, lambda: "migUUID" in node.records("d")[0])


def test_a_place_whose_pod_has_ended_is_given_on(make_node):
    """With classic binding the next pod's Allocate comes at once, and an error of it is for good."""
    node = make_node([""], start=False)
    node.start_agent(binding="classic")
    node.wait_prepared()
    for name in ("a", "b", "c"):
        node.place_mig(name, (0, "7g.40gb", 0, 8), command=["env"])
        assert node.done(name) == "Succeeded", node.output(name)
        node.set_phase(name, "Succeeded")
    assert set(node.devices()) == {("7g.40gb", 0)}


def test_a_new_agent_leaves_a_running_container_its_device(make_node):
    """As above, and nobody looked while the pod went: its card is not cleared at the start either."""
    node = make_node([""])
    node.place_mig("a", (0, "1g.5gb", 2, 1), command=["sleep", "60"])
    node.wait_running(["a"])
    node.stop_agent(signal.SIGKILL)
    node.api.delete("pods", "default", "a")
    node.start_agent()
    wait_until("published", 20, lambda: node.allocatable() == 7)
    time.sleep(4)
    assert set(node.devices()) == {("1g.5gb", 2)}
    node.client("delete", "a", check=False)
    wait_until("ended", 30, lambda: node.devices() == {})


def test_a_reset_takes_neither_mode_nor_instances_for_long(make_node):
    """Cards that do not keep their MIG mode come out of a reset or reboot without."""
    node = make_node(["", ""])
    manifest = node.place_mig("a", (0, "2g.10gb", 2, 2), run=False)
    wait_until("made", 10, lambda: set(node.devices()) == {("2g.10gb", 2)})
    uuid = node.devices()["2g.10gb", 2]["uuid"]
    # With the agent there: it is made again before the container starts.
    time.sleep(2)  # for the cards to have been looked at with it
    node.simctl("gpu", "0", "mig", "destroy", uuid)
    wait_until("made again", 20, lambda: set(node.devices()) == {("2g.10gb", 2)})
    node.stop_agent(signal.SIGKILL)
    node.simctl("gpu", "0", "mig", "destroy", node.devices()["2g.10gb", 2]["uuid"])
    for card in ("0", "1"):
        node.simctl("gpu", card, "mig", "off")
    node.start_agent()
    node.run(manifest)
    assert node.done("a") == "Succeeded", node.output("a")
    assert set(node.devices()) == {("2g.10gb", 2)} and node.driver_status()["cards"][1]["mig"]
    node.simctl("gpu", "1", "mig", "off")
    wait_until("on again", 30, lambda: node.driver_status()["cards"][1]["mig"])


@pytest.mark.parametrize("record, error", [
    ((0, "2g.10gb", 1, 2), "scheduler selected invalid placement {Start:1 Size:2} for profile 2g.10gb"),
    ((0, "9g.90gb", 0, 2), 'unsupported MIG profile "9g.90gb"')])
def test_what_can_never_be_made_is_refused(make_node, record, error):
    node = make_node([""])
    node.place_mig("bad", record)
    wait_until("refused", 20, lambda: node.annotations("bad").get(PHASE) == "failed")
    assert error in node.agent_log.read_text().replace("\\", "")
    node.place_mig("good", (0, "1g.5gb", 0, 1))
    assert node.done("good") == "Succeeded"


def test_records_that_do_not_fit_are_refused(make_node):
    node = make_node(["", ""])
    uuids = node.uuids()
    node.place_mig("other", (0, "1g.5gb", 0, 1), entries=[[(uuids[1], 4864, 15)]])
    node.place_mig("none", (0, "1g.5gb", 1, 1), **{RECORDS: None})
    node.place_mig("junk", (0, "1g.5gb", 2, 1), **{RECORDS: '"zzz"'})
    for name, error in (("other", f"MIG reservation GPU {uuids[0]} does not match allocated GPU {uuids[1]}"),
                        ("none", "container c has 0 MIG reservations, requested 1 devices"),
                        ("junk", "decode scheduler MIG allocations")):
        wait_until(f"{name} refused", 20, lambda n=name: node.annotations(n).get(PHASE) == "failed")
        assert error in node.agent_log.read_text(), name


def test_another_writer_loses_nothing(make_node):
    node = make_node([""])
    pod = "/api/v1/namespaces/default/pods/a"
    node.api.fault(status(409, "Conflict"), times=2, when=lambda h: h.command == "PATCH" and h.path == pod
                   and RECORDS in h.request_seen.body.decode())
    node.api.fault(status(500), times=2, when=lambda h: h.command == "GET" and h.path == pod)
    node.place_mig("a", (0, "1g.5gb", 5, 1), command=["sleep", "60"], **{"example.com/mine": "1"})
    node.wait_running(["a"])
    wait_until("told", 20, lambda: "migUUID" in node.records("a")[0])
    assert node.annotations("a")["example.com/mine"] == "1"
    node.wait_finished("a")


KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"


def test_nothing_is_made_for_what_is_not_signed(make_node):
    node = make_node([""], start=False)
    keys = node.folder / "keys"
    keys.mkdir()
    (node.folder / "key").write_text(KEY)
    subprocess.run(["openssl", "pkey", "-in", node.folder / "key", "-pubout", "-out", keys / "2026-11"], check=True)
    node.start_agent(f"--signature-keys={keys}")
    node.wait_prepared()
    node.place_mig("unsigned", (0, "1g.5gb", 0, 1), run=False)
    manifest = node.place_mig("signed", (0, "1g.5gb", 1, 1), run=False)
    marks, uid = manifest["metadata"]["annotations"], manifest["metadata"]["uid"]
    records = json.dumps(json.loads(marks[RECORDS]), separators=(",", ":"))
    (node.folder / "text").write_text(f"hami-vgpu-v1\n{uid}\n{node.name}\n{marks['hami.io/vgpu-time']}\n{marks[ALLOCATED]}\n{records}\n")
    made = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", node.folder / "key", "-in", node.folder / "text"],
                          check=True, capture_output=True).stdout
    marks["hami.io/vgpu-signature"] = "v1.2026-11." + base64.urlsafe_b64encode(made).decode().rstrip("=")
    node.run(node.api.put_tree("pods", "default", manifest))
    assert node.done("signed") == "Succeeded", node.agent_log.read_text()[-3000:]
    # The ids that the agent wrote are no part of what is signed.
    wait_until("told", 10, lambda: "migUUID" in node.records("signed")[0])
    assert ("1g.5gb", 0) not in node.devices()
    # Over, it gives its place back, though its key has gone and its author has put another text under the signature.
    (keys / "2026-11").unlink()
    node.api.edit("pods", "default", "signed", metadata={"annotations": {RECORDS: marks[RECORDS].replace("1g.5gb", "2g.10gb")}})
    assert ("1g.5gb", 1) in node.devices()
    node.set_phase("signed", "Succeeded")
    wait_until("its instance ends", 20, lambda: not node.devices())


def test_classic_binding_answers_with_the_device(make_node):
    node = make_node([""], start=False)
    node.start_agent(binding="classic")
    node.wait_prepared()
    for name, start in (("a", 0), ("b", 3)):
        node.place_mig(name, (0, "1g.5gb", start, 1), command=["sleep", "60"])
        node.wait_running([name])
        env = dict(line.split("=", 1) for line in node.execute(name, ["env"]).split())
        assert env["NVIDIA_VISIBLE_DEVICES"] == node.devices()["1g.5gb", start]["uuid"]
        assert not any(key.startswith("CUDA_") for key in env)
        assert "libvgpu" not in node.execute(name, ["cat", "/proc/mounts"])
        node.wait_finished(name)
    node.set_phase("a", "Succeeded")
    node.delete("a")
    wait_until("a's ended", 20, lambda: set(node.devices()) == {("1g.5gb", 3)})


def test_classic_binding_with_cdi_names_the_device(make_node):
    node = make_node([""], start=False)
    node.start_agent("--device-list-strategy=cdi-cri", binding="classic")
    node.wait_prepared()
    for name, start in (("a", 0), ("b", 3)):
        node.place_mig(name, (0, "1g.5gb", start, 1), command=["sleep", "60"])
        node.wait_running([name])
        minors = dict(line.rsplit(" ", 1) for line in
                      (node.sim / "proc/driver/nvidia-caps/mig-minors").read_text().splitlines())
        gi = node.devices()["1g.5gb", start]["gpu_instance"]
        assert sorted(node.execute(name, ["ls", "/dev/nvidia-caps"]).split()) == sorted(
            f"nvidia-cap{minors[part]}" for part in (f"gpu0/gi{gi}/access", f"gpu0/gi{gi}/ci0/access"))
        assert "NVIDIA_VISIBLE_DEVICES=void" in node.execute(name, ["env"]).split()


def test_what_was_not_decided_for_this_node_makes_nothing(make_node):
    node = make_node([""])
    node.place_mig("forged", (0, "1g.5gb", 5, 1), run=False, **{"hami.io/vgpu-node": "other"})
    node.place_mig("good", (0, "1g.5gb", 4, 1))
    assert node.done("good") == "Succeeded"
    assert ("1g.5gb", 5) not in node.devices()


def test_containers_start_again_and_end_while_the_api_server_is_away(make_node):
    node = make_node([""])
    node.place_mig("a", (0, "1g.5gb", 0, 1), command=["sleep", "60"], restart="Always")
    node.place_mig("b", (0, "1g.5gb", 1, 1), command=["sleep", "60"])
    node.wait_running(["a", "b"])
    made = node.devices()
    node.api.down()
    # A start of what was started before, and an end.
    restarts = node.restarts("a")
    node.kill_container("a")
    wait_until("started again", 20, lambda: node.restarts("a") > restarts)
    node.wait_running(["a"])
    env = dict(line.split("=", 1) for line in node.execute("a", ["env"]).split())
    assert env["NVIDIA_VISIBLE_DEVICES"] == made["1g.5gb", 0]["uuid"]
    node.delete("b")
    time.sleep(3)
    assert node.devices() == made, "an end that only the API server tells of is not guessed"
    node.api.up()
    wait_until("b's has ended", 20, lambda: set(node.devices()) == {("1g.5gb", 0)})
    assert node.devices()["1g.5gb", 0] == made["1g.5gb", 0]


def test_many_pods_on_two_cards_at_once(make_node):
    node = make_node(["", ""])
    wanted = [(card, start) for card in (0, 1) for start in range(7)]
    for card, start in wanted:
        node.place_mig(f"p{card}{start}", (card, "1g.5gb", start, 1), command=["sleep", "60"])
    node.wait_running([f"p{c}{s}" for c, s in wanted], seconds=60)
    for card, start in wanted:
        env = dict(line.split("=", 1) for line in node.execute(f"p{card}{start}", ["env"]).split())
        assert env["NVIDIA_VISIBLE_DEVICES"] == node.devices(card)["1g.5gb", start]["uuid"]


def test_a_card_of_a_record_that_cannot_be_read_is_left_alone(make_node):
    node = make_node([instances(("1g.5gb", 3)), instances(("1g.5gb", 3))], start=False)
    uuid = node.uuids()[0]
    pod = Pod("junk", [Container(["sleep", "60"], 1)])
    node.bind(pod, [[(uuid, 4864, 15)]], **{RECORDS: "{"})
    node.start_agent()
    wait_until("the other is cleared", 20, lambda: node.devices(1) == {})
    time.sleep(1)
    assert set(node.devices(0)) == {("1g.5gb", 3)}
    node.api.delete("pods", "default", "junk")
    wait_until("nobody holds it", 20, lambda: node.devices(0) == {})


def test_a_restarted_agent_knows_what_is_whose(make_node):
    node = make_node([""])
    node.place_mig("a", (0, "3g.20gb", 4, 4), command=["sleep", "60"])
    node.place_mig("gone", (0, "1g.5gb", 0, 1), command=["sleep", "60"])
    node.wait_running(["a", "gone"])
    wait_until("told", 10, lambda: "migUUID" in node.records("a")[0])
    before = node.devices()
    node.stop_agent(signal.SIGKILL)
    node.delete("gone")
    # Bound while nobody looked, with one that cannot be read beside it; the others are adopted all the same.
    node.place_mig("bad", (0, "9g.90gb", 0, 2), run=False)
    node.place_mig("late", (0, "1g.5gb", 3, 1))
    node.start_agent()
    assert node.done("late") == "Succeeded", node.output("late")
    wait_until("what nobody holds has gone", 40, lambda: ("1g.5gb", 0) not in node.devices())
    assert node.devices()["3g.20gb", 4] == before["3g.20gb", 4]
    assert node.execute("a", ["true"]) is not None
    node.delete("a")
    wait_until("a's ended", 20, lambda: ("3g.20gb", 4) not in node.devices())


def test_an_agent_killed_at_any_moment_makes_it_in_the_end(make_node):
    node = make_node([""])
    for round_number in range(6):
        name, start = f"p{round_number}", round_number
        node.place_mig(name, (0, "1g.5gb", start, 1), command=["sleep", "60"])
        # A pod whose Allocate dies with the agent is the kubelet's to reject.
        wait_until("Allocate", 30, lambda n=name: node.is_allocated(n))
        time.sleep(0.01 * 2 ** round_number)
        node.stop_agent(signal.SIGKILL)
        node.start_agent()
    node.wait_running([f"p{i}" for i in range(6)], seconds=60)
    assert set(node.devices()) == {("1g.5gb", i) for i in range(6)}
    wait_until("all told", 20, lambda: all("migUUID" in node.records(f"p{i}")[0] for i in range(6)))
    for i in range(6):
        env = dict(line.split("=", 1) for line in node.execute(f"p{i}", ["env"]).split())
        assert env["NVIDIA_VISIBLE_DEVICES"] == node.devices()["1g.5gb", i]["uuid"] == node.records(f"p{i}")[0]["migUUID"]
    node.delete_all()
    wait_until("all ended", 60, lambda: node.devices() == {})
