# SPDX-License-Identifier: BSD-3-Clause
"""The picture of bench_hol: bars of what each destination gets."""

from html import escape

WIDTH = 880
NAME = 220      # where the bars begin
BAR = 400       # length of a full bar
THICK = 12
ROW = 46
PANEL_HEAD = 46
LEGEND = 30

# What is drawn on is transparent, so that it suits the page; the second set is for dark ones.
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #24292f; }
    .title { font-weight: 600; }
    .minor { fill: #57606a; font-size: 12px; }
    .track { fill: #afb8c1; fill-opacity: .35; }
    .fast { fill: #0969da; }
    .slow { fill: #bf8700; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .minor { fill: #9198a1; }
      .fast { fill: #4493f8; }
      .slow { fill: #d29922; }
    }
"""


def text(x, y, content, css="", anchor="start"):
    """A line of text."""
    return f'<text x="{x}" y="{y}" class="{css}" text-anchor="{anchor}">{escape(content)}</text>'


def bar(y, css, mbit, full):
    """A bar of so many Mbit/s of what the way could carry."""
    length = BAR * min(1, mbit / full)
    return [
        f'<rect x="{NAME}" y="{y}" width="{BAR}" height="{THICK}" rx="2" class="track"/>',
        f'<rect x="{NAME}" y="{y}" width="{length:.1f}" height="{THICK}" rx="2" class="{css}"/>',
        text(NAME + BAR + 8, y + THICK - 1.5, f"{mbit:.1f} of {full} Mbit/s", "minor"),
    ]


def round_trip(row, scenario, name):
    """The round trip to a destination for people, with how many had none."""
    p99, lost = (row.median(scenario, f"{name}_{figure}") for figure in ("p99", "lost"))
    said = [] if p99 is None else [f"{p99 / 1000:.1f} s" if p99 >= 1000 else f"{p99:.0f} ms"]
    if lost is not None and lost >= 0.01:
        said.append(f"{lost:.0%} lost")
    return ", ".join(said)


def panel(y, title, rows, scenario):
    """All rows of one scenario."""
    delay = WIDTH - 10
    yield text(0, y + 16, title, "title")
    yield text(delay, y + 16, "round trip, p99", "minor", "end")
    y += PANEL_HEAD - 16
    for row in rows:
        yield text(NAME - 12, y + 18, row.name, anchor="end")
        for css, top in (("fast", y), ("slow", y + THICK + 4)):
            yield from bar(top, css, row.median(scenario, css), row.mbit[css])
            yield text(delay, top + THICK - 1.5, round_trip(row, scenario, css), "minor", "end")
        y += ROW


def legend():
    """Which colour is what."""
    x = NAME
    for css, name in (("fast", "the outside, 100 Mbit/s"), ("slow", "VM2, 10 Mbit/s")):
        yield f'<rect x="{x}" y="4" width="{THICK}" height="{THICK}" rx="2" class="{css}"/>'
        yield text(x + THICK + 6, 4 + THICK - 1.5, name)
        x += 220


def picture(rows, scenarios):
    """The SVG as text. rows: hol_row.Row, as many as were measured."""
    height = LEGEND
    body = list(legend())
    for scenario, title in scenarios.items():
        body += panel(height, title, rows, scenario)
        height += PANEL_HEAD + ROW * len(rows)
    lines = "\n  ".join(body)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" '
            f'aria-label="What a slow destination leaves of a fast one">\n'
            f"  <style>{STYLE}  </style>\n  {lines}\n</svg>\n")
