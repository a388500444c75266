"""HAMi's compute limits in the environment, where no limit file is mounted. Memory: test_vgpu_limit.py; what each variable
may say: tests/unit/vgpu/test_env_limits.c."""
import json
import sys

import pytest

from region_words import OVERSUBSCRIBE_AT, POLICY_AT, PRIORITY_AT, SPANS_AT, WAITS_AT, header_word, word

MS = 1000000

RUN = """
from launch import *
kernel = Kernel(int(sys.argv[1]))
print(json.dumps(kernel.run([2 * 1000000], 5, float(sys.argv[2]))))
"""


def launches(container, env, device=0, seconds=1.6):
    child = container.start([sys.executable, "-c", "import json, sys\n" + RUN, str(device), str(seconds)], env=env)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    return json.loads(out), err


@pytest.mark.parametrize("env, held", [
    ({"CUDA_DEVICE_SM_LIMIT": "20"}, True),
    ({"CUDA_DEVICE_SM_LIMIT": "90", "CUDA_DEVICE_SM_LIMIT_0": "20"}, True),
    ({"CUDA_DEVICE_SM_LIMIT": "20", "GPU_CORE_UTILIZATION_POLICY": "FORCE", "CUDA_DEVICE_MEMORY_LIMIT": "1g"}, True),
    ({"CUDA_DEVICE_SM_LIMIT": "20", "CUDA_DEVICE_SM_LIMIT_0": "100"}, False),
    ({"CUDA_DEVICE_SM_LIMIT": "20", "GPU_CORE_UTILIZATION_POLICY": "disable"}, False),
    ({"CUDA_DEVICE_MEMORY_LIMIT": "1g", "CUDA_DEVICE_SM_LIMIT": "0"}, False)])
def test_a_share_of_the_card_s_time(node_of, container_on, short_tmp, env, held):
    """20 percent of 1.6 s are 160 launches of 2 ms, and 10 for the first burst."""
    c = container_on(node_of("sm20.yaml"), 100)
    (c.folder / "limits").unlink()
    count, _ = launches(c, {**env, "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"})
    waits = word(short_tmp / "hami-vgpu.region", WAITS_AT)
    if held:
        assert 40 < count < 200 and waits > 0
    else:
        assert waits == 0


def test_cards_met_one_after_the_other_have_their_own_shares(node, container, short_tmp):
    """The first card of a process does not stand for the second one."""
    env = {"CUDA_DEVICE_SM_LIMIT_1": "10", "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"}
    container().python("""
        from launch import *
        for device in (0, 1):
            Kernel(device).run([2000000], 5, 0.7)
    """, env=env)
    spans = [word(short_tmp / "hami-vgpu.region", SPANS_AT, card) for card in (0, 1)]
    waits = [word(short_tmp / "hami-vgpu.region", WAITS_AT, card) for card in (0, 1)]
    assert spans[0] == 0 and waits[0] == 0
    assert 0 < spans[1] < 250 * MS and waits[1] > 0


def test_one_share_for_all_processes(node_of, container_on, short_tmp):
    c = container_on(node_of("sm20.yaml"), 100)
    (c.folder / "limits").unlink()
    env = {"CUDA_DEVICE_SM_LIMIT": "20", "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"}
    children = [c.start([sys.executable, "-c", "import json, sys\n" + RUN, "0", "1.6"], env=env) for _ in range(2)]
    assert sum(json.loads(child.communicate(timeout=60)[0]) for child in children) < 230


def test_the_region_says_priority_policy_and_oversubscription(container, short_tmp):
    env = {"CUDA_DEVICE_SM_LIMIT": "30", "CUDA_TASK_PRIORITY": "0", "GPU_CORE_UTILIZATION_POLICY": "force",
           "CUDA_OVERSUBSCRIBE": "true", "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache"}
    container().python("start()\nalloc(MIB)", env=env)
    assert [header_word(short_tmp / "hami-vgpu.region", at) for at in (PRIORITY_AT, POLICY_AT, OVERSUBSCRIBE_AT)] == [0, 1, 1]


@pytest.mark.parametrize("name, value", [
    ("CUDA_DEVICE_SM_LIMIT", "30%"), ("CUDA_DEVICE_SM_LIMIT_3", "half"), ("CUDA_TASK_PRIORITY", "7"),
    ("GPU_CORE_UTILIZATION_POLICY", "sometimes"), ("CUDA_OVERSUBSCRIBE", "perhaps")])
def test_a_bad_value_refuses_and_says_why(container, short_tmp, name, value):
    env = {"CUDA_DEVICE_MEMORY_LIMIT": "64m", "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/x.cache", "HAMI_VGPU_LOG": "1"}
    c = container()
    child = c.start([sys.executable, "-c", "from driver import *\nstart()\nprint(alloc(1)[0])"], env={**env, name: value})
    out, err = child.communicate(timeout=60)
    assert out == "2\n" and err.count("\n") == 1 and f"{name}={value}" in err
    assert f"{name}={value}" in c.snapshot(short_tmp / "hami-vgpu.region")["last_trouble"]


@pytest.mark.parametrize("log", ["", "0", None])
def test_nothing_is_printed_unasked(container, log):
    env = {"CUDA_DEVICE_MEMORY_LIMIT": "abc", "HAMI_LOG_LEVEL": "DEBUG", **({"HAMI_VGPU_LOG": log} if log is not None else {})}
    child = container().start([sys.executable, "-c", "from driver import *\nstart()\nprint(alloc(1)[0])"], env=env)
    assert child.communicate(timeout=60) == ("2\n", "")


def test_a_shared_cache_whose_path_is_too_long_refuses(container, short_tmp):
    """A region of its own would give each process the whole limit."""
    env = {"CUDA_DEVICE_MEMORY_LIMIT": "64m", "CUDA_DEVICE_MEMORY_SHARED_CACHE": f"{short_tmp}/{'x/' * 200}cache"}
    assert container().python("start()\nprint(json.dumps(alloc(1)[0]))", env=env) == 2
