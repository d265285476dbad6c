"""Two arms of different protocols and different congestion controls: the reader learns that both may be the cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lab
from headwind.matrix.reader import load_matrix
from headwind.model import Matrix
from headwind.report.answer import answer_of
from headwind.report.attribution import whys
from headwind.report.ranking import standings
from headwind.run.data import RunData
from headwind.verdicts.congestion import confounded
from tests.fake import ok_results, recorded

CADDY = "HTTP/3 (caddy) differ in server, nginx and caddy, and in congestion control: CUBIC and New Reno"
DIFFER = "HTTP/2 (bbr) and HTTP/3 differ in congestion control: BBR and CUBIC"


def matrix_of(folder: Path, protocols: str, arms: str, compare: str) -> Matrix:
    text = (
        f"protocols: {protocols}\narms: {arms}\ncompare: {compare}\nrepeat: {{min: 12, max: 60}}\n"
        "timeout: 60s\nprofiles: {clean: {}}\nworkloads: {small: {requests: 10, connections: 1, streams: 10}}\n"
    )
    path = folder / "matrix.yaml"
    path.write_text(text)
    return load_matrix(path)


BBR = "{h2-bbr: {protocol: h2, congestion: bbr}}"


@pytest.mark.parametrize(
    ("protocols", "arms", "compare", "sentences"),
    [
        ("[h3]", BBR, "[[h3, h2-bbr]]", [f"{DIFFER}; add h2: against HTTP/3 it does not"]),
        ("[h2, h3]", BBR, "[[h3, h2-bbr]]", [f"{DIFFER}; HTTP/2 against HTTP/3 does not"]),
        ("[h2, h3]", BBR, "[[h3, h2], [h2-bbr, h2]]", []),  # one protocol, or one congestion control
        (
            "[h2]", "{h3-caddy: {protocol: h3, server: caddy}}", "[[h3-caddy, h2]]",
            [f"HTTP/2 and {CADDY}"],
        ),
        (
            "[h3]", "{h3-caddy: {protocol: h3, server: caddy}}", "[[h3-caddy, h3]]",
            [f"HTTP/3 and {CADDY}"],
        ),
    ],
)  # fmt: skip
def test_protocols_of_different_congestion_controls_are_named_with_the_arm_that_separates_them(
    protocols: str, arms: str, compare: str, sentences: list[str], tmp_path: Path
) -> None:
    assert confounded(matrix_of(tmp_path, protocols, arms, compare)) == sentences


def test_the_congestion_control_of_your_own_server_is_called_unknown(tmp_path: Path) -> None:
    """It was `CUBIC and UNKNOWN`, as if the two differed for sure."""
    arms = "{h2-mine: {protocol: h2, server: mine}, h3-mine: {protocol: h3, server: mine}}"
    own = "\nservers: {mine: {image: my/nginx, protocols: [h2, h3]}}"
    unknown = "in congestion control: CUBIC and unknown"
    assert confounded(
        matrix_of(tmp_path, "[h2, h3]", f"{arms}{own}", "[[h3, h2], [h3-mine, h2], [h3-mine, h3], [h3-mine, h2-mine]]")
    ) == [
        f"HTTP/2 and HTTP/3 (mine) differ in server, nginx and mine, and perhaps {unknown}",
        f"HTTP/3 and HTTP/3 (mine) differ in server, nginx and mine, and perhaps {unknown}",
        "1 more pair of arms differs in the same way",
    ]
    assert confounded(matrix_of(tmp_path, "[h2]", f"{arms}{own}", "[[h3-mine, h2-mine]]")) == [
        f"HTTP/2 (mine) and HTTP/3 (mine) may differ {unknown}"
    ]


def test_validate_and_plan_note_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = matrix_of(tmp_path, "[h3]", BBR, "[[h3, h2-bbr]]").path
    for command in ("validate", "plan"):
        assert lab.main([command, str(path)]) == 0
        assert f"note: {DIFFER}; add h2: against HTTP/3 it does not" in " ".join(capsys.readouterr().out.split())


def test_the_answer_and_the_causes_name_it(tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path, "[h3]", BBR, "[[h3, h2-bbr]]")
    results = [
        replace(each, metrics={**each.metrics, "total_s": 1.0 if each.trial.arm.name == "h3" else 2.0})
        for each in ok_results(matrix)
    ]
    with recorded(tmp_path / "run", matrix, results) as run:
        data = RunData.of(run)
    assert f"{DIFFER}; add h2: against HTTP/3 it does not." in answer_of(data).by_others
    (why,) = whys(data, standings(data))
    assert why.sentences[0].endswith("no cause found; they differ in congestion control: CUBIC and BBR.")
