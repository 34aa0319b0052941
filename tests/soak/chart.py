# SPDX-License-Identifier: Apache-2.0
"""Draws memory over time as SVG: a panel for each role, a line for each process, marks for events."""

import html
import pathlib

_WIDTH, _PANEL, _LEFT, _TOP, _GAP = 1000, 150, 70, 30, 40
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
# Points of a line; more could not be seen.
_POINTS_MAX = 1000


def write(path, title, panels, marks, minutes):
    """panels: {role: [(name, [(seconds, MiB)])]}. marks: [(seconds, kind of event)]."""
    height = _TOP + len(panels) * (_PANEL + _GAP) + 20
    kinds = sorted({kind for _, kind in marks})
    color_of = {kind: _COLORS[index % len(_COLORS)] for index, kind in enumerate(kinds)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 20}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="16" font-size="14">{html.escape(title)}</text>',
    ]
    for index, (role, lines) in enumerate(panels.items()):
        parts += _panel(role, lines, marks, color_of, _TOP + index * (_PANEL + _GAP), 60 * minutes)
    x = _LEFT
    for kind in kinds:
        parts.append(f'<text x="{x}" y="{height - 6}" fill="{color_of[kind]}">| {kind}</text>')
        x += 14 + 7 * len(kind)
    pathlib.Path(path).write_text("\n".join([*parts, "</svg>"]), encoding="utf-8")


def _panel(role, lines, marks, color_of, top, seconds):
    values = [value for _, series in lines for _, value in series] or [0, 1]
    low, high = min(values), max(values)
    room = max(0.05 * (high - low), 0.01 * high, 0.1)
    low, high = max(0, low - room), high + room

    def x(when):
        return _LEFT + _WIDTH * min(1, when / seconds)

    def y(value):
        return top + _PANEL * (1 - (value - low) / (high - low))

    parts = [f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_PANEL}" fill="none" '
             'stroke="#999"/>',
             f'<text x="{_LEFT + 4}" y="{top + 12}">{html.escape(role)}</text>']
    for share in (0, 0.5, 1):
        value = low + share * (high - low)
        parts.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">'
                     f'{value:.1f} MiB</text>')
    for quarter in range(5):
        at = x(seconds * quarter / 4)
        parts.append(f'<line x1="{at:.1f}" y1="{top}" x2="{at:.1f}" y2="{top + _PANEL}" '
                     'stroke="#ddd"/>'
                     f'<text x="{at:.1f}" y="{top + _PANEL + 12}" text-anchor="middle">'
                     f'{seconds * quarter / 240:.1f} min</text>')
    for when, kind in marks:
        parts.append(f'<line x1="{x(when):.1f}" y1="{top + _PANEL - 6}" x2="{x(when):.1f}" '
                     f'y2="{top + _PANEL}" stroke="{color_of[kind]}"/>')
    for number, (name, series) in enumerate(lines):
        step = max(1, len(series) // _POINTS_MAX)
        points = " ".join(f"{x(when):.1f},{y(value):.1f}" for when, value in series[::step])
        parts.append(f'<polyline points="{points}" fill="none" '
                     f'stroke="{_COLORS[number % len(_COLORS)]}"><title>{html.escape(name)}</title>'
                     '</polyline>')
    return parts
