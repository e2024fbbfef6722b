"""The network equals the author's: names, shapes, and numbers recorded from his own code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from gpen_zoo.network import GPEN, Config

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(__file__).parents[2] / "shared" / "golden"
OFFICIAL = json.loads((GOLDEN / "official-keys.json").read_text())


def load_case(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    with safe_open(path, "pt") as f:
        config = json.loads(f.metadata()["config"])
        tensors = {k: f.get_tensor(k) for k in f.keys()}  # noqa: SIM118 - safe_open is not a dict
    state = {k.removeprefix("state."): v for k, v in tensors.items() if k.startswith("state.")}
    return config, state, tensors["input"], tensors["output"]


@pytest.mark.parametrize("name", sorted(OFFICIAL))
def test_names_and_shapes_are_the_official_ones(name: str) -> None:
    size = int(name.split("-")[-1])
    with torch.device("meta"):
        net = GPEN(256, channel_multiplier=1, narrow=0.5) if size == 256 else GPEN(size)
    ours = {k: list(v.shape) for k, v in net.state_dict().items()}
    assert ours == OFFICIAL[name]


@pytest.mark.parametrize("name", ["parity-64", "parity-128"])
def test_output_equals_the_authors_code(name: str) -> None:
    path = GOLDEN / f"{name}.safetensors"
    if not path.exists():
        path = SHARED / path.name
    if not path.exists():
        pytest.skip("the 128 px case lies beside the project, not in it")
    config, state, given, expected = load_case(path)
    net = GPEN(**config).eval()
    net.load_state_dict(state, strict=True)
    with torch.inference_mode():
        whole = net(given)
        single = torch.cat([net(one[None]) for one in given])
    print("largest difference", float((whole - expected).abs().max()))
    assert torch.allclose(whole, expected, atol=1e-4, rtol=0)
    assert torch.allclose(single, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "config",
    [
        Config(64, 64, 3, 2, 0.0625),
        Config(256, 128, 2, 1, 0.25),
        Config(256, 512, 8, 1, 0.5),
        Config(2048, 512, 8, 2, 1.0),
        Config(32, 32, 1, 2, 0.125),
    ],
)
def test_config_is_read_off_shapes(config: Config) -> None:
    with torch.device("meta"):
        state = GPEN.from_config(config).state_dict()
    assert Config.from_state_dict(state) == config


def test_config_refuses_other_networks() -> None:
    with pytest.raises(ValueError, match="not a GPEN state dict"):
        Config.from_state_dict({"conv_first.weight": torch.zeros(64, 3, 3, 3)})


@pytest.mark.parametrize("size", [0, 8, 100, -64])
def test_impossible_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Config(size)


def test_gradients_reach_every_parameter() -> None:
    net = GPEN(32, style_dim=16, n_mlp=2, narrow=0.0625)
    torch.manual_seed(0)
    for name, parameter in net.named_parameters():
        if name.endswith("noise.weight"):
            torch.nn.init.ones_(parameter)  # at zero, the features' path has no gradient by construction
    net(torch.randn(2, 3, 32, 32)).square().mean().backward()
    assert [n for n, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []
