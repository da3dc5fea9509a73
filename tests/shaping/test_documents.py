"""Reading files: encodings, HTML, DOCX, PDF, and streaming what does not fit into memory."""

import io
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.errors import InputError
from zlclient.shaping import documents
from zlclient.shaping.documents import Document

CHINESE = "第一条 为了保护民事主体的合法权益，调整民事关系，制定本法。\r\n第二条 本法所称的人，是指自然人。\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"),
        (CHINESE, "utf-8-sig"),
        (CHINESE, "utf-16"),
        (CHINESE, "utf-16-le"),
        (CHINESE, "utf-16-be"),
        (CHINESE, "utf-32"),
        (CHINESE, "gbk"),
        (CHINESE, "gb18030"),
        ("這是關於權責的說明，我們對於本條的規定進行解釋。\n", "big5"),
        ("これは日本語の文書です。法律について説明します。\n", "cp932"),
        ("これは日本語の文書です。法律について説明します。\n", "euc_jp"),
        ("이것은 한국어 문서입니다. 법률에 대하여 설명합니다.\n", "cp949"),
        ("Все люди рождаются свободными и равными в своем достоинстве.\n", "cp1251"),
        ("Все люди рождаются свободными и равными в своем достоинстве.\n", "koi8_r"),
        ("Tous les êtres humains naissent libres — “égaux”.\n", "cp1252"),
        ("plain ASCII\n", "ascii"),
    ],
)
def test_encodings_are_told_apart(text: str, encoding: str) -> None:
    document = Document.from_bytes(text.encode(encoding))
    assert document.source == text
    assert Document.from_bytes(text.encode(encoding), encoding=encoding).source == text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_utf8_is_read_as_it_is(text: str) -> None:
    text = text.removeprefix("\ufeff")
    assert Document.from_bytes(b"\xef\xbb\xbf" + text.encode()).source == text


def test_damaged_utf8_stays_utf8() -> None:
    data = (CHINESE * 20).encode()
    document = Document.from_bytes(data[:100] + b"\xff" + data[100:])
    assert document.encoding == "utf-8"
    assert "\ufffd" in document.source


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="no text"):
        Document.from_bytes(b"\x7fELF\0\1\2\xff\xfe\0\0\0abc\0")
    with pytest.raises(InputError, match="encoding"):
        Document.from_bytes(b"x", encoding="klingon")


def test_line_ends_and_the_name_of_a_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "民法典.txt"
    path.write_bytes(CHINESE.encode("gb18030"))
    document = Document.from_path(path)
    assert document.source == CHINESE
    assert [node.number for node in document.outline()] == ["第一条", "第二条"]
    assert document.outline()[0].end == document.outline()[1].start


def test_html_becomes_text_with_its_headings() -> None:
    document = Document.from_bytes(
        b"<!DOCTYPE html><html><head><title>The  Title</title><style>p{}</style></head><body>"
        b"<h1>One <b>two</b></h1><p>first\n line<br>second &amp; more</p><ul><li>a<li><p>b</p></ul>"
        b"<pre>x\n  y</pre><table><tr><th>A<th>B<tr><td>1</td><td>2</td></tr></table>"
        b"<script>if (a<b) alert('no')</script><h2></h2><div>plain</div><h2>Next</h2>tail</body></html>"
    )
    assert document.source == (
        "# One two\n\nfirst line\nsecond & more\n\n- a\n\n- b\n\n```\nx\n  y\n```\n\n"
        "| A | B |\n| 1 | 2 |\n\nplain\n\n## Next\n\ntail\n"
    )
    assert document.title == "The Title"
    assert [node.path for node in document.outline()] == [("One two",), ("One two", "Next")]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.lists(st.sampled_from(
    ["<h1>", "</h1>", "<td>", "</tr>", "<table>", "<li>", "<pre>", "</p>", "<script>", "text", "&lt;", "<!--", "<", "<title>"]
)).map("".join))  # fmt: skip
def test_broken_html_is_read_all_the_same(text: str) -> None:
    Document.from_bytes(b"<html>" + text.encode(), name="x.html")


def docx(body: str, styles: str = "") -> bytes:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/styles.xml", f"<w:styles {space}>{styles}</w:styles>")
    return out.getvalue()


def test_docx() -> None:
    styles = '<w:style w:styleId="2"><w:name w:val="heading 2"/></w:style>'
    body = (
        '<w:p><w:pPr><w:pStyle w:val="2"/></w:pPr><w:r><w:t>实验</w:t></w:r><w:r><w:t>方法</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>一</w:t><w:tab/><w:t>二</w:t><w:br/><w:t>三</w:t></w:r></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>"
    )
    document = Document.from_bytes(docx(body, styles))
    assert document.source == "## 实验方法\n\n一\t二\n三\n\n| a |  |\n"
    assert document.outline()[0].title == "实验方法"


def test_docx_written_by_another_library() -> None:
    writer = pytest.importorskip("docx")
    file = writer.Document()
    file.add_heading("Methods", 1)
    file.add_paragraph("We measured.")
    out = io.BytesIO()
    file.save(out)
    assert Document.from_bytes(out.getvalue()).source == "# Methods\n\nWe measured.\n"


@pytest.mark.parametrize("data", [b"PK\x03\x04 broken", docx("<w:p>"), docx("")[:-30]])
def test_broken_docx_is_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError, match="DOCX"):
        Document.from_bytes(data)


def test_docx_with_entities_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    with pytest.raises(InputError, match="document type"):
        Document.from_bytes(out.getvalue())


def pdf(*pages: str) -> bytes:
    """A minimal PDF with one line of Helvetica a page."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, page in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET".encode()
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table))


def test_pdf_pages_are_divided_by_form_feeds() -> None:
    pytest.importorskip("pypdf")
    document = Document.from_bytes(pdf("Article 1 Scope", "Second page"))
    assert document.source == "Article 1 Scope\n\fSecond page\n"
    assert [mark.kind for mark in document.page_marks] == ["page-break"]
    with pytest.raises(InputError, match="PDF"):
        Document.from_bytes(b"%PDF-1.4 broken")


PIECES = [
    "第一章 总则\n",
    "第二条 内容。",
    "第三条\n",
    "更多正文，写在这里。\n",
    "\n\n",
    "第四条 ",
    "的规定",
    "\f",
    "页眉\n",
    "# 标题\n",
    "长句子。" * 30,
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=120).map("".join), st.integers(40, 400), st.integers(0, 20))
def test_a_stream_gives_the_same_segments(
    tmp_path_factory: pytest.TempPathFactory, text: str, window: int, overlap: int
) -> None:
    path = tmp_path_factory.mktemp("stream") / "x.txt"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_STREAM_WINDOW", window)
        streamed = list(Document.stream_segments(path, 150, structure="law", overlap=overlap, encoding="utf-8"))
    whole = Document.from_text(text, "law").segments(150, overlap=overlap)
    seen = [(s.start, s.end, s.text, s.path, s.part, s.overlap) for s in streamed]
    assert seen == [(s.start, s.end, s.text, s.path, s.part, s.overlap) for s in whole]


def test_a_division_larger_than_the_stream_holds_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "第一章 总则\n" + "很长的正文没有标题。\n" * 2000 + "第二章 完\n末尾。\n"
    path = tmp_path / "x.txt"
    path.write_bytes(text.encode("gb18030"))
    monkeypatch.setattr(documents, "_STREAM_WINDOW", 1000)
    monkeypatch.setattr(documents, "_STREAM_MOST", 3000)
    segments = list(Document.stream_segments(path, 300))
    assert "".join(s.text for s in segments) == text
    assert segments[3].path == ("第一章 总则",)
    assert segments[-1].path == ("第二章 完",)
    assert [s.index for s in segments] == list(range(1, len(segments) + 1))
    assert all(a.end == b.start for a, b in pairwise(segments))


def test_page_marks_are_left_out_of_a_stream_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [f"年度报告\n第{chr(0x4E00 + 7 * n)}事项的说明。{'正文。' * n}\n第 {n} 页\n" for n in range(1, 40)]
    path = tmp_path / "x.txt"
    path.write_bytes("\f".join(pages).encode())
    monkeypatch.setattr(documents, "_STREAM_WINDOW", 1500)
    monkeypatch.setattr(documents, "_STREAM_MOST", 400)
    segments = list(Document.stream_segments(path, 300, structure="plain", omit_page_marks=True))
    sent = "".join(segment.rendered for segment in segments)
    assert "".join(s.text for s in segments) == "\f".join(pages)
    assert sent.count("事项的说明") == 39
    assert "\f" not in sent
    assert "页" not in sent


def test_only_text_streams(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(InputError, match="from_path"):
        list(Document.stream_segments(tmp_path / "x.pdf"))
