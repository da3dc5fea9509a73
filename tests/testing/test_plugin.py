"""The pytest plugin, run as its users run it."""

import subprocess
import sys
import time
from typing import Any

import anthropic  # here also because pytester would otherwise import it anew for every inner run
import httpx2
import pytest

from zlclient.serving.proxy import RecordingProxy
from zlclient.serving.recording import CassetteWriter
from zlclient.serving.transports import LocalTransport
from zlclient.testing import transport

pytest_plugins = ["pytester"]

HELLO = """
    import anthropic
    import pytest

    def ask(text="hello", model="claude-sonnet-4-6"):
        client = anthropic.Anthropic(max_retries=0)
        reply = client.messages.create(model=model, max_tokens=50, messages=[{"role": "user", "content": text}])
        return reply.content[0].text
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Writes a test file after HELLO and runs it with the plugin, and with no other that is installed by chance."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    always = ("-p", "zlclient.testing.plugin", "-p", "no:cacheprovider", "--strict-markers")

    def go(source: str, *arguments: str, before: str = HELLO) -> pytest.RunResult:
        pytester.makepyfile(before + source)
        return pytester.runpytest_inprocess(*always, *arguments)

    return go


def test_scenarios_answer_and_requests_are_there(run: Any):
    result = run("""
    def test_it(zl_scenario, zl_requests):
        zl_scenario.when(text="hello").reply("Hi!")
        assert ask() == "Hi!"
        zl_requests.assert_called_once(model="claude-sonnet-4-6", turn=0)

    def test_the_next_test_starts_afresh(zl_requests, zl_server):
        zl_requests.assert_not_called()
        assert not zl_server.strict
        assert ask()
    """)
    result.assert_outcomes(passed=2)


def test_an_unmatched_request_fails_the_test_even_if_the_error_is_swallowed(run: Any):
    result = run("""
    def test_swallowed(zl_scenario):
        zl_scenario.when(text="good morning").reply("Hi!", name="greeting")
        try:
            ask("good evening")
        except Exception:
            pass

    def test_not_swallowed(zl_scenario):
        ask("good evening")
    """)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_swallowed*",
            "A request was sent that nothing was prepared for.",
            "*The only scenario is 'greeting' (test_*.py:*); it differs in:",
            "*wanted  contains 'good morning'",
            "*got     'good evening'",
            "*test_not_swallowed*",
            "*There are no scenarios.*",
        ]
    )


def test_the_marker_says_how(run: Any, pytester: pytest.Pytester):
    pytester.makefile(".yaml", said="- when: {text: hello}\n  reply: {text: From a file., ttft: 60}\n")
    result = run("""
    @pytest.mark.zlclient(scenario="said.yaml", delays=False)
    def test_file(zl_server):
        assert zl_server.strict
        assert ask() == "From a file."

    @pytest.mark.zlclient(strict=False)
    def test_lenient(zl_scenario):
        assert ask()

    @pytest.mark.zlclient(strict=True)
    class TestClass:
        @pytest.mark.zlclient(today="2027-02-01", strict=False)
        def test_retired(self, zl_server):
            with pytest.raises(anthropic.NotFoundError, match="retired"):
                ask(model="claude-opus-4-5")
    """)
    result.assert_outcomes(passed=3)


def test_a_recording_answers_and_scenarios_add_to_it(run: Any, pytester: pytest.Pytester):
    upstream = httpx2.Client(transport=transport([{"reply": {"text": "recorded", "ttft": 4}}], delays=False))
    proxy = RecordingProxy("https://h", CassetteWriter(pytester.path / "c.jsonl"), client=upstream)
    http = httpx2.Client(transport=LocalTransport(proxy, time.sleep))
    anthropic.Anthropic(api_key="k", http_client=http).messages.create(
        model="claude-sonnet-4-6", max_tokens=50, messages=[{"role": "user", "content": "hello"}]
    )
    result = run("""
    @pytest.mark.zlclient(replay="c.jsonl")
    def test_replay(zl_requests):
        assert ask() == "recorded"
        assert zl_requests.assert_called_once(text="hello").responder == "replay"

    @pytest.mark.zlclient(replay="c.jsonl")
    def test_missed(zl_server):
        ask("bye")

    @pytest.mark.zlclient(replay="c.jsonl")
    def test_both(zl_scenario):
        zl_scenario.when(text="bye").reply("said")
        assert [ask(), ask("bye")] == ["recorded", "said"]
    """)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*The nearest of 1 recorded exchanges is number 1*"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("strct=True", "has no 'strct'"),
        ("'file.yaml'", "has no a positional"),
        ("scenario='no.yaml'", "cannot be read"),
    ],
)
def test_a_wrong_marker_is_named(run: Any, options: str, said: str):
    result = run(f"""
    @pytest.mark.zlclient({options})
    def test_it(zl_server):
        pass
    """)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_hosts_are_allowed_in_the_settings(run: Any, pytester: pytest.Pytester):
    pytester.makeini("[pytest]\nzl_allow =\n    db.internal\n")
    result = run("""
    import socket

    def test_it(zl_server, monkeypatch):
        with pytest.raises(OSError):
            socket.create_connection(("db.internal", 1))
        with pytest.raises(RuntimeError, match="may not reach 'other.internal'"):
            socket.create_connection(("other.internal", 1))

    def test_without_the_fixtures_nothing_is_patched():
        assert "connect" not in vars(socket.socket)
    """)
    result.assert_outcomes(passed=2)


def test_async_tests_and_unittest_classes(run: Any):
    result = run(
        """
    import unittest

    @pytest.mark.asyncio
    async def test_async(zl_scenario, zl_requests):
        zl_scenario.reply("Hi!")
        client = anthropic.AsyncAnthropic()
        message = {"role": "user", "content": "hello"}
        async with client.messages.stream(model="claude-sonnet-4-6", max_tokens=9, messages=[message]) as stream:
            assert await stream.get_final_text() == "Hi!"
        zl_requests.assert_called_once(request={"stream": True})

    @pytest.mark.usefixtures("zl_scenario")
    class Case(unittest.TestCase):
        def test_unmatched(self):
            with self.assertRaises(anthropic.NotFoundError):
                ask()
    """,
        "-p",
        "pytest_asyncio.plugin",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
    )
    result.assert_outcomes(passed=1, failed=1)


def test_parallel_runs_do_not_meet(run: Any):
    # without the SDKs: each worker would spend seconds on importing them
    result = run(
        """
    import httpx2
    import pytest

    @pytest.mark.parametrize("number", range(8))
    def test_it(zl_scenario, zl_server, zl_requests, number):
        zl_scenario.reply(f"answer {number}")
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}
        for url in ("https://api.openai.com/v1", zl_server.openai_url):
            answer = httpx2.post(f"{url}/chat/completions", json=body, headers={"authorization": "Bearer k"})
            assert answer.json()["choices"][0]["message"]["content"] == f"answer {number}"
        zl_requests.assert_count(2)
    """,
        "-p",
        "xdist.plugin",
        "-n2",
        before="",
    )
    result.assert_outcomes(passed=8)


def test_the_plugin_costs_a_run_without_it_nothing():
    code = """
import sys
import pytest
before = set(sys.modules)
import zlclient.testing.plugin
heavy = {name.partition('.')[0] for name in set(sys.modules) - before} - {'zlclient'}
print(sorted(heavy & {'anthropic', 'openai', 'httpx2', 'yaml', 'pydantic', 'uvicorn'}))
print(len([name for name in set(sys.modules) - before if name.startswith('zlclient')]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert found[0] == "[]"
    assert int(found[1]) <= 3
