"""Classic binding under HAMi's scheduler: everything is in the Allocate answer, but for the driver: NVIDIA's runtime brings
it, for which every container has the simulated one here. That obeys NVIDIA_VISIBLE_DEVICES, as the runtime would."""
import signal

from node.base import PLAIN, wait_until
from node.late import LateNode, restart_agent


class ClassicNode(LateNode):
    def __init__(self, folder, **kw):
        super().__init__(folder, **kw)
        (self.hook / "vgpu").mkdir(parents=True)

    def binds(self):
        libraries = [f"{PLAIN}/sim/{name}:/usr/lib/x86_64-linux-gnu/{name}" for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
        return [*libraries, f"{self.sim}:{self.sim}"]

    def manifest(self, pod):
        for c in pod.containers:
            c.env = {"HAMI_SIM_DIR": str(self.sim), **c.env}
        return super().manifest(pod)

    def start_agent(self, *flags, env=None, binding="classic"):
        super().start_agent(*flags, env=env, binding=binding)

    def ready(self):
        want = len(self.uuids()) * self.split
        wait_until(f"{want} devices; the agent said: {self.agent_log}", 60, lambda: self.allocatable() == want)

    def again(self, *flags, signo=signal.SIGTERM):
        restart_agent(self, *flags, signo=signo)

    def said(self, text):
        return text in self.agent_log.read_text()
