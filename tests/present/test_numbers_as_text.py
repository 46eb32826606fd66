"""Numbers as text for people."""

import math

import pytest

from vendimeter.present.numbers import (
    clock_time,
    count_of,
    digits,
    floor_percent,
    format_bytes,
    format_confidence,
    format_duration,
    format_number,
    format_share,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-0.5, "−0.5"),
        (1e-9, "0.000000001"),
        (1234567.8, "1,234,568"),
        (math.inf, "–"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert format_number(value) == text


def test_digits_tell_a_number_from_its_neighbours() -> None:
    assert [digits(value) for value in (1.0, 0.25, 1.0000001, 1 / 3)] == [
        "1",
        "0.25",
        "1.0000001",
        repr(1 / 3),
    ]


def test_shares() -> None:
    assert [format_share(share) for share in (0, 0.00994, 0.00995, 0.99949, 0.9995)] == [
        "0%", "0.99%", "1.0%", "99.9%", "100%",
    ]  # fmt: skip
    assert [floor_percent(share) for share in (0, 0.9999, 1)] == ["0.0%", "99.9%", "100%"]


def test_counts_and_bytes() -> None:
    assert [count_of(count, "item") for count in (0, 1, 2000)] == ["0 items", "1 item", "2,000 items"]
    assert [format_bytes(count) for count in (0, 999, 1024, 3.5 * 2**30, 2**41)] == [
        "0 bytes", "999 bytes", "1 KiB", "3.5 GiB", "2 TiB",
    ]  # fmt: skip


def test_times() -> None:
    shown = [clock_time(s) for s in (-1, 0, 59.99, 60, 3599, 3600, 86_399, 86_400, 1e7, float("inf"))]
    assert shown == [
        "0:00", "0:00", "0:59", "1:00", "59:59", "1:00:00", "23:59:59", "1 d 0 h", "115 d 17 h", "11574074 d 1 h",
    ]  # fmt: skip


def test_confidence_is_never_rounded_up():
    shown = {
        0.95: "95%", 0.9: "90%", 0.5: "50%", 0.999999: "99.9999%", 1 - 1e-6: "99.9999%", 0.99: "99%", 0.9973: "99.7%",
        0.9500000000000001: "95%", 0.999: "99.9%", 1 - 1e-12: "99.9999999999%", 0.0: "0%", 0.997: "99.7%",
    }  # fmt: skip
    assert {value: format_confidence(value) for value in shown} == shown
    for value in (0.9999999999999999, 0.99999999999, 0.949999999, 0.123456, 0.99951):
        assert float(format_confidence(value)[:-1]) / 100 <= value
        assert format_confidence(value) != "100%"


def test_durations():
    shown = {
        0.0: "less than 0.1 ms", 5e-4: "0.5 ms", 0.04: "40 ms", 0.9: "900 ms", 0.999: "1 s", 4.13: "4.1 s",
        59.4: "59 s", 59.9: "1 min", 90: "1.5 min", 3500: "58 min", 3599: "1 h", 86_400: "24 h", 172_800: "2 days",
        1e6: "12 days", 1e9: "11,574 days",
    }  # fmt: skip
    assert {value: format_duration(value) for value in shown} == shown
