"""Teach a narrower network to do what a wider one does.

    python -m training.distill --teacher WEIGHTS --narrow 0.5 --data FACES --output RUN [--steps N] …

WEIGHTS: a file, or the name of an installed restorer. The student has `--narrow` times the teacher's width, starts from
its strongest channels, and is compared with the teacher's output next to the true picture (`--teaching`: the teacher's
share). All flags of training.train hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from gpen_zoo.zoo import Zoo
from training.narrow import narrowed
from training.pictures import Faces, Mixture, face_files
from training.settings import add_arguments
from training.train import load_network, plainly, run

MEASURED = 16  # faces on which the strength of channels is measured


def teacher_file(name: str) -> Path:
    """A file of that name, else the verified file of an installed weight. Raises what `Zoo.locate` raises."""
    return Path(name) if Path(name).is_file() else Zoo().locate(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--teacher", required=True, help="file, or name of an installed restorer")
    parser.add_argument("--narrow", type=float, default=0.5, help="width of the student, times the teacher's")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with plainly():
        teacher = load_network(teacher_file(args.teacher))
        names = args.validation.read_text().split() if args.validation else []
        files = face_files(args.data, without=names)
        pictures = Faces(files, teacher.config.size, Mixture.parse(args.wear), args.seed, count=MEASURED)
        worn = torch.stack([pictures[i][0] for i in range(MEASURED)])
        student = narrowed(teacher, args.narrow, worn)
    run(args, student, teacher)


if __name__ == "__main__":
    main()
