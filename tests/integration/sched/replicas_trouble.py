"""Faults of the replicas' world, drawn by its dice. Each sees to it that it happens."""
import json
import signal
import time

from api_server import reset, status
from replicas_keys import signed_by
from sched_peer import is_binding, wait_until

WEIGHTS = {"kill": 4, "sleep": 4, "end": 3, "cut": 1, "lose_answer": 2, "throttle": 2, "expire_watches": 2, "expire_pages": 2,
           "change_keys": 1}
FOLLOWED = {"lose_lease": 6}
SIGNED_LATE_S = 8  # a Binding that the API server had no time for comes again within this


class Trouble:
    """One fault at a time, the leader's mostly; each kind once before any comes again. The longest, a change of the keys, is sure
    to come in one of the two worlds of a seed only."""

    def __init__(self, world):
        self.world, self.done = world, {}
        self.weights = WEIGHTS | (FOLLOWED if world.by == "follow" else {})
        spared = {"change_keys"} if (world.seed + (world.by == "follow")) % 2 else set()
        self.sure = self.weights.keys() - spared
        self.first = world.dice.sample(sorted(self.sure), len(self.sure))

    def one(self):
        dice, world = self.world.dice, self.world
        what = self.first.pop() if self.first else dice.choices(list(self.weights), list(self.weights.values()))[0]
        victims = [world.last_good if dice.random() < 0.8 else dice.choice(world.replicas)]
        if dice.random() < 0.15:
            victims = dice.sample(world.replicas, 2)
        world.api.slow_share = dice.choice((0.05, 0.05, 0.4))
        world.tell(f"{what} {' '.join(r.name for r in victims)}")
        getattr(self, what)(victims)
        self.done[what] = self.done.get(what, 0) + 1

    def beside(self, victims):
        """The kube-schedulers that share the fault: it is the whole pod's, or its scheduler's alone."""
        return [r.kube for r in victims if r.kube and self.world.dice.random() < 0.6]

    def kill(self, victims):
        with_it = self.beside(victims)
        for r in victims:
            r.end(signal.SIGKILL)
        for k in with_it:
            k.end()
        time.sleep(self.world.dice.choice((0, 0.5, 2)))
        for k in with_it:
            k.start()
        for r in victims:
            r.start()

    def sleep(self, victims):
        with_it = self.beside(victims)
        for r in victims:
            r.send(signal.SIGSTOP)
        for k in with_it:
            k.sleep()
        time.sleep(self.world.dice.choice((0.5, 1.5, 2.5, 3.5, 6)))
        for k in self.world.dice.sample(with_it, len(with_it)):
            k.wake()
        for r in victims:
            r.send(signal.SIGCONT)

    def end(self, victims):
        for k in self.beside(victims):
            k.leave()
            k.start()
        for r in victims:
            r.end()
            r.start()

    def lose_lease(self, victims):
        """Of the leader the kube-scheduler alone: killed, asleep, or ended as it should be; until another has its Lease."""
        what = self.world.dice.choice(("end", "sleep", "leave", "leave"))
        held = wait_until("the Lease is somebody's", 30, lambda: [r.kube for r in self.world.replicas if r.kube.leads])
        kubes = [*{*held, *(r.kube for r in victims[1:])}]
        if what == "leave" or self.world.dice.random() < 0.5:  # the next one may lead with Bindings of this one under way
            self.world.api.slow_share = 0.6
            time.sleep(0.5)
        for k in kubes:
            getattr(k, what)()
        wait_until(f"the Lease is another's after {what}", 30,
                   lambda: any(r.kube.leads for r in self.world.replicas if r.kube not in kubes), every=0.05)
        time.sleep(self.world.dice.choice((0, 1, 4)))
        for k in kubes:
            if what == "sleep":
                k.wake()
            else:
                k.start()

    def throttle(self, victims):
        """No time for Bindings, and the leader changes meanwhile."""
        self.world.api.fault(status(429, "TooManyRequests", {"Retry-After": str(self.world.dice.randint(2, 5))}), times=4,
                             when=is_binding)
        time.sleep(self.world.dice.random())
        self.change_leader(victims)

    def change_leader(self, victims):
        self.world.dice.choice((self.kill, self.sleep, self.lose_lease if self.world.by == "follow" else self.kill))(victims)

    def cut(self, _):
        self.world.api.cut()

    def lose_answer(self, _):
        """Bound, and the connection breaks before anybody says so."""
        def bound_and_cut(h):
            with self.world.api.lock:
                self.world.api.change(h.request_seen, *self.world.api.split(h.request_seen.path))
            reset(h)
        self.world.api.fault(bound_and_cut, times=3, when=is_binding)

    def expire_watches(self, victims):
        """What the watches would tell next is forgotten: they end with 410, or cannot be taken up again."""
        api, dice = self.world.api, self.world.dice
        before = api.expired["watch"]
        api.end_watches()
        if dice.random() < 0.5:
            api.cut()
        if dice.random() < 0.5:
            self.change_leader(victims)
        wait_until("a watch ends with 410", 30, lambda: api.expired["watch"] > before)

    def expire_pages(self, victims):
        """Lists that go over several pages, and cannot be gone on with in the middle."""
        api, dice = self.world.api, self.world.dice
        before = api.expired["page"]
        with api.lock:
            api.dying_pages = dice.choice((1, 2, 3, 5))
        api.end_watches()
        if dice.random() < 0.5:
            self.change_leader(victims)

        def told():
            api.end_watches()  # again: there may have been too few pods for a second page
            time.sleep(0.5)
            return api.expired["page"] > before
        wait_until("a page in the middle of a list is 410", 60, told)

    def change_keys(self, victims):
        """A new key for one replica after the other; the old one goes when nothing is left that it signed."""
        world, dice, keys = self.world, self.world.dice, self.world.keys
        old, new = keys.newest, keys.make()
        keys.kept = new  # what one replica does not believe yet is still there when it gets the key
        some = dice.sample(range(len(world.replicas)), len(world.replicas))
        first_to_leader = keys.made == 2 or dice.random() < 0.6
        if first_to_leader:
            some.sort(key=lambda i: world.replicas[i] is not world.last_good)
        for n, i in enumerate(some):
            keys.give(i, new)
            if n == 0 and first_to_leader:
                self.wait_doubted()
            time.sleep(dice.choice((0, 0.3, 1.5)))
            if n == 0 and dice.random() < 0.7:
                self.change_leader(victims)
        wait_until(f"a pod is signed by {new}", 120, lambda: world.api.bound_by[new])
        wait_until("no replica doubts what another one signed", 60, lambda: not any(map(self.doubts, world.replicas)), every=0.2)
        keys.kept, keys.retired = None, old
        wait_until(f"nothing is left that {old} signed", 120, lambda: self.is_unused(old), every=0.2)
        keys.retired = None
        for i in dice.sample(some, len(some)):
            keys.take(i, old)
            time.sleep(dice.choice((0, 0.3)))
        keys.known.discard(old)

    def wait_doubted(self):
        """What the leader binds now the others do not believe; unless another leads by now, who has not got the key."""
        end = time.monotonic() + 10
        while time.monotonic() < end and not any(map(self.doubts, self.world.replicas)):
            time.sleep(0.1)

    @staticmethod
    def doubts(replica):
        return replica.it.metric("hami_scheduler_doubted_pods")

    def is_unused(self, key):
        """No pod is signed by it, and no Binding that is on its way."""
        api = self.world.api
        with api.lock:
            late = [r for r in api.requests[-2000:] if r.path.endswith("/binding") and r.at > time.monotonic() - SIGNED_LATE_S]
            return not any(signed_by(t) == key for t in api.pods()) and not any(signed_by(json.loads(r.body)) == key for r in late)
