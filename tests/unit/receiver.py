"""A receiver of webhooks on this machine, which notes what comes and answers as it is told."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trustme


class Taken:
    """One request, as it came."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body


class Receiver:
    """`answers` are used up one by one, the last of them for ever: a status, headers, and what it says."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.taken: list[Taken] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = [(204, {}, b"")]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alerts?token=hidden"

    def next_answer(self) -> tuple[int, dict[str, str], bytes]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def receiving(*, certificate: trustme.LeafCert | None = None) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:
                return  # whoever sent it was killed on the way
            heard = {name.lower(): value for name, value in self.headers.items()}
            receiver.taken.append(Taken(self.path, heard, body))
            status, headers, said = receiver.next_answer()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None: ...

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # of five, the kernel resets what comes beyond

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    receiver = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
