"""Eight connections with single-row requests, and a new connection now and then. Counts the rounds that all eight are served.

    python probe.py HOST PORT QUERY

prints "ready" after some rounds at rest, runs until its input ends, and prints a line of JSON. A process of its own, so that what the test computes
does not disturb it.
"""

import json
import select
import socket
import struct
import sys
import time

CONNECTIONS = 8
ROUNDS_AT_REST = 100
DIAL_INTERVAL_S = 0.1
PAUSE_S = 0.002
STARTUP_FRAME = bytes([4, 0, 0, 0, 1, 0, 0, 0, 22]) + struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0"
ERROR, READY = 0, 2


def receive(s):
    """Returns one answer's opcode and body."""
    got = b""
    while len(got) < 9 or len(got) < 9 + struct.unpack(">i", got[5:9])[0]:
        part = s.recv(1 << 16)
        if not part:
            raise ConnectionError("the node closed the connection")
        got += part
    return got[4], got[9:]


def dial(host, port):
    """Returns a connection that is ready for requests."""
    s = socket.create_connection((host, port), timeout=60)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(STARTUP_FRAME)
    opcode, body = receive(s)
    assert opcode == READY, body
    return s


def query_frame(text):
    raw = text.encode()
    body = struct.pack(">i", len(raw)) + raw + struct.pack(">HB", 1, 0)
    return bytes([4, 0, 0, 0, 7]) + struct.pack(">i", len(body)) + body


class Probe:
    def __init__(self, host, port, query):
        self.address, self.request = (host, port), query_frame(query)
        self.connections = [dial(host, port) for _ in range(CONNECTIONS)]
        self.next_dial = time.monotonic()
        self.latencies_ms, self.dials_ms = [], []

    def is_terminating(self):
        return bool(select.select([sys.stdin], [], [], PAUSE_S)[0])

    def round(self):
        """Has a request served on each connection."""
        began = time.monotonic()
        since_ms = lambda: (time.monotonic() - began) * 1000
        for s in self.connections:
            s.sendall(self.request)
        waiting = set(self.connections)
        while waiting:
            for s in select.select(waiting, [], [])[0]:
                opcode, body = receive(s)
                assert opcode != ERROR, body
                waiting.remove(s)
                self.latencies_ms.append(since_ms())
        if time.monotonic() >= self.next_dial:
            began = time.monotonic()
            dial(*self.address).close()
            self.dials_ms.append(since_ms())
            self.next_dial = time.monotonic() + DIAL_INTERVAL_S


def main(host, port, query):
    probe = Probe(host, port, query)
    began = time.monotonic()
    for _ in range(ROUNDS_AT_REST):
        time.sleep(PAUSE_S)
        probe.round()
    rest_s = (time.monotonic() - began) / ROUNDS_AT_REST
    probe.latencies_ms, probe.dials_ms = [], []
    print("ready", flush=True)
    began, rounds = time.monotonic(), 0
    while not probe.is_terminating():
        probe.round()
        rounds += 1
    took_s = time.monotonic() - began
    latencies = sorted(probe.latencies_ms) or [0]
    print(json.dumps({
        "rounds": rounds, "rounds_at_rest": took_s / rest_s, "took_s": took_s,
        "p99_ms": latencies[int(len(latencies) * 0.99)], "max_ms": latencies[-1], "dial_max_ms": max(probe.dials_ms, default=0),
    }))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
