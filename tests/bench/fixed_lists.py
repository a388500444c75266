"""A stand-in for the API server that has its lists ready as bytes, so that what reads them is what takes time: nodes of 9 KB
with eight cards each, pods of 3 KB. It takes no writes; watches stand open and say nothing."""
import base64
import http.server
import json
import socketserver
import threading
import urllib.parse

CARDS, MEMORY, SLOTS = 8, 81920, 10
VERSION = "1000"
PAGE = 500  # what the scheduler asks for at once
KEY = "2026-11"


def node_name(i):
    return f"node-{i:05d}"


def card(node, k):
    return f"GPU-{node}-{k}"


def padding(size, tree):
    return "x" * max(0, size - len(json.dumps(tree)))


def node(i):
    name = node_name(i)
    register = [{"id": card(name, k), "index": k, "count": SLOTS, "devmem": MEMORY, "devcore": 100, "type": "NVIDIA A100",
                 "mode": "hami-core", "health": True, "custominfo": {"binding": "late"}} for k in range(CARDS)]
    tree = {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(i + 1),
                         "labels": {f"example.com/label-{k}": "some-value" for k in range(17)},
                         "annotations": {"hami.io/node-nvidia-register": json.dumps(register)}},
            "status": {"allocatable": {"nvidia.com/gpu": str(CARDS * SLOTS), "cpu": f"{128000 - 7 * (i % 1000)}m",
                                       "memory": f"{1048576 - 13 * (i % 997)}Mi"}}}
    size = padding(9000, tree)
    tree["status"]["images"] = [{"names": [f"registry.example.com/{k}:{size[:len(size) // 20]}"]} for k in range(20)]
    return tree


class Signer:
    """A key of the scheduler's, and what it signs: docs/contracts/hami-annotations.md."""

    def __init__(self, folder):
        from cryptography.hazmat.primitives import serialization  # pylint: disable=import-outside-toplevel
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # pylint: disable=import-outside-toplevel
        self.folder, self.key = folder, Ed25519PrivateKey.generate()
        folder.mkdir()
        (folder / KEY).write_bytes(self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                          serialization.NoEncryption()))

    def sign(self, tree):
        marks = tree["metadata"]["annotations"]
        if marks:
            lines = (marks["hami.io/vgpu-node"], marks["hami.io/vgpu-time"], marks["hami.io/vgpu-devices-allocated"])
            made = self.key.sign("\n".join(("hami-vgpu-v1", tree["metadata"]["uid"], *lines, "", "")).encode())
            marks["hami.io/vgpu-signature"] = f"v1.{KEY}." + base64.urlsafe_b64encode(made).decode().rstrip("=")
        return tree


def pod(i, on, share):
    return holder(i, on, f"{card(on, i % CARDS)},NVIDIA,1000,1:;" if share else None)


def holder(i, on, shares):
    """A pod that holds these shares, by HAMi's text; None: it never asked for any."""
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"} if shares else {"cpu": "1"}
    marks = {"hami.io/vgpu-node": on, "hami.io/vgpu-time": "1", "hami.io/bind-phase": "success",
             "hami.io/vgpu-devices-allocated": shares} if shares else {}
    tree = {"metadata": {"name": f"pod-{i:06d}", "namespace": "default", "uid": f"uid-{i}", "resourceVersion": str(i + 1),
                         "labels": {"app": "a"}, "annotations": marks},
            "spec": {"nodeName": on, "containers": [{"name": "c", "image": "i", "resources": {
                "limits": limits, "requests": {"cpu": f"{500 * (1 + i % 8)}m", "memory": f"{2 * (1 + i % 8)}Gi"}}}]},
            "status": {"phase": "Running"}}
    tree["spec"]["containers"][0]["env"] = [{"name": "FILL", "value": padding(2900, tree)}]
    return tree


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # noqa: A002 (its name)
        pass

    def do_GET(self):  # noqa: N802
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if query.get("watch"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.server.stopping.wait(float(query.get("timeoutSeconds", 600)))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.server.asked.append(self.path)
        page = self.server.page(url.path.rsplit("/", 1)[1], int(query.get("continue", 0)), int(query.get("limit", 0)) or 1 << 30)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


class FixedLists(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def __init__(self, nodes, pods):
        """Trees, each read but once."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.items = {"nodes": [json.dumps(n).encode() for n in nodes], "pods": [json.dumps(p).encode() for p in pods]}
        self.pages, self.asked, self.stopping = {}, [], threading.Event()
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def page(self, plural, first, limit):
        """Made once: after the first who reads them all, nothing is made any more."""
        if (plural, first, limit) not in self.pages:
            items = self.items.get(plural, [])
            meta = {"resourceVersion": VERSION}
            if first + limit < len(items):
                meta |= {"continue": str(first + limit), "remainingItemCount": len(items) - first - limit}
            head = json.dumps({"kind": "List", "apiVersion": "v1", "metadata": meta})[:-1]
            self.pages[plural, first, limit] = head.encode() + b', "items": [' + b",".join(items[first:first + limit]) + b"]}"
        return self.pages[plural, first, limit]

    @classmethod
    def of_size(cls, nodes, pods, shares, sign=lambda tree: tree):
        """The first `shares` pods have a share each, spread over the nodes."""
        lists = cls((node(i) for i in range(nodes)), (sign(pod(i, node_name(i % nodes), i < shares)) for i in range(pods)))
        for plural, items in lists.items.items():
            for first in range(0, len(items), PAGE):
                lists.page(plural, first, PAGE)
        return lists

    def __exit__(self, *_):
        self.stopping.set()
        self.shutdown()
        self.server_close()
