"""Children that stop on their way, and the books at each stop."""
import json
import sys

import pytest

MIB = 1 << 20


def release(*children):
    """They wait for a line."""
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()


class Steps:
    """Runs code in a container, which calls stop() of driver.py."""

    def __init__(self, made, code):
        self.made = made
        self.child = made.start([sys.executable, "-c", "from driver import *\nimport json\n" + code])
        self.said = ""

    def line(self):
        return self.child.stdout.readline()

    def go(self):
        release(self.child)

    def next(self):
        """MiB charged on each card at the next stop, which the driver's books must say too; None: the child has ended."""
        self.said = self.line()
        if self.said != "stop\n":
            return None
        cards = self.made.node.status()["cards"]
        driver = {card["uuid"]: sum(p["bytes"] for p in card["processes"]) for card in cards}
        region = {card["uuid"]: card["used"] for card in self.made.snapshot()["cards"]}
        if {uuid: driver[uuid] for uuid in region} != region:
            self.child.kill()
            pytest.fail(f"the region says {region}, the driver {driver}")
        self.go()
        return [region[uuid] // MIB for uuid in self.made.node.cards if uuid in region]

    def end(self):
        """What the child printed last, as JSON."""
        out, err = self.child.communicate(timeout=60)
        assert self.child.returncode == 0, err
        text = (self.said if self.said != "stop\n" else "") + out
        return json.loads(text) if text.strip() else None


def run(made, code):
    """(charges at each stop, what the child printed)"""
    s, charges = Steps(made, code), []
    while (charge := s.next()) is not None:
        charges.append(charge)
    return charges, s.end()
