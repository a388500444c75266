"""Three schedulers on one API server, somebody who places pods with them as kube-scheduler does, faults, and a recount of
what the API server holds that knows nothing of how they decide."""
import json
import os
import random
import signal
import subprocess
import threading
import time

from api_server import ApiServer, reset, status
from sched_peer import FAST, NOT_LEADING, Cluster, Scheduler, bind_args, gpu, is_binding, pod, slow, wait_until

NODES, CARDS, MEMORY, SLOTS = 4, 2, 40000, 10
CLASSIC = "n0"  # needs HAMi's lock; the others bind late
LOCK = "hami.io/mutex.lock"
ENDED = ("Succeeded", "Failed")


def shares_of(text):
    """Of the annotation's text: per container (card, MiB, cores)."""
    return [[(d.split(",")[0], int(d.split(",")[2]), int(d.split(",")[3])) for d in part.split(":") if d]
            for part in text.removesuffix(";").split(";")]


def holds(tree):
    return tree.get("spec", {}).get("nodeName") and tree.get("status", {}).get("phase") not in ENDED


class Recount:
    """What every card bears, from the pods alone."""

    def __init__(self, cards):
        self.cards = cards  # {uuid: node}

    def used(self, pods):
        """{uuid: [MiB, cores, shares]}"""
        out = {uuid: [0, 0, 0] for uuid in self.cards}
        for tree in filter(holds, pods):
            for uuid, mib, cores in (s for c in shares_of(tree["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"]) for s in c):
                for i, n in enumerate((mib, cores, 1)):
                    out[uuid][i] += n
        return out

    def faults(self, pods):
        pods = list(pods)
        for uuid, (mib, cores, shares) in self.used(pods).items():
            if mib > MEMORY or cores > 100 or shares > SLOTS:
                holders = [(t["metadata"]["name"], t["metadata"]["annotations"]) for t in filter(holds, pods)
                           if uuid in json.dumps(t["metadata"]["annotations"])]
                yield f"{uuid} is sold twice: {mib} MiB, {cores} cores, {shares} shares: {holders}"

    def wrong_grant(self, tree):
        """What a pod was bound with is what it asks for, of the node it is on; None: it is."""
        limits = tree["spec"]["containers"][0]["resources"]["limits"]
        marks, node = tree["metadata"]["annotations"], tree["spec"]["nodeName"]
        got, = shares_of(marks.get("hami.io/vgpu-devices-allocated", ""))
        want = (int(limits["nvidia.com/gpumem"]), int(limits.get("nvidia.com/gpucores", 0)))
        if len({s[0] for s in got}) == len(got) == int(limits["nvidia.com/gpu"]) and marks["hami.io/vgpu-node"] == node \
                and all(s[1:] == want and self.cards[s[0]] == node for s in got):
            return None
        return f"{tree['metadata']['name']} on {node} asked for {limits} and has {marks}"


class CountingApi(ApiServer):
    """Counts all cards anew after each Binding, before anything else is changed. Some Bindings take long to get here, some are
    then worked on for longer than a Lease lasts (as the real one, until ?timeout= is over), and some of what the watches tell
    takes long to get there."""

    def __init__(self, dice):
        self.dice, self.recount, self.bound, self.wrong = dice, None, 0, []
        super().__init__()

    def answer(self, h):
        if not is_binding(h):
            super().answer(h)
        elif self.dice.random() < 0.05:
            slow(h, self.dice.random(), self.dice.uniform(1, 4))
        else:
            slow(h, 0, 0.2 * self.dice.random() if self.dice.random() < 0.3 else 0)

    def before_telling(self, plural):
        if plural == "pods" and self.dice.random() < 0.1:
            self.stopping.wait(1.5 * self.dice.random())

    def bind(self, binding, tree, namespace, name):
        answer = super().bind(binding, tree, namespace, name)
        if answer[0] == 201:
            self.bound += 1
            wrong = self.recount.wrong_grant(self.objects["pods", namespace, name])
            self.wrong += [wrong] if wrong else self.recount.faults(self.pods())
        return answer

    def pods(self):
        return [o for (p, namespace, _), o in self.objects.items() if p == "pods" and namespace == "default"]

    def state(self, name):
        with self.lock:
            return self.objects.get(("pods", "default", name))


class Replica:
    """A scheduler's pod: its process ends and starts again."""

    def __init__(self, build, folder, name, flags):
        self.build, self.folder, self.name, self.flags, self.starts = build, folder, name, flags, 0
        self.start()

    def start(self):
        self.starts += 1
        folder = self.folder / f"{self.name}-{self.starts}"
        folder.mkdir()
        self.it = Scheduler(self.build, folder).start(*self.flags, f"--pod-name={self.name}")

    def post(self, path, tree, timeout):
        """None: it did not answer, or not as JSON."""
        try:
            with self.it.connect(timeout) as sock:
                code, _, body = self.it.ask("POST", path, json.dumps(tree).encode(), [("Content-Type", "application/json")], sock)
                return json.loads(body) if code == 200 else None
        except (OSError, ValueError, IndexError):
            return None

    def filter(self, a_pod, nodes):
        return self.post("/filter", {"Pod": a_pod, "Nodes": None, "NodeNames": nodes}, 2)

    def bind(self, a_pod, node):
        return self.post("/bind", bind_args(a_pod, node), 4)

    def check_log(self):
        log = self.it.log()
        assert "ERROR: AddressSanitizer" not in log and "runtime error" not in log, log


class World:
    def __init__(self, build, folder, seed):
        self.dice = random.Random(seed)
        self.api = CountingApi(random.Random(seed + 1))
        self.cluster = Cluster(folder, self.api)
        self.nodes = [f"n{i}" for i in range(NODES)]
        self.api.recount = Recount({f"GPU-{n}-{i}": n for n in self.nodes for i in range(CARDS)})
        for name in self.nodes:
            self.cluster.node(name, cards=CARDS, memory=MEMORY, slots=SLOTS, late=name != CLASSIC)
        keys = folder / "keys"
        keys.mkdir()
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(keys / "k1")], check=True, capture_output=True)
        flags = [*FAST, f"--kubeconfig={self.cluster.kubeconfig}", f"--signature-keys={keys}"]
        self.replicas = []
        for i in range(3):
            self.api.put_tree("pods", "kube-system", {
                "metadata": {"name": f"s{i}", "labels": {"app.kubernetes.io/component": "hami-scheduler"}}, "spec": {}})
            self.replicas.append(Replica(build, folder, f"s{i}", flags))
        self.last_good = self.replicas[0]
        ClassicAgent(self.api)

    def down(self):
        for r in self.replicas:
            if r.it.process.poll() is None:
                os.kill(r.it.process.pid, signal.SIGCONT)
            code = r.it.end()
            assert code in (0, -signal.SIGKILL), r.it.log()
            r.check_log()
        self.api.down()

    # --- as kube-scheduler asks: one that answers, else the next ---

    def ask_any(self, what, dice):
        """what(replica) of whoever decides; None: nobody did this time."""
        for r in [self.last_good, *dice.sample(self.replicas, 3)]:
            answer = what(r)
            if answer is not None and answer.get("Error") not in NOT_LEADING:
                self.last_good = r
                return answer
        return None

    # --- is what is left what is free? ---

    def check_nothing_is_lost(self):
        """With nobody placing pods: of every card the leader gives all that is free, and not a MiB more."""
        def as_counted():
            with self.api.lock:
                used = self.api.recount.used(self.api.pods())
            said = [line for uuid, counts in used.items() for line in self.ask_for_the_rest(uuid, *counts)]
            said_wrong[:] = said
            return not said
        said_wrong = []
        try:
            wait_until("what is free is given", 120, as_counted, every=0.1)
        except AssertionError as e:
            raise AssertionError(f"{e}: {said_wrong}") from None

    def ask_for_the_rest(self, uuid, mib, cores, shares):
        if cores == 100 or shares == SLOTS:
            return
        node = self.api.recount.cards[uuid]
        probe = pod("probe", **gpu(1))
        probe["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": uuid}
        # It is asked for anew each time, and so gives up what it was promised before; more than there is last.
        for more, fits in ((0, True), (1, False)):
            if MEMORY - mib + more == 0 or MEMORY - mib + more > MEMORY:
                continue
            probe["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = str(MEMORY - mib + more)
            answer = self.ask_any(lambda r: r.filter(probe, [node]), self.dice)
            if answer is None or bool(answer["NodeNames"]) != fits:
                yield f"{uuid}: {MEMORY - mib + more} MiB, {MEMORY - mib} being free: {answer}"


class ClassicAgent(threading.Thread):
    """As HAMi's plugin: once the pod that a node's lock names is bound there, the lock goes."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api = api
        self.start()

    def run(self):
        while not self.api.stopping.wait(0.05):
            with self.api.lock:
                lock = self.api.objects["nodes", None, CLASSIC]["metadata"]["annotations"].get(LOCK)
                holder = lock and self.api.objects.get(("pods", "default", lock.split(",")[2]))
                if holder and holder["spec"].get("nodeName") == CLASSIC:
                    self.api.edit("nodes", None, CLASSIC, metadata={"annotations": {LOCK: None}})


class Client(threading.Thread):
    """Makes pods, has them placed, ends them; one after the other. What it was told falsely is noted."""

    def __init__(self, world, number, seed):
        super().__init__(daemon=True)
        self.world, self.number, self.dice = world, number, random.Random(seed)
        self.made, self.mine, self.stopping, self.wrong, self.broke = 0, [], threading.Event(), [], None
        self.heard = None

    def run(self):
        try:
            while not self.stopping.is_set():
                self.place()
                while len(self.mine) > 8 or (self.mine and self.dice.random() < 0.4):
                    self.end_one()
        except Exception as e:  # noqa: BLE001 (the test tells it)
            self.broke = e

    def place(self):
        world, dice, api = self.world, self.dice, self.world.api
        self.made += 1
        name = f"p{self.number}-{self.made if dice.random() < 0.8 else 0}"  # one name comes again and again
        if name in self.mine:
            return
        tree = pod(name, **gpu(dice.randrange(2000, 25001, 500), count=dice.choice((1, 1, 2))),
                   nvidia_com__gpucores=dice.choice((0, 5, 10)))
        tree["metadata"]["uid"] = f"uid-{name}-{self.made}"
        tree = api.put_tree("pods", "default", {**tree, "status": {"phase": "Pending"}})
        # A Binding whose sender went away may arrive late: kube-scheduler sees in its cache that a pod is bound.
        while not self.stopping.wait(0.05 * dice.random()) and not api.state(name)["spec"].get("nodeName"):
            answer = self.heard = world.ask_any(lambda r: r.filter(tree, world.nodes), dice)
            if answer is None or answer["Error"]:
                continue
            if not answer["NodeNames"]:
                if not self.end_one():
                    break
                continue
            if dice.random() < 0.05:
                continue  # another of kube-scheduler's checks said no
            node = answer["NodeNames"][0]
            if not self.bind(tree, node) and dice.random() < 0.3:
                self.stopping.wait(dice.uniform(1, 6))  # kube-scheduler's back-off; what was sent may still arrive
        with api.lock:
            if api.state(name)["spec"].get("nodeName"):
                self.mine.append(name)
            else:
                api.delete("pods", "default", name)

    def bind(self, tree, node):
        world, name = self.world, tree["metadata"]["name"]
        where = self.dice.choice(world.replicas) if self.dice.random() < 0.05 else world.last_good
        answer = where.bind(tree, node)
        is_on = world.api.state(name)["spec"].get("nodeName")
        if answer is not None and answer["Error"] == "" and is_on != node:
            self.wrong.append(f"{where.name} says that {name} is bound to {node}; it is on {is_on}")
        return answer is not None and answer["Error"] == ""

    def end_one(self):
        """False: there is none."""
        if not self.mine:
            return False
        name, api = self.mine.pop(self.dice.randrange(len(self.mine))), self.world.api
        way = self.dice.random()
        if way < 0.3:
            api.edit("pods", "default", name, status={"phase": "Succeeded"})
        elif way < 0.6:
            api.edit("pods", "default", name, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
            self.stopping.wait(0.2)
        api.delete("pods", "default", name)
        return True


class Trouble:
    """One fault at a time, the leader's mostly."""

    def __init__(self, world):
        self.world, self.done = world, {}

    def one(self):
        dice, world = self.world.dice, self.world
        what = dice.choices((self.kill, self.sleep, self.end, self.cut, self.lose_answer, self.throttle), (4, 4, 3, 1, 2, 2))[0]
        victims = [world.last_good if dice.random() < 0.8 else dice.choice(world.replicas)]
        if dice.random() < 0.15:
            victims = dice.sample(world.replicas, 2)
        what(victims)
        self.done[what.__name__] = self.done.get(what.__name__, 0) + 1

    def kill(self, victims):
        for r in victims:
            r.it.end(signal.SIGKILL)
            r.check_log()
        time.sleep(self.world.dice.choice((0, 0.5, 2)))
        for r in victims:
            r.start()

    def sleep(self, victims):
        for r in victims:
            os.kill(r.it.process.pid, signal.SIGSTOP)
        time.sleep(self.world.dice.choice((0.5, 1.5, 2.5, 3.5, 6)))
        for r in victims:
            os.kill(r.it.process.pid, signal.SIGCONT)

    def end(self, victims):
        for r in victims:
            assert r.it.end() == 0, r.it.log()
            r.check_log()
            r.start()

    def throttle(self, victims):
        """No time for Bindings, and the leader changes meanwhile."""
        self.world.api.fault(status(429, "TooManyRequests", {"Retry-After": str(self.world.dice.randint(2, 5))}), times=4,
                             when=is_binding)
        time.sleep(self.world.dice.random())
        self.world.dice.choice((self.kill, self.sleep))(victims)

    def cut(self, _):
        self.world.api.cut()

    def lose_answer(self, _):
        """Bound, and the connection breaks before anybody says so."""
        def bound_and_cut(h):
            with self.world.api.lock:
                self.world.api.change(h.request_seen, *self.world.api.split(h.request_seen.path))
            reset(h)
        self.world.api.fault(bound_and_cut, times=3, when=is_binding)
