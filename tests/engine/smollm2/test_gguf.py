"""The reader gives what was written, and a file that is cut or changed is an error that names a byte, never a crash."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.engine.smollm2.gguf import Gguf
from zlclient.engine.smollm2.quantised import read_q4_1, read_q8_0
from zlclient.errors import ConfigError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.one_of(
    st.booleans(), st.integers(0, 2**32 - 1), st.floats(width=32, allow_nan=False), TEXTS, st.lists(TEXTS, min_size=1)
)
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
# Read: whatever the head says and holds, up to the tensors' own data.
HEAD = b"GGUF" + struct.pack("<I", 3)


@settings(max_examples=60)
@given(st.dictionaries(TEXTS.filter(lambda key: key != "general.alignment"), VALUES), st.dictionaries(TEXTS, SHAPES))
def test_what_was_written_is_read(make_gguf, metadata, shapes):
    tensors = {name: np.random.default_rng(1).standard_normal(shape, np.float32) for name, shape in shapes.items()}
    file = Gguf(make_gguf(metadata, tensors))
    assert file.metadata == metadata
    assert file.tensors.keys() == tensors.keys()
    for name, written in tensors.items():
        np.testing.assert_array_equal(file.tensor(name, written.shape), written)


def test_arrays_of_numbers(make_gguf):
    assert Gguf(make_gguf({"a": [1, -2, 3]}, {})).metadata["a"].tolist() == [1, -2, 3]


def test_an_alignment_of_its_own(make_gguf):
    # 32 divides it, so the tests' writer, which pads to 32, is right whenever its head ends on a multiple of 64.
    written = np.arange(4, dtype=np.float32)
    for padding in range(0, 64, 8):
        path = make_gguf({"general.alignment": 64, "x": "y" * padding}, {"t": written})
        if (path.stat().st_size - 32) % 64 == 0:
            np.testing.assert_array_equal(Gguf(path).tensor("t", (4,)), written)
            return
    pytest.fail("no padding gave a head that ends on a multiple of 64")


@pytest.fixture(scope="session")
def small(make_gguf) -> bytes:
    """A file whose last byte belongs to a tensor."""
    tensors = {"a": np.ones((2, 3), np.float32), "b": np.ones(8, np.float32)}
    return make_gguf({"text": "héllo", "numbers": [1, 2], "words": ["a", "b"], "flag": True}, tensors).read_bytes()


def read(path: Path) -> str:
    """Read a whole file; the error's message, or "" where there is none. Any other exception is the test's end."""
    try:
        file = Gguf(path)
        for name, entry in file.tensors.items():
            assert file.tensor(name, entry.shape).shape == entry.shape
    except ConfigError as error:
        return str(error)
    return ""


@settings(max_examples=150)
@given(data=st.data())
def test_a_cut_file_is_an_error(tmp_path_factory, small, data):
    path = tmp_path_factory.getbasetemp() / "cut.gguf"
    path.write_bytes(small[: data.draw(st.integers(0, len(small) - 1))])
    with pytest.raises(ConfigError, match=re.escape(str(path))):
        Gguf(path)


@settings(max_examples=300)
@given(data=st.data())
def test_changed_bytes_are_read_or_an_error(tmp_path_factory, small, data):
    raw = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.gguf"
    path.write_bytes(raw)
    problem = read(path)
    assert not problem or problem.startswith(str(path))


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_after_the_version_are_read_or_an_error(tmp_path_factory, tail):
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    path.write_bytes(HEAD + tail)
    problem = read(path)
    assert not problem or problem.startswith(f"{path}: byte ")


HUGE = struct.pack("<Q", 2**62)
KEY = struct.pack("<Q", 1) + b"k"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "cannot be read"),
        (b"GGML" + bytes(60), "is no GGUF file"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(60), "version 1"),
        (HEAD + HUGE + bytes(60), "byte 8: .* do not fit"),
        (HEAD + bytes(8) + HUGE + bytes(60), "byte 16: .* do not fit"),
        (HEAD + struct.pack("<QQ", 0, 1) + HUGE + bytes(60), "byte 32: ends too early"),
        (HEAD + struct.pack("<QQ", 0, 1) + KEY + struct.pack("<I", 8) + HUGE + bytes(60), "ends too early"),
        (HEAD + struct.pack("<QQ", 0, 1) + KEY + struct.pack("<II", 9, 8) + HUGE + bytes(60), "do not fit"),
        (HEAD + struct.pack("<QQ", 0, 1) + KEY + struct.pack("<II", 9, 0) + HUGE + bytes(60), "do not fit"),
        (HEAD + struct.pack("<QQ", 0, 1) + KEY + struct.pack("<IIQ", 9, 9, 1) + bytes(60), "no array of type 9"),
        (HEAD + struct.pack("<QQ", 0, 1) + KEY + struct.pack("<I", 99) + bytes(60), "no type 99"),
        (HEAD + struct.pack("<QQQ", 0, 1, 2) + b"\xff\xfe" + bytes(60), "byte 24: this string is no UTF-8"),
        (HEAD + struct.pack("<QQ", 1, 0) + KEY + struct.pack("<I", 5) + bytes(60), "5 dimensions"),
        (HEAD + struct.pack("<QQ", 1, 0) + KEY + struct.pack("<IQ", 1, 0) + bytes(60), "is empty"),
        (HEAD + struct.pack("<QQ", 1, 0) + KEY + struct.pack("<IQIQ", 1, 4, 30, 0) + bytes(60), "has type 30"),
        (HEAD + struct.pack("<QQ", 1, 0) + KEY + struct.pack("<IQIQ", 1, 5, 8, 0) + bytes(60), "no whole blocks"),
        (HEAD + struct.pack("<QQ", 1, 0) + KEY + struct.pack("<IQQIQ", 2, 2**40, 2**40, 0, 0) + bytes(60), "not fit"),
        (HEAD + struct.pack("<QQ", 1, 0) + KEY + struct.pack("<IQIQ", 1, 1, 0, 2**63) + bytes(60), "not fit"),
        (HEAD + struct.pack("<QQ", 2, 0) + 2 * (KEY + struct.pack("<IQIQ", 1, 1, 0, 0)) + bytes(60), "twice"),
        (HEAD + struct.pack("<QQ", 0, 1) + struct.pack("<Q", 17) + b"general.alignment" + struct.pack("<II", 4, 0)
         + bytes(60), "alignment"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, raw, problem):
    path = tmp_path / "wrong.gguf"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=problem):
        Gguf(path)


def test_no_such_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Gguf(tmp_path / "none.gguf")


def test_tensors_and_metadata_of_another_kind(tiny_path):
    file = Gguf(tiny_path)
    with pytest.raises(ConfigError, match="'nothing' is missing"):
        file.tensor("nothing", (1,))
    with pytest.raises(ConfigError, match="has shape"):
        file.tensor("output_norm.weight", (5,))
    with pytest.raises(ConfigError, match=r"general\.architecture: must be a int"):
        file.number("general.architecture")
    with pytest.raises(ConfigError, match=r"llama\.block_count"):
        file.number("llama.block_count", most=2)
    with pytest.raises(ConfigError, match="must be a list of strings"):
        file.strings("tokenizer.ggml.token_type")


def half(raw: bytes) -> float:
    return struct.unpack("<e", raw)[0]


BLOCKS = st.integers(1, 4)


@settings(max_examples=60)
@given(st.data())
def test_q4_1_is_scale_times_quant_plus_minimum(data):
    raw = data.draw(BLOCKS.flatmap(lambda count: st.binary(min_size=20 * count, max_size=20 * count)))
    expected: list[float] = []
    for start in range(0, len(raw), 20):
        scale, least, packed = (
            half(raw[start : start + 2]),
            half(raw[start + 2 : start + 4]),
            raw[start + 4 : start + 20],
        )
        quants = [byte % 16 for byte in packed] + [byte // 16 for byte in packed]
        expected += [scale * quant + least for quant in quants]
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(read_q4_1(np.frombuffer(raw, np.uint8)), expected, rtol=1e-5, atol=1e-3)


@settings(max_examples=60)
@given(st.data())
def test_q8_0_is_scale_times_quant(data):
    raw = data.draw(BLOCKS.flatmap(lambda count: st.binary(min_size=34 * count, max_size=34 * count)))
    expected: list[float] = []
    for start in range(0, len(raw), 34):
        quants = struct.unpack("<32b", raw[start + 2 : start + 34])
        expected += [half(raw[start : start + 2]) * quant for quant in quants]
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(read_q8_0(np.frombuffer(raw, np.uint8)), expected, rtol=1e-6)


def test_quantised_tensors_in_a_file(make_gguf):
    rng = np.random.default_rng(3)
    q8 = b"".join(np.float16(0.5).tobytes() + rng.integers(-128, 128, 32, np.int8).tobytes() for _ in range(6))
    q4 = b"".join(np.float16([0.25, -1]).tobytes() + rng.bytes(16) for _ in range(4))
    file = Gguf(make_gguf({}, {"q8": ((3, 64), 8, q8), "q4": ((4, 32), 3, q4)}))
    np.testing.assert_array_equal(file.tensor("q8", (3, 64)).ravel(), read_q8_0(np.frombuffer(q8, np.uint8)))
    np.testing.assert_array_equal(file.tensor("q4", (4, 32)).ravel(), read_q4_1(np.frombuffer(q4, np.uint8)))
