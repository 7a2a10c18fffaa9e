#!/usr/bin/env python3
"""What each part of the agent is worth: trains it without the part, judges it, and prints one table in Markdown.

    scripts/bench/ablations.py [--curriculum short] [--steps N] [--seeds 1,2,3] [--only lstm,anchor]
                               [--worlds 2] [--jobs 2] [--out checkpoints/ablations] [--binary FILE]

Every variant is trained with the same seeds, steps and curriculum and judged in the same worlds.
The verdict is on regret over tiers 1 to 4 with feedback: a part helps where regret without it is higher by more than
twice the standard error of the difference, and does not help where it is lower by as much; else the difference is
within noise. What is done is kept in --out and not done again. A run of `short` takes some four minutes on 2 cores
and there are 24; one of `full` an hour. Needs Python 3.9, and cargo where no --binary is given.
"""

import argparse
import concurrent.futures
import math
import os

import runs

# Names of what is taken away, how `train` is told, and what that means.
VARIANTS = [
    ("whole", [], "nothing is taken away"),
    ("lstm", ["--without", "lstm"], "decisions never see the history"),
    ("anchor", ["--without", "anchor"], "pairs are not anchored on NCCL's prediction"),
    ("cost_table", ["--without", "cost_table"], "NCCL's cost table is not seen"),
    ("curriculum", ["--without", "curriculum"], "the last stage from the beginning, with the steps of all"),
    ("feedback", ["--without", "feedback"], "nobody is told what a call took"),
    ("experts", ["--without", "experts"], "all roles share one expert"),
    ("hindsight", ["--set", "rollout.hindsight=0"], "only what ran is learned from, as on a real machine"),
]
GROUPS = [(1, "tier 1"), (2, "tier 2"), (3, "tier 3"), (4, "tier 4"), ("held_out", "held-out")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--curriculum", default="short")
    parser.add_argument("--steps", type=int, help="steps of each run [default: until the curriculum is through]")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--only", default="", help="variants beside whole, separated by commas [default: all]")
    parser.add_argument("--worlds", type=int, default=2, help="worlds of each of the three seeds of eval")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once, which share the cores")
    parser.add_argument("--out", default=os.path.join("checkpoints", "ablations"))
    parser.add_argument("--binary", help="the program [default: the repository's, built first]")
    args = parser.parse_args()
    wanted = set(filter(None, args.only.split(",")))
    unknown = wanted - {name for name, _, _ in VARIANTS}
    if unknown:
        parser.error(f"--only {','.join(sorted(unknown))}: known are {', '.join(name for name, _, _ in VARIANTS)}")
    args.variants = [v for v in VARIANTS if not wanted or v[0] in wanted or v[0] == "whole"]
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    return args


def judge(program, args, name, words, seed):
    """The policy of a variant as the judgement at the end of `train` has it."""
    folder = os.path.join(args.out, f"{args.curriculum}__{name}__s{seed}")
    steps = ["--steps", str(args.steps)] if args.steps else []
    at_the_end = ["--against", "nccl", "--eval-worlds", str(args.worlds)]
    # Else half of the time would go into judgements on the way.
    on_the_way = ["--set", "evaluation.worlds=1"]
    train = ["--curriculum", args.curriculum, "--seed", str(seed), *steps, *words, *on_the_way, *at_the_end]
    threads = max(1, (os.cpu_count() or 1) // args.jobs)
    done = runs.train(program, folder, f"{name}, seed {seed}", train, ["--threads", str(threads)])
    return runs.tuner(done["eval"])


def judge_all(program, args):
    """For each variant the policies of all seeds."""
    todo = [(name, words, seed) for name, words, _ in args.variants for seed in args.seeds]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        done = list(pool.map(lambda one: judge(program, args, *one), todo))
    found = {name: [] for name, _, _ in args.variants}
    for (name, _, _), judged in zip(todo, done):
        found[name].append(judged)
    return found


def over(judged, group, figure):
    """A figure of each seed."""
    found = [runs.figures(one, group) for one in judged]
    return [one[figure] for one in found if one]


def verdict(whole, without):
    """Whether a part helps, from the regrets of each seed with and without it."""
    difference = runs.mean(without) - runs.mean(whole)
    error = math.sqrt(runs.deviation(whole) ** 2 / len(whole) + runs.deviation(without) ** 2 / len(without))
    points = f"{100 * difference:+.2f} points"
    if len(whole) < 2 or abs(difference) <= 2 * error:
        return f"within noise ({points})"
    return f"helps ({points} without)" if difference > 0 else f"does not help ({points} without)"


def row(name, what, judged, whole):
    cells = [f"without {name}" if name != "whole" else name, what]
    for group, _ in GROUPS:
        regret, hold = over(judged, group, "regret"), over(judged, group, "regret_hold")
        cells.append(f"{runs.percent(regret)} ({runs.percent(hold)})" if regret else "-")
    regret = over(judged, "overall", "regret")
    cells.append(f"{runs.percent(regret)} ({runs.percent(over(judged, 'overall', 'regret_hold'))})")
    cells.append(f"{min(over(judged, 'overall', 'worst_cell')):.3f}")
    cells.append("" if name == "whole" else verdict(over(whole, "overall", "regret"), regret))
    return cells


def main():
    args = arguments()
    program = runs.binary(args.binary)
    found = judge_all(program, args)
    titles = ["agent", "which means", *[title for _, title in GROUPS], "all", "worst cell", "verdict"]
    rows = [row(name, what, found[name], found["whole"]) for name, _, what in args.variants]
    steps = f"{args.steps} steps" if args.steps else "until it is through"
    print(f"Simulated. `{args.curriculum}`, {steps}, seeds {', '.join(map(str, args.seeds))}; regret in %, in brackets "
          f"without feedback, mean ± σ over seeds; 3 × {args.worlds} worlds; worst cell: the smallest speed-up of all seeds.\n")
    print(runs.table(titles, rows))


if __name__ == "__main__":
    main()
