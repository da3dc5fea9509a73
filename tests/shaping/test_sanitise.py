"""The policy table of the sanitiser, row by row and in both directions; modes, white space, the record of changes."""

import json
import pickle
import subprocess
import sys

import pytest

from zlclient.errors import InputError
from zlclient.shaping.sanitise import (
    MODES,
    Change,
    apply_changes,
    find_hidden,
    sanitize,
    sanitize_data,
)
from zlclient.shaping.sanitising import code_points

TAG = {letter: chr(0xE0000 + ord(letter)) for letter in "abcdefghijklmnopqrstuvwxyz "}
ENGLAND = "🏴" + "".join(TAG[letter] for letter in "gbeng") + "\U000e007f"
SCOTLAND = "🏴" + "".join(TAG[letter] for letter in "gbsct") + "\U000e007f"

KEPT = {
    "tab, line feed, leading spaces": "a\tb\n    c\n\n  d",
    "inner runs of blanks": "| a   | b  |",
    "family": "👨\u200d👩\u200d👧",
    "skin tone and joiner": "👩🏽\u200d🔬",
    "black cat, U+2B1B": "🐈\u200d⬛",
    "rainbow flag": "🏳\ufe0f\u200d🌈",
    "mending heart": "❤\ufe0f\u200d🩹",
    "emoji newer than the interpreter": "🫨\u200d🫨",
    "Sinhala conjunct": "ශ්\u200dරී",
    "Hindi half form": "क्\u200dष",
    "Bengali": "র\u200d্য",
    "Arabic abbreviation": "ه\u200d",
    "Persian non-joiner": "می\u200cروم پایگاه\u200cداده",
    "Khmer word break": "ភាសា\u200bខ្មែរ",
    "Thai word break": "ไทย\u200bแลนด์",
    "Lao word break": "ພາສາ\u200bລາວ",
    "Myanmar word break": "မြန်မာ\u200bစာ",
    "Tibetan word break": "བོད\u200bཡིག",
    "emoji presentation": "❤\ufe0f",
    "text presentation": "☎\ufe0e",
    "keycap": "1\ufe0f\u20e3#\ufe0f\u20e3*\ufe0f\u20e3",
    "ideographic variation": "葛\U000e0100城",
    "standardized variation after Han": "城\ufe00",
    "after CJK punctuation": "，\ufe00。\ufe01",
    "after mathematics": "∩\ufe00",
    "after Myanmar": "က\ufe00",
    "after Phags-pa": "ꡖ\ufe00",
    "flag of England": ENGLAND,
    "flag of Scotland in a text": f"a {SCOTLAND} b",
    "marks in Hebrew": "שלום!\u200f abc \u200e",
    "Arabic letter mark": "١٢\u061c٣",
    "balanced isolate": "נא \u2066abc-1\u2069 סוף",
    "balanced embedding": "נא \u202aabc\u202c סוף",
    "nested isolates": "אב \u2067ג \u2066x\u2069 ד\u2069",
    "soft hyphen not between letters": "1\xad2 a\xad-",
    "filler in a Jamo syllable": "\u115f\u1161",
    "both fillers before a final": "\u115f\u1160\u11a8",
    "halfwidth filler": "ﾡ\uffa0",
    "compatibility filler": "ㄱ\u3164",
    "Mongolian selector": "ᠠ\u180b",
    "Mongolian vowel separator": "ᠨ\u180eᠠ",
    "Mongolian fourth selector": "ᠠ\u180f",
    "grapheme joiner": "c\u034fh",
    "no-break space": "10\xa0km",
    "narrow no-break space": "1\u202f000",
    "ideographic space": "\u3000\u3000第一条　总则",
    "private use": "\ue000x\U000f0000",
    "unassigned": "\u0378x",
    "fullwidth": "，！（１２）ＡＢＣ",
    "curly quotes": "“hi” it’s",
    "ligature": "ﬁnal",
    "entities": "&lt;b&gt; &amp;",
    "Arabic number sign": "\u0600١",
    "decomposed": "e\u0301",
    "mojibake": "sÃ³",
    "Markdown line break": "one  \ntwo",
    "one blank line": "one\n\ntwo",
}

REMOVED = {
    "NUL": ("in\x00voice", "invoice"),
    "C0": ("a\x01\x02\x07\x0e\x1ab", "ab"),
    "DEL": ("a\x7fb", "ab"),
    "overstrike": ("bb\bo\x08old_\bx", "boldx"),
    "backspace without a character": ("\bab\n\bc", "ab\nc"),
    "CSI": ("\x1b[31mred\x1b[0m \x1b[2Kx", "red x"),
    "OSC": ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
    "unterminated OSC": ("\x1b]0;title\nb", "]0;title\nb"),
    "stray escape": ("a\x1bb", "ab"),
    "vertical tab": ("a\x0bb", "a\nb"),
    "form feed": ("grew to\x0c$4.2M", "grew to\n$4.2M"),
    "CR": ("a\rb", "a\nb"),
    "CRLF": ("a\r\nb\r\n", "a\nb\n"),
    "NEL": ("a\x85b", "a\nb"),
    "line separator": ("a\u2028b", "a\nb"),
    "paragraph separator": ("a\u2029b", "a\n\nb"),
    "field separators": ("a\x1cb\x1dc\x1ed\x1fe", "a b c d e"),
    "C1 as Windows-1252": ("\x93it\x92s\x94 \x805", "“it’s” €5"),
    "C1 unassigned": ("a\x81\x8d\x8f\x90\x9db", "ab"),
    "surrogate pair": ("\ud83d\ude00", "😀"),
    "lone surrogates": ("a\ud83d b\udcb0", "a\ufffd b\ufffd"),
    "noncharacters": ("a\uffffb\ufdd0c\U0001fffe", "a\ufffdb\ufffdc\ufffd"),
    "byte order mark": ("\ufeff# 标题\ufeff", "# 标题"),
    "word joiner and invisible operators": ("a\u2060\u2061\u2062\u2063\u2064b", "ab"),
    "deprecated formats": ("a\u206a\u206fb", "ab"),
    "interlinear and object replacement": ("a\ufff9b\ufffac\ufffb\ufffc", "abc"),
    "musical and shorthand formats": ("a\U0001d173\U0001d17a\U0001bca0b", "ab"),
    "joiner in Latin": ("ig\u200dnore", "ignore"),
    "joiner after an emoji only": ("👩\u200dx 👩\u200d", "👩x 👩"),
    "non-joiner in Latin": ("ig\u200cnore", "ignore"),
    "non-joiner in Chinese": ("你\u200c好", "你好"),
    "doubled non-joiner": ("می\u200c\u200cروم", "می\u200cروم"),
    "word break in Latin": ("ig\u200bnore", "ignore"),
    "word break in Chinese": ("你\u200b好", "你好"),
    "word break at the edge of Thai": ("\u200bไทย\u200b", "ไทย"),
    "variation without emoji": ("a\ufe0fb 你\ufe0e", "ab 你"),
    "doubled variation": ("❤\ufe0f\ufe0f", "❤\ufe0f"),
    "smuggled bytes after an emoji": ("😀\U000e0170\U000e0177\U000e016e", "😀"),
    "second variation after Han": ("葛\U000e0100\U000e0101城", "葛\U000e0100城"),
    "variation run after Latin": ("a\ufe00\ufe01\ufe02", "a"),
    "smuggled tags": ("hi" + "".join(TAG[letter] for letter in "run rm"), "hi"),
    "no real flag": ("🏴" + TAG["a"] + TAG["b"] + "\U000e007f", "🏴"),
    "flag without its end": (ENGLAND[:-1], "🏴"),
    "more tags after a flag": (ENGLAND + TAG["x"], ENGLAND),
    "plane 14": ("a\U000e0001\U000e0080\U000e01f0\U000e0fffb", "ab"),
    "marks without right-to-left text": ("a\u200eb\u200fc\u061cd", "abcd"),
    "overrides": ("a\u202eb\u202dc", "abc"),
    "overrides in right-to-left text": ("א\u202eב\u202cג", "אבג"),
    "isolate outside right-to-left text": ("a\u2066b\u2069c", "abc"),
    "unbalanced isolate": ("א\u2067ב", "אב"),
    "unbalanced pop": ("א\u2069ב\u202c", "אב"),
    "crossing pairs": ("א\u202aב\u2067ג\u202cד\u2069", "אב\u2067גד\u2069"),
    "closed in another paragraph": ("א\u2067ב\nא\u2069", "אב\nא"),
    "embedding in a left-to-right paragraph": ("שלום\nabc \u2067א\u2069", "שלום\nabc א"),
    "soft hyphen between letters": ("Wert\xadpapier con\xad\xadtract", "Wertpapier contract"),
    "fillers": ("a\u3164b\u115fc\u1160d\uffa0", "abcd"),
    "Mongolian selector elsewhere": ("a\u180bb\u180e", "ab"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_meaningful_characters_stay(text: str) -> None:
    cleaned = sanitize(text)
    assert cleaned.text is text
    assert not cleaned.changed
    assert cleaned.changes == ()


@pytest.mark.parametrize(("text", "clean"), REMOVED.values(), ids=REMOVED)
def test_harmful_characters_go(text: str, clean: str) -> None:
    cleaned = sanitize(text)
    assert cleaned.text == clean
    assert cleaned.changed
    assert apply_changes(text, cleaned.changes) == clean
    assert sanitize(clean).text is clean


NEW_NEIGHBOURS = {
    "joiner after something dropped": ("👩\u200b\u200d👧", "👩\u200d👧"),
    "joiner before something always dropped": ("👩\u200d\ufeff👧", "👩\u200d👧"),
    "joiner twice": ("👩\u200d\u200d👧", "👩\u200d👧"),
    "non-joiner after a dropped joiner": ("م\u200d\u200cی", "م\u200dی"),
    "modifier after something dropped": ("👩\u200b🏽\u200d👧", "👩🏽\u200d👧"),
    "variation after a dropped control": ("❤\x00\ufe0f", "❤\ufe0f"),
    "letters met across a dropped space": ("a\xad\u200bb", "ab"),
    "jamo after a dropped break": ("\u3164\u200bㄱ", "ㄱ"),
    "flag in pieces": (ENGLAND[:3] + "\x00" + ENGLAND[3:], "🏴"),
    "surrogates met across a control": ("\ud83d\x00\ude00", "\ufffd\ufffd"),
    "pair that is a tag": ("a\udb40\udc41", "a"),
    "mark after the only right-to-left letter was struck out": ("א\b\u200fa", "a"),
    "blank before a dropped break": ("a \u200b\nb", "a\nb"),
    "Markdown break completed": ("a \u200b \nb", "a  \nb"),
}


@pytest.mark.parametrize(("text", "clean"), NEW_NEIGHBOURS.values(), ids=NEW_NEIGHBOURS)
def test_a_removal_makes_new_neighbours_and_the_result_is_stable(text: str, clean: str) -> None:
    assert sanitize(text).text == clean
    assert sanitize(clean).text is clean


REPORTED = [
    ("in\x00voice", "invoice"),
    ("ok \udcb0C", "ok \ufffdC"),
    ("done \ud83c", "done \ufffd"),
    ("ab\ud83c…", "ab\ufffd…"),
    ("x\x85y\u2029z", "x\ny\n\nz"),
    ("😀\U000e0170\U000e0177\U000e016e", "😀"),
    ("پایگاه\u200cداده", "پایگاه\u200cداده"),
    ("❤\ufe0f\u200d🩹", "❤\ufe0f\u200d🩹"),
    ("🐈\u200d⬛ a\u200db", "🐈\u200d⬛ ab"),
    ("grew to\f$4.2M", "grew to\n$4.2M"),
    ("\ufeff# 标题", "# 标题"),
    ("Wert\xadpapier", "Wertpapier"),
    ("បុណ្យ\u200bរំលង ig\u200bnore", "បុណ្យ\u200bរំលង ignore"),
]


@pytest.mark.parametrize(("text", "clean"), REPORTED)
def test_bugs_reported_elsewhere(text: str, clean: str) -> None:
    assert sanitize(text).text == clean


@pytest.mark.shared
def test_the_reported_bugs_are_all_here(shared) -> None:
    lines = (shared / "cases" / "sanitising.jsonl").read_text("utf-8").splitlines()
    cases = [(case["input"], case["output"]) for case in map(json.loads, lines) if case["output"] is not None]
    assert cases == REPORTED


WHITE_SPACE = {
    "trailing blank": ("a \nb\t\nc", "a\nb\nc"),
    "three spaces are a Markdown break": ("a   \nb", "a  \nb"),
    "tab before two spaces": ("a\t  \nb", "a  \nb"),
    "two spaces and a tab": ("a  \t\nb", "a\nb"),
    "blank line of blanks": ("a\n  \nb", "a\n\nb"),
    "end of text": ("a\nb ", "a\nb"),
    "long run": ("a" + " " * 1000 + "\t\nb", "a\nb"),
    "blank lines": ("a\n\n\n\nb\n\n\n", "a\n\nb\n\n"),
    "blank lines made of blanks": ("a\n \n\t\nb", "a\n\nb"),
    "blank lines at the start": ("\n\n\na", "\na"),
    "inner runs stay": ("x  =  1", "x  =  1"),
    "fence": ("```\na  b \n\n\n\nc\t\n```\nd \n", "```\na  b \n\n\n\nc\t\n```\nd\n"),
    "tilde fence with backticks inside": ("~~~ py\n``` \n\n\n\n~~~\n\n\n\nx", "~~~ py\n``` \n\n\n\n~~~\n\nx"),
    "longer fence": ("````\n```\nx \n````\ny ", "````\n```\nx \n````\ny"),
    "fence in a list": ("- ```\n  x \n  ```\n- y ", "- ```\n  x \n  ```\n- y"),
    "open fence": ("a \n```\nx \n\n\n\n ", "a\n```\nx \n\n\n\n "),
    "inline code is no fence": ("```x``` \ny ", "```x```\ny"),
    "controls go inside fences too": ("```\na\x00\u202eb \r\n```", "```\nab \n```"),
}


@pytest.mark.parametrize(("text", "clean"), WHITE_SPACE.values(), ids=WHITE_SPACE)
def test_white_space(text: str, clean: str) -> None:
    cleaned = sanitize(text)
    assert cleaned.text == clean
    assert apply_changes(text, cleaned.changes) == clean
    assert sanitize(clean).text is clean


STRICT = {
    "variation per ideograph": ("葛\U000e0100城\ufe00", "葛城"),
    "non-joiner per letter": ("می\u200cروم", "میروم"),
    "joiner in a joining script": ("क्\u200dष", "क्ष"),
    "word break": ("ไทย\u200bแลนด์", "ไทยแลนด์"),
    "private use": ("a\ue000\U000f0000b", "ab"),
    "marks and isolates": ("נא \u2066abc\u2069\u200f סוף", "נא abc סוף"),
    "soft hyphen anywhere": ("1\xad2", "12"),
    "fillers": ("ㄱ\u3164", "ㄱ"),
    "Mongolian selectors": ("ᠠ\u180b", "ᠠ"),
    "ignorable": ("c\u034fh\u2065\u17b4", "ch"),
    "selector that changes nothing": ("👍\ufe0f ☎\ufe0e", "👍 ☎"),
}


@pytest.mark.parametrize(("text", "clean"), STRICT.values(), ids=STRICT)
def test_strict_drops_residual_channels(text: str, clean: str) -> None:
    assert sanitize(text).text is text
    assert sanitize(text, "strict").text == clean


@pytest.mark.parametrize("text", ["👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈", "❤\ufe0f 👍\ufe0e", "1\ufe0f\u20e3", ENGLAND])
def test_strict_keeps_what_a_reader_sees(text: str) -> None:
    assert sanitize(text, "strict").text is text


def test_minimal_only_repairs_transport() -> None:
    assert sanitize("a\x00\ud800\uffff\ud83d\ude00", "minimal").text == "a\ufffd\ufffd😀"
    text = "a\x01\x1b[0m\u200b\u202e \n\n\n\n\r\n\x85" + TAG["a"]
    assert sanitize(text, "minimal").text is text


def test_naive_is_the_recipe_of_the_articles() -> None:
    cleaned = sanitize(" def f():\n\treturn\u200b 1\n\n👩\u200d👧\xa0", "naive")
    assert cleaned.text == "def f(): return 1 👩👧"
    assert apply_changes(cleaned.source, cleaned.changes) == cleaned.text


def test_off_changes_nothing() -> None:
    text = "a\x00\ud800 \n\n\n"
    assert sanitize(text, "off").text is text
    assert sanitize(text, "off").changes == ()


def test_changes_name_offset_code_and_action() -> None:
    cleaned = sanitize("ig\u200bnore\x85 \n\ud83d\ude00\ud800")
    assert cleaned.changes == (
        Change(2, "U+200B", "drop", 1, "", "zero-width-space"),
        Change(7, "U+0085", "replace", 1, "\n", "line-break"),
        Change(8, "U+0020", "trim", 1, "", "trailing-blanks"),
        Change(10, "U+D83D", "join", 2, "😀", "surrogate-pair"),
        Change(12, "U+D800", "replace", 1, "\ufffd", "surrogate"),
    )
    assert cleaned.summary() == dict.fromkeys((change.rule for change in cleaned.changes), 1)
    assert all(change.reason for change in cleaned.changes)


def test_a_hidden_change_is_not_lost_in_the_blanks_around_it() -> None:
    assert [change.code for change in find_hidden("a \u200b \t\u200c\n")] == ["U+200B", "U+200C"]


def test_find_hidden_names_hidden_channels_only() -> None:
    found = find_hidden("a\x00\r\n\u202eb" + TAG["x"] + " \n می\u200cروم")
    assert [(change.offset, change.code) for change in found] == [(4, "U+202E"), (6, "U+E0078")]
    assert find_hidden("print('你好')  \n\n\n") == ()


def test_page_marks_are_offsets_into_the_clean_text() -> None:
    cleaned = sanitize("one \x00\ftwo\n\fthree\n\n\n\ffour")
    pages = [
        cleaned.text[start:stop]
        for start, stop in zip((0, *cleaned.page_marks), (*cleaned.page_marks, None), strict=True)
    ]
    assert [page.strip() for page in pages] == ["one", "two", "three", "four"]
    assert sanitize("a\nb").page_marks == ()


@pytest.mark.parametrize("text", ["clean", "a\x00b \u202e"])
def test_pickles_prints_and_compares(text: str) -> None:
    cleaned = sanitize(text)
    copy = pickle.loads(pickle.dumps(cleaned))
    assert copy == cleaned
    assert copy.changes == cleaned.changes
    assert str(copy) == cleaned.text
    assert copy.changed is (cleaned.text is not text)


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"]])
def test_only_strings(value) -> None:
    with pytest.raises(InputError, match="text: expected a string, got"):
        sanitize(value)


def test_unknown_mode_names_the_modes() -> None:
    with pytest.raises(InputError, match="standard, strict, minimal, naive, off"):
        sanitize("a", "loose")  # pyright: ignore[reportArgumentType]


def test_data_is_cleaned_in_place_of_the_strings() -> None:
    value = {"k\x00": ["a\ud800", {"b": "ok\n\n\n\n"}], "n": 1, "t": ("x\x00",), "z": None}
    seen = []
    clean = sanitize_data(value, on_change=lambda path, cleaned: seen.append((path, cleaned.text)))
    assert clean == {"k": ["a\ufffd", {"b": "ok\n\n\n\n"}], "n": 1, "t": ("x",), "z": None}
    assert seen == [("$ key", "k"), ("$.k[0]", "a\ufffd"), ("$.t[0]", "x")]


def test_clean_data_is_the_same_object() -> None:
    value = {"schema": {"type": "object", "pattern": "^[\u200b]+ $"}, "list": [1, "a\x1b", (2.0, "b")]}
    assert sanitize_data(value) is value


def test_data_that_cannot_be_cleaned() -> None:
    with pytest.raises(InputError, match=r"\$\.a: two keys"):
        sanitize_data({"a": {"b": 1, "b\x00": 2}})
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        sanitize_data(deep)
    with pytest.raises(InputError, match="unknown mode"):
        sanitize_data("a", "loose")  # pyright: ignore[reportArgumentType]


def test_the_table_is_sound() -> None:
    rules = code_points.rules()
    assert all(rule.reason and rule.source for rule in rules.values())
    owner: dict[int, str] = {}
    for rule in rules.values():
        for first, last in rule.ranges:
            for code in range(first, last + 1):
                assert owner.setdefault(code, rule.name) == rule.name
    # A rule number shares its byte with the right-to-left bit of the vectorised pass.
    assert all(len(code_points.policy(mode).rules) < 0x80 for mode in ("standard", "strict", "minimal"))
    known = {"standard", "strict", "minimal", "naive", "off"}
    assert set(MODES) == known


def test_importing_is_light() -> None:
    script = (
        "import sys, zlclient.shaping.sanitise as s; s.sanitize('你好\\u200b' * 9000); "
        "print([name for name in ('numpy', 'regex', 'jinja2', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
