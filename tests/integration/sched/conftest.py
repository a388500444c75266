"""Fixtures of the scheduler's tests."""
import signal
import ssl

import pytest

from sched_peer import Authority, Cluster, Scheduler, Secret


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    it = Authority(tmp_path_factory.mktemp("pki") / "ca")
    it.issue("first")
    it.issue("second")
    return it


@pytest.fixture
def scheduler(build, short_tmp):
    it = Scheduler(build, short_tmp)
    yield it
    log = it.log() if it.out.exists() else ""
    code = it.end()
    assert code in (None, 0, -signal.SIGKILL), log
    assert "ERROR: AddressSanitizer" not in it.log() and "runtime error" not in it.log() if it.out.exists() else True


@pytest.fixture
def served(scheduler, authority, short_tmp):
    """With TLS, from a folder as the kubelet makes it of a Secret: links through ..data."""
    scheduler.secret = Secret(short_tmp / "tls")
    scheduler.secret.put(authority, "first")
    scheduler.tls = ssl.create_default_context(cafile=str(authority.folder / "ca.crt"))
    scheduler.flags = [f"--cert_file={scheduler.secret.folder}/tls.crt", f"--key_file={scheduler.secret.folder}/tls.key"]
    return scheduler


@pytest.fixture
def cluster(short_tmp):
    it = Cluster(short_tmp)
    yield it
    it.api.down()
