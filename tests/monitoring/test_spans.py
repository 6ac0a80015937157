"""Spans of requests, as a collector of OpenTelemetry gets them by OTLP over HTTP."""

import http.server
import threading

import pytest
from cassandra import InvalidRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import helenus

pytestmark = pytest.mark.process

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Takes what is sent to it, or refuses it."""

    def __init__(self):
        self.spans, self.resources, self.refuses = [], [], False
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                if not outer.refuses and self.path == "/v1/traces":
                    for of_resource in request.resource_spans:
                        outer.resources.append(values(of_resource.resource.attributes))
                        for of_scope in of_resource.scope_spans:
                            outer.spans.extend(of_scope.spans)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(400 if outer.refuses else 200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def await_span(self, wanted):
        def found():
            return next((span for span in list(self.spans) if wanted(span, values(span.attributes))), None)

        helenus.wait_until(found, 20, "the span")
        return found()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def values(attributes):
    """Returns the values of attributes by name."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture
def start(tmp_path, collector):
    """Starts a node that samples that part of the requests."""
    nodes = []

    def start(ratio):
        args = ["--set", f"otlp_endpoint={collector.url}", "--set", f"otlp_sample_ratio={ratio}"]
        nodes.append(helenus.Node(tmp_path / "node", args=args).start())
        session = nodes[0].connect()
        session.execute("CREATE KEYSPACE spans WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE spans.t (k int PRIMARY KEY, secret text)")
        return nodes[0], session

    yield start
    for node in nodes:
        node.close()


def of(statement):
    return lambda span, attributes: attributes["db.query.text"].startswith(statement)


def test_request_span_has_stages_and_no_values(collector, start):
    node, session = start(1)
    session.execute("INSERT INTO spans.t (k, secret) VALUES (1, 'hidden')")
    write = collector.await_span(of("INSERT INTO spans.t"))
    told = values(write.attributes)
    assert write.name == "INSERT spans.t" and write.kind == Span.SPAN_KIND_SERVER
    assert (told["db.system.name"], told["db.operation.name"]) == ("cassandra", "INSERT")
    assert (told["db.namespace"], told["db.collection.name"]) == ("spans", "t")
    assert told["client.address"] == "127.0.0.1" and told["client.port"] > 0
    assert "hidden" not in str(write)
    took_us = (write.end_time_unix_nano - write.start_time_unix_nano) / 1000
    stages = {name: us for name, us in told.items() if name.startswith("helenus.stage.")}
    assert stages["helenus.stage.log_us"] > 0
    assert sum(stages.values()) <= took_us
    prepared = session.prepare("SELECT k, secret FROM spans.t WHERE k = ?")
    session.execute(prepared, (1,))
    read = collector.await_span(lambda span, told: of("SELECT k, secret")(span, told) and "helenus.rows_read" in told
                                and told["helenus.rows_read"] == 1)
    assert read.trace_id != write.trace_id and not read.parent_span_id
    with pytest.raises(InvalidRequest):
        session.execute("SELECT nothing FROM spans.t")
    failed = collector.await_span(of("SELECT nothing"))
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert values(failed.attributes)["db.response.status_code"] == "0x2200"
    resource = collector.resources[0]
    assert resource["service.name"] == "helenus" and resource["service.instance.id"] and resource["service.version"]
    assert node.metrics()['helenus_spans_total{outcome="exported"}'] >= 4


def test_a_client_says_in_its_trace_context_what_is_sampled(collector, start):
    _, session = start(0)

    def read(comment, flags):
        session.execute(f"SELECT k FROM spans.t /* {comment} */",
                        custom_payload={"traceparent": f"00-{TRACE}-{PARENT}-{flags}".encode()})

    session.execute("SELECT k FROM spans.t /* without */")
    read("not sampled", "00")
    read("sampled", "01")
    span = collector.await_span(lambda *_: True)
    assert "/* sampled */" in values(span.attributes)["db.query.text"]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    read("again", "01")
    collector.await_span(lambda _, told: "again" in told["db.query.text"])
    assert len(collector.spans) == 2


def test_requests_do_not_care_for_the_collector(collector, start):
    node, session = start(1)
    collector.refuses = True
    session.execute("SELECT k FROM spans.t /* refused */")
    failed = 'helenus_spans_total{outcome="failed"}'
    helenus.wait_until(lambda: node.metrics().get(failed, 0) > 0, 20, "spans that were refused")
    assert "otlp_endpoint" in node.log()
    collector.refuses = False
    session.execute("SELECT k FROM spans.t /* taken */")
    collector.await_span(lambda _, told: "/* taken */" in told["db.query.text"])
    assert session.execute("SELECT count(*) FROM spans.t").one()[0] == 0
