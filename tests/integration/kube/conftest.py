"""Fixtures of the Kubernetes client's tests: a stand-in API server, certificates, and kube_tool against it."""
import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from api_server import ApiServer  # noqa: E402
from kube_peer import FAST, Pki, Tool, write_kubeconfig  # noqa: E402


@pytest.fixture
def api():
    it = ApiServer()
    yield it
    it.down()


@pytest.fixture
def start(build, api, short_tmp):
    """start("get", "/path", user={...}) runs kube_tool against the stand-in."""
    running = []

    def run(*args, user=None, server=None, cluster=None, env=None, fast=True):
        config = write_kubeconfig(short_tmp / "kubeconfig", server or f"http://127.0.0.1:{api.port}", user, **(cluster or {}))
        running.append(Tool([build / "tests/kube_tool", f"--kubeconfig={config}", *(FAST if fast else []), *args], env))
        return running[-1]

    yield run
    for tool in running:
        if tool.process.returncode is None:
            tool.stop()


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))
