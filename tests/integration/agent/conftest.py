"""Fixtures of the agent's tests: a kubelet of grpcio, and an agent on an NVML whose answers the test changes."""
import pytest

from kubelet_peer import Agent, Kubelet, wait_until


@pytest.fixture
def kubelet(short_tmp):
    it = Kubelet(short_tmp / "k")
    yield it
    it.stop()


@pytest.fixture
def agent(build, short_tmp, kubelet):
    it = Agent(build, short_tmp, kubelet)
    yield it
    it.end()


@pytest.fixture
def node(kubelet, agent):
    """Kubelet and agent, registered, the devices told."""
    kubelet.start()
    agent.start()
    kubelet.wait_registered()
    kubelet.devices()
    wait_until("the answer", 5, lambda: "after_start_ms" in agent.log())
    return agent
