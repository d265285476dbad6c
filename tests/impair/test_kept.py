"""Files that are read again and again: always as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest

from impair import kept


def test_a_file_is_read_as_it_is_now_however_long_it_is(tmp_path: Path) -> None:
    file = tmp_path / "counters"
    for text in ("1\n", "ä" * kept.CHUNK_BYTES, "", "22\n"):
        file.write_text(text)
        assert kept.read_list(str(file)) == text


@pytest.mark.parametrize("path", ["/proc/stat", "/proc/net/snmp", "/proc/net/netstat", "/proc/sys/net/ipv4/tcp_rmem"])
def test_the_kernel_gives_a_table_or_a_value_in_one_piece(path: str) -> None:
    lines = [[line.split()[0] for line in read(path).splitlines()] for read in (kept.read, kept.read_list)]
    assert lines[0] == lines[1] != []


def test_a_counter_of_the_kernel_moves_on() -> None:
    first = float(kept.read("/proc/uptime").split()[0])  # the second column, the idle time, may go back
    while float(kept.read("/proc/uptime").split()[0]) <= first:
        pass  # the time limit of the test ends it


def test_what_is_not_there_yet_is_found_once_it_is(tmp_path: Path) -> None:
    file = tmp_path / "later"
    with pytest.raises(FileNotFoundError):
        kept.read(str(file))
    file.write_text("there")
    assert kept.read(str(file)) == "there"


def test_a_file_that_is_another_one_each_time_is_opened_each_time(tmp_path: Path) -> None:
    for text in ("first", "second"):
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").rename(tmp_path / "there")
        assert kept.read_new(str(tmp_path / "there")) == text
