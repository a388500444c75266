"""Containers that share a card, with the real agent beside them: how far their shares of the card's time are off, how much
of it is used in all, and what the agent's samples cost. On simulated nodes, by the wall clock."""
import base64
import contextlib
import json
import os
import pathlib
import subprocess
import time

from bench_agent import EIGHT_CARDS, REPO, agent, first_list, simulated
from bench_vgpu import in_container
from figures import Figure, median
from grpc_peers import Caller

SLOTS = 10
ONE_CARD = REPO / "sim/nodes/sm20.yaml"
MS = 1000000
WARM_S, SECONDS = 3, 6
SAMPLE_S = 0.15  # SAMPLER_EVERY_MS
COST_S = 8
# name, slots and the program of each container: kernels of so many ns, the host waits after so many
CASES = [("30_70", [(3, MS, 20), (7, MS, 20)]), ("30_70_10ms_beside_200us", [(3, 10 * MS, 10), (7, MS // 5, 50)]),
         ("10_20_70", [(1, MS, 7), (2, 5 * MS, 5), (7, MS, 11)])]


class Node:
    """A simulated node, the agent on it, and containers that got slots of it."""

    def __init__(self, context, folder, sim, process, socket):
        self.context, self.folder, self.process = context, folder, process
        self.caller, self.entries = Caller(socket), []
        self.env = {"PATH": "/usr/bin:/bin", "HAMI_SIM_DIR": str(sim), "LD_LIBRARY_PATH": str(context.build / "sim")}
        self.cards = list(dict.fromkeys(i.split("::")[0] for i in first_list(self.caller)[1]))

    def container(self, card, slots, *lines):
        """The folder that the agent makes for one; `lines` instead of its limit file's."""
        taken = sum(len(e["DeviceIDs"]["0"]) for e in self.entries if e["DeviceIDs"]["0"][0].startswith(self.cards[card]))
        ids = [f"{self.cards[card]}::{taken + n}" for n in range(slots)]
        answer = self.caller.allocate_set(ids)
        number = answer.container_responses[0].cdi_devices[0].name.rsplit(".", 1)[1]
        self.entries.append({"PodUID": f"pod-{number}", "ContainerName": "c", "ResourceName": "hami.com/vgpu",
                             "DeviceIDs": {"0": ids},
                             "AllocResp": base64.b64encode(answer.container_responses[0].SerializeToString()).decode()})
        (self.folder / "plugins/kubelet_internal_checkpoint").write_text(
            json.dumps({"Data": {"PodDeviceEntries": self.entries, "RegisteredDevices": {}}, "Checksum": 1}))
        self.caller.pre_start(ids)
        folder = self.folder / "state/alloc" / number
        if lines:
            keys = {line.split("=")[0] for line in lines}
            kept = [line for line in (folder / "limits").read_text().splitlines()
                    if line != "end" and line.split("=")[0] not in keys]
            (folder / "limits").write_text("".join(line + "\n" for line in [*kept, *lines, "end"]))
        return folder

    def load(self, container, ns, sync, seconds, card=0, preload=True):
        """A program in a container, ready to begin."""
        argv = [*in_container(self.context, container, preload), str(self.context.build / "tests/gpu-load"), "cuLaunchKernel",
                str(sync), "1", str(ns), str(seconds), "1"]
        child = subprocess.Popen(argv, env={**self.env, "NVIDIA_VISIBLE_DEVICES": str(card)}, text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if child.stdout.readline() != "up\n":
            raise RuntimeError(f"gpu-load: {child.communicate()[1]}")
        return child

    def busy_ns(self):
        run = subprocess.run([str(self.context.build / "bin/hami-simctl"), "status", "-j"], check=True, env=self.env,
                             capture_output=True, text=True)
        return {p["pid"]: p["busy_ns"] for p in json.loads(run.stdout)["cards"][0]["processes"]}


def begin(children):
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()


@contextlib.contextmanager
def node(context, folder, description):
    folder.mkdir()
    with simulated(context, folder, description) as sim, agent(context, folder, sim, SLOTS) as (process, _ms, socket):
        it = Node(context, folder, sim, process, socket)
        try:
            yield it
        finally:
            it.caller.close()


def shares(on, containers, work):
    """Percent of the card that each got, after the first seconds."""
    children = [on.load(c, ns, sync, WARM_S + SECONDS + 1) for c, (_, ns, sync) in zip(containers, work)]
    begin(children)
    time.sleep(WARM_S)
    from_s, before = time.monotonic(), on.busy_ns()
    time.sleep(SECONDS)
    after, to_s = on.busy_ns(), time.monotonic()
    for child in children:
        child.communicate()
    return [(after[c.pid] - before[c.pid]) / 1e7 / (to_s - from_s) for c in children]


def measure_shares(context):
    for name, work in CASES:
        with node(context, context.folder / name, ONE_CARD) as on:
            containers = [on.container(0, slots) for slots, _, _ in work]
            rounds = [shares(on, containers, work) for _ in range(3)]
        off = [max(abs(got - slots * 100 / SLOTS) for got, (slots, _, _) in zip(r, work)) for r in rounds]
        yield Figure(f"agent.share_{name}_off", "%", median(off), goal="<= 3")
        yield Figure(f"agent.share_{name}_busy", "%", median([sum(r) for r in rounds]), goal=">= 95")
    work = [(3, MS, 20), (7, MS, 20)]
    with node(context, context.folder / "beside", ONE_CARD) as on:
        containers = [on.container(0, 3, "policy=force"), on.container(0, 7, "policy=disable")]
        rounds = [shares(on, containers, work) for _ in range(3)]
    yield Figure("agent.share_unlimited_beside_30_off", "%", median([abs(r[0] - 30) for r in rounds]), goal="<= 3")
    yield Figure("agent.share_unlimited_beside_30_busy", "%", median([sum(r) for r in rounds]), goal=">= 95")


def worker_ns(pid):
    """CPU time of all threads but the loop's."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks if t.name != str(pid))


def cost(on):
    """The worker's time in COST_S."""
    before = worker_ns(on.process.pid)
    time.sleep(COST_S)
    return worker_ns(on.process.pid) - before


def measure_cost(context):
    with node(context, context.folder / "cost", EIGHT_CARDS) as on:
        time.sleep(1)
        idle = cost(on)
        containers = [(card, on.container(card, 1)) for card in range(8) for _ in range(SLOTS)]
        time.sleep(2)
        resting = cost(on)
        # Without libvgpu: it is the agent that is measured, and 80 hosts that wait would take the machine.
        children = [on.load(c, 1000 * MS, 1, 3600, card, preload=False) for card, c in containers]
        begin(children)
        time.sleep(2)
        busy = cost(on)
        for child in children:
            child.kill()
            child.communicate()
    passes = COST_S / SAMPLE_S
    yield Figure("agent.sampler_8x10_idle_core", "%", (resting - idle) / 1e7 / COST_S, goal="<= 0.5")
    yield Figure("agent.sampler_8x10_pass_us", "us", (busy - idle) / 1000 / passes)
    yield Figure("agent.sampler_8x10_core", "%", (busy - idle) / 1e7 / COST_S, goal="<= 1")


def measure(context):
    if not (context.build / "lib/libvgpu.so").exists():
        yield Figure("agent.share_30_70_off", "%", goal="<= 3", why="libvgpu.so is not built")
        return
    if subprocess.run(["unshare", "-m" if os.geteuid() == 0 else "-rm", "true"], check=False, capture_output=True).returncode != 0:
        yield Figure("agent.share_30_70_off", "%", goal="<= 3", why="no mount namespace here")
        return
    yield from measure_shares(context)
    yield from measure_cost(context)
