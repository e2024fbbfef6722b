"""Training on tiny networks and made-up faces: resumed equals unbroken, two processes equal one, nothing is learnt by
heart from the validation list."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from gpen_zoo.architecture import Config
from gpen_zoo.image_io import write
from gpen_zoo.network import GPEN
from gpen_zoo.types import Image
from training import losses
from training.checkpoint import NAME, load_checkpoint
from training.muon import Muon, orthogonalised
from training.pictures import Faces, Mixture, as_pixels, as_tensor, batches, face_files
from training.settings import OPTIMISERS, Settings, lr_at
from training.train import load_network, main, train
from training.trainer import Trainer
from training.validation import scores

SIZE = 32
ROOT = Path(__file__).parents[1]
TINY = Config(SIZE, 16, 1, 1, 1 / 64)
SETTINGS = Settings(steps=6, batch=2, warmup=2, every=3, precision="float32", wear="standard:1,blur=1-2+jpeg=50-60:1")


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faces")
    random = np.random.default_rng(0)
    for i in range(5):
        coarse = random.integers(0, 255, (6, 6, 3), dtype=np.uint8)
        write(Image(pixels=np.kron(coarse, np.ones((8, 8, 1), np.uint8))), folder / f"face{i}.png")
    return folder


def tiny(seed: int = 0) -> GPEN:
    torch.manual_seed(seed)
    return GPEN.from_config(TINY)


def run(
    output: Path, faces: Path, settings: Settings, stop_after: int | None = None, net: GPEN | None = None
) -> Trainer:
    """As the command line does, but ended after some steps where asked."""
    trainer = Trainer(net or tiny(), settings)
    if (output / NAME).exists():
        trainer.resume(load_checkpoint(output / NAME))
    output.mkdir(parents=True, exist_ok=True)

    class After:
        def __bool__(self) -> bool:
            return stop_after is not None and trainer.step >= stop_after

    train(trainer, face_files(faces), output, workers=0, stop=After())
    return trainer


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("adversarial", [0.0, 0.05])
def test_a_resumed_run_equals_an_unbroken_one(faces: Path, tmp_path: Path, adversarial: float, optimiser: str) -> None:
    settings = replace(SETTINGS, adversarial=adversarial, optimiser=optimiser)
    whole = run(tmp_path / "whole", faces, settings)
    run(tmp_path / "parts", faces, settings, stop_after=4)
    assert load_checkpoint(tmp_path / "parts" / NAME).step == 4
    parts = run(tmp_path / "parts", faces, settings, net=tiny(seed=9))  # its weights come from the checkpoint
    assert parts.step == whole.step == 6
    for of in ("net", "average"):
        a, b = getattr(whole, of).state_dict(), getattr(parts, of).state_dict()
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_sample_depends_on_seed_and_number_alone(faces: Path) -> None:
    files, wear = face_files(faces), Mixture.parse("standard:1,heavy:1")
    first = Faces(files, SIZE, wear, 3, count=20)
    later = Faces(files, SIZE, wear, 3, first=7, count=5)
    assert torch.equal(first[9][0], later[2][0])
    assert torch.equal(first[9][1], later[2][1])
    assert not torch.equal(first[9][0], Faces(files, SIZE, wear, 4, count=20)[9][0])
    # An epoch shows every face once.
    seen = {int(np.random.default_rng([3, 0]).permutation(5)[i]) for i in range(5)}
    assert seen == set(range(5))


def test_processes_share_a_global_batch_without_overlap(faces: Path) -> None:
    files, wear = face_files(faces), Mixture.parse("standard:1")
    one = [w for w, _ in batches(Faces(files, SIZE, wear, 3, count=8), 4, workers=0)]
    two = [
        [w for w, _ in batches(Faces(files, SIZE, wear, 3, count=8), 2, rank=rank, world=2, workers=0)]
        for rank in (0, 1)
    ]
    for step, whole in enumerate(one):
        assert torch.equal(whole, torch.cat([two[0][step], two[1][step]]))


@pytest.mark.parametrize(("optimiser", "lr"), [("muon", 2e-2), ("adam", 5e-3)])
def test_training_comes_nearer_to_the_truth(faces: Path, tmp_path: Path, optimiser: str, lr: float) -> None:
    """A tiny network learns to copy: the loss falls well below that of the first steps."""
    settings = Settings(
        steps=60, batch=4, optimiser=optimiser, lr=lr, warmup=2, every=10, precision="float32", wear="none:1"
    )
    run(tmp_path, faces, settings)
    with (tmp_path / "log.csv").open() as file:
        loss = [float(row["loss"]) for row in csv.DictReader(file)]
    assert len(loss) == 6
    assert loss[-1] < 0.7 * loss[0]
    assert (tmp_path / "curve.png").stat().st_size > 0


def test_the_learning_rate_rises_falls_and_restarts() -> None:
    s = Settings(steps=1200, warmup=200, restarts=1, lr=1.0, lr_end=0.1)
    assert lr_at(0, s) == pytest.approx(1 / 200)
    assert lr_at(200, s) == lr_at(700, s) == 1.0
    assert lr_at(699, s) == pytest.approx(0.1, abs=1e-4)
    assert lr_at(1199, s) == pytest.approx(0.1, abs=1e-4)


@pytest.mark.parametrize("shape", [(3, 16, 40), (2, 40, 16), (1, 8, 72)])
def test_a_step_of_muon_stretches_no_direction_more_than_another(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    u, _, v = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    gradients = u @ torch.diag(torch.logspace(-1, 0.5, min(shape[1:]))) @ v
    after = torch.linalg.svdvals(orthogonalised(gradients))
    assert 0.5 < after.min() < after.max() < 1.4
    assert torch.equal(orthogonalised(torch.zeros(shape)), torch.zeros(shape))


def test_muon_steps_weights_with_more_outputs_than_inputs_too() -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(1, 40, 8, 2, 2))
    before, weight.grad = weight.detach().clone(), torch.randn(1, 40, 8, 2, 2)
    Muon([weight], lr=0.1).step()
    moved = (before - weight.detach()).view(40, 32)
    assert float((moved * weight.grad.view(40, 32)).sum()) > 0
    expected = 0.1 * 0.2 * 40**0.5 * orthogonalised(weight.grad.view(1, 40, 32))[0]
    torch.testing.assert_close(moved, expected, rtol=0.05, atol=1e-3)


def test_muon_takes_the_convolutions_and_adam_the_rest() -> None:
    trainer = Trainer(tiny(), SETTINGS)
    parts = [[p for group in o.param_groups for p in group["params"]] for o in trainer.optimisers.values()]
    assert sum(map(len, parts)) == len({id(p) for part in parts for p in part}) == len(list(trainer.net.parameters()))
    adam, muon = parts
    assert {p.ndim for p in muon} == {4, 5}
    assert trainer.net.generator.to_rgb1.conv.weight.shape[1] == 3
    assert any(p is trainer.net.generator.to_rgb1.conv.weight for p in adam)


def test_the_critic_has_a_rate_of_its_own_that_falls_with_the_networks(faces: Path) -> None:
    trainer = Trainer(tiny(), replace(SETTINGS, adversarial=0.1, lr=1e-2, critic_lr=1e-3))
    trainer.step = 5
    trainer.train_step(torch.zeros(2, 3, SIZE, SIZE), torch.ones(2, 3, SIZE, SIZE))
    lr = lr_at(5, trainer.settings)
    assert trainer.critic_optimiser is not None
    assert lr < 5e-3
    assert trainer.critic_optimiser.param_groups[0]["lr"] == pytest.approx(lr / 10)
    assert [o.param_groups[0]["lr"] for o in trainer.optimisers.values()] == [lr, lr]


def test_bfloat16_training_stays_close_to_float32(faces: Path) -> None:
    worn, truth = (
        torch.stack(x)
        for x in zip(
            *(Faces(face_files(faces), SIZE, Mixture.parse("standard:1"), 1, count=4)[i] for i in range(4)), strict=True
        )
    )
    results = []
    for precision in ("float32", "bfloat16"):
        trainer = Trainer(tiny(), Settings(precision=precision))
        results.append(trainer.train_step(worn, truth))
    assert results[1] == pytest.approx(results[0], rel=0.02)


def test_losses_are_zero_for_the_truth_and_grow_with_the_error() -> None:
    torch.manual_seed(0)
    a, noise = torch.rand(2, 3, 32, 32) * 2 - 1, torch.randn(2, 3, 32, 32)
    for loss in (losses.charbonnier, losses.frequency, losses.coarse, losses.negative_psnr):
        values = [float(loss(a + t * noise, a)) for t in (0, 0.1, 0.2)]
        assert values[0] < values[1] < values[2]
    # 10·log10 of the squared error over the range of 2, that is minus the PSNR.
    off = a + 0.2
    assert float(losses.negative_psnr(off, a)) == pytest.approx(-20.0, abs=0.01)


def test_the_face_counts_more_where_asked() -> None:
    where = losses.face_weight(100, 3.0, torch.device("cpu"))
    a = torch.zeros(1, 3, 100, 100)
    outside, inside = a.clone(), a.clone()
    outside[:, :, :10, :10], inside[:, :, 50:60, 50:60] = 0.5, 0.5
    for loss in (losses.charbonnier, losses.negative_psnr):
        assert loss(inside, a, where) > loss(outside, a, where)
        assert float(loss(inside, a)) == pytest.approx(float(loss(outside, a)))
    assert where is not None
    assert where[0, 0, 50, 50] == 3
    assert where[0, 0, 5, 5] == 1
    assert losses.face_weight(100, 1.0, torch.device("cpu")) is None


def test_pixels_survive_the_way_there_and_back() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert np.array_equal(as_pixels(as_tensor(pixels)), pixels)


def test_the_validation_list_is_kept_out(faces: Path) -> None:
    assert [f.name for f in face_files(faces, without=["face1.png", "face3.png"])] == [
        "face0.png",
        "face2.png",
        "face4.png",
    ]
    with pytest.raises(ValueError, match="no pictures"):
        face_files(faces, without=[f"face{i}.png" for i in range(5)])


def command(faces: Path, output: Path, *more: str, batch: int = 2, workers: int = 0) -> list[str]:
    network = f"--size {SIZE} --style-dim 16 --n-mlp 1 --narrow {1 / 64}"
    flags = f"{network} --steps 4 --batch {batch} --every 2 --workers {workers} --threads 1"
    return ["-m", "training.train", "--data", str(faces), "--output", str(output), *flags.split(), *more]


def test_the_command_line_trains_validates_and_leaves_a_sheet(faces: Path, tmp_path: Path) -> None:
    names = tmp_path / "validation.txt"
    names.write_text("face0.png\n")
    # A worker process too: one that was forked after the first validation hung.
    flags = command(faces, tmp_path / "run", "--validation", str(names), workers=1)
    subprocess.run([sys.executable, *flags], check=True, cwd=ROOT, timeout=300)
    rows = list(csv.DictReader((tmp_path / "run" / "log.csv").open()))
    assert [int(r["step"]) for r in rows] == [2, 4]
    assert all(float(r["psnr"]) > 0 for r in rows)
    assert (tmp_path / "run" / "sheet.jpg").stat().st_size > 0
    net = load_network(tmp_path / "run" / NAME)
    average = load_checkpoint(tmp_path / "run" / NAME).g_ema
    assert all(torch.equal(net.state_dict()[name], average[name]) for name in average)


def test_two_processes_train_together(faces: Path, tmp_path: Path) -> None:
    """torchrun with two processes: the mean of their gradients is the gradient of the whole batch."""
    one, two = tmp_path / "one", tmp_path / "two"
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    whole = command(faces, one, "--precision", "float32", batch=4)
    subprocess.run([sys.executable, *whole], check=True, cwd=ROOT, env=env)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    parts = [*torchrun, *command(faces, two, "--precision", "float32")]
    subprocess.run([sys.executable, *parts], check=True, cwd=ROOT, env=env)
    a, b = load_checkpoint(one / NAME), load_checkpoint(two / NAME)
    assert a.step == b.step == 4
    worst = max(float((a.g[name].float() - b.g[name].float()).abs().max()) for name in a.g)
    assert worst < 1e-3, worst


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--init", "nowhere.safetensors"], "nowhere.safetensors"),
        (["--validation", "nowhere.txt"], "nowhere.txt"),
        (["--wear", "dust:1"], "dust"),
        (["--narrow", "0.0001"], "no channels"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    wrong: list[str], words: str, faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["training.train", *command(faces, tmp_path / "run")[2:], *wrong])
    with pytest.raises(SystemExit, match=words):
        main()
    assert not (tmp_path / "run" / NAME).exists()


def test_another_networks_or_optimisers_run_is_not_gone_on_with(faces: Path, tmp_path: Path) -> None:
    run(tmp_path, faces, SETTINGS)
    saved = load_checkpoint(tmp_path / NAME)
    with pytest.raises(ValueError, match="trains"):
        Trainer(GPEN.from_config(replace(TINY, narrow=1 / 32)), SETTINGS).resume(saved)
    with pytest.raises(ValueError, match="not trained with adam"):
        Trainer(tiny(), replace(SETTINGS, optimiser="adam")).resume(saved)


def test_detail_falls_with_blur_and_is_all_there_in_the_truth() -> None:
    truth = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    shares = [scores(cv2.GaussianBlur(truth, (0, 0), sigma), truth)[3] for sigma in (0.01, 0.6, 1.2)]
    assert shares[0] == pytest.approx(1, abs=1e-3)
    assert shares[0] > shares[1] > shares[2] > 0
