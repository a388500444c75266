"""What share of the card a container gets, in any window of 2 s after the first second, by the simulation's books on its
virtual clock (shares.py). Real programs on the real libvgpu; all of them in `make bench`."""
import pytest

from shares import CARDS, MS, TOGETHER, WORKLOADS, Load, measure, wanted

POINTS = 3


def check(node, work, want, points=POINTS, **options):
    got = measure(node, work, **options)
    for g, percent in zip(got, want):
        assert g.worst(percent) <= points, [(g.mean, g.low, g.high) for g in got]
    return got


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_one_program(node_of, container_on, card, name):
    node = node_of(f"{card}.yaml", "--clock=virtual")
    for cores in range(10, 100, 10):
        check(node, [(container_on(node, cores), [WORKLOADS[name]])], [cores])


@pytest.mark.parametrize("ms, cores", [(100, 30), (200, 50), (400, 40)])
def test_long_kernels(node_of, container_on, ms, cores):
    """Windows of 2 s hold a whole number of them with their pauses here: docs/limits.md. From the
    third second on: the length of the first is not known when it starts."""
    node = node_of("sm20.yaml", "--clock=virtual")
    got, = measure(node, [(container_on(node, cores), [Load((ms * MS,), 1)])], seconds=10)
    assert all(abs(share - cores) <= POINTS for share in got.shares[20:])


@pytest.mark.parametrize("call", [
    "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz",
    "cuLaunchCooperativeKernelMultiDevice", "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuGraphLaunch_ptsz"])
def test_every_way_to_launch(node_of, container_on, call):
    node = node_of("sm20.yaml", "--clock=virtual")
    check(node, [(container_on(node, 30), [Load((2 * MS,), 5, kind=call)])], [30], seconds=4)


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("cores, loads", [
    (40, [Load((MS,), 20), Load((3 * MS,), 3)]), (50, [Load((10 * MS,), 10), Load((MS // 5,), 50)]),
    (20, [Load((MS // 2,), 4, kind="cuGraphLaunch"), Load((MS,), 1)]), (60, [Load((MS,), 20)] * 3)])
def test_processes_of_one_container(node_of, container_on, cores, loads, samples):
    node = node_of("sm20.yaml", "--clock=virtual")
    check(node, [(container_on(node, cores), loads)], [cores], samples=samples)


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("name", TOGETHER)
def test_containers_of_one_card(node_of, container_on, card, name):
    node, (cores, loads) = node_of(f"{card}.yaml", "--clock=virtual"), TOGETHER[name]
    got = check(node, [(container_on(node, c), [load]) for c, load in zip(cores, loads)], wanted(cores))
    assert sum(g.mean for g in got) >= 95


def test_without_samples_a_container_gets_less_never_more(node_of, container_on):
    """Spans contain the other's slices then."""
    node = node_of("sm20.yaml", "--clock=virtual")
    got = measure(node, [(container_on(node, cores), [Load((MS,), 20)]) for cores in (30, 70)], samples=False)
    for g, cores in zip(got, (30, 70)):
        assert cores / 2 <= g.low and g.high <= cores + 1
