"""How soon the kubelet knows of a sick card, and what looking after 16 cards costs: 1,000 slots each, 80 containers at work
that the same thread samples."""
import subprocess
import threading
import time

from bench_agent import EIGHT_CARDS, agent, make_node, simulated
from bench_shares import MS, Node, begin, worker_ns
from figures import Figure, median
from grpc_peers import messages

CARDS, SLOTS, CONTAINERS, ROUNDS, COST_S = 16, 1000, 80, 5, 8


class Kubelet(threading.Thread):
    """The device list as it comes, and when."""

    def __init__(self, caller):
        super().__init__(daemon=True)
        self.stream = caller.list_and_watch(messages().Empty(), timeout=600)
        self.lists, self.came = [], threading.Condition()
        self.start()

    def run(self):
        try:
            for answer in self.stream:
                sick = {d.ID.split("::")[0] for d in answer.devices if d.health == "Unhealthy"}
                with self.came:
                    self.lists.append((time.monotonic(), sick))
                    self.came.notify_all()
        except Exception:  # the stream's end, by cancel
            pass

    def told(self, uuid, seconds=30):
        """When a list came in which this card is sick."""
        with self.came:
            if not self.came.wait_for(lambda: any(uuid in sick for _, sick in self.lists), seconds):
                raise RuntimeError(f"the kubelet was not told of {uuid}")
            return next(at for at, sick in self.lists if uuid in sick)


def core_percent(pid):
    before = worker_ns(pid)
    time.sleep(COST_S)
    return (worker_ns(pid) - before) / 1e7 / COST_S


def measure(context):
    folder = context.folder / "health"
    folder.mkdir()
    description = make_node(EIGHT_CARDS, CARDS, folder / "node16.yaml")
    simctl = [str(context.build / "bin/hami-simctl"), "--dir", str(folder / "sim")]
    with simulated(context, folder, description) as sim, agent(context, folder, sim, SLOTS) as (process, _ms, socket):
        on = Node(context, folder, sim, process, socket)
        time.sleep(2)
        yield Figure("agent.health_16_cards_core", "%", core_percent(process.pid), goal="<= 0.5")
        containers = [(n % CARDS, on.container(n % CARDS, 1)) for n in range(CONTAINERS)]
        children = [on.load(c, 1000 * MS, 1, 3600, card, preload=False) for card, c in containers]
        kubelet = Kubelet(on.caller)
        begin(children)
        time.sleep(2)
        took = []
        for card in range(ROUNDS):
            begun = time.monotonic()
            subprocess.run([*simctl, "gpu", str(card), "xid", "74"], check=True, timeout=60)
            took.append(1000 * (kubelet.told(on.cards[card]) - begun))
        kubelet.stream.cancel()
        for child in children:
            child.kill()
            child.communicate()
        on.caller.close()
    yield Figure("agent.health_16x1000_told_ms", "ms", median(took), goal="<= 2000")
    yield Figure("agent.health_16x1000_told_worst_ms", "ms", max(took), goal="<= 2000")
