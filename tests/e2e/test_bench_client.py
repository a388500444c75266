"""The client of tests/bench/sched_client, which runs by hand only: it builds, and `go vet` finds nothing."""
import os
import pathlib
import subprocess

CLIENT = pathlib.Path(__file__).resolve().parents[1] / "bench/sched_client"
FLAGS = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath", "GOTOOLCHAIN": "local"}  # build.sh's: what it built is used


def test_go_vet_finds_nothing():
    done = subprocess.run(["go", "vet", "./..."], cwd=CLIENT, env={**os.environ, **FLAGS}, check=False, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
