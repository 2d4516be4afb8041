"""Where real weights come from, and the proof that they are the right ones."""

import json
import os
import warnings
from pathlib import Path

import torch

from mha_course.bert import BertConfig, BertModel
from mha_course.embedded import DEFAULT, WEIGHTS, ModelError, check, licence
from mha_course.interop import map_weights
from mha_course.tokens import Tokenizer

__all__ = ["DEFAULT", "ModelError", "Tokenizer", "licence", "load_pretrained"]

CONFIG = "config.json"
VOCABULARIES = ("tokenizer.json", "vocab.txt")
PATTERNS = [CONFIG, WEIGHTS, *VOCABULARIES, "tokenizer_config.json"]
KINDS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
POSITION_IDS = "embeddings.position_ids"
SECONDS = 10  # to wait for the Hub's first answer; by itself it is waited for without end


def load_pretrained(name_or_path=DEFAULT):
    """A trained BERT and its tokenizer, as `(model, tokenizer)`: eval mode, float32, on the CPU.

    `name_or_path` is the model that comes with the course (all-MiniLM-L6-v2 by the authors of
    sentence-transformers, licence Apache-2.0), which needs no network; a folder with config.json,
    model.safetensors and tokenizer.json or vocab.txt; or the name of a BERT on the Hugging Face
    Hub, such as "bert-base-chinese", which is downloaded once.
    Properties: weights of half or double precision become float32. A checkpoint's pretraining
        heads (`cls.*`) are left out, and named in a warning; so are stored `position_ids`, without
        a word, once they are seen to be 0, 1, 2, … The state of torch's random generator stays as
        it is.
    Raises: ModelError, a ValueError, naming the file that is missing, damaged or no BERT's; the
        weights that are unknown, missing (the pooler included, since a made-up one would give
        made-up results) or of a wrong shape or kind; the model that the Hub does not have; a
        missing network. The embedded model's sha256 is compared with the published one at each
        load, and both are quoted if they differ.
    Lesson: notebooks/06_bert_attention.ipynb.
    """
    folder = _folder(name_or_path)
    config = _config(folder)
    tokenizer = Tokenizer.from_folder(folder, config.max_position_embeddings)
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            f"the tokenizer in {folder} has {tokenizer.vocab_size} pieces, the model's table has "
            f"{config.vocab_size}"
        )
    with torch.random.fork_rng(devices=[]):
        model = BertModel(config)
    _fill(model, _read(folder), folder / WEIGHTS)
    return model.eval(), tokenizer


def _folder(name):
    """The folder that a name or path means, with all that is needed in it."""
    if not isinstance(name, str | os.PathLike):
        raise TypeError(f"name_or_path must be a string or a path, got {type(name).__name__}")
    if name == DEFAULT:
        folder = check()
    elif not str(name).strip():
        raise ModelError("name_or_path is empty")
    elif Path(name).is_dir():
        folder = Path(name)
    elif _is_path(name):
        raise ModelError(f"there is no folder {name}")
    else:
        folder = download(name, PATTERNS, _lacking)
    if lacking := _lacking({file.name for file in folder.iterdir()}):
        raise ModelError(f"{folder} {lacking}")
    return folder


def _is_path(name):
    text = str(name)
    return (
        isinstance(name, os.PathLike)
        or text.startswith((".", "~", "/"))
        or "\\" in text
        or text.count("/") > 1
        or Path(text).exists()
    )


def _lacking(files):
    """What a model that has these files lacks, in words, or ""."""
    missing = [file for file in (CONFIG, WEIGHTS) if file not in files]
    if not any(file in files for file in VOCABULARIES):
        missing.append(" or ".join(VOCABULARIES))
    reason = ""
    if WEIGHTS in missing:
        reason = (
            f". The course reads weights from {WEIGHTS} only: a pytorch_model.bin is a pickle, "
            "and opening one can run any program that someone put into it"
        )
    return f"lacks {', '.join(missing)}{reason}." if missing else ""


def _config(folder):
    file = folder / CONFIG
    try:
        return BertConfig.from_dict(json.loads(file.read_text("utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise ModelError(f"{file} is not a config of a BERT that the course has: {error}") from None


def _read(folder):
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / WEIGHTS
    try:
        return load_file(file)
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise ModelError(
            f"{file} ({file.stat().st_size:,} bytes) is damaged or was not downloaded to its end: "
            f"{reason}. Bring it again."
        ) from None


def _fill(model, checkpoint, file):
    """Copy a checkpoint's weights into the model, each into its place and none left over."""
    try:
        mapped = map_weights(checkpoint)
    except ValueError as error:
        raise ModelError(f"{file} has a weight twice: {error}") from None
    called = dict(zip(mapped, checkpoint, strict=True))
    wanted = model.state_dict()
    heads = [name for name in mapped if name.startswith("cls.")]
    for name in (*heads, *(name for name in mapped if _is_count(name, mapped[name]))):
        del mapped[name]
    lines = [f"missing: {name}" for name in wanted if name not in mapped]
    lines += [f"unknown: {called[name]}" for name in mapped if name not in wanted]
    for name in wanted.keys() & mapped.keys():
        lines += _misfit(called[name], mapped[name], wanted[name])
    if lines:
        raise ModelError("\n".join([f"{file} does not fit its {CONFIG}:", *sorted(lines)]))
    model.load_state_dict(mapped)
    if heads:
        names = ", ".join(called[name] for name in heads)
        warnings.warn(f"left out, the model has no pretraining heads: {names}", stacklevel=3)


def _is_count(name, tensor):
    """Whether this is no weight but the positions 0, 1, 2, …, which old checkpoints store."""
    if name.removeprefix("bert.") != POSITION_IDS:
        return False
    return torch.equal(tensor.flatten(), torch.arange(tensor.numel()))


def _misfit(name, tensor, wanted):
    if tensor.shape != wanted.shape:
        return [f"misshapen: {name} is {tuple(tensor.shape)}, must be {tuple(wanted.shape)}"]
    if tensor.dtype not in KINDS:
        kinds = ", ".join(map(str, KINDS))
        return [f"wrong kind: {name} is {tensor.dtype}, must be one of {kinds}"]
    if not tensor.float().sum().isfinite():
        return [f"not finite: {name} holds NaN or infinity"]
    return []


def download(name, patterns, lacking):
    """The folder with those files of a model on the Hub that match `patterns`, downloaded once.

    `lacking` says in words what a set of file names lacks, or "".
    Properties: a model that is here and lacks nothing is not asked for again, so it works without
        a network. A download that broke off goes on where it stopped. The Hub's own settings
        (HF_HOME, HF_HUB_OFFLINE, HF_TOKEN, HF_ENDPOINT) are followed.
    Raises: ModelError for a name that the Hub does not have or does not give away, for a model
        that lacks a file (before anything is downloaded), in offline mode, without a network.
    """
    from huggingface_hub import snapshot_download

    folder = _cached(name, patterns)
    if folder and not lacking({file.name for file in folder.iterdir()}):
        return folder
    if said := lacking(_files(name)):
        raise ModelError(f"{name} on the Hugging Face Hub {said}")
    try:
        return Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # of three HTTP libraries, depending on the version
        raise ModelError(
            f"The download of {name} broke off ({_said(error)}). Try again; what came is kept."
        ) from None


def _cached(name, patterns):
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ModelError(
            f"{name!r} is neither a folder nor a name that the Hugging Face Hub could have: {error}"
        ) from None


def _files(name):
    """The names of the files that the Hub has of a model."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        return {file.rfilename for file in HfApi().model_info(name, timeout=SECONDS).siblings}
    except GatedRepoError:
        raise ModelError(
            f"The Hugging Face Hub gives {name} only to people who accepted its terms there; "
            "do so and log in with `hf auth login`."
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"The Hugging Face Hub has no public model {name!r}, and here is no folder of that "
            "name. Look at the spelling; a name often has its owner in it, as in owner/model."
        ) from None
    except OfflineModeIsEnabled:
        raise ModelError(
            f"{name} is not on this machine, and HF_HUB_OFFLINE forbids to download it. "
            f"{DEFAULT!r} works without a network."
        ) from None
    except Exception as error:  # of three HTTP libraries, depending on the version
        raise ModelError(
            f"{name} is not on this machine, and the Hugging Face Hub cannot be reached "
            f"({_said(error)}). {DEFAULT!r} works without a network."
        ) from None


def _said(error):
    first = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
