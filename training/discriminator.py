"""The critic: judges patches, not the whole face, so that a few hundred pictures cannot be learnt by heart."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm


class PatchDiscriminator(nn.Module):
    """PatchGAN (Isola et al., CVPR 2017) with spectral norm (Miyato et al., ICLR 2018): 46 px seen per answer."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        widths = [3, width, width * 2, width * 4, width * 4]
        self.layers = nn.ModuleList(
            spectral_norm(nn.Conv2d(a, b, 4, stride=2 if i < 3 else 1, padding=1))
            for i, (a, b) in enumerate(zip(widths, widths[1:], strict=False))
        )
        self.last = spectral_norm(nn.Conv2d(widths[-1], 1, 3, padding=1))

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """(N, 3, S, S) → answers (N, 1, h, w), and the features of every layer"""
        features = []
        for layer in self.layers:
            x = nn.functional.leaky_relu(layer(x), 0.2)
            features.append(x)
        return self.last(x), features
