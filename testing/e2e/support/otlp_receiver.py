"""Receives spans over OTLP/HTTP with OpenTelemetry's own message types, and prints each as a line of JSON.

The first line is the address. With "--refuse N" the first N requests are answered with 503.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

refusals = int(sys.argv[2]) if sys.argv[1:2] == ["--refuse"] else 0


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind)


def attributes(pairs):
    return {pair.key: plain(pair.value) for pair in pairs}


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        global refusals
        body = self.rfile.read(int(self.headers["content-length"]))
        if refusals > 0:
            refusals -= 1
            self.send_response(503)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            about = attributes(resource.resource.attributes)
            for scope in resource.scope_spans:
                for span in scope.spans:
                    print(json.dumps({
                        "path": self.path,
                        "resource": about,
                        "scope": scope.scope.name,
                        "trace": span.trace_id.hex(),
                        "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "name": span.name,
                        "kind": Span.SpanKind.Name(span.kind),
                        "begun": span.start_time_unix_nano,
                        "ended": span.end_time_unix_nano,
                        "status": Status.StatusCode.Name(span.status.code),
                        "attributes": attributes(span.attributes),
                        "events": [
                            {"name": event.name, "attributes": attributes(event.attributes)} for event in span.events
                        ],
                    }), flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
