"""Hand-written protocols for the tests of trust: the protocol between nodes, S3 for one object, and documents of a store."""

import datetime
import hashlib
import hmac
import json
import os
import socket
import struct
import time
import urllib.request
import uuid

import minio

GREETING_BYTES = 32
PROTOCOL = 7
CONTROL = 1
GREET, ANSWER = 1, 64


def proof(secret, purpose="helenus-command-1"):
    """Returns the proof that the sender knows the secret."""
    claim = f"{int(time.time())}.{os.urandom(8).hex()}"
    return f"helenus {claim}.{hmac.new(secret.encode(), (purpose + claim).encode(), hashlib.sha256).hexdigest()}"


def challenge(node):
    """Returns a challenge that the sender of a command must sign."""
    with urllib.request.urlopen(f"http://{node.host}:{node.http_port}/cluster/challenge", timeout=5) as answer:
        return answer.read().decode()


def answer(secret, challenge, command="POST /cluster/drain"):
    """Returns the proof that the sender of a command knows the secret."""
    mac = hmac.new(secret.encode(), f"helenus-command-1{command} {challenge}".encode(), hashlib.sha256).hexdigest()
    return f"helenus {challenge}.{mac}"


def mac(secret, purpose, *parts):
    return hmac.new(secret.encode(), b"".join([purpose, *parts]), hashlib.sha256).digest()


def hello(secret, store, caller, called, name="by hand"):
    """Returns what a node answers to the greeting of another node of the store. Both nodes are given as in the cluster document."""
    ids = b"".join(uuid.UUID(one).bytes for one in (store, *(node[key] for node in (caller, called) for key in ("host_id", "incarnation"))))
    rest = struct.pack("<IB", PROTOCOL, CONTROL) + os.urandom(16) + ids + bytes([len(name)]) + name.encode()
    head = b"HLNODE" + struct.pack("<H", len(rest) + 32)
    return lambda greeting: head + rest + mac(secret, b"helenus-rpc-3", greeting, head, rest)


def exactly(stream, length):
    """Reads bytes. Raises EOFError if the node closes the connection."""
    found = stream.read(length)
    if len(found) < length:
        raise EOFError
    return found


def greet(host, port, hello=None, tls=None):
    """Requests a node's identity. Returns the bytes of the answer, which are empty if the node refuses the caller or closes the connection."""
    with socket.create_connection((host, port), timeout=20) as plain:
        wire = tls.wrap_socket(plain, server_hostname="helenus") if tls else plain
        stream = wire.makefile("rb")
        try:
            greeting = exactly(stream, GREETING_BYTES)
            said = hello(greeting) if callable(hello) else hello or b""
            message = b"\x0a\x07Helenus"
            wire.sendall(said + struct.pack("<IBBII", len(message), GREET, 0, 1, 5000) + message)
            code, length = struct.unpack("<BH", exactly(stream, 3))
            exactly(stream, length)
            if code:
                return b""
            length, kind, _, _, _ = struct.unpack("<IBBII", exactly(stream, 14))
            return exactly(stream, length) if kind == ANSWER else b""
        except EOFError:
            return b""


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
