"""What the API server of the replicas' world counts for itself. It knows nothing of how they decide."""
import collections
import json
import threading
import time

from api_server import ApiServer
from replicas_keys import signed_by
from sched_peer import is_binding, slow

NODES, CARDS, MEMORY, SLOTS = 4, 2, 40000, 10
ENDED = ("Succeeded", "Failed")
PAGE = 4  # pods on a page of a list: there are some 20

Sent = collections.namedtuple("Sent", "uid code text")


def shares_of(text):
    """Of the annotation's text: per container (card, MiB, cores)."""
    return [[(d.split(",")[0], int(d.split(",")[2]), int(d.split(",")[3])) for d in part.split(":") if d]
            for part in text.removesuffix(";").split(";")]


def holds(tree):
    return tree.get("spec", {}).get("nodeName") and tree.get("status", {}).get("phase") not in ENDED


def shares_held(tree):
    """(card, MiB, cores) of all containers."""
    return [s for c in shares_of(tree["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"]) for s in c]


class Recount:
    """What every card bears, from the pods alone."""

    def __init__(self, cards):
        self.cards = cards  # {uuid: node}

    def used(self, pods):
        """{uuid: [MiB, cores, shares]}"""
        out = {uuid: [0, 0, 0] for uuid in self.cards}
        for tree in filter(holds, pods):
            for uuid, mib, cores in shares_held(tree):
                for i, n in enumerate((mib, cores, 1)):
                    out[uuid][i] += n
        return out

    def sold_twice(self, pods):
        """(what, the pods that hold it) of each card that bears too much."""
        pods = list(pods)
        for uuid, (mib, cores, shares) in self.used(pods).items():
            if mib > MEMORY or cores > 100 or shares > SLOTS:
                yield (f"{uuid} is sold twice: {mib} of {MEMORY} MiB, {cores} cores, {shares} of {SLOTS} shares",
                       [t for t in filter(holds, pods) if uuid in (s[0] for s in shares_held(t))])

    def wrong_grant(self, tree):
        """What a pod was bound with is what it asks for, of the node it is on; None: it is."""
        limits = tree["spec"]["containers"][0]["resources"]["limits"]
        marks, node = tree["metadata"]["annotations"], tree["spec"]["nodeName"]
        got, = shares_of(marks.get("hami.io/vgpu-devices-allocated", ""))
        want = (int(limits["nvidia.com/gpumem"]), int(limits.get("nvidia.com/gpucores", 0)))
        if len({s[0] for s in got}) == len(got) == int(limits["nvidia.com/gpu"]) and marks["hami.io/vgpu-node"] == node \
                and all(s[1:] == want and self.cards[s[0]] == node for s in got):
            return None
        return f"{tree['metadata']['name']} on {node} asked for {limits} and has {marks}"


class CountingApi(ApiServer):
    """Counts all cards anew after each Binding, before anything else is changed. Some Bindings take long to get here, some are
    then worked on for longer than a Lease lasts (as the real one, until ?timeout= is over), and some of what the watches tell
    takes long to get there. Lists come in small pages, some of them late."""

    def __init__(self, dice, recount):
        self.dice, self.recount, self.bound, self.wrong = dice, recount, 0, []
        self.known_keys = None  # the agents'; None: nobody looks
        self.sent = collections.deque(maxlen=1000)
        self.bound_by = collections.Counter()  # a key's id, how often
        self.slow_share = 0.05  # of Bindings
        self.dying_pages = 0  # so many more pages are asked for with a token that is too old
        self.begun = time.monotonic()
        self.stood_still = collections.deque([(0, 0)], maxlen=50)  # (when, seconds) of this process
        self.doubted = 0  # events that say so
        super().__init__()
        self.page_most = PAGE
        threading.Thread(target=self.feel_the_pulse, daemon=True).start()

    def feel_the_pulse(self):
        while not self.stopping.is_set():
            at = time.monotonic()
            time.sleep(0.05)
            late = time.monotonic() - at - 0.05
            if late > 0.1:
                self.stood_still.append((time.monotonic(), late))

    def stall(self):
        """The longest in the last seconds."""
        return max((s for at, s in list(self.stood_still) if at > time.monotonic() - 5), default=0)

    def answer(self, h):
        if "continue" in h.request_seen.query:
            time.sleep(0.3 * self.dice.random() if self.dice.random() < 0.3 else 0)
            self.let_page_die()
        if not is_binding(h):
            super().answer(h)
        elif self.dice.random() < self.slow_share and self.stall() < 0.3:  # a Binding has come late enough then
            slow(h, self.dice.random(), self.dice.uniform(0.3, 3))
        else:
            slow(h, 0, 0.2 * self.dice.random() if self.dice.random() < 0.3 else 0)

    def let_page_die(self):
        with self.lock:
            if self.dying_pages > 0:
                self.dying_pages -= 1
                self.pages.clear()

    def before_telling(self, plural):
        if plural in ("pods", "leases") and self.dice.random() < 0.1:
            self.stopping.wait(1.5 * self.dice.random())

    def change(self, r, namespace, plural, name):
        answer = super().change(r, namespace, plural, name)
        self.doubted += plural == "events" and r.method == "POST" and b"PlacementDoubted" in r.body
        if r.path.endswith("/binding"):
            self.note(r, name, json.loads(r.body), answer[0])
        return answer

    def note(self, r, name, binding, code):
        marks = binding["metadata"]["annotations"]
        lease = self.objects.get(("leases", "kube-system", "hami"), {}).get("spec", {})
        who = r.headers.get("Authorization", "").removeprefix("Bearer ")
        self.sent.append(Sent(binding["metadata"]["uid"], code, (
            f"{name} ({binding['metadata']['uid']}) to {binding['target']['name']} with {marks.get('hami.io/vgpu-devices-allocated')} "
            f"by {who}, signed by {signed_by(binding)}, "
            f"came {r.at - self.begun:.3f} s, done {time.monotonic() - self.begun:.3f} s, {code}; "
            f"the Lease then: {lease.get('holderIdentity')}, renewed {lease.get('renewTime')}")))
        if code != 201:
            return
        self.bound += 1
        self.bound_by[signed_by(binding)] += 1
        self.wrong += self.wrong_now(self.objects["pods", "default", name])

    def wrong_now(self, tree):
        """After `tree` was bound."""
        wrong = self.recount.wrong_grant(tree)
        if wrong:
            yield self.with_bindings(wrong, [tree])
            return
        if self.known_keys is not None and signed_by(tree) not in self.known_keys:
            yield self.with_bindings(f"the agents know no key {signed_by(tree)}, only {sorted(self.known_keys)}", [tree])
        for what, pods in self.recount.sold_twice(self.pods()):
            yield self.with_bindings(what, pods)

    def with_bindings(self, what, pods):
        """With the Binding of each of these pods."""
        return "\n".join([what, *("  " + s.text for t in pods for s in self.sent
                                  if s.uid == t["metadata"]["uid"] and s.code == 201)])

    def pods(self):
        return [o for (p, namespace, _), o in self.objects.items() if p == "pods" and namespace == "default"]

    def state(self, name):
        with self.lock:
            return self.objects.get(("pods", "default", name))

    def evidence(self):
        """What is known when something else went wrong, in a few lines."""
        with self.lock:
            now = [self.with_bindings(what, pods) for what, pods in self.recount.sold_twice(self.pods())]
            lease = self.objects.get(("leases", "kube-system", "hami"), {}).get("spec", {})
            return [*(self.wrong[:1] or [f"no card was sold twice at any of {self.bound} Bindings"]), *now,
                    f"410 was told {dict(self.expired)}; this process stood still for {max(s for _, s in self.stood_still):.1f} s at "
                    f"most; the Lease: {lease}",
                    "the last Bindings:", *(f"  {s.text}" for s in list(self.sent)[-4:])]
