"""Eight connections with single-row requests, a new connection now and then, and how long each took.

    python probe.py HOST PORT QUERY

runs until its input ends, for a thousand requests at least, and prints a line of JSON: figures in milliseconds. A process of its own, so that what the test computes does not
disturb the clock.
"""

import json
import select
import socket
import struct
import sys
import time

CONNECTIONS = 8
REQUESTS_MIN = 1000
DIAL_INTERVAL_S = 0.1
PAUSE_S = 0.002
STARTUP_FRAME = bytes([4, 0, 0, 0, 1, 0, 0, 0, 22]) + struct.pack(">H", 1) + b"\x00\x0bCQL_VERSION\x00\x053.0.0"
ERROR, READY = 0, 2


def receive(s):
    """One answer's opcode and body."""
    got = b""
    while len(got) < 9 or len(got) < 9 + struct.unpack(">i", got[5:9])[0]:
        part = s.recv(1 << 16)
        if not part:
            raise ConnectionError("the node closed the connection")
        got += part
    return got[4], got[9:]


def dial(host, port):
    """A connection that has started up."""
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


def main(host, port, query):
    request = query_frame(query)
    connections = [dial(host, port) for _ in range(CONNECTIONS)]
    latencies, dials = [], []
    next_dial = time.monotonic()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE_S)[0] or len(latencies) < REQUESTS_MIN:
        began = time.monotonic()
        for s in connections:
            s.sendall(request)
        waiting = set(connections)
        while waiting:
            for s in select.select(waiting, [], [])[0]:
                opcode, body = receive(s)
                assert opcode != ERROR, body
                waiting.remove(s)
                latencies.append(time.monotonic() - began)
        if time.monotonic() >= next_dial:
            began = time.monotonic()
            dial(host, port).close()
            dials.append(time.monotonic() - began)
            next_dial = time.monotonic() + DIAL_INTERVAL_S
    latencies.sort()
    print(json.dumps({
        "requests": len(latencies),
        "p99": latencies[int(len(latencies) * 0.99)] * 1000,
        "max": latencies[-1] * 1000,
        "dial_max": max(dials) * 1000,
    }))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
