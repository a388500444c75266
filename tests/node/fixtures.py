"""pytest's `clean` for every module with a `node`: no pod of one test lives on in the next, and the agent serves again."""
import pytest
from node.base import wait_until


@pytest.fixture(autouse=True)
def clean(node):
    yield
    node.delete_all()
    if node.agent is None or node.agent.poll() is not None:
        node.agent = None
        node.start_agent()
        wait_until("allocatable", 60, lambda: node.allocatable() > 0)


def serve(node, slots):
    """Everything up, the agent registered with so many slots; for a module's own `node` fixture."""
    node.up()
    node.driver_up()
    node.start_agent()
    wait_until(f"{slots} slots; the agent said: " + str(node.agent_log), 60, lambda: node.allocatable() == slots)
