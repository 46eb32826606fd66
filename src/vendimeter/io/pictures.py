"""A folder of pictures: their paths, with the subfolders as labels."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from vendimeter.data.collection import Broken, Place
from vendimeter.errors import EmptyError, InputError
from vendimeter.io.base import Part, Reader
from vendimeter.io.sources import File
from vendimeter.present.text import printable

__all__ = ["ENDINGS", "PictureFile", "PictureFolder"]

ENDINGS = frozenset([
    ".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm",
    ".pgm", ".pbm", ".pnm", ".avif", ".jp2", ".j2k", ".jpx", ".jpf",
])  # fmt: skip
# Pictures too, of forms that are not decoded: to pass over them would be to score another collection.
_UNREAD = frozenset([
    ".heic", ".heif", ".hif", ".jxl", ".jxr", ".jls", ".svg", ".svgz", ".psd", ".psb", ".xcf", ".kra",
    ".tga", ".pcx", ".dds", ".ico", ".cur", ".icns", ".eps", ".ai", ".emf", ".wmf", ".exr", ".hdr", ".pfm",
    ".pam", ".qoi", ".fits", ".dcm", ".dib", ".sgi", ".xbm", ".xpm", ".raw", ".dng", ".cr2", ".cr3", ".crw",
    ".nef", ".nrw", ".arw", ".srf", ".sr2", ".orf", ".rw2", ".raf", ".pef", ".srw", ".x3f", ".3fr", ".erf",
    ".kdc", ".mrw",
])  # fmt: skip
_PICTURES = ENDINGS | _UNREAD
# What operating systems leave behind, beside hidden files.
_SYSTEM = frozenset(["__MACOSX", "Thumbs.db", "desktop.ini"])
_TABLES = frozenset(
    [".parquet", ".pq", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".txt", ".npy", ".npz"]
)


class PictureFolder(Reader):
    """The pictures of a folder and its subfolders, in order of their names.

    Columns are "image" (the path; it is decoded where it is compared), "label" (the subfolder, or the folder itself for
    pictures that lie in it) and "id" (the path below the folder). Hidden files are left out. Links to files in the
    folder are followed, links that lead out of it are not; a linked folder is read where it lies. A picture of a form
    that is not read, such as .heic, is a broken record; what is no picture is passed over. Where broken records are
    left out, every picture is decoded once to find out.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name in ("cats/b.png", "cats/a.JPG", "c.gif"):
    ...     path = Path(folder.name, name)
    ...     path.parent.mkdir(exist_ok=True)
    ...     path.touch()
    >>> part = next(PictureFolder(File.of(folder.name), Broken()).parts(["id", "label"], 10))
    >>> part.columns["id"], part.columns["label"][1:]
    (['c.gif', 'cats/a.JPG', 'cats/b.png'], ['cats', 'cats'])
    >>> folder.cleanup()
    """

    samples: str | None = "image"
    label: str | None = "label"
    id: str | None = "id"
    kind: str | None = "images"

    def __init__(self, file: File, broken: Broken):
        super().__init__(file, broken)
        if file.path is None or not file.is_folder:
            raise InputError(f"{file} is not a folder; expected a folder of pictures.")
        self._folder = file.path

    def names(self) -> list[str]:
        """The columns; "folder" is another name of "label"."""
        return ["image", "label", "id", "folder"]

    def missing_column_error(self, name: str) -> InputError:
        """The error for another column: it may be that the folder holds tables."""
        self._found()
        return super().missing_column_error(name)

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """Parts with these columns."""
        columns_read = self.names() if columns is None else list(columns)
        pictures = self._found()
        for start in range(0, len(pictures), size):
            names = [name for name in pictures[start : start + size] if self._is_usable(name)]
            if names:
                yield Part(
                    {column: _column_values(column, names, self._folder) for column in columns_read},
                    self._place_of(names),
                )

    def _place_of(self, names: Sequence[tuple[str, ...]]) -> Callable[[int], Place]:
        return lambda i: self._place(names[i])

    def _place(self, name: tuple[str, ...]) -> Place:
        path = printable(self._folder.joinpath(*name))
        return Place(repr(path), source=path)

    def _is_usable(self, name: tuple[str, ...]) -> bool:
        path, ending = self._folder.joinpath(*name), _ending(name[-1])
        if ending in _UNREAD and not path.is_dir():
            self.broken.add(
                self._place(name),
                f"is a picture of a form that is not read ({ending})",
                "Convert it to .png, or take it out of the folder.",
            )
            return False
        if path.is_symlink():
            if not path.exists():
                self.broken.add(self._place(name), "is a link to nothing")
                return False
            if not path.resolve().is_relative_to(self._folder.resolve()):
                self.broken.add(
                    self._place(name),
                    "is a link out of the folder",
                    "Such links are not followed; copy the file here.",
                )
                return False
            if path.is_dir():  # its pictures are read where they lie
                return False
        if self.broken.skip:
            from vendimeter.data.pictures import decode

            try:
                decode(path)
            except InputError as error:
                self.broken.add(self._place(name), f"cannot be decoded: {str(error).rstrip('.')}")
                return False
        return True

    def _found(self) -> list[tuple[str, ...]]:
        """The pictures, and the links to folders, by the names of the folders that they lie in and their own."""
        pictures: list[tuple[str, ...]] = []
        other_endings: Counter[tuple[str, bool]] = Counter()  # endings as written, and whether in a subfolder
        folders_left: list[tuple[str, ...]] = [()]
        while folders_left:
            folder_names = folders_left.pop()
            for entry in self._entries(folder_names):
                path = (*folder_names, entry.name)
                if entry.name.startswith(".") or entry.name in _SYSTEM:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders_left.append(path)
                elif _ending(entry.name) in _PICTURES or (entry.is_symlink() and entry.is_dir()):
                    pictures.append(path)
                else:
                    other_endings[Path(entry.name).suffix, bool(folder_names)] += 1
        endings = Counter(_ending(path[-1]) for path in pictures)
        unread = sum(endings[ending] for ending in _UNREAD)
        tables = sum(count for (ending, _), count in other_endings.items() if ending.lower() in _TABLES)
        # Shards may well come with a logo, and photographs with a table.
        if not endings.keys() & ENDINGS and (not unread or tables >= unread):
            raise self._no_pictures_error(other_endings)
        # The order of a folder is that of its file system; this one is the same everywhere.
        return sorted(pictures)

    def _entries(self, names: tuple[str, ...]) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder.joinpath(*names)) as entries:
                return list(entries)
        except OSError as error:
            raise InputError(
                f"{self._place(names)} could not be opened: {printable(error.strerror or error)}. Mend its "
                "permissions, or take it out of the folder."
            ) from None

    def _no_pictures_error(self, others: Counter[tuple[str, bool]]) -> EmptyError:
        count = others.total()
        if not count:
            return EmptyError(
                f"{self.file} is an empty folder; expected pictures, such as .png or .jpg files."
            )
        endings: Counter[str] = Counter()
        for (ending, _), number in others.items():
            endings[ending] += number
        kinds = ", ".join(printable(ending) or "no ending" for ending, _ in endings.most_common(5))
        table = next((ending for ending, _ in endings.most_common() if ending.lower() in _TABLES), None)
        advice = ""
        if table is not None:
            pattern_parts = ("**", f"*{table}") if others[table, True] else (f"*{table}",)
            pattern = Path(glob.escape(os.fspath(self._folder)), *pattern_parts)
            advice = f" Read them with the pattern {printable(pattern)!r}."
        files = "1 file, not" if count == 1 else f"{count:,} files, none of them"
        return EmptyError(
            f"{self.file} has {files} a picture: {kinds}; expected .png, .jpg and their like.{advice}"
        )


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _column_values(column: str, names: Sequence[tuple[str, ...]], folder: Path) -> list[str] | list[Path]:
    if column == "image":
        return [folder.joinpath(*name) for name in names]
    folder_name = folder.resolve().name
    return ["/".join(name) if column == "id" else name[0] if len(name) > 1 else folder_name for name in names]


class PictureFile(Reader):
    """A single picture, named by itself or by a pattern; its label is the name of its folder.

    Examples
    --------
    >>> part = next(PictureFile(File.of("photos/cats/a.png"), Broken()).parts(["id", "label"], 10))
    >>> part.columns
    {'id': ['a.png'], 'label': ['cats']}
    """

    samples: str | None = "image"
    label: str | None = "label"
    id: str | None = "id"
    kind: str | None = "images"

    def names(self) -> list[str]:
        """The columns of a folder."""
        return ["image", "label", "id", "folder"]

    def parts(self, columns: Sequence[str] | None, size: int) -> Iterator[Part]:
        """The one record."""
        path = self.file.path
        if path is None:
            raise InputError("standard input was said to be a picture; expected the path of one.")
        if self.broken.skip:
            from vendimeter.data.pictures import decode

            try:
                decode(path)
            except InputError as error:
                self.broken.add(str(self.file), f"cannot be decoded: {str(error).rstrip('.')}")
                return
        folder = path.resolve().parent.name
        values = {"image": path, "label": folder, "id": path.name, "folder": folder}
        columns_read = self.names() if columns is None else columns
        yield Part(
            {name: [values[name]] for name in columns_read},
            lambda _: Place(str(self.file), source=self.file.name),
        )
