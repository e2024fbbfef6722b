"""A network in training: one step, its averaged weights, its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gpen_zoo.network import GPEN
from training import losses, validation
from training.checkpoint import NAME, Checkpoint
from training.discriminator import PatchDiscriminator
from training.muon import Muon, takes
from training.settings import Settings, lr_at

BETAS, CRITIC_BETAS = (0.9, 0.99), (0.0, 0.99)


@dataclass(frozen=True, kw_only=True)
class Held:
    """Faces kept out of training. worn, truth: uint8 (S, S, 3) each."""

    worn: Sequence[Any]
    truth: Sequence[Any]


class Trainer:
    """A network, its average and its optimisers, one step at a time."""

    def __init__(
        self,
        net: GPEN,
        settings: Settings,
        *,
        teacher: nn.Module | None = None,
        device: torch.device | None = None,
        world: int = 1,
    ) -> None:
        self.device = device or torch.device("cpu")
        self.settings, self.step = settings, 0
        self.net = net.to(self.device).train()
        self.average = GPEN.from_config(net.config).to(self.device).eval().requires_grad_(False)
        self.average.load_state_dict(net.state_dict())
        self.teacher = None if teacher is None else teacher.to(self.device).eval().requires_grad_(False)
        self.critic = PatchDiscriminator().to(self.device) if settings.adversarial else None
        self.optimisers = _optimisers(self.net, settings)
        self.critic_optimiser = (
            None
            if self.critic is None
            else torch.optim.Adam(self.critic.parameters(), lr=settings.critic_lr, betas=CRITIC_BETAS)
        )
        self.where = losses.face_weight(net.config.size, settings.weights.face, self.device)
        self.forward: nn.Module = self.net if world == 1 else DistributedDataParallel(self.net)
        if settings.compile:
            self.forward.compile()
        self.judge: nn.Module | None = self.critic
        if self.critic is not None and world > 1:
            self.judge = DistributedDataParallel(self.critic)

    def train_step(self, worn: Tensor, truth: Tensor) -> float:
        """One optimisation step on (N, 3, S, S) pairs; returns the loss of the network."""
        s = self.settings
        worn, truth = worn.to(self.device), truth.to(self.device)
        lr = lr_at(self.step, s)
        for optimiser in self.optimisers.values():
            _set_rate(optimiser, lr)
        if self.critic_optimiser is not None:
            _set_rate(self.critic_optimiser, lr / s.lr * s.critic_lr)
        with self._autocast():
            made = self.forward(worn.contiguous(memory_format=torch.channels_last))
        made = made.float()
        loss = losses.distortion(made, truth, s.weights, self.where)
        if self.teacher is not None:
            with torch.no_grad(), self._autocast():
                taught = self.teacher(worn).float()
            loss = (1 - s.teaching) * loss + s.teaching * losses.distortion(made, taught, s.weights, self.where)
        if self.judge is not None:
            loss = loss + self._adversarial(made, truth)
        self.net.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        for optimiser in self.optimisers.values():
            optimiser.step()
        self.step += 1
        decay = min(s.average, (1 + self.step) / (10 + self.step))  # a young average would be mostly its start
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.net.parameters()), 1 - decay)
        return float(loss.detach())

    def _adversarial(self, made: Tensor, truth: Tensor) -> Tensor:
        """Trains the critic, and returns what the network is to make of its answer."""
        assert self.judge is not None and self.critic_optimiser is not None
        with self._autocast():
            real, _ = self.judge(truth)
            fake, _ = self.judge(made.detach())
        critic_loss = losses.discriminator_loss(real.float(), fake.float())
        self.critic_optimiser.zero_grad(set_to_none=True)
        critic_loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self.critic_optimiser.step()
        assert self.critic is not None
        self.critic.requires_grad_(False)
        with self._autocast():
            with torch.no_grad():
                _, wanted = self.critic(truth)
            answer, features = self.critic(made)
        self.critic.requires_grad_(True)
        matching = losses.feature_matching([w.float() for w in wanted], [f.float() for f in features])
        s = self.settings
        return s.adversarial * (losses.generator_loss(answer.float()) + s.matching * matching)

    def _autocast(self) -> Any:
        if self.settings.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def validate(self, held: Held) -> tuple[validation.Figures, list[Any]]:
        made = validation.restored(self.average, held.worn)
        return validation.figures(list(zip(made, held.truth, strict=True))), made

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(
            step=self.step,
            config=asdict(self.net.config),
            g=self.net.state_dict(),
            g_ema=self.average.state_dict(),
            d=None if self.critic is None else self.critic.state_dict(),
            optimisers={
                **{name: optimiser.state_dict() for name, optimiser in self.optimisers.items()},
                **({} if self.critic_optimiser is None else {"d": self.critic_optimiser.state_dict()}),
            },
            settings=asdict(self.settings),
        )

    def resume(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint. A critic that it lacks starts afresh: adversarial training may follow distortion.

        ValueError when it is another network's or another optimiser's."""
        if dict(saved.config) != asdict(self.net.config):
            raise ValueError(f"the run that is there trains {dict(saved.config)}, not {asdict(self.net.config)}")
        if saved.optimisers.keys() - {"d"} != self.optimisers.keys():
            raise ValueError(
                f"the run that is there was not trained with {self.settings.optimiser}; its weights can start a new one"
                f" (--init {NAME})"
            )
        self.step = saved.step
        self.net.load_state_dict(saved.g)
        self.average.load_state_dict(saved.g_ema)
        for name, optimiser in self.optimisers.items():
            optimiser.load_state_dict(saved.optimisers[name])
        if self.critic is not None and self.critic_optimiser is not None and saved.d is not None:
            self.critic.load_state_dict(saved.d)
            self.critic_optimiser.load_state_dict(saved.optimisers["d"])


def _set_rate(optimiser: torch.optim.Optimizer, lr: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = lr


def _optimisers(net: GPEN, settings: Settings) -> dict[str, torch.optim.Optimizer]:
    """By their names in a checkpoint. Muon has no rule for vectors, so that it comes with an Adam."""
    muon = [p for p in net.parameters() if settings.optimiser == "muon" and takes(p)]
    taken = {id(p) for p in muon}
    adam = [p for p in net.parameters() if id(p) not in taken]
    found: dict[str, torch.optim.Optimizer] = {"g": torch.optim.Adam(adam, lr=settings.lr, betas=BETAS)}
    return found | ({"muon": Muon(muon, settings.lr)} if muon else {})
