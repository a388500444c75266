"""Pods come and go while things break, and what each container sees inside is compared with what its pod's annotation says.

A round: some pods placed or deleted, some faults one after the other or at once, then calm: everything must be well again.
Well is: every pod that was placed runs (none lost), each container sees the cards and the memory of its own entry (none
swapped), the API says success, and no claim, folder or spec lies about for what is gone (none leaked). The expected values
are the placements that this module made; nothing of them passes through the agent but the annotation."""
import json
import random
import time

from node.base import MIB, Container, Pod, wait_until

SLEEP = ["/bin/sh", "-c", "while :; do sleep 1000; done"]
CALM_S = 120


class Placed:
    def __init__(self, pod, shares):
        self.pod, self.shares = pod, shares  # shares: container name -> [(uuid, MiB, percent)]


class Chaos:
    """`node` is a HamiNode or what looks like one; `faults` a table of name -> (weight, callable)."""

    def __init__(self, node, seed, faults, pods=12, say=print):
        self.node, self.random, self.faults, self.most, self.say = node, random.Random(seed), faults, pods, say
        self.seed, self.number = seed, 0
        self.placed = {}
        self.free = {c["uuid"]: (c["total_bytes"] - c["reserved_bytes"]) // MIB for c in node.driver_status()["cards"]}
        self.slots = {uuid: node.split for uuid in self.free}
        self.done = {name: 0 for name in faults}
        self.checks = self.restarts = self.cut_off = 0
        self.lately = set()    # the faults of this round
        self.troubled = set()  # the pods that saw them
        self.trail = []  # the last things done, for whoever reads a failure

    def note(self, what):
        self.trail = [*self.trail[-40:], f"{time.monotonic():.2f} {what}"]

    def story(self):
        """The shortest first: a log may show no more."""
        return "\n".join([*map(str, self.node.unwell(self.placed)), f"seed {self.seed}; faults of this round: {sorted(self.lately)}",
                          f"left: {self.node.leftovers()}", "lately:", *self.trail, "the agent:", self.node.agent_log.read_text()[-4000:]])

    # --- placing --------------------------------------------------------------------------------------------------------
    def pick(self):
        """Memory of any odd size, on a card that has it: pods with equal counts differ in it."""
        mib = self.random.randrange(100, 1500)
        able = [u for u in self.free if self.free[u] >= mib and self.slots[u] > 0]
        if not able:
            return None
        uuid = self.random.choice(able)
        self.free[uuid] -= mib
        self.slots[uuid] -= 1
        return uuid, mib, self.random.randrange(0, 101)

    def give_back(self, shares):
        for share in (s for entry in shares.values() for s in entry):
            self.free[share[0]] += share[1]
            self.slots[share[0]] += 1

    def place(self):
        self.number += 1
        name = f"p{self.number}"
        containers = [Container(SLEEP, 1, "a")]
        if self.random.random() < 0.3:
            containers.append(Container(SLEEP, 0, "plain"))
        if self.random.random() < 0.4:
            containers.append(Container(SLEEP, 1, "b"))
        if self.random.random() < 0.2:
            containers.insert(0, Container(["/bin/sh", "-c", "exit 0"], 1, "i", init=True))
        shares = {}
        for c in containers:
            share = self.pick() if c.vgpu else None
            if c.vgpu and share is None:
                self.give_back(shares)
                return
            shares[c.name] = [share] if share else []
        self.placed[name] = Placed(Pod(name, containers, "Always"), shares)
        self.note(f"place {name} {shares}")
        self.node.place(self.placed[name].pod, [shares[c.name] for c in containers])

    def delete(self):
        if not self.placed:
            return
        name = self.random.choice(sorted(self.placed))
        self.note(f"delete {name}")
        self.node.delete(name)
        self.give_back(self.placed.pop(name).shares)

    def kill_container(self):
        """One that restarts: its limits must be its own again."""
        running = [n for n in sorted(self.placed) if self.node.phase(n) == "Running"]
        if running:
            name = self.random.choice(running)
            self.note(f"kill {name}/a")
            self.node.kill_container(name, "a")
            self.restarts += 1

    # --- rounds ---------------------------------------------------------------------------------------------------------
    def one_fault(self):
        names = list(self.faults)
        name = self.random.choices(names, [self.faults[n][0] for n in names])[0]
        self.note(f"fault {name}")
        self.lately.add(name)
        self.faults[name][1](self.random)
        self.done[name] += 1

    def round(self, faults):
        for _ in range(self.random.randrange(0, 4)):
            self.place() if len(self.placed) < self.most else self.delete()
        for _ in range(faults):
            self.one_fault()
            if self.random.random() < 0.3:
                self.place() if self.random.random() < 0.6 and len(self.placed) < self.most else self.delete()
            if self.random.random() < 0.1:
                self.kill_container()
            time.sleep(self.random.random() * 0.05)
        self.calm()

    def run(self, faults, a_round=25):
        """So many faults in all; then nothing may be left."""
        while (done := sum(self.done.values())) < faults:
            if done > 0 and done % 1000 < a_round:
                self.say(f"{time.strftime('%H:%M')} {done} faults, {self.number} pods, {self.checks} looks inside")
            self.round(min(a_round, faults - done))
        while self.placed:
            self.delete()
        self.wait("nothing is left", self.node.no_leftovers)
        assert self.cut_off <= self.number * 3 / 4, f"{self.cut_off} of {self.number} pods were cut off"

    # --- what must hold ---------------------------------------------------------------------------------------------------
    def wait(self, what, check):
        try:
            wait_until(what, CALM_S, check, every=0.05)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.story()}") from None

    def all_run(self):
        for name in sorted(self.placed):
            if name in self.troubled and self.node.was_cut_off(name, self.lately):
                self.replace(name)
        return all(self.node.all_ready(name) for name in self.placed)

    def replace(self, name):
        """The kubelet rejects a pod whose Allocate call dies with the agent, say; no agent can help that. A controller makes
        another pod then: here too, with the same share. That one has seen no fault, where the node shows when all are over."""
        self.note(f"cut off {name}")
        self.cut_off += 1
        self.node.delete(name)
        self.number += 1
        old = self.placed.pop(name)
        pod = Pod(f"p{self.number}", old.pod.containers, old.pod.restart)
        self.placed[pod.name] = Placed(pod, old.shares)
        if not self.node.shows_calm:
            self.troubled.add(pod.name)
        self.node.place(pod, [old.shares[c.name] for c in pod.containers])

    def calm(self):
        self.node.heal()
        self.wait("no fault goes on", self.node.is_calm)
        self.troubled = set(self.placed)
        self.wait(f"all pods run: {sorted(self.placed)}", self.all_run)
        for name in sorted(self.placed):
            self.check(name)
        self.wait("the API says success of every pod", self.all_succeeded)
        self.wait(f"one claim, folder and spec for each container: {self.node.leftovers()}", self.holds_what_runs)
        self.lately.clear()

    def check(self, name):
        for container in (c for c in self.placed[name].pod.containers if c.vgpu and not c.init):
            want = self.placed[name].shares[container.name]
            seen = json.loads(self.node.execute(name, ["/bin/vgpu-probe", "info"], container.name).splitlines()[-1])
            got = [(d["uuid"], d["total"] // MIB) for d in seen["devices"]]
            assert got == [(s[0], s[1]) for s in want], \
                f"{name}/{container.name} sees {got}, its pod says {want}\n{self.story()}"
            cores = self.node.limits_inside(name, container.name)
            if cores is not None:
                asked = {s[0]: s[2] or 100 for s in want}  # 0: no limit
                assert cores == asked, f"{name}/{container.name} is limited to {cores}, its pod says {asked}\n{self.story()}"
            self.checks += 1

    def all_succeeded(self):
        return all(self.node.is_finished(name) for name in self.placed)

    def holds_what_runs(self):
        """Init containers' claims may go before their pod does, or with it."""
        least = sum(1 for p in self.placed.values() for c in p.pod.containers if c.vgpu and not c.init)
        most = sum(1 for p in self.placed.values() for c in p.pod.containers if c.vgpu)
        return all(least <= len([n for n in names if ".tmp-" not in n]) <= most for names in self.node.leftovers().values())

    def report(self):
        faults = ", ".join(f"{n} {k}" for n, k in sorted(self.done.items()))
        self.say(f"{sum(self.done.values())} faults ({faults}), {self.number} pods, {self.cut_off} of them cut off, "
                 f"{self.restarts} containers killed, "
                 f"{self.checks} looks inside: none swapped, none lost, none leaked")
