#!/usr/bin/python3
"""calls.py kubelet-calls.log > kubelet-calls.json: the order of calls of a recorded kubelet, without times and without what
is random in it (the order of ids). record.sh makes the log."""
import json
import re
import sys

LINE = re.compile(r"^\d+\.\d+ [\d:.]+ (.*)$")


def call_of(text):
    """The call that a line of the fake plugin's log tells of, or None."""
    if text == "Register sent":
        return {"call": "Register"}
    if text.startswith("GetDevicePluginOptions "):
        return {"call": "GetDevicePluginOptions"}
    if text.startswith("ListAndWatch begins"):
        return {"call": "ListAndWatch"}
    if text.startswith("ListAndWatch ends"):
        return {"end": "ListAndWatch"}
    if text.startswith("file "):
        what, name = text.split()[1:3]
        return {"file": f"{what} {name}"} if what == "REMOVE" or name == "kubelet.sock" else None
    match = re.match(r"(GetPreferredAllocation|Allocate) (\[.*?\]) authority", text)
    if match:
        (request,) = json.loads(match.group(2))
        if match.group(1) == "Allocate":
            return {"call": "Allocate", "ids": sorted(request["devices_ids"])}
        return {"call": "GetPreferredAllocation", "available": sorted(request["available_deviceIDs"]),
                "must": sorted(request.get("must_include_deviceIDs", [])), "size": request["allocation_size"]}
    match = re.match(r"PreStart#\d+ \[(.*?)\] authority.*deadline=(\S+)", text)
    if match:
        return {"call": "PreStartContainer", "ids": sorted(match.group(1).split()), "deadline": match.group(2)}
    return None


def scenarios(lines):
    out = {}
    calls = []
    for line in lines:
        if line.startswith("== "):
            calls = out.setdefault(line[3:].strip(), [])
            continue
        match = LINE.match(line)
        call = call_of(match.group(1)) if match else None
        if call is not None:
            calls.append(call)
    return out


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        made = scenarios(f)
    body = ",\n".join('  "%s": [\n%s\n  ]' % (name, ",\n".join("    " + json.dumps(c) for c in calls)) for name, calls in made.items())
    print("{\n" + body + "\n}")
