"""The simulated node as its users see it."""
import pytest

from sim_peer import Sim


@pytest.fixture
def sim(short_tmp):
    node = Sim(short_tmp / "n")
    yield node
    for user in node.users:
        user.kill()
    if node.dir.exists():
        node.run("down")
