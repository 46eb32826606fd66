"""Encoders of text: sentence-transformers, and any model of the library transformers."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

from vendimeter.data.arrays import is_missing
from vendimeter.encoders.base import Encode, Encoder, pick_device
from vendimeter.encoders.hub import (
    ModelFiles,
    check_model,
    explain_failure,
    find_model,
    find_uninitialised,
    load_pretrained,
    refuse_uninitialised,
    silence_libraries,
)
from vendimeter.errors import InputError
from vendimeter.messages import brief, check_characters, unknown
from vendimeter.optional import require
from vendimeter.options import whole_number
from vendimeter.present.text import printable

__all__ = ["Sentences", "SimCSE", "Transformer"]

EXTRA = "encoders"
POOLINGS = ("mean", "cls", "pooler")
# Models that number positions from the padding token on: two of their position embeddings are never used.
SHIFTED = ("roberta", "camembert", "mpnet", "longformer", "data2vec-text", "luke")


@dataclass(frozen=True, repr=False)
class TextEncoder(Encoder):
    """What the encoders of text share: texts are checked, and those of one length share a batch."""

    model: str = ""
    _: KW_ONLY
    revision: str | None = None
    dtype: str = "float32"
    max_length: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_model(self)
        if self.max_length is not None:
            object.__setattr__(self, "max_length", whole_number(self.max_length, "max_length"))

    def items(self, samples: Any) -> list[str]:
        """The texts as a list; an error names the first item that is none."""
        items = super().items(samples)
        for i, item in enumerate(items):
            if not isinstance(item, str):
                gap = " Fill or drop it." if is_missing(item) else ""
                raise InputError(
                    f"item {i} is a {type(item).__name__} ({brief(item)}); the encoder {self.name!r} expected texts "
                    f"(strings).{gap}",
                    item=i,
                )
        return items

    def digest(self, sample: str) -> bytes:
        """A digest of the text; an error where it is no valid Unicode, which no tokenizer takes."""
        check_characters(sample, "the text")
        return hashlib.sha256(b"text\0" + sample.encode()).digest()

    def size(self, sample: str) -> float:
        """Its length, and a little for the text itself."""
        return 16.0 + len(sample)

    def _files(self) -> ModelFiles:
        return find_model(self.model, self.revision, extra=EXTRA)

    def _identity(self, **more: Any) -> dict[str, Any]:
        shared = {"encoder": self.name, "version": 1, "dtype": self.dtype, "max_length": self.max_length}
        return shared | self._files().identity | more


@dataclass(frozen=True, repr=False)
class Sentences(TextEncoder):
    """Sentence embeddings by a model of sentence-transformers, with its own pooling and normalisation.

    Parameters
    ----------
    model : str or path
        The name of the model on the hub ("all-MiniLM-L6-v2" is short for that of sentence-transformers), or a folder
        with its files.
    revision : str, optional
        The commit, branch or tag; the newest by default. A commit makes a score repeatable.
    dtype : str
        "float32", or "float16" or "bfloat16": less precise, and on a GPU several times as fast for long texts.
    max_length : int, optional
        Tokens of a text that the model sees, as far as it can; by default as many as it was made for. What comes after
        them is cut off.
    prompt : str, optional
        A text to put in front of every sample; by default the one that the model names, if it does.
    batch_size, device, cache
        As for `Encoder`.

    Examples
    --------
    >>> import vendimeter as vm
    >>> vm.kernels.Embed(Sentences("all-MiniLM-L6-v2", batch_size=256))
    Embed(Sentences('all-MiniLM-L6-v2', batch_size=256), Cosine())
    """

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    _: KW_ONLY
    prompt: str | None = None
    name: ClassVar[str] = "sentences"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt is not None and not isinstance(self.prompt, str):
            raise InputError(f"prompt={brief(self.prompt)}; expected a text to put in front of every sample.")

    def _files(self) -> ModelFiles:
        is_short_name = "/" not in self.model and not os.path.isdir(os.path.expanduser(self.model))
        return find_model(
            f"sentence-transformers/{self.model}" if is_short_name else self.model, self.revision, extra=EXTRA
        )

    def identity(self) -> dict[str, Any]:
        """The model's commit or files, the length, the prompt and the dtype; pooling is in the files."""
        return self._identity(prompt=self.prompt)

    def load(self) -> Encode:
        """Load the model with sentence-transformers."""
        library = require("sentence_transformers", extra=EXTRA, purpose="Sentences")
        torch = require("torch", extra=EXTRA, purpose="Sentences")
        device, files = pick_device(self.device, extra=EXTRA), self._files()
        _check_modules(Path(files.folder), self.model)
        with explain_failure(self.model), silence_libraries() as messages:
            model = library.SentenceTransformer(
                files.folder, device=str(device), trust_remote_code=False, local_files_only=True
            )
        refuse_uninitialised(find_uninitialised(messages), self.model, unused=["pooler"])
        model = model.to(getattr(torch, self.dtype)).eval()
        if self.max_length is not None:
            model_limit = model.max_seq_length
            model.max_seq_length = min(
                self.max_length, self.max_length if model_limit is None else model_limit
            )

        def encode(texts: list[str]) -> Any:
            with torch.inference_mode():
                return model.encode(
                    texts,
                    prompt=self.prompt,
                    batch_size=len(texts),
                    show_progress_bar=False,
                    convert_to_tensor=True,
                )

        return encode


def _check_modules(folder: Path, model: str) -> None:
    """Refuse what is no model of sentence-transformers, made of its own modules alone.

    Its library makes up a pooling for other models, and older versions of it run code that lies in a folder.
    """
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        kinds = [str(module["type"]) for module in modules]
    except FileNotFoundError:
        raise InputError(
            f"the model {brief(model)} is not one of sentence-transformers: it has no modules.json, which says how "
            f"tokens are pooled. Choose a pooling: Transformer({model!r}, pooling='mean')."
        ) from None
    except (OSError, ValueError, TypeError, KeyError):
        raise InputError(
            f"modules.json of the model {brief(model)} cannot be read; expected a list of modules. Download the model "
            "again."
        ) from None
    foreign = next((kind for kind in kinds if not kind.startswith("sentence_transformers.")), None)
    if foreign is not None:
        raise InputError(
            f"the model {brief(model)} runs code of its own ({printable(foreign, 80)}), which is never done here; "
            "expected one made of modules of sentence-transformers. Load it yourself and pass Embed(model.encode)."
        )


@dataclass(frozen=True, repr=False)
class Transformer(TextEncoder):
    """Embeddings of texts by a language model, pooled over their tokens.

    Parameters
    ----------
    model : str or path
        The name of the model on the hub, or a folder with its files.
    pooling : str
        "mean" is the mean over the tokens of a text; "cls" the first token; "pooler" the model's own layer on top of
        the first token, an error where its weights are not among the files.
    max_length : int
        Tokens of a text that the model sees, as far as it can. What comes after them is cut off.
    revision, dtype
        As for `Sentences`.
    batch_size, device, cache
        As for `Encoder`.

    Examples
    --------
    >>> Transformer("FacebookAI/roberta-base", pooling="cls")
    Transformer('FacebookAI/roberta-base', pooling='cls')
    """

    model: str = ""
    _: KW_ONLY
    max_length: int | None = 512
    pooling: str = "mean"
    name: ClassVar[str] = "transformer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling not in POOLINGS:
            raise unknown("pooling", self.pooling, POOLINGS)

    def identity(self) -> dict[str, Any]:
        """The model's commit or files, the pooling, the length and the dtype."""
        return self._identity(pooling=self.pooling)

    def load(self) -> Encode:
        """Load the model and its tokenizer with transformers."""
        torch = require("torch", extra=EXTRA, purpose=type(self).__name__)
        device, files = pick_device(self.device, extra=EXTRA), self._files()
        unused = () if self.pooling == "pooler" else ("pooler",)
        model = load_pretrained("AutoModel", files, self.model, extra=EXTRA, unused=unused)
        tokenizer = load_pretrained("AutoTokenizer", files, self.model, extra=EXTRA)
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        model = model.to(device=device, dtype=getattr(torch, self.dtype)).eval()
        tokenizer.padding_side = "right"  # so that the first token is the text's
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token  # any will do, since it is masked
        token_limit = _token_limit(model.config, tokenizer, self.max_length)
        accepted = inspect.signature(model.forward).parameters

        def encode(texts: list[str]) -> Any:
            inputs = tokenizer(
                texts, return_tensors="pt", padding=True, truncation=True, max_length=token_limit
            )
            inputs = {name: part.to(device) for name, part in inputs.items() if name in accepted}
            mask = inputs["attention_mask"]
            if not bool(mask.any(dim=1).all()):
                raise InputError(
                    "the tokenizer gives no token for the text (is it empty?), so that it has no vector; drop it."
                )
            with torch.inference_mode():
                return self._pool(model(**inputs), mask)

        with explain_failure(self.model):
            # A pooling that the model does not have is an error here, and not after a long download.
            encode(["a"])
        return encode

    def _pool(self, output: Any, mask: Any) -> Any:
        if self.pooling == "pooler":
            pooled = getattr(output, "pooler_output", None)
            if pooled is None:
                raise InputError(
                    f"the model {brief(self.model)} has no pooler; take pooling='mean' or pooling='cls'."
                )
            return pooled.float()
        hidden = output.last_hidden_state.float()
        if self.pooling == "cls":
            return hidden[:, 0]
        is_token = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * is_token).sum(dim=1) / is_token.sum(dim=1)


def _token_limit(config: Any, tokenizer: Any, max_length: int | None) -> int | None:
    """How many tokens of a text the model takes, at most `max_length`."""
    limits = [] if max_length is None else [max_length]
    if tokenizer.model_max_length < 10**9:  # a huge number stands for none
        limits.append(tokenizer.model_max_length)
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        is_shifted = any(word in config.model_type for word in SHIFTED)
        limits.append(positions - (config.pad_token_id or 0) - 1 if is_shifted else positions)
    return min(limits, default=None)


@dataclass(frozen=True, repr=False)
class SimCSE(Transformer):
    """Sentence embeddings by SimCSE (Gao, Yao and Chen 2021).

    The default is the model that the Vendi Score's paper describes: BERT-base, uncased, trained to place sentences near
    those that they entail. The code published with the paper defaults to another one, which was trained without labels:
    "princeton-nlp/unsup-simcse-roberta-base".

    Parameters
    ----------
    model : str or path
        The name of the model on the hub, or a folder with its files.
    pooling : str
        "pooler" is the output of the layer on top of the first token: right for supervised models such as the default,
        and what the code published with the paper takes for all. The authors of SimCSE leave that layer away for
        unsupervised models when they are not being trained: "cls".
    max_length, revision, dtype
        As for `Transformer`.
    batch_size, device, cache
        As for `Encoder`.

    Examples
    --------
    >>> SimCSE().model, SimCSE(pooling="cls")
    ('princeton-nlp/sup-simcse-bert-base-uncased', SimCSE(pooling='cls'))

    References
    ----------
    Gao, Yao and Chen, "SimCSE: Simple Contrastive Learning of Sentence Embeddings", EMNLP 2021.
    """

    model: str = "princeton-nlp/sup-simcse-bert-base-uncased"
    _: KW_ONLY
    pooling: str = "pooler"
    name: ClassVar[str] = "simcse"
