"""The one place that makes basicsr importable beside a current torchvision.

basicsr 1.4.2, the last release, imports `rgb_to_grayscale` from `torchvision.transforms.functional_tensor`, which
torchvision 0.17 removed; the function itself lives on in `torchvision.transforms.functional`. Nothing else of the
package depends on basicsr being there.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

GONE = "torchvision.transforms.functional_tensor"


def import_basicsr(module: str = "basicsr") -> ModuleType:
    """Import basicsr or one of its modules. ImportError as usual when it is not installed."""
    if GONE not in sys.modules:
        try:
            import_module(GONE)
        except ModuleNotFoundError:
            stand_in = ModuleType(GONE)
            functional = import_module("torchvision.transforms.functional")
            stand_in.rgb_to_grayscale = functional.rgb_to_grayscale  # type: ignore[attr-defined]
            sys.modules[GONE] = stand_in
    return import_module(module)
