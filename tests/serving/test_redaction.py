"""What recordings must not hold, and what they must."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.serving.redaction import REMOVED, REQUEST_HEADERS, RESPONSE_HEADERS, Redaction, matches

KEY = "sk-ant-api03-AbCdEf0123456789-_xyz"


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        "sk-proj-abcdefghijklm4op",
        "sk-ab*************cdef",
        "AKIAABCDEFGHIJKLMNOP",
        "AIza" + "a" * 35,
        "ghp_" + "a" * 36,
        "github_pat_" + "a" * 40,
        "xoxb-1234567890-abc",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz",
        "org-AbCdEfGhIjKlMnOp",
        "proj_AbCdEfGhIjKlMnOp",
        "req_011CSHoEeqs5C35K2UUqR7Fy",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_removed_wherever_it_stands(secret: str):
    clean = Redaction()
    assert clean.text(f"before {secret} after") == f"before {REMOVED} after"
    assert clean.value({"messages": [{"content": [f"({secret})"]}]}) == {"messages": [{"content": [f"({REMOVED})"]}]}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcdefghijk", "Authorization: Bearer REMOVED"),
        ("http://bob:hunter2@proxy:80/x", "http://REMOVED@proxy:80/x"),
        ("https://h/v1?api-key=abc&version=2", "https://h/v1?REMOVED&version=2"),
        ("in organization 12345678-1234-1234-1234-123456789abc.", "in organization REMOVED."),
        ("sk-learn-compatible, risk-free ask-about-it", "sk-learn-compatible, risk-free ask-about-it"),
        ("a plain sentence, key: value, https://h/x?page=2", "a plain sentence, key: value, https://h/x?page=2"),
    ],
)
def test_addresses_and_messages(text: str, kept: str):
    assert Redaction().text(text) == kept


def test_the_credentials_of_a_request_are_removed_also_where_they_have_no_known_form():
    clean = Redaction().with_secrets_of({"Authorization": "Bearer my-company-credential", "x-api-key": "k" * 20})
    assert clean.text(f"got my-company-credential and {'k' * 20}") == f"got {REMOVED} and {REMOVED}"


def test_made_up_keys_of_tests_do_not_eat_words_of_the_prompt():
    assert Redaction().with_secrets_of({"x-api-key": "local"}).text("a local shop") == "a local shop"


def test_headers_are_kept_by_a_list():
    request = {
        "Authorization": f"Bearer {KEY}",
        "x-api-key": KEY,
        "cookie": "a=b",
        "openai-organization": "org-x",
        "x-anything-new": "1",
        "user-agent": "Anthropic/Python",
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
    }
    kept = Redaction().headers(request, REQUEST_HEADERS)
    assert kept == {"anthropic-version": "2023-06-01", "content-type": "application/json"}
    response = {
        "set-cookie": "a",
        "anthropic-organization-id": "u",
        "request-id": "req_1",
        "anthropic-ratelimit-tokens-limit": "80000",
        "cf-ray": "x",
        "retry-after": "3",
    }
    assert Redaction().headers(response, RESPONSE_HEADERS) == {"retry-after": "3"}


def test_fields_that_name_an_account_or_a_person_are_removed_at_the_top_only():
    body = {
        "user": "bob@example.com",
        "metadata": {"user_id": "u-1", "n": 1},
        "mcp_servers": [{"url": "https://mcp", "authorization_token": "t0p"}],
        "messages": [{"role": "user", "content": [{"type": "tool_use", "input": {"user": "bob", "password": "p"}}]}],
    }
    cleaned = Redaction().value(body)
    assert cleaned["user"] == REMOVED
    assert cleaned["metadata"] == {"user_id": REMOVED, "n": 1}
    assert cleaned["mcp_servers"][0]["authorization_token"] == REMOVED
    # a tool's own arguments stay usable, except what can only be a secret
    assert cleaned["messages"][0]["content"][0]["input"] == {"user": "bob", "password": REMOVED}


def test_events_are_cleaned_as_json_and_stay_as_they_are_otherwise():
    clean = Redaction()
    event = 'event: x\ndata: {"type": "response.created", "response": {"user": "bob"}}\n\n'
    assert "bob" not in clean.event(event)
    untouched = 'event: x\ndata: {"a":   1}\n\ndata: [DONE]\n\n'
    assert clean.event(untouched) == untouched


def test_further_patterns_are_taken_too():
    assert Redaction(patterns=[r"(?i)kunde-\d+"]).text("KUNDE-17 fragt") == f"{REMOVED} fragt"


@pytest.mark.parametrize(
    ("recorded", "got", "same"),
    [
        ({"a": ["x REMOVED y"]}, {"a": ["x 17\n18 y"]}, True),
        ({"a": ["x REMOVED y"]}, {"a": ["x 17"]}, False),
        ({"a": "REMOVED"}, {"a": "b", "c": "d"}, False),
        ({"a": "REMOVED"}, {"a": 7}, False),
        (["REMOVED"], ["a", "b"], False),
        ("a.c", "abc", False),
        (1, 1, True),
    ],
)
def test_anything_may_stand_where_something_was_removed(recorded: Any, got: Any, same: bool):
    assert matches(recorded, got) is same


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


@given(json_values)
def test_cleaning_twice_is_cleaning_once(value: Any):
    clean = Redaction(["a secret of sixteen"])
    once = clean.value(value)
    assert clean.value(once) == once


@given(json_values, st.integers(0, 3))
def test_a_key_never_survives(value: Any, depth: int):
    for _ in range(depth):
        value = {"content": [value, f"x {KEY}"]}
    assert KEY not in repr(Redaction().value([value, KEY]))


@given(json_values)
def test_a_value_matches_itself_cleaned(value: Any):
    assert matches(Redaction(patterns=["[a-f0-9]+"]).value(value, top=False), value)
