"""Each golden scenario of Allocate, called on our agent with late binding: what the container is started with (the CDI
spec that PreStartContainer writes) beside what HAMi's answer gives it; then the pod's annotations and the node's lock."""
import pytest

from golden_peer import Known
from golden_pods import GROUPS, replay_all

KEYS = [key for key, _ in GROUPS]


@pytest.fixture(scope="module")
def known():
    return Known("late")


@pytest.fixture(scope="module")
def replayed(build, known):
    return replay_all(build, known, "late")


@pytest.mark.parametrize("key", KEYS, ids="/".join)
def test_late(known, replayed, key):
    bad = [text for name, found in replayed[key].result() for text in known.unlisted(name, found)]
    assert not bad, "\n".join(bad)


def test_list_is_true(known, request):
    """Every listed difference was met, as often as it is listed."""
    ran = [item for item in request.session.items if item.name.startswith("test_late[")]
    if len(ran) != len(KEYS):
        pytest.skip("not every group was looked at")
    assert not known.outdated()
