"""Keys to sign placements with, changed while replicas run, in the order that docs/scheduler.md says."""
import subprocess

from sched_peer import Volume


def signed_by(tree):
    """The key's id; None: the pod has no signature."""
    text = tree["metadata"]["annotations"].get("hami.io/vgpu-signature")
    return text and text.split(".")[1]


class Keys:
    """A volume for each replica, and what the agents know."""

    def __init__(self, folder, replicas):
        folder.mkdir()
        self.folder, self.pem, self.known, self.made = folder, {}, set(), 0
        self.retired = None  # pods that it signed are ended before others
        self.kept = None     # and those that this one signed not at all
        self.volumes = [Volume(folder / str(i)) for i in range(replicas)]
        self.has = [set() for _ in range(replicas)]
        first = self.make()
        for i in range(replicas):
            self.give(i, first)

    @property
    def newest(self):
        return f"k{self.made:06}"

    def make(self):
        """Its public half goes to the agents, before anybody signs with it."""
        self.made += 1
        name = self.newest
        done = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"], check=True, capture_output=True, timeout=60)
        self.pem[name] = done.stdout
        self.known.add(name)
        return name

    def give(self, replica, name):
        self.has[replica].add(name)
        self.put(replica)

    def take(self, replica, name):
        self.has[replica].discard(name)
        self.put(replica)

    def put(self, replica):
        self.volumes[replica].write({name: self.pem[name] for name in self.has[replica]})
