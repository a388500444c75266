#!/usr/bin/python3
"""placement_bound.py NODES.csv PODS.csv: how much of the cards any scheduler could allocate at most, in percent.

The pods that were asked for up to 100 % of the cards, in the mean over all orders (each pod of the trace equally often,
in parts of a pod where need be), packed into cards so that the shares on a card fit together; CPU and memory summed over
all nodes of a kind. It forgets more than it knows (a node's CPU is its own, pods come one at a time, parts of pods do
not exist), so nobody reaches it.

A linear program with a column for each way to fill a card. Its Lagrangian (a price for each shape of pod, for CPU and
for memory of each kind of node) bounds it from above whatever the prices; they are bettered step by step, and the least
value counts.
"""
import argparse
import collections
import csv

CARD = 1000
GRAIN = 10  # milli; all shares of the trace are multiples
Shape = collections.namedtuple("Shape", "cpu memory cards milli models")


def read(nodes_csv, pods_csv):
    kinds, shapes = collections.Counter(), collections.Counter()
    with open(nodes_csv, encoding="utf-8") as f:
        for n in csv.DictReader(f):
            kinds[(n["model"], int(n["gpu"]), int(n["cpu_milli"]) / 1000, int(n["memory_mib"]) / 4096)] += 1
    with open(pods_csv, encoding="utf-8") as f:
        for p in csv.DictReader(f):
            cards = int(p["num_gpu"])
            if cards:
                shapes[Shape(int(p["cpu_milli"]) / 1000, int(p["memory_mib"]) / 4096, cards, int(p["gpu_milli"]),
                             frozenset(filter(None, (p.get("gpu_spec") or "").split("|"))))] += 1
    return kinds, shapes


def fill_card(items):
    """The dearest way to fill a card with (milli, value, what); [what, ...] and its value."""
    best, taken = [0.0] * (CARD // GRAIN + 1), [None] * (CARD // GRAIN + 1)
    for room in range(1, CARD // GRAIN + 1):
        best[room], taken[room] = best[room - 1], None
        for milli, value, what in items:
            units = -(-milli // GRAIN)
            if units <= room and best[room - units] + value > best[room] + 1e-12:
                best[room], taken[room] = best[room - units] + value, (units, what)
    room, out = CARD // GRAIN, []
    while room > 0:
        if taken[room] is None:
            room -= 1
        else:
            out.append(taken[room][1])
            room -= taken[room][0]
    return best[-1], out


class Bound:
    def __init__(self, kinds, shapes):
        self.kinds, self.shapes = list(kinds.items()), list(shapes)
        self.total = sum(kind[1] * n for kind, n in self.kinds) * CARD
        asked = sum(s.cards * s.milli * n for s, n in shapes.items())
        self.demand = [shapes[s] * self.total / asked for s in self.shapes]
        self.size = [s.cards * s.milli for s in self.shapes]
        self.may = [[t for t, s in enumerate(self.shapes) if s.cards <= kind[1] and (not s.models or kind[0] in s.models)]
                    for kind, _ in self.kinds]
        self.price = [0.0] * len(self.shapes)  # for each milli of the shape
        self.cpu, self.memory = [0.0] * len(self.kinds), [0.0] * len(self.kinds)

    def items(self, k):
        """By size of share the dearest shape: of a pod's value what is left after its prices, for one card."""
        dearest = {}
        for t in self.may[k]:
            s = self.shapes[t]
            value = (self.size[t] * (1 - self.price[t]) - s.cpu * self.cpu[k] - s.memory * self.memory[k]) / s.cards
            if value > dearest.get(s.milli, (0,))[0]:
                dearest[s.milli] = (value, t)
        return [(milli, value, t) for milli, (value, t) in dearest.items()]

    def step(self):
        """The bound at these prices, and the slope of it for each."""
        value = sum(d * size * p for d, size, p in zip(self.demand, self.size, self.price))
        by_price = [d * size for d, size in zip(self.demand, self.size)]
        by_cpu, by_memory = [], []
        for k, (kind, n) in enumerate(self.kinds):
            _, cards, cpu, memory = kind
            best, chosen = fill_card(self.items(k))
            value += n * (cards * best + cpu * self.cpu[k] + memory * self.memory[k])
            left_cpu, left_memory = n * cpu, n * memory
            for t in chosen:
                s = self.shapes[t]
                by_price[t] -= n * cards / s.cards * self.size[t]
                left_cpu -= n * cards / s.cards * s.cpu
                left_memory -= n * cards / s.cards * s.memory
            by_cpu.append(left_cpu)
            by_memory.append(left_memory)
        return value, by_price, by_cpu, by_memory

    def run(self, steps, aim):
        """aim: a value that the bound cannot fall below (somebody allocated so much)."""
        least, since, reach = self.total, 0, 1.0
        for _ in range(steps):
            value, *slopes = self.step()
            since += 1
            if value < least - self.total * 1e-5:
                least, since = value, 0
            if since > 20:
                reach, since = reach * 0.7, 0
            # CPU and memory are dearer than a milli: a core goes with some 100 milli of a card.
            scale = (1.0, 1e4, 1e4)
            steep = sum(x * x * c for slope, c in zip(slopes, scale) for x in slope)
            if steep == 0 or reach < 1e-3:
                break
            length = reach * (value - aim * self.total / 100) / steep
            for prices, slope, c in zip((self.price, self.cpu, self.memory), slopes, scale):
                for i, x in enumerate(slope):
                    prices[i] = max(prices[i] - length * c * x, 0.0)
        return 100 * least / self.total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes")
    parser.add_argument("pods")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--aim", type=float, default=80.0, help="percent that somebody reached")
    args = parser.parse_args()
    print(f"{Bound(*read(args.nodes, args.pods)).run(args.steps, args.aim):.2f}")


if __name__ == "__main__":
    main()
