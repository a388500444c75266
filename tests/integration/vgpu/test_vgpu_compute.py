"""The compute limit on the simulated node's wall clock: that shares hold, and that nothing stands still. How exactly they
hold: test_vgpu_shares.py."""
import json
import sys
import textwrap
import time

import pytest

from region_words import COMPUTE_BYTES, HOLD_AT, OPEN_AT, SPANS_AT, put_word, word
from shares import MS, Load, measure
from steps import release
from wall_time import shares, start

BOOT_NS = 1000 * 10**9  # virtual_time.c


@pytest.mark.parametrize("card, cores, lengths, sync", [
    ("sm188", 30, [10 * MS], 10), ("sm20", 80, [MS], 20), ("sm20", 30, [MS // 20, MS, 20 * MS], 7)])
def test_share_of_one_container(node_of, container_on, card, cores, lengths, sync):
    """Never more. Less where a loaded machine keeps the host from launching in time: the best of three, and by a quarter."""
    node, got = node_of(f"{card}.yaml"), 0
    for _ in range(3):
        got, = shares(node, [start(container_on(node, cores), lengths, sync, 3.2)])
        assert got <= cores + 3
        if got >= cores * 0.75:
            return
    assert got >= cores * 0.75


@pytest.mark.parametrize("cores, policy", [(100, None), (30, "disable")])
def test_without_a_limit_the_card_is_all_its_own(node_of, container_on, cores, policy):
    node = node_of("sm20.yaml")
    got, = shares(node, [start(container_on(node, cores, policy), [5 * MS], 10, 2.2)], seconds=1.0)
    assert got >= 60


def test_default_policy_is_open_while_said_so(node_of, container_on):
    node = node_of("sm20.yaml")
    for policy, low, high in (("default", 60, 101), ("force", 20, 34)):
        c = container_on(node, 30, policy)
        put_word(c.region, OPEN_AT, time.monotonic_ns() + 8 * 10**9)
        got, = shares(node, [start(c, [5 * MS], 10, 2.2)], seconds=1.0)
        assert low <= got <= high, policy


HELD = """
    from launch import *
    kernels = [Kernel(device) for device in range(int(sys.argv[1]))]
    def took(kernel):
        began = time.monotonic()
        ok(cuda.cuCtxSetCurrent(kernel.context))
        ok(kernel.launch(1000))
        return time.monotonic() - began
    for kernel in kernels:
        took(kernel)
    print("up", flush=True)
    sys.stdin.readline()
    print(json.dumps([took(kernel) for kernel in kernels]))
"""


def held(container, cards, ms=1500, card=0):
    """How long a launch on each card takes a process that has launched before, when `card` is to be held for `ms`."""
    child = container.start([sys.executable, "-c", "import json, sys\n" + textwrap.dedent(HELD), str(cards)])
    assert child.stdout.readline() == "up\n", child.communicate()
    put_word(container.region, HOLD_AT, time.monotonic_ns() + ms * MS, card)
    out, err = child.communicate("\n", timeout=60)
    assert child.returncode == 0, out + err
    return json.loads(out)


@pytest.mark.parametrize("cores, policy", [(90, None), (100, None), (30, "disable")])
def test_a_lower_priority_is_held_for_as_long_as_said(node_of, container_on, cores, policy):
    """Also where there is no limit."""
    node = node_of("sm20.yaml")
    assert 1.0 <= held(container_on(node, cores, policy), 1)[0] <= 10
    assert held(container_on(node, cores, policy, priority=0), 1)[0] <= 0.9


@pytest.mark.parametrize("cores", [90, 100])
def test_another_card_is_not_held(node_of, container_on, cores):
    one, two = held(container_on(node_of("t4x2.yaml"), cores), 2, card=1)
    assert one <= 0.9 and two >= 0.5


@pytest.mark.parametrize("call", ["cuGraphLaunch", "cuLaunchCooperativeKernel", "cuLaunch", "cuLaunchKernelEx"])
def test_whatever_is_launched_is_held(node_of, container_on, call):
    """For the first three seconds, of the virtual clock."""
    node = node_of("sm20.yaml", "--clock=virtual")
    for cores in (100, 40):
        c = container_on(node, cores)
        put_word(c.region, HOLD_AT, BOOT_NS + node.status()["now_ns"] + 3010 * MS)
        got, = measure(node, [(c, [Load((MS,), 5, kind=call)])], samples=False)
        assert got.shares[0] == 0 and abs(got.shares[-1] - cores) <= 3


@pytest.mark.parametrize("end", [
    "cuda.cuCtxSynchronize()", "cuda.cuStreamSynchronize(None)", "cuda.cuCtxSynchronize_v2(kernel.context)",
    "cuda.cuDevicePrimaryCtxReset_v2(0)", "(time.sleep(0.3), free(pointer))"])
def test_the_last_work_of_a_process_is_charged(node_of, container_on, end):
    c = container_on(node_of("sm20.yaml"), 50)
    c.python(f"""
        from launch import *
        kernel = Kernel()
        _, pointer = alloc(1 << 20)
        ok(kernel.launch(250 * 1000000))
        {end}
        os._exit(0)
    """)
    assert 240 * MS <= word(c.region, SPANS_AT) <= 300 * MS


def test_noise_from_outside_stops_nobody(node_of, container_on):
    """Whatever stands in the words, a launch is through within the longest wait."""
    node = node_of("sm20.yaml")
    c = container_on(node, 50)
    for at in range(0, COMPUTE_BYTES, 8):
        put_word(c.region, at, 2**64 - 1 - at)
    child = start(c, [MS], 5, 0.5)
    out, err = child.communicate("\n\n", timeout=30)
    assert child.returncode == 0 and int(out) > 20, out + err


def test_a_killed_process_takes_no_tokens_along(node_of, container_on):
    node = node_of("sm20.yaml")
    c = container_on(node, 30)
    for _ in range(3):
        child = start(c, [5 * MS], 0, 60)
        release(child)
        time.sleep(0.2)
        child.kill()
        child.communicate()
    got, = shares(node, [start(c, [2 * MS], 5, 3.2)])
    assert 20 <= got <= 33


def test_a_launch_that_others_wait_for_comes_through(node_of, container_on):
    """What runs may wait for what is not launched yet: a first kernel of unknown length is under way for a second, and
    a launch behind it is not held until it ends."""
    node = node_of("sm20.yaml")
    got = container_on(node, 50).python("""
        from launch import *
        kernel = Kernel()
        ok(kernel.launch(1500 * 1000000))
        began = time.monotonic()
        ok(kernel.launch(1000))
        waited = time.monotonic() - began
        ok(cuda.cuCtxSynchronize())
        print(json.dumps(waited))
    """)
    assert 0.15 <= got <= 0.8


def test_capture_is_left_alone(node_of, container_on):
    node = node_of("sm20.yaml")
    got = container_on(node, 10).python("""
        from launch import *
        kernel = Kernel()
        stream, graph, execution = c.c_void_p(), c.c_void_p(), c.c_void_p()
        ok(cuda.cuStreamCreate(c.byref(stream), 1))
        ok(cuda.cuStreamBeginCapture_v2(stream, 0))
        began = time.monotonic()
        for _ in range(100):
            ok(kernel.launch(1000000, stream))
        took = time.monotonic() - began
        ok(cuda.cuStreamEndCapture(stream, c.byref(graph)))
        count = c.c_size_t()
        ok(cuda.cuGraphGetNodes(graph, None, c.byref(count)))
        ok(cuda.cuGraphInstantiateWithFlags(c.byref(execution), graph, c.c_uint64(0)))
        began = time.monotonic()
        for _ in range(4):
            ok(cuda.cuGraphLaunch(execution, stream))
            ok(cuda.cuStreamSynchronize(stream))
        print(json.dumps([took, count.value, time.monotonic() - began]))
    """)
    took, nodes, launched = got
    assert took < 1 and nodes == 100  # kernels alone: no events of ours
    assert launched >= 1.5  # 400 ms of work at a tenth, the last one's wait not yet due


@pytest.mark.parametrize("cores,priority", [(30, 0), (100, 1)])
def test_a_forked_child_fails_as_without_us(node_of, container_on, cores, priority):
    """Also where launches look at the region."""
    node = node_of("sm20.yaml")
    got = container_on(node, cores, priority=priority).python("""
        from launch import *
        kernel = Kernel()
        ok(kernel.launch(1000))
        pid = os.fork()
        if pid == 0:
            os._exit(kernel.launch(1000) & 127)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """)
    assert got == 3
