"""Which pixel of a face crop is skin, hair, lip…: ParseNet, when its weights are in the zoo.

Source: the parsing network of Chen and others, "Progressive Semantic-Aware Style Transformation for Blind Face
Restoration" (CVPR 2021), in the form that facexlib carries. Only facexlib's *module* is used, with tensors that the zoo
has verified; its loader would download.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from gpen_zoo.errors import WeightWrongKind
from gpen_zoo.types import U8

if TYPE_CHECKING:
    import torch

SIDE = 512  # of the crops it was trained on
CLASSES = 19  # see masks.py


class ParseNet:
    """A parser around facexlib's network; any number of threads may call one object.

    Calling it with a crop uint8 (S, S, 3) RGB in GPEN's alignment gives classes 0-18, uint8 (SIDE, SIDE).
    """

    name = "ParseNet"

    def __init__(self, network: Any, device: str) -> None:
        self._network = network
        self._device = device

    def __call__(self, crop: U8) -> U8:
        import torch

        interpolation = cv2.INTER_AREA if crop.shape[0] > SIDE else cv2.INTER_LINEAR
        shown = cv2.resize(crop, (SIDE, SIDE), interpolation=interpolation)
        with torch.inference_mode():
            batch = torch.from_numpy(shown).to(self._device).permute(2, 0, 1)[None].float().div_(127.5).sub_(1)
            scores, _picture = self._network(batch)
            return np.asarray(scores[0].argmax(0).to(torch.uint8).cpu().numpy(), dtype=np.uint8)


def parsenet_parser(state: dict[str, torch.Tensor], device: str = "cpu") -> ParseNet:
    """A ParseNet with the tensors of `state`, in facexlib's names.

    Nothing is downloaded or written. Errors: WeightWrongKind W05 when names or shapes are those of another network.
    """
    # Importing facexlib takes about 3 s (torchvision, its tracker…), so it waits until a parser is wanted.
    from facexlib.parsing.parsenet import ParseNet as Network

    network = Network(in_size=SIDE, out_size=SIDE, parsing_ch=CLASSES)
    try:
        network.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise WeightWrongKind(
            "W05", file="ParseNet", found=f"{len(state)} tensors of another network", wanted="ParseNet"
        ) from error
    return ParseNet(network.eval().requires_grad_(False).to(device), device)
