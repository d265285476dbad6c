"""Filmstrips of captured pages: the same moments for all, and for each the last picture before it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from headwind.arm import H2, H3
from headwind.model import Outcome
from headwind.report.html.films import JPEG, films, moments
from headwind.run.captures import FILM, MOST_FRAME_BYTES, CapturedTrial, _film


def trial(**film: bytes) -> CapturedTrial:
    return CapturedTrial(
        "c", "h2", Outcome.OK, "", {}, film={int(name[1:]) / 1000: each for name, each in film.items()}
    )


def address(picture: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"


def test_each_moment_shows_the_last_picture_before_it() -> None:
    first, second, other = (JPEG + each for each in (b"1", b"2", b"3"))
    found = films([(H2, trial(_150=first, _320=second)), (H3, trial(_200=other, _390=b"no picture"))])
    assert found is not None
    assert found.moments_s == (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
    h2, h3 = found.strips
    assert h2.pictures == ("", "", *[address(first)] * 4, *[address(second)] * 2)
    assert h3.pictures == ("", "", "", *[address(other)] * 5)


def test_trials_without_pictures_have_no_film() -> None:
    assert films([(H2, trial())]) is None
    assert films([(H2, trial(_5=b"<svg onload=alert(1)>"))]) is None


@pytest.mark.parametrize(("end_s", "count", "last_s"), [
    (0.0, 5, 0.001), (0.337, 7, 0.35), (0.8, 8, 0.8), (1.0, 5, 1.0), (7.9, 8, 8.0), (8.1, 5, 10.0), (3600.0, 8, 4000.0),
])  # fmt: skip
def test_moments_are_few_and_reach_the_end(end_s: float, count: int, last_s: float) -> None:
    found = moments(end_s)
    assert len(found) == count
    assert found[-1] == pytest.approx(last_s)


def test_what_is_no_picture_of_a_film_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / FILM
    folder.mkdir()
    (folder / "000010.jpg").write_bytes(JPEG)
    (folder / "000020.jpg").write_bytes(JPEG + bytes(MOST_FRAME_BYTES))
    (folder / "later.jpg").write_bytes(JPEG)
    (folder / "000030.html").write_bytes(JPEG)
    (folder / "000040.jpg").mkdir()
    assert _film(folder) == {0.01: JPEG}
    assert _film(tmp_path / "none") == {}
