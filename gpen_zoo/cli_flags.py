"""The flags of `gpen-zoo restore`, those of the author's script and its forks among them, and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from gpen_zoo.console import complain
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.hints import Lang, note, say
from gpen_zoo.types import Mask, Options, ToneChoice

if TYPE_CHECKING:
    from gpen_zoo.batch_types import Settings

STDOUT = "-"
SCRIPTS_SCALE = 2  # of the author's --use_sr
SMALLEST_TILE = 32  # pixels; less is nearly all overlap


class Replaced(argparse.Action):
    """A flag of the author's script or its forks that is not needed here: accepted, and told what replaces it."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, code: str, nargs: int | None = None) -> None:
        super().__init__(option_strings, dest, nargs=nargs, help=argparse.SUPPRESS)
        self.code = code

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, flag: str | None = None) -> None:
        namespace.replaced = [*getattr(namespace, "replaced", []), note(self.code, flag=flag)]


def add_arguments(to: argparse.ArgumentParser, lang: Lang) -> None:
    """Every flag of the command."""

    def add(*flags: str, words: str, **more: Any) -> None:
        to.add_argument(*flags, help=say(f"cli.{words}", lang), **more)

    add("-i", "--input", "--indir", nargs="+", action="extend", required=True, metavar="FILE|DIR|-", words="input")
    add("-o", "--output", "--outdir", default="output", metavar="DIR|FILE|-", words="output")
    add("-r", "--recursive", action="store_true", words="recursive")
    add("--name", default="{stem}_restored", metavar="PATTERN", words="name")
    add("--ext", "--format", metavar="jpg|png|…", words="ext")
    add("--quality", type=int, metavar="1-100", words="quality")
    add("--strength", "--alpha", default="auto", metavar="0-1|auto", words="strength")
    add("--aligned", action="store_true", words="aligned")
    add("--auto-resize", "--auto_resize", action="store_true", words="auto_resize")
    add("--size", type=int, metavar="PX", words="size")
    add("--faces", metavar="1,3", words="faces")
    add("--box", action="append", metavar="X,Y,W,H", words="box")
    add("--largest", action="store_true", words="largest")
    add("--min-face", type=float, default=0.0, metavar="PX", words="min_face")
    add("--mask", choices=get_args(Mask), default="face", words="mask")
    add("--tone", choices=get_args(ToneChoice), default="auto", words="tone")
    add("--grain", action="store_true", words="grain")
    add("--scale", type=int, metavar="1|2|4", words="scale")
    add("--background", default="auto", metavar="NAME|auto|lanczos", words="background")
    add("--bg-tile", "--bg_tile", "--tile-size", "--tile_size", type=int, default=0, metavar="PX", words="bg_tile")
    add("--save-faces", "--save-face", "--save_face", action="store_true", words="save_faces")
    add("--model", default="auto", metavar="NAME", words="weights_name")
    add("--device", default="auto", words="device")
    add("--use-cuda", "--use_cuda", action="store_true", words="use_cuda")
    add("--precision", choices=("auto", "float32", "float16", "bfloat16"), default="auto", words="precision")
    add("--half", dest="precision", action="store_const", const="float16", words="half")
    add("--accelerate", action="store_true", words="accelerate")
    add("-j", "--jobs", type=int, metavar="N", words="jobs")
    add("--timeout", type=float, metavar="S", words="timeout")
    add("--skip-existing", action="store_true", words="skip_existing")
    add("--no-cache", action="store_true", words="no_cache")
    add("-q", "--quiet", action="store_true", words="quiet")
    add("--json", metavar="REPORT", words="json")
    add("--profile", nargs="?", const=STDOUT, metavar="JSON", words="profile")
    add("--trace", metavar="JSON", words="trace")
    for flags, code, arguments in (
        (("--in_size", "--in-size"), "U21", None),
        (("--out_size", "--out-size"), "U21", None),
        (("--channel_multiplier", "--channel-multiplier"), "U21", None),
        (("--narrow",), "U21", None),
        (("--key",), "U21", None),
        (("--sr_model", "--sr-model"), "U23", None),
        (("-c", "--channels"), "U24", None),
        (("--enhance_face", "--enhance-face"), "U25", 0),
    ):
        to.add_argument(*flags, action=Replaced, code=code, nargs=arguments)
    to.add_argument("--use_sr", "--use-sr", action="store_true", help=argparse.SUPPRESS)
    to.add_argument("--sr_scale", "--sr-scale", type=int, help=argparse.SUPPRESS)
    to.add_argument("--task", default="FaceEnhancement", help=argparse.SUPPRESS)


def settings_of(args: argparse.Namespace) -> Settings:
    """The run's settings. Raises OptionsInvalid for values out of range."""
    from gpen_zoo.batch_types import Settings, default_workers
    from gpen_zoo.image_names import named_format
    from gpen_zoo.options import check_options

    if args.task != "FaceEnhancement":
        raise OptionsInvalid("U26", task=args.task)
    options = Options(
        strength=strength_of(args.strength),
        aligned=args.aligned,
        faces=face_numbers(args.faces),
        boxes=tuple(box_of(text) for text in args.box or ()),
        min_size=args.min_face,
        largest=args.largest,
        mask=args.mask,
        tone=args.tone,
        grain=args.grain,
        scale=scale_of(args),
        background=args.background,
    )
    check_options(options)
    for flag, value, least in (
        ("--size", args.size, 16),
        ("--jobs", args.jobs, 1),
        ("--timeout", args.timeout, 0.1),
    ):
        if value is not None and not least <= value <= 100_000:
            raise OptionsInvalid("U28", flag=flag, value=value, least=least)
    if args.bg_tile and not SMALLEST_TILE <= args.bg_tile <= 100_000:
        raise OptionsInvalid("U41", flag="--bg-tile", value=args.bg_tile, least=SMALLEST_TILE)
    if args.quality is not None and not 1 <= args.quality <= 100:
        raise OptionsInvalid("I18", quality=args.quality)
    chosen = None if args.ext is None else named_format(args.ext)
    if chosen is not None and chosen not in ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "AVIF"):
        raise OptionsInvalid("I16", format=args.ext, known="jpg, png, webp, tif, bmp, avif")
    return Settings(
        options=options,
        timeout=args.timeout,
        workers=args.jobs or default_workers(),
        format=chosen,
        quality=args.quality,
        long_side=args.size,
        auto_resize=args.auto_resize,
        save_faces=args.save_faces,
    )


def device_of(args: argparse.Namespace, lang: Lang) -> str:
    """`--device`, or what the script's `--use_cuda` means where it can be had."""
    if not args.use_cuda:
        return str(args.device)
    import torch

    if torch.cuda.is_available():
        return "cuda:0"
    complain(note("U27"), lang)
    return str(args.device)


def scale_of(args: argparse.Namespace) -> Any:
    """`--scale`, or what the script's `--use_sr` and `--sr_scale` mean; not checked yet."""
    if args.scale is not None:
        return args.scale
    return (args.sr_scale or SCRIPTS_SCALE) if args.use_sr else 1


def face_numbers(text: str | None) -> tuple[int, ...] | None:
    """`1,3` → (1, 3). OptionsInvalid for anything but numbers and commas."""
    if text is None:
        return None
    try:
        return tuple(int(word) for word in text.replace("，", ",").split(",") if word.strip())
    except ValueError:
        raise OptionsInvalid("U04", value=text) from None


def strength_of(text: str) -> float | None:
    """`auto` → None, which is what suits each face. OptionsInvalid for what is no number."""
    try:
        return None if text == "auto" else float(text)
    except ValueError:
        raise OptionsInvalid("U01", value=text) from None


def box_of(text: str) -> tuple[float, float, float, float]:
    """`10,20,300,300` → x, y, width, height in pixels. OptionsInvalid for anything but four numbers."""
    try:
        x, y, width, height = (float(word) for word in text.replace("，", ",").split(","))
    except ValueError:
        raise OptionsInvalid("F60", value=text) from None
    return x, y, width, height
