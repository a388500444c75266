"""Nodes with cards that no agent keeps: objects of the API server alone, as an agent that binds late would write them."""
import collections
import json

from node.hami import ALLOCATED, GPU, REGISTER, shares_in

CARDS, SLOTS, CARD_MIB = 8, 10, 40960
# The API server taints a node that nobody has declared ready.
ANYWHERE = [{"operator": "Exists"}]


def node_with_cards(name, **labels):
    register = [{"id": f"GPU-{name}-{k}", "index": k, "count": SLOTS, "devmem": CARD_MIB, "devcore": 100, "type": "NVIDIA A100",
                 "mode": "hami-core", "health": True, "custominfo": {"binding": "late"}} for k in range(CARDS)]
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(CARDS * SLOTS)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": {REGISTER: json.dumps(register)}},
            "status": {"capacity": room, "allocatable": room}}


def pod_with_cards(name, mib, cards=1, **spec):
    limits = {GPU: cards, "nvidia.com/gpumem": mib}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}], "tolerations": ANYWHERE,
                     "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, **spec}}


def shares_of(pod):
    """[(card, MiB)] by its annotation."""
    return shares_in(pod["metadata"]["annotations"][ALLOCATED])


def recount(pods):
    """What the pods' annotations add up to: {card: [MiB, pods]}."""
    held = collections.defaultdict(lambda: [0, 0])
    for pod in pods:
        for card, mib in shares_of(pod):
            held[card][0] += mib
            held[card][1] += 1
    return held
