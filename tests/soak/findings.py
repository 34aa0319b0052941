# SPDX-License-Identifier: Apache-2.0
"""What a sampler has seen of a job, judged: one verdict for each process, role and figure."""

import json
import pathlib

from tests.soak import chart, flatness

# Restarted processes are compared at these ages, in seconds.
_AGES = (20, 40)
# A process whose last sample is this much older than the end has not lived until then.
_LAST_SECONDS = 60
_OF_PROCESSES = {
    "resident": flatness.Allowance(share=0.02),
    "anonymous": flatness.Allowance(share=0.02),
    # Connections come and go with the processes at their other ends.
    "files": flatness.Allowance(share=0.02, amount=2),
    "threads": flatness.Allowance(share=0.02, amount=1),
}


def verdicts(lives, gauges, quarters):
    """lives: of sampler.Sampler. gauges: {name: (series, flatness.Allowance)}."""
    found, restarted = [], {}
    for life in lives:
        times = [when for when, _ in life.series("resident")]
        if not times:
            continue
        if life.born <= quarters.second[0] and times[-1] >= quarters.last[1] - _LAST_SECONDS:
            found += [flatness.of_life(f"{life.name}: {figure}", life.series(figure), quarters,
                                       allowance) for figure, allowance in _OF_PROCESSES.items()]
        else:
            restarted.setdefault(life.role, []).append(life)
    for role, of_role in restarted.items():
        for figure, allowance in _OF_PROCESSES.items():
            found.append(flatness.of_lives(
                f"{role}s that were restarted: {figure}",
                [(life.born, life.series(figure)) for life in of_role], quarters, _AGES, allowance))
    return found + [flatness.of_life(name, series, quarters, allowance)
                    for name, (series, allowance) in gauges.items()]


def write(folder, title, found, lives, events, minutes):
    """memory.svg and figures.json. events: [(kind, begin, end, what)]."""
    panels = {}
    for life in lives:
        series = [(when, value / 1024) for when, value in life.series("resident")]
        panels.setdefault(life.role, []).append((f"{life.name} {life.pid}", series))
    chart.write(pathlib.Path(folder) / "memory.svg", title, panels,
                [(begin, kind) for kind, begin, *_ in events], minutes)
    with open(pathlib.Path(folder) / "figures.json", "w", encoding="utf-8") as file:
        json.dump({
            "title": title,
            "events": [{"kind": kind, "begin": round(begin, 1), "end": round(end, 1), "what": what}
                       for kind, begin, end, what in events],
            "verdicts": [{"what": verdict.what, "second_quarter": verdict.early,
                          "last_quarter": verdict.late, "grows": verdict.grows}
                         for verdict in found]}, file, indent=1)
