"""The tc command on a condition's page sets what the lab has set, down to the last bit; read here as tc reads it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from headwind.report.tc_commands import bottleneck_commands, tc_command
from impair.netem_options import Options
from impair.profile import (
    Corrupt,
    Delay,
    Duplicate,
    FourState,
    GilbertElliott,
    Link,
    Loss,
    Rate,
    Reorder,
    Slot,
)
from impair.queues import Cake, Fifo, FqCodel, Red
from tests.strategies import DELAYS, LINKS

UINT32_MAX = 4294967295
NSEC = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}


@dataclass
class Words:
    """The arguments behind `netem`, taken one by one."""

    left: list[str]

    def take(self) -> str:
        return self.left.pop(0)

    def numbers(self, *, signed: bool = False) -> Iterator[str]:
        """As long as the next word is a number for tc: it begins with a digit, or where it may, with a minus."""
        while self.left and (self.left[0][0].isdigit() or (signed and self.left[0][0] == "-")):
            yield self.take()

    def option(self, name: str) -> int:
        if self.left[:1] != [name]:
            return 0
        self.take()
        return int(self.take())


def percent(text: str) -> int:
    """parse_percent and set_percent of tc."""
    assert text.endswith("%")
    share = float(text[:-1]) / 100.0
    assert 0 <= share <= 1
    return round(share * UINT32_MAX)


def nanoseconds(text: str) -> int:
    """get_time64 of tc, which cuts and does not round."""
    digits = text.rstrip("nmus")
    return int(float(digits) * NSEC[text[len(digits) :]])


def rate64(text: str) -> int:
    """get_rate64 of tc."""
    assert text.endswith("bit")
    return int(float(text.removesuffix("bit")) / 8)


def read_as_tc(command: str) -> tuple[str, Options, str]:
    """Device, options and distribution that a command means to tc (netem_parse_opt in tc/q_netem.c of 6.9)."""
    words = shlex.split(command)
    assert words[:4] == ["tc", "qdisc", "add", "dev"]
    assert words[5:7] == ["root", "netem"]
    found: dict[str, Any] = {}
    rest = Words(words[7:])
    while rest.left:
        read = READERS[rest.take()](rest)
        assert not found.keys() & read.keys(), f"{read} is given twice"
        found |= read
    distribution = found.pop("distribution", "uniform")
    refuse_as_tc(found, distribution)
    return words[4], Options(**found), distribution


def chance_of(name: str) -> Callable[[Words], dict[str, Any]]:
    def read(rest: Words) -> dict[str, Any]:
        (chance,) = map(percent, rest.numbers())  # a second number would be a correlation
        return {name: chance}

    return read


def delay_of(rest: Words) -> dict[str, Any]:
    return dict(zip(("latency", "jitter"), map(nanoseconds, rest.numbers()), strict=False))


def rate_of(rest: Words) -> dict[str, Any]:
    rate, names = rate64(rest.take()), ("packet_overhead", "cell_size", "cell_overhead")
    return {"rate": rate, **dict(zip(names, map(int, rest.numbers(signed=True)), strict=False))}


def slot_of(rest: Words) -> dict[str, Any]:
    low, high = map(nanoseconds, rest.numbers())
    return {"slot": (low, high, rest.option("packets"), rest.option("bytes"), 0, 0)}


def loss_of(rest: Words) -> dict[str, Any]:
    kind = rest.take()
    chances = [percent(text) for text in rest.numbers()]
    if kind == "random":
        (chance,) = chances
        return {"loss": chance}
    if kind == "gemodel":
        p, r, bad_loss, good_loss = chances
        return {"gilbert_elliott": (p, r, UINT32_MAX - bad_loss, good_loss)}
    assert kind == "state"
    p13, p31, p32, p23, p14 = chances
    return {"four_state": (p13, p31, p32, p14, p23)}


READERS: dict[str, Callable[[Words], dict[str, Any]]] = {
    **{name: chance_of(name) for name in ("duplicate", "corrupt", "reorder")},
    "limit": lambda rest: {"limit": int(float(rest.take()))},
    "delay": delay_of,
    "distribution": lambda rest: {"distribution": rest.take()},
    "loss": loss_of,
    "ecn": lambda _: {"ecn": 1},
    "gap": lambda rest: {"gap": int(rest.take())},
    "rate": rate_of,
    "slot": slot_of,
    "seed": lambda rest: {"seed": int(rest.take())},
}


def refuse_as_tc(found: dict[str, Any], distribution: str) -> None:
    if found.get("reorder"):
        assert found.get("latency"), "reordering not possible without specifying some delay"
        assert found.get("gap"), "the lab never leaves it to tc"
    else:
        assert "gap" not in found, "gap specified without reorder probability"
    if found.get("ecn"):
        models = ("loss", "gilbert_elliott", "four_state")
        assert any(found.get(name) for name in models), "ecn requested without loss model"
    if distribution != "uniform":
        assert found.get("latency")
        assert found.get("jitter"), "distribution specified but no latency and jitter values"


def sent(link: Link, seed: int | None) -> Options:
    """What the lab asks of the kernel; without the ecn that marks nothing, which tc does not take."""
    options = Options.of(link, seed)
    return replace(options, ecn=0) if link.loss == Loss(0.0) else options


RATIOS = st.integers(1, UINT32_MAX).map(lambda chance: chance / UINT32_MAX) | st.floats(0.001, 1)
SEEDS = st.none() | st.integers(0, 2**64 - 1)


@given(LINKS, SEEDS)
@example(Link(), 0)
@example(Link(loss=Loss(0.0), ecn=True), 7)
@example(Link(delay=Delay(1.0), reorder=Reorder(0.0, 5)), None)
@example(Link(loss=FourState(0.5, 0.5, 0.5, 0.2, 0.5)), 2**64 - 1)
@example(Link(rate=Rate(2**53, -14, 53, -5), limit_packets=9), 1)
@example(Link(slot=Slot(0.0, 0.02, 0, 1500)), 1)
def test_the_command_sets_what_the_lab_sets(link: Link, seed: int | None) -> None:
    device, options, distribution = read_as_tc(tc_command(link, seed, "to-server"))
    assert device == "to-server"
    assert options == sent(link, seed)
    assert distribution == (link.delay.distribution if link.delay else "uniform")


@given(RATIOS, RATIOS, RATIOS, RATIOS)
@example(0.5, 0.5, 0.5, 0.5)  # of 2^32 - 1, which is odd: 1-h and h cannot both be rounded
def test_a_chance_comes_out_the_same_to_the_last_of_32_bits(p: float, r: float, bad: float, good: float) -> None:
    burst = Link(loss=GilbertElliott(p, r, bad, good), duplicate=Duplicate(p), corrupt=Corrupt(good))
    assert read_as_tc(tc_command(burst, None, "x"))[1] == Options.of(burst, None)


@given(st.integers(0, 10**9), st.integers(0, 10**9), DELAYS)
def test_a_time_comes_out_the_same_to_the_nanosecond(jitter_ns: int, delay_ns: int, usual: Delay) -> None:
    odd = Delay((delay_ns + 10**9) / 1e9, jitter_ns / 1e9)
    for link in (Link(delay=odd), Link(delay=usual), Link(slot=Slot(jitter_ns / 1e9, odd.delay_s))):
        assert read_as_tc(tc_command(link, 3, "x"))[1] == Options.of(link, 3)


def test_a_clean_link_has_a_netem_as_in_the_lab() -> None:
    assert tc_command(Link(), 5, "DEVICE") == "tc qdisc add dev DEVICE root netem limit 100000 seed 5"


def test_numbers_are_as_short_as_a_person_writes_them() -> None:
    link = Link(
        delay=Delay(0.1, 0.0105, "normal"), loss=GilbertElliott(0.01, 0.3), duplicate=Duplicate(0.7),
        rate=Rate(10_000_000, 20), limit_packets=1000, ecn=True,
    )  # fmt: skip
    assert tc_command(link, None, "eth0") == (
        "tc qdisc add dev eth0 root netem limit 1000 delay 100ms 10500us distribution normal "
        "loss gemodel 1% 30% 100% 0% ecn duplicate 70% rate 10000000bit 20"
    )


def test_a_device_is_one_word_of_the_shell_whatever_its_name() -> None:
    assert shlex.split(tc_command(Link(), 1, "x; rm -r $HOME"))[4] == "x; rm -r $HOME"


def test_a_bottleneck_is_made_before_netem_which_has_no_rate() -> None:
    link = Link(delay=Delay(0.02), rate=Rate(20_000_000), queue=FqCodel(target_s=0.002, ecn=False))
    assert tc_command(link, None, "TO_CLIENT") == "tc qdisc add dev TO_CLIENT root netem limit 100034 delay 20ms"
    codel = "limit 10240 target 2000us interval 100000us quantum 1514 memory_limit 41943040b noecn"
    assert bottleneck_commands(link, "TO_SERVER", "queue-downlink") == [
        "ip link add queue-downlink type ifb",
        "ip link set dev queue-downlink up",
        "tc qdisc add dev queue-downlink root handle 1: tbf rate 20000000bit burst 6514 limit 1mb",
        f"tc qdisc add dev queue-downlink parent 1:1 handle 2: fq_codel {codel}",
        "tc qdisc add dev TO_SERVER ingress",
        "tc filter add dev TO_SERVER ingress matchall action mirred egress redirect dev queue-downlink",
    ]
    rate = Rate(8_000_000)
    cake = bottleneck_commands(Link(rate=rate, queue=Cake(0.04)), "a", "b")
    assert cake[2].endswith("root handle 1: cake bandwidth 8000000bit besteffort triple-isolate rtt 40000us")
    red = bottleneck_commands(Link(rate=rate, queue=Red(100, 10, 30, 0.05, ecn=True)), "a", "b")
    options = "limit 151400 min 15140 max 45420 avpkt 1514 burst 16 probability 0.05 bandwidth 8000000bit ecn"
    assert red[3].endswith(f"handle 2: red {options}")
    assert bottleneck_commands(Link(rate=rate, queue=Fifo(7)), "a", "b")[3].endswith("handle 2: pfifo limit 7")
    assert bottleneck_commands(Link(rate=rate), "a", "b") == []
