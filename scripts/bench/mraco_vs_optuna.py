#!/usr/bin/env python3
"""MRACO beside Optuna's TPE with Hyperband, on the same surfaces, with the same noise and trials.

    scripts/bench/mraco_vs_optuna.py [--seeds 5] [--worlds 3] [--binary target/release/dynamiccl] [--venv DIR]

For each task the program tunes TuCCL's 3,600 settings with MRACO and writes their true times. Optuna
then searches the same times with TPESampler and HyperbandPruner until it has spent as many full
measurements as MRACO did. A full measurement is the mean of 27 calls whose ln(time) has a spread of
0.05; one that is pruned after r calls counts as r / 27. Quality is the true time of the best setting
over that of the one found. Time per trial is what a search itself takes for each full measurement.

All of it happens in the nominal world, whose times are those of the model, and in drawn ones, where the
constants are others and every protocol with every channel count is off by a factor of its own. The two are
reported apart.

Exit code 0: in the nominal world and over the drawn ones MRACO's quality is at least Optuna's (geometric
mean and median), and it takes at most a twentieth of the time.

Needs cargo, Python 3.9 and PyPI: it installs Optuna into a virtual environment of its own.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

OPTUNA = "optuna==4.5.0"
ROOT = Path(__file__).resolve().parents[2]
CALLS = 27
RUNGS = [1, 3, 9, 27]
JITTER = 0.05
LEAST_RATIO = 20
TASKS = [
    (cluster, nodes, collective, size)
    for cluster, nodes, sizes in [
        ("dgx1_v100", 1, ["64K", "16M"]),
        ("dgx1_v100", 2, ["1M", "256M"]),
        ("dgx_a100", 1, ["64K", "16M"]),
        ("dgx_a100", 2, ["1M", "256M"]),
    ]
    for collective in ["allgather", "allreduce"]
    for size in sizes
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--worlds", type=int, default=3, help="drawn worlds beside the nominal one [default: 3]")
    parser.add_argument("--binary", type=Path, help="the program [default: built with cargo]")
    parser.add_argument("--venv", type=Path, default=ROOT / "target" / "bench-venv")
    return parser.parse_args()


def with_optuna(args):
    """Runs this script again under an interpreter that has Optuna."""
    python = args.venv / "bin" / "python"
    if not python.exists():
        venv.create(args.venv, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", OPTUNA], check=True)
    os.execve(python, [str(python), *sys.argv], {**os.environ, "MRACO_VS_OPTUNA": "ready"})


def binary(args):
    if args.binary:
        return args.binary.resolve()
    subprocess.run(["cargo", "build", "--release", "--bin", "dynamiccl"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "dynamiccl"


def mraco(program, task, world, seed, surface):
    cluster, nodes, collective, size = task
    words = f"tune --method mraco --space tuccl --cluster {cluster} --nodes {nodes} --collective {collective}"
    words += f" --bytes {size} --noise {JITTER} --seed {seed} --surface {surface} --json"
    words += "" if world is None else f" --world {world}"
    said = subprocess.run([program, *words.split()], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)


class Surface:
    """The recorded times of one task, measured with noise."""

    def __init__(self, path, seed):
        recorded = json.loads(Path(path).read_text())
        self.values = [dimension["values"] for dimension in recorded["dimensions"]]
        self.start = recorded["start"]
        self.times = recorded["time_us"]
        self.best = min(self.times)
        self.noise = random.Random(seed)

    def true(self, point):
        index = 0
        for value, values in zip(point, self.values):
            index = index * values + value
        return self.times[index]


def names(dimensions):
    return [f"x{dimension}" for dimension in range(dimensions)]


def optuna_search(surface, budget, seed):
    """Quality and seconds of searching per full measurement, at this many of them."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=CALLS, reduction_factor=3)
    keys = names(len(surface.values))
    spent, searching = 0.0, 0.0
    begun = time.perf_counter()
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.enqueue_trial(dict(zip(keys, surface.start)))
    searching += time.perf_counter() - begun
    while spent + 1.0 / CALLS <= budget:
        begun = time.perf_counter()
        trial = study.ask()
        # The protocol has no order, the others do.
        point = [trial.suggest_categorical(keys[0], list(range(surface.values[0])))]
        point += [trial.suggest_int(key, 0, values - 1) for key, values in zip(keys[1:], surface.values[1:])]
        searching += time.perf_counter() - begun
        total, calls, pruned = 0.0, 0, False
        for rung in RUNGS:
            more = rung - calls
            spread = JITTER / math.sqrt(more)
            total += more * math.log(surface.true(point) * math.exp(spread * surface.noise.gauss(0, 1)))
            calls = rung
            begun = time.perf_counter()
            trial.report(total / calls, rung)
            pruned = rung < CALLS and trial.should_prune()
            searching += time.perf_counter() - begun
            if pruned:
                break
        begun = time.perf_counter()
        if pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, total / calls)
        searching += time.perf_counter() - begun
        spent += calls / CALLS
    best = study.best_trial
    return surface.best / surface.true([best.params[key] for key in keys]), searching / spent


def main():
    args = arguments()
    if os.environ.get("MRACO_VS_OPTUNA") != "ready":
        with_optuna(args)
    import optuna

    program = binary(args)
    print(f"# MRACO beside Optuna {optuna.__version__} (TPESampler, HyperbandPruner), {args.seeds} seeds, simulated")
    print(f"# {'task':34}  {'trials':>6}  {'quality':>16}  {'worst':>16}  {'us per trial':>18}")
    print(f"# {'':34}  {'':>6}  {'mraco':>7}  {'optuna':>7}  {'mraco':>7}  {'optuna':>7}  {'mraco':>7}  {'optuna':>9}")
    nominal = race(program, None, args.seeds)
    drawn = [row for world in range(1, args.worlds + 1) for row in race(program, world, args.seeds)]
    verdicts = [verdict(name, rows) for name, rows in [("nominal world", nominal), ("drawn worlds", drawn)] if rows]
    return 0 if all(verdicts) else 1


def race(program, world, seeds):
    """Every task of a world with every seed: trials, both qualities, and both times per trial."""
    print("# nominal world" if world is None else f"# world {world}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "surface.json"
        for task in TASKS:
            of_task = []
            for seed in range(1, seeds + 1):
                found = mraco(program, task, world, seed, path)
                quality, seconds = optuna_search(Surface(path, seed), found["trials"], seed)
                ours = (found["quality"], found["search_us_per_trial"])
                of_task.append((found["trials"], ours[0], quality, ours[1], 1e6 * seconds))
            show(task, of_task)
            rows += of_task
    return rows


def show(task, rows):
    cluster, nodes, collective, size = task
    columns = list(zip(*rows))
    trials, ours, theirs, our_time, their_time = [statistics.median(column) for column in columns]
    worst = [min(column) for column in columns[1:3]]
    print(
        f"  {f'{collective} {size} on {nodes} {cluster}':34}  {trials:6.1f}  {ours:7.4f}  {theirs:7.4f}"
        f"  {worst[0]:7.4f}  {worst[1]:7.4f}  {our_time:7.1f}  {their_time:9.1f}",
        flush=True,
    )


def verdict(name, rows):
    """Whether MRACO is at least as good, and fast enough."""
    _, ours, theirs, our_time, their_time = list(zip(*rows))
    mean, median = statistics.geometric_mean, statistics.median
    ratio = median(their_time) / median(our_time)
    print(f"# {name}, {len(rows)} searches: quality {mean(ours):.4f} beside {mean(theirs):.4f}, geometric mean;")
    print(f"#   medians {median(ours):.4f} beside {median(theirs):.4f}; {ratio:.0f} times less time per trial")
    return mean(ours) >= mean(theirs) and median(ours) >= median(theirs) and ratio >= LEAST_RATIO


if __name__ == "__main__":
    sys.exit(main())
