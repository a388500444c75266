#!/usr/bin/python3
"""tests/golden/make_metrics.py FOLDER OUT: the scheduler's pages of a recording (metrics/scheduler-*), each with what led to
it cut down to its end: flags, nodes, quotas, the pods that hold; one JSON a line."""
import gzip
import json
import pathlib
import re
import sys

from make_filter import node, pod, status


def page(text):
    """{name{labels in order}: value}, without what says which build runs."""
    out = {}
    for line in text.splitlines():
        m = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if m and m[1] != "hami_build_info":
            out[f"{m[1]}{{{','.join(sorted(m[2].split(',')))}}}"] = float(m[3])
    return out


def helps(text):
    return {name: text for name, text in re.findall(r"^# HELP (\w+) (.*)$", text, re.M) if name != "hami_build_info"}


def pods_of(steps):
    """As they are at the end, with what HAMi wrote."""
    pods = {}
    for s in steps:
        name = s.get("pod_name") or s.get("pod", {}).get("metadata", {}).get("name")
        if s["action"] in ("held-pod", "filter"):
            pods[name] = pod(s["pod"])
            pods[name]["metadata"]["annotations"].update(s.get("annotations_after") or {})
        elif s["action"] == "status":
            pods[name]["status"].update(status(s["status"]))
        elif s["action"] == "delete":
            del pods[name]
    return list(pods.values())


def main():
    with gzip.GzipFile(sys.argv[2], "wb", 9, mtime=0) as out:
        for path in sorted(pathlib.Path(sys.argv[1]).glob("scheduler-*.state.json")):
            name, state = path.name.removesuffix(".state.json"), json.loads(path.read_text())
            text = path.with_name(f"{name}.after-next-pass.txt").read_text()
            first, quotas = state["steps"][0], [s["hard"] for s in state["steps"] if s["action"] == "quota"]
            line = {"name": name, "flags": state["flags"], "nvidia": state["nvidia"], "namespace": first["namespace"],
                    "nodes": [node(n) for n in first["nodes"]], "quotas": quotas, "pods": pods_of(state["steps"]),
                    "helps": helps(text), "series": page(text)}
            out.write((json.dumps(line) + "\n").encode())


if __name__ == "__main__":
    main()
