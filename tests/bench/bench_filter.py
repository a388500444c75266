"""/filter of 5,000 nodes with 8 cards each, every card in use, beside /healthz: over one connection that is kept. A third of
the pods fits on one card of one of the named nodes, a third nowhere (with each node's reasons), a third has several
containers. Each answer is checked, after its time was taken.

Those pods come again and again, so that fgd remembers what they cost; beside it stands what it takes where that helps
less: 100 shapes, of which 20 are about at a time and others step by step, each pod new, so that the mix moves, too."""
import contextlib
import json
import pathlib
import random

from asking import Scheduler, ask, filter_request, gpu, kubeconfig_of, latencies_ms, pod
from figures import Figure, median, percentile
from fixed_lists import CARDS, MEMORY, FixedLists, card, holder, node, node_name

NODES, CALLS, NAMED = 5000, 1000, (500, 5000)
# Of each card 1,500 to 3,000 MiB are free, but of one card of the open node.
OPEN, OPEN_CARD, OPEN_MIB, ASKED_MIB = 1234, 5, 20000, 15000
SEVERAL = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "500"}
SHAPES, AT_ONCE, MOVING_NAMED = 100, 20, 500
FGD = ["--node-scheduler-policy=fgd", "--gpu-scheduler-policy=fgd"]
POLICIES = {"": ["--node-scheduler-policy=binpack"], "_fgd": FGD}
PEER = "/healthz in the same run"
HAMI_CPU_MS = 287  # recorded of HAMi v2.10.0: 1,000 nodes, 10,000 pods, 500 named
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def holders(random_):
    """Two pods a node, each with a share on each card."""
    for i in range(2 * NODES):
        name, of_two = node_name(i % NODES), i // NODES
        shares = []
        for k in range(CARDS):
            free = OPEN_MIB if (i % NODES, k) == (OPEN, OPEN_CARD) else random_.randrange(1500, 3000)
            shares.append(f"{card(name, k)},NVIDIA,{40000 if of_two == 0 else MEMORY - 40000 - free},{random_.choice((0, 10))}")
        yield holder(i, name, ":".join(shares) + ":;")


def full_cluster():
    return FixedLists((node(i) for i in range(NODES)), holders(random.Random(1)))


def pod_of(kind, number, named):
    # Few pods, asked for again and again: a pod that is asked for anew gives up what it was promised. There is one
    # "fits", so that the open card is free for it.
    a_pod = pod(kind, **gpu(ASKED_MIB if kind == "fits" else 50000))
    a_pod["metadata"]["uid"] = "fits" if kind == "fits" else f"{kind}-{number}-{named}"
    if kind == "several":
        a_pod["spec"]["containers"] = [{"name": f"c{k}", "resources": {"limits": SEVERAL}} for k in range(3)]
    for container in a_pod["spec"]["containers"]:
        container["resources"]["requests"] = {"cpu": "1500m", "memory": "6Gi"}
    return a_pod


class Call:
    """One request, and what its answer must say."""

    def __init__(self, kind, a_pod, named, random_):
        others = [i for i in range(NODES) if i != OPEN]
        numbers = [*(random_.sample(others, named - 1) if named < NODES else others), OPEN]
        random_.shuffle(numbers)
        self.kind, self.names = kind, [node_name(i) for i in numbers]
        self.text = filter_request(a_pod, self.names)

    def is_anywhere(self, answer):
        return lambda: len(answer["NodeNames"]) == 1 and answer["NodeNames"][0] in self.names

    def check(self, answer):
        refusals = {name: f"{CARDS}/{CARDS} CardInsufficientMemory" for name in self.names}
        good = {"fits": lambda: answer["NodeNames"] == [node_name(OPEN)],
                "nowhere": lambda: answer["NodeNames"] is None and answer["FailedNodes"] == refusals,
                "several": self.is_anywhere(answer), "moving": self.is_anywhere(answer)}[self.kind]
        if answer["Error"] or not good():
            raise RuntimeError(f"{self.kind}, {len(self.names)} named: {str(answer)[:500]}")


def calls_of(named, random_):
    return [Call(kind, pod_of(kind, i, named), named, random_) for i in range(20) for kind in ("fits", "nowhere", "several")]


def shapes(random_):
    """Lists of containers, three in a third of them; small enough that each node has cards for it."""
    def container(k):
        limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(random_.randrange(100, 1500)),
                  "nvidia.com/gpucores": str(random_.choice((0, 5, 10, 20, 30)))}
        requests = {"cpu": f"{random_.randrange(1, 80)}00m", "memory": f"{random_.randrange(1, 33)}Gi"}
        return {"name": f"c{k}", "resources": {"limits": limits, "requests": requests}}
    return [[container(k) for k in range(3 if i % 3 == 2 else 1)] for i in range(SHAPES)]


def moving_calls(all_shapes, number, random_):
    """CALLS new pods. Round by round the same shapes, but not the same pods."""
    calls = []
    for i in range(CALLS):
        a_pod = pod("moving")
        a_pod["metadata"]["uid"] = f"moving-{number}-{i}"
        a_pod["spec"]["containers"] = all_shapes[(i * SHAPES // CALLS + random_.randrange(AT_ONCE)) % SHAPES]
        calls.append(Call("moving", a_pod, MOVING_NAMED, random_))
    return calls


def cpu_ms(scheduler):
    """Of all its threads so far."""
    tasks = pathlib.Path(f"/proc/{scheduler.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e6


class Asked:
    """One scheduler, and what was measured of it."""

    def __init__(self, context, lists, name, policy):
        folder = context.folder / f"scheduler{name}"
        folder.mkdir()
        self.scheduler = Scheduler(context.build, folder).start(kubeconfig_of(lists, folder), *policy)
        self.bare, self.p99, self.cpu, self.cpu_p99 = [], *({n: [] for n in NAMED} for _ in range(3))

    def round(self, random_):
        with self.scheduler.connect() as sock:
            self.bare.append(percentile(latencies_ms(sock, [HEALTHZ], CALLS), 0.99))
            for named in NAMED:
                wall, cpu = self.ask_all(sock, calls_of(named, random_))
                self.p99[named].append(percentile(wall, 0.99))
                self.cpu[named].append(sum(cpu) / CALLS)
                self.cpu_p99[named].append(percentile(cpu, 0.99))

    def moving_round(self, calls):
        """(milliseconds of each call, of the scheduler's CPU)."""
        with self.scheduler.connect() as sock:
            return self.ask_all(sock, calls)

    def ask_all(self, sock, calls):
        """Of CALLS calls: milliseconds, and those of the scheduler's CPU."""
        wall, cpu, before = [], [], cpu_ms(self.scheduler)
        for i in range(CALLS):
            call = calls[i % len(calls)]
            ms, body = ask(sock, call.text)
            after = cpu_ms(self.scheduler)
            wall.append(ms)
            cpu.append(after - before)
            before = after
            call.check(json.loads(body))
        return wall, cpu


def moving_figures(rounds, bare):
    name = f"sched.filter_{MOVING_NAMED}_of_{NODES}_fgd_moving"
    for percent in (50, 99):
        wall, cpu = (median([percentile(of_round[k], percent / 100) for of_round in rounds]) for k in (0, 1))
        yield Figure(f"{name}_p{percent}", "ms", wall, PEER, bare, why=f"{SHAPES} shapes, each pod new: no goal")
        yield Figure(f"{name}_cpu_p{percent}", "ms", cpu, why="CPU of the same calls")


def measure(context):
    random_ = random.Random(2)
    with full_cluster() as lists, contextlib.ExitStack() as ends:
        asked = {suffix: Asked(context, lists, suffix, policy) for suffix, policy in POLICIES.items()}
        moved = Asked(context, lists, "_moving", FGD)
        for it in (*asked.values(), moved):
            ends.callback(it.scheduler.end)
        for it in (*asked.values(), moved):
            it.scheduler.wait_ready()
        all_shapes, moving = shapes(random_), []
        for i in range(context.rounds):
            for it in asked.values():
                it.round(random_)
            moving.append(moved.moving_round(moving_calls(all_shapes, i, random_)))
        for suffix, it in asked.items():
            for named, more in zip(NAMED, (2, 10)):
                yield Figure(f"sched.filter_{named}_of_{NODES}{suffix}_p99", "ms", median(it.p99[named]), PEER, median(it.bare),
                             f"<= peer + {more}")
                yield Figure(f"sched.filter_{named}_of_{NODES}{suffix}_cpu_p99", "ms", median(it.cpu_p99[named]),
                             why="CPU of the same calls: what is above it the machine was busy with others")
            yield Figure(f"sched.filter_500{suffix}_cpu", "ms", median(it.cpu[500]), "HAMi v2.10, of 1,000 nodes, recorded", HAMI_CPU_MS,
                         "<= 0.01 x peer")
        yield from moving_figures(moving, median(asked["_fgd"].bare))
        yield Figure("sched.filter_rss", "MiB", asked[""].scheduler.rss_kib() / 1024, None, None, "<= 500")
