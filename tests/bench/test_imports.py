"""Each bench can be imported and has what run_bench.py calls: most of them run by hand only."""
import importlib
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
BENCHES = sorted(p.stem for p in HERE.glob("bench_*.py"))


def test_there_are_many():
    assert len(BENCHES) > 10


@pytest.mark.parametrize("name", BENCHES)
def test_it_can_be_imported(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert callable(importlib.import_module(name).measure)
