#!/usr/bin/env python3
"""How well one sweep ranks another: the best knobs of OURS, looked up in THEIRS, against THEIRS' own best.

    scripts/live/ranking.py OURS.csv THEIRS.csv

Cells that only one of them has are left out. Prints the share of cells within 5 and 10 %, and how much NCCL's default is
slower than the best of ours by their times. Needs Python 3.9.
"""

import csv
import math
import sys


def cells(path):
    """Medians of every setting, by cell."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            knobs = tuple(row[name].lower() for name in ("algo", "proto", "nchannels"))
            found.setdefault((row["collective"], int(row["size_bytes"])), {})[knobs] = float(row["median_us"])
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ours, theirs = cells(sys.argv[1]), cells(sys.argv[2])
    off, gains, own = [], [], []
    for cell in sorted(ours.keys() & theirs.keys()):
        choices = {knobs: us for knobs, us in ours[cell].items() if knobs[0] != "default" and knobs in theirs[cell]}
        rivals = {knobs: us for knobs, us in theirs[cell].items() if knobs[0] != "default"}
        if not choices or not rivals:
            continue
        best = min(choices, key=choices.get)
        off.append(theirs[cell][best] / min(rivals.values()))
        default = ("default", "default", "")
        gains.append(theirs[cell][default] / theirs[cell][best])
        own.append(ours[cell][default] / min(choices.values()))
    mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
    share = lambda limit: 100 * sum(value <= limit for value in off) / len(off)
    print(f"{len(off)} cells: within 5 % {share(1.05):.0f} %, within 10 % {share(1.10):.0f} %, mean {mean(off):.3f}")
    print(f"our best against NCCL's default: by their times {mean(gains):.3f}, by ours {mean(own):.3f}")


if __name__ == "__main__":
    main()
