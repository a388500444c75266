"""Late binding under HAMi's resources as its tests look at it: what a program inside the container sees, and what the agent
keeps and counts."""
import contextlib
import json
import re
import shutil
import signal
import tempfile
import time
import urllib.request

from node.base import MIB, Pod, wait_until
from node.hami import LOCK, HamiNode, serve_hami
from node.scenarios import SHELL


class LateNode(HamiNode):
    def knows(self, manifest):
        """Until the agent's watch has told all pods."""
        def known():
            with contextlib.suppress(OSError):  # it starts just now
                return metric(self, "hami_agent_pods")
        wait_until("the agent knows the pods", 20, lambda: known() == len(self.api.all("pods")))
        return manifest


def seen(node, name, container="c"):
    """The last that `vgpu-probe info` said in this container."""
    def lines():
        return [line for line in node.output(name, container).splitlines() if '"devices"' in line and line.endswith("}")]
    return json.loads(wait_until(f"{name}/{container} says what it sees", 30, lines)[-1])


def check(node, name, shares, container="c"):
    """shares: [(uuid, MiB), ...]: exactly these cards, each with this total."""
    got = {d["uuid"]: d["total"] for d in seen(node, name, container)["devices"]}
    assert got == {uuid: mib * MIB for uuid, mib in shares}, (name, container)


def check_license(node, place):
    """What HAMi's image may bring besides, as a container sees it: read-only, each only where the node has it."""
    says = SHELL + ["cat /tmp/license; echo x >/tmp/license || echo kept; vgpuvalidator; ls /usr/bin/vgpuvalidator; exec sleep 1000"]
    folder, cards = node.hook / "vgpu", node.uuids()

    def said(name):
        place(Pod.one(name, says), [[(cards[0], 700, 0)]])
        node.wait_running([name], seconds=20)
        return wait_until(f"{name} says what it has", 20, lambda: "vgpuvalidator" in node.output(name) and node.output(name))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / "license").write_text("license of the test\n")
        out = said("licensed")
        assert "license of the test" in out and "kept" in out and "validated" not in out
        (folder / "vgpuvalidator").write_text("#!/bin/sh\necho validated\n")
        (folder / "vgpuvalidator").chmod(0o755)
        assert "license of the test\n" in (out := said("validated")) and "\nvalidated\n" in out
    finally:
        for name in ("license", "vgpuvalidator"):
            (folder / name).unlink(missing_ok=True)
    assert "license of the test" not in said("bare")


def claims(node):
    """Each claim's lines as a dictionary; cards as a list."""
    found = []
    for path in (node.state / "claims").iterdir():
        if not path.name.isdigit():
            continue
        try:
            text = path.read_text()
        except FileNotFoundError:  # it has just ended
            continue
        lines = [line.partition("=")[::2] for line in text.splitlines() if "=" in line]
        found.append({**dict(lines), "cards": [v for k, v in lines if k == "card"]})
    return found


def metric(node, name, **labels):
    """The value on the agent's /metrics."""
    port = re.findall(r"serving metrics .*port=(\d+)", node.agent_log.read_text())[-1]
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    inside = ",".join(f'{k}="{v}"' for k, v in labels.items())
    return float(re.search(rf"^{name}{re.escape('{' + inside + '}') if inside else ''} (\S+)$", text, re.M).group(1))


def claims_of(node, name):
    return [c for c in claims(node) if c["pod_name"] == name]


def claim_of(node, name, container="c"):
    (found,) = [c for c in claims_of(node, name) if c["container"] == container]
    return found


def events(node, name):
    return [o["message"] for o in node.api.all("events") if o["involvedObject"].get("name") == name]


def restart_agent(node, *flags, signo=signal.SIGKILL):
    node.stop_agent(signo)
    node.start_agent(*flags)
    wait_until("registered again", 30, lambda: node.allocatable() > 0)


def lock_for(node, name):
    """HAMi's scheduler takes the node's lock for a pod, and then binds it."""
    pod = node.api.objects.get(("pods", "default", name), {"metadata": {}})
    bound = int(pod["metadata"].get("annotations", {}).get("hami.io/bind-time", time.time()))
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(bound))
    node.api.edit("nodes", None, node.name, metadata={"annotations": {LOCK: f"{when},default,{name}"}})


def late_node():
    """A module's `node` fixture: yield from late_node()."""
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    it = LateNode(folder, card_file="t4x2.yaml", split=10)
    try:
        serve_hami(it)
        yield it
    finally:
        it.down()
        shutil.rmtree(folder, ignore_errors=True)
