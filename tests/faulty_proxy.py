"""An HTTP proxy before an object store that misbehaves on command."""

import http.client
import http.server
import threading
import time

import helenus


class FaultyProxy:
    """Proxy that forwards requests. `rule(method, path)` may change that.

    If the rule returns None, the request is forwarded. `("delay", seconds)` forwards it later. `("refuse", status)` answers without
    forwarding. `("after", status)` answers with an error although the request took effect.
    """

    def __init__(self, host, port):
        self.upstream = (host, port)
        self.rule = lambda method, path: None
        # Takes a failed condition for success, as a store seems to do that does not know conditions.
        self.ignore_conditions = False
        # The method and path of each request, by connection.
        self.connections = []
        self.host, self.port = "127.0.0.1", helenus.free_port()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                self.server_side = http.client.HTTPConnection(*proxy.upstream, timeout=30)
                self.requests = []
                proxy.connections.append(self.requests)

            def finish(self):
                self.server_side.close()
                try:
                    super().finish()
                except OSError:
                    pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.requests.append((self.command, self.path))
                fault = proxy.rule(self.command, self.path)
                if fault and fault[0] == "refuse":
                    return self.refuse(fault[1])
                if fault and fault[0] == "delay":
                    time.sleep(fault[1])
                self.server_side.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    self.server_side.putheader(name, value)
                self.server_side.endheaders(body)
                answer = self.server_side.getresponse()
                content = answer.read()
                if fault and fault[0] == "after":
                    return self.refuse(fault[1])
                if answer.status == 412 and proxy.ignore_conditions:
                    self.send_response_only(200)
                    self.send_header("ETag", '"0"')
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else len(content)
                self.send_header("Content-Length", str(length or 0))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def refuse(self, status):
                text = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
                self.send_response_only(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                """Ignores errors, because clients may disconnect."""

        self.server = Server((self.host, self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://{self.host}:{self.port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
