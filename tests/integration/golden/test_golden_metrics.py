"""The page that HAMi's scheduler gave of a cluster: ours of the same one has the same series, labels, values and help texts,
or the difference is listed."""
import json

import pytest

from golden_cluster import NODE, node_of
from golden_peer import Known, differences, recording
from make_metrics import helps, page
from sched_peer import Cluster, Scheduler
from waiting import wait_until

RECORDED = recording("metrics.jsonl.gz")


def families(found, names):
    """Of {NAME or NAME{labels}: ...} those with these names."""
    return {key: value for key, value in found.items() if key.partition("{")[0] in names}


def alike(theirs, ours):
    """Ours have six places."""
    return isinstance(theirs, float) and isinstance(ours, float) and abs(theirs - ours) < 1e-6


@pytest.fixture(params=RECORDED, ids=lambda r: r["name"])
def recorded(request):
    return request.param


@pytest.fixture
def text(build, tmp_path, recorded):
    cluster, scheduler = Cluster(tmp_path), Scheduler(build, tmp_path)
    for n in recorded["nodes"]:
        cluster.api.put_tree("nodes", None, node_of(n))
    for i, hard in enumerate(recorded["quotas"]):
        cluster.api.put_tree("resourcequotas", recorded["namespace"], {"metadata": {"name": f"q{i}"}, "spec": {"hard": hard}})
    for p in recorded["pods"]:
        cluster.api.put_tree("pods", recorded["namespace"], {**p, "spec": {
            **p["spec"], **({"nodeName": p["metadata"]["annotations"][NODE]} if NODE in p["metadata"]["annotations"] else {})}})
    (tmp_path / "device-config.yaml").write_text(json.dumps({"nvidia": recorded["nvidia"]}))
    try:
        scheduler.start(f"--kubeconfig={cluster.kubeconfig}", f"--device-config-file={tmp_path}/device-config.yaml",
                        *recorded["flags"]).wait_ready()
        return wait_until("the page", 20, scheduler.metrics)
    finally:
        scheduler.end()
        cluster.api.down()


def test_alike_or_listed(recorded, text):
    known = Known("metrics")
    known.entries = [e for e in known.entries if e["line"] == recorded["name"]]
    theirs = {"series": recorded["series"], "help": recorded["helps"]}
    ours = {"series": families(page(text), recorded["helps"]), "help": families(helps(text), recorded["helps"])}
    found = {path: pair for path, pair in differences(theirs, ours).items() if not alike(*pair)}
    assert not known.unlisted(recorded["name"], found) + known.outdated()
