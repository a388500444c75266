"""What the agent must hold on any node: the same checks for the real kubelet and for hami-simkubelet. pytest collects them
through a module that imports this one and has a `node` fixture (a started Node with its agent registered)."""
import concurrent.futures
import json
import os
import signal
import time

from node.base import MIB, Container, Pod, wait_until

PROBE = "/bin/vgpu-probe"
SHELL = ["/bin/sh", "-c"]


def probe_json(text):
    """The last JSON line of a probe's output."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    assert lines, f"the probe printed no JSON: {text!r}"
    return json.loads(lines[-1])


def slice_bytes(node, count=1):
    """What `count` slots amount to, from the driver's own figures: whole MiB of what the driver leaves of the card / slots."""
    if node.slot_mib:
        return count * node.slot_mib * MIB
    card = node.driver_status()["cards"][0]
    return count * ((card["total_bytes"] - card["reserved_bytes"]) // node.slots // MIB) * MIB


def hold(seconds=1000, mib=64):
    return SHELL + [f"{PROBE} info; exec {PROBE} alloc {mib} --hold {seconds}"]


def driver_cards(node):
    return {c["uuid"]: c for c in node.driver_status()["cards"]}


def test_one_slice_is_held_to_its_memory(node):
    node.create(Pod.one("one", [PROBE, "fill"]))
    node.wait_phase("one", "Succeeded")
    seen = probe_json(node.output("one"))
    want = slice_bytes(node)
    assert seen["name"] == "CUDA_ERROR_OUT_OF_MEMORY"
    assert seen["granted"] <= want
    assert seen["granted"] > want * 3 // 4, "most of the slice can be used"
    node.delete("one")


def test_two_slots_are_one_vgpu_of_double_size(node):
    node.create(Pod.one("two", [PROBE, "info"], vgpu=2))
    node.wait_phase("two", "Succeeded")
    seen = probe_json(node.output("two"))
    assert seen["count"] == 1
    assert seen["devices"][0]["total"] == slice_bytes(node, 2)
    assert seen["devices"][0]["info_total"] == slice_bytes(node, 2)
    uuid, _, number = seen["HAMI_VGPU_UUID"].partition("/")
    assert uuid in driver_cards(node) and number.isdigit()
    assert seen["devices"][0]["uuid"] == uuid
    node.delete("two")


def test_the_pods_own_environment_cannot_widen_the_slice(node):
    env = {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_DEVICE_MEMORY_LIMIT": "900g", "CUDA_DISABLE_CONTROL": "true",
           "HAMI_VGPU_UUID": "GPU-mine/0"}
    node.create(Pod.one("hostile", [PROBE, "info"], env=env))
    node.wait_phase("hostile", "Succeeded")
    seen = probe_json(node.output("hostile"))
    assert seen["count"] == 1
    assert seen["devices"][0]["total"] == slice_bytes(node)
    assert seen["NVIDIA_VISIBLE_DEVICES"] == seen["devices"][0]["uuid"]
    assert seen["HAMI_VGPU_UUID"].startswith(seen["devices"][0]["uuid"] + "/")
    node.delete("hostile")


def test_two_processes_share_one_slice(node):
    mib = slice_bytes(node) // MIB * 2 // 3
    node.create(Pod.one("pair", [PROBE, "pair", str(mib)]))
    node.wait_phase("pair", "Succeeded")
    results = sorted(p["name"] for p in probe_json(node.output("pair"))["processes"])
    assert results == ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_SUCCESS"]
    node.delete("pair")


def test_containers_of_one_pod_have_slices_of_their_own(node):
    """Init container, sidecar, second init and two main containers: the sets that the kubelet reuses (real-cluster facts)."""
    def seen(name, **kw):
        return Container(SHELL + [f"{PROBE} info"] if not kw.get("sidecar") else SHELL + [f"{PROBE} info; exec sleep 1000"],
                         kw.pop("vgpu", 1), name, **kw)
    node.create(Pod("many", [seen("i1", init=True, vgpu=2), seen("side", sidecar=True), seen("i2", init=True), seen("a"), seen("b")]))
    node.wait_phase("many", "Succeeded", "Running")
    wait_until("both main containers wrote", 30,
               lambda: all("{" in node.output("many", c) for c in ("a", "b")), every=0.2)
    for name, count in (("i1", 2), ("side", 1), ("i2", 1), ("a", 1), ("b", 1)):
        got = probe_json(node.output("many", name))
        assert got["devices"][0]["total"] == slice_bytes(node, count), name
    node.delete("many")


def test_a_restarted_container_keeps_its_slice_and_starts_empty(node):
    node.create(Pod.one("again", hold(), restart="Always"))
    node.wait_running(["again"])
    first = wait_until("the probe's first line", 30, lambda: node.output("again") if "{" in node.output("again") else None)
    node.kill_container("again")
    wait_until("a restart", 60, lambda: node.restarts("again") >= 1, every=0.2)
    second = wait_until("the second container's line", 60,
                        lambda: node.output("again") if "{" in node.output("again") else None, every=0.2)
    one, two = (json.loads(next(x for x in t.splitlines() if x.startswith("{"))) for t in (first, second))
    assert one["HAMI_VGPU_UUID"] == two["HAMI_VGPU_UUID"]
    assert two["devices"][0]["total"] == slice_bytes(node)
    assert two["devices"][0]["info_free"] == one["devices"][0]["info_free"], "the dead process's charge came back"
    node.delete("again")


def test_kubelet_restart_leaves_the_pod_alone(node):
    node.create(Pod.one("stay", hold(), restart="Always"))
    node.wait_running(["stay"])
    uid = node.uid("stay")
    node.restart_kubelet()
    wait_until("allocatable after the kubelet's restart", 30, lambda: node.allocatable() > 0, every=0.2)
    node.settle()
    assert (node.uid("stay"), node.phase("stay"), node.restarts("stay")) == (uid, "Running", 0)
    node.create(Pod.one("next", [PROBE, "info"]))
    node.wait_phase("next", "Succeeded")
    node.delete("stay", "next")


def test_agent_killed_and_started_under_a_running_pod(node):
    node.create(Pod.one("under", hold(), restart="Always"))
    node.wait_running(["under"])
    wait_until("earlier pods' files are gone", 30, node.holds_one, every=0.2)
    before = node.leftovers()
    node.stop_agent(signal.SIGKILL)
    node.start_agent()
    node.wait_registered()
    wait_until("allocatable after the agent's restart", 30, lambda: node.allocatable() > 0, every=0.2)
    assert node.phase("under") == "Running" and node.restarts("under") == 0
    wait_until("what belongs to the running pod, neither lost nor doubled", 10, lambda: node.leftovers() == before, every=0.2)
    node.create(Pod.one("after", [PROBE, "info"]))
    node.wait_phase("after", "Succeeded")
    node.kill_container("under")
    wait_until("a restart under the new agent", 60, lambda: node.restarts("under") >= 1, every=0.2)
    node.delete("under", "after")


def test_agent_killed_in_the_middle_of_allocate(node):
    wait_until("nothing left of earlier pods", 30, node.no_leftovers, every=0.2)
    pid = node.agent_pid()
    os.kill(pid, signal.SIGSTOP)
    node.create(Pod.one("torn", [PROBE, "info"]))
    time.sleep(1.5)  # the kubelet's Allocate now waits for an answer
    node.stop_agent(signal.SIGKILL)
    node.start_agent()
    node.wait_phase("torn", "Failed", "Succeeded", "Running", seconds=90)
    node.delete("torn")
    wait_until("slot, spec, folder and claim are gone", 30, node.no_leftovers, every=0.2)
    node.wait_registered()
    node.create(Pod.one("whole", [PROBE, "info"]))
    node.wait_phase("whole", "Succeeded")
    node.delete("whole")


def check_a_new_configuration_drops_no_pod(node):
    """What can change in place does; for the rest the agent is made anew in its process. Whoever runs goes on, and keeps his
    size when he starts again. The file is a link's target elsewhere, which nobody watches: SIGHUP tells."""
    elsewhere, config = node.folder / "elsewhere", node.folder / "agent.yaml"
    elsewhere.mkdir()
    (elsewhere / "agent.yaml").write_text("v: 4\n")
    config.symlink_to(elsewhere / "agent.yaml")

    def configure(text, said):
        before = node.agent_log.read_text().count(said)
        (elsewhere / "agent.yaml").write_text(text)
        time.sleep(0.5)
        assert node.agent_log.read_text().count(said) == before, "nobody has told it"
        os.kill(node.agent_pid(), signal.SIGHUP)
        wait_until(said, 20, lambda: node.agent_log.read_text().count(said) > before)
        wait_until("allocatable", 30, lambda: node.allocatable() > 0, every=0.2)
    node.stop_agent()
    node.start_agent(f"--config={config}")
    wait_until("allocatable", 60, lambda: node.allocatable() > 0, every=0.2)
    try:
        node.create(Pod.one("stay", hold(), restart="Always"))
        node.wait_running(["stay"])
        uid, pid = node.uid("stay"), node.agent_pid()
        configure("v: 4\nmemory-mb-per-core: 1000\n", "the configuration has changed")
        configure("v: 4\nmemory-mb-per-core: 1000\nhealth-recovery-seconds: 61\n", "made anew")
        node.settle()
        assert (node.uid("stay"), node.phase("stay"), node.restarts("stay")) == (uid, "Running", 0)
        assert node.agent_pid() == pid
        node.create(Pod.one("next", [PROBE, "info"]))
        node.wait_phase("next", "Succeeded")
        assert probe_json(node.output("next"))["devices"][0]["total"] == 1000 * MIB
        node.kill_container("stay")
        wait_until("a restart", 60, lambda: node.restarts("stay") >= 1 and '"devices"' in node.output("stay"), every=0.2)
        seen = next(line for line in node.output("stay").splitlines() if '"devices"' in line)
        assert json.loads(seen)["devices"][0]["total"] == slice_bytes(node)
    finally:
        node.delete("stay", "next")
        node.stop_agent()
        node.start_agent()
        wait_until("allocatable", 60, lambda: node.allocatable() > 0, every=0.2)


def test_what_an_ended_pod_had_is_removed(node):
    node.create(Pod.one("gone", [PROBE, "info"]))
    node.wait_phase("gone", "Succeeded")
    assert len(node.leftovers()["claims"]) >= 1
    node.delete("gone")
    wait_until("spec, folder and claim are gone", 60, node.no_leftovers, every=0.2)
    assert all(c["used_bytes"] == c["reserved_bytes"] and not c["processes"] for c in node.driver_status()["cards"])


def vgpu_of(node, pod):
    return next(v for v in node.smi()["vgpus"] if v["pod"]["name"] == pod)


def test_hami_smi_shows_the_holder_until_it_is_killed(node):
    """A process ends by SIGKILL, its container lives on and asks for nothing: its memory is given back all the same."""
    mib = slice_bytes(node) // MIB // 3
    script = f"{PROBE} alloc {mib} --hold 1000 & echo $! > /tmp/pid; wait; exec sleep 1000"
    node.create(Pod.one("shown", SHELL + [script]))
    node.wait_running(["shown"])
    shown = wait_until("hami-smi shows the holder's memory", 30,
                       lambda: (lambda v: v if v["cards"][0]["memory_used"] >= mib * MIB else None)(vgpu_of(node, "shown")), every=0.2)
    assert shown["container"] == "c" and shown["usage"]["processes"] == 1
    assert shown["cards"][0]["memory_limit"] == slice_bytes(node)
    node.execute("shown", SHELL + ["kill -9 $(cat /tmp/pid)"])
    since = time.monotonic()
    wait_until("the charge is given back", 10, lambda: vgpu_of(node, "shown")["cards"][0]["memory_used"] == 0, every=0.02)
    took = time.monotonic() - since
    print(f"given back after {took:.2f} s")
    assert took < 3, "within a second, were the machine idle"
    assert vgpu_of(node, "shown")["usage"]["processes"] == 0
    node.delete("shown")


def test_a_container_that_ruins_its_region_harms_itself_alone(node):
    """It gets nothing more, and is shown with what is wrong; agent, hami-smi and neighbour go on."""
    mib = slice_bytes(node) // MIB // 3
    script = f"{PROBE} alloc {mib} --hold 1000 & echo $! > /tmp/pid; wait; exec sleep 1000"
    node.create(Pod.one("vandal", SHELL + [script]), Pod.one("neighbour", SHELL + [script]))
    node.wait_running(["vandal", "neighbour"])
    region = "/run/hami-vgpu/usage/region"

    def used(pod):
        return vgpu_of(node, pod)["cards"][0]["memory_used"]
    wait_until("both hold their memory", 30, lambda: min(used("vandal"), used("neighbour")) >= mib * MIB, every=0.2)
    for harm in (f"printf %020000d 7 > {region}", f": > {region}"):
        node.execute("vandal", SHELL + [harm])
        assert vgpu_of(node, "vandal")["usage"]["state"] != "ok", harm
        answer = probe_json(node.execute("vandal", [PROBE, "alloc", "1"]))
        assert answer["name"] == "CUDA_ERROR_OUT_OF_MEMORY", harm
    assert used("neighbour") >= mib * MIB
    node.execute("neighbour", SHELL + ["kill -9 $(cat /tmp/pid)"])
    wait_until("the agent still gives back what the dead held", 10, lambda: used("neighbour") == 0)
    node.delete("vandal", "neighbour")


def test_pods_beyond_the_slots_wait(node):
    """Every slot is taken once, no two containers share one, and the one too many waits."""
    total = node.allocatable()
    names = [f"fill{i}" for i in range(total)]
    node.create(*[Pod.one(n, ["/bin/sleep", "1000"]) for n in names])
    node.wait_running(names)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        slots = list(pool.map(lambda n: probe_json(node.execute(n, [PROBE, "info"]))["HAMI_VGPU_UUID"], names))
    assert len(set(slots)) == total
    node.create(Pod.one("toomany", [PROBE, "info"]))
    time.sleep(1)
    assert node.phase("toomany") in ("Pending", "Failed")
    node.delete(names[0])
    if node.phase("toomany") == "Pending":
        node.wait_phase("toomany", "Succeeded", seconds=90)
    node.delete("toomany", *names[1:])
