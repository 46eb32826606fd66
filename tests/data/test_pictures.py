"""Pictures of every kind against what a viewer shows of them."""

from __future__ import annotations

import io
import os
import struct
import sys
import threading
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vendimeter.data import pictures as picture_module
from vendimeter.data.devices import to_host
from vendimeter.data.pictures import decode, decode_all, eight_bits, pictures, rgb_image
from vendimeter.errors import EmptyError, InputError, MissingDependencyError

Image = pytest.importorskip("PIL.Image")
ImageCms = pytest.importorskip("PIL.ImageCms")

rng = np.random.default_rng(5)
COLOUR = rng.integers(0, 256, (12, 20, 3), dtype=np.uint8)
GREY = rng.integers(0, 256, (12, 20), dtype=np.uint8)
OPACITY = rng.integers(0, 256, (12, 20), dtype=np.uint8)
SMOOTH = np.array(Image.fromarray(COLOUR[:4, :5]).resize((64, 48), Image.Resampling.BICUBIC))


def tripled(grey: np.ndarray) -> np.ndarray:
    return np.stack([grey] * 3, axis=2)


def on_white(colours: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    part = opacity.astype(float)[..., None] / 255
    return colours * part + 255 * (1 - part)


def saved(image: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, **options)
    return stream.getvalue()


def mode_of(path: Path) -> str:
    with Image.open(path) as image:
        return image.mode


# ---------------------------------------------------------------------------------------------------- ways to pass one


def test_every_way_to_pass_a_picture_gives_the_same_pixels(tmp_path: Path) -> None:
    data = saved(Image.fromarray(COLOUR), format="PNG")
    path = tmp_path / "näme with space.png"
    path.write_bytes(data)
    ways = [
        path, str(path), data, bytearray(data), memoryview(data), Image.open(path), Image.fromarray(COLOUR),
        COLOUR, COLOUR / 255, (COLOUR / 255).astype(np.float32), (COLOUR / 255).astype(np.float16),
        COLOUR.astype(np.uint16) * 257, (COLOUR.astype(np.uint16) * 257).astype(">u2"), np.moveaxis(COLOUR, 2, 0),
        {"bytes": data, "path": None}, {"bytes": None, "path": str(path)}, {"bytes": data, "path": "gone.png"},
        {"path": path}, {"bytes": data},
    ]  # fmt: skip
    for item in ways:
        found = decode(item)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, COLOUR)
        np.testing.assert_array_equal(np.asarray(rgb_image(item)), COLOUR)
    for found in decode_all(ways, None):
        np.testing.assert_array_equal(found, COLOUR)


def test_tensors_have_their_channels_first() -> None:
    torch = pytest.importorskip("torch")
    for item in (torch.tensor(COLOUR).permute(2, 0, 1), torch.tensor(COLOUR / 255).permute(2, 0, 1)):
        np.testing.assert_array_equal(decode(item), COLOUR)
    np.testing.assert_array_equal(decode(torch.tensor(GREY)), tripled(GREY))
    with pytest.raises(InputError, match=r"shape \(12, 20, 3\); expected \(H, W\) or \(C, H, W\)"):
        decode(torch.tensor(COLOUR))


def test_what_is_given_is_not_changed() -> None:
    image = Image.fromarray(np.dstack([COLOUR, OPACITY]))
    before = image.tobytes()
    decode(image, size=5)
    assert (image.mode, image.size, image.tobytes()) == ("RGBA", (20, 12), before)
    array = COLOUR.copy()
    decode(array, size=5)[...] = 0
    decode(array / 255)[...] = 0
    np.testing.assert_array_equal(array, COLOUR)


def test_fractions_are_rounded_and_16_bits_scaled() -> None:
    values = np.arange(256)
    for dtype in (np.float16, np.float32, np.float64):
        np.testing.assert_array_equal(decode((values / 255).astype(dtype)[None])[0, :, 0], values)
    wide = np.arange(65_536, dtype=np.uint16)
    np.testing.assert_array_equal(decode(wide[None])[0, :, 1], np.rint(wide / 257))
    np.testing.assert_array_equal(decode(np.array([[True, False]]))[0, :, 2], [255, 0])
    np.testing.assert_array_equal(decode(GREY[:, :, None]), tripled(GREY))


def test_resizing_is_that_of_pillow() -> None:
    image = Image.fromarray(SMOOTH)
    for item in (SMOOTH, image, saved(image, format="PNG"), SMOOTH / 255):
        np.testing.assert_array_equal(decode(item, size=7), np.asarray(image.resize((7, 7))))
        np.testing.assert_array_equal(decode(item, size=(5, 9)), np.asarray(image.resize((9, 5))))
        np.testing.assert_array_equal(decode(item, size=(48, 64)), SMOOTH)
    grey = Image.fromarray(SMOOTH[..., 0])  # each channel by itself: grey may be resized before it is tripled
    np.testing.assert_array_equal(decode(grey, size=9), np.asarray(grey.convert("RGB").resize((9, 9))))


# -------------------------------------------------------------------------------------------------------------- modes


def test_files_of_every_mode(tmp_path: Path) -> None:
    palette = Image.fromarray(COLOUR).quantize(16)
    bits = GREY > 127
    cases: dict[str, tuple[Any, str, np.ndarray]] = {
        "grey": (Image.fromarray(GREY), "png", tripled(GREY)),
        "grey jpeg2000": (Image.fromarray(GREY), "jp2", tripled(GREY)),
        "colour bmp": (Image.fromarray(COLOUR), "bmp", COLOUR),
        "colour ppm": (Image.fromarray(COLOUR), "ppm", COLOUR),
        "colour tiff": (Image.fromarray(COLOUR), "tiff", COLOUR),
        "palette": (palette, "png", np.asarray(palette.convert("RGB"))),
        "palette gif": (palette, "gif", np.asarray(palette.convert("RGB"))),
        "one bit": (Image.fromarray(bits), "png", tripled(255 * bits.astype(np.uint8))),
        "one bit tiff": (Image.fromarray(bits), "tiff", tripled(255 * bits.astype(np.uint8))),
        "cmyk tiff": (
            Image.fromarray(COLOUR).convert("CMYK"),
            "tiff",
            np.asarray(Image.fromarray(COLOUR).convert("CMYK").convert("RGB")),
        ),
    }
    for name, (image, ending, expected) in cases.items():
        path = tmp_path / f"{name}.{ending}"
        image.save(path)
        np.testing.assert_array_equal(decode(path), expected, err_msg=name)
        if image.mode in ("L", "1"):
            assert picture_module.bands(path).ndim == 2, name


def test_transparency_is_on_white(tmp_path: Path) -> None:
    colour, grey = (
        Image.fromarray(np.dstack([COLOUR, OPACITY])),
        Image.fromarray(np.dstack([GREY, OPACITY]), "LA"),
    )
    for i, (image, flat) in enumerate([(colour, COLOUR), (grey, tripled(GREY))]):
        image.save(tmp_path / f"{i}.png")
        image.save(tmp_path / f"{i}.tiff")
        for item in (image, tmp_path / f"{i}.png", tmp_path / f"{i}.tiff"):
            assert np.abs(decode(item) - on_white(flat, OPACITY)).max() <= 0.5 + 1e-9
    assert np.abs(decode(np.dstack([COLOUR, OPACITY])) - on_white(COLOUR, OPACITY)).max() <= 0.5 + 1e-9
    colour.save(tmp_path / "t.webp", lossless=True, exact=True)
    assert np.abs(decode(tmp_path / "t.webp") - on_white(COLOUR, OPACITY)).max() <= 0.5 + 1e-9
    assert picture_module.bands(grey).ndim == 2
    for mode in ("RGBa", "La"):  # colours that are multiplied by their opacity already
        image = (colour if mode == "RGBa" else grey).convert(mode)
        flat = COLOUR if mode == "RGBa" else tripled(GREY)
        assert np.abs(decode(image) - on_white(flat, OPACITY)).max() <= 1.5


def test_a_palette_with_transparency_and_a_transparent_colour(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[0, 1], [2, 1]], dtype=np.uint8), "P")
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    image.save(tmp_path / "p.png", transparency=bytes([255, 0, 51]))  # opacity of each colour
    faded = [round(v * 0.2 + 255 * 0.8) for v in (70, 80, 90)]
    expected = [[[10, 20, 30], [255, 255, 255]], [faded, [255, 255, 255]]]
    np.testing.assert_array_equal(decode(tmp_path / "p.png"), expected)
    image.save(tmp_path / "p.gif", transparency=1)
    assert decode(tmp_path / "p.gif").tolist() == [[[10, 20, 30], [255] * 3], [[70, 80, 90], [255] * 3]]
    Image.fromarray(np.array([[7, 9]], dtype=np.uint8)).save(tmp_path / "l.png", transparency=9)
    assert decode(tmp_path / "l.png")[0, :, 0].tolist() == [7, 255]
    Image.fromarray(np.array([[True, False]])).save(tmp_path / "1.png", transparency=0)
    assert decode(tmp_path / "1.png")[0, :, 0].tolist() == [255, 255]
    two = np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8)
    Image.fromarray(two).save(tmp_path / "rgb.png", transparency=(1, 2, 3))
    assert decode(tmp_path / "rgb.png").tolist() == [[[255, 255, 255], [4, 5, 6]]]


def test_16_bits_are_scaled_and_not_clipped(tmp_path: Path) -> None:
    deep = np.array([[0, 1000, 30_000], [40_000, 65_000, 65_535]], dtype=np.uint16)
    expected = np.rint(deep / 257)
    Image.fromarray(deep).save(tmp_path / "a.png")
    Image.fromarray(deep).save(tmp_path / "a.tiff")
    Image.fromarray(deep.astype(">u2")).save(tmp_path / "b.tiff")
    assert {mode_of(path) for path in tmp_path.iterdir()} <= {"I", "I;16", "I;16B"}
    for item in (*tmp_path.iterdir(), Image.fromarray(deep.astype(np.int32)), Image.fromarray(deep)):
        np.testing.assert_array_equal(decode(item), tripled(expected))
        assert decode(item, size=1).shape == (1, 1, 3)
    (tmp_path / "a.pgm").write_bytes(b"P5 3 2 65535\n" + deep.astype(">u2").tobytes())
    np.testing.assert_array_equal(decode(tmp_path / "a.pgm"), tripled(expected))
    with pytest.raises(InputError, match="from -1 to 70000; expected 16 bits"):
        decode(Image.fromarray(np.array([[-1, 70_000]], dtype=np.int32)))


def test_16_bit_colour_and_a_transparent_grey(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def png(kind: int, rows: np.ndarray, *more: bytes) -> bytes:
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 16, kind, 0, 0, 0))
        raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
        return (
            b"\x89PNG\r\n\x1a\n"
            + head
            + b"".join(more)
            + chunk(b"IDAT", zlib.compress(raw))
            + chunk(b"IEND", b"")
        )

    deep = rng.integers(0, 65_536, (4, 5, 3))
    found = decode(png(2, deep))
    assert np.abs(found - deep / 257).max() <= 1  # Pillow drops the lower bits
    grey = np.array([[0, 500, 65_535]])
    assert decode(png(0, grey, chunk(b"tRNS", struct.pack(">H", 500))))[0, :, 0].tolist() == [0, 255, 255]


def test_a_picture_of_fractions(tmp_path: Path) -> None:
    values = np.array([[0.0, 0.25, 1.0]], dtype=np.float32)
    Image.fromarray(values).save(tmp_path / "f.tiff")
    assert mode_of(tmp_path / "f.tiff") == "F"
    assert decode(tmp_path / "f.tiff")[0, :, 0].tolist() == [0, 64, 255]
    Image.fromarray(values * 300).save(tmp_path / "g.tiff")
    with pytest.raises(InputError, match=r"g\.tiff.*the value 300; expected fractions from 0 to 1.*/ 255"):
        decode(tmp_path / "g.tiff")


def test_cmyk_jpeg_with_and_without_adobe_marker() -> None:
    image = Image.fromarray(SMOOTH).convert("CMYK")
    data = saved(image, format="JPEG", quality=100, subsampling=0)
    assert np.abs(decode(data).astype(int) - np.asarray(image.convert("RGB"))).max() <= 12
    assert (
        np.abs(decode(data).astype(int) - np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))).max() == 0
    )


def test_lab_and_ycbcr_and_hsv(tmp_path: Path) -> None:
    image = Image.fromarray(SMOOTH)
    srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    turned = ImageCms.applyTransform(image, ImageCms.buildTransform(srgb, lab, "RGB", "LAB"))
    turned.save(tmp_path / "lab.tiff")
    assert mode_of(tmp_path / "lab.tiff") == "LAB"
    for item in (turned, tmp_path / "lab.tiff"):
        assert np.abs(decode(item).astype(int) - SMOOTH).mean() < 4  # out of 255; LAB has 8 bits as well
    for mode in ("YCbCr", "HSV"):
        assert np.abs(decode(image.convert(mode)).astype(int) - SMOOTH).mean() < 2


def test_a_colour_profile_is_ignored() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = saved(Image.fromarray(COLOUR), format="PNG", icc_profile=profile)
    assert Image.open(io.BytesIO(data)).info["icc_profile"]
    np.testing.assert_array_equal(decode(data), COLOUR)


def test_progressive_jpeg() -> None:
    image = Image.fromarray(SMOOTH)
    plain, progressive = (saved(image, format="JPEG", quality=95, progressive=way) for way in (False, True))
    assert plain != progressive
    np.testing.assert_array_equal(decode(progressive), decode(plain))


# ----------------------------------------------------------------------------------------------- frames, and which way


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame(format: str) -> None:
    frames = [Image.fromarray(np.full((6, 8, 3), level, dtype=np.uint8)) for level in (0, 120, 255)]
    lossless = {"lossless": True} if format == "WEBP" else {}
    data = saved(frames[1], format=format, save_all=True, append_images=[frames[0], frames[2]], **lossless)
    assert Image.open(io.BytesIO(data)).n_frames == 3
    np.testing.assert_array_equal(decode(data), np.asarray(frames[1]))


def test_a_gif_of_thousands_of_frames_is_read_no_further_than_the_first(tmp_path: Path) -> None:
    first = saved(Image.fromarray(np.zeros((64, 64), dtype=np.uint8)), format="GIF")
    body = first[: first.rindex(b";")]
    # Each further frame is one byte that no reader gets past, so that looking at any of them would be an error.
    assert (decode(body + b"\xff" * 5000 + b";") == 0).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_upright(orientation: int, tmp_path: Path) -> None:
    upright = SMOOTH
    # What is stored, such that turning it as EXIF says gives the picture: the first row and column of the standard.
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1],
        5: upright.transpose(1, 0, 2), 6: np.rot90(upright, 1), 7: np.rot90(upright.transpose(1, 0, 2), 2),
        8: np.rot90(upright, -1),
    }[orientation]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(np.ascontiguousarray(stored))
    for format, most in (("PNG", 0), ("WEBP", 0), ("TIFF", 0), ("JPEG", 40)):
        options = {"lossless": True} if format == "WEBP" else {"quality": 100} if format == "JPEG" else {}
        data = saved(image, format=format, exif=exif, **options)
        found = decode(data)
        assert found.shape == upright.shape, format
        assert np.abs(found.astype(int) - upright).max() <= most, format
        np.testing.assert_array_equal(decode(Image.open(io.BytesIO(data))), found)
        np.testing.assert_array_equal(
            decode(data, size=(10, 20)), np.asarray(Image.fromarray(found).resize((20, 10)))
        )


def test_broken_exif_data_are_no_reason_to_refuse_a_picture() -> None:
    data = saved(Image.fromarray(SMOOTH), format="JPEG", exif=b"Exif\0\0MM\0\x2a" + b"\xff" * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow may say so, and the user may read it
        np.testing.assert_array_equal(decode(data), np.asarray(Image.open(io.BytesIO(data))))


# ------------------------------------------------------------------------------------------------ what is no picture


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("PNG", {}), ("JPEG", {"quality": 90}), ("JPEG", {"progressive": True}), ("GIF", {}), ("BMP", {}),
        ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("WEBP", {}), ("WEBP", {"lossless": True}), ("PPM", {}),
        ("JPEG2000", {}), ("AVIF", {}),
    ],
)  # fmt: skip
def test_a_file_that_is_cut_short_is_an_error_and_never_half_a_picture(
    format: str, options: dict[str, Any]
) -> None:
    if format == "AVIF" and not pytest.importorskip("PIL.features").check("avif"):
        pytest.skip("this Pillow does not know AVIF")
    data = saved(Image.fromarray(SMOOTH), format=format, **options)
    whole = decode(data)
    refused = []
    for length in sorted(
        {int(len(data) * k / 40) for k in range(40)} | set(range(len(data) - 12, len(data)))
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of tags of TIFF that are missing
            try:
                found = decode(data[:length])
            except InputError as error:
                refused.append(str(error))
            else:  # only what comes after the pixels was cut off
                np.testing.assert_array_equal(found, whole, err_msg=f"{length} of {len(data)} bytes")
    assert len(refused) >= 39
    words = ("cut short", "is empty", "not a picture")
    assert not [message for message in refused if not any(word in message for word in words)]


def test_errors_name_the_file_and_the_item(tmp_path: Path) -> None:
    good = tmp_path / "good.png"
    Image.fromarray(COLOUR).save(good)
    (tmp_path / "half.png").write_bytes(good.read_bytes()[:200])
    for count in (0, 3, 20):
        with pytest.raises(
            InputError, match=rf"^item {count}: the file '.*half\.png' is damaged or cut short"
        ):
            list(decode_all([good] * count + [tmp_path / "half.png"] + [good] * 30, None))
    with pytest.raises(InputError, match=r"^item 1: the picture \(200 bytes\) is damaged or cut short"):
        list(decode_all([good, good.read_bytes()[:200]], None))


def bomb(width: int, height: int) -> bytes:
    """A PNG of a hundred bytes that says it is huge."""
    data = bytearray(saved(Image.fromarray(np.zeros((2, 2), dtype=np.uint8)), format="PNG"))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty; expected a picture"),
        (b"this is a text that someone has called a picture", "begins with b'this is '; expected PNG, JPEG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "not a picture in a known format"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a picture in a known format"),
        (b"\x89PNG\r\n\x1a\n", "damaged or cut short"),
        (b"GIF89a", "damaged or cut short"),
        (b"\xff\xd8\xff\xe0", "damaged or cut short"),
        (b"P6 0 0 255\n", "damaged or cut short"),
        (bomb(20_000, 20_000), "has 20,000 × 20,000 pixels; expected at most 100,000,000"),
        (bomb(2_000_000_000, 1), "expected at most 100,000,000"),
        (bomb(9_800, 9_800), "damaged or cut short"),
    ],
)
def test_files_that_are_no_pictures(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.png"
    path.write_bytes(content)
    for item, what in ((path, r"the file '.*odd\.png'"), (content, "the picture")):
        with pytest.raises(InputError, match=what) as caught:
            decode(item)
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("gone.png", "is not there; expected a picture"),
        ("https://example.org/cat.png", "nothing is fetched from an address"),
        (".", "is a folder; expected a picture. Pass the files in it"),
        (os.devnull, "is no plain file"),
        ("a\0b.png", "expected a picture"),
        ("x" * 5000, "expected a picture"),
        (3, "the item is a int (3); expected the path"),
        (None, "the item is a NoneType"),
        ({}, "expected the path or the bytes"),
        ({"bytes": None, "path": None}, "neither 'bytes' nor a 'path'; expected one of them"),
        ({"url": "x"}, "expected the path or the bytes"),
        ({"bytes": 3}, "the item is a dict"),
        ([[1, 2], [3, 4]], "the item is a list"),
        (np.zeros((5, 5, 2), dtype=np.uint8), "shape (5, 5, 2); expected"),
        (np.zeros(4, dtype=np.uint8), "shape (4,); expected"),
        (np.zeros((0, 4), dtype=np.uint8), "at least one pixel"),
        (np.zeros((4, 4), dtype=np.int64), "array of int64; expected uint8"),
        (np.zeros((4, 4), dtype=complex), "array of complex128; expected uint8"),
        (np.full((4, 4), 255.0), "holds the value 255; expected fractions from 0 to 1. Pass pixels / 255"),
        (np.full((4, 4), -0.5), "holds the value -0.5; expected fractions"),
        (np.full((4, 4), np.nan), "holds the value nan; expected fractions"),
        (np.array([["a"]]), "expected uint8"),
    ],
)  # fmt: skip
def test_items_that_are_no_pictures(item: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        decode(item)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        decode(str(tmp_path / "\x1b[31mred\n.png"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("size", [0, -1, 2.5, "32", (1, 2, 3), (0, 4), True, [3]])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(InputError, match="size="):
        decode(COLOUR, size=size)


def test_large_pictures_warn_of_nothing_and_no_setting_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Warnings are errors here. With Pillow's limit at 30 pixels, 40 are as large to it as 120 million are.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30)
    before = list(warnings.filters)
    small = Image.fromarray(COLOUR[:4, :10])
    for format in ("PNG", "TIFF", "GIF", "WEBP", "BMP", "PPM", "JPEG"):
        assert decode(saved(small, format=format)).shape == (4, 10, 3)
    assert warnings.filters == before
    assert Image.MAX_IMAGE_PIXELS == 30
    with pytest.raises(InputError, match="too large"):  # formats in which Pillow looks at its limit itself
        decode(saved(Image.fromarray(COLOUR), format="TIFF"))
    monkeypatch.setattr(picture_module, "LARGEST", 39)
    with pytest.raises(InputError, match="10 × 4 pixels; expected at most 39"):
        decode(saved(small, format="PNG"))


def test_only_plain_formats_are_read(tmp_path: Path) -> None:
    assert not {"EPS", "PS", "WMF", "PDF", "FITS"} & set(picture_module.FORMATS)
    for ending in ("eps", "pdf", "ico", "tga"):
        Image.fromarray(COLOUR).save(tmp_path / f"a.{ending}")
        with pytest.raises(InputError, match="not a picture in a known format"):
            decode(tmp_path / f"a.{ending}")


def test_without_pillow_arrays_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    np.testing.assert_array_equal(decode(COLOUR), COLOUR)
    for item, size in ((b"\x89PNG", None), (COLOUR, 3)):
        with pytest.raises(MissingDependencyError, match=r"pip install 'vendimeter\[images\]'"):
            decode(item, size=size)


# -------------------------------------------------------------------------------------------------------- collections


def test_threads_keep_the_order_and_stop_when_nobody_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_module, "WORTH", 0.0)  # threads whatever the time
    paths = []
    for i in range(60):
        Image.fromarray(np.full((3, 3), i, dtype=np.uint8)).save(tmp_path / f"{i}.png")
        paths.append(tmp_path / f"{i}.png")
    mixed: list[Any] = [Image.open(path) if i % 3 == 0 else path for i, path in enumerate(paths)]
    assert [int(found[0, 0]) for found in decode_all(mixed, None)] == list(range(60))
    assert [int(found[0, 0]) for found in decode_all(paths * 2, (1, 1))] == [*range(60)] * 2
    looking = decode_all(paths, None)
    for _ in range(20):
        next(looking)
    assert any(thread.name.startswith("pictures") for thread in threading.enumerate())
    looking.close()
    assert not any(thread.name.startswith("pictures") for thread in threading.enumerate())


def test_arrays_of_pictures() -> None:
    batch = rng.integers(0, 256, (5, 12, 20, 4), dtype=np.uint8)
    for given, expected in [
        (batch[..., :3], batch[..., :3]),
        (np.moveaxis(batch[..., :3], 3, 1), batch[..., :3]),
        (batch[..., 0], batch[..., 0]),
        (batch[..., :1], batch[..., 0]),
        (batch[..., :3] / 255, batch[..., :3]),
        (batch[..., :3].astype(np.uint16) * 257, batch[..., :3]),
        (batch[..., 0] > 9, 255 * (batch[..., 0] > 9).astype(np.uint8)),
        (batch, np.stack([decode(picture) for picture in batch])),
    ]:
        np.testing.assert_array_equal(eight_bits(pictures(given)), expected)
    assert np.shares_memory(eight_bits(pictures(batch[..., :3])), batch)  # no copy of what is right already


def test_arrays_of_every_library(library: Any) -> None:
    batch = rng.integers(0, 256, (5, 6, 7, 4), dtype=np.uint8)
    first = library.name.startswith("torch")
    for given in (batch, batch[..., :3], batch[..., :3] / 255, batch[..., :1]):
        expected = eight_bits(pictures(given))
        found = eight_bits(pictures(library.array(np.moveaxis(given, 3, 1) if first else given)))
        np.testing.assert_array_equal(to_host(found), expected)


def test_a_wrong_value_in_an_array_of_pictures_has_a_place() -> None:
    batch = np.full((40, 100, 100), 0.5)
    batch[33, 2, 2] = 1.5
    with pytest.raises(InputError, match=r"^item 33: the picture holds the value 1\.5"):
        eight_bits(pictures(batch))


def test_columns_of_frames(tmp_path: Path) -> None:
    data = saved(Image.fromarray(COLOUR), format="PNG")
    (tmp_path / "a.png").write_bytes(data)
    path = str(tmp_path / "a.png")
    columns: list[Any] = [np.array([path, path]), np.array([data, COLOUR], dtype=object), (path, data)]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    columns += [pandas.Series([path, data]), polars.Series([path, path]), pyarrow.array([data, data])]
    columns += [
        pyarrow.array([{"bytes": data, "path": None}] * 2),
        polars.Series([{"bytes": data, "path": "x"}] * 2),
    ]
    for column in columns:
        items = pictures(column)
        assert isinstance(items, list | tuple)
        assert len(items) == 2
        for item in items:
            np.testing.assert_array_equal(decode(item), COLOUR)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ("folder", "'folder', a single picture; expected a collection"),
        (b"...", "a bytes, a single picture"),
        (Path("x.png"), "a single picture"),
        (Image.fromarray(COLOUR), "a Image, a single picture"),
        ({"bytes": b"", "path": ""}, "a single picture"),
        ({"image": [], "label": []}, "which column"),
        (GREY, "shape (12, 20), a single grey picture or rows of vectors"),
        (COLOUR[None, None], "expected pictures of shape (n, H, W)"),
        (np.zeros((3, 5, 6, 7), dtype=np.uint8), "with C = 1, 3 or 4"),
        (np.zeros((3, 0, 6), dtype=np.uint8), "at least one pixel"),
        (7, "without a length"),
    ],
)
def test_collections_that_are_none(samples: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        pictures(samples)
    assert words in str(caught.value)


def test_three_axes_are_grey_pictures_however_many() -> None:
    torch = pytest.importorskip("torch")
    for n in (1, 2, 3, 4, 5):
        assert pictures(torch.zeros(n, 8, 3)).shape == (n, 8, 3)
        assert pictures(np.zeros((n, 8, 3), dtype=np.uint8)).shape == (n, 8, 3)
    with pytest.raises(InputError, match=r"samples\.permute\(0, 3, 1, 2\)"):
        pictures(torch.zeros(9, 8, 8, 3))


def test_nothing() -> None:
    for samples in ([], (), np.zeros((0, 4, 4), dtype=np.uint8)):
        with pytest.raises(EmptyError):
            pictures(samples)


def test_bands_of_a_large_picture_make_up_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (37, 20, 4), dtype=np.uint8)
    deep = rng.integers(0, 65_536, (37, 20), dtype=np.uint16)
    images = {
        mode: Image.fromarray(colours).convert(mode) for mode in ("RGB", "RGBA", "L", "LA", "P", "CMYK", "1")
    }
    images |= {"I;16": Image.fromarray(deep), "F": Image.fromarray(rng.random((37, 20)).astype(np.float32))}
    clear = images["P"].copy()
    clear.info["transparency"] = 3
    images["P with a clear colour"] = clear
    whole = {mode: decode(image) for mode, image in images.items()}
    monkeypatch.setattr(picture_module, "BAND", 60)
    for mode, image in images.items():
        np.testing.assert_array_equal(decode(image), whole[mode], err_msg=mode)


def test_so_many_pixels_are_read_at_a_time_by_all_threads() -> None:
    budget, inside, most = picture_module._PixelBudget(100), [], []
    lock = threading.Lock()

    def take(pixels: int) -> None:
        with budget.reserve(pixels):
            with lock:
                inside.append(pixels)
                most.append(sum(inside))
            time.sleep(0.002)
            with lock:
                inside.remove(pixels)

    threads = [threading.Thread(target=take, args=(pixels,)) for pixels in (30, 40, 50, 60, 100, 20, 99) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 100
    assert len(most) == 21
    with budget.reserve(1000):  # what is larger than the budget waits for all of it
        pass


def test_formats_that_are_held_several_times_have_a_limit_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(picture_module, "LARGEST_WIDE", 39)
    small = Image.fromarray(COLOUR[:4, :10])
    assert decode(saved(small, format="PNG")).shape == (4, 10, 3)
    with pytest.raises(InputError, match="10 × 4 pixels; expected at most 39"):
        decode(saved(small, format="WEBP"))
