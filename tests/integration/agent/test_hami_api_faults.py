"""hami-device-plugin in mode hami while its API server is away, slow, silent, refuses, forgets the token, or talks nonsense:
what is known is served, and all is well again afterwards. The agent's clock runs fast, so that an hour is a minute."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import uuid

import pytest

from kubelet_peer import UUIDS, number_of, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube"))
from api_server import ApiServer, half_chunk, raw, reset, silence, status  # noqa: E402
from kube_peer import write_kubeconfig  # noqa: E402

NODE = "node-1"
REGISTER, PHASE = "hami.io/node-nvidia-register", "hami.io/bind-phase"
FAST = 10  # so much faster than the machine's is the agent's clock


def faster(environment):
    """The clock is as fast as it says, where it is preloaded."""
    now = subprocess.run([sys.executable, "-c", "import time; print(time.monotonic())"], text=True, check=True,
                         capture_output=True, env={**os.environ, **environment}).stdout
    assert float(now) > 0.9 * time.monotonic() * int(environment["FAST_CLOCK"])


class World:
    """Kubelet, API server and agent, and pods as HAMi's scheduler leaves them."""

    def __init__(self, build, kubelet, agent, folder):
        self.build, self.kubelet, self.agent, self.folder = build, kubelet, agent, folder
        self.api = ApiServer()
        self.token = folder / "token"
        self.token.write_text("first")
        self.api.tokens = {"first"}
        self.placed, self.numbers = 0, {}
        info = {"kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.2.9"}
        self.api.put_tree("nodes", None, {"metadata": {"name": NODE}, "status": {"nodeInfo": info}})
        kubelet.resource = "nvidia.com/gpu"

    def start(self, server=None, fast=FAST):
        kubeconfig = write_kubeconfig(self.folder / "kubeconfig", server or f"http://127.0.0.1:{self.api.port}",
                                      {"tokenFile": str(self.token)})
        self.kubelet.start()
        more = {"LD_PRELOAD": str(self.build / "tests/libfast_clock.so"), "FAST_CLOCK": str(fast),
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        faster(more)
        self.agent.start("--mode=hami", "--binding=late", f"--kubeconfig={kubeconfig}", f"--node-name={NODE}",
                         "--health-recovery-seconds=3600", "--metrics-bind-address=", env=more.items())
        self.kubelet.wait_registered()
        self.kubelet.devices()
        wait_until("published", 20, lambda: self.healthy() == [True, True])

    def healthy(self):
        """Of each card, as the Node's annotation has it."""
        text = self.annotations("nodes", None, NODE).get(REGISTER)
        return [c.get("health", False) for c in json.loads(text)] if text else None

    def annotations(self, plural, namespace, name):
        return self.api.objects[plural, namespace, name]["metadata"]["annotations"]

    def place(self, name, mib, **more):
        now, text = str(int(time.time())), f"{UUIDS[1]},NVIDIA,{mib},30:;"
        marks = {"hami.io/vgpu-devices-allocated": text, "hami.io/vgpu-devices-to-allocate": text,
                 "hami.io/vgpu-node": NODE, "hami.io/vgpu-time": now, "hami.io/bind-time": now, PHASE: "allocating"}
        self.api.put_tree("pods", "default", {
            "metadata": {"name": name, "namespace": "default", "uid": str(uuid.uuid4()), "annotations": {**marks, **more}},
            "status": {"phase": "Pending"},
            "spec": {"nodeName": NODE, "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}})
        self.placed += 1
        return self.api.objects["pods", "default", name]["metadata"]["uid"], [f"{UUIDS[0]}-{self.placed}"]

    def admit(self, pod):
        """The kubelet's Allocate and PreStart of its container; the MiB that its limit file says."""
        uid, ids = pod
        self.numbers[uid] = number_of(self.kubelet.admit(uid, "c", ids))
        self.kubelet.plugin.pre_start(ids)
        return self.mib(pod)

    def mib(self, pod):
        text = (self.agent.state / "alloc" / str(self.numbers[pod[0]]) / "limits").read_text()
        (line,) = [line for line in text.splitlines() if line.startswith("gpu=")]
        assert line.startswith(f"gpu={UUIDS[1]} ")
        return int(line.split("memory=")[1].split()[0]) >> 20

    def knows(self, pod):
        """True once the watch has told the pod: its container starts."""
        uid, ids = pod
        try:
            return self.admit(pod)
        except Exception:
            self.kubelet.forget(uid)
            return None

    def phase(self, name):
        return self.annotations("pods", "default", name)[PHASE]


@pytest.fixture
def world(build, kubelet, agent, short_tmp):
    it = World(build, kubelet, agent, short_tmp)
    yield it
    it.api.down()


# ---- faults: each a context in which the API server is so

@contextlib.contextmanager
def answers(world, act):
    """Every request is answered so, and watches that were there are broken."""
    world.api.fault(act, times=1 << 30)
    world.api.cut()
    yield
    world.api.faults.clear()
    world.api.cut()  # who is silent is silent for ever


@contextlib.contextmanager
def away(world):
    world.api.down()
    yield
    world.api.up()


@contextlib.contextmanager
def another_token(world):
    world.api.tokens = {"second"}
    world.api.cut()
    yield
    world.token.with_suffix(".new").write_text("second")
    os.rename(world.token.with_suffix(".new"), world.token)


def slowly(h):
    time.sleep(2)  # 20 s of the agent's
    h.server.api.answer(h)


def no_json(h):
    h.stream()
    h.chunk(b"\x00\xff{}\n" * 1000)
    h.chunk(b"")


def no_object(h):
    h.json(200, {"kind": "List", "items": 7, "metadata": [], "type": {"object": None}})


FAULTS = {
    "away": away,
    "slow": lambda w: answers(w, slowly),
    "silent": lambda w: answers(w, silence),
    "headers, then silence": lambda w: answers(w, lambda h: (h.stream(), silence(h))),
    "half a chunk": lambda w: answers(w, lambda h: (h.stream(), half_chunk(h))),
    "reset": lambda w: answers(w, reset),
    "429": lambda w: answers(w, status(429, "TooManyRequests", {"Retry-After": "3"})),
    "500": lambda w: answers(w, status(500)),
    "403": lambda w: answers(w, status(403, "Forbidden")),
    "410": lambda w: answers(w, status(410, "Expired")),
    "401, then a new token": another_token,
    "no HTTP": lambda w: answers(w, raw(b"\x16\x03\x01 nonsense\r\n\r\n")),
    "no JSON": lambda w: answers(w, no_json),
    "JSON that is no object": lambda w: answers(w, no_object),
}


def serves_what_it_knows(world, running, known):
    """A container starts again, a pod that was seen starts, and Allocate is as quick as ever."""
    world.kubelet.plugin.pre_start(running[1])
    assert world.mib(running) == 1000
    assert world.admit(known) == 2000
    took = []
    for _ in range(11):
        begun = time.monotonic()
        world.kubelet.plugin.allocate([f"{UUIDS[0]}-9"])
        took.append(time.monotonic() - begun)
    assert sorted(took)[5] < 0.1, took


def is_whole_again(world, known):
    """What happened meanwhile is told, and what comes is heard."""
    wait_until("the sick card on the Node", 30, lambda: world.healthy() == [False, True])
    wait_until("the pod's patch", 30, lambda: world.phase(known) == "success")
    later = world.place("later", 3000)
    wait_until("a new pod starts", 30, lambda: world.knows(later) == 3000, every=0.2)
    wait_until("its patch", 30, lambda: world.phase("later") == "success")


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_known_is_served_and_all_heals(world, kubelet, agent, fault):
    world.start()
    running, known = world.place("running", 1000), world.place("known", 2000)
    wait_until("seen", 10, lambda: world.knows(running) == 1000, every=0.1)
    wait_until("the patch", 10, lambda: world.phase("running") == "success")
    with FAULTS[fault](world):
        time.sleep(0.5)
        serves_what_it_knows(world, running, known)
        agent.set_nvml(lost=0)
        assert {d.ID[:40] for d in kubelet.devices(10) if d.health == "Unhealthy"} == {UUIDS[0]}
        time.sleep(2)
        assert agent.process.poll() is None, agent.log()
        kubelet.plugin.pre_start(running[1])
    is_whole_again(world, "known")
    assert agent.stop()[0] == 0


def test_an_hour_without_an_api_server(world, kubelet, agent):
    fast = 240
    world.start(fast=fast)
    running, ending, known = (world.place(n, m) for n, m in (("running", 1000), ("ending", 4000), ("known", 2000)))
    wait_until("seen", 10, lambda: world.knows(running) == 1000, every=0.1)
    assert world.admit(ending) == 4000
    wait_until("the patches", 10, lambda: world.phase("ending") == "success")
    with away(world):
        time.sleep(1)  # for what it had accepted before
        tries = len(world.api.requests)
        end = time.monotonic() + 3600 / fast
        kubelet.forget(ending[0])  # its pod has ended
        agent.set_nvml(lost=0)
        while time.monotonic() < end:
            assert agent.process.poll() is None, agent.log()
            kubelet.plugin.pre_start(running[1])
            kubelet.plugin.allocate([f"{UUIDS[0]}-9"])
            time.sleep(0.5)
        assert len(world.api.requests) == tries
        serves_what_it_knows(world, running, known)
        wait_until("the ended pod's claim has gone", 10,
                   lambda: len([p for p in (agent.state / "claims").iterdir() if p.name.isdigit()]) == 2)
        world.api.delete("pods", "default", "ending")
    is_whole_again(world, "known")
    said = [line for line in agent.log().splitlines() if " WARN " in line or " ERROR " in line]
    assert len(said) < 20, "an hour is not an hour of complaints: " + "\n".join(said)


def test_connections_that_stand_and_are_dead(world, agent):
    """A load balancer that lost its memory: what was open says nothing any more, new connections work."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).resolve().parents[1] / "kube/freezing_proxy.py"),
                              str(port), str(world.api.port)], stdout=subprocess.PIPE, text=True)
    try:
        assert proxy.stdout.readline() == "ready\n"
        world.start(server=f"http://127.0.0.1:{port}", fast=30)
        running, known = world.place("running", 1000), world.place("known", 2000)
        wait_until("seen", 10, lambda: world.knows(running) == 1000, every=0.1)
        wait_until("the patch", 10, lambda: world.phase("running") == "success")
        proxy.send_signal(signal.SIGUSR1)
        assert proxy.stdout.readline() == "frozen\n"
        serves_what_it_knows(world, running, known)
        agent.set_nvml(lost=0)
        is_whole_again(world, "known")
    finally:
        proxy.kill()
        proxy.wait()
        proxy.stdout.close()


def test_an_object_of_three_megabytes(world):
    """And one of five, which is over what the watch takes: it comes by a list."""
    world.start()
    for name, size, mib in (("big", 3_000_000, 1500), ("bigger", 5_000_000, 1600)):
        pod = world.place(name, mib, **{"example.com/note": "x" * size})
        wait_until("it starts", 30, lambda pod=pod, mib=mib: world.knows(pod) == mib, every=0.2)
        wait_until("its patch", 30, lambda name=name: world.phase(name) == "success")
    other = world.place("other", 1700)
    wait_until("others start", 30, lambda: world.knows(other) == 1700, every=0.2)
