# SPDX-License-Identifier: Apache-2.0
"""Whether a figure of a process, sampled for hours, grows. Pure: series in, verdicts out.

A process that lives all the time is compared with itself: the median of the run's last quarter with
that of its second one. The first quarter is for warming up. Processes of a role that are restarted
are compared at the same age: those born in the last quarter with those born in the second one.
Only growth fails; medians see no single peak.
"""

import dataclasses
import statistics

# Samples of a median, and lives of a quarter, below which nothing is said.
_SAMPLES_MIN = 5
_LIVES_MIN = 3


@dataclasses.dataclass(frozen=True)
class Allowance:
    """Growth that is still flat: this share of the earlier figure, or this amount if that is more."""
    share: float = 0.02
    amount: float = 0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """early, late: medians; None = too few samples, or too few lives, to say anything."""
    what: str
    early: float | None
    late: float | None
    allowance: Allowance

    @property
    def is_judged(self):
        return self.early is not None and self.late is not None

    @property
    def growth(self):
        return self.late - self.early

    @property
    def grows(self):
        """A figure that nobody can judge is not said to grow."""
        if not self.is_judged:
            return False
        return self.growth > max(self.allowance.share * abs(self.early), self.allowance.amount)

    def __str__(self):
        if not self.is_judged:
            return f"{self.what}: too little to judge"
        percent = 100 * self.growth / self.early if self.early else 0
        return (f"{self.what}: {self.early:.0f} in the second quarter, {self.late:.0f} in the last "
                f"({percent:+.2f} %){': it grows' if self.grows else ''}")


class Quarters:
    """The second and the last quarter of a run from `begin` to `end`, in seconds."""

    def __init__(self, begin, end):
        quarter = (end - begin) / 4
        self.second = (begin + quarter, begin + 2 * quarter)
        self.last = (begin + 3 * quarter, end)


def of_life(what, series, quarters, allowance):
    """Judges one process that lived all the time. series: [(seconds, figure)]."""
    return Verdict(what, _median(series, quarters.second), _median(series, quarters.last), allowance)


def of_lives(what, lives, quarters, ages, allowance):
    """Judges the processes of one role.

    lives: [(time of birth, series)]. ages: (from, to) in seconds; lives that ended earlier do not
    count.
    """
    return Verdict(what, _median_of_lives(lives, quarters.second, ages),
                   _median_of_lives(lives, quarters.last, ages), allowance)


def _median(series, span, samples_min=_SAMPLES_MIN):
    values = [value for when, value in series if span[0] <= when <= span[1]]
    return statistics.median(values) if len(values) >= samples_min else None


def _median_of_lives(lives, births, ages):
    figures = []
    for born, series in lives:
        if not births[0] <= born <= births[1] or not series or series[-1][0] < born + ages[1]:
            continue
        figure = _median(series, (born + ages[0], born + ages[1]), 1)
        if figure is not None:
            figures.append(figure)
    return statistics.median(figures) if len(figures) >= _LIVES_MIN else None
