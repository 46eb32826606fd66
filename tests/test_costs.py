"""What questions cost in calls of the user's own code, as `benchmarks/speed/questions.py` counts it: may only fall."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from vendimeter.similarity import checks

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "speed" / "questions.py"
QUESTIONS = (
    "`metrics.table`, three metrics, of texts six",
    "`report`, three groups",
    "`vendi explain`",
    "the same nine, of one `Diversity`",
)
# In units of what is needed once; a function is asked for 1,024 pairs more, to see that it is symmetric.
LIMITS = {"calls of a function": 1.15, "items encoded": 1.0, "texts tokenized": 1.0, "entries checked": 1.0}


@pytest.fixture(scope="module")
def questions() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        patch.setattr(checks, "_check_dense", checks._check_dense)  # the script counts its calls from then on
        spec = importlib.util.spec_from_file_location("benchmark_questions", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("form", LIMITS)
def test_what_is_needed_once_is_done_once(questions: ModuleType, form: str) -> None:
    made = questions.FORMS[form]()
    costs = {question: questions.cost(question, made) for question in QUESTIONS}
    assert all(0 < cost <= LIMITS[form] for cost in costs.values()), costs
