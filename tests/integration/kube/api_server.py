"""A stand-in for the Kubernetes API server, in the test's own process, that can be made to misbehave.

    api = ApiServer(tls=pki)            # or plain HTTP
    api.put("pods", "default", "a")     # a new version of an object; watchers are told
    api.fault(status(429, headers={"Retry-After": "1"}), times=2, when=lambda h: h.command == "PATCH")
"""
import bisect
import collections
import http.server
import json
import os
import socket
import socketserver
import ssl
import struct
import threading
import time
import urllib.parse
import uuid

Request = collections.namedtuple("Request", "method path query headers body at connection subject")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # broken connections are what these tests make

    def finish_request(self, request, client_address):
        if self.api.context:
            try:
                request.settimeout(10)
                request = self.api.context.wrap_socket(request, server_side=True)
                request.settimeout(None)
            except OSError as e:
                self.api.tls_errors.append(str(e))
                return
        self.api.connections.append(request)
        super().finish_request(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: the second would wait 40 ms for the first's ACK

    def log_message(self, format, *args):
        pass

    def handle_any(self):
        api = self.server.api
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        certificate = self.connection.getpeercert() if api.context else None
        subject = dict(pair for part in certificate["subject"] for pair in part) if certificate else None
        self.request_seen = Request(self.command, urllib.parse.unquote(url.path), query, dict(self.headers), body,
                                    time.monotonic(), self.client_address[1], subject)
        with api.lock:
            api.requests.append(self.request_seen)
            action = api.next_fault(self)
        if action:
            action(self)
        else:
            api.answer(self)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

    @property
    def watching(self):
        return self.request_seen.query.get("watch") == "1"

    def json(self, code, tree, headers=()):
        data = json.dumps(tree).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, kind, tree):
        self.chunk(json.dumps({"type": kind, "object": tree}).encode() + b"\n")


def status_tree(code, reason, message="", **more):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message, **more}


def merge_patch(tree, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    new = dict(tree) if isinstance(tree, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merge_patch(new.get(key), value)
    return new


def status(code, reason="", headers=()):
    return lambda h: h.json(code, status_tree(code, reason, "as asked"), headers)


def raw(data):
    """These bytes and the end of the connection."""
    def act(h):
        h.wfile.write(data)
        h.close_connection = True
    return act


def silence(h):
    """Nothing is said, the connection stands: until the test or the client ends it."""
    h.server.api.stopping.wait(60)
    h.close_connection = True


def reset(h):
    h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(h.connection.detach())  # close() would wait for the files that are made of it
    h.close_connection = True


def stream_then(events, act):
    """A watch that says these (kind, object), then act(h)."""
    def run(h):
        h.stream()
        for kind, tree in events:
            h.event(kind, tree)
        act(h)
    return run


def half_chunk(h):
    h.wfile.write(b'40\r\n{"type":"ADDED","obj')
    h.wfile.flush()
    silence(h)


class ApiServer:
    def __init__(self, tls=None, port=0):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.stopping = threading.Event()
        self.objects = {}    # (plural, namespace, name) -> object
        self.log = []        # (version, plural, kind, object)
        self.version = 100
        self.oldest = 0      # a watch from before it is 410
        self.cut_off = 0     # and one that runs ends where it has not told all until here
        self.pages = {}      # continue token -> (items left, version)
        self.page_most = 0   # a page that was asked for has no more objects, whatever limit= says; 0: as many as that
        self.expired = collections.Counter()  # "watch", "page": 410s that were told
        self.requests, self.faults, self.tls_errors, self.connections = [], [], [], []
        self.tokens = None   # None: nobody needs one
        self.context = tls
        self.port = port
        self.server = None
        self.up()

    def up(self):
        self.stopping.clear()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.api = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def down(self):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        with self.changed:
            self.changed.notify_all()
        self.cut()

    def cut(self):
        """Every connection is broken."""
        for c in self.connections:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections.clear()

    def fault(self, action, times=1, when=lambda h: True):
        with self.lock:
            self.faults.append([times, when, action])

    def next_fault(self, h):
        for fault in self.faults:
            if fault[0] > 0 and fault[1](h):
                fault[0] -= 1
                return fault[2]
        return None

    def seen(self, **want):
        """Requests whose fields are these; watch=True or False besides."""
        watch = want.pop("watch", None)
        with self.lock:
            return [r for r in self.requests if all(getattr(r, k) == v for k, v in want.items())
                    and (watch is None or (r.query.get("watch") == "1") == watch)]

    # --- objects ---

    def put(self, plural, namespace, name, uid=None, **annotations):
        with self.changed:
            old = self.objects.get((plural, namespace, name))
            self.version += 1
            tree = {"metadata": {"name": name, "uid": uid or (old["metadata"]["uid"] if old else str(uuid.uuid4())),
                                 "resourceVersion": str(self.version), "annotations": annotations}}
            if namespace:
                tree["metadata"]["namespace"] = namespace
            self.objects[plural, namespace, name] = tree
            self.log.append((self.version, plural, "MODIFIED" if old else "ADDED", tree))
            self.changed.notify_all()
            return tree

    def all(self, plural):
        """As they are now, whole: others make some meanwhile."""
        with self.lock:
            return [o for (p, _, _), o in self.objects.items() if p == plural]

    def edit(self, plural, namespace, name, **patch):
        """A merge patch of our own, in one step: others patch the same object meanwhile."""
        with self.lock:
            code, tree = self.patch(patch, self.objects[plural, namespace, name], namespace, plural, name)
        assert code == 200, tree
        return tree

    def put_tree(self, plural, namespace, tree):
        """A whole object, new or changed; its uid stays, or is what the tree says."""
        with self.changed:
            name = tree["metadata"]["name"]
            old = self.objects.get((plural, namespace, name))
            self.version += 1
            meta = {"annotations": {}, "uid": old["metadata"]["uid"] if old else str(uuid.uuid4()), **tree["metadata"],
                    "resourceVersion": str(self.version)}
            if namespace:
                meta["namespace"] = namespace
            new = {**tree, "metadata": meta}
            self.objects[plural, namespace, name] = new
            self.log.append((self.version, plural, "MODIFIED" if old else "ADDED", new))
            self.changed.notify_all()
            return new

    def delete(self, plural, namespace, name, tell=True):
        with self.changed:
            tree = self.objects.pop((plural, namespace, name))
            self.version += 1
            tree = json.loads(json.dumps(tree))
            tree["metadata"]["resourceVersion"] = str(self.version)
            if tell:
                self.log.append((self.version, plural, "DELETED", tree))
            self.changed.notify_all()

    def bookmark(self, plural):
        with self.changed:
            self.version += 1
            self.log.append((self.version, plural, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}}))
            self.changed.notify_all()

    def forget_history(self):
        """All versions so far are too old to watch from."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self.log.clear()

    def end_watches(self):
        """The same, and each watch that runs ends with 410."""
        with self.changed:
            self.forget_history()
            self.cut_off = self.oldest
            self.changed.notify_all()

    def trim_history(self, keep):
        """Only so many changes are remembered; a watch that is behind them ends with 410."""
        with self.lock:
            if len(self.log) > keep:
                self.oldest = self.cut_off = self.log[-keep - 1][0]
                del self.log[:-keep]
            del self.requests[:-keep]

    # --- answers ---

    @staticmethod
    def split(path):
        """/api/v1[/namespaces/NS]/PLURAL[/NAME] -> namespace or None, plural, name or None; the same below /apis/GROUP"""
        parts = path.strip("/").split("/")
        parts = parts[3 if parts[0] == "apis" else 2:]
        namespace = None
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        return namespace, parts[0], parts[1] if len(parts) > 1 else None

    def answer(self, h):
        r = h.request_seen
        if self.tokens is not None and r.headers.get("Authorization") not in {f"Bearer {t}" for t in self.tokens}:
            h.json(401, status_tree(401, "Unauthorized"))
            return
        namespace, plural, name = self.split(r.path)
        if r.method == "GET" and name is None:
            if h.watching:
                self.watch(h, plural)
            else:
                self.list(h, plural)
            return
        with self.lock:
            code, tree = self.change(r, namespace, plural, name)
        h.json(code, tree)

    def change(self, r, namespace, plural, name):
        tree = self.objects.get((plural, namespace, name))
        if r.path.endswith("/binding"):
            if tree is None:
                return 404, status_tree(404, "NotFound", f'pods "{name}" not found')
            return self.bind(json.loads(r.body), tree, namespace, name)
        if r.method == "POST":
            new = json.loads(r.body)
            if (plural, namespace, new["metadata"]["name"]) in self.objects:
                return 409, status_tree(409, "AlreadyExists", f'{plural} "{new["metadata"]["name"]}" already exists')
            tree = self.put(plural, namespace, new["metadata"]["name"])
            tree.update({k: v for k, v in new.items() if k != "metadata"})
            return 201, tree
        if tree is None:
            return 404, status_tree(404, "NotFound", f'{plural} "{name}" not found')
        if r.method == "PUT":
            return 200, self.put_tree(plural, namespace, json.loads(r.body))
        if r.method == "PATCH":
            return self.patch(json.loads(r.body), tree, namespace, plural, name)
        return 200, tree

    def patch(self, patch, tree, namespace, plural, name):
        meta = patch.get("metadata", {})
        if meta.get("uid", tree["metadata"]["uid"]) != tree["metadata"]["uid"]:  # the real one's words
            cause = {"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}
            return 422, status_tree(422, "Invalid", "metadata.uid: field is immutable", details={"causes": [cause]})
        if meta.get("resourceVersion", tree["metadata"]["resourceVersion"]) != tree["metadata"]["resourceVersion"]:
            return 409, status_tree(409, "Conflict", "the object has been modified")
        return 200, self.put_tree(plural, namespace, merge_patch(tree, patch))

    def bind(self, binding, tree, namespace, name):
        """pods/NAME/binding, in the real one's words: annotations and the node in one write, for this UID alone."""
        uid, want = tree["metadata"]["uid"], binding["metadata"].get("uid")
        why = None
        if want and want != uid:
            why = f"Precondition failed: UID in precondition: {want}, UID in object meta: {uid}"
        elif tree["metadata"].get("deletionTimestamp"):
            why = f"pod {name} is being deleted, cannot be assigned to a host"
        elif tree.get("spec", {}).get("nodeName"):
            why = f"pod {name} is already assigned to node \"{tree['spec']['nodeName']}\""
        if why:
            return 409, status_tree(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{name}": {why}')
        self.put_tree("pods", namespace, merge_patch(tree, {
            "metadata": {"annotations": binding["metadata"].get("annotations", {})},
            "spec": {"nodeName": binding["target"]["name"]}}))
        return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def list(self, h, plural):
        query = h.request_seen.query
        with self.lock:
            if "continue" in query:
                if query["continue"] not in self.pages:
                    h.json(410, status_tree(410, "Expired", "The provided continue parameter is too old"))
                    self.expired["page"] += 1
                    return
                items, version = self.pages.pop(query["continue"])
            else:
                items = [o for (p, _, _), o in self.objects.items() if p == plural and self.selected(query, o)]
                version = self.version
            limit = int(query.get("limit", 0)) or len(items)
            if self.page_most and "limit" in query:
                limit = min(limit, self.page_most)
            meta = {"resourceVersion": str(version)}
            if len(items) > limit:
                meta["continue"] = str(uuid.uuid4())
                self.pages[meta["continue"]] = (items[limit:], version)
            h.json(200, {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items[:limit] or None})

    @staticmethod
    def selected(query, tree):
        """labelSelector k=v, others are not looked at; fieldSelector as our programs use it: metadata.name=..., status.phase!=..."""
        for term in filter(None, query.get("fieldSelector", "").split(",")):
            path, _, want = term.partition("=")
            unequal = path.endswith("!")
            path = path.rstrip("!")
            value = tree
            for key in path.split("."):
                value = (value or {}).get(key)
            if (value == want) == unequal:
                return False
        labels = tree["metadata"].get("labels") or {}
        wanted = (term.partition("=") for term in query.get("labelSelector", "").split(",") if "=" in term)
        return all(labels.get(key) == value for key, _, value in wanted)

    def before_telling(self, plural):
        """Of each watch, when it has something to tell: a test's own may take its time."""

    def watch(self, h, plural):
        query = h.request_seen.query
        at, end = int(query["resourceVersion"]), time.monotonic() + float(query["timeoutSeconds"])
        if at < self.oldest:
            h.stream()
            self.end_expired(h)
            return
        h.stream()
        while not self.stopping.is_set() and time.monotonic() < end:
            with self.changed:
                if at < self.cut_off:
                    break
                new = [e for e in self.log[bisect.bisect_right(self.log, at, key=lambda e: e[0]):] if e[1] == plural]
                if not new:
                    at = max(at, self.log[-1][0]) if self.log else at
                    self.changed.wait(min(0.2, max(0.01, end - time.monotonic())))
                    continue
            self.before_telling(plural)
            for version, _, kind, tree in new:
                if kind == "BOOKMARK" or self.selected(query, tree):
                    h.event(kind, tree)
                elif kind == "MODIFIED":  # what a selector does not fit any more
                    h.event("DELETED", tree)
                at = version
        if at < self.cut_off:
            self.end_expired(h)
        else:
            h.chunk(b"")

    def end_expired(self, h):
        h.event("ERROR", status_tree(410, "Expired", "too old resource version"))
        h.chunk(b"")
        with self.lock:
            self.expired["watch"] += 1
