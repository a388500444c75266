"""The faults of a simulated node in mode hami, and how it is made well again."""
import re
import signal
import time

from node.hami import PHASE, TO_ALLOCATE, HamiNode, api_server

NVML_CALLS = ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetMinorNumber"]

ENDED, KUBELET, NVML = {"agent killed", "agent asked to end"}, {"kubelet restarted"}, {"NVML error"}

# Each way in which the kubelet gives up a pod that no agent can help: its words, whether it had admitted the pod before
# (else it is in the middle of its calls; then "several": behind the first of them), and the faults without which it
# does not happen: one of each set.
REJECTIONS = [
    ("code = Canceled", "calls", [ENDED]),
    ("code = Unavailable", "calls", [ENDED]),
    ("has been stopped", "calls", [ENDED]),
    ("no healthy devices present", "several", [ENDED | NVML]),
    ("requested number of devices unavailable", "several", [NVML]),
    # A restarted kubelet looks at its pods, soon, and the agent is not back yet or has no card that is well.
    ("no healthy devices present", "admitted", [KUBELET, ENDED | NVML]),
]


class ChaosNode(HamiNode):
    away = False
    broken = ()
    shows_calm = True

    def all_ready(self, name):
        pod = self.pod(name)
        return pod["phase"] == "Running" and all(c["state"] == "running" for c in pod["containers"] if not c.get("init"))

    def limits_inside(self, name, container):
        """Percent of compute of each card, as libvgpu in the container reads it."""
        text = self.execute(name, ["/bin/sh", "-c", "cat /run/hami-vgpu/limits"], container)
        return {uuid: int(cores) for uuid, cores in re.findall(r"^gpu=(\S+) memory=\d+ cores=(\d+)$", text, re.M)}

    def was_cut_off(self, name, faults):
        """Rejected in a way for which one of these faults must have happened, and did."""
        pod = self.pod(name)
        if (pod["phase"], pod["reason"]) != ("Failed", "UnexpectedAdmissionError"):
            return False
        several = sum(1 for c in pod["containers"] if c["asks"]) > 1
        when = {"admitted"} if pod["admitted"] else {"calls", "several"} if several else {"calls"}
        return any(words in pod["message"] and at in when and all(faults & one for one in needed) for words, at, needed in REJECTIONS)

    def unwell(self, names):
        """One line for each: what the kubelet says of it, and the API."""
        pods = {p["name"]: p for p in self.status()["pods"]}
        for name in (n for n in sorted(names) if n not in pods or not self.all_ready(n) or not self.is_finished(n)):
            p = pods.get(name, {})
            states = {c["name"]: " ".join(filter(None, (c["state"], c["message"]))) for c in p.get("containers", [])}
            yield " ".join(filter(None, (name, p.get("phase", "is not there"), p.get("reason"), p.get("message"), str(states),
                                         f"bind-phase {self.annotations(name).get(PHASE)}")))

    def is_finished(self, name):
        marks = self.annotations(name)
        return marks.get(PHASE) == "success" and "NVIDIA" not in marks.get(TO_ALLOCATE, "")

    def heal(self):
        if self.away:
            self.api.up()
            self.away = False
        self.api.faults.clear()
        for card, call in self.broken:
            self.simctl("gpu", str(card), "nvml-error", call, "0")
        self.broken = ()

    def is_calm(self):
        """No fault goes on into the next round: every card is well (a sick one is so until it has been well for a while),
        and a restarted kubelet has looked at its pods."""
        self.must_live()
        status = self.status()
        whole = len(self.uuids()) * self.split
        return not status["readmitting"] and status["resources"].get(self.resource, {}).get("allocatable") == whole

    def start_agent(self, *flags, **kw):
        super().start_agent("--health-recovery-seconds=1", *flags, **kw)

    # --- faults -------------------------------------------------------------------------------------------------------------
    def faults(self):
        return {
            "agent killed": (4, self.kill_agent),
            "agent asked to end": (2, self.ask_agent_to_end),
            "kubelet restarted": (2, lambda r: self.restart_kubelet()),
            "API server away": (2, self.api_away),
            "API connections cut": (2, lambda r: self.api.cut()),
            "API errors": (2, self.api_errors),
            "NVML error": (2, self.nvml_error),
        }

    def must_live(self):
        """It ends by our hand only: else what the kubelet rejects meanwhile would be taken for our doing."""
        assert self.agent.poll() is None, f"the agent ended by itself with {self.agent.poll()}: {self.agent_log.read_text()[-2000:]}"

    def ask_agent_to_end(self, _r):
        self.must_live()
        code = self.stop_agent(signal.SIGTERM)
        assert code in (0, -signal.SIGTERM), f"asked to end, the agent ended with {code}"  # the signal's: before it was ready
        self.start_agent()

    def kill_agent(self, r):
        self.must_live()
        self.stop_agent(signal.SIGKILL)
        time.sleep(r.choice([0, 0, 0.01, 0.1]))
        self.start_agent()
        time.sleep(r.choice([0, 0.005, 0.02, 0.05, 0.2]))  # the next kill comes at any point of its start

    def api_away(self, r):
        """Until it comes back at once, in a while, or with the calm."""
        if self.away:
            self.api.up()
            self.away = False
            return
        self.api.down()
        self.away = True
        if r.random() < 0.5:
            time.sleep(r.random() * 0.5)
            self.api.up()
            self.away = False

    def api_errors(self, r):
        answer = r.choice([api_server.status(500), api_server.status(429, headers={"Retry-After": "1"}),
                           api_server.status(409, "Conflict"), api_server.reset])
        method = r.choice(["PATCH", "GET"])
        self.api.fault(answer, times=r.randrange(1, 4), when=lambda h: h.command == method)

    def nvml_error(self, r):
        card, call = r.randrange(len(self.uuids())), r.choice(NVML_CALLS)
        self.simctl("gpu", str(card), "nvml-error", call, "999")
        self.broken = (*self.broken, (card, call))

    def place(self, pod, entries, **kw):
        """The scheduler cannot bind while the API is away: the test's own object is the API here, so it waits for it."""
        if self.away:
            self.api.up()
            self.away = False
        return super().place(pod, entries, **kw)
