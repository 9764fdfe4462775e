"""What must come in pairs: detectors and their twins, kernels and references, flags and docs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import typer.main

from slotscope.engine.patches import PATCHES
from slotscope.instrument.cli import build
from slotscope.instrument.event import ENUMS, Op, op_name


def test_every_detector_has_its_twins_and_its_page(root: Path) -> None:
    anomalies = (root / "docs/anomalies.md").read_text()
    for detector in sorted((root / "instrument/detectors").glob("*.sql")):
        tests = root / "tests/instrument/detectors" / f"test_{detector.stem}.py"
        text = tests.read_text()
        missing = [word for word in ("witness", "clean", "blind") if word not in text]
        assert not missing, f"{tests} never asks for a {missing}"
        identity = re.search(r"^-- id: (\w+)", detector.read_text(), re.MULTILINE)
        assert identity is not None
        assert re.search(rf"\b{identity[1]}\b", anomalies), f"{detector.name} has no entry"


def test_every_kernel_has_a_reference_and_a_test(root: Path) -> None:
    for folder in sorted(path.parent for path in (root / "kernels").glob("*/__init__.py")):
        kernels = {
            node.name.removesuffix("_kernel")
            for path in folder.glob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
        }
        assert kernels, f"{folder.name} has no kernel"
        assert (folder / "reference.py").is_file()
        assert list((root / "tests/kernels" / folder.name).glob("test_*.py"))


def test_the_event_page_tells_every_operation(root: Path) -> None:
    page = (root / "docs/events.md").read_text()
    told = {op for op in Op if op_name(op) in page or f"`.{op_name(op).split('.')[-1]}`" in page}
    assert told == set(Op)
    assert set(ENUMS) <= set(re.findall(r"\w+", page)) | {"component", "unit"}


def test_the_readme_names_every_command(root: Path) -> None:
    readme = (root / "README.md").read_text()
    commands = typer.main.get_command(build(None)).commands  # type: ignore[attr-defined]
    assert [name for name in commands if f"slotscope {name}" not in readme] == []


def test_the_docs_name_every_patch(root: Path) -> None:
    docs = "".join(path.read_text() for path in (root / "docs").glob("*.md"))
    assert [name for name in PATCHES if name not in docs] == []
