"""A model by name from the Hugging Face Hub, with one plain sentence for whatever goes wrong."""

from pathlib import Path

from mha_course.embedded import DEFAULT, ModelError

__all__ = ["download"]

SECONDS = 10  # to wait for the Hub's first answer; by itself it is waited for without end


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
