"""The tools that judge the others: the report of results, the packages, the progress of long steps."""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from node.base import REPO

CTEST = """<testsuite name="t" tests="4" failures="1" skipped="1">
<testcase name="good" classname="good" status="run"><system-out>x</system-out></testcase>
<testcase name="bad" classname="bad" status="fail"><failure message=""/><system-out>the reason
in two lines</system-out></testcase>
<testcase name="gone" classname="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="left" classname="left" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>running
skipped: needs root</system-out></testcase>
</testsuite>"""
PYTEST = """<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
<testcase classname="integration.test_a" name="test_one" time="0.1"/>
<testcase classname="integration.test_a" name="test_two"><failure message="assert 1 == 2">trace</failure></testcase>
<testcase classname="integration.test_a" name="test_three"><error message="failed on setup">trace</error></testcase>
<testcase classname="integration.test_a" name="test_four"><skipped message="needs root">x</skipped></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path):
    def run(*args, **files):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        done = subprocess.run(["/usr/bin/python3", str(REPO / "tools/report.py"), *args], cwd=tmp_path, capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout
    return run


def test_report_counts_every_case_once_and_names_what_failed(report):
    code, text = report("c.xml", "p.xml", **{"c.xml": CTEST, "p.xml": PYTEST})
    assert code == 1
    assert text.splitlines()[-1] == "2 passed, 4 failed, 2 skipped"
    for line in ("skipped: left: skipped: needs root", "skipped: test_a::test_four: needs root", "FAILED: bad",
                 "    in two lines", "FAILED: gone", "FAILED: test_a::test_two", "    assert 1 == 2", "FAILED: test_a::test_three"):
        assert line in text.splitlines()


def test_report_shows_the_reason_and_the_end_of_a_long_failure(report):
    lines = ["&#10;".join(f"line {i}" for i in range(n)) for n in (60, 61)]
    cases = "".join(f'<testcase name="{i}" classname="{i}"><failure message="{text}"/></testcase>' for i, text in enumerate(lines))
    _, text = report("c.xml", **{"c.xml": f"<testsuite>{cases}</testsuite>"})
    whole, _, cut = text.partition("FAILED: 1")
    assert whole.count("    line ") == 60
    assert "line 19\n    [1 lines are left out]\n    line 21\n" in cut


def test_report_of_good_results(report):
    good = '<testsuite><testcase name="a" classname="a" status="run"/></testsuite>'
    assert report("c.xml", **{"c.xml": good}) == (0, "1 passed, 0 failed\n")


def test_report_takes_a_skip_that_must_run_for_a_failure(report):
    code, text = report("--must-run", "p.xml", **{"p.xml": PYTEST})
    assert code == 1
    assert text.splitlines()[-1] == "1 passed, 3 failed"
    assert "FAILED: test_a::test_four" in text


@pytest.mark.parametrize("content, says", [(None, "no results"), ("<testsuites/>", "no test ran"), ("<broken", "no results")])
def test_report_takes_missing_results_for_a_failure(report, content, says):
    code, text = report("c.xml", **({} if content is None else {"c.xml": content}))
    assert code == 1
    assert says in text
    assert text.splitlines()[-1] == "0 passed, 1 failed"


def test_report_counts_a_failed_step_and_tells_what_it_printed(report):
    good = '<testsuite><testcase name="a" classname="a" status="run"/></testsuite>'
    code, text = report("--step", "build asan", "log", "c.xml", **{"c.xml": good, "log": "one\nlast words\n"})
    assert code == 1
    assert text.splitlines()[-4:] == ["FAILED: build asan", "    one", "    last words", "1 passed, 1 failed"]


def test_setup_names_the_packages_on_another_distribution(tmp_path):
    (tmp_path / "os-release").write_text('ID=fedora\nVERSION_ID=41\n')
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "sort", "grep", "cat", "pkg-config"):  # hardly anything is installed there
        (tools / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(["/bin/bash", str(REPO / "tools/setup"), "build"], capture_output=True, text=True, check=False,
                          env={"PATH": str(tools), "OS_RELEASE": str(tmp_path / "os-release"), "HOME": str(tmp_path)})
    assert done.returncode == 2, done.stderr
    assert "not Debian 12" in done.stderr
    assert "    cmake" in done.stderr.splitlines() or "    ninja-build" in done.stderr.splitlines() or "    gcc" in done.stderr.splitlines()


def test_setup_refuses_an_unknown_purpose():
    done = subprocess.run([str(REPO / "tools/setup"), "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such purpose: nonsense" in done.stderr


def test_progress_passes_what_is_not_progress():
    text = "[1/3] Building a.c\nwarning: this\n 2/9 Test #2: name ....   Passed    0.1 sec\n 3/9 Test #3: broken ...***Failed 1 sec\n"
    done = subprocess.run(["/bin/bash", "-c", f". {REPO}/tools/progress.sh; progress_follow title"], input=text,
                          capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "title ..."
    assert "warning: this" in lines
    assert any("broken" in line for line in lines)
    assert not any("Building" in line or "Passed" in line for line in lines)


def test_what_was_installed_finds_its_own_parts(build, short_tmp):
    """The agent its libvgpu.so, hami-simctl its daemon and its driver libraries, from the folders of make install."""
    if not os.access(build, os.W_OK):
        pytest.skip("cmake --install leaves a list in the build folder, which is somebody else's")
    prefix, sim, cdi = short_tmp / "usr", short_tmp / "sim", short_tmp / "cdi"
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True, capture_output=True)
    simctl = [str(prefix / "bin/hami-simctl"), f"--dir={sim}"]
    subprocess.run([*simctl, "up", str(prefix / "share/hami-vgpu/nodes/t4x2.yaml")], check=True, capture_output=True)
    try:
        spec = json.loads((sim / "cdi/nvidia.json").read_text())
        mounted = {pathlib.Path(m["hostPath"]).resolve() for m in spec["containerEdits"]["mounts"]}
        assert {prefix / "lib/hami-vgpu/sim/libcuda.so.1", prefix / "lib/hami-vgpu/sim/libnvidia-ml.so.1"} <= mounted
    finally:
        subprocess.run([*simctl, "down"], check=True, capture_output=True)
    cdi.mkdir()
    agent = subprocess.Popen([str(prefix / "bin/hami-device-plugin"), f"--state-dir={short_tmp}/state", f"--cdi-dir={cdi}",
                              f"--kubelet-socket={short_tmp}/kubelet.sock", "--nvml-library=/none"],
                             stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 10
        while not list((short_tmp / "state/lib").glob("libvgpu.so.*")):
            assert agent.poll() is None and time.monotonic() < until, agent.stderr.read()
            time.sleep(0.02)
    finally:
        agent.terminate()
        agent.communicate(timeout=10)


@pytest.mark.parametrize("program", ["hami-device-plugin", "hami-smi", "hami-simd", "hami-simctl", "hami-simkubelet"])
def test_each_program_says_its_version(build, program):
    done = subprocess.run([build / "bin" / program, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(rf"{program} \d+\.\d+\.\d+\n", done.stdout)
