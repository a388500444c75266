"""hami-device-plugin: the health of cards, on the simulated driver: who turns sick, who does not, and who is well again."""
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import time
import urllib.request

import pytest
import yaml

from kubelet_peer import REPO, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube"))
from api_server import ApiServer  # noqa: E402
from kube_peer import write_kubeconfig  # noqa: E402

REGISTER, HEALTH = "hami.io/node-nvidia-register", "hami.io/node-nvidia-health"
SOON = 2.0  # what is promised; a machine that does much else may be late once
NODES = REPO / "sim/nodes"


class Health:
    """A simulated driver, an agent on it, and what the kubelet was told last."""

    def __init__(self, build, folder, kubelet, agent):
        self.build, self.folder, self.kubelet, self.agent = build, folder, kubelet, agent
        self.sim = folder / "sim"
        self.uuids, self.told = [], {}

    def ctl(self, *words):
        subprocess.run([str(self.build / "bin/hami-simctl"), "--dir", str(self.sim), *map(str, words)], check=True,
                       timeout=60, capture_output=True)

    def gpu(self, *words):
        """When it was done."""
        self.ctl("gpu", *words)
        return time.monotonic()

    def driver(self, path=NODES / "t4x2.yaml"):
        self.ctl("up", path, f"--lib-dir={self.build}/sim")
        status = subprocess.run([str(self.build / "bin/hami-simctl"), "--dir", str(self.sim), "status", "-j"], check=True,
                                timeout=60, capture_output=True, text=True).stdout
        self.uuids = [c["uuid"] for c in json.loads(status)["cards"]]

    def start(self, *flags, env=()):
        self.kubelet.start()
        self.restart(*flags, env=env)
        assert self.sick() == set()

    def restart(self, *flags, env=()):
        self.agent.start(f"--nvml-library={self.build}/sim/libnvidia-ml.so.1", *flags,
                         env={"HAMI_SIM_DIR": str(self.sim), "ASAN_OPTIONS": "detect_leaks=0", **dict(env)}.items())
        self.kubelet.wait_registered()
        self.take(self.kubelet.devices())
        time.sleep(0.7)  # events are told from a card's first look on

    def take(self, devices):
        self.told = {}
        for d in devices:
            self.told.setdefault(re.split("::|-[0-9]+$", d.ID)[0], set()).add(d.health)
        return True

    def sick(self):
        """The cards that the kubelet was told are; whose devices are all one or all the other."""
        assert all(len(h) == 1 for h in self.told.values()), self.told
        return {self.uuids.index(u) for u, h in self.told.items() if h == {"Unhealthy"}}

    def until_sick(self, *cards, seconds=10):
        """When the kubelet was told so."""
        end = time.monotonic() + seconds
        while self.sick() != set(cards):
            try:
                self.take(self.kubelet.devices(max(0.01, end - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"sick are {self.sick()}, not {cards}:\n{self.agent.log()[-3000:]}") from None
        return time.monotonic()

    def stay_sick(self, *cards, seconds):
        """Whatever is told, these are and no others."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.take(self.kubelet.devices(max(0.01, end - time.monotonic())))
            except queue.Empty:
                pass
            assert self.sick() == set(cards)

    def nothing_is_told(self, seconds):
        with pytest.raises(queue.Empty):
            self.kubelet.devices(seconds)


@pytest.fixture
def health(build, short_tmp, kubelet, agent):
    it = Health(build, short_tmp, kubelet, agent)
    yield it
    agent.end()
    if it.sim.exists():
        it.ctl("down")


def test_a_card_error_takes_its_card_alone_and_not_for_ever(health):
    health.driver(NODES / "l4x4.yaml")
    health.start("--health-recovery-seconds=2")
    took = []
    for _ in range(3):
        begun = health.gpu(1, "xid", 74)
        took.append(health.until_sick(1) - begun)
        health.until_sick()
        assert time.monotonic() - begun > 2
    print("Xid to the kubelet:", [f"{1000 * t:.0f} ms" for t in took])
    assert min(took) < SOON
    assert health.agent.log().count("a card is sick") == health.agent.log().count("well again") == 3
    # A number that NVIDIA's catalogue does not have.
    health.gpu(3, "xid", 998)
    health.until_sick(3)


def test_a_programs_error_takes_no_card(health):
    health.driver()
    health.start()
    for xid in (13, 31, 43, 45, 68, 94, 109, 63):
        health.gpu(0, "xid", xid)
    wait_until("the last of them is seen", 10, lambda: "xid=63" in health.agent.log())
    health.nothing_is_told(1)


def test_a_card_that_needs_a_reset_is_well_only_after_one(health):
    health.driver()
    health.start("--health-recovery-seconds=1")
    health.gpu(0, "xid", 79)
    health.until_sick(0)
    health.nothing_is_told(3)
    health.gpu(0, "lost")
    time.sleep(2)
    health.gpu(0, "recover")
    health.until_sick()
    # The driver was loaded anew: as good as a reset. Meanwhile no card is offered.
    health.gpu(1, "xid", 95)
    health.until_sick(1)
    health.ctl("driver-reload", "--down-ms=1500")
    health.until_sick(0, 1)
    health.until_sick(1)
    health.until_sick()
    assert health.agent.process.poll() is None


def test_a_card_that_is_lost(health):
    health.driver()
    health.start("--health-recovery-seconds=1")
    begun = health.gpu(1, "lost")
    took = health.until_sick(1) - begun
    print(f"lost to the kubelet: {1000 * took:.0f} ms")
    time.sleep(6)  # a scan finds it missing, too
    health.gpu(1, "recover")
    health.until_sick()


def test_a_card_that_errs(health):
    health.driver()
    health.start("--health-recovery-seconds=1")
    health.gpu(1, "nvml-error", "nvmlDeviceGetMemoryInfo", 999)
    health.until_sick(1)
    health.stay_sick(1, seconds=6)  # a scan leaves it out, too
    health.gpu(1, "nvml-error", "nvmlDeviceGetMemoryInfo", 0)
    health.until_sick()
    # Waiting for events fails: 11.27 of the reference. The card answers, so it is well; nothing spins.
    health.gpu(0, "nvml-error", "nvmlEventSetWait_v2", 999)
    wait_until("said", 10, lambda: "events of a card cannot be had" in health.agent.log())
    health.nothing_is_told(2)
    assert health.agent.log().count("cannot be had") == 2  # each card once: the call is about no card
    health.gpu(0, "nvml-error", "nvmlEventSetWait_v2", 0)
    time.sleep(4.5)
    health.gpu(1, "xid", 74)
    health.until_sick(1, seconds=20)


@pytest.mark.parametrize("events", [1, 0])
def test_ecc_errors(health, events):
    health.driver()
    health.gpu(0, "ecc", 5)  # from before
    health.gpu(0, "events", events)
    health.start("--health-recovery-seconds=1")
    time.sleep(1.5)
    health.gpu(0, "ecc", 1)
    health.until_sick(0)
    assert "uncorrectable ECC error" in health.agent.log()
    health.until_sick()


def test_what_the_driver_asks_for(health):
    health.driver(NODES / "sm188.yaml")  # a driver of branch 575
    health.start("--health-recovery-seconds=1")
    health.gpu(0, "ecc", 1)  # contained: the driver asks for nothing
    health.nothing_is_told(2)
    health.gpu(0, "action", 1)
    health.until_sick(0)
    assert "the driver asks for: GPU reset" in health.agent.log()
    health.nothing_is_told(3)
    health.gpu(0, "recover")
    health.until_sick()
    health.gpu(0, "xid", 79)
    health.until_sick(0)
    health.until_sick()  # it says that there is nothing to be done


@pytest.mark.parametrize("env, sick", [
    ({"DP_DISABLE_HEALTHCHECKS": "all"}, set()),
    ({"DP_DISABLE_HEALTHCHECKS": "74"}, set()),
    ({"DP_DISABLE_HEALTHCHECKS": "all", "DP_ENABLE_HEALTHCHECKS": "74"}, {0}),  # HAMi's plugin looks at none: 11.32
    ({"DP_ENABLE_HEALTHCHECKS": "31,junk"}, {0, 1}),
])
def test_what_is_looked_at_is_configured(health, env, sick):
    health.driver()
    health.start(env=env.items())
    health.gpu(1, "xid", 31)
    health.gpu(0, "xid", 74)
    if sick:
        health.until_sick(*sick)
    health.nothing_is_told(1.5)
    assert ("junk" in health.agent.log()) == ("junk" in str(env))


def test_a_new_agent_knows_who_is_sick(health):
    health.driver()
    health.start("--health-recovery-seconds=1")
    health.gpu(1, "xid", 95)  # needs a reset
    health.until_sick(1)
    health.agent.stop()
    health.restart("--health-recovery-seconds=1")
    assert health.sick() == {1}
    health.stay_sick(1, seconds=2.5)
    health.gpu(1, "lost")
    time.sleep(2)
    health.gpu(1, "recover")
    health.until_sick()
    health.agent.stop()
    health.restart("--health-recovery-seconds=1")
    assert health.sick() == set()
    # What cannot be read is no reason not to serve.
    health.agent.stop()
    (health.agent.state / "health").write_text("hami-vgpu-health 1\nnonsense\n")
    health.restart()
    assert health.sick() == set() and "which cards were sick cannot be read" in health.agent.log()


def test_metrics(health):
    health.driver()
    health.start("--health-recovery-seconds=1", "--metrics-bind-address=127.0.0.1:0")
    port = re.search(r"serving metrics.*port=(\d+)", health.agent.log()).group(1)
    for xid in (31, 31, 74):
        health.gpu(0, "xid", xid)
    health.until_sick(0)
    health.until_sick()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    card = f'device_uuid="{health.uuids[0]}"'
    for line in (f'hami_gpu_xid_errors_total{{{card},xid="31"}} 2', f'hami_gpu_xid_errors_total{{{card},xid="74"}} 1',
                 f'hami_gpu_health_changes_total{{{card},to="sick"}} 1', f'hami_gpu_health_changes_total{{{card},to="well"}} 1'):
        assert line in lines


def test_many_slots(health):
    """16 cards of 1,000 slots: the kubelet knows in time, and the asking costs next to nothing."""
    node = health.folder / "node.yaml"
    node.write_text(sixteen_cards((NODES / "t4x2.yaml").read_text()))
    health.driver(node)
    assert len(health.uuids) == 16
    health.start("--health-recovery-seconds=1", "--cores-per-device=1000", "--memory-mb-per-core=10", "--v=0")
    assert sum(1 for _ in health.kubelet.healthy) == 16000
    pid, ticks = health.agent.process.pid, os.sysconf("SC_CLK_TCK")
    took, cpu = [], cpu_of(pid)
    begun_idle = time.monotonic()
    time.sleep(5)
    percent = 100 * (cpu_of(pid) - cpu) / ticks / (time.monotonic() - begun_idle)
    for card in (3, 15, 0):
        begun = health.gpu(card, "xid", 74)
        took.append(health.until_sick(card) - begun)
        health.until_sick()
    print(f"Xid to the kubelet, 16,000 devices: {[f'{1000 * t:.0f} ms' for t in took]}; at rest {percent:.2f} % of a core")
    assert min(took) < SOON


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def sixteen_cards(text):
    """The node of t4x2 with as many cards as a node may have."""
    tree = yaml.safe_load(text)
    tree["cards"] = [{**tree["cards"][0], "uuid": f"GPU-00000000-0000-0000-0000-{i:012d}", "serial": str(i),
                      "pci": f"0000:{0x10 + i:02x}:00.0"} for i in range(16)]
    tree["topology"] = [["X" if i == k else "SYS" for k in range(16)] for i in range(16)]
    return yaml.safe_dump(tree)


def test_the_node_says_which_cards_are_sick(health, short_tmp):
    """Mode hami: the register annotation, our own with the reason, and an event, all soon."""
    api = ApiServer()
    try:
        kubeconfig = write_kubeconfig(short_tmp / "kubeconfig", f"http://127.0.0.1:{api.port}")
        api.put("nodes", None, "node-1")
        health.kubelet.resource = "nvidia.com/gpu"
        health.driver()
        health.start("--mode=hami", "--binding=late", f"--kubeconfig={kubeconfig}", "--node-name=node-1",
                     "--health-recovery-seconds=2", "--metrics-bind-address=")

        def noted(key):
            return json.loads(api.objects["nodes", None, "node-1"]["metadata"]["annotations"].get(key, "null"))

        def events(reason):
            return [o for o in api.all("events") if o["reason"] == reason]

        wait_until("registered", 10, lambda: noted(REGISTER))
        assert noted(HEALTH) is None
        begun = health.gpu(1, "xid", 74)
        health.until_sick(1)
        wait_until("the annotation", 10, lambda: [c.get("health") for c in noted(REGISTER)] == [True, None], every=0.02)
        print(f"Xid to the annotation: {1000 * (time.monotonic() - begun):.0f} ms")
        (entry,) = noted(HEALTH)
        assert (entry["id"], entry["xid"], entry["reason"], entry["needsReset"]) == \
            (health.uuids[1], 74, "Xid 74: NVLink error", False)
        wait_until("the event", 10, lambda: events("GPUUnhealthy"))
        wait_until("well again", 10, lambda: [c.get("health") for c in noted(REGISTER)] == [True, True])
        assert noted(HEALTH) == []
        wait_until("the event", 10, lambda: events("GPUHealthy"))
    finally:
        health.agent.end()
        api.down()
