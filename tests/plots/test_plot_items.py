"""How an item is drawn: pictures in every form, texts as they stand, molecules, vectors, and all else."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from matplotlib.image import AxesImage
from matplotlib.text import Text

import vendimeter as vm
from vendimeter.errors import InputError, UnknownNameError
from vendimeter.kernels import Match, Morgan, Pixels
from vendimeter.plots import draw
from vendimeter.plots.items import Box, item_at, kind_of, wrap_text

PICTURE = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)


def pil():
    from PIL import Image

    return Image.fromarray(PICTURE)


def png():
    buffer = io.BytesIO()
    pil().save(buffer, "PNG")
    return buffer.getvalue()


def tensor():
    return pytest.importorskip("torch").tensor(np.moveaxis(PICTURE, 2, 0))


FORMS = {
    "rows, columns, channels": lambda: PICTURE,
    "channels first": lambda: np.moveaxis(PICTURE, 2, 0),
    "torch": tensor,
    "PIL": pil,
    "bytes": png,
    "record": lambda: {"bytes": png(), "path": None},
    "fractions": lambda: PICTURE / 255,
    "whole numbers": lambda: PICTURE.astype(np.int64),
}


@pytest.mark.parametrize("form", FORMS)
def test_pictures_of_every_form_are_drawn_as_they_are(form, ax):
    item = FORMS[form]()
    assert kind_of(item) == "images"
    image = draw(ax, item)
    assert isinstance(image, AxesImage)
    np.testing.assert_array_equal(image.get_array(), PICTURE)
    left, right, bottom, top = image.get_extent()
    assert (right - left) / (bottom - top) == pytest.approx(8 / 6)  # upright, in its own proportions


def test_files_are_drawn(tmp_path, ax):
    pil().save(tmp_path / "a.png")
    np.testing.assert_array_equal(draw(ax, tmp_path / "a.png").get_array(), PICTURE)
    path = str(tmp_path / "a.png")
    assert kind_of(path) == "texts"  # the library does not guess what a text is …
    assert kind_of(path, Pixels()) == "images"  # … but where the kernel says so
    np.testing.assert_array_equal(draw(ax, path, "images").get_array(), PICTURE)


def test_numbers_of_another_range_are_stretched(ax):
    digits = np.arange(17.0).repeat(2).reshape(17, 2)
    image = draw(ax, digits).get_array()
    assert (image.min(), image.max()) == (0, 255)
    assert draw(ax, 3 * np.ones((2, 2, 3))).get_array().shape == (2, 2, 3)


@pytest.mark.parametrize(
    "wrong", [np.full((3, 3), np.nan), np.zeros((0, 3)), np.zeros((2, 2, 7)), np.full((2, 2), "a")]
)
def test_what_is_no_picture(wrong, ax):
    with pytest.raises(InputError, match="picture"):
        draw(ax, wrong, "images")


@pytest.mark.parametrize(
    "text", [r"$\frac$ and $x_1$", "_x", "<script>alert(1)</script>", "^{", "100% \\", "a & b"]
)
def test_texts_stay_as_they_are(text, ax):
    drawn = draw(ax, text)
    assert isinstance(drawn, Text)
    assert " ".join(drawn.get_text().split()) == text
    assert not drawn.get_parse_math()
    assert not drawn.get_usetex()
    ax.figure.canvas.draw()  # mathematics that is none would be an error here


def test_control_characters_are_shown_as_such(ax):
    assert draw(ax, "a\x1b[31mb\x00").get_text() == "a\\x1b[31mb\\x00"
    assert draw(ax, "two\nlines\t here").get_text() == "two lines here"


def test_letters_that_the_font_lacks_give_its_own_warning_at_most(ax):
    draw(ax, "一只狗 🐕")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ax.figure.canvas.draw()
    assert all("missing from font" in str(warning.message) for warning in seen)


def test_long_texts_fit_their_box(ax):
    text = "word " * 400
    ax.set_xlim(0, 4)
    ax.set_ylim(3, 0)
    drawn = draw(ax, text, box=Box(1, 1, 2, 0.6))
    assert drawn.get_text().endswith("…")
    ax.figure.canvas.draw()
    box = drawn.get_window_extent().transformed(ax.transData.inverted())
    assert box.x0 >= 1 - 0.1
    assert box.x1 <= 3 + 0.1
    assert min(box.y0, box.y1) >= 1 - 0.1
    assert max(box.y0, box.y1) <= 1.6 + 0.1
    short = draw(ax, "word", box=Box(1, 1, 2, 0.6))
    assert short.get_fontsize() > drawn.get_fontsize()


def test_wide_letters_count_twice():
    assert wrap_text("abcdefgh", 4) == ["abcd", "efgh"]
    assert wrap_text("一二三四", 4) == ["一二", "三四"]
    assert wrap_text("", 4) == [""]


def test_molecules_are_drawn_and_what_is_none_is_written(ax):
    pytest.importorskip("rdkit")
    image = draw(ax, "c1ccccc1O", "molecules")
    pixels = np.asarray(image.get_array())
    assert pixels.ndim == 3
    assert (pixels < 128).any()  # bonds on white
    assert (pixels[0, 0] == 255).all()
    other = np.asarray(draw(ax, "CCO", "molecules").get_array())
    assert (other != pixels).any()
    assert draw(ax, "C(C", "molecules").get_text() == "C(C"
    from rdkit import Chem

    np.testing.assert_array_equal(draw(ax, Chem.MolFromSmiles("CCO")).get_array(), other)


def test_vectors_are_strips_of_colours(ax):
    image = draw(ax, np.arange(5.0))
    assert np.asarray(image.get_array()).tolist() == [[0, 1, 2, 3, 4]]
    assert kind_of([1, 2.5]) == "vectors"
    assert np.asarray(draw(ax, [1, 2.5]).get_array()).tolist() == [[1, 2.5]]


def test_everything_else_is_written_in_brief(ax):
    assert draw(ax, {"shape": "round", "price": "$5$"}).get_text() == "shape: round, price: $5$"
    assert draw(ax, ["tag", "$other$"]).get_text() == "tag, $other$"
    assert "object" in draw(ax, object()).get_text()
    assert draw(ax, 3).get_text() == "3"
    assert draw(ax, np.zeros((2, 2, 2, 2))).get_text() == "<ndarray of shape (2, 2, 2, 2)>"


def test_kinds_are_told_by_kernels_and_checked(ax):
    assert kind_of("CCO", 0.5 * Morgan() + 0.5 * vm.kernels.MACCS()) == "molecules"
    assert kind_of("CCO", Match()) == "texts"
    with pytest.raises(UnknownNameError, match="'images'"):
        draw(ax, "x", "image")


def test_one_item_of_any_collection():
    import pandas as pd
    import polars
    import pyarrow
    from scipy import sparse

    table = {"a": [1, 2], "b": ["x", "y"]}
    assert item_at(table, 1) == {"a": 2, "b": "y"}
    assert item_at(pd.DataFrame(table, index=[1, 0]), 1) == {"a": 2, "b": "y"}  # by position, not by name
    assert item_at(polars.DataFrame(table), 1) == {"a": 2, "b": "y"}
    assert item_at(pyarrow.table(table), 1) == {"a": 2, "b": "y"}
    assert item_at(pyarrow.array(["x", "y"]), 1) == "y"
    assert item_at(pd.Series(["x", "y"], index=[7, 8]), 1) == "y"
    assert item_at([{"a": 1}, {"a": 2}], 1) == {"a": 2}
    assert item_at(sparse.csr_array([[0, 1], [2, 0]]), 1).tolist() == [2, 0]
    assert item_at(["x", "y"], 1) == "y"


def test_a_molecule_too_large_to_make_out_is_written(ax):
    pytest.importorskip("rdkit")
    from vendimeter.plots.items import _molecule_pixels
    from vendimeter.reports.items import _formula

    assert _molecule_pixels("C" * 250) is not None
    assert _molecule_pixels("C" * 251) is None
    assert _formula("C" * 251) is None
