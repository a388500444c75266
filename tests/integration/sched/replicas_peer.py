"""Three schedulers on one API server, somebody who places pods with them as kube-scheduler does, and what to look at when
that went wrong. Faults: replicas_trouble.py; who counts: replicas_oracle.py."""
import collections
import json
import os
import random
import shutil
import signal
import threading
import time
import traceback

from kube_peer import write_kubeconfig
from kube_scheduler_peer import KubeScheduler
from replicas_keys import Keys, signed_by
from replicas_oracle import CARDS, MEMORY, NODES, SLOTS, CountingApi, Recount
from sched_peer import FAST, NOT_LEADING, Cluster, Scheduler, bind_args, gpu, pod, wait_until

CLASSIC = "n0"  # needs HAMi's lock; the others bind late
LOCK = "hami.io/mutex.lock"


# Its host name is its pod's.
POD = 'hostname "$0" && exec "$@"'


class Replica:
    """A scheduler's pod: its process ends and starts again; where the kube-scheduler beside it leads (`kube`), that as well."""

    def __init__(self, build, folder, name, flags, kube):
        self.build, self.folder, self.name, self.flags, self.kube, self.starts, self.it = build, folder, name, flags, kube, 0, None
        self.start()

    def start(self):
        self.starts += 1
        folder = self.folder / f"{self.name}-{self.starts}"
        folder.mkdir()
        fresh = Scheduler(self.build, folder)
        try:
            fresh.start(*self.flags, f"--pod-name={self.name}", under=[
                "unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--uts", "sh", "-c", POD, self.name])
        except AssertionError:
            fresh.end(signal.SIGKILL)
            raise
        self.it = fresh  # those who ask do so all the time

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

    def send(self, number):
        if self.it.process.poll() is None:
            os.kill(self.it.process.pid, number)

    def end(self, number=signal.SIGTERM):
        code = self.it.end(number)
        assert code == (0 if number == signal.SIGTERM else -number), f"{self.name} ended with {code}: {self.it.log()[-3000:]}"
        self.check_log()

    def down(self):
        self.send(signal.SIGCONT)
        if self.it.process.poll() is None:
            self.end()

    def check_log(self):
        log = self.it.log()
        at = max(log.find("ERROR: AddressSanitizer"), log.find("runtime error"))
        assert at < 0, f"{self.name}: {log[max(0, at - 200):at + 3000]}"

    def evidence(self):
        code, lines = self.it.process.poll(), self.it.log().splitlines()
        return (f"{self.name} {'runs' if code is None else f'has ended with {code}'}, start {self.starts}, answers "
                f"{self.filter(pod('probe', **gpu(1)), ['n0'])}; said last: {lines[-1][:200] if lines else None}")


class World:
    """by: "lease", or "follow" the kube-scheduler's beside each replica."""

    def __init__(self, build, folder, seed, by):
        self.build, self.folder, self.seed, self.by, self.dice = build, folder, seed, by, random.Random(seed)
        self.nodes = [f"n{i}" for i in range(NODES)]
        self.api = CountingApi(random.Random(seed + 1), Recount({f"GPU-{n}-{i}": n for n in self.nodes for i in range(CARDS)}))
        self.replicas, self.story = [], collections.deque(maxlen=6)

    def up(self):
        cluster = Cluster(self.folder, self.api)
        for name in self.nodes:
            cluster.node(name, cards=CARDS, memory=MEMORY, slots=SLOTS, late=name != CLASSIC)
        self.keys = Keys(self.folder / "keys", 3)
        self.api.known_keys = self.keys.known
        for i in range(3):
            self.add(i)
        self.last_good = self.replicas[0]
        ClassicAgent(self.api)

    def add(self, i):
        name, dice = f"s{i}", random.Random(self.seed + 2 + i)
        self.api.put_tree("pods", "kube-system", {
            "metadata": {"name": name, "labels": {"app.kubernetes.io/component": "hami-scheduler"}}, "spec": {}})
        kubeconfig = write_kubeconfig(self.folder / f"kubeconfig-{i}", f"http://127.0.0.1:{self.api.port}", {"token": name})
        flags = [*(f for f in FAST if self.by == "lease" or f != "--leader-elect-by=lease"), f"--kubeconfig={kubeconfig}",
                 f"--signature-keys={self.keys.volumes[i].folder}"]
        self.replicas.append(Replica(self.build, self.folder, name, flags,
                                     KubeScheduler(self.api, name, dice) if self.by == "follow" else None))

    def close(self):
        try:
            for r in self.replicas:
                r.down()
        finally:
            for r in self.replicas:
                r.send(signal.SIGKILL)
            self.api.down()

    # --- what is known when something fails ---

    def tell(self, what):
        self.story.append(f"{time.monotonic() - self.api.begun:.1f} s {what}")

    def report(self, why):
        """What failed first, and what the oracle and the replicas know; the logs are kept."""
        kept = self.build / f"replicas-{self.seed}-{self.by}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder, kept, symlinks=True, ignore=shutil.ignore_patterns("keys"))
        seen = [line for line in self.api.evidence() if line not in why]
        text = "\n".join([f"CHAOS_SEED={self.seed}, by {self.by}, after {time.monotonic() - self.api.begun:.1f} s: {why}",
                          *seen, f"the last faults: {'; '.join(self.story)}",
                          *(r.evidence() for r in self.replicas), f"the logs are in {kept}"])
        (kept / "failure").write_text(text + "\n")
        return text

    # --- as kube-scheduler asks: one that answers, else the next ---

    def ask_any(self, what, dice):
        """what(replica) of whoever decides; None: nobody did this time."""
        # Not always the one that answered last: of two that lead at once both are to be asked.
        for r in [*([self.last_good] if dice.random() < 0.7 else []), *dice.sample(self.replicas, 3)]:
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
                while (len(self.mine) > 8 or self.dice.random() < 0.4) and self.end_one():
                    pass
        except Exception:  # noqa: BLE001 (the test tells it)
            self.broke = traceback.format_exc()

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
        """False: there is none that may go."""
        api, keys = self.world.api, self.world.keys
        by = {name: signed_by(api.state(name)) for name in self.mine}
        may_go = [n for n in self.mine if by[n] == keys.retired] or [n for n in self.mine if by[n] != keys.kept]
        if not may_go:
            return False
        name = self.dice.choice(may_go)
        self.mine.remove(name)
        way = self.dice.random()
        if way < 0.3:
            api.edit("pods", "default", name, status={"phase": "Succeeded"})
        elif way < 0.6:
            api.edit("pods", "default", name, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
            self.stopping.wait(0.2)
        api.delete("pods", "default", name)
        return True
