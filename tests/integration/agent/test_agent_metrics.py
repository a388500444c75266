"""/metrics: the page is one that Prometheus takes, its figures are those of what happened, and its table is documented."""
import os
import pathlib
import re
import shutil
import subprocess
import urllib.request

import pytest

from kubelet_peer import PodResources, REPO, UUIDS, code_of, ids, wait_until

TABLE = REPO / "src/agent/metrics/metrics.def"
PAGE = REPO / "docs/contracts/metrics.md"
MIB = 1 << 20


def families():
    """(name, type, labels, help) of the source's table."""
    rows = re.findall(r'^M\(\w+, "(\w+)", (\w+), "([\w,]*)", "(.*)"\)$', TABLE.read_text(), re.M)
    return [(name, kind.lower(), labels.split(",") if labels else [], text) for name, kind, labels, text in rows]


def parse(text):
    """{name: {labels (sorted pairs): value}}, by rules of its own: no escapes are met in these tests."""
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'(\w+)(?:\{(.*)\})? ([0-9.]+)', line)
        assert match, line
        name, labels, value = match.groups()
        key = tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels or "")))
        assert key not in out.setdefault(name, {}), f"twice: {line}"
        out[name][key] = float(value)
    return out


class Page:
    def __init__(self, agent):
        self.agent = agent

    @property
    def url(self):
        port = re.search(r"serving metrics address=\S+ port=(\d+)", self.agent.log())
        return f"http://127.0.0.1:{port.group(1)}/metrics"

    def text(self):
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            return answer.read().decode()

    def value(self, name, **labels):
        found = [v for key, v in parse(self.text()).get(name, {}).items() if labels.items() <= dict(key).items()]
        assert len(found) == 1, (name, labels, found)
        return found[0]


@pytest.fixture
def page(kubelet, agent):
    kubelet.start()
    agent.start("--metrics-bind-address=127.0.0.1:0", "--node-name=node-a")
    kubelet.wait_registered()
    kubelet.devices()
    wait_until("served", 5, lambda: "serving metrics" in agent.log())
    return Page(agent)


@pytest.fixture
def pods(agent, short_tmp):
    it = PodResources(short_tmp / "pods.sock")
    yield it
    it.stop()


def start_pod(kubelet, pods, uid, name, devices):
    pods.pods.append(("team", name, "main", devices))
    kubelet.admit(uid, "main", devices)
    kubelet.plugin.pre_start(devices)


def promtool(text):
    cache = subprocess.run([str(REPO / "tools/cache-dir")], capture_output=True, text=True, check=True).stdout.strip()
    tool = shutil.which("promtool", path=f"{os.environ['PATH']}:{cache}/bin")
    if tool is None:
        pytest.skip("promtool is not there (tools/setup test)")
    return subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=20, check=False)


def test_promtool_finds_nothing(page, pods, kubelet):
    start_pod(kubelet, pods, "uid-1", "train", ids(0, 0, 1))
    wait_until("the pod's name", 10, lambda: 'pod="train"' in page.text())
    text = page.text()
    done = promtool(text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    assert promtool(text + text).returncode != 0, "promtool reports what is wrong"


def test_the_table_is_documented():
    text = PAGE.read_text()
    documented = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", text, re.M)
    want = [(name, kind, ", ".join(f"`{l}`" for l in labels), help_) for name, kind, labels, help_ in families()]
    assert [(a, b, c.strip(), d.strip()) for a, b, c, d in documented] == want


def test_the_page_has_the_table_s_families_and_labels(page, pods, kubelet):
    start_pod(kubelet, pods, "uid-1", "train", ids(0, 0))
    wait_until("the pod's name", 10, lambda: 'pod="train"' in page.text())
    text = page.text()
    heads = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    order = re.findall(r"^# HELP (\w+) ", text, re.M)
    table = families()
    assert order == [name for name, *_ in table if name in order], "each once, in the table's order"
    names = [name for name, *_ in table]
    api = set(names[names.index("hami_agent_api_requests_total"):names.index("hami_agent_lock_releases_total") + 1])
    api |= {name for name in names if name.startswith("hami_agent_mig_")}  # another operating mode
    assert set(order) == {name for name, *_ in table} - api, "no API server here"
    samples = parse(text)
    for name, kind, labels, _help in table:
        if name in api:
            continue
        assert heads[name] == kind
        for key in samples.get(name + ("_count" if kind == "histogram" else ""), {}):
            assert sorted(labels) == [label for label, _ in key], name


def test_what_happened_is_counted(page, pods, kubelet):
    resource = {"resource": "hami.com/vgpu"}
    assert page.value("hami_agent_registered", **resource) == 1
    for n in range(3):
        start_pod(kubelet, pods, f"uid-{n}", f"pod{n}", ids(n % 2, n))
    assert code_of(kubelet.plugin.allocate, ["GPU-unknown::0"])
    assert code_of(kubelet.plugin.pre_start, ids(1, 3))[0] != "OK"
    assert page.value("hami_agent_allocations_total", **resource) == 3
    assert page.value("hami_agent_allocation_errors_total", **resource) == 1
    assert page.value("hami_agent_container_starts_total", result="ok", **resource) == 3
    assert page.value("hami_agent_container_starts_total", result="error", **resource) == 1
    assert page.value("hami_agent_allocate_duration_seconds_count", **resource) == 4
    assert page.value("hami_agent_start_duration_seconds_count", **resource) == 4
    # The one that failed waited for its 2 s; the others did not.
    assert page.value("hami_agent_start_duration_seconds_bucket", le="1", **resource) == 3
    assert 2 <= page.value("hami_agent_start_duration_seconds_sum", **resource) < 10
    assert page.value("hami_agent_claims", state="active") == 3
    assert page.value("hami_agent_info", mode="slices", node="node-a") == 1


def test_slots_and_promises(page, pods, kubelet):
    slot = next(iter({int(v) for v in re.findall(r"slot_mib=(\d+)", page.agent.log())})) * MIB
    start_pod(kubelet, pods, "uid-1", "train", ids(0, 0, 1))
    kubelet.admit("uid-2", "main", ids(0, 2))  # not started
    for state, count in (("active", 2), ("free", 2), ("allocated", 0), ("ended", 0)):
        assert page.value("hami_gpu_slots", device_uuid=UUIDS[0], state=state) == count
    assert page.value("hami_gpu_slots", device_uuid=UUIDS[1], state="free") == 4
    assert page.value("hami_gpu_memory_promised_bytes", device_uuid=UUIDS[0]) == 2 * slot
    assert page.value("hami_gpu_memory_promised_bytes", device_uuid=UUIDS[1]) == 0
    assert page.value("hami_gpu_cores_promised_ratio", device_uuid=UUIDS[0]) == 0.5
    wait_until("the name", 10, lambda: 'pod="train"' in page.text())
    who = {"namespace": "team", "pod": "train", "container": "main", "vdevice_index": "0", "device_uuid": UUIDS[0], "zone": "vGPU"}
    assert page.value("hami_vgpu_memory_limit_bytes", **who) == 2 * slot
    assert page.value("hami_vgpu_cores_limit_ratio", **who) == 0.5
    assert page.value("hami_vgpu_memory_used_bytes", **who) == 0


def test_a_lost_card_is_not_healthy(page, agent):
    assert page.value("hami_gpu_healthy", device_uuid=UUIDS[1]) == 1
    agent.set_nvml(lost=1)
    wait_until("unhealthy", 15, lambda: page.value("hami_gpu_healthy", device_uuid=UUIDS[1]) == 0, every=0.1)
    assert page.value("hami_gpu_healthy", device_uuid=UUIDS[0]) == 1


def test_a_pod_made_again_under_its_name_stands_once(page, pods, kubelet):
    start_pod(kubelet, pods, "uid-1", "train", ids(0, 0))
    wait_until("the name", 10, lambda: 'pod="train"' in page.text())
    pods.pods.clear()
    start_pod(kubelet, pods, "uid-2", "train", ids(0, 1))
    wait_until("both have it", 10, lambda: sum("pod_name=train" in p.read_text() for p in (page.agent.state / "claims").glob("[0-9]*")) == 2)
    assert page.value("hami_vgpu_memory_limit_bytes", pod="train") > 0


def test_without_the_option_nothing_listens(node):
    assert "serving metrics" not in node.log()


def test_an_address_in_use_is_an_error(page, short_tmp, build):
    port = re.search(r":(\d+)/", page.url).group(1)
    other = pathlib.Path(short_tmp) / "other"
    other.mkdir()
    arguments = [a.replace(str(page.agent.state), str(other / "state")) for a in page.agent.arguments([f"--metrics-bind-address=127.0.0.1:{port}"])]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=False,
                          env={**os.environ, "FILE_NVML": str(page.agent.nvml)})
    assert done.returncode == 1 and f"--metrics-bind-address: HTTP server: 127.0.0.1:{port}: Address already in use" in done.stderr
