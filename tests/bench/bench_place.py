"""What choosing a node costs as the cluster grows, without the scheduler around it: CPU time of place_pod."""
import json
import subprocess

from figures import Figure, median

CALLS = 300
# nodes, candidates named, goal for p99 in microseconds. With percentageOfNodesToScore: 100, as in the example, kube-scheduler
# names all that the pod may go to; by its default 500 of 5,000.
SIZES = [(100, 100, None), (1000, 500, "<= 1000"), (5000, 500, "<= 1000"), (20000, 500, "<= 1000"), (5000, 5000, "<= 10000"),
         (20000, 20000, None)]
# The dearest policy measures every node that would do: what /filter may take in all.
FGD_SIZES = [(5000, 500, "<= 2000"), (5000, 5000, "<= 10000")]
# Joined cards a node, those wanted; eight of sixteen may stand in 12,870 ways on each of the nodes.
TOPOLOGY = [(8, 4, "<= 10000"), (16, 8, "<= 100000")]


def runs_of(context, program, *args):
    """What each of some runs printed."""
    command = [str(context.build / "tests" / program), *map(str, args)]
    return [json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)
            for _ in range(min(context.rounds, 5))]


def measure(context):
    for nodes, candidates, goal in SIZES:
        runs = runs_of(context, "place_bench", nodes, candidates, CALLS)
        of = f"place_{candidates}_of_{nodes}"
        yield Figure(f"sched.{of}_p50_us", "us", median([r["p50_us"] for r in runs]))
        yield Figure(f"sched.{of}_p99_us", "us", median([r["p99_us"] for r in runs]), goal=goal)
        if candidates == 500 and nodes == 5000:
            yield Figure("sched.node_bytes", "B", median([r["node_bytes"] for r in runs]))
            yield Figure("sched.holding_bytes", "B", median([r["holding_bytes"] for r in runs]), goal="<= 1000")
    for nodes, candidates, goal in FGD_SIZES:
        runs = runs_of(context, "place_bench", nodes, candidates, CALLS, "fgd")
        yield Figure(f"sched.place_fgd_{candidates}_of_{nodes}_p50_us", "us", median([r["p50_us"] for r in runs]))
        yield Figure(f"sched.place_fgd_{candidates}_of_{nodes}_p99_us", "us", median([r["p99_us"] for r in runs]), goal=goal)
    for cards, want, goal in TOPOLOGY:
        runs = runs_of(context, "topology_bench", 5000, cards, want, 20)
        yield Figure(f"sched.place_topology_{want}_of_{cards}_p99_us", "us", median([r["p99_us"] for r in runs]), goal=goal,
                     why="cards side by side on each of 5,000 nodes, all named")
