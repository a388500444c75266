"""The faults of the real kubelet and containerd, with the agent as a process of the node's, which may die as often as it
likes (a pod's would be held back by the kubelet, longer each time)."""
import signal
import time

from node.base import Node
from node.hami import PHASE, TO_ALLOCATE
from node.hami_real import Api, HamiDeployed
from node.real import CLUSTER, RealNode, stopped

NVML_CALLS = ["nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2"]

# What a kubelet says that restarted and looked at its pods in the moment in which the agent was dead, or NVML said that the
# card is broken. It may do so in the round after its restart.
SICK = ["no healthy devices present", "previously allocated devices are no longer healthy"]


class ChaosRealNode(HamiDeployed):
    broken = ()
    shows_calm = False  # the Node's allocatable is some seconds old

    def __init__(self, folder, **kw):
        super().__init__(folder, None, **kw)
        self.state = self.folder / "state"
        self.applied = True  # nothing is: the agent is a process

    def up(self):
        RealNode.up(self)
        self.api = Api(self)

    def start_agent(self, *flags, env=None, binding="late"):
        Node.start_agent(self, "--mode=hami", f"--kubeconfig={CLUSTER}/pki/admin.conf", "--node-name=node1",
                         f"--device-split-count={self.split}", "--health-recovery-seconds=1", *flags, env=env, binding=binding)

    stop_agent = Node.stop_agent
    agent_pid = Node.agent_pid

    def down(self):
        self.stop_agent(signal.SIGKILL)
        super().down()

    # --- what chaos asks --------------------------------------------------------------------------------------------------
    def all_ready(self, name):
        pod = self.pod(name)
        states = pod["status"].get("containerStatuses", [])
        return pod["status"].get("phase") == "Running" and len(states) == len(pod["spec"]["containers"]) and \
            all("running" in s["state"] for s in states)

    def limits_inside(self, _name, _container):
        return None  # looked at on the stand-in only

    def was_cut_off(self, name, _faults):
        status = self.pod(name)["status"]
        words = ["code = Canceled", "code = Unavailable", *SICK]
        return status.get("phase") == "Failed" and any(word in status.get("message", "") for word in words)

    def is_finished(self, name):
        marks = self.annotations(name)
        return marks.get(PHASE) == "success" and "NVIDIA" not in marks.get(TO_ALLOCATE, "")

    def phase(self, name):
        return self.pod(name)["status"].get("phase", "")

    def kill_container(self, name, container="c"):
        """It may have ended just now."""
        try:
            super().kill_container(name, container)
        except AssertionError as e:
            assert "not found" in str(e), e

    def heal(self):
        for card, call in self.broken:
            self.simctl("gpu", str(card), "nvml-error", call, "0")
        self.broken = ()

    @staticmethod
    def is_calm():
        return True

    def unwell(self, names):
        for name in (n for n in sorted(names) if not self.all_ready(n) or not self.is_finished(n)):
            s = self.pod(name)["status"]
            words = [name, *(s.get(k) for k in ("phase", "reason", "message")), str([c["state"] for c in s.get("containerStatuses", [])]),
                     f"bind-phase {self.annotations(name).get(PHASE)}"]
            yield " ".join(filter(None, words))

    # --- faults ---------------------------------------------------------------------------------------------------------------
    def faults(self):
        return {
            "agent killed": (4, lambda r: self.again(r, signal.SIGKILL)),
            "agent asked to end": (1, lambda r: self.again(r, signal.SIGTERM)),
            "kubelet restarted": (2, lambda r: self.restart_kubelet(r.choice(["TERM", "KILL"]))),
            "API server hangs": (2, self.api_hangs),
            "NVML error": (1, self.nvml_error),
        }

    def again(self, r, signo):
        self.stop_agent(signo)
        self.start_agent()
        time.sleep(r.choice([0, 0.02, 0.1, 0.5]))

    @staticmethod
    def api_hangs(r):
        with stopped("kube-apiserver"):
            time.sleep(r.random() * 4)

    def nvml_error(self, r):
        card, call = r.randrange(2), r.choice(NVML_CALLS)
        self.simctl("gpu", str(card), "nvml-error", call, "999")
        self.broken = (*self.broken, (card, call))
