"""Which requests leave: one where the document fits, parts where it does not. All pure: nothing is sent."""

import json
from pathlib import Path

import pytest

import zlclient
from zlclient import Client, Document

QUESTION = "What does the supplier pay in section 3?"


@pytest.fixture
def client(faulty, clock):
    with Client(clock=clock) as made:
        yield made


def content(prepared):
    return prepared.wire["body"]["messages"][0]["content"]


class TestWhole:
    def test_the_document_comes_first_and_the_question_last(self, client, document):
        block, question = content(client.prepare(QUESTION, document=document))
        assert block["type"] == "document"
        assert block["cache_control"] == {"type": "ephemeral"}
        assert block["source"]["data"].startswith("[")
        assert question == {"type": "text", "text": QUESTION}

    def test_every_segment_stands_under_its_anchor(self, client, document):
        data = content(client.prepare(QUESTION, document=document))[0]["source"]["data"]
        at = -1
        for number in range(1, 13):
            at = data.index(f"Fees of kind {number}", at + 1)
        assert data.count("pays a fee") == 12

    @pytest.mark.parametrize("mode", ["answer", "summary", "extract"])
    @pytest.mark.parametrize("model", ["auto", "openai:gpt-6.1-sol"])
    def test_two_questions_share_every_byte_up_to_the_question(self, client, document, mode, model):
        options = {"document": document, "mode": mode, "model": model, "system": "Be brief."}
        one, two = (
            client.prepare(question, **options).content.decode() for question in (QUESTION, "And in section 9?")
        )
        shared = len(one[: one.index(QUESTION)])
        assert one[:shared] == two[:shared]
        assert "pays a fee" in one[:shared]
        assert list(json.loads(one))[-1] == "messages"

    def test_openai_gets_text_in_the_same_order(self, client, document):
        messages = client.prepare(QUESTION, document=document, model="openai:gpt-6.1-sol").wire["body"]["messages"]
        assert [part["type"] for part in messages[1]["content"]] == ["text", "text"]
        assert "cache_control" not in messages[1]["content"][0]

    def test_a_conversation_goes_on_behind_the_document(self, client, document):
        turns = [
            {"role": "user", "content": "First?"},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Second?"},
        ]
        messages = client.prepare(turns, document=document).wire["body"]["messages"]
        assert [block["type"] for block in messages[0]["content"]] == ["document", "text"]
        assert messages[1:] == turns[1:]

    def test_a_document_that_the_conversation_brought_along_is_not_sent_twice(self, client, faulty, document):
        first = client.chat(QUESTION, document=document)
        again = client.prepare([*first.messages, {"role": "user", "content": "And 4?"}], document=document)
        assert json.dumps(again.body["messages"]).count("pays a fee") == 12

    def test_the_domain_tag_stays_behind_the_cached_prefix(self, client, document):
        block, question = content(client.prepare(QUESTION, document=document, domain="law"))
        assert "Legal" not in block["source"]["data"][:40]
        assert question["text"].endswith(QUESTION)
        assert question["text"] != QUESTION

    def test_chinese_gets_chinese_anchors_and_instructions(self, client):
        prepared = client.prepare(
            "诉讼时效几年？", document="第一章 总则\n第一条 诉讼时效期间为三年。\n第二条 本法自公布之日起施行。\n"
        )
        assert content(prepared)[0]["source"]["data"].startswith("【")
        assert "只根据文件回答" in prepared.body["system"]

    def test_a_callers_system_blocks_keep_their_marks(self, client, document):
        system = [{"type": "text", "text": "Mine.", "cache_control": {"type": "ephemeral"}}]
        assert client.prepare(QUESTION, document=document, system=system).body["system"][0] == system[0]


class TestParts:
    def small(self, context=3000, **options):
        return Client(provider="local", models={"local:auto": {"context": context}}, max_tokens=256, **options)

    def test_what_exceeds_the_window_is_read_in_parts_that_fit(self, document):
        client = self.small(1600)
        plan = client._reading(zlclient.client.Request.of(QUESTION, document=document)).plan
        assert plan.whole is None
        assert "".join(segment.text for segment in plan.segments) == document.source
        assert all(segment.tokens <= plan.room for segment in plan.segments)
        assert [note.rule for note in plan.notes] == ["parts"]

    def test_segment_tokens_bounds_every_part(self, client, document):
        plan = client._reading(zlclient.client.Request.of(QUESTION, document=document, segment_tokens=300)).plan
        assert len(plan.segments) >= 12
        assert all(segment.tokens <= 300 for segment in plan.segments)

    def test_prepare_shows_the_first_part(self, client, document):
        prepared = client.prepare(QUESTION, document=document, segment_tokens=300)
        block, question = content(prepared)
        assert "section 1 " in block["source"]["data"]
        assert "section 2 " not in block["source"]["data"]
        assert "cache_control" not in block
        assert question["text"] == QUESTION

    def test_intermediate_answers_are_bounded_so_that_two_fit_together(self, document):
        client = self.small(1600)
        plan = client._reading(zlclient.client.Request.of(QUESTION, document=document, max_tokens=900)).plan
        assert plan.output is not None
        assert 2 * plan.output <= plan.room
        assert plan.first.max_tokens == plan.output

    def test_a_window_without_room_says_so(self, document):
        with pytest.raises(zlclient.InputError, match=r"max_tokens: .* leave no room"):
            self.small(300).prepare(QUESTION, document=document)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "where"),
        [
            ({"mode": "answer"}, "mode: goes with a document"),
            ({"on_segment_error": "skip"}, "on_segment_error"),
            ({"concurrency": 4}, "concurrency"),
            ({"segment_tokens": 500}, "segment_tokens"),
            ({"progress": print}, "progress"),
            ({"document": ""}, "document: is empty"),
            ({"document": " \n"}, "document: is empty"),
            ({"document": "contract.pdf"}, "document: is a file's name"),
            ({"document": "./民法典.txt"}, "document: is a file's name"),
            ({"document": Path("nowhere.txt")}, "document: cannot be read"),
            ({"document": 7}, "document: must be a Document"),
            ({"document": "Text.", "mode": "guess"}, "mode: must be one of answer, summary, extract"),
            ({"document": "Text.", "on_segment_error": "ignore"}, "on_segment_error: must be"),
            ({"document": "Text.", "concurrency": 0}, "concurrency: must be"),
            ({"document": "Text.", "segment_tokens": 3}, "segment_tokens: must be"),
            ({"document": "Text.", "progress": 7}, "progress: must be a function"),
        ],
    )
    def test_wrong_ones_are_named(self, client, faulty, options, where):
        with pytest.raises(zlclient.InputError, match=where):
            client.chat("Why?", **options)
        assert faulty.requests == []

    def test_a_path_is_read(self, client, tmp_path):
        path = tmp_path / "terms.txt"
        path.write_bytes("费用为三千元。".encode("gb18030"))
        assert "费用为三千元。" in content(client.prepare("费用多少？", document=path))[0]["source"]["data"]

    def test_page_marks_are_not_sent_and_noted(self, client):
        pages = [f"ACME Confidential\nThe fee of page {n} is {n}00 euros.\nPage {n}" for n in range(1, 7)]
        document = Document.from_text("\n\f".join(pages))
        reading = client._reading(zlclient.client.Request.of(QUESTION, document=document))
        data = content(client.prepare(QUESTION, document=document))[0]["source"]["data"]
        assert "Confidential" not in data
        assert "\f" not in data
        assert data.count("The fee of page") == 6
        assert [note.rule for note in reading.plan.notes] == ["page-marks"]
