# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: Debian's chromium, headless, controlled by its DevTools protocol over a WebSocket on the standard library's sockets.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:9200/_ui/")
        page.until("document.querySelector('#blocked .card')", "a chain")
        page.press("Tab")

It ends with the test itself (process_guard.py). Console messages and exceptions of the page are collected in page.said.
"""
import base64
import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import process_guard  # noqa: E402,F401

PROGRAM = shutil.which("chromium")
PATIENCE = 600  # seconds after which something that should be there is missed; the test's own timeout comes before

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions", "--disable-default-apps", "--mute-audio", "--no-proxy-server",
         "--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--remote-debugging-port=0"]

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Backspace": 8}


class Socket:
    """As much of RFC 6455 as a client of one server needs."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), PATIENCE)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n" % (path, host, port, key)).encode())
        status = self.file.readline()
        assert b" 101 " in status, status
        while self.file.readline().strip():
            pass

    def send(self, text, opcode=1):
        data, mask = text.encode() if isinstance(text, str) else text, os.urandom(4)
        size = len(data)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack(">H", size) if size < 65536
                                         else bytes([0x80 | 127]) + struct.pack(">Q", size))
        masked = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
        self.socket.sendall(head + mask + masked)

    def receive(self):
        """Returns: the next text."""
        parts = b""
        while True:
            first, second = self.file.read(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
            data = self.file.read(size)
            if first & 15 == 9:
                self.send(data, 10)
            elif first & 15 == 8:
                raise ConnectionError("the browser hung up")
            elif first & 15 in (0, 1, 2):
                parts += data
                if first & 0x80:
                    return parts.decode()

    def close(self):
        self.file.close()
        self.socket.close()


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target, self.said = browser, session, target, []

    def call(self, method, **parameters):
        return self.browser.call(method, parameters, self.session)

    def value(self, expression):
        """Runs JavaScript, a promise to its end. Returns: its value."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise AssertionError("%s: %s" % (expression, json.dumps(reply["exceptionDetails"])[:2000]))
        return reply["result"].get("value")

    def until(self, expression, what):
        """Waits until it is true, or an element. Returns: its value."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                value = self.value("(v => v instanceof Node ? true : v)(%s)" % expression)
            except AssertionError:  # the page is not there yet
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError("%s: not seen; the page says: %s %s" % (what, self.value("document.body.innerText")[:3000], self.said[:5]))
            time.sleep(0.02)

    def text(self, selector):
        return self.value("(e => e ? e.innerText : null)(document.querySelector(%s))" % json.dumps(selector))

    def press(self, key, modifiers=0):
        """A key goes down and up; modifiers: 1 Alt, 2 Ctrl, 8 Shift."""
        text = "\r" if key == "Enter" else key if len(key) == 1 and not modifiers & 2 else ""
        common = {"key": key, "code": key if len(key) > 1 else "", "windowsVirtualKeyCode": KEYS.get(key, ord(key.upper()[0])), "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def emulate(self, width=1280, height=800, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", {"targetId": self.target})


class Browser:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-browser-")
        self.log = open(os.path.join(self.folder, "log"), "wb")
        environment = {**os.environ, "HOME": self.folder, "XDG_CONFIG_HOME": self.folder, "XDG_CACHE_HOME": self.folder}
        self.process = subprocess.Popen([PROGRAM, *FLAGS, "--user-data-dir=" + os.path.join(self.folder, "data"), "about:blank"], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=environment)
        try:
            port, path = self.endpoint()
            self.numbers, self.pages = itertools.count(1), {}
            self.socket = Socket("127.0.0.1", port, path)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.end()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def endpoint(self):
        """Returns: the port and the path that it has written down."""
        file, end = os.path.join(self.folder, "data", "DevToolsActivePort"), time.monotonic() + PATIENCE
        while True:
            if os.path.exists(file):
                with open(file, encoding="ascii") as lines:
                    lines = lines.read().splitlines()
                if len(lines) == 2:
                    return int(lines[0]), lines[1]
            if self.process.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
                    raise RuntimeError("chromium did not start: %s" % log.read()[-2000:])
            time.sleep(0.05)

    def call(self, method, parameters=None, session=None):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters or {}, **({"sessionId": session} if session else {})}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == number:
                if "error" in message:
                    raise AssertionError("%s: %s" % (method, message["error"]))
                return message["result"]
            page = self.pages.get(message.get("sessionId"))
            if page is not None and message.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                page.said.append(json.dumps(message["params"])[:1000])

    def open(self, url, apart=False, **emulated):
        """Returns: a page of its own; with `apart` it shares no connections with the others, as in another browser."""
        context = {"browserContextId": self.call("Target.createBrowserContext")["browserContextId"]} if apart else {}
        target = self.call("Target.createTarget", {"url": "about:blank", **context})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log"):
            page.call(domain + ".enable")
        page.emulate(**emulated)
        page.call("Page.navigate", url=url)
        return page
