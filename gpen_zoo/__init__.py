"""gpen_zoo: restore the faces of a whole photo with GPEN.

    import gpen_zoo as gz

    restorer = gz.load()
    result = restorer(gz.read("grandma.jpg"), gz.Options(strength=0.8))
    print([(f.index, f.verdict, gz.say(f.note, "zh")) for f in result.faces])
    gz.write(result.image, "grandma_restored.png")

Names are imported when first used, so that `import gpen_zoo` needs neither torch nor OpenCV.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpen_zoo.errors import Cancelled, GpenError
    from gpen_zoo.hints import Note, say
    from gpen_zoo.image_io import decode, encode, output_name, read, write
    from gpen_zoo.options import options_from_json
    from gpen_zoo.restore import Restorer, blend, load
    from gpen_zoo.types import Face, FaceReport, Image, Options, RestoreResult, Verdict
    from gpen_zoo.zoo import Zoo

__version__ = "0.1.0"

_HOME = {
    "Cancelled": "errors",
    "Face": "types",
    "FaceReport": "types",
    "GpenError": "errors",
    "Image": "types",
    "Note": "hints",
    "Options": "types",
    "RestoreResult": "types",
    "Restorer": "restore",
    "Verdict": "types",
    "Zoo": "zoo",
    "blend": "restore",
    "decode": "image_io",
    "encode": "image_io",
    "load": "restore",
    "options_from_json": "options",
    "output_name": "image_io",
    "read": "image_io",
    "say": "hints",
    "write": "image_io",
}

__all__ = [
    "Cancelled",
    "Face",
    "FaceReport",
    "GpenError",
    "Image",
    "Note",
    "Options",
    "RestoreResult",
    "Restorer",
    "Verdict",
    "Zoo",
    "blend",
    "decode",
    "encode",
    "load",
    "options_from_json",
    "output_name",
    "read",
    "say",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
