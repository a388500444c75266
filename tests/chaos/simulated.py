"""The faults of a simulated node in mode hami, and how it is made well again."""
import signal
import time

from node.base import wait_until
from node.hami import PHASE, TO_ALLOCATE, HamiNode, api_server

NVML_CALLS = ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetMinorNumber"]

# What a restarted kubelet says of a pod whose container was restarted before and whose card NVML calls broken now.
SICK = ["no healthy devices present", "previously allocated devices are no longer healthy"]


class ChaosNode(HamiNode):
    away = False
    broken = ()
    was_broken = False  # in the round that ends with heal()

    def all_ready(self, name):
        pod = self.pod(name)
        return pod["phase"] == "Running" and all(c["state"] == "running" for c in pod["containers"] if not c.get("init"))

    def was_cut_off(self, name):
        """Rejected because the connection to the agent broke in the middle of a call, or because a kubelet that restarted
        found the cards of an agent that restarted too, while NVML said that they are broken. For no other reason."""
        pod = self.pod(name)
        words = ["code = Canceled", "code = Unavailable", *(SICK if self.was_broken else [])]
        return pod["phase"] == "Failed" and pod["reason"] == "UnexpectedAdmissionError" and \
            any(word in pod["message"] for word in words)

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
        self.was_broken, self.broken = bool(self.broken), ()
        # A card that was sick is so until it has been well for a while: not into the next round.
        whole = len(self.uuids()) * self.split
        wait_until("every card is well again", 60, lambda: self.allocatable() == whole, every=0.05)

    def story(self):
        """The kubelet's view of pods that are not well, and the agent's last words."""
        bad = [p for p in self.status()["pods"] if not self.all_ready(p["name"])]
        return f"{bad}\nthe agent:\n" + self.agent_log.read_text()[-4000:]

    def start_agent(self, *flags, **kw):
        super().start_agent("--health-recovery-seconds=1", *flags, **kw)

    # --- faults -------------------------------------------------------------------------------------------------------------
    def faults(self):
        return {
            "agent killed": (4, self.kill_agent),
            "agent asked to end": (2, lambda r: self.again(signal.SIGTERM)),
            "kubelet restarted": (2, lambda r: self.restart_kubelet()),
            "API server away": (2, self.api_away),
            "API connections cut": (2, lambda r: self.api.cut()),
            "API errors": (2, self.api_errors),
            "NVML error": (2, self.nvml_error),
        }

    def again(self, signo):
        self.stop_agent(signo)
        self.start_agent()

    def kill_agent(self, r):
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
