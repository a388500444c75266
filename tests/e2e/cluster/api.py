#!/usr/bin/python3
"""api.py: requests to the cluster's API server over one kept connection, for tests that make many. Run inside (./in); reads
{"method", "path", "body", "type"} a line, answers [status, body] a line. As the admin."""
import http.client
import json
import os
import ssl
import sys

PKI = os.environ["CLUSTER_DIR"] + "/pki/"


def connect():
    context = ssl.create_default_context(cafile=PKI + "ca.crt")
    context.load_cert_chain(PKI + "admin.crt", PKI + "admin.key")
    return http.client.HTTPSConnection("127.0.0.1", 16443, context=context, timeout=30)


def ask(connection, want):
    body = json.dumps(want["body"]) if want.get("body") is not None else None
    connection.request(want["method"], want["path"], body, {"Content-Type": want.get("type") or "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
    return [answer.status, json.loads(text) if is_json else text.decode(errors="replace")]


def main():
    connection = connect()
    for line in sys.stdin:
        want = json.loads(line)
        try:
            got = ask(connection, want)
        except (OSError, http.client.HTTPException):  # closed meanwhile, or the API server has restarted
            connection.close()
            connection = connect()
            try:
                got = ask(connection, want)
            except (OSError, http.client.HTTPException) as why:
                got = [0, str(why)]
        print(json.dumps(got), flush=True)


if __name__ == "__main__":
    main()
