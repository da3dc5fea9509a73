"""A checkpoint comes back as it was saved; whatever is wrong with one is named."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zlclient.engine.checkpoint import INDEX, WEIGHTS, load_checkpoint, save_checkpoint
from zlclient.engine.safetensors import read_tensors, sha256_of, write_tensors
from zlclient.errors import ConfigError

OTHER = {"legacy": "auto", "auto": "legacy"}


@pytest.fixture
def folder(tmp_path, checkpoint):
    save_checkpoint(tmp_path / "ck", checkpoint.config, checkpoint.tokenizer, checkpoint.tensors)
    return tmp_path / "ck"


def test_a_checkpoint_comes_back(folder, checkpoint):
    found = load_checkpoint(folder, generation=checkpoint.config.generation)
    assert found.config == checkpoint.config
    assert found.tokenizer.pieces == checkpoint.tokenizer.pieces
    assert found.tensors.keys() == checkpoint.tensors.keys()
    assert all(np.array_equal(found.tensors[name], checkpoint.tensors[name]) for name in found.tensors)


def test_saving_twice_gives_the_same_bytes(folder, checkpoint, tmp_path):
    save_checkpoint(tmp_path / "again", checkpoint.config, checkpoint.tokenizer, checkpoint.tensors)
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_the_other_generation_is_refused_and_the_tensor_named(folder, checkpoint):
    own = {"legacy": "check.back", "auto": "anchors"}[checkpoint.config.generation]
    with pytest.raises(ConfigError, match=f"'{own}'"):
        load_checkpoint(folder, generation=OTHER[checkpoint.config.generation])


def test_a_configuration_of_the_other_generation_is_refused_and_the_tensor_named(folder, make_checkpoint, checkpoint):
    other = make_checkpoint(OTHER[checkpoint.config.generation])
    other.config.save(folder / "config.json")
    with pytest.raises(ConfigError, match=r"tensor '(anchors|check\.back)'"):
        load_checkpoint(folder)


def test_a_changed_byte_is_noticed(folder):
    raw = bytearray((folder / WEIGHTS).read_bytes())
    raw[-1] ^= 1
    (folder / WEIGHTS).write_bytes(raw)
    with pytest.raises(ConfigError, match="SHA-256"):
        load_checkpoint(folder)


@pytest.mark.parametrize("file", [WEIGHTS, INDEX, "config.json", "tokenizer.json"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    with pytest.raises(ConfigError, match=file.replace(".", r"\.")):
        load_checkpoint(folder)


def test_a_tensor_of_another_shape_is_named(folder):
    tensors = dict(read_tensors(folder / WEIGHTS))
    tensors["norm.weight"] = tensors["norm.weight"][:3].copy()
    write_tensors(folder / WEIGHTS, tensors)
    index = json.loads((folder / INDEX).read_text())
    index["metadata"]["sha256"][WEIGHTS] = sha256_of(folder / WEIGHTS)
    (folder / INDEX).write_text(json.dumps(index))
    with pytest.raises(ConfigError, match=r"'norm\.weight' has shape"):
        load_checkpoint(folder)


def test_an_unknown_key_of_the_configuration_is_named(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rotary": True}))
    with pytest.raises(ConfigError, match="rotary"):
        load_checkpoint(folder)


TYPES = st.sampled_from(["<f2", "<f4", "<f8", "<i4", "<i8", "|u1"])
TENSORS = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
    st.tuples(TYPES, st.lists(st.integers(0, 4), max_size=3)),
    max_size=4,
)


@given(TENSORS)
@settings(max_examples=60, deadline=None)
def test_tensors_come_back(tmp_path_factory, shapes):
    path = tmp_path_factory.mktemp("st") / "t.safetensors"
    tensors = {
        name: np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind) for name, (kind, shape) in shapes.items()
    }
    write_tensors(path, tensors)
    found = read_tensors(path)
    assert found.keys() == tensors.keys()
    assert all(
        found[name].dtype == tensors[name].dtype and np.array_equal(found[name], tensors[name]) for name in tensors
    )


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_what_is_no_safetensors_file_is_refused(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("st") / "t.safetensors"
    path.write_bytes(raw)
    try:
        read_tensors(path)
    except ConfigError:
        return
    assert raw[8:].lstrip().startswith(b"{")
