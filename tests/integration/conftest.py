"""Fixtures of the integration tests: where the build is, and folders short enough for unix sockets."""
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

# grpcio's handlers of fork once ended the whole run (SIGSEGV in fork); no child of ours uses gRPC.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

REPO = TESTS.parent
BUILD = pathlib.Path(os.environ.get("HAMI_BUILD", REPO / "build"))


@pytest.fixture(scope="session")
def build():
    """The build folder: bin/, lib/, sim/. HAMI_BUILD says which."""
    return BUILD


@pytest.fixture
def short_tmp():
    """A folder of the test's own whose path leaves room for a socket's name (108 bytes in all)."""
    folder = tempfile.mkdtemp(prefix="hm-", dir="/tmp")
    yield pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def needs_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")
