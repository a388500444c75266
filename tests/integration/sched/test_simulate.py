"""hami-scheduler simulate and advise, as somebody calls them: files in, text and a picture out."""
import json
import os
import pathlib
import re
import subprocess
import xml.dom.minidom

REPO = pathlib.Path(__file__).resolve().parents[3]
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,T4\nn2,8000,262144,1,P100\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,1000,10,1,600,\np2,1000,10,2,1000,\np3,1000,10,1,500,T4\n"


def call(build, *args):
    return subprocess.run([str(build / "bin/hami-scheduler"), *map(str, args)], capture_output=True, text=True, timeout=120,
                          check=False)


def files(folder, nodes, pods):
    for name, text in (("nodes", nodes), ("pods", pods)):
        (folder / name).write_text(text)
    return ["--nodes", folder / "nodes", "--pods", folder / "pods"]


def test_a_trace(build, tmp_path):
    at = files(tmp_path, NODES, PODS)
    done = call(build, "simulate", *at, "--picture", tmp_path / "p.svg")
    assert done.returncode == 0, done.stderr
    head, columns, row = done.stdout.splitlines()
    assert head == "policy fgd, cards fgd, 2 nodes, 3 cards"
    # p1 goes to n2, p2 to n1, and no T4 is left for p3: 2600 of 3000
    assert row.split() == ["0", "3", "2", "0", "1", "103.33", "86.67", "86.67", "0", "100.00"], columns
    assert xml.dom.minidom.parse(str(tmp_path / "p.svg")).documentElement.tagName == "svg"
    # the same dice, the same answer
    one, other = (call(build, "simulate", *at, "--seed", 3, "--seeds", 2, "--load", 130).stdout for _ in range(2))
    assert one == other and one.splitlines()[-1].startswith("mean")


def test_what_is_wrong_is_named(build, tmp_path):
    at = files(tmp_path, NODES, "name,cpu_milli\np,x\n")
    for args, says in ((at, f"--pods {tmp_path}/pods: line 2: cpu_milli: \"x\" is no whole number up to 1073741824"),
                       (at[:2], "--pods names a file; --help says what it may hold"),
                       ([*at, "--weights", "luck=7"], "--weights: \"luck=7\" is not one of"),
                       ([*at, "--policy", "luck"], "--policy"), ([*at, "more"], "what is \"more\"?"),
                       ([*at, "--seeds", "2"], "--seeds: without --seed"),
                       ([*at, "--policy", "spread", "--mix", "given"], "--mix is only for the policy fgd"),
                       ([*at, "--device-config-file", "x"], "--device-config-file is only for a cluster (JSON files)")):
        done = call(build, "simulate", *args)
        assert done.returncode == 2 and says in done.stderr, done.stderr


def test_what_says_nothing_about_a_cluster_is_refused(build, tmp_path):
    at = snapshot(tmp_path, pod("p1", 500))
    for option in ("--seed=1", "--seeds=2", "--load=130", "--until=100", "--mix=given", "--host=known"):
        done = call(build, "simulate", *at, option)
        assert done.returncode == 2 and f"{option.split('=')[0]} is only for a trace (CSV files)" in done.stderr, done.stderr
    for command in ("simulate", "advise"):
        done = call(build, command, *at, "--device-config-file", tmp_path / "none.yaml")
        assert done.returncode == 2 and "none.yaml" in done.stderr, done.stderr


def node(name, *cards):
    register = json.dumps([{"id": c, "count": 10, "devmem": 1000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core",
                            "health": True} for c in cards])
    return {"kind": "Node", "metadata": {"name": name, "annotations": {"hami.io/node-nvidia-register": register}},
            "status": {"allocatable": {"nvidia.com/gpu": str(10 * len(cards))}}}


def pod(name, mib, at=None, card=None):
    it = {"kind": "Pod", "metadata": {"name": name, "namespace": "team", "uid": name},
          "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}}}]}}
    if at:
        it["spec"]["nodeName"] = at
        it["metadata"]["annotations"] = {"hami.io/vgpu-node": at, "hami.io/vgpu-devices-allocated": f"{card},NVIDIA,{mib},0:;"}
    return it


def snapshot(folder, *pods):
    nodes = {"items": [node("n1", "GPU-a", "GPU-b"), node("n2", "GPU-c")]}
    return files(folder, json.dumps(nodes), json.dumps({"items": pods}))


def test_a_cluster(build, tmp_path):
    at = snapshot(tmp_path, pod("p1", 500, "n1", "GPU-a"), pod("p2", 400, "n1", "GPU-b"), pod("p3", 700, "n2", "GPU-c"),
                  pod("small", 300), pod("large", 1000))
    done = call(build, "simulate", *at)
    assert done.returncode == 0, done.stderr
    small, large, head, _, before, after = done.stdout.splitlines()
    assert small == "team/small: n2 GPU-c"  # fills it
    assert large == "team/large: nowhere (CardInsufficientMemory 3)"
    assert head.endswith("3 cards; 3 pods bound, 1 placed, 1 refused, 0 not read")
    # free are 500, 600 and 300; of no use to a fifth of the pods each: 300, 300, 1400, 0, 1400. Then 1100: 0, 0, 1100, 0, 1100
    assert before.split() == ["before", "53.33", "0", "48.57"] and after.split() == ["after", "63.33", "0", "40.00"]
    assert done.stderr == ""
    done = call(build, "simulate", *at, "--picture", tmp_path / "p.svg")
    assert done.returncode == 0, done.stderr
    drawn = xml.dom.minidom.parse(str(tmp_path / "p.svg"))
    assert "pods, fgd: 2 nodes, 3 cards" in [t.firstChild.data for t in drawn.getElementsByTagName("text")]
    # a column for n1 with two cards, one for n2: to 50 %, to 75 %, full
    cells = [p.getAttribute("d") for p in drawn.getElementsByTagName("path")]
    assert sorted(c for c in cells if c) == ["M60 40h3", "M60 44h3", "M64 40h3"]


def test_what_cannot_be_read_does_not_end_it(build, tmp_path):
    """As the scheduler itself: no cards on a node with a broken register, the most for a pod whose text is broken."""
    broken = node("n0", "GPU-z")
    broken["metadata"]["annotations"]["hami.io/node-nvidia-register"] = "[{]"
    doubted, strange = pod("doubted", 300, "n1", "GPU-a"), pod("strange", 100)
    doubted["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"] = "GPU-a,NVIDIA,x,0:;"
    strange["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "much"
    alien = pod("alien", 100, "n1", "GPU-a")
    del alien["metadata"]["annotations"]
    at = files(tmp_path, json.dumps({"items": [broken, node("n1", "GPU-a", "GPU-b")]}),
               json.dumps({"items": [doubted, strange, alien, pod("fits", 700), pod("does-not", 800)]}))
    done = call(build, "simulate", *at)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["team/fits: n1 GPU-b", "team/does-not: nowhere (CardInsufficientMemory 2)"]
    assert "1 nodes, 2 cards; 1 pods bound, 1 placed, 1 refused, 1 not read" in done.stdout
    notes = done.stderr.splitlines()
    assert len(notes) == 4, done.stderr
    for part in ("pod team/doubted: hami.io/vgpu-devices-allocated: ", "pod team/strange: ",
                 "pod team/alien: it is on a node, but has no cards there: it is left out", "node n0: "):
        assert any(n.startswith("hami-scheduler simulate: " + part) for n in notes), done.stderr
    done = call(build, "advise", *at)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 4, done.stderr


def with_host(it, cpu):
    if it["kind"] == "Node":
        it["status"]["allocatable"].update(cpu=str(cpu), memory="64Gi")
    else:
        it["spec"]["containers"][0]["resources"]["requests"] = {"cpu": str(cpu), "memory": "1Gi"}
    return it


def test_cpu_of_the_nodes(build, tmp_path):
    """Pods without cards have their part of it; who finds none goes elsewhere, or nowhere."""
    plain = with_host(pod("plain", 0, "n1", "none"), 6)
    del plain["spec"]["containers"][0]["resources"]["limits"], plain["metadata"]["annotations"]
    nodes = [with_host(node("n1", "GPU-a"), 8), with_host(node("n2", "GPU-b"), 8)]
    pods = [plain, with_host(pod("bound", 300, "n1", "GPU-a"), 1), with_host(pod("first", 300), 4),
            with_host(pod("second", 300), "4001m"), with_host(pod("third", 300), 1)]
    at = files(tmp_path, json.dumps({"items": nodes}), json.dumps({"items": pods}))
    done = call(build, "simulate", *at, "--policy=binpack")
    assert done.stdout.splitlines()[:3] == ["team/first: n2 GPU-b", "team/second: nowhere (nodes with too little CPU or memory 2)",
                                            "team/third: n1 GPU-a"], done.stderr
    # Moves are by CPU, too.
    pods[2] = with_host(pod("first", 300, "n2", "GPU-b"), 4)
    for taken, want in (6, "No move of one or two pods lets team/second in."), ("3500m", "Then team/second fits on n1."), \
            (2, "team/second fits on n1 as it is."):
        with_host(plain, taken)
        at = files(tmp_path, json.dumps({"items": nodes}), json.dumps({"items": pods}))
        assert call(build, "advise", *at, "--pod", "team/second").stdout.splitlines()[-1] == want


def test_nodes_that_kube_scheduler_would_not_take(build, tmp_path):
    """Cordoned, tainted and not selected ones are no candidates: not for a pod that waits, nor for one that moves."""
    nodes = [node("n1", "GPU-a"), node("n2", "GPU-b"), node("n3", "GPU-c"), node("n4", "GPU-d")]
    pods = [pod("p1", 500, "n1", "GPU-a"), pod("p4", 500, "n4", "GPU-d"), pod("plain", 300), pod("tolerant", 300), pod("zoned", 300),
            pod("lost", 300), pod("large", 1000)]
    _, _, _, tolerant, zoned, lost, large = pods
    nodes[0]["spec"], nodes[0]["metadata"]["labels"] = {"unschedulable": True}, {"zone": "a"}
    nodes[1]["spec"] = {"taints": [{"key": "own", "value": "team", "effect": "NoSchedule"}]}
    nodes[2]["metadata"]["labels"] = {"zone": "a"}
    tolerant["spec"]["tolerations"] = [{"key": "own", "operator": "Exists"}]
    zoned["spec"]["nodeSelector"] = lost["spec"]["nodeSelector"] = {"zone": "a"}
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}
    lost["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    at = files(tmp_path, json.dumps({"items": nodes}), json.dumps({"items": pods}))
    done = call(build, "simulate", *at, "--policy=binpack")
    # Of n1, which is the first of the fullest, there is no word.
    assert done.stdout.splitlines()[:5] == [
        "team/plain: n4 GPU-d", "team/tolerant: n2 GPU-b", "team/zoned: n3 GPU-c",
        "team/lost: nowhere (nodes that are unschedulable 1, nodes with taints 1, nodes that the pod does not select 2)",
        "team/large: nowhere (CardInsufficientMemory 2, nodes that are unschedulable 1, nodes with taints 1)"], done.stderr
    # A pod that moves tolerates no more than one that waits, and nobody goes to where others have left.
    large["spec"]["nodeSelector"] = {"zone": "a"}
    for allowed, want in (({}, "team/large fits on n3 as it is."), ({"taints": [{"key": "x", "effect": "NoExecute"}]},
                                                                   "No move of one or two pods lets team/large in.")):
        nodes[2]["spec"] = allowed
        at = files(tmp_path, json.dumps({"items": nodes}), json.dumps({"items": pods}))
        assert call(build, "advise", *at, "--pod=team/large").stdout.splitlines() == [want]
    del large["spec"]["nodeSelector"]
    pods[1]["spec"]["tolerations"] = [{"key": "x", "operator": "Exists"}]
    at = files(tmp_path, json.dumps({"items": nodes}), json.dumps({"items": pods}))
    assert call(build, "advise", *at, "--pod=team/large").stdout.splitlines() == [
        "move team/p4 from n4 (GPU-d) to n3 (GPU-c)", "Then team/large fits on n4."]


def test_resources_of_other_names(build, tmp_path):
    n, p = node("n1", "GPU-a"), pod("p", 1, None)
    n["status"]["allocatable"] = {"own/gpu": "10"}
    p["spec"]["containers"][0]["resources"]["limits"] = {"own/gpu": "1", "own/mem": "3"}
    at = files(tmp_path, json.dumps(n), json.dumps(p))
    config = tmp_path / "config.yaml"
    config.write_text("nvidia:\n  resourceCountName: own/gpu\n  resourceMemoryName: own/mem\n  memoryFactor: 200\n")
    assert "0 nodes, 0 cards; 0 pods bound, 0 placed" in call(build, "simulate", *at).stdout
    done = call(build, "simulate", *at, "--device-config-file", config)
    assert done.stdout.splitlines()[0] == "team/p: n1 GPU-a", done.stderr
    assert done.stdout.splitlines()[-1].split()[:2] == ["after", "60.00"]


def test_advice(build, tmp_path):
    at = snapshot(tmp_path, pod("p1", 500, "n1", "GPU-a"), pod("p2", 400, "n1", "GPU-b"), pod("p3", 700, "n2", "GPU-c"),
                  pod("large", 1000))
    done = call(build, "advise", *at)
    assert done.stdout == ("move team/p1 from n1 (GPU-a) to n1 (GPU-b)\n"
                           "Whole cards: 0 now, 1 then.\n"), done.stderr
    done = call(build, "advise", *at, "--pod", "team/large")
    assert done.stdout == "move team/p2 from n1 (GPU-b) to n1 (GPU-a)\nThen team/large fits on n1.\n", done.stderr
    done = call(build, "advise", *at, "--pod", "team/p1")
    assert done.returncode == 2 and "--pod team/p1: it has cards already" in done.stderr
    assert (tmp_path / "pods").read_text() == json.dumps({"items": [
        pod("p1", 500, "n1", "GPU-a"), pod("p2", 400, "n1", "GPU-b"), pod("p3", 700, "n2", "GPU-c"), pod("large", 1000)]})


def test_what_the_readme_says_to_try(build, tmp_path):
    """Its block as a shell runs it, and the two figures behind it."""
    text = (REPO / "README.md").read_text(encoding="utf-8")
    block, after = re.search(r"```sh\n(cd deploy/examples/simulate.*?)```\n(.*?)\n", text, re.S).groups()
    block = block.replace("$PWD/../../../build/bin", "$BIN").replace("/tmp/cards.svg", "$OUT/cards.svg")
    done = subprocess.run(["bash", "-euc", block], cwd=REPO, capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "BIN": str(build / "bin"), "OUT": str(tmp_path)})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    means = [line.split()[6] for line in done.stdout.splitlines() if line.startswith("mean")]
    assert means == re.findall(r"(\d\d\.\d\d) %", after)
    assert "team/small: node-2 GPU-2b\nteam/train: nowhere (CardInsufficientMemory 4)\n" in done.stdout
    assert done.stdout.endswith("move team/notebook from node-1 (GPU-1a) to node-2 (GPU-2b)\nThen team/train fits on node-1.\n")
    assert (tmp_path / "cards.svg").stat().st_size > 1000
