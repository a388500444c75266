"""Each admission review that HAMi's webhook answered: ours answers the same, or the difference is listed."""
import base64
import fractions
import json
import re
import subprocess

import pytest

from golden_peer import Known, flat_differences, recording

UID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def recorded():
    return recording("webhook.jsonl.gz")


# --- what goes in -----------------------------------------------------------------------------------------------------
def number(quotas, kind, name):
    value = (quotas or {}).get(f"limits.{name}")
    return {kind: int(value)} if name and value is not None else {}


def configuration(line):
    nvidia, flags = line["nvidia"], dict(f[2:].split("=") for f in line["flags"])
    held = {}
    for pod in line["held_pods"]:
        _, _, memory, cores = pod["allocated"].split(":")[0].split(",")
        held[pod["namespace"]] = {"memory": int(memory), "cores": int(cores)}
    return {"nvidia": nvidia, "scheduler": flags.get("scheduler-name", ""),
            "force": flags.get("force-overwrite-default-scheduler") != "false", "held": held,
            "quotas": {space: {**number(hard, "memory", nvidia["resourceMemoryName"]),
                               **number(hard, "cores", nvidia["resourceCoreName"])}
                       for space, hard in line["quotas"].items()}}


def review(line):
    if "raw" in line:
        return {"content_type": line["raw"]["headers"].get("Content-Type"), "body": line["raw"]["body"]}
    request = {"uid": UID, "namespace": "default", "operation": "CREATE", "dryRun": False, "oldObject": None,
               "userInfo": {"username": "u"}, "object": line["object"], **line["review"]}
    version = request.pop("apiVersion", "admission.k8s.io/v1")
    return {"content_type": "application/json",
            "body": json.dumps({"kind": "AdmissionReview", "apiVersion": version, "request": request})}


# --- what comes out ---------------------------------------------------------------------------------------------------
def patched(thing, patch):
    thing = json.loads(json.dumps(thing))
    for step in patch:
        *path, last = [p.replace("~1", "/").replace("~0", "~") for p in step["path"].split("/")[1:]]
        at = thing
        for key in path:
            at = at[int(key)] if isinstance(at, list) else at[key]
        if not isinstance(at, list):
            at.pop(last, None)
            if step["op"] != "remove":
                at[last] = step["value"]
        elif step["op"] == "add":
            at.insert(len(at) if last == "-" else int(last), step["value"])
        elif step["op"] == "replace":
            at[int(last)] = step["value"]
        else:
            del at[int(last)]
    return thing


UNITS = {"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
         **{s + "i": 1024**(i + 1) for i, s in enumerate("KMGTPE")}}


def amount(quantity):
    """The number that a quantity is; itself where it is none."""
    m = re.fullmatch(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([a-zA-Z]*))", str(quantity or 0))
    if m is None or (m[3] or "") not in UNITS:
        return quantity
    unit = fractions.Fraction(10)**int(m[2][1:]) if m[2] else fractions.Fraction(UNITS[m[3]]).limit_denominator(10**9)
    return str(fractions.Fraction(m[1]) * unit)


def normal(value, key=""):
    """What means the same looks the same: quantities as numbers, nothing empty."""
    if isinstance(value, dict):
        if key in ("limits", "requests"):
            return {k: amount(v) for k, v in value.items()}
        parts = {k: normal(v, k) for k, v in value.items()}
        return {k: v for k, v in parts.items() if v not in ({}, [], None, "")}
    if isinstance(value, list):
        return [normal(v) for v in value]
    return value


def flat(value, path=""):
    """As golden_peer.flat, but items are known by their names, the second of a name as name#2."""
    out = {}
    if isinstance(value, dict) and value:
        for key, v in value.items():
            out.update(flat(v, f"{path}.{key}" if path else key))
    elif isinstance(value, list) and value:
        seen = []
        for i, v in enumerate(value):
            name = v.get("name", i) if isinstance(v, dict) else i
            seen.append(name)
            again = f"#{seen.count(name)}" if seen.count(name) > 1 else ""
            out.update(flat(v, f"{path}[{name}{again}]"))
    else:
        out[path] = value
    return out


def answered(allowed, status):
    return f"{'allowed' if allowed else 'refused'} {status.get('code')} {status.get('message', '')}".rstrip()


def differences(line, response):
    """{path: (HAMi's, ours)}; the object matters where both let it in."""
    a = {"answer": answered(line["allowed"], line["status"])}
    b = {"answer": answered(response["allowed"], response["status"])}
    if line["allowed"] and response["allowed"]:
        patch = json.loads(base64.b64decode(response.get("patch", "W10="), validate=True))
        a.update(flat(normal(patched(line["object"], line.get("patch", []))), "after"))
        b.update(flat(normal(patched(line["object"], patch)), "after"))
    return flat_differences(a, b)


def answer_all(build, lines):
    """One answer for each request among the lines."""
    out = subprocess.run([str(build / "tests/golden-webhook-answers")], input="".join(json.dumps(line) + "\n" for line in lines),
                         capture_output=True, text=True, check=True, timeout=120).stdout
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module")
def answers(build, recorded):
    """Ours, line by line; None for configurations."""
    out = iter(answer_all(build, [configuration(line) if "action" in line else review(line) for line in recorded]))
    got = [None if "action" in line else next(out) for line in recorded]
    assert next(out, None) is None
    return got


def test_reviews_are_answered_alike(recorded, answers):
    known = Known("webhook")
    bad = []
    for line, got in zip(recorded, answers):
        if got is None:
            continue
        bad += known.unlisted(f"{line['config']}/{line['case']}", differences(line, got["response"]))
    assert not bad
    assert not known.outdated()


def test_asked_again_nothing_is_left_to_do(build, recorded, answers):
    """As the API server does where another webhook changed the pod in between (reinvocationPolicy)."""
    lines, met = [], 0
    for line, got in zip(recorded, answers):
        if got is None:
            lines.append(configuration(line))
        elif "patch" in got["response"]:
            met += 1
            patch = json.loads(base64.b64decode(got["response"]["patch"]))
            lines.append(review({**line, "object": patched(line["object"], patch)}))
    again = answer_all(build, lines)
    assert met > 1000 and len(again) == met
    assert not [a for a in again if not a["response"]["allowed"] or "patch" in a["response"]]


def test_answers_are_reviews(recorded, answers):
    for line, got in zip(recorded, answers):
        if got is None or "raw" in line:
            continue
        assert got["kind"] == "AdmissionReview"
        assert got["apiVersion"] == line["review"].get("apiVersion", "admission.k8s.io/v1")
        assert got["response"]["uid"] == line["review"].get("uid", UID)
        assert ("patch" in got["response"]) == ("patchType" in got["response"])


def test_pods_without_our_resources_are_left_alone(recorded, answers):
    """No patch at all, unless the configuration hides the cards from them."""
    config, met = None, 0
    for line, got in zip(recorded, answers):
        config = line if got is None else config
        if got is None or "raw" in line or config["nvidia"]["overwriteEnv"] or "example.com" in str(config["nvidia"]):
            continue
        if "nvidia.com/gpu" not in json.dumps(line["object"]):
            met += 1
            assert "patch" not in got["response"], line["case"]
    assert met > 100
