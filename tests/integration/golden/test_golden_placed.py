"""Each pod that HAMi's scheduler placed: every container finds its own devices in the text, by the agent's rule."""
import json
import subprocess

import pytest

from golden_peer import Known, differences, recording


@pytest.fixture(scope="module")
def placed():
    return recording("placed.jsonl.gz")


@pytest.fixture(scope="module")
def mapped(build, placed):
    """For each pod {container: [(uuid, MiB, percent), ...] or the reason why not}."""
    text = "".join(json.dumps(p["pod"]) + "\n" for p in placed)
    out = subprocess.run([str(build / "tests/golden-map-entries")], input=text, capture_output=True, text=True, check=True,
                         timeout=120).stdout
    pods = [{}]
    for line in out.splitlines():
        if line == ".":
            pods.append({})
            continue
        name, got = line.split("\t")
        pods[-1][name] = got if got.startswith("!") else [tuple(s.split(",")) for s in got.split()]
    assert pods.pop() == {} and len(pods) == len(placed)
    return pods


def whole(quantity):
    """A whole Kubernetes quantity, as the vectors have them: "24k", "3Gi", "3000"."""
    for suffix, factor in (("k", 1000), ("Gi", 2**30)):
        if quantity.endswith(suffix):
            return int(quantity[:-len(suffix)]) * factor
    return int(quantity)


def wanted(pod, factor):
    """What the spec alone says of each container: how many devices, and MiB of each where it names them."""
    out = {}
    mig = "hami.io/vgpu-mig-allocations" in pod["metadata"]["annotations"]  # then MiB are the profile's
    for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
        limits = c["resources"]["limits"]
        count, mib = whole(limits.get("nvidia.com/gpu", "0")), whole(limits.get("nvidia.com/gpumem", "0")) * factor
        if count:
            named = 0 < mib < 2**31 and not mig  # else HAMi takes a part of the card, or all of it
            out[c["name"]] = f"{count} of {mib if named else 'some'} MiB"
    return out


def seen(want, got):
    """The same of what the agent found; MiB only where the spec names them."""
    out = {}
    for name, shares in got.items():
        if isinstance(shares, str):
            out[name] = shares
            continue
        mib = "/".join(sorted({mib for _, mib, _ in shares}))
        out[name] = f"{len(shares)} of {'some' if 'some' in want.get(name, '') else mib} MiB"
    return out


def test_every_container_finds_its_own(placed, mapped):
    known = Known("placed")
    bad = []
    for line, got in zip(placed, mapped):
        want = wanted(line["pod"], line["memory_factor"])
        bad += known.unlisted(line["line"], differences(want, seen(want, got)))
    assert not bad
    assert not known.outdated()


def test_vectors_can_tell_containers_apart(placed, mapped):
    """The vectors are worth their while: many pods have several containers with different shares."""
    apart = [got for got in mapped if len({str(share) for share in got.values()}) > 1]
    short = [line for line in placed
             if line["pod"]["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"].rstrip(";").count(";") + 1
             < len(line["pod"]["spec"].get("initContainers", []) + line["pod"]["spec"]["containers"])]
    assert len(apart) > 200 and len(short) > 200
