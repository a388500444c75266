"""kube_tool as a running program, its kubeconfig, and certificates."""
import json
import ssl
import subprocess
import threading
import time

import yaml

FAST = ["--backoff-ms=20", "--backoff-max-ms=100"]


class Tool:
    """A kube_tool that runs; its lines as they come."""

    def __init__(self, command, env=None):
        self.lines, self.more = [], threading.Condition()
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.errors = []
        self.readers = [threading.Thread(target=self.read), threading.Thread(target=self.read_errors)]
        for r in self.readers:
            r.start()

    def read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(json.loads(line))
                self.more.notify_all()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))

    def wait(self, what, seconds=30):
        """The first line for which what(line) is true."""
        end, at = time.monotonic() + seconds, 0
        with self.more:
            while True:
                for line in self.lines[at:]:
                    if what(line):
                        return line
                at = len(self.lines)
                left = end - time.monotonic()
                assert left > 0, f"no such line in {self.lines[-20:]}; {self.errors[-20:]}"
                self.more.wait(left)

    def told(self, kind, **fields):
        return [x for x in self.lines if x.get("told") == kind and all(x.get(k) == v for k, v in fields.items())]

    def wait_told(self, kind, seconds=30, **fields):
        return self.wait(lambda x: x.get("told") == kind and all(x.get(k) == v for k, v in fields.items()), seconds)

    def end(self, code=0, seconds=60):
        """Waits for its end; the stats line's content."""
        try:
            got = self.process.wait(seconds)
        finally:
            self.stop()
        assert got == code, "\n".join(self.errors[-30:])
        stats = [x["stats"] for x in self.lines if "stats" in x]
        return stats[0] if stats else None

    def stop(self):
        self.process.kill()
        self.process.wait()
        for r in self.readers:
            r.join()
        self.process.stdout.close()
        self.process.stderr.close()

    def answers(self):
        return [x for x in self.lines if "http" in x]


def write_kubeconfig(path, server, user=None, **cluster):
    path.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}]}))
    return path


class Pki:
    """A CA and certificates that openssl makes, as the cluster's scripts do."""

    def __init__(self, folder):
        self.folder = folder
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
        self.openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=test-ca", "-days", "30", "-out", "ca.crt",
                     "-addext", "basicConstraints=critical,CA:TRUE")
        self.certificate("server", "/CN=api", "serverAuth", "DNS:api.example,IP:127.0.0.1")
        self.certificate("client", "/O=system:nodes/CN=system:node:n1", "clientAuth")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True, timeout=60)

    def certificate(self, name, subject, usage, san=None):
        (self.folder / f"{name}.ext").write_text(f"extendedKeyUsage={usage}\n" + (f"subjectAltName={san}\n" if san else ""))
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                     "-extfile", f"{name}.ext", "-out", f"{name}.crt")

    def path(self, name):
        return str(self.folder / name)

    def server_context(self, ask_client=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("server.crt"), self.path("server.key"))
        if ask_client:
            context.load_verify_locations(self.path("ca.crt"))
            context.verify_mode = ssl.CERT_REQUIRED
        return context
