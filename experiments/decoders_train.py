"""Captions by beam search, diverse beam search and sampling, from a small model that is trained here.

The captioning model of the paper looks at a picture. Neither it nor the pictures are at hand, so ours reads one caption
of an image and writes another one of the same image: a transformer with an encoder and a decoder, trained on the
captions of COCO val2017, on pairs of captions of an image. Images are divided at random, the same way for every seed:
4,000 to train, 250 to choose the epoch, 750 to write captions for. Each of the latter gives its first caption to the
model, which writes five; the other captions are what people wrote, to compare with.

    python decoders_train.py --captions coco_val2017_captions.jsonl.gz --out FOLDER --seeds 0 1 2 3 4

writes FOLDER/seed-0/beam.jsonl, dbs_0.2.jsonl …, lines of {"image_id", "source", "captions"}, and how the training went
to FOLDER/seed-0/run.json. `decoders.py` computes the table from them. Texts and weights are not kept.

Decoders, as in the paper: beam search with 5 beams, all returned; diverse beam search (Vijayakumar et al. 2018) with 10
beams in 10 groups, of which the 5 best are returned, for γ = 0.2, 0.5, 0.6, 0.8: the table says 0.2, 0.5, 0.5 and the
text 0.2, 0.6, 0.8. Besides, five samples at temperatures 0.5, 0.75, 1. Beams are compared by the sum of their
logarithmic probabilities while they grow, and by its mean over words at the end, with the penalties in it, as Hugging
Face's group_beam_search does, which the paper used. That one goes on with the next best word where a beam has ended,
and does not penalise ends; here a beam that has ended stays as it is.

Words are in lower case, split as the kernels split them; a word that training captions have once only is unknown, and
never written. Needs PyTorch; a seed takes some forty minutes of one core, or two minutes of an H200. Other machines
round otherwise, so that their numbers agree in direction and not to the digit.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

TRAIN, VALIDATION = 4000, 250  # images; captions are written for the others
CAPTIONS = 5  # of an image; 13 images have more
PAD, BEGIN, END, UNKNOWN = range(4)
WIDTH, HEADS, LAYERS, DROPOUT = 128, 4, 2, 0.1
EPOCHS, BATCH, RATE, WARM_UP = 30, 128, 1e-3, 400
LONGEST = 24  # words that are read or written
PENALTIES = (0.2, 0.5, 0.6, 0.8)
TEMPERATURES = (0.5, 0.75, 1.0)


# ------------------------------------------------------------------------------------------------------------- data


def words(text: str) -> list[str]:
    """Words and marks, in lower case, as the kernels split texts unless told otherwise."""
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text.lower())


def read_captions(path: Path) -> list[tuple[int, list[str]]]:
    """Images with five captions each."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [(record["image_id"], record["captions"][:CAPTIONS]) for record in records]


class Vocabulary:
    """Words by number; the first four numbers are marks."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = Counter(word for text in texts for word in words(text))
        self.words = ["<pad>", "<begin>", "<end>", "<unknown>"]
        self.words += sorted(word for word, count in counts.items() if count > 1)
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's words, between the marks for begin and end, cut to the longest that is read."""
        numbers = [self.numbers.get(word, UNKNOWN) for word in words(text)]
        return [BEGIN, *numbers[: LONGEST - 2], END]

    def decode(self, numbers: Sequence[int]) -> str:
        """The words before the end."""
        text = numbers[: numbers.index(END)] if END in numbers else numbers
        return " ".join(self.words[number] for number in text if number > UNKNOWN)


def padded(texts: Sequence[list[int]], device: torch.device) -> torch.Tensor:
    width = max(map(len, texts))
    return torch.tensor([text + [PAD] * (width - len(text)) for text in texts], device=device)


# ------------------------------------------------------------------------------------------------------------ model


class Captioner(nn.Module):
    """A transformer that reads a caption and writes another one."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.place = nn.Parameter(torch.randn(LONGEST, WIDTH) * 0.02)
        shape = {
            "d_model": WIDTH, "nhead": HEADS, "dim_feedforward": 4 * WIDTH, "dropout": DROPOUT,
            "batch_first": True, "norm_first": True,
        }  # fmt: skip
        self.reader = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**shape), LAYERS, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=False
        )
        self.writer = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**shape), LAYERS, norm=nn.LayerNorm(WIDTH)
        )
        self.dropout = nn.Dropout(DROPOUT)

    def _embed(self, texts: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.embedding(texts) * math.sqrt(WIDTH) + self.place[: texts.shape[1]])

    def read(self, texts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What the model makes of captions, and where they are padded."""
        blank = texts == PAD
        return self.reader(self._embed(texts), src_key_padding_mask=blank), blank

    def write(
        self, memory: tuple[torch.Tensor, torch.Tensor], texts: torch.Tensor, *, last: bool = False
    ) -> torch.Tensor:
        """Scores of every word at every place, or at the last one only, after the words before it."""
        later = torch.ones(texts.shape[1], texts.shape[1], dtype=torch.bool, device=texts.device).triu(1)
        state = self.writer(
            self._embed(texts),
            memory[0],
            tgt_mask=later,
            memory_key_padding_mask=memory[1],
            tgt_is_causal=True,
        )
        return (state[:, -1] if last else state) @ self.embedding.weight.T

    def forward(self, sources: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        """Scores of every word at every place of the texts, as answers to the sources."""
        return self.write(self.read(sources), texts)


def loss_of(model: Captioner, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    scores = model(sources, targets[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=PAD)


def rate_at(step: int, steps: int) -> float:
    """Linear warm-up, then down to zero along a cosine."""
    return min(step / WARM_UP, 0.5 * (1 + math.cos(math.pi * step / steps)))


def train(images: Sequence[Sequence[list[int]]], validation: Sequence[Sequence[list[int]]], vocabulary: int,
          seed: int, device: torch.device) -> tuple[Captioner, dict[str, float]]:  # fmt: skip
    """The model after the epoch in which it was best on the images for validation."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = Captioner(vocabulary).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    steps = EPOCHS * math.ceil(len(images) * CAPTIONS / BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_at(step + 1, steps))
    checked = [(group[i], group[i - 1]) for group in validation for i in range(CAPTIONS)]
    best: tuple[float, int, dict[str, torch.Tensor]] = (math.inf, 0, {})
    for epoch in range(1, EPOCHS + 1):
        model.train()
        pairs = []
        for group in images:  # every caption is read once, and answered by one of the others
            shift = rng.integers(1, CAPTIONS, CAPTIONS)
            pairs += [(group[i], group[(i + shift[i]) % CAPTIONS]) for i in range(CAPTIONS)]
        order = rng.permutation(len(pairs))
        for start in range(0, len(pairs), BATCH):
            batch = [pairs[i] for i in order[start : start + BATCH]]
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(
                model, padded([a for a, _ in batch], device), padded([b for _, b in batch], device)
            )
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            sources, targets = (padded([pair[side] for pair in checked], device) for side in (0, 1))
            found = loss_of(model, sources, targets).item()
        if found < best[0]:
            best = (found, epoch, {name: value.clone() for name, value in model.state_dict().items()})
        print(f"seed {seed}, epoch {epoch}: {found:.3f} nats a word on validation", flush=True)
    model.load_state_dict(best[2])
    size = sum(value.numel() for value in model.parameters())
    return model, {"epoch": best[1], "perplexity": math.exp(best[0]), "parameters": size}


# --------------------------------------------------------------------------------------------------------- decoders


def log_probabilities(
    model: Captioner, memory: tuple[torch.Tensor, torch.Tensor], texts: torch.Tensor
) -> torch.Tensor:
    """Of the next word, of each text; marks other than the end are never written."""
    scores = model.write(memory, texts, last=True)
    scores[:, [PAD, BEGIN, UNKNOWN]] = -math.inf
    return F.log_softmax(scores, dim=-1)


def diverse_beam_search(model: Captioner, sources: torch.Tensor, *, beams: int, groups: int = 1,
                        penalty: float = 0.0, returned: int) -> torch.Tensor:  # fmt: skip
    """The best texts for each source (sources, returned, words), by beam search in one group or several.

    Groups take their next words one after the other. A word costs a group `penalty` for every beam of the groups before
    it that took the same word at this place. Beams that have ended stay as they are, and keep their score.
    """
    count, width, device = len(sources), beams // groups, sources.device
    memory, blank = (part.repeat_interleave(beams, 0) for part in model.read(sources))
    texts = torch.full((count, groups, width, 1), BEGIN, device=device)
    totals = torch.full((count, groups, width), -math.inf, device=device)
    totals[:, :, 0] = 0.0  # all beams of a group are alike at first: one of them counts
    ended = torch.zeros(count, groups, width, dtype=torch.bool, device=device)
    for _ in range(LONGEST - 1):
        scores = log_probabilities(model, (memory, blank), texts.flatten(0, 2)).view(count, groups, width, -1)
        vocabulary = scores.shape[-1]
        taken = torch.zeros(count, vocabulary, device=device)  # by the groups before, at this place
        following, parents = [], []
        for group in range(groups):
            penalised = scores[:, group] - penalty * taken[:, None]
            still = torch.full_like(penalised, -math.inf)
            still[..., PAD] = 0.0
            step = torch.where(ended[:, group, :, None], still, penalised)
            totals[:, group], chosen = (totals[:, group, :, None] + step).flatten(1).topk(width)
            parents.append(chosen // vocabulary)
            following.append(chosen % vocabulary)
            live = (following[-1] != PAD).to(taken.dtype)
            taken.scatter_add_(1, following[-1], live)
        parent, word = torch.stack(parents, 1), torch.stack(following, 1)
        texts = torch.cat([texts.gather(2, parent[..., None].expand_as(texts)), word[..., None]], -1)
        ended = ended.gather(2, parent) | (word == END)
        if ended.all():
            break
    texts, totals = texts.flatten(1, 2)[..., 1:], totals.flatten(1)
    best = (totals / (texts != PAD).sum(-1)).topk(returned).indices
    return texts.gather(1, best[..., None].expand(-1, -1, texts.shape[-1]))


def samples(model: Captioner, sources: torch.Tensor, *, temperature: float, returned: int,
            rng: torch.Generator) -> torch.Tensor:  # fmt: skip
    """Texts drawn word by word, with probabilities to the power 1/temperature."""
    memory, blank = (part.repeat_interleave(returned, 0) for part in model.read(sources))
    texts = torch.full((len(memory), 1), BEGIN, device=sources.device)
    ended = torch.zeros(len(memory), dtype=torch.bool, device=sources.device)
    for _ in range(LONGEST - 1):
        chances = torch.softmax(log_probabilities(model, (memory, blank), texts) / temperature, -1)
        word = torch.multinomial(chances.cpu(), 1, generator=rng)[:, 0].to(sources.device)
        word[ended] = PAD
        texts = torch.cat([texts, word[:, None]], 1)
        ended |= word == END
        if ended.all():
            break
    return texts[:, 1:].view(len(sources), returned, -1)


# ------------------------------------------------------------------------------------------------------------- main


def write_captions(model: Captioner, seed: int, images: Sequence[tuple[int, list[str]]], vocabulary: Vocabulary,
                   folder: Path, device: torch.device) -> None:  # fmt: skip
    """A file for each decoder."""
    rng = torch.Generator().manual_seed(seed)
    decoders = {"beam": partial(diverse_beam_search, beams=5)}
    decoders |= {
        f"dbs_{one}": partial(diverse_beam_search, beams=10, groups=10, penalty=one) for one in PENALTIES
    }
    decoders |= {f"sampling_{one}": partial(samples, temperature=one, rng=rng) for one in TEMPERATURES}
    for name, decode in decoders.items():
        lines = []
        for start in range(0, len(images), BATCH):
            batch = images[start : start + BATCH]
            with torch.no_grad():
                sources = padded([vocabulary.encode(captions[0]) for _, captions in batch], device)
                texts = decode(model, sources, returned=CAPTIONS).tolist()
            for (image, captions), written in zip(batch, texts, strict=True):
                said = [vocabulary.decode(text) for text in written]
                lines.append(json.dumps({"image_id": image, "source": captions[0], "captions": said}))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"seed {seed}: {name}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--captions", type=Path, required=True, help="coco_val2017_captions.jsonl.gz")
    parser.add_argument(
        "--out", type=Path, default=Path("build/experiments/decoders"), help="folder for the texts"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    options = parser.parse_args(argv)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = read_captions(options.captions)
    order = np.random.default_rng(2017).permutation(len(images))
    parts = np.split(order, [TRAIN, TRAIN + VALIDATION])
    training, validation, tested = ([images[i] for i in part] for part in parts)
    vocabulary = Vocabulary([text for _, captions in training for text in captions])
    learned, checked = (
        [[vocabulary.encode(text) for text in texts] for _, texts in part] for part in (training, validation)
    )
    for seed in options.seeds:
        folder = options.out / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        model, run = train(learned, checked, len(vocabulary.words), seed, device)
        run |= {"seed": seed, "words": len(vocabulary.words), "device": device.type,
                "minutes": (time.perf_counter() - start) / 60}  # fmt: skip
        write_captions(model, seed, tested, vocabulary, folder, device)
        (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
