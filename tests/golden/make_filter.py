#!/usr/bin/python3
"""tests/golden/make_filter.py RECORDED OUT: what the filter replay needs of a full recording, scheduler-filter.jsonl.gz.

Kept of each line: what changes the state (nodes, pods, quotas, locks, ends) and, of each answer, node, cards, MIG
instances, reasons, error and locks, with the tags of known defects. Left out: events, labels, pods that admission
refused, restarts, notes, the timeline.
"""
import gzip
import json
import sys

NODE_KEYS = ("hami.io/node-nvidia-register", "hami.io/node-nvidia-score", "hami.io/device-cordon")
POD_KEYS = ("hami.io/", "nvidia.com/")
DROPPED_KEYS = ("hami.io/vgpu-time", "hami.io/bind-time", "hami.io/bind-phase", "hami.io/vgpu-devices-to-allocate")
DEVICES, MIG, NODE = "hami.io/vgpu-devices-allocated", "hami.io/vgpu-mig-allocations", "hami.io/vgpu-node"


def node(n):
    out = {"name": n["name"], "annotations": {k: v for k, v in n["annotations"].items() if k in NODE_KEYS},
           "allocatable": {k: v for k, v in (n.get("allocatable") or {}).items() if k.startswith("nvidia.com/")}}
    return {**out, **({"labels": n["labels"]} if n.get("labels") else {})}


def annotations(of):
    return {k: v for k, v in (of or {}).items() if k.startswith(POD_KEYS) and k not in DROPPED_KEYS}


def container(c):
    resources = c.get("resources") or {}
    amounts = {k: v for k, v in {**resources.get("requests", {}), **resources.get("limits", {})}.items()
               if k.startswith("nvidia.com/")}
    out = {"name": c["name"], "resources": {"limits": amounts}}
    return {**out, **({"restartPolicy": c["restartPolicy"]} if c.get("restartPolicy") else {})}


def pod(p):
    meta, spec = p["metadata"], p["spec"]
    return {"metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
                         "annotations": annotations(meta.get("annotations"))},
            "spec": {k: [container(c) for c in spec[k]] for k in ("initContainers", "containers") if spec.get(k)},
            "status": {k: v for k, v in (p.get("status") or {}).items() if k == "phase"}}


def status(s):
    """The phase, and how init containers ended."""
    out = {"phase": s["phase"]} if "phase" in s else {}
    if "initContainerStatuses" in s:
        out["initContainerStatuses"] = [
            {"name": c["name"], "state": {k: {x: y for x, y in v.items() if x == "exitCode"} for k, v in c["state"].items()}}
            for c in s["initContainerStatuses"]]
    return out


def answer(line):
    response, after = line["response"], line.get("annotations_after") or {}
    out = {"names": response["NodeNames"], "failed": response["FailedNodes"], "error": response["Error"],
           "after": annotations(after)}
    if line.get("ties"):
        out["tied"] = {n: {k: a[k] for k in (DEVICES, MIG) if k in a} for n, a in line["tied"].items()}
        out["went_on_with"] = line["went_on_with"]
    return out


def simulated(response):
    nodes = response["Nodes"]
    return {"names": nodes and [n["metadata"]["name"] for n in nodes["items"]], "failed": response["FailedNodes"],
            "error": response["Error"]}


def whole_body(body):
    """A request's pod cut down like the others."""
    if not isinstance(body, dict):
        return body
    return {k: pod(v) if k.lower() == "pod" else v for k, v in body.items()}


def cut(line):
    """The line's part; None where there is none."""
    action = line["action"]
    if action == "config":
        return {"action": action, "config": line["config"], "flags": line["flags"], "nvidia": line["nvidia"]}
    out = {k: line[k] for k in ("config", "cluster", "step", "action")}
    out.update({k: line[k] for k in ("defects", "after") if line.get(k)})
    if action == "cluster":
        out.update(nodes=[node(n) for n in line["nodes"]], quota=line.get("quota") or {})
    elif action in ("filter", "filter-again"):
        out.update(pod=pod(line["pod"]), names=line["request"]["NodeNames"], answer=answer(line))
    elif action == "simulate":
        out.update(pod=pod(line["pod"]), answer=simulated(line["response"]), fitting_alone=line.get("fitting_alone") or [])
    elif action == "held-pod":
        out.update(pod=pod(line["pod"]))
    elif action == "status":
        out.update(pod_name=line["pod_name"], status=status(line["status"]))
    elif action == "unschedulable-condition":
        out.update(pod_name=line["pod_name"])
    elif action == "delete" and line["gone"]:
        out.update(pod_name=line["pod_name"])
    elif action == "bind":
        asked = line["request"]
        out.update(pod_name=asked["PodName"], uid=asked["PodUID"], node=asked["Node"], error=line["response"]["Error"],
                   locks=line["locks_after"], **({"slow": True} if line.get("slow") else {}))
    elif action in ("plugin-done", "unlock", "set-lock"):
        out.update({k: line[k] for k in ("pod_name", "node", "value") if k in line})
    elif action == "http":
        out.update({k: line[k] for k in ("note", "method", "path", "http_status", "response") if k in line},
                   body=whole_body(line.get("body")), headers={k: v for k, v in line.get("headers", {}).items()
                                                               if k in ("Allow", "Location")})
    elif action == "quota":
        out.update(quota=line["hard"] or {})
    elif action == "node-update":
        changed = {k: v for k, v in (line.get("annotations") or {}).items() if k in NODE_KEYS}
        out.update(node=line["node"], annotations=changed, allocatable=line.get("allocatable"))
    elif action in ("node-deleted", "node-created"):
        out.update(node=line["node"])
    else:
        return None
    return out


def main():
    with gzip.open(sys.argv[1], "rt") as f:
        lines = [cut(json.loads(line)) for line in f]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines if line is not None)
    with open(sys.argv[2], "wb") as f:
        f.write(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
