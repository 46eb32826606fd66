"""Fetch the scripts that the HTML report carries from npm, check them, and write them beside a manifest.

Run by ``make assets``, after a version below was changed: the files are part of the repository, so that no build and
no report needs a network. It needs npm. Nothing is built: the files are those that npm publishes, less what
`plain_script` changes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src" / "vendimeter" / "reports" / "assets" / "vendor"


@dataclass(frozen=True)
class Script:
    """A published file, and the name it gets here; `module` where it is an ECMAScript module."""

    package: str
    version: str
    path: str
    name: str
    module: bool = False


# In the order in which the page runs them.
SCRIPTS = (
    Script("vega", "6.4.0", "build/vega.min.js", "vega.min.js"),
    Script("vega-lite", "6.4.3", "build/vega-lite.min.js", "vega-lite.min.js"),
    Script("vega-interpreter", "2.3.2", "build/vega-interpreter.js", "vega-interpreter.js", module=True),
)

# What the minified files contain beside packages of the same authors: their notices have to go with them.
BUNDLED = {
    "d3-array": "3.2.5",
    "d3-color": "3.1.1",
    "d3-delaunay": "6.0.6",
    "d3-dispatch": "3.0.2",
    "d3-dsv": "3.0.2",
    "d3-ease": "3.0.2",
    "d3-force": "3.0.1",
    "d3-format": "3.1.3",
    "d3-geo": "3.1.2",
    "d3-geo-projection": "4.0.0",
    "d3-hierarchy": "3.1.3",
    "d3-interpolate": "3.0.2",
    "d3-path": "3.1.1",
    "d3-quadtree": "3.0.2",
    "d3-scale": "4.0.3",
    "d3-scale-chromatic": "3.1.1",
    "d3-shape": "3.2.1",
    "d3-time": "3.1.1",
    "d3-time-format": "4.1.1",
    "d3-timer": "3.0.2",
    "delaunator": "5.1.0",
    "internmap": "2.0.3",
    "json-stringify-pretty-compact": "4.0.0",
    "robust-predicates": "3.0.3",
    "topojson-client": "3.1.0",
    "tslib": "2.8.1",
}

# The first and last lines of the interpreter, which is published as a module only, and what stands for them in a page.
MODULE_LINES = {
    "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';": (
        '(function (vega) {\n"use strict";\nconst { ascending, isString, DisallowedObjectProperties } = vega;'
    ),
    "export { expression as expressionInterpreter };": (
        "vega.expressionInterpreter = expression;\n})(globalThis.vega);"
    ),
}


def main() -> int:
    """Fetch, check and write everything; the exit status."""
    TARGET.mkdir(parents=True, exist_ok=True)
    entries, notices = [], Notices()
    for script in SCRIPTS:
        integrity, files = fetch(script.package, script.version)
        content = plain_script(script, files[script.path].decode("utf-8")).encode("utf-8")
        (TARGET / script.name).write_bytes(content)
        notices.add(script.package, script.version, files)
        entries.append(
            {
                "name": script.name,
                "package": script.package,
                "version": script.version,
                "path": script.path,
                "integrity": integrity,  # of the package, as npm states it
                "sha256": hashlib.sha256(content).hexdigest(),  # of the file as it lies here
                "bytes": len(content),
            }
        )
        print(f"{script.name}: {script.package} {script.version}, {len(content):,} bytes")
    for package, version in BUNDLED.items():
        notices.add(package, version, fetch(package, version)[1])
    licences = notices.text().encode("utf-8")
    (TARGET / "LICENSES.txt").write_bytes(licences)
    manifest = {"scripts": entries, "licences_sha256": hashlib.sha256(licences).hexdigest()}
    (TARGET / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return 0


def fetch(package: str, version: str) -> tuple[str, dict[str, bytes]]:
    """The integrity and the files of a package, once they are found to be what npm says they are."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"{package}@{version}", "--json", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{package} {version} could not be fetched: {done.stderr.strip()}")
        about: dict[str, Any] = json.loads(done.stdout)[0]
        packed = next(Path(folder).iterdir()).read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode("ascii")
    if found != about["integrity"]:
        raise SystemExit(
            f"{package} {version}: {found} came, {about['integrity']} was promised; fetch it again."
        )
    files = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive.getmembers():
            opened = archive.extractfile(member)
            if opened is not None:
                files[member.name.partition("/")[2]] = opened.read()
    return found, files


def plain_script(script: Script, text: str) -> str:
    """A script for the inside of a page: no module, and no source map, for which a browser would look."""
    lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")]
    if script.module:
        missing = [line for line in MODULE_LINES if line not in lines]
        if missing:
            raise SystemExit(
                f"{script.package} {script.version} has no line {missing[0]!r}; see MODULE_LINES."
            )
        lines = [MODULE_LINES.get(line, line) for line in lines]
    text = "\n".join(lines).strip() + "\n"
    for ending in ("</script", "<!--"):
        if ending in text.lower():
            raise SystemExit(
                f"{script.package} {script.version} has {ending!r}, which would end it inside a page."
            )
    return text


class Notices:
    """Licences, each once, with the packages that it is of."""

    def __init__(self) -> None:
        self.packages: dict[str, list[str]] = {}

    def add(self, package: str, version: str, files: dict[str, bytes]) -> None:
        """Take the licence of a package."""
        name = next(
            (name for name in files if name.upper() in ("LICENSE", "LICENSE.TXT", "LICENSE.MD")), None
        )
        if name is None:
            raise SystemExit(f"{package} {version} has no licence among {sorted(files)}.")
        text = "\n".join(line.rstrip() for line in files[name].decode("utf-8").strip().splitlines())
        self.packages.setdefault(text, []).append(f"{package} {version}")

    def text(self) -> str:
        """All of them."""
        parts = [f"{', '.join(names)}\n\n{text}\n" for text, names in self.packages.items()]
        return f"\n{'-' * 72}\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
