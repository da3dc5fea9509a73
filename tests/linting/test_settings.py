"""Settings: hierarchy, errors with file and line, selection, discovery."""

from datetime import date

import pytest

from zlclient.errors import ConfigError
from zlclient.linting.discovery import find_files
from zlclient.linting.engine import lint_text
from zlclient.linting.lint_settings import LintSettings, load_settings
from zlclient.linting.registry import all_rules, selected
from zlclient.linting.running import Linter

TODAY = date(2026, 11, 30)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def codes(rules):
    return {rule.code for rule in rules}


def test_defaults_are_all_but_the_house_rules():
    assert codes(selected((), (), ())) == {rule.code for rule in all_rules() if rule.default}
    assert codes(selected(("ALL",), (), ())) == {rule.code for rule in all_rules()}


@pytest.mark.parametrize(
    ("select", "extend", "ignore", "has", "lacks"),
    [
        (("ZL3",), (), (), "ZL302", "ZL401"),
        (("wording",), (), ("ZL302",), "ZL301", "ZL302"),
        (("ZL302",), (), ("ZL3",), "ZL302", "ZL301"),
        ((), ("house",), (), "ZL904", "ZL202"),
        ((), ("ZL904",), (), "ZL904", "ZL905"),
        (("ALL",), (), ("ZL9",), "ZL202", "ZL904"),
        (("hedged-instruction",), (), (), "ZL302", "ZL301"),
        ((), (), ("safety",), "ZL302", "ZL010"),
    ],
)
def test_the_narrowest_selector_decides(select, extend, ignore, has, lacks):
    chosen = codes(selected(select, extend, ignore))
    assert has in chosen
    assert lacks not in chosen


def test_files_above_count_the_nearest_first(tmp_path):
    write(tmp_path / "pyproject.toml", '[tool.zlclient.lint]\nignore = ["ZL302"]\ntarget-model = "claude-opus-5"\n')
    write(
        tmp_path / "sub" / "zlclient.toml", '[lint]\nignore = ["ZL301"]\nper-file-ignores = { "tests/**" = ["ZL3"] }\n'
    )
    settings = load_settings(tmp_path / "sub")
    assert settings.ignore == ("ZL301",)
    assert settings.target_model == "claude-opus-5"
    assert "ZL302" in codes(settings.rules_for(str(tmp_path / "sub" / "a.md")))
    assert "ZL302" not in codes(settings.rules_for(str(tmp_path / "sub" / "tests" / "x" / "a.md")))
    write(tmp_path / "sub" / "own" / "zlclient.toml", "[lint]\nroot = true\n")
    assert load_settings(tmp_path / "sub" / "own").target_model is None


def test_options_of_the_command_line_win(tmp_path):
    write(tmp_path / "zlclient.toml", '[lint]\nselect = ["ZL3"]\n')
    assert load_settings(tmp_path, select=("ZL4",)).select == ("ZL4",)
    assert load_settings(tmp_path, select=()).select == ("ZL3",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('selct = ["ZL3"]', "unknown setting"),
        ('select = "ZL3"', "must be a list"),
        ('select = ["ZL999"]', "means no rule"),
        ("ignore = [1]", "wrong type"),
        ('per-file-ignores = { "a" = "ZL3" }', "list of rules"),
        ('per-file-ignores = { "a" = ["nope"] }', "means no rule"),
        ('target-model = "nope:x"', "no such provider"),
        ('languages = ["de"]', "must be among"),
        ("max-size = true", "must be a int"),
        ("max-size = 0", "1 or more"),
        ("temperature-range = [0.4, 0.3]", "[low, high]"),
    ],
)
def test_a_wrong_setting_names_file_and_line(tmp_path, line, words):
    file = write(tmp_path / "pyproject.toml", f'[project]\nname = "x"\n\n[tool.zlclient.lint]\n{line}\n')
    with pytest.raises(ConfigError, match=r"pyproject\.toml:5") as caught:
        load_settings(tmp_path)
    assert words in str(caught.value)
    assert caught.value.file == str(file)


def test_languages_limit_the_word_lists():
    text = "请尽量回答。\nTry to answer.\n"
    for languages, count in ((("zh",), 1), (("en",), 1), (("zh", "en"), 2)):
        assert len(lint_text(text, "a.md", LintSettings(select=("ZL302",), languages=languages))) == count


def test_target_model_is_for_files_without_one_unless_forced():
    text = "---\nmodel: claude-sonnet-4-6\nmodelParameters: {temperature: 0.3}\n---\nHello there.\n"
    for force, count in ((False, 0), (True, 1)):
        options = LintSettings(select=("ZL401",), today=TODAY, target_model="claude-opus-5", force_target=force)
        assert len(lint_text(text, "a.j2", options)) == count
    # On the older API version the same model takes a temperature, on the newer one it does not.
    for version, count in (("2023-06-01", 0), ("2026-10-21", 1)):
        options = LintSettings(
            select=("ZL401",), target_model=f"anthropic:claude-sonnet-4-6@{version}", force_target=True
        )
        assert len(lint_text(text, "a.j2", options)) == count
    for route, count in (("auto", 1), ("legacy", 0)):
        options = LintSettings(select=("ZL401",), today=TODAY, target_model=route, force_target=True)
        assert len(lint_text(text, "a.j2", options)) == count


def test_discovery(tmp_path):
    (tmp_path / ".git").mkdir()
    for name in (
        "a.md",
        "b.prompty",
        "c.txt",
        "d.exe",
        "README.md",
        "node_modules/x.md",
        "vendor/y.md",
        "out/z.md",
        "out/keep.md",
        "sub/w.j2",
        "sub/v.j2",
    ):
        write(tmp_path / name, "Hello.\n")
    write(tmp_path / ".gitignore", "out/*\n!out/keep.md\n")
    write(tmp_path / "sub" / ".gitignore", "v.j2\n")
    settings = LintSettings(extend_exclude=((str(tmp_path), "vendor"),))
    found = [file.relative_to(tmp_path).as_posix() for file in find_files([tmp_path], settings)]
    assert found == ["a.md", "b.prompty", "c.txt", "out/keep.md", "sub/w.j2"]
    # A file that is named is linted whatever its name.
    assert find_files([tmp_path / "README.md", tmp_path / "d.exe"], settings) == [
        tmp_path / "README.md",
        tmp_path / "d.exe",
    ]
    loose = LintSettings(respect_gitignore=False)
    assert len(find_files([tmp_path], loose)) == 8
    with pytest.raises(ConfigError, match="no such file"):
        find_files([tmp_path / "nope"], settings)


def test_linter_uses_each_folder_s_settings_and_pools_agree(tmp_path):
    write(tmp_path / "a" / "x.md", "Try to answer.\n")
    write(tmp_path / "b" / "x.md", "Try to answer.\n")
    write(tmp_path / "b" / "zlclient.toml", '[lint]\nignore = ["ZL302"]\n')
    linter = Linter()
    assert [len(report.diagnostics) for report in linter.reports(linter.files([tmp_path]))] == [1, 0]
    files = [write(tmp_path / "c" / f"{number}.md", "Try to answer.\n" * (number % 3)) for number in range(160)]
    alone = Linter(jobs=1).reports(files)
    assert Linter(jobs=2).reports(files) == alone
    assert [report.path for report in alone] == [str(file) for file in files]
