#!/usr/bin/python3
"""placement_bound.py NODES.csv PODS.csv: how much of the cards any scheduler could allocate at most, in percent.

The pods that were asked for up to 100 % of the cards, in the mean over all orders (each pod of the trace equally often,
in parts of a pod where need be), packed into cards so that the shares on a card fit together; CPU and memory summed over
all nodes of a kind. It forgets more than it knows (pods come one at a time and are not known beforehand, a node's CPU is
its own, parts of pods do not exist), so nobody reaches it.

A linear program with a column for each way to fill a card of a kind, solved by the simplex method; columns are made as
they are needed, by the prices that the rows have at the time (Gilmore and Gomory's cutting stock). What is printed is
not the program's value but what the prices prove: whatever they are, no allocation is worth more (weak duality). So a
slip of the method would make it weaker, never wrong.
"""
import argparse
import collections
import csv

CARD = 1000
GRAIN = 10  # milli; all shares of the trace are multiples
CLOSE = 0.005  # percent between what is allocated and what is proven: done
SMALL = 1e-9
Shape = collections.namedtuple("Shape", "cpu memory cards milli models")
Kind = collections.namedtuple("Kind", "model cards cpu memory")


def read(nodes_csv, pods_csv):
    kinds, shapes = collections.Counter(), collections.Counter()
    with open(nodes_csv, encoding="utf-8") as f:
        for n in csv.DictReader(f):
            kinds[Kind(n["model"], int(n["gpu"]), int(n["cpu_milli"]) / 1000, int(n["memory_mib"]) / 4096)] += 1
    with open(pods_csv, encoding="utf-8") as f:
        for p in csv.DictReader(f):
            cards = int(p["num_gpu"])
            if cards:
                shapes[Shape(int(p["cpu_milli"]) / 1000, int(p["memory_mib"]) / 4096, cards, int(p["gpu_milli"]),
                             frozenset(filter(None, (p.get("gpu_spec") or "").split("|"))))] += 1
    return kinds, shapes


def fill_card(items):
    """The dearest way to fill a card with (milli, value, what); its value and [what, ...]."""
    best, taken = [0.0] * (CARD // GRAIN + 1), [None] * (CARD // GRAIN + 1)
    sized = [(-(-milli // GRAIN), value, what) for milli, value, what in items]
    for room in range(1, CARD // GRAIN + 1):
        best[room] = best[room - 1]
        for units, value, what in sized:
            if units <= room and best[room - units] + value > best[room] + SMALL:
                best[room], taken[room] = best[room - units] + value, (units, what)
    room, out = CARD // GRAIN, []
    while room > 0:
        if taken[room] is None:
            room -= 1
        else:
            out.append(taken[room][1])
            room -= taken[room][0]
    return best[-1], out


class Simplex:
    """Maximizes worth * x, rows * x <= limits, x >= 0; columns come one by one. Begins with nothing taken."""

    def __init__(self, limits):
        n = len(limits)
        self.inverse = [[float(i == j) for j in range(n)] for i in range(n)]
        # Limits differ a little, so that rows are not exhausted together: it would turn in circles.
        self.x = [limit * (1 + 1e-7 * (i % 97 + 1)) + 1e-7 for i, limit in enumerate(limits)]
        self.prices = [0.0] * n
        self.value = 0.0

    def enter(self, column, gain):
        """column: [(row, amount)]; gain: its worth less its price."""
        along = [sum(row[at] * amount for at, amount in column) for row in self.inverse]
        steps = [(self.x[i] / a, i) for i, a in enumerate(along) if a > SMALL]
        step, out = min(steps)
        pivot = [v / along[out] for v in self.inverse[out]]
        touched = [(j, v) for j, v in enumerate(pivot) if v != 0.0]
        for i, a in enumerate(along):
            if i == out or a == 0.0:
                continue
            row = self.inverse[i]
            for j, v in touched:
                row[j] -= a * v
            self.x[i] = max(self.x[i] - step * a, 0.0)
        self.inverse[out], self.x[out] = pivot, step
        for j, v in touched:
            self.prices[j] += gain * v
        self.value += gain * step


class Bound:
    def __init__(self, kinds, shapes):
        self.kinds, self.shapes = list(kinds.items()), list(shapes)
        self.total = sum(kind.cards * n for kind, n in self.kinds) * CARD
        asked = sum(s.cards * s.milli * n for s, n in shapes.items())
        self.may = [[t for t, s in enumerate(self.shapes) if s.cards <= kind.cards and (not s.models or kind.model in s.models)]
                    for kind, _ in self.kinds]
        # Rows: each shape's pods; of each kind of node its cards, its CPU, its memory.
        self.limits = [shapes[s] * self.total / asked for s in self.shapes]
        for kind, n in self.kinds:
            self.limits += [n * kind.cards, n * kind.cpu, n * kind.memory]

    def fill(self, k, prices):
        """The dearest filling of a card of the kind at these prices, but that of the card: its value and shapes."""
        at, dearest = len(self.shapes) + 3 * k, {}
        for t in self.may[k]:
            s = self.shapes[t]
            value = s.milli - (max(prices[t], 0) + s.cpu * max(prices[at + 1], 0) + s.memory * max(prices[at + 2], 0)) / s.cards
            if value > dearest.get(s.milli, (0,))[0]:
                dearest[s.milli] = (value, t)
        return fill_card([(milli, value, t) for milli, (value, t) in dearest.items()])

    def column(self, k, chosen):
        at, sums = len(self.shapes) + 3 * k, collections.Counter()
        sums[at] = 1
        for t in chosen:
            s = self.shapes[t]
            sums[t] += 1 / s.cards
            sums[at + 1] += s.cpu / s.cards
            sums[at + 2] += s.memory / s.cards
        return [(row, amount) for row, amount in sums.items() if amount]

    def run(self, most_steps=20000):
        program, least = Simplex(self.limits), float(self.total)
        for _ in range(most_steps):
            prices = program.prices
            fills = [self.fill(k, prices) for k in range(len(self.kinds))]
            cards = [len(self.shapes) + 3 * k for k in range(len(self.kinds))]
            proven = sum(limit * max(price, 0) for i, (limit, price) in enumerate(zip(self.limits, prices)) if i not in cards)
            proven += sum(self.limits[at] * value for at, (value, _) in zip(cards, fills))
            least = min(least, proven)
            if least - program.value < CLOSE / 100 * self.total:
                break
            # A price below 0: the row is exhausted for nothing.
            gains = [(value - prices[at], k) for k, (at, (value, _)) in enumerate(zip(cards, fills))]
            gain, k = max(gains)
            cheapest = min(range(len(prices)), key=prices.__getitem__)
            if -prices[cheapest] > gain:
                program.enter([(cheapest, 1)], -prices[cheapest])
            elif gain > SMALL:
                program.enter(self.column(k, fills[k][1]), gain)
            else:
                break
        return 100 * least / self.total


def percent(nodes_csv, pods_csv):
    return Bound(*read(nodes_csv, pods_csv)).run()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes")
    parser.add_argument("pods")
    args = parser.parse_args()
    print(f"{percent(args.nodes, args.pods):.2f}")


if __name__ == "__main__":
    main()
