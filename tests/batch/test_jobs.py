"""The hash of a row's content: the same for the same question, another for any other."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import zlclient
from zlclient import Client
from zlclient.batch.jobs import Job, Maker, load_template
from zlclient.batch.sources import Row, open_source
from zlclient.errors import ConfigError, InputError

NAMES = st.text("aB一", max_size=5)  # cleaning must not make two of them one
TREES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


def maker(rows=(), template=None, **options):
    options.setdefault("provider", "local")
    return Maker(Client(), open_source(rows), load_template(template), options)


@pytest.fixture(scope="module")
def local():
    return maker()


def job(made) -> Job:
    assert made.job is not None, made.outcome
    return made.job


def key(made):
    return job(made).key


def problem(made) -> str:
    assert made.outcome is not None
    return made.outcome.body["message"]


def shuffled(value: Any, random_) -> Any:
    if isinstance(value, dict):
        items = [(name, shuffled(item, random_)) for name, item in value.items()]
        random_.shuffle(items)
        return dict(items)
    return [shuffled(item, random_) for item in value] if isinstance(value, list) else value


@given(tree=st.dictionaries(NAMES, TREES, max_size=4), seed=st.integers())
def test_the_order_of_keys_does_not_matter(local, tree, seed):
    row = {"prompt": "p", "extra": tree, "tools": [{"name": "t", "input_schema": tree}], "domain": "finance"}
    other = shuffled(row, random.Random(seed))
    assert key(local.make(Row(1, row))) == key(local.make(Row(9, other)))


@given(one=st.text(max_size=20), other=st.text(max_size=20))
def test_different_prompts_have_different_hashes(one, other):
    make = maker(sanitize="off").make
    first, second = make(Row(1, {"prompt": f"a{one}"})), make(Row(1, {"prompt": f"a{other}"}))
    assert (key(first) == key(second)) == (one == other)


BASE = {"prompt": "What was revenue?"}
DIFFERENT = [
    {"model": "legacy"},
    {"system": "Be brief."},
    {"domain": "finance"},
    {"max_tokens": 7},
    {"stop": ["x"]},
    {"source": "Revenue was 3."},
    {"format": {"max_words": 9}},
    {"format": {"max_words": 9}, "format_policy": "raise"},
    {"experiment": "e", "unit": "u"},
    {"experiment": "e", "unit": "v"},
    {"tools": [{"name": "t", "input_schema": {}}]},
    {"extra": {"user": "me"}},
]
SAME = [{"id": 7}, {"metadata": {"a": 1}}, {"timeout": 9}, {"deadline": 60}, {"retry": 0}, {"on_rate_limit": "wait"}]


def test_what_changes_the_answer_changes_the_hash_and_nothing_else(local):
    keys = [key(local.make(Row(1, {**BASE, **row}))) for row in [{}, *DIFFERENT]]
    assert len(set(keys)) == len(keys)
    for row in SAME:
        assert key(local.make(Row(1, {**BASE, **row}))) == keys[0], row


def test_the_resolved_model_counts_and_not_its_name(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    make = Maker(Client(), open_source([]), None, {}).make
    auto = make(Row(1, {"prompt": "p", "model": "auto"}))
    assert auto.job is not None
    pinned = {"prompt": "p", "model": f"anthropic:{auto.job.prepared.route.model.id}"}
    assert key(make(Row(1, pinned))) == auto.job.key
    assert key(make(Row(1, {"prompt": "p", "model": "legacy"}))) != auto.job.key


def test_an_output_type_and_a_document_are_part_of_it(local, tmp_path):
    class City(BaseModel):
        name: str

    (tmp_path / "a.txt").write_text("The fee is 3.")
    (tmp_path / "b.txt").write_text("The fee is 4.")
    keys = [key(maker(output=output).make(Row(1, BASE))) for output in (None, City)]
    keys += [key(local.make(Row(1, {**BASE, "document": str(tmp_path / name)}))) for name in ("a.txt", "b.txt")]
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, 'either "prompt" or "messages"'),
        ({"prompt": "a", "messages": []}, 'either "prompt" or "messages"'),
        ({"prompt": "a", "temprature": 1}, "did you mean 'temperature'"),
        ({"prompt": 3}, "must be a string"),
        ({"prompt": "a", "max_tokens": "many"}, "max_tokens"),
        ({"prompt": "a", "document": "nowhere.txt"}, "cannot be read"),
    ],
)
def test_a_wrong_row_is_a_failure_of_its_own(local, row, message):
    made = local.make(Row(1, row))
    assert made.job is None
    assert made.outcome.body["type"] == "InputError"
    assert message in made.outcome.body["message"]


def test_a_wrong_option_of_the_run_is_an_error_at_once():
    with pytest.raises(InputError, match="temperature"):
        maker(temprature=1)


def test_a_template_takes_its_inputs_from_the_row_and_names_what_it_does_not_use():
    template = zlclient.Prompt.from_text(
        "---\ninputs:\n  n: {kind: integer, required: true}\n  what: {kind: string}\n---\nuser:\n{{ n }} of {{ what }}"
    )
    made = maker(template=template)
    first = made.make(Row(1, {"id": 1, "n": 3, "what": "apples", "colour": "red"}))
    assert job(first).request.messages[0]["content"].startswith("3 of")
    assert made.unused == {"colour"}
    assert key(made.make(Row(2, {"n": "3", "what": "apples"}, textual=True))) == key(first)
    assert "is not JSON" in problem(made.make(Row(3, {"n": "three", "what": "x"}, textual=True)))
    assert "n" in problem(made.make(Row(4, {"what": "x"})))


def test_a_folders_text_goes_to_the_only_required_input(tmp_path):
    (tmp_path / "a.txt").write_text("Revenue was 3 million.")
    source = open_source(tmp_path)
    made = Maker(Client(), source, load_template("summary"), {"provider": "local"}).make(next(source.rows()))
    assert "Revenue was 3 million." in json.dumps(job(made).prepared.wire)


def test_templates_by_path_and_by_name(tmp_path):
    path = tmp_path / "t.prompty"
    path.write_text("user:\n{{ q }}")
    by_path, by_name = load_template(str(path)), load_template("summary")
    assert by_path is not None
    assert by_name is not None
    assert (by_path.source.path, by_name.name) == (str(path), "summary")
    with pytest.raises(ConfigError):
        load_template("nowhere/t.prompty")


def test_cells_of_csv_are_read_by_what_they_are_for(local):
    cells = {"prompt": "1", "max_tokens": "7", "system": "2", "strict": "true", "stop": "x", "timeout": "off"}
    request = job(local.make(Row(1, cells, textual=True))).request
    assert (request.messages[0]["content"], request.max_tokens, request.system) == ("1", 7, "2")
    assert (request.strict, request.timeout) == (True, "off")
    assert "max_tokens" in problem(local.make(Row(1, {"prompt": "a", "max_tokens": "x"}, textual=True)))
