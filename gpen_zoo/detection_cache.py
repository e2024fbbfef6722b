"""Faces already found, by the content of the picture: running the same photos again with other settings, or meeting a
photo twice, needs no second search. Bounded in number, oldest use out first; optionally kept on disk between runs."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from gpen_zoo.detect import Found
from gpen_zoo.hints import CATALOGUE, Note
from gpen_zoo.types import Face, Image

log = logging.getLogger(__name__)

VERSION = 1  # raised whenever the search changes what it finds
LIMIT = 20_000  # photos; about 1 kB each


class DetectionCache:
    """Safe from several threads. folder: where entries are kept between runs, None for memory only."""

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self._folder, self._limit = folder, limit
        self._kept: OrderedDict[str, Found] = OrderedDict()
        self._lock = threading.Lock()
        self._written = 0

    @staticmethod
    def key(image: Image, detector: str) -> str:
        """Of pixels, size and detector; 25 ms for 12 megapixels."""
        digest = hashlib.blake2b(f"{VERSION} {detector} {image.pixels.shape}".encode(), digest_size=20)
        digest.update(np.ascontiguousarray(image.pixels).data)
        return digest.hexdigest()

    def get(self, key: str) -> Found | None:
        """What was found, or None."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = None if self._folder is None else _load(self._folder / f"{key}.json")
        if found is not None:
            self._keep(key, found)
        return found

    def put(self, key: str, found: Found) -> None:
        """Keep what was found. A folder that cannot be written costs nothing but the next run's time."""
        self._keep(key, found)
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f".{key}.{os.getpid()}.{threading.get_ident()}.part"
            part.write_text(json.dumps(_to_json(found)), encoding="utf-8")
            os.replace(part, self._folder / f"{key}.json")
            self._written += 1
            if self._written % 500 == 1:
                self._prune()
        except OSError as error:
            log.info("faces are not kept in %s: %s", self._folder, error)

    def _keep(self, key: str, found: Found) -> None:
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)

    def _prune(self) -> None:
        assert self._folder is not None
        entries = sorted(((e.stat().st_mtime, e.path) for e in os.scandir(self._folder)), reverse=True)
        for _, path in entries[self._limit :]:
            Path(path).unlink(missing_ok=True)


def _to_json(found: Found) -> dict[str, Any]:
    return {
        "detector": found.detector,
        "faces": [{"box": f.box, "points": f.points.tolist(), "score": f.score} for f in found.faces],
        "notes": [{"code": n.code, "params": dict(n.params)} for n in found.notes],
    }


def _load(path: Path) -> Found | None:
    """The entry in a file; None when there is none, or none that can be used."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        faces = tuple(
            Face(index=i, box=tuple(f["box"]), points=np.array(f["points"], dtype=float), score=float(f["score"]))
            for i, f in enumerate(data["faces"], 1)
        )
        notes = tuple(Note(n["code"], n["params"]) for n in data["notes"] if n["code"] in CATALOGUE)
        return Found(faces=faces, detector=data["detector"], notes=notes)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.info("%s cannot be used: %s", path, error)
        return None
