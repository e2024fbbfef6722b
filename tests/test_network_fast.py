"""The prepared network is the plain one: parity in every dtype, tiles equal the whole, the source is left alone."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from benchmarks.plain import AuthorStyle
from gpen_zoo.network import GPEN, Config
from gpen_zoo.network_fast import Prepared, prepare

CPU = torch.device("cpu")

CONFIGS = {
    "plain": Config(64, 64, 2, 2, 0.0625),
    "three local stages": Config(128, 32, 2, 2, 0.03125),
    "multiplier 1, half width": Config(64, 128, 3, 1, 0.25),
    "smallest": Config(16, 32, 1, 2, 0.125),
    "wide, no stage local": Config(32, 64, 1, 2, 0.5),
}


def random_net(config: Config, seed: int = 0) -> GPEN:
    """Random weights as training would leave them: noise weights and biases away from zero."""
    torch.manual_seed(seed)
    net = GPEN.from_config(config).eval().requires_grad_(False)
    for name, value in net.named_parameters():
        if name.endswith("noise.weight"):
            value.uniform_(-1, 1)
        elif name.endswith("bias") and "modulation" not in name:
            value.normal_(0, 0.2)
    return net


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


def picture(config: Config, n: int = 1) -> torch.Tensor:
    return torch.rand(n, 3, config.size, config.size, generator=torch.Generator().manual_seed(5)) * 2 - 1


@pytest.mark.parametrize("name", CONFIGS)
def test_float32_equals_the_plain_network_and_the_authors_arithmetic(name: str) -> None:
    config = CONFIGS[name]
    net, x = random_net(config), picture(config, 3)
    expected = net(x)
    result = prepare(net, device=CPU, dtype=torch.float32)(x)
    error = relative(result, expected)
    print(f"{name}: relative error {error:.1e}")
    assert result.dtype == torch.float32 and result.shape == x.shape
    assert error <= 1e-5
    assert relative(AuthorStyle(net.state_dict())(x), expected) <= 1e-5


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 0.02), (torch.float16, 0.003)])
def test_half_precision_stays_close(dtype: torch.dtype, bound: float) -> None:
    config = CONFIGS["three local stages"]
    net, x = random_net(config), picture(config)
    error = relative(prepare(net, device=CPU, dtype=dtype)(x), net(x))
    print(f"{dtype}: relative error {error:.1e}")
    assert error <= bound


@pytest.mark.parametrize("name", [n for n in CONFIGS if not n.startswith("wide")])
def test_tiles_equal_the_whole(name: str) -> None:
    """In float64 to 1e-12, which leaves rounding no room to hide a wrong pixel; in float32 to rounding."""
    config = CONFIGS[name]
    net, x = random_net(config), picture(config, 2)
    exact, fast = prepare(net, device=CPU, dtype=torch.float64), prepare(net, device=CPU, dtype=torch.float32)
    whole, expected = fast(x), exact(x.double())
    sizes = (23, 37, 64) if config.size == 128 else (7, 16, 37, config.size - 1, config.size, 4 * config.size)
    for tile in sizes:
        wrong = float((exact(x.double(), tile=tile) - expected).abs().max())
        rounding = relative(fast(x, tile=tile), whole)
        print(f"{name}, tile {tile}: {wrong:.1e} {rounding:.1e}")
        assert wrong <= 1e-12, tile
        assert rounding <= 1e-6, tile


def test_stages_that_are_local() -> None:
    fast = prepare_named("three local stages")
    assert [stage.side for stage in fast.up if stage.local] == [32, 64, 128]
    assert not any(stage.local for stage in prepare_named("wide, no stage local").up)


def test_tiled_half_equals_whole_half() -> None:
    config = CONFIGS["three local stages"]
    fast, x = prepare(random_net(config), device=CPU, dtype=torch.bfloat16), picture(config)
    assert relative(fast(x, tile=24), fast(x)) <= 1e-3


def test_a_face_does_not_depend_on_its_batch() -> None:
    for name, tile in product(("plain", "wide, no stage local"), (0, 24)):
        fast, x = prepare_named(name), picture(CONFIGS[name], 4)
        alone = torch.cat([fast(one[None], tile=tile) for one in x])
        assert float((fast(x, tile=tile) - alone).abs().max()) <= 1e-5


def test_the_source_network_is_untouched_and_may_be_float16() -> None:
    config = CONFIGS["plain"]
    net, x = random_net(config), picture(config)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    prepare(net, device=CPU, dtype=torch.bfloat16)(x)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    half = random_net(config).half()
    back = random_net(config)
    back.load_state_dict(half.state_dict())
    assert relative(prepare(half, device=CPU, dtype=torch.float32)(x), back(x)) <= 1e-5


def test_a_call_leaves_its_input_alone() -> None:
    config = CONFIGS["plain"]
    x = picture(config)
    before = x.clone()
    prepare_named("plain")(x, tile=24)
    assert torch.equal(x, before)


def prepare_named(name: str) -> Prepared:
    return prepare(random_net(CONFIGS[name]), device=CPU, dtype=torch.float32)
