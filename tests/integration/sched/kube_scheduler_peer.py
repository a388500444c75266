"""The kube-scheduler of a pod, as far as its Lease goes: client-go's leader election (tools/leaderelection), with its mistakes.
It knows nothing of the scheduler beside it."""
import datetime
import threading
import time
import uuid

LEASE = ("leases", "kube-system", "hami")
DURATION, DEADLINE, RETRY = 3, 2, 0.3


class Ended(Exception):
    pass


class KubeScheduler:
    """Processes of one pod, one after the other."""

    def __init__(self, api, host, dice):
        self.api, self.host, self.dice = api, host, dice
        self.start()

    def start(self):
        self.life = Life(self.api, self.host, self.dice)

    def end(self):
        """Killed. What it has sent arrives all the same."""
        self.life.killed.set()
        self.life.awake.set()

    def leave(self):
        """Asked to end: it gives its Lease back, whatever the scheduler beside it still does."""
        self.life.leaving.set()
        self.life.join(10)
        assert not self.life.is_alive(), f"the kube-scheduler of {self.host} does not end"

    def sleep(self):
        self.life.awake.clear()

    def wake(self):
        self.life.awake.set()

    @property
    def leads(self):
        with self.api.lock:
            lease = self.api.objects.get(LEASE)
            return lease is not None and lease["spec"].get("holderIdentity") == self.life.me


class Life(threading.Thread):
    """One process. It begins anew with the same name when it has lost its Lease, as its container does."""

    def __init__(self, api, host, dice):
        super().__init__(daemon=True)
        self.api, self.host, self.dice = api, host, dice
        self.awake, self.killed, self.leaving = threading.Event(), threading.Event(), threading.Event()
        self.awake.set()
        self.begin()
        self.start()

    def begin(self):
        self.me = f"{self.host}_{uuid.UUID(int=self.dice.getrandbits(128))}"
        self.observed, self.observed_at, self.version = {}, 0, None

    def run(self):
        try:
            while not self.api.stopping.is_set():
                self.until(self.try_once, None)
                while self.until(self.try_once, DEADLINE):
                    self.pause(RETRY)
                self.begin()
                self.pause(RETRY)
        except Ended:
            if self.leaving.is_set() and not self.killed.is_set():
                self.release()

    def until(self, what, seconds):
        """False: not in so many seconds of this process's own look at the clock."""
        begun = time.monotonic()
        while not what():
            self.pause(RETRY)
            if seconds and time.monotonic() - begun > seconds:
                return False
        return True

    def pause(self, seconds):
        self.leaving.wait(seconds * (1 + 0.2 * self.dice.random()))
        self.look_up()

    def look_up(self):
        """Where it is stopped, or finds that it ends."""
        self.awake.wait()
        if self.killed.is_set() or self.leaving.is_set() or self.api.stopping.is_set():
            raise Ended

    @property
    def leads(self):
        return self.observed.get("holderIdentity") == self.me

    def see(self, tree):
        if tree["spec"] != self.observed:
            self.observed, self.observed_at = tree["spec"], time.monotonic()
        self.version = tree["metadata"]["resourceVersion"]

    def try_once(self):
        """tryAcquireOrRenew; the time that it writes is when it began."""
        self.look_up()
        now, text = time.monotonic(), datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.me, "leaseDurationSeconds": DURATION, "acquireTime": text, "renewTime": text,
                "leaseTransitions": 0}
        valid = self.observed_at + DURATION > now
        if not (self.leads and valid and self.version):
            with self.api.lock:
                tree = self.api.objects.get(LEASE)
            if tree is None:
                return self.write(spec, None)
            self.see(tree)
            if self.observed["holderIdentity"] and self.observed_at + DURATION > now and not self.leads:
                return False
        spec["leaseTransitions"] = self.observed["leaseTransitions"] + (not self.leads)
        if self.leads:
            spec["acquireTime"] = self.observed["acquireTime"]
        return self.write(spec, self.version)

    def write(self, spec, version):
        """Under the version that was read. Once it is sent it arrives, be it late."""
        self.look_up()
        time.sleep(1.2 * self.dice.random() if self.dice.random() < 0.03 else 0.01 * self.dice.random())
        with self.api.lock:
            tree = self.api.objects.get(LEASE)
            if (tree and tree["metadata"]["resourceVersion"]) != version:
                self.version = None  # the next try reads it: the fast path's conflict falls back to it
                return False
            tree = self.api.put_tree("leases", "kube-system", {"metadata": {"name": LEASE[2]}, "spec": spec})
        self.see(tree)
        return True

    def release(self):
        """ReleaseOnCancel."""
        with self.api.lock:
            tree = self.api.objects.get(LEASE)
            if self.leads and tree["metadata"]["resourceVersion"] == self.version:
                self.api.put_tree("leases", "kube-system", {"metadata": {"name": LEASE[2]}, "spec": {
                    **self.observed, "holderIdentity": "", "leaseDurationSeconds": 1}})
