"""The provider runner against our own server's batch routes, with the official SDKs, in process."""

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zlclient.batch import batch, services
from zlclient.batch.ledger import open_ledger
from zlclient.batch.provider import LONGEST_POLL
from zlclient.batch.running import Plan, execute
from zlclient.batch.services import Limits
from zlclient.errors import CredentialsError, Forbidden, InputError, ServerError
from zlclient.serving import LocalServer, async_transport, transport

ROWS = [{"id": i, "prompt": f"Paris has {i % 8} gates. How many gates has Paris?"} for i in range(12)]
MODELS = {"anthropic": "anthropic:claude-sonnet-5-5", "openai": "openai:gpt-5.4"}


class Site:
    """A provider of both kinds in process: what was requested, and a place to break."""

    def __init__(self):
        self.server = LocalServer()
        self.requests = []
        self.break_at: Any = None

    def handle(self, request):
        self.requests.append((request.method, request.path))
        response = self.server.handle(request)
        if self.break_at is not None and self.break_at(request):
            raise KeyboardInterrupt  # as sudden as a kill, after the server has acted
        return response

    def count(self, method, path):
        return sum(seen[0] == method and seen[1].startswith(path) for seen in self.requests)

    @property
    def clients(self):
        http = httpx2.Client(transport=transport(self))
        return {
            "anthropic": anthropic.Anthropic(api_key="k", http_client=http),
            "openai": openai.OpenAI(api_key="k", http_client=http),
        }


@pytest.fixture
def site():
    return Site()


@pytest.fixture(params=["anthropic", "openai"])
def kind(request):
    return request.param


@pytest.fixture
def run(folder, site, clock, kind):
    def run(source=ROWS, **options):
        options = {"model": MODELS[kind], "runner": "provider", "provider": None, **options}
        return folder.run(source, clients=site.clients, clock=clock, **options)

    return run


CREATE = {"anthropic": ("POST", "/v1/messages/batches"), "openai": ("POST", "/v1/batches")}


def test_rows_are_answered_at_half_the_price_and_as_by_the_local_runner(run, folder, site, kind, clock):
    report = run()
    assert (report.answered, report.requests, report.reused) == (12, 8, 4)
    assert site.count(*CREATE[kind]) == 1
    by_provider = folder.replies
    assert [reply["id"] for reply in by_provider] == list(range(12))
    assert by_provider[3]["text"] == "Paris has 3 gates."
    assert report.cost == pytest.approx(sum(reply["cost"] for reply in by_provider[:8]))

    http = httpx2.AsyncClient(transport=async_transport(site))
    clients = {
        "anthropic": anthropic.AsyncAnthropic(api_key="k", http_client=http),
        "openai": openai.AsyncOpenAI(api_key="k", http_client=http),
    }
    zl = batch(ROWS, output=folder.path / "local.jsonl", model=MODELS[kind], clients=clients)
    local = [json.loads(line) for line in (folder.path / "local.jsonl").read_text().splitlines()]
    assert zl.answered == 12
    for one, other in zip(by_provider, local, strict=True):
        assert one.pop("cost") == pytest.approx(other.pop("cost") / 2)
        assert one == other


def test_a_second_run_asks_nothing(run, folder, site):
    run()
    before, seen = folder.output.read_bytes(), len(site.requests)
    report = run()
    assert (report.requests, report.reused) == (0, 12)
    assert len(site.requests) == seen
    assert folder.output.read_bytes() == before


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(most=st.integers(1, 9), size=st.integers(800, 5000))
def test_batches_are_split_by_the_limits_and_none_is_over(tmp_path_factory, monkeypatch, clock, most, size):
    bodies = []
    for name, service in (("anthropic", services.AnthropicBatches), ("openai", services.OpenAIBatches)):
        site, path = Site(), tmp_path_factory.mktemp("split")
        with monkeypatch.context() as patch:
            patch.setattr(service, "limits", Limits(most, size))
            create = service.create

            def watched(self, file, group, mark, create=create):
                bodies.append(file.read())
                file.seek(0)
                return create(self, file, group, mark)

            patch.setattr(service, "create", watched)
            plan = Plan(
                source=ROWS,
                output=path / "o.jsonl",
                runner="provider",
                clients=site.clients,
                clock=clock,
                options={"model": MODELS[name]},
            )
            report = execute(plan)
        assert (report.answered, report.requests) == (12, 8)
        made = site.count(*CREATE[name])
        assert made >= -(-8 // most)
    assert all(len(body) <= size for body in bodies)


def test_polling_backs_off_and_stays_patient(run, clock, site, kind, monkeypatch):
    looks = iter(range(100))
    service = services.AnthropicBatches if kind == "anthropic" else services.OpenAIBatches
    state = service.state
    monkeypatch.setattr(service, "state", lambda self, batch: "running" if next(looks) < 12 else state(self, batch))
    before = clock.now
    assert run().answered == 12
    assert clock.now - before > 5 * LONGEST_POLL
    assert max(clock.slept) <= 1.0  # so that Ctrl-C is heard


@pytest.mark.parametrize("where", ["created", "polled", "listed"])
def test_a_break_after_the_batch_was_created_pays_nothing_twice(run, folder, site, kind, where):
    """Broken between creation and the noting of the id, or while polling: the next run finds the batch and goes on."""
    method, path = CREATE[kind]
    site.break_at = {
        "created": lambda request: (request.method, request.path) == (method, path),
        "polled": lambda request: request.method == "GET" and request.path.startswith(path),
        "listed": lambda request: (request.method, request.path) == (method, path),
    }[where]
    with pytest.raises(KeyboardInterrupt):
        run()
    if where == "listed":  # and once more, while it looks for the batch
        site.break_at = lambda request: (request.method, request.path) == ("GET", path)
        with pytest.raises(KeyboardInterrupt):
            run()
    site.break_at = None
    report = run()
    assert (report.answered, report.requests) == (12, 0)
    assert site.count(method, path) == 1
    assert [reply["id"] for reply in folder.replies] == list(range(12))


def test_a_batch_that_was_never_created_is_submitted_again(run, folder, site, kind, monkeypatch):
    service = services.AnthropicBatches if kind == "anthropic" else services.OpenAIBatches

    def fails(self, *_):
        raise ServerError("500", provider=kind, model="batches")

    with monkeypatch.context() as patch:
        patch.setattr(service, "create", fails)
        with pytest.raises(ServerError):
            run()
    report = run()
    assert (report.answered, report.requests) == (12, 8)
    assert site.count(*CREATE[kind]) == 1


def test_a_batch_the_provider_forgot_is_submitted_again(run, folder, kind, clock):
    first, second = Site(), Site()
    first.break_at = lambda request: request.method == "GET"
    with pytest.raises(KeyboardInterrupt):
        run_at(first, folder, clock, kind)
    report = run_at(second, folder, clock, kind)
    assert (report.answered, report.requests) == (12, 8)


def run_at(site, folder, clock, kind):
    return folder.run(ROWS, clients=site.clients, clock=clock, model=MODELS[kind], runner="provider", provider=None)


def test_rows_that_fail_in_a_batch_go_aside_and_are_tried_again(run, folder, site, kind, monkeypatch):
    bad = {"id": "bad", "prompt": "x", "extra": {"bogus": 1}}
    report = run([*ROWS[:3], bad])
    assert (report.answered, report.failed) == (3, 1)
    assert folder.failures[0]["id"] == "bad"
    assert "invalid" in folder.failures[0]["error"]["type"]
    assert run([*ROWS[:3], bad]).requests == 1


def test_a_cancelled_batch_gives_failures(run, folder, site, kind):
    site.break_at = lambda request: request.method == "GET"
    with pytest.raises(KeyboardInterrupt):
        run()
    site.break_at = None
    url = f"sqlite:///{folder.path / 'replies.ledger.db'}"
    ledger = open_ledger(url, "x")
    (batch,) = ledger.open_batches()
    ledger.close()
    clients = site.clients
    if kind == "anthropic":
        clients["anthropic"].messages.batches.cancel(batch.remote)
    else:
        clients["openai"].batches.cancel(batch.remote)
    report = run()
    assert (report.answered, report.failed) == (0, 12)
    assert run().answered == 12


def test_a_file_that_is_refused_whole_fails_its_rows(folder, site, clock, monkeypatch):
    entry = services.OpenAIBatches.entry
    monkeypatch.setattr(
        services.OpenAIBatches, "entry", lambda self, job: entry(self, job).replace(b"/v1/chat", b"/v1/x")
    )
    report = folder.run(
        ROWS, clients=site.clients, clock=clock, model=MODELS["openai"], runner="provider", provider=None
    )
    assert report.failed == 12
    assert folder.failures[0]["error"]["type"] == "BatchRefused"


def test_a_model_each_gets_a_file_of_its_own_at_openai(folder, site, clock):
    rows = [
        {"id": i, "prompt": f"Say {i}", "model": ["openai:gpt-5.4", "openai:gpt-5.4-mini"][i % 2]} for i in range(6)
    ]
    report = folder.run(rows, clients=site.clients, clock=clock, runner="provider", provider=None)
    assert report.answered == 6
    assert site.count("POST", "/v1/batches") == 2
    assert [reply["model"].startswith("gpt-5.4-mini") for reply in folder.replies] == [False, True] * 3


def test_both_providers_in_one_run(folder, site, clock):
    rows = [{"id": i, "prompt": f"Say {i}", "model": [*MODELS.values()][i % 2]} for i in range(6)]
    report = folder.run(rows, clients=site.clients, clock=clock, runner="provider", provider=None)
    assert report.answered == 6
    assert [reply["provider"] for reply in folder.replies] == ["anthropic", "openai"] * 3


def test_a_budget_stops_the_submission_and_the_next_run_goes_on(run, folder):
    report = run(max_requests=5)
    assert (report.stopped, report.requests, report.answered) == ("budget", 5, 9)  # four of the five were asked twice
    report = run()
    assert (report.stopped, report.requests, report.answered) == (None, 3, 12)


def test_answers_are_checked_as_anywhere(run, folder):
    rows = [
        {"prompt": "Paris has 3 gates. How many gates has Paris?", "source": "Paris has 3 gates."},
        {
            "prompt": "Paris has 4 gates. How many gates has Paris?",
            "format": {"max_words": 1},
            "format_policy": "raise",
        },
    ]
    report = run(rows)
    assert (report.answered, report.failed) == (1, 1)
    assert folder.replies[0]["checks"]["fidelity"]
    assert folder.failures[0]["error"]["type"] == "CheckError"


def test_what_no_batch_can_carry_is_told(run, folder):
    (folder.path / "a.txt").write_text("The fee is 3.")
    rows = [
        {"prompt": "The fee?", "document": str(folder.path / "a.txt")},
        {"prompt": "p", "experiment": "e", "unit": "u"},
    ]
    report = run(rows)
    assert (report.failed, report.requests) == (2, 0)
    assert all("use the local runner" in line["error"]["message"] for line in folder.failures)
    with pytest.raises(InputError, match="read twice"):
        run(iter(ROWS))


def test_offline_and_without_a_key(folder, clock):
    report = folder.run(ROWS[:2], runner="provider", provider="local", clock=clock)
    assert (report.answered, report.cost) == (2, 0.0)
    with pytest.raises(CredentialsError):
        folder.run(["other"], runner="provider", provider="openai", clock=clock)
    with pytest.raises(CredentialsError):
        folder.run(["other"], runner="provider", provider="anthropic", clock=clock)


def test_keys_and_addresses_of_the_environment(folder, faulty, clock):
    faulty.script(default={"status": 403})
    with pytest.raises(Forbidden) as caught:
        folder.run(["a"], runner="provider", provider=None, clock=clock)
    assert faulty.requests[0].path == "/v1/messages/batches"
    assert faulty.requests[0].headers["anthropic-version"]
    assert "stream" not in faulty.requests[0].body["requests"][0]["params"]
    assert caught.value.status == 403


def test_a_rate_limit_on_creation_is_waited_out(folder, faulty, clock):
    faulty.script(*[{"status": 429, "headers": {"retry-after": "9"}}] * 2, default={"status": 403})
    with pytest.raises(Forbidden):
        folder.run(["a"], runner="provider", provider=None, clock=clock)
    assert clock.slept == [9.0, 9.0]
    assert len(faulty.requests) == 3
