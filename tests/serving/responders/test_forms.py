import pytest

from zlclient.serving.responders.forms import Form, form_of


@pytest.mark.parametrize(
    ("question", "kind", "fields"),
    [
        ("Extract the revenue, net income and CEO as a table.", "table", ("revenue", "net income", "CEO")),
        ("提取公司名称、营业收入和净利润，并以表格输出。", "table", ("公司名称", "营业收入", "净利润")),
        ("Extract name, date of birth, and diagnosis from the text.", "plain", ("name", "date of birth", "diagnosis")),
        ("列出甲方、乙方、租金，用列表。", "bullets", ("甲方", "乙方", "租金")),
        ("用列表总结要点。", "bullets", ()),
        ("帮我归纳主要内容，分四点列出。", "bullets", ()),
        ("I need a short summary of this email for my boss, as 4 bullet points", "bullets", ()),
        (
            "What are the sender, the meeting date and the meeting place in this mail?",
            "plain",
            ("sender", "meeting date", "meeting place"),
        ),
        ("What are the pros and cons of the plan?", "plain", ()),
        (
            'I\'d like the product name, the serial number and the purchase date from this letter in the form "field: value".',
            "plain",
            ("product name", "serial number", "purchase date"),
        ),
        ("Extract guest (full name), hotel and phone (not the fax).", "plain", ("guest", "hotel", "phone")),
        ("以 JSON 输出 passenger、flight、seat 三个字段即可", "json", ("passenger", "flight", "seat")),
        ("转成json，key用 title, author, pages", "json", ("title", "author", "pages")),
        (
            "could you pick out the tracking number, the pickup code and the address of the pickup point?",
            "plain",
            ("tracking number", "pickup code", "address"),
        ),
        ("每个人的邮箱都给我列出来，别的不要。", "plain", ()),
        ("登记一下，需要报修人、房间号、联系电话这几项", "plain", ("报修人", "房间号", "联系电话")),
        ("Summarize in three bullet points.", "bullets", ()),
        ("Give a numbered list of the main points.", "numbers", ()),
        ("Who is the CEO of Acme?", "plain", ()),
        ("特斯拉的总部在哪里？", "plain", ()),
        (
            "Find the sentence that says when the bridge opened and explain in detail what followed from it.",
            "plain",
            (),
        ),
    ],
)
def test_the_form_and_the_fields(question, kind, fields):
    assert form_of(question) == Form(kind, fields)


def test_fields_are_laid_out():
    form = Form("table", ("rent", "a|b"))
    assert form.lay_out_fields(["8,000", None], "en") == (
        "| Field | Value |\n|---|---|\n| rent | 8,000 |\n| a\\|b | not stated |"
    )
    assert Form("plain", ("租金",)).lay_out_fields(["八千元"], "zh") == "租金：八千元"
    assert Form("numbers", ("x", "y")).lay_out_fields(["1", "2"], "en") == "1. x: 1\n2. y: 2"


def test_sentences_are_laid_out():
    assert Form("bullets").lay_out(["A.", "B."], " ") == "- A.\n- B."
    assert Form("numbers").lay_out(["A."], " ") == "1. A."
    assert Form().lay_out(["甲。", "乙。"], "") == "甲。乙。"
    assert Form("table").lay_out(["A."], " ").splitlines()[-1] == "| 1 | A. |"
