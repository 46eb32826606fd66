"""Models of Hugging Face: where their files are, which version they are of, and how they are loaded without noise.

A model is a folder of files, the user's own or a snapshot that the hub's library keeps. It is loaded from the folder
only: code that lies in it is never run, and weights are read as safetensors, or where there are none by PyTorch's
unpickler that makes tensors and nothing else (`weights_only`).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import stat
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vendimeter.errors import InputError, VendimeterError
from vendimeter.messages import brief, unknown
from vendimeter.optional import require
from vendimeter.present.text import printable

__all__ = [
    "DTYPES",
    "ModelFiles",
    "check_model",
    "file_digest",
    "find_model",
    "find_uninitialised",
    "ignore_warnings",
    "load_pretrained",
    "silence_libraries",
]

# What no PyTorch model is loaded from: other frameworks, the states of a training run, pages for people.
FOREIGN = (
    "onnx/*",
    "openvino/*",
    "coreml/*",
    "*.onnx",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.tflite",
    "*.mlmodel",
    "*.gguf",
)
LEFT_OUT = {".md", ".png", ".jpg", ".pt", ".pth", ".onnx", ".h5", ".msgpack", ".ot", ".gguf", ".log", ".py"}
LEFT_OUT_FOLDERS = re.compile(r"checkpoint-\d+|onnx|openvino|coreml|runs|\..*|__pycache__")
LEFT_OUT_FILES = {"training_args.bin", "trainer_state.json", "all_results.json", "eval_results.json"}
DTYPES = ("float32", "float16", "bfloat16")
LIBRARIES = ("transformers", "sentence_transformers", "huggingface_hub")
MODEL_FILES = ("config.json", "modules.json")  # one of them is in every folder that a model is loaded from

# Filters of warnings, handlers of loggers and bars belong to the whole process. Two threads that change them and put
# them back in turn would leave the changes of one for good, so that one is let in at a time.
_silence_lock = threading.RLock()


@dataclass(frozen=True)
class ModelFiles:
    """The folder of a model, and what tells it from every other: its commit, or a digest of its files."""

    folder: str
    identity: dict[str, str]


def check_model(encoder: Any) -> None:
    """Check the fields that encoders of the hub share: model, revision and dtype."""
    if isinstance(encoder.model, os.PathLike):
        object.__setattr__(encoder, "model", os.fspath(encoder.model))
    if not isinstance(encoder.model, str) or not encoder.model:
        raise InputError(
            f"{type(encoder).__name__} got the model {brief(encoder.model)}; expected the name of a model on the hub, "
            "or the path of a folder."
        )
    if encoder.revision is not None and not isinstance(encoder.revision, str):
        raise InputError(
            f"revision={brief(encoder.revision)}; expected a commit, a branch or a tag of the hub."
        )
    if encoder.dtype not in DTYPES:
        raise unknown("dtype", encoder.dtype, DTYPES)


def find_model(model: str, revision: str | None, *, extra: str) -> ModelFiles:
    """The files of a model, by the path of a folder or the name it has on the hub (where they may be downloaded).

    The environment variables of Hugging Face hold: ``HF_HUB_OFFLINE=1`` looks at what is on disk only, ``HF_HOME``
    says where that is.
    """
    folder = os.path.expanduser(model)
    if os.path.isdir(folder):
        if revision is not None:
            raise InputError(
                f"revision={brief(revision)} was given with the folder {brief(model)}; expected the name of a model "
                "on the hub, since a folder has no revisions."
            )
        if not any(os.path.isfile(os.path.join(folder, name)) for name in MODEL_FILES):
            # Before its files are looked at: any folder may be named, and all of a disk may be in it.
            raise InputError(
                f"the model {brief(model)} cannot be loaded: the folder has neither config.json nor modules.json. "
                "Expected a folder that save_pretrained(folder) wrote, or 'hf download MODEL --local-dir FOLDER'."
            )
        return ModelFiles(os.path.abspath(folder), {"files": folder_digest(Path(folder))})
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model) or model.startswith("."):
        raise InputError(
            f"there is no folder {brief(model)}; expected the path of a folder with the files of a model, or the name "
            "of a model on the hub, such as 'sentence-transformers/all-MiniLM-L6-v2'."
        )
    require("huggingface_hub", extra=extra, purpose="a model of the hub")
    snapshot = _snapshot(model, revision)
    return ModelFiles(snapshot, {"model": model, "commit": Path(snapshot).name})


@functools.lru_cache(maxsize=64)  # once a process: one run sees one version of a model
def _snapshot(model: str, revision: str | None) -> str:
    import huggingface_hub
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    ignored_patterns: list[str] = list(FOREIGN)
    commit, offline = revision, bool(constants.HF_HUB_OFFLINE)
    hub_status = "HF_HUB_OFFLINE is set, so that the hub was not asked"
    with silence_libraries():
        try:
            if not offline:
                info = huggingface_hub.HfApi().model_info(model, revision=revision, timeout=20)
                commit = info.sha
                if any(re.fullmatch(r"model.*\.safetensors", file.rfilename) for file in info.siblings or ()):
                    ignored_patterns.append("pytorch_model*.bin")  # the same weights a second time
        except (RepositoryNotFoundError, RevisionNotFoundError, GatedRepoError) as error:
            gated = isinstance(error, GatedRepoError)
            reason = "has it only for those who may see it" if gated else "does not have it"
            raise _not_found_error(model, revision, f"the hub {reason} ({_first_line(error)})") from error
        except Exception as error:  # no network: what is on disk will do
            offline, hub_status = True, f"the hub could not be asked ({_first_line(error)})"
        try:
            return huggingface_hub.snapshot_download(
                model, revision=commit, ignore_patterns=ignored_patterns, local_files_only=offline
            )
        except Exception as error:
            nor_on_disk = f"; nor is it on disk, in {printable(constants.HF_HUB_CACHE)}" if offline else ""
            reason = hub_status if offline else _first_line(error)
            raise _not_found_error(model, revision, reason + nor_on_disk) from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[0] if lines else type(error).__name__, 160)


def _not_found_error(model: str, revision: str | None, reason: str) -> InputError:
    at_revision = "" if revision is None else f" at revision {brief(revision)}"
    return InputError(
        f"the model {brief(model)}{at_revision} was not found: it is no folder here, and {reason}. Expected the name "
        "of a model on the hub or the path of a folder with its files. Where there is a network, "
        f"'hf download {printable(model)} --local-dir FOLDER' makes such a folder."
    )


# ----------------------------------------------------------------------------------------------------- digests of files


def folder_digest(folder: Path) -> str:
    """A digest of the files that a model may be loaded from, by their names and contents; plain files alone."""
    model_files = []
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not LEFT_OUT_FOLDERS.fullmatch(name)]
        for name in files:
            is_kept = name not in LEFT_OUT_FILES and Path(name).suffix.lower() not in LEFT_OUT
            if is_kept and not name.startswith("."):
                model_files.append(Path(path, name))
    digest = hashlib.sha256()
    for file in sorted(model_files, key=lambda file: file.relative_to(folder).as_posix()):
        digest.update(file.relative_to(folder).as_posix().encode("utf-8", "surrogateescape") + b"\0")
        digest.update(file_digest(file))
    return digest.hexdigest()


def file_digest(file: Path) -> bytes:
    """A digest of the content of a plain file, which is read once as long as it stays as it is."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # one that reads a pipe waits for ever
            raise InputError(
                f"{brief(str(file))} is neither a file nor a folder; expected the plain files of a model. Take it out."
            )
        return _digest(str(file.absolute()), (status.st_size, status.st_mtime_ns, status.st_ino))
    except OSError as error:
        link = ", a link that leads nowhere," if file.is_symlink() and not file.exists() else ""
        raise InputError(
            f"{brief(str(file))}{link} cannot be read ({error.strerror or type(error).__name__}); expected the plain "
            "files of a model. Download it again, or take what is broken out."
        ) from None


@functools.lru_cache(maxsize=4096)
def _digest(path: str, state: tuple[int, int, int]) -> bytes:
    """A digest of the content; `state` only tells whether the file is the one that was read before."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


# ----------------------------------------------------------------------------------------------------------- loading


@contextmanager
def ignore_warnings() -> Iterator[None]:
    """Ignore warnings, one thread at a time."""
    with _silence_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def silence_libraries() -> Iterator[list[str]]:
    """Keep the libraries quiet, one thread at a time; the list that is yielded gets the messages they log."""
    messages: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    loggers = [logging.getLogger(name) for name in LIBRARIES]
    with ignore_warnings():
        bars = _silence_bars()
        previous = [(logger, logger.handlers, logger.propagate, logger.level) for logger in loggers]
        for logger in loggers:
            logger.handlers, logger.propagate = [Collect()], False
            logger.setLevel(logging.WARNING)
        try:
            yield messages
        finally:
            for logger, handlers, propagate, level in previous:
                logger.handlers, logger.propagate = handlers, propagate
                logger.setLevel(level)
            for enable in bars:
                enable()


def _silence_bars() -> list[Any]:
    """Switch off the progress bars that are on; how to switch them on again."""
    enablers = []
    from huggingface_hub import utils

    if not utils.are_progress_bars_disabled():
        utils.disable_progress_bars()
        enablers.append(utils.enable_progress_bars)
    try:
        from transformers.utils import logging as bars
    except ImportError:  # the hub's library alone, for an encoder that needs no more
        return enablers
    if bars.is_progress_bar_enabled():
        bars.disable_progress_bar()
        enablers.append(bars.enable_progress_bar)
    return enablers


@contextmanager
def explain_failure(model: str) -> Iterator[None]:
    """Turn any exception of a library that cannot load a model into an error that names the model."""
    try:
        yield
    except (VendimeterError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"the model {brief(model)} cannot be loaded ({type(error).__name__}: {_first_line(error)}). Expected a "
            "folder or a model of the hub with a configuration, a tokenizer or image processor, and weights for "
            "PyTorch that need no code of their own; *.safetensors are best."
        ) from error


def load_pretrained(
    kind: str, files: ModelFiles, model: str, *, extra: str, unused: Iterable[str] = ()
) -> Any:
    """A model or tokenizer of the library transformers, by the name of its Auto class.

    An error where weights are missing in the files, since the library would fill them with random numbers; except for
    parts with a name among `unused`.
    """
    auto = getattr(require("transformers", extra=extra, purpose="a model of the hub"), kind)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with explain_failure(model), silence_libraries():
        if "Model" not in kind:
            return auto.from_pretrained(files.folder, **options)
        loaded, info = auto.from_pretrained(
            files.folder, output_loading_info=True, weights_only=True, **options
        )
    absent = [*info["missing_keys"], *(key[0] for key in info["mismatched_keys"])]
    refuse_uninitialised(absent, model, unused)
    return loaded.eval()


def refuse_uninitialised(absent: Iterable[str], model: str, unused: Iterable[str] = ()) -> None:
    """An error where parts of a model have no weights in its files."""
    absent = sorted(key for key in absent if not any(part in key.split(".") for part in unused))
    if not absent:
        return
    hint = ""
    if all("pooler" in key.split(".") for key in absent):
        hint = " It has no pooler: take pooling='mean' or pooling='cls'."
    names = printable(", ".join(absent[:4]), 200) + (f", … ({len(absent)} in all)" if len(absent) > 4 else "")
    raise InputError(
        f"the files of the model {brief(model)} have no weights for {names}, which would be random numbers; expected "
        f"all weights that the vectors depend on.{hint}"
    )


def find_uninitialised(messages: Iterable[str]) -> list[str]:
    """The weights that the library transformers says it has filled with random numbers, from what it logs.

    Examples
    --------
    >>> find_uninitialised(["Some weights of … are newly initialized: ['a.bias', 'a.weight']. You should …"])
    ['a.bias', 'a.weight']
    """
    text = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", message) for message in messages)
    table = re.findall(r"^(\S+)\s*\|\s*(?:MISSING|MISMATCH)\b", text, flags=re.MULTILINE)
    listed = re.findall(r"newly initialized[^\[\n]*\[([^\]]*)\]", text)
    return [*table, *(name for names in listed for name in re.findall(r"'([^']+)'", names))]
