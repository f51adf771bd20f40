# SPDX-License-Identifier: Apache-2.0
"""Proxies that lose answers, for tests."""
import http.client
import http.server
import socket
import threading
import time


class Proxy:
    """Forwards bytes to a port of this host; cut() breaks all connections: requests have been forwarded, and their replies are lost."""
    def __init__(self, port, watch=lambda data: None):
        self.target = port
        self.watch = watch  # is called with bytes of either direction before they are forwarded
        self.sockets = set()
        self.lock = threading.Lock()
        self.ending = False

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        self.thread.join()

    def listen(self):
        while not self.ending:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                continue
            with self.lock:
                self.sockets |= {near, far}
            threading.Thread(target=self.pass_on, args=(near, far), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(far, near), daemon=True).start()

    def pass_on(self, source, to):
        try:
            while data := source.recv(1 << 16):
                self.watch(data)
                to.sendall(data)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            self.sockets -= {source, to}
        source.close()  # the other end is the other thread's

    def cut(self):
        with self.lock:
            for end in self.sockets:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Meddler:
    """Forwards whole HTTP requests to a port of this host. `judge(method, path, body)` chooses the treatment of each: "pass"; "lose": it
    is executed and its reply lost; "twice": executed twice, before the reply; "late": the connection breaks, and the request is executed
    when `self.late` are released; a number: it is executed, and its reply comes so many seconds later, or when `hurry` is set. `spoil(method, path, answer)` replaces the reply by another (status, content type, body); with `drip`
    its bytes are sent one by one, so many seconds apart."""
    def __init__(self, port, judge=lambda *_: "pass"):
        self.target = port
        self.judge = judge
        self.late = []
        self.asked = 0  # requests that have come
        self.served = 0
        self.spoil = None
        self.drip = None
        self.hurry = threading.Event()

    def __enter__(self):
        meddler = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                meddler.serve(self, body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def forward(self, method, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.target)
        try:
            connection.request(method, path, body or None, {name: headers[name] for name in ("Content-Type", "Authorization") if name in headers})
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type") or "application/json", answer.read()
        finally:
            connection.close()

    def let_go(self):
        """Sends the delayed requests."""
        late, self.late = self.late, []
        for request in late:
            self.forward(*request)

    def serve(self, handler, body):
        request = handler.command, handler.path, body, handler.headers
        self.asked += 1
        what = self.judge(*request[:3])
        if what == "late":
            self.late.append(request)
        if what in ("late", "drop"):
            handler.close_connection = True
            return
        try:
            if what == "twice":
                self.forward(*request)
            status, kind, answer = self.forward(*request)
        except (OSError, http.client.HTTPException):
            handler.close_connection = True
            return
        if what == "lose":
            handler.close_connection = True
            return
        if not isinstance(what, str):
            self.hurry.wait(what)
        if self.spoil:
            status, kind, answer = self.spoil(*request[:2], (status, kind, answer))
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(answer)))
        if 300 <= status < 400:
            handler.send_header("Location", self.url + "/")
        handler.end_headers()
        if self.drip is None:
            handler.wfile.write(answer)
        for i in range(len(answer) if self.drip else 0):
            handler.wfile.write(answer[i:i + 1])
            handler.wfile.flush()
            time.sleep(self.drip)
        self.served += 1
