"""The console: who may look and act, over HTTP; what a person sees and clicks, in headless Chromium."""

import base64
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from zlclient.routing.console import Console
from zlclient.routing.judge import start
from zlclient.routing.records import Exposure
from zlclient.routing.rollouts import parse_rollouts
from zlclient.routing.stores.memory import MemoryStore

NOW = 1_796_000_000.0


@pytest.fixture
def console() -> Iterator[Console]:
    table = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [50, 100]}
    rollouts = parse_rollouts({"客服 bot": table | {"gates": {"error_rate": "< 5%"}}, "idle": table})
    store = MemoryStore()
    start(store, rollouts["客服 bot"], NOW - 3_600, "tests")
    serve(store, 10)
    console = Console(rollouts, store, every=0.05, clock=lambda: NOW)
    threading.Thread(target=console.serve_forever, args=(0.02,), daemon=True).start()
    yield console
    console.shutdown()
    console.server_close()


def serve(store: MemoryStore, count: int) -> None:
    for i in range(count):
        for arm in ("legacy", "auto"):
            unit = f"{arm}-{i}"
            exposure = Exposure(
                reply_id=unit, experiment="客服 bot", arm=arm, stage=0, epoch=1, unit=unit, at=NOW - 600 + i, ttft_s=0.1
            )
            store.write([exposure.record()])


PATH = "/rollouts/%E5%AE%A2%E6%9C%8D%20bot"


def call(console: Console, method: str, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    connection = HTTPConnection("127.0.0.1", console.server_port, timeout=5)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.headers)
    connection.close()
    return found


def cookie(console: Console) -> str:
    return f"zlclient_console={console.token}"


def test_nobody_looks_without_the_token(console):
    for path in ("/", PATH, "/events/idle", "/?token=wrong", "/?token=%E5%AE%A2"):
        status, text, _ = call(console, "GET", path)
        assert status == 403
        assert "HOLD" not in text
        assert console.token not in text


def test_the_token_becomes_a_cookie_and_leaves_the_address(console):
    status, _, headers = call(console, "GET", f"/?token={console.token}")
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
    status, text, _ = call(console, "GET", "/", Cookie=headers["Set-Cookie"].partition(";")[0])
    assert status == 200
    assert PATH in text
    assert "HOLD: needs" in text
    assert "not started" in text


def test_other_hosts_are_refused(console):
    """A page of another site whose name was pointed at 127.0.0.1 gets nothing."""
    for method, path in (("GET", "/"), ("GET", f"/?token={console.token}"), ("POST", f"{PATH}/kill")):
        status, _, _ = call(
            console, method, path, Cookie=cookie(console), Host="evil.example", **{"X-Zlclient-Token": console.token}
        )
        assert status == 403


def test_an_action_wants_cookie_and_header(console):
    token = {"X-Zlclient-Token": console.token}
    assert call(console, "POST", f"{PATH}/kill", Cookie=cookie(console))[0] == 403
    assert call(console, "POST", f"{PATH}/kill", **token)[0] == 403
    assert call(console, "GET", f"{PATH}/kill", Cookie=cookie(console), **token)[0] == 404
    assert console.store.load(["客服 bot"])["客服 bot"].state.live
    assert call(console, "POST", f"{PATH}/kill", Cookie=cookie(console), **token)[:2] == (200, "kill: done")
    assert not console.store.load(["客服 bot"])["客服 bot"].state.live
    assert console.store.history("客服 bot")[-1].by == "console"


def test_an_impossible_action_says_why(console):
    headers = {"Cookie": cookie(console), "X-Zlclient-Token": console.token}
    status, text, _ = call(console, "POST", f"{PATH}/advance", **headers)
    assert status == 409
    assert "HOLD: needs" in text
    assert call(console, "POST", f"{PATH}/fly", **headers)[:2] == (409, "客服 bot: fly is not possible now")
    assert call(console, "POST", "/rollouts/none/kill", **headers)[0] == 404
    assert call(console, "POST", "/", **headers)[0] == 404


class Browser:
    """Chromium over its debugging pipe: no port, no driver."""

    def __init__(self, binary: str, folder: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        # Chromium reads commands from descriptor 3 and writes answers to 4.
        redirect = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder}",
            "--remote-debugging-pipe",
        ]
        self.process = subprocess.Popen(
            ["bash", "-c", redirect, binary, *options],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest, self._session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._in, 1 << 20)
                assert part, "the browser has gone"
                self._rest += part
            line, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, script: str) -> Any:
        return self.call("Runtime.evaluate", expression=script, awaitPromise=True)["result"].get("value")

    def wait(self, condition: str) -> None:
        # Asked anew each time: a page that is replaced meanwhile takes its promises with it.
        while not self.run(f"Boolean({condition})"):
            time.sleep(0.02)

    def close(self) -> None:
        self.call("Browser.close")
        self.process.wait(20)
        os.close(self._out)
        os.close(self._in)


@pytest.mark.usefixtures("deadline")
def test_a_person_watches_and_moves_a_rollout(console, tmp_path):
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not binary:
        pytest.skip("chromium is not installed")
    browser = Browser(binary, tmp_path / "profile")
    browser.call("Page.navigate", url=console.url)
    browser.wait("document.querySelector('td a')")
    assert browser.run("location.href").endswith("/"), "the token has left the address"
    browser.run("document.querySelector('td a').click()")
    browser.wait("document.body.dataset.live === 'yes'")
    assert browser.run("document.querySelector('h1 span').textContent") == "HOLD"
    # More evidence arrives, and the page shows it without being loaded again.
    serve(console.store, 300)
    browser.wait("document.querySelector('h1 span').textContent === 'PROMOTE'")
    browser.run("window.confirm = () => true")
    browser.run("document.querySelector('[data-action=advance]').click()")
    browser.wait("document.querySelector('.facts').textContent.includes('stage 2 of 2 (100 %)')")
    assert console.store.load(["客服 bot"])["客服 bot"].state.stage == 1
    browser.wait("document.querySelector('nav output').textContent.includes('advance: done')")
    shot = browser.call("Page.captureScreenshot")["data"]
    (tmp_path / "console.png").write_bytes(base64.b64decode(shot))
    assert (tmp_path / "console.png").stat().st_size > 5_000
    browser.close()
