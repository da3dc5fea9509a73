"""No source loses, invents or reorders a row, whatever is in it."""

import csv
import io
import json
import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.batch.sources import open_source
from zlclient.errors import InputError

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3))


def fields(source):
    return [row.fields for row in open_source(source).rows()]


@given(rows=st.lists(st.dictionaries(TEXT, VALUES, max_size=3), max_size=20), blank=st.sampled_from(["", " ", "\r"]))
def test_json_lines_give_every_row_once_and_in_order(tmp_path_factory, rows, blank):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_bytes("".join(f"{json.dumps(row, ensure_ascii=False)}\n{blank}\n" for row in rows).encode())
    assert fields(path) == rows
    assert fields(str(path)) == rows  # and a second time


@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=20))
def test_csv_gives_every_row_once_and_in_order(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["id", "prompt"])
        writer.writerows(rows)
    found = [(row.get("id", ""), row.get("prompt", "")) for row in fields(path)]
    assert found == rows


def test_a_bad_line_is_a_row_with_a_problem_and_shifts_none(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"prompt":"a"}\n\nnot json\n[1]\n{"prompt":"\xff"}\n{"prompt":"b"}')
    rows = list(open_source(path).rows())
    assert [row.number for row in rows] == [1, 2, 3, 4, 5]
    assert [row.problem for row in rows] == [
        None,
        "line 3 is not JSON in UTF-8",
        "line 4 is not a JSON object",
        "line 5 is not JSON in UTF-8",
        None,
    ]


def test_csv_with_tabs_long_cells_and_too_many_cells(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(f"id\tprompt\n1\t{'x' * 300_000}\n2\ta\tb\n3\t\n", "utf-8")
    rows = list(open_source(path).rows())
    assert len(rows[0].fields["prompt"]) == 300_000
    assert rows[1].problem == "row 2 has more cells than the header"
    assert rows[2].fields == {"id": "3"}


@pytest.mark.parametrize("header", ["id,id", "id,,prompt"])
def test_a_csv_header_must_name_each_column_once(tmp_path, header):
    (tmp_path / "rows.csv").write_text(f"{header}\n1,2\n")
    with pytest.raises(InputError, match="the header has an empty or repeated name"):
        fields(tmp_path / "rows.csv")


def test_a_broken_csv_names_its_line(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b'prompt\n"open\n')
    with pytest.raises(InputError, match="line"):
        fields(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").write_bytes(b"prompt\n\xff\n")
    with pytest.raises(InputError, match="is not UTF-8"):
        fields(tmp_path / "rows.csv")


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is an optional extra")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an optional extra")
    rows = [{"prompt": f"p{i}", "id": i if i % 2 else None, "tags": ["a"] * (i % 3)} for i in range(1000)]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = fields(tmp_path / "rows.parquet")
    assert found == [{name: value for name, value in row.items() if value is not None} for row in rows]
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        fields(tmp_path / "bad.parquet")


def test_a_folder_gives_its_texts_by_name_whatever_their_encoding(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b" / "z.md").write_text("# last", "utf-8")
    (tmp_path / "a.txt").write_bytes("第一条 合同成立。".encode("gb18030"))
    (tmp_path / "c.html").write_text("<html><p>seen</p></html>")
    (tmp_path / ".git" / "x.txt").write_text("hidden")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    (tmp_path / "broken.docx").write_bytes(b"PK\x03\x04nothing")
    rows = list(open_source(tmp_path).rows())
    assert [row.fields["id"] for row in rows] == ["a.txt", "b/z.md", "broken.docx", "c.html"]
    assert rows[0].fields["text"] == "第一条 合同成立。"
    assert "seen" in rows[3].fields["text"]
    assert "DOCX" in (rows[2].problem or "")


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b'{"prompt":"a"}\n{"prompt":"b"}\n')

    monkeypatch.setattr(sys, "stdin", Stdin())
    source = open_source("-")
    assert [row.fields["prompt"] for row in source.rows()] == ["a", "b"]
    assert (source.repeatable, source.fraction) == (False, None)


def test_iterables():
    rows = list(open_source([{"prompt": "a"}, "b", 3]).rows())
    assert [row.fields for row in rows] == [{"prompt": "a"}, {"prompt": "b"}, {}]
    assert rows[2].problem == "row 3 is neither a mapping nor a prompt"
    assert open_source(["a"]).repeatable
    assert not open_source(iter(["a"])).repeatable


@pytest.mark.parametrize("source", ["nowhere.jsonl", 7, {"prompt": "a"}])
def test_what_is_no_source(source):
    with pytest.raises(InputError):
        open_source(source)


def test_an_unknown_kind_lists_the_known_ones(tmp_path):
    (tmp_path / "rows.xlsx").write_bytes(b"")
    with pytest.raises(InputError, match=r"known are \.jsonl"):
        open_source(tmp_path / "rows.xlsx")


def test_the_fraction_grows_to_one(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(('{"prompt": "' + string.ascii_letters * 100 + '"}\n') * 100)
    source = open_source(path)
    seen = [source.fraction]
    seen += [source.fraction for _ in source.rows()]
    seen.append(source.fraction)
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
    assert seen == sorted(one for one in seen if one is not None)
