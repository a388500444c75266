"""/filter on the running scheduler: from the API server's objects to an answer, and no call in between."""
import json
import os
import re
import shutil
import socket
import subprocess
import time

from sched_peer import REPO, gpu, pod, wait_until


def start(scheduler, cluster, *flags):
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}", *flags)
    return scheduler


def test_from_objects_to_an_answer(scheduler, cluster):
    for name in ("n1", "n2"):
        cluster.node(name)
    cluster.held("old", "n1", "GPU-n1-0,NVIDIA,30000,0:;")
    start(scheduler, cluster).wait_ready()
    answer = scheduler.filter(pod("a", **gpu(20000)), ["n1", "n2", "n3"])
    assert (answer["NodeNames"], answer["Error"]) == (["n2"], "")
    asked = len(cluster.api.requests)
    # What was promised counts, though the pod is not bound; nothing is written anywhere.
    answer = scheduler.filter(pod("b", **gpu(30000)), ["n1", "n2"])
    assert answer["NodeNames"] is None and not answer["FailedAndUnresolvableNodes"]
    assert answer["FailedNodes"] == {"n1": "1/1 CardInsufficientMemory", "n2": "1/1 CardInsufficientMemory"}
    assert [r for r in cluster.api.requests[asked:] if r.method != "GET" and "/events" not in r.path] == []
    # A node that comes and a pod that goes are seen at once.
    cluster.node("n3")
    wait_until("the new node", 30, lambda: scheduler.filter(pod("b", **gpu(30000)), ["n3"])["NodeNames"] == ["n3"])
    assert scheduler.metric("hami_scheduler_filters_total", result="nowhere") >= 1
    assert scheduler.metric("hami_scheduler_nodes", state="with-cards") == 3
    assert scheduler.metric("hami_scheduler_holding_pods") == 3
    cluster.api.delete("pods", "default", "old")
    wait_until("the freed card", 30, lambda: scheduler.filter(pod("c", **gpu(40000)), ["n1"])["NodeNames"] == ["n1"])


def test_nothing_is_placed_before_the_cluster_is_known(scheduler, cluster):
    cluster.node("n1")
    cluster.api.fault(lambda h: (time.sleep(0.2), h.json(500, {"kind": "Status", "code": 500})), times=3,
                      when=lambda h: h.command == "GET" and "pods" in h.path)
    start(scheduler, cluster)
    assert scheduler.ask("GET", "/readyz")[0] == 503
    answer = scheduler.filter(pod("a", **gpu(20000)), ["n1"])
    assert answer["Error"] == "the scheduler does not know the cluster yet" and answer["NodeNames"] is None
    assert (scheduler.metric("hami_scheduler_ready"), scheduler.metric("hami_scheduler_decides")) == (0, 0)
    # Pods without cards do not wait.
    assert scheduler.filter(pod("b", cpu=1), ["n1", "x"])["NodeNames"] == ["n1", "x"]
    scheduler.wait_ready()
    assert scheduler.filter(pod("a", **gpu(20000)), ["n1"])["NodeNames"] == ["n1"]
    assert (scheduler.metric("hami_scheduler_ready"), scheduler.metric("hami_scheduler_decides")) == (1, 1)


def test_candidates_that_are_cut_short_are_told_of(scheduler, cluster):
    """What kube-scheduler's default leaves of 101 nodes is 100, and the card may be on the other. Said once, not each time."""
    names = [f"n{i}" for i in range(101)]
    cluster.node("n0")
    for name in names[1:]:
        cluster.api.put_tree("nodes", None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    start(scheduler, cluster).wait_ready()

    def warnings():
        return scheduler.log().count("percentageOfNodesToScore: 100 is missing")
    assert scheduler.filter(pod("a", **gpu(50000)), names)["NodeNames"] is None
    assert scheduler.filter(pod("b", **gpu(20000)), names[1:50])["NodeNames"] is None
    assert scheduler.filter(pod("c", **gpu(20000)), names[:100])["NodeNames"] == ["n0"]
    assert warnings() == 0
    assert scheduler.filter(pod("d", **gpu(20000)), names[1:])["NodeNames"] is None
    assert scheduler.filter(pod("e", **gpu(20000)), names[1:])["NodeNames"] is None
    assert warnings() == 1


def test_a_share_of_the_nodes_that_was_set_by_hand(scheduler, cluster):
    """40 % of 300: kube-scheduler begins where it stopped, and comes with as many others."""
    names = [f"n{i}" for i in range(300)]
    for name in names:
        cluster.api.put_tree("nodes", None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    start(scheduler, cluster).wait_ready()
    for first, told in ((0, 0), (120, 0), (180, 1)):
        assert scheduler.filter(pod("a", **gpu(5000)), names[first:first + 120])["NodeNames"] is None
        assert scheduler.log().count("percentageOfNodesToScore: 100 is missing") == told


def test_a_pod_that_fits_nowhere_has_one_event(scheduler, cluster):
    cluster.node("n1")
    cluster.node("n2", cards=2)
    start(scheduler, cluster, "--scheduler-name=hami-scheduler").wait_ready()
    for _ in range(3):
        scheduler.filter(pod("a", **gpu(50000)), ["n1", "n2", "n3"])

    def events():
        return [e for e in cluster.api.all("events") if e.get("reason") == "FilteringFailed"]

    event, = wait_until("the event", 30, events)
    assert event["message"] == "no available node, 3 nodes do not meet: 2 CardInsufficientMemory, 1 node unregistered"
    assert (event["involvedObject"]["uid"], event["source"]["component"]) == ("uid-a", "hami-scheduler")


def test_five_thousand_names(scheduler, cluster):
    """All of them are looked at; what it costs is measured by make bench."""
    for i in range(300):
        cluster.node(f"n{i}", cards=1)
    start(scheduler, cluster).wait_ready()
    names = [f"n{i}" for i in range(300)] + [f"gone{i}" for i in range(4700)]
    with scheduler.connect() as sock:
        answer = scheduler.filter(pod("a", **gpu(50000)), names, on=sock)
        assert len(answer["FailedNodes"]) + len(answer["FailedAndUnresolvableNodes"] or {}) == 5000
        assert scheduler.filter(pod("b", **gpu(5000)), names, on=sock)["NodeNames"][0] in names[:300]


def test_fgd_leaves_the_node_whose_cpu_is_gone(scheduler, cluster):
    """Of two nodes alike the first by name, until a pod without cards leaves it CPU for one more: then half of its card would
    be lost. Whatever becomes of its cards."""
    host = {"cpu": "16", "memory": "64Gi"}
    for name in ("n1", "n2"):
        cluster.node(name, host=host)
    start(scheduler, cluster, *FGD).wait_ready()

    def goes_to(node, names=("n1", "n2"), mib=20000):
        asks = pod("a", **gpu(mib))
        asks["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4", "memory": "8Gi"}
        return scheduler.filter(asks, list(names))["NodeNames"] == (node and [node])
    assert goes_to("n1")
    cluster.api.put_tree("pods", "default", {
        "metadata": {"name": "plain", "uid": "uid-plain"}, "status": {"phase": "Running"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "11"}}}]}})
    wait_until("the other node", 30, lambda: goes_to("n2"))
    cluster.node("n1", host=host, memory=10000)
    wait_until("the smaller card", 30, lambda: goes_to(None, ["n1"]))
    cluster.node("n1", host=host)
    wait_until("the card of before", 30, lambda: goes_to("n1", ["n1"]))
    assert goes_to("n2")
    cluster.node("n1", host=dict(host, cpu="31"))
    wait_until("more of the host", 30, lambda: goes_to("n1"))
    cluster.node("n1", host=host)
    wait_until("the host of before", 30, lambda: goes_to("n2"))
    cluster.api.delete("pods", "default", "plain")
    wait_until("the first node again", 30, lambda: goes_to("n1"))


FGD = ("--node-scheduler-policy=fgd", "--gpu-scheduler-policy=fgd")


def two_that_differ(cluster, *others):
    """Half of n1's card is free, three quarters of n2's; what each pod asked for is in its limits."""
    for name in ("n1", "n2", "n3"):
        cluster.node(name, cards=4 if name == "n3" else 1, host={"cpu": "64", "memory": "256Gi"})
    for number, (node, card, mib) in enumerate([("n1", 0, 20000), ("n2", 0, 10000), *others]):
        cluster.runs(f"runs-{number}", node, mib, card)


def place_of_a_quarter(scheduler):
    return scheduler.filter(pod("a", **gpu(10000)), ["n1", "n2"])["NodeNames"]


def test_fgd_keeps_room_for_the_typical_pods_that_are_given(scheduler, cluster, tmp_path):
    """Who keeps halves of cards for pods of a half does not break n1's; where pods take a quarter it is all one."""
    two_that_differ(cluster)
    file = tmp_path / "typical"

    def trace(milli):
        return f"name,cpu_milli,memory_mib,num_gpu,gpu_milli\nshare,0,0,1,{milli}\nnone,1,1,0,0\n"
    for text, node in ((json.dumps({"items": [pod("half", **gpu(20000)), pod("none", cpu=1)]}), "n2"), (trace(500), "n2"),
                       (json.dumps(pod("quarter", **gpu(10000))), "n1"), (trace(250), "n1")):
        file.write_text(text)
        start(scheduler, cluster, *FGD, f"--typical-pods={file}").wait_ready()
        assert re.search(r"typical pods are given .*pods=1 shapes=1", scheduler.log())
        assert place_of_a_quarter(scheduler) == [node], text  # whatever runs
        scheduler.end()
    for text, why in (('{"items": []}', "no pod in it asks for a card"), ("", "the file is empty"), ("name\nx\n", "no column"),
                      ("{", "JSON")):
        file.write_text(text)
        done = subprocess.run([str(scheduler.program), "--http_bind=127.0.0.1:0", f"--kubeconfig={cluster.kubeconfig}",
                               f"--typical-pods={file}"], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode != 0 and f"--typical-pods: {file}" in done.stderr and why in done.stderr, done.stderr


def test_fgd_learns_from_what_runs_already(scheduler, cluster):
    """A new leader, or one that starts anew, does not begin with nothing."""
    two_that_differ(cluster, *(("n3", card, 20000) for card in (0, 0, 1, 1, 2, 2)))
    start(scheduler, cluster, *FGD).wait_ready()
    assert place_of_a_quarter(scheduler) == ["n2"]


def samples(scheduler, name):
    """{labels: value} of a family."""
    found = {}
    for line in scheduler.metrics().splitlines():
        match = re.fullmatch(rf"{name}{{(.*)}} (\S+)", line)
        if match:
            labels = frozenset(re.findall(r'(\w+)="([^"]*)"', match[1]))
            assert labels not in found, f"twice: {line}"
            found[labels] = float(match[2])
    return found


def promtool(text):
    """None where it is not there. HAMi's former names are no names that it likes."""
    cache = subprocess.run([str(REPO / "tools/cache-dir")], capture_output=True, text=True, check=True).stdout.strip()
    tool = shutil.which("promtool", path=f"{os.environ['PATH']}:{cache}/bin")
    return tool and subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=20, check=False)


def labels(**these):
    return frozenset({"zone": "vGPU", **these}.items())


def test_the_metrics_of_cards_quotas_and_containers(scheduler, cluster):
    """HAMi's names, labels and units; each series once, with the container's own number."""
    cluster.node("n1", cards=2, memory=40000)
    cluster.held("a", "n1", "GPU-n1-0,NVIDIA,1000,10:;GPU-n1-0,NVIDIA,2000,0:GPU-n1-1,NVIDIA,2000,0:;", containers=2)
    cluster.held("b", "n1", "GPU-n1-1,NVIDIA,3000,30:GPU-n1-1,NVIDIA,500,5:;")
    cluster.api.put_tree("resourcequotas", "default", {
        "metadata": {"name": "q"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "50000", "limits.nvidia.com/gpucores": "200"}}})
    start(scheduler, cluster).wait_ready()
    done = promtool(scheduler.metrics())
    known = 'hami_gpu_shared_count non-histogram and non-summary metrics should not have "_count" suffix\n'  # the name is HAMi's
    assert done is None or (done.stdout, done.stderr) == ("", known), done.stderr
    scheduler.end()
    start(scheduler, cluster, "--legacy-metrics=true").wait_ready()
    card = {"node": "n1", "device_uuid": "GPU-n1-1", "device_index": "1", "device_type": "NVIDIA A100"}
    assert samples(scheduler, "hami_gpu_memory_limit_bytes")[labels(**card)] == 40000 << 20
    assert samples(scheduler, "hami_gpu_core_limit_ratio")[labels(**card)] == 100
    assert samples(scheduler, "hami_gpu_memory_allocated_bytes")[labels(**card, device_cores="100")] == 5500 << 20
    assert samples(scheduler, "hami_gpu_core_allocated_ratio")[labels(**card)] == 35
    assert samples(scheduler, "hami_node_gpu_memory_allocated_ratio")[labels(**card)] == 5500 / 40000
    assert samples(scheduler, "hami_node_gpu_overview")[labels(**card, device_cores="100", device_memory_limit="40000")] == 5500 << 20
    shares = samples(scheduler, "hami_vgpu_memory_allocated_bytes")
    assert shares == {labels(namespace="default", node="n1", pod=name, container_index=index, device_uuid=uuid): mib << 20
                      for name, index, uuid, mib in (("a", "0", "GPU-n1-0", 1000), ("a", "1", "GPU-n1-0", 2000),
                                                     ("a", "1", "GPU-n1-1", 2000), ("b", "0", "GPU-n1-1", 3500))}
    assert samples(scheduler, "hami_vgpu_core_allocated_ratio")[
        labels(namespace="default", node="n1", pod="b", container_index="0", device_uuid="GPU-n1-1")] == 35
    assert samples(scheduler, "hami_resource_quota_limit") == {
        labels(namespace="default", quota_name="nvidia.com/gpumem"): 50000, labels(namespace="default", quota_name="nvidia.com/gpucores"): 200}
    assert samples(scheduler, "hami_resource_quota_used")[
        labels(namespace="default", quota_name="nvidia.com/gpumem", limit="50000")] == 8500
    old = {"nodeid": "n1", "deviceuuid": "GPU-n1-1", "deviceidx": "1"}
    assert samples(scheduler, "GPUDeviceMemoryLimit")[labels(**old, devicetype="NVIDIA A100")] == 40000 << 20
    assert samples(scheduler, "nodeGPUMemoryPercentage")[labels(**old)] == 5500 / 40000
    assert samples(scheduler, "vGPUMemoryAllocated")[
        labels(podnamespace="default", nodename="n1", podname="b", containeridx="0", deviceuuid="GPU-n1-1")] == 3500 << 20


def test_the_metrics_of_mig_instances(scheduler, cluster):
    """Told from when the agent has made it, once, and while its card is there."""
    profile = {"name": "2g.10gb", "memoryMB": 9984, "core": 29, "sliceCount": 2,
               "placements": [{"start": s, "size": 2} for s in (0, 2, 4)]}
    register = {"index": 4, "count": 7, "devmem": 40960, "devcore": 100, "type": "NVIDIA A100", "mode": "mig",
                "migProfiles": [profile], "health": True}
    made = {"migUUID": "MIG-1", "gpuInstanceID": 5, "computeInstanceID": 0}

    def node(card):
        cluster.api.put_tree("nodes", None, {
            "metadata": {"name": "m", "annotations": {"hami.io/node-nvidia-register": json.dumps([{**register, "id": card}])}},
            "status": {"allocatable": {"nvidia.com/gpu": "7"}}})

    def tell(name, ids):
        record = {"containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-m-0", "profile": "2g.10gb",
                  "placement": {"start": 2, "size": 2}, **ids}
        cluster.api.edit("pods", "default", name, metadata={"annotations": {"hami.io/vgpu-mig-allocations": json.dumps([record])}})

    def series():
        return sorted(line for line in scheduler.metrics().splitlines() if line.startswith(("hami_node_gpu_mig", "nodeGPUMigI")))

    node("GPU-m-0")
    for name in ("one", "two"):
        cluster.held(name, "m", "GPU-m-0,NVIDIA,9984,29:;")
        tell(name, {})
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}", "--legacy-metrics=true").wait_ready()
    assert not series()
    tell("one", made)
    wanted = ['hami_node_gpu_mig_instance_info{zone="vGPU",node="m",device_uuid="GPU-m-0",device_index="4",mig_uuid="MIG-1",'
              'profile="2g.10gb",gpu_instance_id="5",compute_instance_id="0",placement_start="2",placement_size="2"} 1',
              'nodeGPUMigInstance{zone="vGPU",nodeid="m",deviceuuid="GPU-m-0",deviceidx="4",migname="2g.10gb-5"} 1']
    wait_until("the instance", 30, lambda: series() == wanted)
    tell("two", {**made, "computeInstanceID": 1, "migUUID": "MIG-2"})
    wait_until("the other", 30, lambda: len(series()) == 3)  # one GPU instance is one name of the old metric
    tell("two", made)
    wait_until("the same", 30, lambda: series() == wanted)
    node("GPU-m-1")
    wait_until("another card", 30, lambda: not series())
    cluster.api.delete("nodes", None, "m")
    wait_until("no node", 30, lambda: scheduler.metric("hami_scheduler_nodes", state="all") == 0)
    assert not series()
    node("GPU-m-0")
    wait_until("the card", 30, lambda: series() == wanted)
    for name in ("one", "two"):
        cluster.api.delete("pods", "default", name)
    wait_until("nobody", 30, lambda: not series())


def test_the_metrics_of_a_large_cluster_are_whole(scheduler, cluster):
    """More than is made at once: pods are placed between the page's parts, and each family stands in one place. The page is
    of 9 MB: sockets take up to 4 before anybody reads."""
    names = [f"n{i:03d}" for i in range(900)]
    for name in names:
        cluster.node(name, cards=8, slots=20)
        cluster.held(f"p-{name}", name, ":".join(f"GPU-{name}-{k},NVIDIA,100,1" for k in range(8)) + ":;")
    start(scheduler, cluster).wait_ready()
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # less than the page
        sock.settimeout(30)
        sock.connect(("127.0.0.1", scheduler.said("metrics_port")))
        sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        got = sock.recv(100)
        placed = scheduler.filter(pod("between", **gpu(100)), names)["NodeNames"]
        cluster.api.delete("nodes", None, "n000")
        wait_until("the node is gone", 10, lambda: scheduler.metric("hami_scheduler_nodes", state="with-cards") == 899)
        while part := sock.recv(65536):
            got += part
    assert len(placed) == 1
    families, cards = [], set()
    for line in got.decode().split("\r\n\r\n", 1)[1].splitlines():
        if line.startswith("# TYPE"):
            families.append(line.split()[2])
        elif line.startswith("hami_node_gpu_memory_allocated_ratio{"):
            assert line not in cards
            cards.add(re.search('device_uuid="([^"]*)"', line)[1])
    assert len(families) == len(set(families))
    assert cards == {f"GPU-{name}-{k}" for name in names[1:] for k in range(8)}
