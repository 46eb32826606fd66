"""A hidden Markov model of characters, fitted by Baum and Welch's algorithm: beside the molecule table.

Every state goes on to another or to the end; texts of like length are put together, and their forward and backward
probabilities computed side by side, scaled at each place, in float32. An iteration over 10,000 SMILES with 200 states
takes about a second on one core.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

LONGEST = 200  # characters of a string that is drawn; it is cut there, and hardly ever is
PARTS = ("start", "step", "emit")


class Model(NamedTuple):
    """Probabilities of the first state (S), of the next state or the end (S × (S + 1)), of characters (S × V)."""

    alphabet: str
    start: np.ndarray
    step: np.ndarray
    emit: np.ndarray


def first_model(alphabet: str, states: int, seed: int) -> Model:
    """Random emissions, and all else uniform."""
    emit = np.random.default_rng(seed).random((states, len(alphabet)))
    step = np.full((states, states + 1), 1 / (states + 1))
    return Model(alphabet, np.full(states, 1 / states), step, emit / emit.sum(axis=1, keepdims=True))


def batches(texts: Sequence[str], alphabet: str, size: int = 500) -> list[tuple[np.ndarray, np.ndarray]]:
    """Texts as (place, text) arrays of characters, shortest first, with their lengths."""
    number, texts, found = {mark: i for i, mark in enumerate(alphabet)}, sorted(texts, key=len), []
    for first in range(0, len(texts), size):
        some = texts[first : first + size]
        marks = np.zeros((len(some[-1]), len(some)), np.intp)
        for column, text in enumerate(some):
            marks[: len(text), column] = [number[mark] for mark in text]
        found.append((marks, np.array([len(text) for text in some])))
    return found


def improved(model: Model, data: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Model, float]:
    """One iteration of Baum and Welch: the next model, and the log-likelihood of this one. Scaled, in float32."""
    step, end, emit, back = (
        part.astype(np.float32, order="C")
        for part in (model.step[:, :-1], model.step[:, -1], model.emit.T, model.step[:, :-1].T)
    )
    states = len(end)
    steps, ends, starts, emits = (np.zeros(s) for s in ((states, states), states, states, emit.shape))
    likelihood = 0.0
    for marks, lengths in data:
        places, texts = marks.shape
        alive = np.searchsorted(
            lengths, np.arange(places + 1), side="right"
        )  # texts from here on reach this place
        forward = np.empty((places, texts, states), np.float32)
        scale = np.ones((places, texts), np.float32)
        for t in range(places):
            k = alive[t]
            prior = forward[t - 1, k:] @ step if t else model.start.astype(np.float32)
            forward[t, k:] = prior * emit[marks[t, k:]]
            scale[t, k:] = forward[t, k:].sum(axis=1)
            forward[t, k:] /= scale[t, k:, None]
        likelihood += float(np.log(scale.astype(float)).sum())
        backward = np.empty((texts, states), np.float32)
        for t in range(places - 1, -1, -1):
            k, later = alive[t], alive[t + 1]
            if later > k:  # texts that end here
                ending = forward[t, k:later] @ end
                likelihood += float(np.log(ending.astype(float)).sum())
                backward[k:later] = end / ending[:, None]
                ends += (forward[t, k:later] * backward[k:later]).sum(axis=0)
            steps += forward[t, later:].T @ backward[later:]
            backward[later:] = backward[later:] @ back
            found = forward[t, k:] * backward[k:]
            emits += np.eye(len(emit), dtype=np.float32)[:, marks[t, k:]] @ found
            backward[k:] *= emit[marks[t, k:]] / scale[t, k:, None]
            if t == 0:
                starts += found.sum(axis=0)
    total = np.column_stack([steps * step, ends])
    rows = [total, emits.T]
    rows = [part / np.maximum(part.sum(axis=1, keepdims=True), 1e-30) for part in rows]
    return Model(model.alphabet, starts / starts.sum(), *rows), likelihood


def trained(
    texts: Sequence[str], states: int, seed: int, stages: Sequence[int], folder: Path
) -> dict[int, Model]:
    """Iteration → the model after it, at each stage. Kept in the folder, since it takes minutes."""
    what = "\n".join([*texts, f"{states} {seed} {sorted(stages)} 1"])
    kept = folder / f"hmm-{hashlib.sha256(what.encode()).hexdigest()[:16]}.npz"
    alphabet = "".join(sorted(set("".join(texts))))
    if kept.exists():
        with np.load(kept) as held:
            return {i: Model(alphabet, *(held[f"{i} {part}"] for part in PARTS)) for i in stages}
    data, model, found = batches(texts, alphabet), first_model(alphabet, states, seed), {}
    for i in range(1, max(stages) + 1):
        model, likelihood = improved(model, data)
        if i in stages:
            found[i] = model
            print(f"HMM, seed {seed}, iteration {i}: log-likelihood before it {likelihood:.0f}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    parts = {f"{i} {part}": getattr(one, part) for i, one in found.items() for part in PARTS}
    temporary = kept.with_suffix(f".{os.getpid()}.npz")
    np.savez(temporary, **parts)
    os.replace(temporary, kept)
    return found


def strings(model: Model, count: int, rng: np.random.Generator) -> list[str]:
    """Strings drawn from a model; what is longer than LONGEST is cut there, and hardly ever is."""
    steps, emits = (np.cumsum(part, axis=1) for part in (model.step, model.emit))
    marks = np.full((count, LONGEST), -1)
    alive = np.arange(count)
    state = rng.choice(len(model.start), size=count, p=model.start)
    for t in range(LONGEST):
        marks[alive, t] = chosen(emits[state], rng)
        state = chosen(steps[state], rng)
        going = state < len(model.start)
        alive, state = alive[going], state[going]
        if not len(alive):
            break
    return ["".join(model.alphabet[mark] for mark in row[row >= 0]) for row in marks]


def chosen(sums: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One column a row, by cumulative probabilities."""
    return (rng.random((len(sums), 1)) * sums[:, -1:] > sums).sum(axis=1)
