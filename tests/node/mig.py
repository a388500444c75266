"""Simulated nodes whose cards can MIG."""
from node.base import REPO

CARD = 'cpus: "48-63,176-191"}'


def a100_node(path, cards, extra=""):
    """A node file of so many A100 40GB as `cards` has texts, each put behind a card's keys ("mig: true, mig_instances:
    [...]"; "": as the file has it)."""
    lines = (REPO / "sim/nodes/a100x8-nvlink.yaml").read_text().splitlines(keepends=True)
    out, at = [], 0
    for line in lines:
        if line.startswith("  - {model: a100"):
            if at < len(cards):
                out.append(line.rstrip()[:-1] + (f", {cards[at]}" if cards[at] else "") + "}\n")
            at += 1
        elif line.startswith("topology:"):
            break
        else:
            out.append(line)
    n = len(cards)
    if n > 1:
        out.append("topology:\n" + "".join(
            "  - [" + ", ".join("X" if i == j else "SYS" for j in range(n)) + "]\n" for i in range(n)))
    path.write_text("".join(out) + extra)
    return path


def instances(*what):
    """instances(("1g.5gb", 0), ...): a card in MIG mode with these."""
    return "mig: true, mig_instances: [" + ", ".join(f"{{profile: {p}, start: {s}}}" for p, s in what) + "]"
