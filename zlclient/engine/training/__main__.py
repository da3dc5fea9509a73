"""`python -m zlclient.engine.training`: make the vocabulary, train a generation, export its checkpoint.

The shipped checkpoints took about two CPU-hours each, half of it the common stem; their logs tell each resumption.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..config import GENERATIONS

STEPS = 7000  # of the shipped checkpoints


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m zlclient.engine.training", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    vocabulary = commands.add_parser("vocabulary", help="write the tokenizer")
    vocabulary.add_argument("file", type=Path)
    vocabulary.set_defaults(run=_vocabulary)
    training = commands.add_parser("train", help="train a generation; the same command goes on after a kill")
    training.add_argument("generation", choices=GENERATIONS)
    training.add_argument("folder", type=Path, help="where the state and the log are kept")
    training.add_argument("--stem", type=Path, help="auto: the folder of the legacy run that it branches off")
    training.add_argument("--steps", type=int, default=STEPS, help=f"length of the run (default {STEPS})")
    training.add_argument("--seed", type=int, default=0, help="of the data and the noise (default 0)")
    training.add_argument("--every", type=int, default=100, help="steps between two reports (default 100)")
    training.add_argument("--threads", type=int, default=1, help="PyTorch's threads (default 1)")
    training.set_defaults(run=_train)
    exporting = commands.add_parser("export", help="write a run's checkpoint; auto's thresholds are calibrated")
    exporting.add_argument("generation", choices=GENERATIONS)
    exporting.add_argument("folder", type=Path, help="the run's")
    exporting.add_argument("checkpoint", type=Path, help="the folder to write")
    exporting.set_defaults(run=_export)
    reproducing = commands.add_parser("reproduce", help="train both generations as the shipped ones, and export them")
    reproducing.add_argument(
        "folder", type=Path, help="runs go to FOLDER/runs, checkpoints to FOLDER/legacy and FOLDER/auto"
    )
    reproducing.add_argument("--steps", type=int, default=STEPS, help=f"length of a run (default {STEPS})")
    reproducing.add_argument("--seed", type=int, default=0, help="of the data and the noise (default 0)")
    reproducing.add_argument("--threads", type=int, default=1, help="PyTorch's threads (default 1)")
    reproducing.set_defaults(run=_reproduce)
    curves = commands.add_parser("curves", help="draw the loss, quality and gate curves of a run's log")
    curves.add_argument("log", type=Path)
    curves.add_argument("svg", type=Path)
    curves.set_defaults(run=_curves)
    args = parser.parse_args(argv)
    return args.run(args)


def _vocabulary(args: argparse.Namespace) -> int:
    from .vocabulary import build_tokenizer

    build_tokenizer().save(args.file)
    return 0


def _train(args: argparse.Namespace) -> int:
    import torch

    from .runs import train

    torch.set_num_threads(args.threads)
    train(args.generation, args.folder, steps=args.steps, stem=args.stem, seed=args.seed, every=args.every)
    return 0


def _reproduce(args: argparse.Namespace) -> int:
    import torch

    from .export import export_run
    from .runs import train

    torch.set_num_threads(args.threads)
    runs: Path = args.folder / "runs"
    for generation in GENERATIONS:  # legacy first: auto branches off its stem
        train(generation, runs / generation, steps=args.steps, stem=runs / "legacy", seed=args.seed)
        export_run(generation, runs / generation, args.folder / generation)
    return 0


def _export(args: argparse.Namespace) -> int:
    from .export import export_run

    export_run(args.generation, args.folder, args.checkpoint)
    return 0


def _curves(args: argparse.Namespace) -> int:
    from .curves import draw_curves

    draw_curves(args.log, args.svg)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
