"""Pages in a real browser: Chromium without a window, told what to do over a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]

PATIENCE = 120
"""Seconds after which an answer is not waited for; a busy machine is slow."""

LOOK = """
(() => {
  const wide = document.documentElement.scrollWidth - window.innerWidth;
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = rgb => {
    const [r, g, b] = rgb.map(c => c / 255)
      .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const mix = (top, below) => top.slice(0, 3)
    .map((c, j) => c * (top[3] ?? 1) + below[j] * (1 - (top[3] ?? 1)));
  const ground = element => {
    const chain = [];
    for (let e = element; e; e = e.parentElement)
      chain.push(parse(getComputedStyle(e).backgroundColor));
    return chain.reverse().reduce((below, top) => mix(top, below), [255, 255, 255]);
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility({visibilityProperty: true,
        opacityProperty: true})) continue;
    if (['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(element.tagName)) continue;
    const style = getComputedStyle(element), back = ground(element);
    const ink = mix(parse(style.color), back);
    const [a, b] = [light(ink), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5) - 0.005)
      faint.push(`${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
  }
  return {
    wide,
    faint,
    headings: [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')]
      .map(h => Number(h.tagName[1])),
    unnamed: [...document.images].filter(i => !i.hasAttribute('alt')).length,
    broken: [...document.images]
      .filter(i => i.complete && !i.naturalWidth).map(i => i.src),
    images: document.images.length,
    title: document.title,
  };
})()
"""


class Browser:
    """Chromium with one empty page."""

    def __init__(self, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Chromium reads its orders from 3 and answers on 4.
        command = [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest, self._session = 0, b"", None
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._session = None
        try:
            self.ask("Browser.close")
        finally:
            os.close(self._write)
            os.close(self._read)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def ask(self, method, **values):
        """Give an order and return the answer; events that come first are kept."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": values}
        if self._session is not None:
            order["sessionId"] = self._session
        os.write(self._write, json.dumps(order).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def _message(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._read], [], [], left)
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser has gone"
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def open(self, path, width):
        """Open a file at a width in pixels, and wait until it is there."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.events.clear()
        self.ask("Page.navigate", url=Path(path).absolute().as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._message())

    def look(self):
        """Measure the open page."""
        found = self.ask("Runtime.evaluate", expression=LOOK, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return {**found["result"]["value"], "complaints": self.complaints()}

    def complaints(self):
        """List what the console shows, and what the page asked the network for."""
        texts = []
        for event in self.events:
            values = event.get("params", {})
            match event.get("method"):
                case "Log.entryAdded" if values["entry"]["level"] in (
                    "error",
                    "warning",
                ):
                    texts.append(values["entry"]["text"])
                case "Runtime.exceptionThrown":
                    texts.append(str(values["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if values["type"] in (
                    "error",
                    "warning",
                ):
                    texts.append(str(values["args"]))
                case "Network.requestWillBeSent":
                    url = values["request"]["url"]
                    if not url.startswith(("file:", "data:")):
                        texts.append(f"asks for {url}")
        return texts

    def screenshot(self, path):
        """Save a picture of the whole page."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        found = self.ask(
            "Page.captureScreenshot", captureBeyondViewport=True,
            clip={**clip, "scale": 1},
        )  # fmt: skip
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def pdf(self):
        """Print the page."""
        return base64.b64decode(self.ask("Page.printToPDF")["data"])
