"""Injects faults at random moments into runs on real containers, and prints a table of what came of them.

    .venv/bin/python bench/faults.py [--faults 200] [--seed 1] [--scene "one lane"] [--write docs/trust.md]

The runs (tests/faults/scenes.py) have one and four lanes, every server, browser and kind of workload; each is resumed
after a fault that ends it. After each fault: every attempt on record is still there and unchanged, no trial that was
hit has a wrong result, the lab went on, or ended with a reason, nothing is left of one that ended, and nothing had to
be killed. Exits with 1 if not. Needs root, for a separate disk and the processes in containers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headwind.testbed.images import ensure_images, needed
from tests.faults.disk import disk_in, is_possible
from tests.faults.document import write
from tests.faults.kinds import KINDS, folder_of, kinds_of
from tests.faults.scenes import SCENES, Scene
from tests.faults.session import Broken, Session, Then

STOP = threading.Event()  # set by Ctrl-C: each run then ends after its current fault
MOST_BROKEN = 20  # after this number of violations, a run is left alone
SHORT = ("lab: kill -9, journal's last page torn", "disk: full")


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run_scene(scene: Scene, faults: int, seed: int, work: Path, names: Sequence[str] = ()) -> Session:
    """Inject a number of faults into one run, or those with these names."""
    chance, kinds = Random(f"{seed} {scene.name}"), kinds_of(scene)
    wanted = [kind for name in names for kind in kinds if kind.name == name]
    folder = folder_of(work, scene)
    folder.mkdir()
    with disk_in(folder) as disk, Session(scene, folder, disk, chance, say) as session:
        while len(session.done) < (len(wanted) or faults) and len(session.broken) < MOST_BROKEN and not STOP.is_set():
            kind = wanted[len(session.done)] if wanted else chance.choices(kinds, [each.weight for each in kinds])[0]
            session.fault(kind)
        session.finish()
    return session


def table(sessions: Sequence[Session]) -> Iterator[str]:
    """A row for each kind of fault, and one for all, in Markdown."""
    yield f"| fault | times | {' | '.join(Then)} | {' | '.join(Broken)} |"
    yield "|---|" + "---|" * (1 + len(Then) + len(Broken))
    done = [each for session in sessions for each in session.done]
    broken = [(kind, what) for session in sessions for kind, what, _ in session.broken]
    known = [kind.name for kind in KINDS]
    for name in [*known, *sorted({kind for kind, _ in broken} - {*known})]:
        then = Counter(each for kind, each in done if kind == name)
        found = Counter(each for kind, each in broken if kind == name)
        if then or found:
            yield _row(name, then, found)
    yield _row("**all**", Counter(each for _, each in done), Counter(each for _, each in broken))


def _row(name: str, then: Counter[Then], found: Counter[Broken]) -> str:
    counts = [then.total(), *(then[each] for each in Then), *(found[each] for each in Broken)]
    return f"| {name} | {' | '.join(map(str, counts))} |"


def runs(sessions: Sequence[Session]) -> Iterator[str]:
    """The runs that the faults hit, in Markdown."""
    yield "| run | lanes | servers | workloads | faults | attempts on record |"
    yield "|---|---|---|---|---|---|"
    for each in sessions:
        scene = each.scene
        lanes = f"{scene.workers} workers" if scene.workers else scene.lanes
        browsers = f" ({', '.join(scene.browsers)})" if scene.browsers else ""
        yield (
            f"| {scene.name} | {lanes} | {scene.servers} | {scene.kinds}{browsers} | {len(each.done)} | "
            f"{len(each.known)} |"
        )


def summary(sessions: Sequence[Session], took_s: float) -> str:
    """The number of faults and checks, in sentences."""
    checked = sum((session.checked for session in sessions), Counter[str]())
    faults = sum(len(session.done) for session in sessions)
    return (
        f"{faults} faults in {took_s / 60:.0f} minutes. Attempts on record before a fault were compared with those "
        f"after it {checked['attempts']:,} times. {checked['results']:,} results count; {checked['hit']:,} of them are "
        f"of trials during a fault. {checked['destroyed']} finished trials, whose records were in torn pages, ran "
        "again; they do not count as lost."
    )


def main() -> int:
    """Inject, and print; 1 if something happened that must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scene", action="append", default=[], help="only the run of this name")
    parser.add_argument("--short", action="store_true", help="two faults of one run")
    parser.add_argument("--parallel", type=int, default=2, help="runs at the same time")
    parser.add_argument("--write", type=Path, help="put the tables into this document as well")
    options = parser.parse_args()
    if not is_possible():
        print("bench/faults.py: needs root, mkfs.ext4 and loop devices: it makes a small disk", file=sys.stderr)
        return 2
    scenes = [
        scene for scene in (SCENES[:1] if options.short else SCENES) if not options.scene or scene.name in options.scene
    ]
    servers = [name for scene in scenes for name in scene.servers.split(", ")]
    ensure_images(say, needed(servers, [name for scene in scenes for name in scene.browsers]))
    began_s, share = time.monotonic(), sum(scene.share for scene in scenes)
    with tempfile.TemporaryDirectory(prefix="headwind-faults-") as work:

        def run(scene: Scene) -> Session:
            number = max(1, round(options.faults * scene.share / share))
            return run_scene(scene, number, options.seed, Path(work), SHORT if options.short else ())

        with ThreadPoolExecutor(options.parallel) as pool:
            try:
                sessions = list(pool.map(run, scenes))
            except KeyboardInterrupt:
                STOP.set()
                say("stopped by Ctrl-C: waiting until the runs have ended")
                raise SystemExit(130) from None
    lines = [summary(sessions, time.monotonic() - began_s), "", *runs(sessions), "", *table(sessions)]
    print(*lines, sep="\n")
    if options.write:
        write(options.write, "faults", lines)
    return int(any(session.broken for session in sessions))


if __name__ == "__main__":
    sys.exit(main())
