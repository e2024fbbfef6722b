"""A run's averaged weights → safetensors in float16 with their origin in the header, a card, and a manifest entry.

    python -m training.export RUN/checkpoint.pt OUT.safetensors --name NAME --data FACES --validation LIST
        [--mix OTHER.pt --share 0.5] [--about TEXT] [--licence SPDX]

The weights of two runs of one network may be mixed (`--share`: the second's): a run for distortion and one that went
on with a critic give something sharper than the first that invents less than the second.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from gpen_zoo.architecture import Config
from gpen_zoo.convert import write
from gpen_zoo.network import GPEN
from gpen_zoo.weightfile import read_state_dict, sha256_of
from training.checkpoint import Checkpoint, load_checkpoint
from training.train import load_network, plainly
from training.validation import Figures, figures, restored, worn_faces


def mixed(a: Mapping[str, Tensor], b: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """(1 - share)·a + share·b, tensor by tensor. ValueError when they are not of one network."""
    if {k: v.shape for k, v in a.items()} != {k: v.shape for k, v in b.items()}:
        raise ValueError("the two runs are not of one network")
    return {name: torch.lerp(value.float(), b[name].float(), share) for name, value in a.items()}


def export(state: Mapping[str, Tensor], target: Path, *, name: str, licence: str, origin: Mapping[str, object]) -> None:
    """Write canonical safetensors in float16. origin: what led to them, kept in the header as JSON."""
    config = Config.from_state_dict(state)
    halved = {key: value.half() for key, value in state.items()}
    if overflowed := [key for key, value in halved.items() if not bool(value.isfinite().all())]:
        raise ValueError(f"out of float16's range: {', '.join(overflowed)}")
    metadata = {
        "format": "pt",
        "name": name,
        "architecture": json.dumps({"family": "GPEN", **asdict(config)}, sort_keys=True),
        "license": licence,
        "dtype": "float16",
        "origin": json.dumps(origin, sort_keys=True),
    }
    write(target, halved, metadata)


def origin_of(runs: list[tuple[Checkpoint, float]], about: str) -> dict[str, object]:
    """Settings and steps of the runs, and their shares."""
    parts = [{"share": share, "step": run.step, "settings": dict(run.settings)} for run, share in runs]
    return {"about": about, "runs": parts}


def table(target: Path, data: Path, names: list[str], wears: tuple[str, ...]) -> list[tuple[str, Figures, Figures]]:
    """Figures before and after the exported file, kind of wear by kind."""
    net = load_network(target).eval()
    rows = []
    for wear in wears:
        worn, truth = zip(*worn_faces(data, names, net.config.size, wear), strict=True)
        after = restored(net, worn)
        rows.append((wear, figures(list(zip(worn, truth, strict=True))), figures(list(zip(after, truth, strict=True)))))
    return rows


def card(target: Path, name: str, licence: str, about: str, rows: list[tuple[str, Figures, Figures]]) -> str:
    """Markdown: what the file is and what was measured."""
    state = read_state_dict(target)
    config = Config.from_state_dict(state)
    lines = [
        f"# {name}",
        "",
        f"GPEN, {config.size} px, narrow {config.narrow:g}, channel_multiplier {config.channel_multiplier}, style_dim "
        f"{config.style_dim}, n_mlp {config.n_mlp}; {sum(v.numel() for v in state.values()):,} values in float16, "
        f"{target.stat().st_size:,} bytes, sha256 `{sha256_of(target)}`.",
        "",
        about,
        "",
        "| wear | PSNR, dB | face, dB | SSIM | detail |",
        "|---|---|---|---|---|",
    ]
    for wear, before, after in rows:
        pairs = [(before.psnr, after.psnr, 2), (before.face, after.face, 2), (before.ssim, after.ssim, 3)]
        cells = [f"{a:.{d}f} → {b:.{d}f}" for a, b, d in pairs]
        cells.append(f"{100 * before.detail:.0f} → {100 * after.detail:.0f} %")
        lines.append(f"| {wear} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Licence of these weights: {licence}.", ""])


def entry(target: Path, name: str, licence: str) -> str:
    """A manifest of this file alone, for GPEN_ZOO_MANIFEST; its blocks may also go into weights_manifest.yaml. Without
    sources, which may be added, `gpen-zoo weights adopt` takes the file at hand."""
    config = Config.from_state_dict(read_state_dict(target))
    architecture = ", ".join(f"{k}: {v}" for k, v in {"family": "GPEN", **asdict(config)}.items())
    fields = {
        "role": "restorer",
        "branch": config.size,
        "file": target.name,
        "architecture": "{" + architecture + "}",
        "bytes": target.stat().st_size,
        "sha256": sha256_of(target),
        "licence": name,
        "alignment": "gpen",
    }
    words = json.dumps(licence)
    return "\n".join(
        [
            "version: 1",
            "licences:",
            f"  {name}: {{spdx: {words}, zh: {words}, en: {words}}}",
            "",
            "weights:",
            f"  - name: {name}",
            *(f"    {key}: {value}" for key, value in fields.items()),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--licence", default="NOASSERTION")
    parser.add_argument("--about", default="", help="a paragraph for the card: data, purpose, limits")
    parser.add_argument("--mix", type=Path, help="checkpoint of another run of the same network")
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--data", type=Path, help="folder of aligned faces, to measure on")
    parser.add_argument("--validation", type=Path)
    parser.add_argument("--wear", nargs="+", default=["standard", "light", "heavy", "print", "chat", "video"])
    args = parser.parse_args()
    with plainly():
        made = _export(args)
    print(made)


def _export(args: argparse.Namespace) -> str:
    first = load_checkpoint(args.checkpoint)
    runs, state = [(first, 1.0)], dict(first.g_ema)
    if args.mix:
        second = load_checkpoint(args.mix)
        runs, state = [(first, 1 - args.share), (second, args.share)], mixed(first.g_ema, second.g_ema, args.share)
    GPEN.from_config(Config.from_state_dict(state)).load_state_dict(state)  # names and shapes, strictly
    export(state, args.target, name=args.name, licence=args.licence, origin=origin_of(runs, args.about))
    rows = []
    if args.data and args.validation:
        rows = table(args.target, args.data, args.validation.read_text().split(), tuple(args.wear))
    text = card(args.target, args.name, args.licence, args.about, rows)
    args.target.with_suffix(".md").write_text(text, encoding="utf-8")
    return text + "\n" + entry(args.target, args.name, args.licence)


if __name__ == "__main__":
    main()
