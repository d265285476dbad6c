"""Matrix files for tests: the shipped ones, a minimal one, and what becomes of a text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from headwind.matrix.reader import MatrixError, load_matrix
from headwind.model import Matrix

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = [ROOT / "matrix.yaml", *sorted((ROOT / "experiments").glob("*.yaml"))]
DEFAULT = (ROOT / "matrix.yaml").read_text()
MINIMAL = """
protocols: [h1, h3]
profiles: {clean: {}}
workloads: {page: {requests: 10, connections: 2}}
"""
NAMED = """
protocols: [h1]
profiles: {a: {}, b: {}}
workloads: {x: {requests: 1, connections: 1}, y: {requests: 2, connections: 1}}
"""
FOUR_BLOCKS = """
protocols: [h1, h2, h3]
timeout: 60s
repeat: 2
seed: 7
profiles:
  clean: {}
  loss: {downlink: {loss: 20%}}
workloads:
  small: {requests: 500, connections: 5, streams: 5}
lanes: 1
"""


def load(text: str, folder: Path) -> Matrix:
    """The matrix of a file with this text."""
    file = folder / "matrix.yaml"
    file.write_text(text, encoding="utf-8")
    return load_matrix(file)


def refusal(text: str, folder: Path) -> MatrixError:
    """The error that a file with this text causes."""
    with pytest.raises(MatrixError) as caught:
        load(text, folder)
    return caught.value


def manual_examples() -> list[str]:
    """The matrices in docs/matrix.md: the one of arms, and the one of everything else."""
    return re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/matrix.md").read_text(), re.DOTALL)


def manual_example() -> str:
    """The matrix in docs/matrix.md that has every key of a profile."""
    return manual_examples()[-1]


def lay_out_site(text: str, folder: Path) -> None:
    """Make the files that the paths of a matrix name, in its `content` next to it."""
    for content in re.findall(r"(?m)^content: (\S+)", text):
        for name in ("index.html", *re.findall(r"/([^],]+\.\w+)", text)):
            file = folder / content / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()


def models(of: type[BaseModel]) -> set[type[BaseModel]]:
    """All subclasses of a model, theirs included."""
    return {model for each in of.__subclasses__() for model in ({each} | models(each))}
