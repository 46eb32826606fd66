"""What all public functions answer over small inputs, which tests/golden/numbers.json keeps."""

from recorded import analyses, measures, others, scores
from recorded.recording import CASES, NEEDS, Recorded, record

__all__ = ["CASES", "NEEDS", "Recorded", "analyses", "measures", "others", "record", "scores"]
