#!/usr/bin/env python3
"""How well one sweep ranks another: the best knobs of OURS, looked up in THEIRS, against THEIRS' own best.

    scripts/live/ranking.py OURS.csv THEIRS.csv

Cells that only one of them has are left out. Prints the share of cells within 5 and 10 %, in all and per collective, how
much NCCL's default is slower than the best of ours by their times, and the cells that are further off. Needs Python 3.9.
"""

import csv
import math
import sys

NEAR, FAIR = 1.05, 1.10
# Not every sweep has the last two; a chunk of NCCL's own is none.
KNOBS = ("algo", "proto", "nchannels", "chunk", "nthreads")


def cells(path):
    """Medians of every setting, by cell."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            knobs = tuple((row.get(name) or "").lower().removeprefix("own") for name in KNOBS)
            found.setdefault((row["collective"], int(row["size_bytes"])), {})[knobs] = float(row["median_us"])
    return found


def default(settings):
    """The median of NCCL's own choice."""
    return next((us for knobs, us in settings.items() if knobs[0] == "default"), None)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ours, theirs = cells(sys.argv[1]), cells(sys.argv[2])
    off, gains, own, misses = {}, [], [], []
    for cell in sorted(ours.keys() & theirs.keys()):
        choices = {knobs: us for knobs, us in ours[cell].items() if knobs[0] != "default" and knobs in theirs[cell]}
        rivals = {knobs: us for knobs, us in theirs[cell].items() if knobs[0] != "default"}
        if not choices or not rivals:
            continue
        our_default, their_default = default(ours[cell]), default(theirs[cell])
        if our_default is None or their_default is None:
            sys.exit(f"{cell[0]} {cell[1]}: no line of NCCL's default in one of them")
        best, rival = min(choices, key=choices.get), min(rivals, key=rivals.get)
        off[cell] = theirs[cell][best] / rivals[rival]
        gains.append(their_default / theirs[cell][best])
        own.append(our_default / choices[best])
        if off[cell] > NEAR:
            known = f"{choices[rival]:.1f}" if rival in choices else "none"
            misses.append(
                f"  {cell[0]} {cell[1]}: {off[cell]:.2f}; ours {' '.join(best)} {choices[best]:.1f} (theirs "
                f"{theirs[cell][best]:.1f}), theirs {' '.join(rival)} {rivals[rival]:.1f} (ours {known})"
            )
    if not off:
        sys.exit("no cell is in both")
    mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
    share = lambda values, limit: 100 * sum(value <= limit for value in values) / len(values)
    line = lambda values: (
        f"within 5 % {share(values, NEAR):.0f} %, within 10 % {share(values, FAIR):.0f} %, mean {mean(values):.3f}"
    )
    print(f"{len(off)} cells: {line(list(off.values()))}")
    for collective in sorted({cell[0] for cell in off}):
        print(f"  {collective}: {line([value for cell, value in off.items() if cell[0] == collective])}")
    print(f"our best against NCCL's default: by their times {mean(gains):.3f}, by ours {mean(own):.3f}")
    print("\n".join(misses))


if __name__ == "__main__":
    main()
