#!/usr/bin/env python3
"""Holds the agent to what it must reach: trains each curriculum with several seeds, judges the policies, and prints every
bar with what was reached.

    scripts/bench/agent.py [smoke] [stage1] [full] [--seeds 1,2,3] [--worlds 8] [--out checkpoints/agent]
                           [--policies A.safetensors,B.safetensors] [--binary FILE]

Without a curriculum, all three. `--policies` judges these instead of training `full`, one for each seed. Times are
of the whole `train` command as it says itself. Regrets are judged by their mean over the seeds; times, worst cells and
whether knobs differ between tiers by the worst seed. What is done is kept in --out and not done again. Exit code 0:
every bar is reached; 1: one is not. `full` takes half an hour for each seed on 2 cores. Needs Python 3.9, and cargo
where no --binary is given.
"""

import argparse
import os
import sys

import runs

ONLINE = ["coordinate", "mraco", "mraco_online", "bandit", "epsilon"]
MARKS = ["50", "200", "1000"]
TIERS = [1, 2, 3, 4]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("curricula", nargs="*", metavar="CURRICULUM", help="smoke, stage1 or full [default: all]")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--worlds", type=int, default=8, help="worlds of each of the three seeds of eval")
    parser.add_argument("--policies", default="", help="judge these instead of training full")
    parser.add_argument("--out", default=os.path.join("checkpoints", "agent"))
    parser.add_argument("--binary", help="the program [default: the repository's, built first]")
    args = parser.parse_args()
    args.policies = list(filter(None, args.policies.split(",")))
    args.curricula = args.curricula or (["full"] if args.policies else ["smoke", "stage1", "full"])
    unknown = set(args.curricula) - {"smoke", "stage1", "full"}
    if unknown:
        parser.error(f"{' '.join(sorted(unknown))}: known are smoke, stage1 and full")
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    return args


class Bars:
    """What must be reached, and what was."""

    def __init__(self):
        self.rows = []
        self.missed = 0

    def add(self, what, wanted, reached, passed):
        self.missed += not passed
        self.rows.append([what, wanted, reached, "reached" if passed else "**missed**"])

    def at_most(self, what, values, bar, show=runs.percent, of=runs.mean):
        unit = " %" if show is runs.percent else " s"
        shown = f"{100 * bar:.2f}" if show is runs.percent else f"{bar:.0f}"
        self.add(what, f"≤ {shown}{unit}", show(values) + unit, of(values) <= bar)


def seconds(values):
    return f"{runs.mean(values):.0f} ± {runs.deviation(values):.0f}"


def trained(program, args, curriculum):
    done = []
    for seed in args.seeds:
        folder = os.path.join(args.out, f"{curriculum}__s{seed}")
        words = ["--curriculum", curriculum, "--seed", str(seed)]
        done.append(runs.train(program, folder, f"{curriculum}, seed {seed}", words))
    return done


def judged(program, args, title, policies, tiers):
    """The policies, each as the first tuner of eval, and the baselines in the same worlds."""
    where = ["--worlds", str(args.worlds), "--tiers", ",".join(map(str, tiers))]
    os.makedirs(args.out, exist_ok=True)
    found = []
    for at, policy in enumerate(policies):
        place = os.path.join(args.out, f"{title}__{at}__eval.json")
        words = ["--policy", policy, "--against", "nccl", *where]
        found.append(runs.tuner(runs.evaluate(program, place, f"{title} {at}", words)))
    against = ["bayes"] + (ONLINE if len(tiers) > 1 else [])
    words = ["--policy", "none", "--against", ",".join(against), *where]
    baselines = runs.evaluate(program, os.path.join(args.out, f"{title}__baselines.json"), title, words)
    return found, baselines


def over(found, group, figure):
    return [runs.figures(one, group)[figure] for one in found if runs.figures(one, group)]


def regret_bars(bars, title, found, baselines, tier, most):
    """Regret at a tier, and hold beside that of the best fixed knobs."""
    bayes = runs.figures(runs.tuner(baselines, "bayes"), tier)
    bars.at_most(f"{title}: regret at tier {tier}", over(found, tier, "regret"), most)
    hold = [hold - bayes["regret_hold"] for hold in over(found, tier, "regret_hold")]
    bars.at_most(f"{title}: hold at tier {tier} above bayes' {100 * bayes['regret_hold']:.2f} %", hold, 0.02)


def full_bars(bars, found, baselines):
    bayes = runs.tuner(baselines, "bayes")
    for tier in TIERS:
        regret_bars(bars, "full", found, baselines, tier, 0.05)
        ceiling = runs.figures(bayes, tier)["regret"]
        regret = over(found, tier, "regret")
        bars.add(f"full: regret at tier {tier} below bayes", f"< {100 * ceiling:.2f} %", runs.percent(regret) + " %",
                 runs.mean(regret) < ceiling)
        worst = over(found, tier, "worst_cell")
        bars.add(f"full: worst cell at tier {tier}", "≥ 0.97", ", ".join(f"{x:.3f}" for x in worst), min(worst) >= 0.97)
    more = [out - whole for out, whole in zip(over(found, "held_out", "regret"), over(found, "overall", "regret"))]
    bars.at_most("full: regret on held-out clusters above that of all tiers", more, 0.02)
    more = [out - whole for out, whole in zip(over(found, "held_out", "regret_hold"), over(found, "overall", "regret_hold"))]
    bars.at_most("full: hold on held-out clusters above that of all tiers", more, 0.02)
    for tier in TIERS[1:]:
        for mark in MARKS:
            others = {name: runs.figures(runs.tuner(baselines, name), tier)["cumulative"][mark] for name in ONLINE}
            name = min(others, key=others.get)
            ours = [one["cumulative"][mark] for one in (runs.figures(each, tier) for each in found)]
            reached = f"{runs.mean(ours):.3f} ± {runs.deviation(ours):.3f}"
            bars.add(f"full: time after {mark} calls at tier {tier}, against online tuners", f"< {others[name]:.3f} ({name})",
                     reached, runs.mean(ours) < others[name])


def proved(program, args, policies):
    """What `eval --proof tiers` finds of each policy."""
    words = ["--proof", "tiers", "--worlds", str(args.worlds)]
    return [runs.evaluate(program, os.path.join(args.out, f"full__{at}__proof.json"), f"proof {at}", ["--policy", policy, *words])
            for at, policy in enumerate(policies)]


def proof_bars(bars, proofs):
    """What policies know of tiers: regrets of the same call by their mean over the seeds, knobs in every seed."""
    cells = {}
    for proof in proofs:
        for call in proof["same_call"]["calls"]:
            for tier in call["tiers"]:
                cells.setdefault((call["collective"], call["bytes"], tier["tier"]), []).append(tier["regret"])
    (collective, size, tier), worst = max(cells.items(), key=lambda cell: runs.mean(cell[1]))
    bars.at_most(f"full: the same call at each tier, regret in the worst of {len(cells)} cells "
                 f"({collective} {size >> 10}K at tier {tier})", worst, 0.05)

    def everywhere(what, pairs):
        reached = ", ".join(f"{ours} of {all_of}" for ours, all_of in pairs)
        bars.add(f"full: {what}", "all", reached, all(ours == all_of for ours, all_of in pairs))

    same, equal = [[proof[part] for proof in proofs] for part in ("same_call", "equal_tables")]
    everywhere("the same call has different knobs where the oracle has", [(x["differs"], x["oracle_differs"]) for x in same])
    everywhere("equal tables: knobs differ where the best fixed ones do", [(x["differs"], x["oracle_differs"]) for x in equal])
    everywhere("equal tables: knobs differ where no fixed ones suit both tiers",
               [(x["differs_there"], x["must_differ"]) for x in equal])
    worlds = [x["by_world"] for x in equal]
    everywhere("equal tables, world by world: the same", [(x["differs_there"], x["must_differ"]) for x in worlds])
    told = [[tuner["regret"] for tuner in x["tuners"][:2]] for x in equal]
    bars.add("full: hiding the tier raises regret", "in every seed",
             ", ".join(f"{100 * known:.2f} to {100 * hidden:.2f} %" for known, hidden in told),
             all(x["hiding_hurts"] for x in equal))


def main():
    args = arguments()
    program = runs.binary(args.binary)
    bars = Bars()
    if "smoke" in args.curricula:
        times = [run["seconds"] for run in trained(program, args, "smoke")]
        bars.at_most("smoke: seconds", times, 60, seconds, max)
    if "stage1" in args.curricula:
        done = trained(program, args, "stage1")
        bars.at_most("stage1: seconds", [run["seconds"] for run in done], 360, seconds, max)
        found, baselines = judged(program, args, "stage1", [run["policy"] for run in done], [1])
        regret_bars(bars, "stage1", found, baselines, 1, 0.04)
    if "full" in args.curricula:
        policies = args.policies
        if not policies:
            done = trained(program, args, "full")
            bars.at_most("full: seconds", [run["seconds"] for run in done], 5400, seconds, max)
            policies = [run["policy"] for run in done]
        found, baselines = judged(program, args, "full", policies, TIERS)
        full_bars(bars, found, baselines)
        proof_bars(bars, proved(program, args, policies))
    print(f"Simulated. Mean ± σ over {len(args.policies) or len(args.seeds)} seeds of training; 3 × {args.worlds} worlds.\n")
    print(runs.table(["bar", "wanted", "reached", "verdict"], bars.rows))
    print(f"\n{len(bars.rows) - bars.missed} of {len(bars.rows)} bars are reached.")
    sys.exit(1 if bars.missed else 0)


if __name__ == "__main__":
    main()
