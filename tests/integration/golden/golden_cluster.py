"""A recorded cluster, told to golden-filter-answers line by line, and how its lines are compared."""
import json

from golden_peer import Known, differences

DEVICES, MIG, NODE = "hami.io/vgpu-devices-allocated", "hami.io/vgpu-mig-allocations", "hami.io/vgpu-node"


def name_of(line):
    """What the list of differences calls a line of filter.jsonl.gz."""
    return f"{line['config']}/{line['cluster']}/{line['step']}"


def unlisted(action, triples):
    """Of (line, HAMi's, ours): what differs and is not listed, or is listed and does not differ."""
    known, bad = Known(action), []
    for line, theirs, ours in triples:
        bad += known.unlisted(name_of(line), differences(theirs, ours))
    return bad + known.outdated()


def whole(quantity):
    return int(quantity[:-1]) * 1000 if quantity.endswith("k") else int(quantity)


def without_gaps(devices):
    """A device string without its empty entries, which HAMi leaves out (S1)."""
    return ";".join(e for e in devices.split(";") if e)


def reserved(text, pod):
    """What the program reserved, as the annotations have it: an entry for each container."""
    containers = pod["spec"].get("initContainers", []) + pod["spec"]["containers"]
    entries, records = [[] for _ in containers], []
    for share in filter(None, text.split(",")):
        container, uuid, mib, percent, *mig = share.split(" ")
        entry = entries[int(container)]
        if mig:
            records.append({"containerIndex": int(container), "deviceIndex": len(entry), "gpuUUID": uuid, "profile": mig[0],
                            "placement": {"start": int(mig[1]), "size": int(mig[2])}})
        entry.append(f"{uuid},NVIDIA,{mib},{percent}:")
    return {DEVICES: "".join("".join(e) + ";" for e in entries), **({MIG: json.dumps(records)} if records else {})}


def instances(annotations):
    return [f"{r['gpuUUID']} {r['profile']} {r['placement'].get('start', 0)}+{r['placement']['size']}"
            for r in json.loads(annotations.get(MIG) or "[]")]


def asks(pod):
    return any(whole(c["resources"]["limits"].get("nvidia.com/gpu", "0")) for c in
               pod["spec"].get("initContainers", []) + pod["spec"]["containers"])


def failed_of(answer):
    return {**(answer["FailedNodes"] or {}), **(answer["FailedAndUnresolvableNodes"] or {})} or None


def node_of(n):
    return {"metadata": {k: n[k] for k in ("name", "annotations", "labels") if k in n}, "status": {"allocatable": n["allocatable"]}}


class Cluster:
    """One of the recording's, told to the program line by line."""

    def __init__(self, program, config, line):
        self.program = program
        flags = dict(f[2:].split("=", 1) for f in config["flags"])
        self.namespace = line["cluster"]
        self.nodes = {n["name"]: n for n in line["nodes"]}
        self.pods, self.held = {}, set()
        self.tell(nvidia=config["nvidia"], node_policy=flags["node-scheduler-policy"],
                  card_policy=flags["gpu-scheduler-policy"], selector=flags.get("node-label-selector", ""))
        self.quota(line)
        for name in self.nodes:
            self.put_node(name)

    def tell(self, **what):
        self.program.stdin.write(json.dumps(what) + "\n")

    def quota(self, line):
        hard = {k: whole(v) for k, v in line["quota"].items()}
        limits = {"memory": hard.get("limits.nvidia.com/gpumem"), "cores": hard.get("limits.nvidia.com/gpucores")}
        self.tell(quota=self.namespace, **limits)

    def put_node(self, name):
        self.tell(node=node_of(self.nodes[name]))

    def hold(self, pod):
        node = pod["metadata"]["annotations"].get(NODE)
        if node:
            self.held.add(pod["metadata"]["uid"])
            self.tell(pod={**pod, "spec": {**pod["spec"], "nodeName": node}})

    def release(self, uid):
        self.held.discard(uid)
        self.tell(release=uid)

    def asked(self, args, pod):
        """Our answer, and the shares it reserved."""
        self.tell(ask=args, uid=pod["metadata"]["uid"])
        self.program.stdin.flush()
        text, _, shares = self.program.stdout.readline().rstrip("\n").partition("\t")
        return json.loads(text), shares

    def ask(self, pod, names):
        """What HAMi's answer is compared with."""
        answer, shares = self.asked({"Pod": pod, "Nodes": None, "NodeNames": names}, pod)
        return {"names": answer["NodeNames"], "failed": failed_of(answer), "error": answer["Error"]}, \
            reserved(shares, pod) if shares else {}

    # --- lines that only change the state
    def held_pod(self, line):
        self.pods[line["pod"]["metadata"]["name"]] = line["pod"]
        if line["pod"]["status"].get("phase") not in ("Succeeded", "Failed"):
            self.hold(line["pod"])

    def status(self, line):
        pod = self.pods[line["pod_name"]]
        pod["status"].update(line["status"])
        if pod["status"].get("phase") in ("Succeeded", "Failed"):
            self.release(pod["metadata"]["uid"])
        elif pod["metadata"]["uid"] in self.held:
            self.hold(pod)

    def unschedulable_condition(self, line):
        """HAMi sees the annotations again that an earlier Filter left there (S7)."""
        pod = self.pods[line["pod_name"]]
        if pod["metadata"]["uid"] not in self.held:
            self.hold(pod)

    def delete(self, line):
        if line["pod_name"] in self.pods:
            self.release(self.pods.pop(line["pod_name"])["metadata"]["uid"])

    def bind(self, line):
        """A failed one may make HAMi forget the pod."""
        if "not found" in line["error"]:
            self.release(line["uid"])

    def plugin_done(self, line):
        """Nothing that counts here; the same is so of locks."""

    unlock = set_lock = http = plugin_done

    def node_update(self, line):
        n = self.nodes[line["node"]]
        n["annotations"].update(line["annotations"])
        n["annotations"] = {k: v for k, v in n["annotations"].items() if v is not None}
        n["allocatable"].update(line["allocatable"] or {})
        self.put_node(line["node"])

    def node_deleted(self, line):
        self.tell(gone=line["node"])

    def node_created(self, line):
        self.put_node(line["node"])

    # --- lines that are compared
    def simulate(self, line):
        """(HAMi's, ours); which node it takes of those that are equal is left out. The program must know no pods: HAMi's
        simulation begins with empty nodes."""
        items = [node_of(n) for n in self.nodes.values()]
        ours = self.what_if(line["pod"], items)
        theirs = {**line["answer"], "failed": line["answer"]["failed"] or None, "fitting": " ".join(line["fitting_alone"])}
        alone = {item["metadata"]["name"]: self.what_if(line["pod"], [item]) for item in items}
        fitting = [name for name, answer in alone.items() if answer["names"]]
        ours["fitting"] = " ".join(fitting)
        if ours["names"]:  # we stop at the first that nothing else could beat, HAMi looks at all
            assert ours["names"][0] in fitting and (ours["failed"] or {}).keys().isdisjoint(fitting)
            refused = [answer["failed"] for answer in alone.values() if answer["failed"]]
            ours.update(names=theirs["names"], failed={k: v for f in refused for k, v in f.items()} or None)
        return theirs, ours

    def what_if(self, pod, items):
        answer = self.asked({"Pod": pod, "Nodes": {"items": items}, "NodeNames": None}, pod)[0]
        names = answer["Nodes"] and [n["metadata"]["name"] for n in answer["Nodes"]["items"] or []]
        return {"names": names or None, "failed": failed_of(answer), "error": answer["Error"]}

    def filter(self, line):
        """(HAMi's, ours); with `tied` the cards on each of the nodes that HAMi might have taken."""
        pod, golden = line["pod"], line["answer"]
        self.release(pod["metadata"]["uid"])
        answer, got = self.ask(pod, line["names"])
        ours, theirs = dict(answer), {k: golden[k] for k in ("names", "failed", "error")}
        given = {answer["names"][0]: got} if got else {}
        on = {}
        if golden["names"] and NODE in golden["after"] and asks(pod):
            on = golden.get("tied") or {golden["after"][NODE]: golden["after"]}
        if "tied" in golden and answer["names"] and answer["names"][0] in golden["tied"]:
            ours["names"] = theirs["names"]
        for node in on:
            if node not in given:
                given[node] = self.ask(pod, [node])[1]
        cut = without_gaps if "S1" in line.get("defects", []) else str
        ours["cards"] = {n: {"devices": cut(given[n].get(DEVICES, "")), "mig": instances(given[n])} for n in on}
        theirs["cards"] = {n: {"devices": cut(a[DEVICES]), "mig": instances(a)} for n, a in on.items()}
        self.go_on(pod, golden, given)
        return theirs, ours

    filter_again = filter

    def go_on(self, pod, golden, given):
        """With what HAMi wrote; with our own words of the same, which have every entry."""
        self.release(pod["metadata"]["uid"])
        pod["metadata"]["annotations"] = dict(golden["after"])
        self.pods[pod["metadata"]["name"]] = pod
        if not golden["names"] or NODE not in golden["after"]:
            return
        got = given.get(golden["after"][NODE]) or {}
        if DEVICES in got and without_gaps(got[DEVICES]) == without_gaps(golden["after"][DEVICES]) and \
                instances(got) == instances(golden["after"]):
            pod["metadata"]["annotations"].update(got)
        self.hold(pod)
