"""A bottleneck's parameters in the kernel's own units, as they are requested and read back. Standard library only.

Names are those of include/uapi/linux/pkt_sched.h in lower case; times are in us.
"""

from __future__ import annotations

import math

from impair.profile import FRAME_BYTES
from impair.queues import Cake, Fifo, FqCodel, Pie, Queue, Red, kind_of

Settings = dict[str, int]

CATCH_UP_S = 0.002  # of the rate: what tbf may send at once beyond one frame, because its timer was late
FLOWS = 1024  # queues of fq_codel, the kernel's default
PACKET_MEMORY_BYTES = 4096  # at most, of a full frame with the kernel's data about it
LEAST_MEMORY_BYTES = 32 << 20  # of fq_codel, the kernel's default
BEST_EFFORT, TRIPLE_ISOLATE = 3, 7  # cake: one class of traffic; fair to hosts first, then to flows (its default)
RED_ECN = 1  # TC_RED_ECN
RED_TABLE_ENTRIES, RED_LARGEST = 256, 31
CODEL_TICK_NS, SCHEDULER_TICK_NS = 1024, 64  # include/net/codel.h, include/net/pkt_sched.h


def tokens_bytes(rate_bps: int) -> int:
    """Bytes that tbf may send at once: a frame, and what the rate carries in CATCH_UP_S."""
    return FRAME_BYTES + math.ceil(rate_bps / 8 * CATCH_UP_S)


def settings_of(queue: Queue, rate_bps: int) -> Settings:
    """The settings of a queue for a rate, as the kernel takes them."""
    match queue:
        case Fifo():
            return {"limit": queue.packets}
        case FqCodel():
            memory = max(LEAST_MEMORY_BYTES, queue.packets * PACKET_MEMORY_BYTES)
            return {
                "limit": queue.packets, "target": _us(queue.target_s), "interval": _us(queue.interval_s),
                "ecn": int(queue.ecn), "flows": FLOWS, "quantum": FRAME_BYTES, "memory_limit": memory,
            }  # fmt: skip
        case Pie():
            return {"limit": queue.packets, "target": _us(queue.target_s), "ecn": int(queue.ecn), "bytemode": 0}
        case Cake():
            return {
                "base_rate64": rate_bps // 8, "diffserv_mode": BEST_EFFORT, "flow_mode": TRIPLE_ISOLATE,
                "rtt": _us(queue.rtt_s), "target": max(1, _us(queue.rtt_s) // 20), "autorate": 0, "wash": 0,
                "ingress": 0, "ack_filter": 0,
            }  # fmt: skip
        case Red():
            return _red(queue, rate_bps)


def kept(queue: Queue, settings: Settings) -> Settings:
    """The settings as the kernel reports them: CoDel counts times in 1024 ns, and PIE in 64 ns."""
    tick_ns = {FqCodel: CODEL_TICK_NS, Pie: SCHEDULER_TICK_NS}.get(type(queue), 1)
    return {
        name: value * 1000 // tick_ns * tick_ns // 1000 if name in ("target", "interval") else value
        for name, value in settings.items()
    }


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _red(queue: Red, rate_bps: int) -> Settings:
    """The settings of RED; the kernel wants logarithms (include/net/red.h)."""
    least, most = queue.min_packets * FRAME_BYTES, queue.max_packets * FRAME_BYTES
    scell_log, _ = red_idle(queue.weight_log, rate_bps)
    return {
        "limit": queue.packets * FRAME_BYTES, "qth_min": least, "qth_max": most, "wlog": queue.weight_log,
        "plog": max(0, round(math.log2((most - least) / queue.probability))), "scell_log": scell_log,
        "flags": RED_ECN if queue.ecn else 0, "max_p": round(queue.probability * (2**32 - 1)),
    }  # fmt: skip


def red_idle(wlog: int, rate_bps: int) -> tuple[int, bytes]:
    """How RED's average falls while the queue is empty: the logarithm of a cell's length in us, and a table by cells.

    An entry is the number of halvings of the average after a number of cells; each frame that could have left meanwhile
    multiplies it by 1 - W.
    """
    frame_us = FRAME_BYTES * 8 * 1e6 / rate_bps
    halvings_per_us = -math.log2(1 - 2.0**-wlog) / frame_us
    longest_us = RED_LARGEST / halvings_per_us
    scell_log = next(cell for cell in range(64) if longest_us / 2**cell < RED_TABLE_ENTRIES - 1)
    halvings = (int((cell << scell_log) * halvings_per_us) for cell in range(RED_TABLE_ENTRIES - 1))
    return scell_log, bytes([*(min(RED_LARGEST, each) for each in halvings), RED_LARGEST])


def discipline(queue: Queue) -> str:
    """The name of a queue's discipline in the kernel."""
    return "pfifo" if isinstance(queue, Fifo) else kind_of(queue)
