"""/webhook on the running scheduler: what the cluster has and what a quota leaves, as they are now."""
import json

from sched_peer import gpu, pod, wait_until


def review(scheduler, a_pod, user="eve", operation="CREATE"):
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "1", "namespace": "default", "operation": operation, "userInfo": {"username": user}, "object": a_pod}}
    status, headers, answer = scheduler.ask("POST", "/webhook", json.dumps(body).encode(), [("Content-Type", "application/json")])
    assert status == 200 and headers["content-type"] == "application/json"
    return json.loads(answer)["response"]


def message(answer):
    return answer["status"].get("message", "")


def test_the_cluster_as_it_is_now(scheduler, cluster):
    cluster.node("n1", memory=40000)
    scheduler.start(f"--kubeconfig={cluster.kubeconfig}", "--scheduler-name=hami-scheduler").wait_ready()
    assert review(scheduler, pod(**gpu(40000)))["allowed"]
    assert "at most 40000 MiB" in message(review(scheduler, pod(**gpu(40001))))
    cluster.node("n2", memory=80000)
    wait_until("the larger card", 30, lambda: review(scheduler, pod(**gpu(80000)))["allowed"])
    assert "GPU-n2-0" in scheduler.metrics()
    # Its device plugin restarts: a pod may wait for it.
    cluster.node("n2", cards=0)
    wait_until("it is away", 30, lambda: "GPU-n2-0" not in scheduler.metrics())
    assert review(scheduler, pod(**gpu(80000)))["allowed"] and not review(scheduler, pod(**gpu(80001)))["allowed"]
    # A quota, and what is held of it.
    cluster.api.put_tree("resourcequotas", "default", {
        "metadata": {"name": "q"}, "spec": {"hard": {"limits.nvidia.com/gpumem": "50k"}}})
    wait_until("the quota", 30, lambda: not review(scheduler, pod(**gpu(50001)))["allowed"])
    assert review(scheduler, pod(**gpu(50000)))["allowed"] and review(scheduler, pod(**gpu(25000, 2)))["allowed"]
    cluster.held("old", "n1", "GPU-n1-0,NVIDIA,30000,0:;")
    wait_until("what is held", 30, lambda: not review(scheduler, pod(**gpu(20001)))["allowed"])
    answer = review(scheduler, pod(**gpu(20001)))
    assert message(answer) == "exceeding resource quota"
    assert answer["warnings"] == ["the pod asks for 20001 MiB and 0 percent of cards' cores; left: 20000 MiB"]
    assert review(scheduler, pod(**gpu(20000)))["allowed"]


def test_a_cluster_that_is_not_known_refuses_nobody(scheduler):
    scheduler.start("--scheduler-name=hami-scheduler", "--annotation-writers=a,adam")
    assert scheduler.ask("GET", "/readyz")[0] == 503
    assert review(scheduler, pod(**gpu(2**31 - 1)))["allowed"]
    forged = pod(cpu=1)
    forged["metadata"]["annotations"] = {"hami.io/vgpu-node": "n1"}
    assert not review(scheduler, forged)["allowed"] and not review(scheduler, forged, operation="UPDATE")["allowed"]
    assert review(scheduler, forged, "adam")["allowed"]
    for result, count in (("patched", 1), ("refused", 2), ("unchanged", 1), ("error", 0)):
        assert scheduler.metric("hami_scheduler_admissions_total", result=result) == count, result
    assert scheduler.metric("hami_scheduler_admission_warnings_total") == 0


def test_bodies_that_are_too_long_or_none(scheduler):
    scheduler.start()
    assert scheduler.ask("GET", "/webhook")[0] == 405
    assert scheduler.ask("POST", "/webhook", b"x" * (8 << 20), [("Content-Type", "application/json")])[0] == 413
    status, _, answer = scheduler.ask("POST", "/webhook", b"", [("Content-Type", "application/json")])
    assert status == 200 and message(json.loads(answer)["response"]) == "request body is empty"
