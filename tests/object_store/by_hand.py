"""Hand-written protocols for the tests of trust: gRPC for one request, S3 for one object, and documents of a store."""

import datetime
import hashlib
import hmac
import json
import os
import socket
import struct
import time
import urllib.request

import minio

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name, value):
    """Returns a header in HPACK without any table. A length from 127 on has more bytes, of seven bits each; the last one is below 128."""
    more = len(value) - 127
    length = bytes([len(value)]) if more < 0 else bytes([127, more]) if more < 128 else bytes([127, more % 128 + 128, more // 128])
    return bytes([0, len(name)]) + name.encode() + length + value.encode()


def proof(secret, purpose="helenus-command-1", words=""):
    """Returns the proof that the sender knows the secret, for these words."""
    claim = f"{int(time.time())}.{os.urandom(8).hex()}{words and '.'}{words}"
    return f"helenus {claim}.{hmac.new(secret.encode(), (purpose + claim).encode(), hashlib.sha256).hexdigest()}"


def challenge(node):
    """Returns a challenge that the sender of a command must sign."""
    with urllib.request.urlopen(f"http://{node.host}:{node.http_port}/cluster/challenge", timeout=5) as answer:
        return answer.read().decode()


def answer(secret, challenge, command="POST /cluster/drain"):
    """Returns the proof that the sender of a command knows the secret."""
    mac = hmac.new(secret.encode(), f"helenus-command-1{command} {challenge}".encode(), hashlib.sha256).hexdigest()
    return f"helenus {challenge}.{mac}"


def hello(secret, store, caller, called, name="by hand"):
    """Returns the proof that a node shows to another node of the store. Both nodes are given as in the cluster document."""
    ids = [store, *(node[key] for node in (caller, called) for key in ("host_id", "incarnation"))]
    return proof(secret, "helenus-rpc-2", ".".join([*ids, name.encode().hex()]))


def greet(host, port, authorization=None, tls=None):
    """Requests a node's identity. Returns the bytes of the answer's message, which are empty if there is none."""
    with socket.create_connection((host, port), timeout=5) as plain:
        wire = tls.wrap_socket(plain, server_hostname="helenus") if tls else plain
        headers = [(":method", "POST"), (":scheme", "https" if tls else "http"), (":authority", "helenus"),
                   (":path", "/helenus.rpc.v1.Node/Greet"), ("te", "trailers"), ("content-type", "application/grpc")]
        if authorization:
            headers.append(("authorization", authorization))
        message = b"\x0a\x07Helenus\x20\x02"
        wire.sendall(PREFACE + frame(SETTINGS, 0, 0, b"")
                     + frame(HEADERS, END_HEADERS, 1, b"".join(header(*one) for one in headers))
                     + frame(DATA, END_STREAM, 1, b"\0" + struct.pack(">I", len(message)) + message))
        answer = b""
        stream = wire.makefile("rb")
        while True:
            head = stream.read(9)
            if len(head) < 9:
                return answer
            payload = stream.read(int.from_bytes(head[:3], "big"))
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == DATA and number == 1:
                answer += payload
            if kind == GOAWAY or (number == 1 and kind in (DATA, HEADERS) and flags & END_STREAM):
                return answer


def path_of(url, name):
    return f"/{url.removeprefix('s3://')}/{name}"


def request(server, method, path, body=b""):
    """Sends a signed request to MinIO."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    host = f"{server.host}:{server.port}"
    signed = "host;x-amz-content-sha256;x-amz-date"
    canonical = f"{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n{signed}\n{digest}"
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{minio.SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"AWS4-HMAC-SHA256 Credential={minio.USER}/{scope}, SignedHeaders={signed}, Signature={signature}"
    headers = {"x-amz-date": now, "x-amz-content-sha256": digest, "Authorization": credential}
    asked = urllib.request.Request(f"{server.endpoint}{path}", body or None, headers, method=method)
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return answer.read()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def document(server, url, name):
    """Returns the version and the content of a store's document, which docs/data-layout.md describes."""
    found = request(server, "GET", path_of(url, f"meta/{name}"))
    magic, version, length, crc = struct.unpack("<8sQII", found[:24])
    content = found[24:]
    assert magic == b"HLNSMET1" and length == len(content) and crc == crc32c(content) ^ crc32c(struct.pack("<Q", version))
    return version, content


def identity(server, url):
    """Returns the identity of a store."""
    return json.loads(request(server, "GET", path_of(url, "PLACE")))["identity"]


def change_document(server, url, name, change):
    """Changes the content of a document of a store."""
    path = path_of(url, f"meta/{name}")
    version, content = document(server, url, name)
    magic = b"HLNSMET1"
    content, number = change(content), struct.pack("<Q", version + 1)
    head = struct.pack("<8sQII", magic, version + 1, len(content), crc32c(content) ^ crc32c(number))
    request(server, "PUT", path, head + content)
