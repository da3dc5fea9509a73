"""Which lines are headings, structure by structure; and what is none."""

import pytest

from zlclient.errors import ConfigError, InputError
from zlclient.shaping.structure import Heading, Structure, fence_spans
from zlclient.shaping.structure_data import find_structure, load_structure, structures


def found(text: str, structure: str | None = None) -> list[tuple[str, str, str]]:
    return [(h.kind, h.number, h.title) for h in find_structure(text, structure).headings(text)]


LAW = """第一编　总　则
第一章 总 则

第一条 为了规范，制定本法。
第 十 二 条　本法所称人工智能，是指系统。
第二条之一 所有权人享有权利。
第三条的规定不适用于本条。
第四条、第五条规定的情形除外。
第六条【立法目的】为了保护权益。
依照第七条 的规定处理。
　　第七条　缩进的条文。
第二节 责任
第八条
正文另起一行。
附 则
第九条 本法自2026年1月1日起施行。
"""


def test_statutes() -> None:
    assert found(LAW) == [
        ("book", "第一编", "总则"),
        ("chapter", "第一章", "总则"),
        ("article", "第一条", ""),
        ("article", "第十二条", ""),
        ("article", "第二条之一", ""),
        ("article", "第六条", "立法目的"),
        ("article", "第七条", ""),
        ("section", "第二节", "责任"),
        ("article", "第八条", ""),
        ("chapter", "", "附则"),
        ("article", "第九条", ""),
    ]


def test_only_number_and_title_are_the_heading() -> None:
    text = "第一条 为了规范，制定本法。"
    (heading,) = find_structure(text, "law").headings(text)
    assert text[heading.start : heading.end] == "第一条"


@pytest.mark.parametrize(
    "line",
    [
        "第三条的规定",
        "第三条、第四条规定",
        "第三条 的规定",
        "第三条和第四条",
        "第三章规定的程序，适用于本条。",
        "见第三条 规定",
        "第三条规定，应当赔偿。",
        "第三条第一款 规定",
    ],
)
def test_cross_references_are_no_headings(line: str) -> None:
    assert found(f"第一条 总则。\n{line}\n", "law") == [("article", "第一条", "")]


def test_a_chapter_of_a_paper() -> None:
    assert found("第3章 实验方法\n\n我们采用双盲试验。\n") == [("chapter", "第3章", "实验方法")]


CONTRACT = """SERVICE AGREEMENT

WHEREAS, the Parties wish to agree.

ARTICLE 1 DEFINITIONS
1.1 Terms
"Services" means services under Section 2.1 of this Agreement.
1.2 Interpretation. This Agreement shall be construed as a whole; headings do not matter.
Article 2: Payment
Section 2.1 Fees
Section 2.2 of this Agreement applies.
Clause 7 Liability
SCHEDULE A
"""


def test_english_contracts() -> None:
    assert found(CONTRACT) == [
        ("recital", "", "WHEREAS"),
        ("article", "ARTICLE 1", "DEFINITIONS"),
        ("clause", "1.1", "Terms"),
        ("clause", "1.2", ""),
        ("article", "Article 2", "Payment"),
        ("section", "Section 2.1", "Fees"),
        ("clause", "Clause 7", "Liability"),
        ("annex", "SCHEDULE A", ""),
    ]


def test_chinese_contracts() -> None:
    text = "甲方：某公司\n乙方：某人\n鉴于双方自愿，达成本合同。\n第一条 服务内容\n1.1 甲方应当提供资料。\n第二条：违约责任\n2.1 违约金\n附件一：报价单\n"
    assert found(text) == [
        ("recital", "", "鉴于"),
        ("article", "第一条", "服务内容"),
        ("clause", "1.1", ""),
        ("article", "第二条", "违约责任"),
        ("clause", "2.1", "违约金"),
        ("annex", "附件一", "报价单"),
    ]


def test_papers() -> None:
    text = "A Title\n\nAbstract\nWe show.\n\n1 Introduction\nText in 2026.\n\n2 Methods\n2.1 Data\nWe used 3 apples.\n\nReferences\n[1] A.\n"
    assert found(text) == [
        ("abstract", "", "Abstract"),
        ("section", "1", "Introduction"),
        ("section", "2", "Methods"),
        ("section", "2.1", "Data"),
        ("section", "", "References"),
    ]
    zh = "摘要：本文研究。\n关键词：模型\n1 引言\n文。\n2 实验方法\n2.1 数据集\n文。\n参考文献\n"
    assert [title for _, _, title in found(zh)] == ["摘要", "关键词", "引言", "实验方法", "数据集", "参考文献"]


def test_markdown() -> None:
    text = "# One #\n\n```sh\n# no heading\n```\n\n## Two *x*\n\nSetext\n======\n\n~~~\n## no\n~~~\n\n#hashtag\n\n| a | b |\n| --- | --- |\n\n---\n"
    assert found(text) == [("heading", "", "One"), ("heading", "", "Two *x*"), ("heading", "", "Setext")]
    assert found("**第一章 总则**\n# C# and **F#** ##\n## __Bold__", "law") == [
        ("chapter", "第一章", "总则"),
        ("title", "", "C# and **F#**"),
        ("heading", "", "Bold"),
    ]
    levels = [h.level for h in find_structure(text, "markdown").headings(text)]
    assert levels == [1, 2, 1]


def test_html_headings() -> None:
    assert found('<p>x</p>\n<h1 class="a">One <b>two</b></h1>\n<h3>Three</h3>\n') == [
        ("heading", "", "One two"),
        ("heading", "", "Three"),
    ]


def test_reports() -> None:
    text = "一、总体要求\n（一）指导思想。以人为本，推进工作。\n1. 加强领导。各地要重视。\n二、主要任务：分三步。\n（1）第一步\n"
    assert found(text) == [
        ("section", "一", "总体要求"),
        ("subsection", "（一）", "指导思想"),
        ("item", "1", "加强领导"),
        ("section", "二", "主要任务"),
        ("item", "（1）", "第一步"),
    ]


def test_question_and_answer_lists() -> None:
    assert found("Q1: What is it?\nA: A tool.\nQ2: Why?\nA: Because.\n") == [
        ("question", "Q1", "What is it?"),
        ("question", "Q2", "Why?"),
    ]
    assert found("问：退货期多久？\n答：七天。\n问题2：运费谁付？\n答：买家。\n") == [
        ("question", "问", "退货期多久？"),
        ("question", "问题2", "运费谁付？"),
    ]


def test_medical_records() -> None:
    text = "入院记录\n主诉：头痛三天。\n现病史：患者三天前出现头痛。\n既往史：体健。\n【体格检查】体温正常。\n初步诊断\n偏头痛。\n"
    assert [title for _, _, title in found(text)] == ["入院记录", "主诉", "现病史", "既往史", "体格检查", "初步诊断"]
    english = "Chief Complaint: headache\nHistory of Present Illness:\nThree days.\nPlan: rest\n"
    assert [title for _, _, title in found(english)] == ["Chief Complaint", "History of Present Illness", "Plan"]


def test_plain_text_has_no_headings() -> None:
    text = "It rained.\n\n第三天，他走了。\n\nSo did she.\n"
    assert find_structure(text).name == "plain"
    assert found(text) == []


def test_line_ends_do_not_matter() -> None:
    expected = found(LAW)
    assert found(LAW.replace("\n", "\r\n")) == expected
    assert found(LAW.replace("\n", "\r")) == expected


def test_fences_close_as_commonmark_says() -> None:
    text = "````\n```\n# x\n````\ny\n~~~\nopen"
    assert [text[a:b] for a, b in fence_spans(text)] == ["````\n```\n# x\n````", "~~~\nopen"]
    assert fence_spans("a ``` b\n    ```\n") == []


def test_bundled_structures_are_named_and_unknown_names_refused() -> None:
    assert set(structures()) == {"law", "contract", "paper", "markdown", "html", "report", "qa", "medical", "plain"}
    with pytest.raises(InputError, match="poem"):
        find_structure("x", "poem")


def test_a_structure_of_one_s_own(tmp_path: pytest.TempPathFactory) -> None:
    path = tmp_path / "verse.toml"  # type: ignore[operator]
    path.write_text("[[rule]]\nkind = 'canto'\nlevel = 1\nfirst = 'C'\npattern = '(?P<number>Canto %num%)'\n", "utf-8")
    text = "Canto 1\nNel mezzo\nCanto 2\n"
    assert find_structure(text, path).headings(text)[1] == Heading("canto", 1, "Canto 2", "", 18, 25, False, "Canto 2")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("order = ", "not TOML"),
        ("colour = 1", "x.toml: colour: unknown key"),
        ("\n[[rule]]\nkind = 'a'\nlevel = 1\nfirst = 'a'\n", "x.toml:2: pattern: a rule needs a str"),
        ("[[rule]]\nkind = 'a'\nlevel = 1\nfirst = 'a'\npattern = '('\n", "x.toml:1: pattern: not a regular"),
        ("[[rule]]\nkind = 'a'\nlevel = 1\nfirst = 'a'\npattern = 'a'\n", "number or title"),
        ("[[rule]]\nkind = 'a'\nlevel = 1\nfirst = 'a'\npattern = '%nope%'\n", "unknown piece"),
        ("[[rule]]\nkind = 'a'\nlevel = 1\nfirst = ''\npattern = '(?P<title>a)'\n", "first"),
        ("[[rule]]\nkind = 'a'\nlevel = 1\nfirst = 'a'\npattern = '(?P<title>a)'\ndepth = 'stars'\n", "depth"),
        ("[[rule]]\nkind = 'a'\nlevel = 1\nfirst = 'a'\npattern = '(?P<title>a)'\ncolor = 'x'\n", "color"),
        ("[detect]\ncues = '['\n", "cues"),
    ],
)
def test_wrong_structure_files_name_the_place(source: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_structure(source, "x", "x.toml")
    assert message in str(error.value)


def test_structures_are_values() -> None:
    assert find_structure("x", structures()["law"]) is structures()["law"]
    assert isinstance(structures()["law"], Structure)
