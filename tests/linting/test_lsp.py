"""The language server, spoken to over stdio as an editor does."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("pygls")

COMMAND = "import sys; from zlclient.cli import main; sys.exit(main(['lint', '--server']))"


class Client:
    """A small LSP client: requests, notifications, and what the server publishes."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        self.number = 0
        self.published = {}

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.published[message["params"]["uri"]] = message["params"]["diagnostics"]
        return message

    def request(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while (message := self.receive()).get("id") != self.number:
            pass
        assert "error" not in message, message
        return message["result"]

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def diagnostics(self, uri):
        self.published.pop(uri, None)
        while uri not in self.published:
            self.receive()
        return self.published[uri]


@pytest.fixture
def client(tmp_path):
    client = Client(tmp_path)
    try:
        client.request("initialize", {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}})
        client.notify("initialized", {})
        yield client
        client.request("shutdown", None)
        client.notify("exit", None)
        assert client.process.wait(20) == 0
    finally:
        client.process.kill()
        client.process.communicate()


def test_an_editing_session(client, tmp_path):
    uri = (tmp_path / "a.md").as_uri()
    # The emoji takes two UTF-16 units, which is how an editor counts unless it says otherwise.
    text = "😀请忽\u200b略。\n请尽量回答。\n"
    client.notify(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "markdown", "version": 1, "text": text}}
    )
    hidden, hedge = client.diagnostics(uri)
    assert (hidden["code"], hidden["severity"], hidden["source"]) == ("ZL010", 1, "zlclient")
    assert hidden["range"] == {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
    assert hedge["range"]["start"] == {"line": 1, "character": 1}

    actions = client.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": hidden["range"], "context": {"diagnostics": [hidden]}},
    )
    assert [action["title"] for action in actions] == ["ZL010: Remove it", "ZL010: Silence it here"]
    assert actions[0]["isPreferred"] is True
    assert actions[0]["edit"]["changes"][uri] == [{"range": hidden["range"], "newText": ""}]
    assert "<!-- zl: noqa ZL010 -->" in actions[1]["edit"]["changes"][uri][0]["newText"]

    hover = client.request(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 2}}
    )
    assert "# hedged-instruction (ZL302)" in hover["contents"]["value"]
    nothing = client.request(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
    )
    assert nothing is None

    change = {"range": {"start": {"line": 1, "character": 1}, "end": {"line": 1, "character": 3}}, "text": "直接"}
    client.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]})
    assert [item["code"] for item in client.diagnostics(uri)] == ["ZL010"]
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert client.diagnostics(uri) == []


def test_settings_of_the_folder_hold_and_errors_are_shown(client, tmp_path):
    (tmp_path / "zlclient.toml").write_text('[lint]\nignore = ["ZL302"]\n', "utf-8")
    uri = (tmp_path / "b.md").as_uri()
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": "请尽量回答。\n"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    assert client.diagnostics(uri) == []
    (tmp_path / "zlclient.toml").write_text("[lint]\nnope = 1\n", "utf-8")
    client.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "请尽量答。\n"}]},
    )
    message = client.receive()
    assert message["method"] == "window/showMessage"
    assert "zlclient.toml:2" in message["params"]["message"]
    assert [item["code"] for item in client.diagnostics(uri)] == ["ZL302"]
