from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta

import pytest

from memories.recalling.ranking import (
    SIGNALS,
    WEIGHTS,
    Weights,
    hybrid_parts,
    injection_threshold,
    longterm_parts,
    recency,
)

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def test_recency_halves_every_thirty_days() -> None:
    cases = [
        (0, None, 1.0),
        (30, None, 0.5),
        (60, None, 0.25),
        (15, None, 0.70711),
        (90, 30, 0.5),  # the later of the two counts
        (30, 90, 0.5),
        (-10, None, 1.0),  # a clock that runs ahead gives no extra recency
        (36500, None, 0.0),
    ]
    for created, accessed, expected in cases:
        accessed_at = None if accessed is None else NOW - timedelta(days=accessed)
        value = recency(NOW - timedelta(days=created), accessed_at, NOW)
        assert value == pytest.approx(expected, abs=1e-5), (created, accessed)


def test_longterm_is_seven_two_and_one_tenths() -> None:
    parts = longterm_parts(0.8, 0.5, 0.9)
    assert parts == pytest.approx({"meaning": 0.56, "recency": 0.1, "importance": 0.09})
    assert sum(longterm_parts(-0.5, 0.0, 0.0).values()) == pytest.approx(-0.35)


def test_hybrid_adds_up_what_each_signal_is_worth() -> None:
    parts = hybrid_parts(
        0.6,
        0.4,
        date=0.5,
        time=True,
        number=True,
        person=True,
        asking=True,
        recent=0.5,
        importance=0.9,
    )
    assert parts == pytest.approx(
        {
            "meaning": 0.42,
            "words": 0.14,
            "date": 0.10,
            "time": 0.10,
            "number": 0.07,
            "person": 0.15,
            "asking": -0.07,
            "recency": 0.01,
            "importance": 0.018,
        }
    )


def test_hybrid_leaves_out_what_says_nothing_but_meaning_and_words() -> None:
    assert hybrid_parts(0.0, 0.0, recent=0.0, importance=0.0) == {"meaning": 0.0, "words": 0.0}
    assert hybrid_parts(-0.4, 0.0, recent=0.0, importance=0.0)["meaning"] == 0.0


def test_words_stand_in_for_the_meaning_where_there_is_no_vector() -> None:
    parts = hybrid_parts(None, 0.5, recent=0.0, importance=0.0)
    assert parts == pytest.approx({"meaning": 0.21, "words": 0.175})


def test_one_signal_switched_off_changes_nothing_else() -> None:
    def parts(weights: Weights) -> dict[str, float]:
        return hybrid_parts(
            0.6,
            0.4,
            date=1.0,
            time=True,
            number=True,
            person=True,
            asking=True,
            recent=0.5,
            importance=0.9,
            weights=weights,
        )

    whole = parts(WEIGHTS)
    for signal in set(SIGNALS) - {"gist"}:
        less = {name: value for name, value in parts(WEIGHTS.without(signal)).items() if value}
        assert less == {name: value for name, value in whole.items() if name != signal}, signal


def test_weights_are_no_global_state() -> None:
    with pytest.raises(FrozenInstanceError):
        WEIGHTS.words = 0.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        WEIGHTS.without("magic")
    assert Weights() == WEIGHTS


def test_threshold_is_lower_in_a_small_workspace() -> None:
    cases = [
        (10_000, 0.57),
        (200, 0.57),
        (100, 0.53),
        (50, 0.49),
        (25, 0.45),
        (1, 0.57 - 0.04 * 7.643856),
        (0, 0.57 - 0.04 * 7.643856),
    ]
    for memories, expected in cases:
        assert injection_threshold(0.57, memories) == pytest.approx(expected), memories
    assert injection_threshold(0.1, 1) == 0.0
