"""Decoders of captions: beam search and diverse beam search against plain searches, and the table of their texts."""

from __future__ import annotations

import gzip
import importlib
import itertools
import json

import numpy as np
import pytest
from reruns import DATA, EXPERIMENTS, rerun, script, verdicts

CAPTIONS = DATA / "text" / "coco_val2017_captions.jsonl.gz"
needs_captions = pytest.mark.skipif(not CAPTIONS.exists(), reason="the captions of COCO are not there")

PAD, BEGIN, END, UNKNOWN = range(4)
WORDS = [4, 5, 6]
LENGTH = 4  # words of the longest text that the model below writes, without the end


@pytest.fixture(scope="module")
def training():
    """The module decoders_train, which needs PyTorch."""
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXPERIMENTS)
        yield importlib.import_module("decoders_train")


class Chain:
    """A model whose scores of the next word are random numbers, a row for each text so far and each source."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def scores(self, source: int, text: tuple[int, ...]) -> np.ndarray:
        if len(text) == LENGTH:  # nothing but the end
            return np.where(np.arange(7) == END, 0.0, -30.0)
        return np.random.default_rng([self.seed, source, *text]).normal(size=7, scale=2).astype(np.float32)

    def log_probabilities(self, source: int, text: tuple[int, ...]) -> dict[int, float]:
        """Of what may be written next: the words and the end."""
        scores = self.scores(source, text).astype(float)[[END, *WORDS]]
        return dict(zip([END, *WORDS], scores - np.log(np.exp(scores).sum()), strict=True))

    def read(self, sources):
        return sources[:, :1], sources == PAD

    def write(self, memory, texts, *, last):
        import torch

        assert last
        rows = zip(memory[0][:, 0].tolist(), texts[:, 1:].tolist(), strict=True)
        return torch.tensor(np.array([
            np.zeros(7, np.float32) if END in text else self.scores(source, tuple(text)) for source, text in rows
        ], dtype=np.float32))  # fmt: skip


def best_texts(model: Chain, source: int, count: int) -> list[list[int]]:
    """Of all texts that there are, those with the highest mean logarithmic probability of a word."""
    found = {}
    for length in range(LENGTH + 1):
        for text in itertools.product(WORDS, repeat=length):
            whole = [*text, END]
            total = sum(model.log_probabilities(source, text[:i])[whole[i]] for i in range(length + 1))
            found[text] = total / len(whole)
    return [[*text, END] for text in sorted(found, key=found.__getitem__, reverse=True)[:count]]


def texts_of(tensor) -> list[list[list[int]]]:
    return [[[word for word in text if word != PAD] for text in group] for group in tensor.tolist()]


def test_beam_search_that_keeps_every_text_finds_the_best(training):
    import torch

    model = Chain(1)
    found = texts_of(
        training.diverse_beam_search(model, torch.tensor([[11, 2], [12, 2]]), beams=150, returned=5)
    )
    assert found == [best_texts(model, source, 5) for source in (11, 12)]


def greedy_groups(model: Chain, source: int, groups: int, penalty: float) -> list[list[int]]:
    """Groups of one beam, written out: each takes the best word after penalties; the best by their mean come first."""
    texts: list[list[int]] = [[] for _ in range(groups)]
    totals = [0.0] * groups
    while any(END not in text for text in texts):
        taken: list[int] = []
        for group, text in enumerate(texts):
            if END in text:
                continue
            chances = model.log_probabilities(source, tuple(text))
            worth = {word: chance - penalty * taken.count(word) for word, chance in chances.items()}
            word = max(worth, key=worth.__getitem__)
            totals[group] += worth[word]
            text.append(word)
            taken.append(word)
    order = sorted(range(groups), key=lambda group: totals[group] / len(texts[group]), reverse=True)
    return [texts[group] for group in order]


@pytest.mark.parametrize("penalty", [0.0, 0.4, 3.0])
def test_diverse_beam_search_is_that_of_groups_written_out(training, penalty):
    import torch

    model = Chain(2)
    sources = torch.arange(20, 40)[:, None]
    found = texts_of(
        training.diverse_beam_search(model, sources, beams=6, groups=6, penalty=penalty, returned=6)
    )
    expected = [greedy_groups(model, source, 6, penalty) for source in range(20, 40)]
    assert [sorted(group) for group in found] == [sorted(group) for group in expected]
    assert [group[0] for group in found] == [group[0] for group in expected]
    different = np.mean([len({tuple(text) for text in group}) for group in found])
    assert different == 1 if penalty == 0 else different > 1


def test_samples_have_the_probabilities_of_the_model(training):
    import torch

    model = Chain(3)
    rng = torch.Generator().manual_seed(0)
    sources = torch.full((500, 1), 7)
    for temperature in (0.5, 1.0):
        drawn = training.samples(model, sources, temperature=temperature, returned=8, rng=rng)[
            ..., 0
        ].flatten()
        chances = np.exp(np.array(list(model.log_probabilities(7, ()).values())) / temperature)
        counts = np.bincount(drawn.numpy(), minlength=7)[[END, *WORDS]]
        np.testing.assert_allclose(counts / counts.sum(), chances / chances.sum(), atol=0.03)
        assert counts.sum() == 4000
    coldest = texts_of(training.samples(model, sources[:1], temperature=1e-3, returned=2, rng=rng))
    assert coldest == [[greedy_groups(model, 7, 1, 0.0)[0]] * 2]


ANIMALS, PLACES = (
    ["dog", "cat", "horse", "bird", "cow", "sheep"],
    ["grass", "road", "beach", "snow", "table", "roof"],
)


def write_captions(path, pairs) -> None:
    """Five captions each of an animal in a place."""
    forms = [
        "a {} on the {} .",
        "the {} is on a {} .",
        "one {} near the {} .",
        "a {} sits on a {} .",
        "{} on {} .",
    ]
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        for number, (animal, place) in enumerate(pairs):
            captions = [form.format(animal, place) for form in forms]
            lines.write(json.dumps({"image_id": number, "captions": captions}) + "\n")


def test_a_model_is_trained_and_its_captions_are_scored(training, tmp_path, monkeypatch, capsys):
    """The whole way, small: the model learns, its training can be repeated, and the table takes what it wrote."""
    data = tmp_path / "data" / "text" / CAPTIONS.name
    data.parent.mkdir(parents=True)
    write_captions(data, [(a, p) for a in ANIMALS for p in PLACES] * 2)
    for name, value in {"TRAIN": 60, "VALIDATION": 4, "WIDTH": 32, "LAYERS": 1, "EPOCHS": 5, "WARM_UP": 2, "RATE": 5e-3,
                        "BATCH": 30, "PENALTIES": (0.5,), "TEMPERATURES": (0.5, 1.0)}.items():  # fmt: skip
        monkeypatch.setattr(training, name, value)
    runs = []
    for folder in ("one", "two"):
        training.main(["--captions", str(data), "--out", str(tmp_path / folder), "--seeds", "0", "3"])
        runs.append(
            [json.loads((tmp_path / folder / f"seed-{seed}/run.json").read_text()) for seed in (0, 3)]
        )
    assert [run["perplexity"] for run in runs[0]] == [run["perplexity"] for run in runs[1]]
    assert runs[0][0]["perplexity"] != runs[0][1]["perplexity"]
    assert all(run["perplexity"] < run["words"] / 2 for run in runs[0])
    assert (tmp_path / "one/seed-3/beam.jsonl").read_text() == (
        tmp_path / "two/seed-3/beam.jsonl"
    ).read_text()
    capsys.readouterr()
    found = rerun(
        "decoders", tmp_path / "out", "--data", str(tmp_path / "data"), "--texts", str(tmp_path / "one")
    )
    assert [list(rows) for rows in found["runs"]] == [["beam", "dbs_0.5", "sampling_0.5", "sampling_1.0"]] * 2
    assert found["parameters"]["images"] == 8
    assert [training["seed"] for training in found["trainings"]] == [0, 3]
    assert str(tmp_path) not in json.dumps(found)


@pytest.fixture
def folder(tmp_path):
    """A data folder of three images, and captions of decoders for them that are ever fewer copies of the first."""
    human = [
        "a dog runs on the grass; the brown dog is outside; two cats look at a dog; dogs at play today; one pet alone",
        "a boat at sea in the sun; ships sail past an island; the harbour is quiet now; people wave from a pier; blue",
        "a red bus in the street; cars wait at a light; the city at night glows; many people cross the road; traffic",
    ]
    human = [line.split("; ") for line in human]
    made = tmp_path / "data" / "text"
    made.mkdir(parents=True)
    with gzip.open(made / CAPTIONS.name, "wt", encoding="utf-8") as lines:
        for number, captions in enumerate(human):
            lines.write(json.dumps({"image_id": number, "captions": captions}) + "\n")
    (tmp_path / "texts").mkdir()
    for name, take in [("dbs_0.5", 2), ("dbs_0.10", 1), ("beam", 0)]:
        rows = [
            {"image_id": i, "captions": group[: take + 1] + [group[0]] * (4 - take)}
            for i, group in enumerate(human)
        ]
        (tmp_path / "texts" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_captions_of_another_model(folder):
    found = rerun(
        "decoders", folder / "out", "--data", str(folder / "data"), "--texts", str(folder / "texts")
    )
    (rows,) = found["runs"]
    assert list(rows) == ["beam", "dbs_0.10", "dbs_0.5"]  # by the penalty, not by the letters
    assert [row["images"] for row in rows.values()] == [3, 3, 3]
    for key in ("vs_ngram", "leinster_cobbold"):
        assert rows["beam"][key]["mean"] == pytest.approx(1, abs=1e-4)  # five copies of one text
    assert rows["beam"]["bleu"] == 1  # they were copied from the references
    decided = verdicts(found)
    assert decided["table, decoders"] == "reproduced"
    assert decided["table, quality"] == decided["table, column"] == "not reproduced"
    assert decided["text, distinct captions"] == "not reproduced"
    assert decided["table, penalties"] == "could not be run"
    assert "sampling" not in decided


def test_captions_that_do_not_belong_together(folder, capsys):
    options = ["--data", str(folder / "data"), "--texts", str(folder / "texts")]
    beam = folder / "texts" / "beam.jsonl"
    lines = beam.read_text().splitlines()
    beam.write_text("\n".join([*lines[1:], '{"image_id": 99, "captions": ["a", "b"]}']))
    with pytest.raises(SystemExit, match="99 is not one of COCO"):
        rerun("decoders", folder / "out", *options)
    beam.write_text("\n".join(lines[1:]))
    with pytest.raises(SystemExit, match=r"dbs_0.10.jsonl has other images"):
        rerun("decoders", folder / "out", *options)
    beam.unlink()
    with pytest.raises(FileNotFoundError):
        rerun("decoders", folder / "out", *options)
    assert "no beam.jsonl" in capsys.readouterr().out
    assert list((folder / "out").iterdir()) == []  # the results of before stay


def test_what_is_said_goes_by_the_numbers():
    """The ends of the column and of the text, by made-up rows: found, or said not to be found."""
    names = script("decoders")
    row = {key: {"mean": 1.0} for key in ("ngram_diversity", "vs_ngram", "vs_bleu", "leinster_cobbold")}

    def said(beam, people):
        claims = script("_common")["Claims"]()
        runs = [{"beam": row | {"vs_bleu": {"mean": beam}}, "dbs_0.5": row}]
        for check in ("check_column", "check_distinct"):
            names[check](runs, row | {"vs_bleu": {"mean": people}}, ["beam", "dbs_0.5"], claims)
        return [(record["verdict"], record["measured"].rsplit(". ", 1)[1]) for record in claims.records]

    assert said(2.44, 3.12) == [
        ("reproduced", "Nearest at both ends is VS by BLEU, off by 0%"),
        ("not reproduced", "Both numbers of the text by neither"),
    ]
    assert said(2.9, 4.88) == [
        ("not reproduced", "Nearest at both ends is VS by BLEU, off by 56%: none of them gives both"),
        ("reproduced", "Both numbers of the text by VS by BLEU"),
    ]


@needs_captions
def test_people_are_as_in_the_table_of_readings():
    """The human row of the kept results is near that of all 5,000 images, which captions.py has."""
    kept = {
        name: json.loads((EXPERIMENTS / "results" / f"{name}.json").read_text())
        for name in ("decoders", "captions")
    }
    few, all_of_them = kept["decoders"]["human"], kept["captions"]["human"]
    assert few["images"] == 750
    for key in ("vs_ngram", "vs_bleu"):
        assert few[key]["mean"] == pytest.approx(all_of_them[key]["mean"], abs=0.2)
