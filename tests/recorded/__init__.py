"""What all public functions answer over small inputs: tests/golden/numbers.json keeps it, tests/test_numbers.py compares."""

from recorded import analyses, measures, others, scores
from recorded.recording import CASES, NEEDS, Recorded, record

__all__ = ["CASES", "NEEDS", "Recorded", "analyses", "measures", "others", "record", "scores"]
