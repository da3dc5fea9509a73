"""The OpenFeature provider, through the OpenFeature client."""

from collections.abc import Iterator
from typing import Any

import pytest

from zlclient.routing.judge import change_state
from zlclient.routing.rollouts import parse_rollouts
from zlclient.routing.router import Router
from zlclient.routing.stores.memory import MemoryStore

pytest.importorskip("openfeature")
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from zlclient.routing.openfeature import RolloutProvider


@pytest.fixture
def router() -> Router:
    table = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [50, 100]}
    router = Router(parse_rollouts({"bot": table}), MemoryStore(), background=False)
    router.step()
    return router


@pytest.fixture
def client(router: Router) -> Iterator[Any]:
    api.set_provider(RolloutProvider(router))
    yield api.get_client()
    api.clear_providers()


def test_the_same_assignment(router, client):
    for number in range(200):
        unit = f"u{number}"
        decision = router.assign("bot", unit=unit)
        context = EvaluationContext(unit)
        assert client.get_string_value("bot", "?", context) == decision.arm
        assert client.get_boolean_value("bot", False, context) is (decision.arm == "auto")
        assert client.get_integer_value("bot", -1, context) == decision.variation
        assert client.get_object_value("bot", {}, context)["arm"] == decision.arm
        by_attribute = EvaluationContext(attributes={"user_id": unit})
        assert client.get_string_value("bot", "?", by_attribute) == decision.arm


async def test_async(router, client):
    assert await client.get_string_value_async("bot", "?", EvaluationContext("u")) == router.assign("bot", unit="u").arm


def test_details(router, client):
    details = client.get_string_details("bot", "?", EvaluationContext("u"))
    assert (details.reason, details.variant, details.error_code) == (Reason.SPLIT, details.value, None)
    assert details.flag_metadata["stage"] == 0
    state = router.state("bot")
    assert state
    change_state(router.store, router.rollouts["bot"], state, "kill", 0.0, "tests", "")
    router.step()
    details = client.get_string_details("bot", "?", EvaluationContext("u"))
    assert (details.value, details.reason) == ("legacy", Reason.DISABLED)


def test_errors_give_the_default(client):
    details = client.get_string_details("bott", "mine", EvaluationContext("u"))
    assert (details.value, details.error_code) == ("mine", ErrorCode.FLAG_NOT_FOUND)
    details = client.get_string_details("bot", "mine")
    assert (details.value, details.error_code) == ("mine", ErrorCode.TARGETING_KEY_MISSING)
    details = client.get_float_details("bot", 0.5, EvaluationContext("u"))
    assert (details.value, details.error_code) == (0.5, ErrorCode.TYPE_MISMATCH)


def test_track_reports_an_outcome(router, client):
    client.track("resolved", tracking_event_details=TrackingEventDetails(value=1.0, attributes={"reply_id": "r1"}))
    client.track("page-view")
    router.step()
    records = router.store.read("bot")[0]
    assert [(record.kind, record.key) for record in records] == [("outcome", "r1 resolved")]
