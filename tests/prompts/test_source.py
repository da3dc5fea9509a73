"""parse_source: positions are exact in every host format, and no text makes it raise."""

import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zlclient.prompts.source import parse_source

FORMATS = [
    "prompty", "jinja", "markdown", "text", "dotprompt", "github-models", "promptfoo", "yaml", "python",
]  # fmt: skip
PIECES = [
    *"{}%#|>-:\"'\\\n\r \t[]&*?!x1é中😀\x00\ufeff",
    "{{",
    "}}",
    "{%",
    "%}",
    "---\n",
    "system:\n",
    "prompt: ",
    "x_prompt = '",
    "\ud800",
]
TRICKY = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def check(source, text):
    for part in source.parts:
        assert 0 <= part.start <= part.end <= len(text)
        if part.is_contiguous:
            assert text[part.start : part.end] == part.text
        for offset, char in enumerate(part.text):
            at = part.to_file(offset)
            assert part.start <= at <= part.end
            if not char.isspace() and at < len(text):
                assert text[at] == char or text[at] in "\\'"
        for tag in part.tags:
            assert part.text[tag.start : tag.end].startswith("{")
    for variable in source.variables:
        tag = text[variable.tag.start : variable.tag.end]
        assert text[variable.start : variable.end] == variable.name
        assert variable.tag.start <= variable.start < variable.tag.end
        assert tag[0] == "{"
    for problem in source.problems:
        assert 0 <= problem.start <= problem.end <= len(text)
        source.line_col(problem.start)


@pytest.mark.parametrize("kind", FORMATS)
@given(text=TRICKY | st.text())
@example(text="---\n[[[[\n---\n{{{{{{")
@example(text="a: !!python/object:os.system x")
@example(text="a: 2001-99-99\nb: " + "9" * 5000)
@example(text="- " * 3000)
@example(text="[" * 30000)
@example(text="{{ " + "(" * 3000 + " }}")
@example(text="x = '" + "\\N{nope}'")
@settings(max_examples=60, deadline=None)
def test_no_text_raises_and_positions_stay_in_the_file(kind, text):
    check(parse_source(text, format=kind), text)


@given(
    value=st.text(st.sampled_from("a bé中\"'\\\n\t{}x:#-"), min_size=1, max_size=40),
    style=st.sampled_from(["|", ">", "'", '"', None]),
    indent=st.integers(2, 6),
)
@settings(max_examples=200, deadline=None)
def test_yaml_scalars_map_to_the_file(value, style, indent):
    text = yaml.dump({"messages": [{"role": "user", "content": value}]}, default_style=style, indent=indent, width=12)
    source = parse_source(text, "a.prompt.yml")
    if value.strip():
        assert source.parts[0].text == value
        assert source.parts[0].role == "user"
        mapped = [(char, text[source.parts[0].to_file(i)]) for i, char in enumerate(value) if not char.isspace()]
        assert all(char == raw or raw == "\\" or char == "'" for char, raw in mapped)


@given(value=st.text(st.sampled_from("a é中\"'\\\n\t{}x😀\r"), min_size=1, max_size=40), quote=st.sampled_from("'\""))
@settings(max_examples=200, deadline=None)
def test_python_literals_map_to_the_file(value, quote):
    text = f"# 中文\nf(prompt={value!r}  # c\n  {quote}z中{quote})\n"
    source = parse_source(text, "a.py")
    part = source.parts[0]
    assert part.text == value + "z中"
    assert text[part.to_file(len(value)) :].startswith("z中")
    for offset, char in enumerate(value):
        assert text[part.to_file(offset)] in (char, "\\")


def names(text, path):
    return parse_source(text, path).names


def codes(text, path):
    return [problem.code for problem in parse_source(text, path).problems]


def test_prompty_positions():
    text = "---\nname: a\ninputs:\n  - name: doc\n    kind: string\n---\nsystem:\n总结。\n\nuser[name=Ann, id=7]:\n{{ doc }}\n"
    source = parse_source(text, "a.prompty")
    assert [(part.role, part.text) for part in source.parts] == [("system", "总结。\n\n"), ("user", "{{ doc }}\n")]
    assert source.parts[1].attributes == {"name": "Ann", "id": 7}
    assert source.line_col(source.variables[0].start) == (11, 4)
    assert source.front is not None
    assert source.line_col(source.front.keys["inputs", 0, "kind"].start) == (5, 5)
    assert source.revision == 2


def test_crlf_and_bom_keep_their_offsets():
    text = "\ufeff---\r\nname: a\r\n---\r\nsystem:\r\nHi {{ who }}\r\nuser:\r\n{{ q }}"
    source = parse_source(text, "a.prompty")
    assert [part.role for part in source.parts] == ["system", "user"]
    check(source, text)
    assert source.line_col(source.variables[0].start) == (5, 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% if a %}{% set x=1 %}{% else %}{% set x=2 %}{% endif %}{{x}}", ("a",)),
        ("{% if a %}{% set x=1 %}{% endif %}{{x}}", ("a", "x")),
        ("{% raw %}{{ var1 }}{% endraw %}", ()),
        ("{% for m in messages if m.ok %}{{ loop.index }}{{ m.role|upper }}{% endfor %}", ("messages",)),
        ("{{ a.b['c'] }} {{ f(x=1, y=z) }} {{ d is defined }}", ("a", "f", "z", "d")),
        ("{% macro m(p, q=r) %}{{ p }}{{ q }}{% endmacro %}{{ m(s) }}", ("r", "s")),
        ("{# {{ no }} #}{{ {'a': {'b': yes}} }}", ("yes",)),
        ("{% set ns = namespace(n=0) %}{% set ns.n = k %}{{ ns.n }}", ("k",)),
        ("{% with v = w %}{{ v }}{% endwith %}{% filter upper %}{{ t }}{% endfilter %}", ("w", "t")),
        ('{{ "}}" }}{{ after }}', ("after",)),
        ("{%- if x -%} {{- y -}} {%- endif -%}", ("x", "y")),
    ],
)
def test_jinja_inputs(text, expected):
    assert names(text, "a.j2") == expected


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ('Hi {{n}} reply {"a":1}', "jinja2", ("n",)),
        ("A {Fancy} shop sells {product}", "format", ("Fancy", "product")),
        ('Reply {{"a": {{}}}} to {who}', "format", ("who",)),
        ("{{#items}}{{name}}{{/items}}", "mustache", ("items", "name")),
        ("{{#each xs}}{{this.a}}{{@index}}{{../y}}{{/each}}{{#if z}}{{else}}{{/if}}", "handlebars", ("xs", "y", "z")),
        ("$ echo ${HOME} \\frac{a}{b}", "none", ()),
        ("plain", "none", ()),
    ],
)
def test_dialects_of_plain_text(text, dialect, expected):
    source = parse_source(text, "a.txt")
    assert (source.dialect, source.names) == (dialect, expected)


def test_dashes_that_are_no_front_matter():
    assert parse_source("----\nTask\n---\nConstraints", "a.md").parts[0].text == "----\nTask\n---\nConstraints"
    assert parse_source("---\nTask\n---\nRest", "a.md").front is None
    assert parse_source("---\nname: a\n---\nRest", "a.md").parts[0].text == "Rest"


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("---\nname: [x\n---\nhi", "a.prompty", "yaml-invalid"),
        ("---\nname: a", "a.prompty", "front-matter-unclosed"),
        ("---\n- a\n---\nhi", "a.prompty", "front-matter-not-a-mapping"),
        ("---\na: 1\na: 2\n---\nhi", "a.prompty", "yaml-duplicate-key"),
        ("{{ x", "a.j2", "template-tag-unclosed"),
        ("{% raw %}", "a.j2", "template-raw-unclosed"),
        ("{% if %}", "a.j2", "template-syntax"),
        ("{{#if x}}", "a.prompt", "template-block-unclosed"),
        ("{{/if}}", "a.prompt", "template-block-unmatched"),
        ("x = (", "a.py", "python-syntax"),
    ],
)
def test_what_cannot_be_read_is_a_problem(text, path, code):
    assert codes(text, path) == [code]


def test_a_syntax_problem_names_its_line():
    source = parse_source("system:\nfine\n\nuser:\n{% if %}\n", "a.prompty")
    assert source.line_col(source.problems[0].start) == (5, 1)


def test_role_lines_count_where_the_format_has_them():
    prose = "Reply in this form\nuser:\nthe name"
    assert [part.role for part in parse_source(prose, "a.md").parts] == [None]
    assert [part.role for part in parse_source(prose, "a.prompty").parts] == ["system", "user"]
    assert [part.role for part in parse_source("system:\na\nuser:\nb", "a.md").parts] == ["system", "user"]
    assert [part.role for part in parse_source("{#\nuser:\n#}\na", "a.j2").parts] == [None]


def test_dotprompt_roles():
    text = '# licence\n---\nmodel: m\n---\n{{! c }}\n{{role "system"}}\nA\n{{#role "model"}}B{{/role}}\nC {{q}}'
    source = parse_source(text, "a.prompt")
    assert [(part.role, part.text.strip()) for part in source.parts] == [
        ("system", "A"),
        ("assistant", "B"),
        ("user", "C {{q}}"),
    ]
    assert source.names == ("q",)


PYTHON = r'''
import textwrap
SYSTEM_PROMPT = """You are \u4e2d a helpful clerk.
Answer {question}."""
OTHER = "not a prompt, whatever it says"
def f(client, text, k):
    prompt = f"""Summarise {text.strip()!r} in {k + 1:d} lines. {{"a": 1}}"""
    client.chat(textwrap.dedent("""
        Say {{ hello }} to everybody"""), system="Be" " brief." + NAME)
    client.create(messages=[{"role": "user", "content": [{"type": "text", "text": "Look here"}]},
                            dict(role="assistant", content="Done\n")])
    return ChatPromptTemplate.from_messages([("system", "Act"), ("human", "{x}")])
'''


def test_python_prompts():
    source = parse_source(PYTHON, "a.py")
    found = [(part.role, part.text.split("\n")[0][:24], part.template.dialect) for part in source.parts]
    assert found == [
        ("system", "You are 中 a helpful cler", "format"),
        (None, "Summarise {text.strip()!", "f-string"),
        (None, "", "jinja2"),
        ("system", "Be brief.", "none"),
        ("user", "Look here", "none"),
        ("assistant", "Done", "none"),
        ("system", "Act", "none"),
        ("user", "{x}", "format"),
    ]
    assert source.names == ("question", "text", "k", "hello", "x")
    check(source, PYTHON)
    helpful = source.parts[0]
    assert PYTHON[helpful.to_file(helpful.text.index("helpful")) :].startswith("helpful")


def test_yaml_formats():
    text = json.dumps({"prompts": ["Ask {{ q }} now", "file://p.txt", {"raw": "Hi {{ r }}"}, "a/b.txt"], "tests": []})
    source = parse_source(text.replace('", "', '",\n "'), "promptfooconfig.yaml", "promptfoo")
    assert source.names == ("q", "r")
    folded = "name: x\ndescription: a: b\n"
    assert codes(folded, "a.yaml") == ["yaml-invalid"]
    generic = "agent:\n  system_template: >-\n    You are\n    a {{ kind }} agent.\n  other: 3\n"
    source = parse_source(generic, "a.yaml")
    assert [(part.role, part.text, part.name) for part in source.parts] == [
        ("system", "You are a {{ kind }} agent.", "agent.system_template")
    ]
    assert source.line_col(source.variables[0].start) == (4, 10)


def test_bounded_time_on_hostile_text():
    # Each took quadratic time or more in an earlier form or in a peer; the hang, not a figure, is what fails here.
    merges = "a0: &a0 {x: 1}\n" + "".join(
        f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
    )
    for text, kind in [
        ("word " * 400_000, "text"),
        (" " * 500_000 + "x", "prompty"),
        ("{{" * 200_000, "jinja"),
        ("{{!--" * 100_000, "dotprompt"),
        ("{a" * 200_000, "text"),
        ("{% raw %}" * 50_000, "jinja"),
        ("'\"" * 100_000, "python"),
        ("\r" * 300_000, "prompty"),
        (merges, "yaml"),
    ]:
        parse_source(text, format=kind)


def test_the_corpus_parses(shared):
    corpus = shared / "corpus"
    for line in (corpus / "index.jsonl").read_text(encoding="utf-8").splitlines():
        file = json.loads(line)["file"]
        text = (corpus / file).read_bytes().decode("utf-8")
        source = parse_source(text, file)
        check(source, text)
        if source.format == "jinja" and not source.problems:
            from jinja2 import Environment, meta

            expected = meta.find_undeclared_variables(Environment().parse(text))
            assert set(source.names) == expected - {"loop"}, file
        if source.format == "github-models":
            contents = [message["content"] for message in yaml.safe_load(text)["messages"]]
            assert [part.text for part in source.parts] == contents
        if source.format == "prompty":
            assert {part.role for part in source.parts} <= {"system", "user", "assistant"}
            assert source.front is not None
