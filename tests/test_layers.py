"""Imports point one way, the door is light, and the entry point holds no pixels."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "gpen_zoo"


def rows() -> dict[str, int]:
    """Row of each module, read off the table in ARCHITECTURE.md: `| 2 | `align` `paste` | what they do |`."""
    table = re.findall(r"^\| (\d) \| ((?:`\w+` ?)+)\|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.M)
    return {module: int(row) for row, modules in table for module in re.findall(r"\w+", modules)}


ROW = rows()
ONLY = {
    "PIL": ("image_",),
    "yaml": ("manifest", "share"),
    "gradio": ("page", "service"),
    "spaces": ("zerogpu",),
    "facexlib": ("retinaface", "parse"),
    "argparse": ("cli",),
}


def imports(path: Path) -> set[str]:
    """Dotted names a file imports, those inside functions included, those for type checkers not."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "gpen_zoo":
                names |= {f"gpen_zoo.{alias.name}" for alias in node.names}
            names.add(node.module)
    return names


MODULES = sorted(p.stem for p in PACKAGE.glob("*.py"))


def test_the_table_in_architecture_names_every_module() -> None:
    assert sorted(ROW) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_to_the_same_or_a_lower_row(module: str) -> None:
    for name in imports(PACKAGE / f"{module}.py"):
        if name.startswith("gpen_zoo."):
            other = name.split(".")[1]
            if other in ROW:
                assert ROW[other] <= ROW[module], f"{module} imports {other}"


def test_no_circles() -> None:
    graph = {
        m: {n.split(".")[1] for n in imports(PACKAGE / f"{m}.py") if n.startswith("gpen_zoo.")} & set(MODULES)
        for m in MODULES
    }
    done: set[str] = set()
    while left := [m for m in MODULES if m not in done]:
        free = [m for m in left if graph[m] <= done]
        assert free, f"a circle among {left}"
        done |= set(free)


@pytest.mark.parametrize("library", ONLY)
def test_a_library_is_known_in_few_places(library: str) -> None:
    users = [m for m in MODULES if any(n.split(".")[0] == library for n in imports(PACKAGE / f"{m}.py"))]
    assert [u for u in users if not u.startswith(ONLY[library])] == []


def test_the_entry_point_holds_no_pixels() -> None:
    used = {name.split(".")[0] for name in imports(ROOT / "app.py")}
    assert used <= {"__future__", "os", "gpen_zoo", "spaces"}


@pytest.mark.parametrize("module", ["gpen_zoo", "gpen_zoo.cli"])
def test_the_door_is_light(module: str) -> None:
    heavy = "torch", "gradio", "cv2", "PIL", "facexlib", "huggingface_hub"
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    import gpen_zoo

    assert sorted(gpen_zoo.__all__) == gpen_zoo.__all__ == sorted(gpen_zoo._HOME)
    for name in gpen_zoo.__all__:
        assert getattr(gpen_zoo, name) is not None
    with pytest.raises(AttributeError):
        _ = gpen_zoo.nothing
