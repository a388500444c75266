#!/usr/bin/python3
"""freezing_proxy.py LISTEN_PORT PORT: relays TCP on 127.0.0.1. On SIGUSR1 the connections that are there freeze for ever:
they stand, and nothing comes through any more. New ones work. What a load balancer that lost its memory does."""
import selectors
import signal
import socket
import sys

frozen = False


def freeze(*_):
    global frozen
    frozen = True


def main():
    global frozen
    signal.signal(signal.SIGUSR1, freeze)
    chosen = selectors.DefaultSelector()
    kept = []
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
        chosen.register(listener, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            ready = chosen.select(0.05)
            if frozen:
                for key in list(chosen.get_map().values()):
                    if key.fileobj is not listener:
                        chosen.unregister(key.fileobj)
                        kept.append(key.fileobj)
                frozen = False
                print("frozen", flush=True)
                continue
            for key, _ in ready:
                if key.fileobj is listener:
                    client, _ = listener.accept()
                    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
                    chosen.register(client, selectors.EVENT_READ, server)
                    chosen.register(server, selectors.EVENT_READ, client)
                elif key.fileobj.fileno() >= 0:
                    relay(chosen, key.fileobj, key.data)


def relay(chosen, source, target):
    try:
        data = source.recv(65536)
        target.sendall(data)
    except OSError:
        data = b""
    if not data:
        for s in (source, target):
            try:
                chosen.unregister(s)
            except (KeyError, ValueError):
                pass
            s.close()


main()
