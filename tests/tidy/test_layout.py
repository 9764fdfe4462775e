"""Size, shape and borders of the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("engine", "instrument", "kernels", "dashboard")
LINES_MAX = 400
FUNCTION_LINES_MAX = 70
BYTES_MAX = 1 << 20
LARGE = {"engine/bundled/model.safetensors"}
"""The bundled weights may be larger than other files."""

MAY_IMPORT = {
    "engine": {"engine", "kernels", "instrument.probe", "instrument.event"},
    "instrument": {"instrument"},
    "instrument/sglang": {"instrument", "kernels"},
    "kernels": {"kernels"},
    "dashboard": {"dashboard", "instrument"},
}
"""Of ours, by folder. Commands are joined by entry points, and processes by the command line."""


def test_no_file_outgrows_its_noun(root: Path, sources: list[Path]) -> None:
    long = {
        str(path.relative_to(root)): lines
        for path in sources
        if (lines := len(path.read_text().splitlines())) > LINES_MAX
    }
    assert not long, f"split these at a noun, {LINES_MAX} lines are the limit"


def test_no_function_outgrows_a_screen(root: Path, sources: list[Path]) -> None:
    long = [
        f"{path.relative_to(root)}:{node.lineno} {node.name}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert not long, f"give their parts names, {FUNCTION_LINES_MAX} lines are the limit"


def test_no_large_file_is_committed(root: Path, files: list[Path]) -> None:
    large = {str(p.relative_to(root)) for p in files if p.stat().st_size > BYTES_MAX}
    assert large <= LARGE


def test_packages_are_those_of_the_folders(root: Path) -> None:
    listed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {"slotscope"} | {
        "slotscope." + ".".join(path.parent.relative_to(root).parts)
        for package in PACKAGES
        for path in (root / package).rglob("__init__.py")
        if "_root" not in path.parts
    }
    assert set(listed) == found


def test_imports_go_one_way(root: Path, sources: list[Path]) -> None:
    wrong = [
        f"{path.relative_to(root)}: {module}"
        for path in sources
        if (allowed := _allowed(path.relative_to(root))) is not None
        for module in _imported(root, path)
        if not any(module == may or module.startswith(may + ".") for may in allowed)
    ]
    assert not wrong


def _allowed(path: Path) -> set[str] | None:
    """What a file may import of ours, by the innermost folder that says so."""
    folders = [str(folder) for folder in path.parents if str(folder) in MAY_IMPORT]
    return MAY_IMPORT[folders[0]] if folders else None


def test_the_probe_needs_numpy_alone(root: Path) -> None:
    """What it imports, and what that imports, is NumPy, the standard library, or as frugal."""
    seen: set[str] = set()
    todo = ["probe"]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        tree = ast.parse((root / "instrument" / f"{name}.py").read_text())
        for node in tree.body:
            for module in _modules(node):
                top = module.split(".")[0]
                assert top not in {"duckdb", "pyarrow", "torch", "typer", "rich"}, (name, module)
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                names = [node.module] if node.module else [each.name for each in node.names]
                todo += [n for n in names if (root / "instrument" / f"{n}.py").is_file()]


def test_no_todo_is_left_behind(root: Path, sources: list[Path]) -> None:
    mark = re.compile(r"\b(TODO|FIXME|XXX)\b")
    here = Path(__file__)
    left = [
        f"{path.relative_to(root)}:{number}"
        for path in sources
        if path != here
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if mark.search(line)
    ]
    assert not left


def _imported(root: Path, path: Path) -> Iterator[str]:
    """What a file imports of ours, without the leading `slotscope.`."""
    for node in ast.walk(ast.parse(path.read_text())):
        for module in _modules(node):
            if module == "slotscope":
                yield "instrument"  # its face: slotscope.open
            elif module.startswith("slotscope."):
                yield from _narrowed(module.removeprefix("slotscope."), node)


def _narrowed(module: str, node: ast.AST) -> Iterator[str]:
    """`from slotscope.instrument import probe` imports `instrument.probe`."""
    if isinstance(node, ast.ImportFrom) and module in PACKAGES:
        yield from (f"{module}.{each.name}" for each in node.names)
    else:
        yield module


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    return []
