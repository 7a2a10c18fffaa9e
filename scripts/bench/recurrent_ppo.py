#!/usr/bin/env python3
"""Steps per second of training, ours beside sb3-contrib's RecurrentPPO, on one thread.

    scripts/bench/recurrent_ppo.py [--rounds 3] [--updates 3] [--minibatches 4] [--json] [--binary PATH] [--venv DIR]

Both gather 16 environments x 128 steps and go through them 4 times, with one LSTM of 128 cells that policy and value
share and layers of 64 besides. Theirs acts in CartPole-v1, twice in each round: with its own batch size (128 steps)
and with ours (the rollout in that many minibatches of whole sequences). Ours acts in its own simulator (agent/examples/training_steps.rs), which
sees 214 numbers where CartPole has 4, and chooses with five heads; also twice: PPO alone, which is what the other does,
and as a run of ours is, with lessons in hindsight beside. The first update of each round warms up and does not count.
Rounds alternate, so that a machine which slows down slows both, and times are those on a core, so that others who use
the machine count for little.

Exit code 0: the median over rounds of (our steps per second, PPO alone / theirs with its own batch size) is at least
10; 1: not so; 2: bad usage.

Needs cargo, Python 3.10 and PyPI (PyTorch is a download of some 3 GB, once): it installs its peers into a virtual
environment of its own.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import peers

ENVIRONMENTS, STEPS, EPOCHS, CELLS = 16, 128, 4, 128
ROLLOUT = ENVIRONMENTS * STEPS
THEIR_BATCH = 128
LEAST = 10.0
KINDS = ["ppo", "whole"]


def arguments():
    parser = peers.parser(__doc__)
    parser.add_argument("--rounds", type=peers.positive, default=3)
    parser.add_argument("--updates", type=peers.positive, default=3, help="updates of a round [default: 3]")
    parser.add_argument("--minibatches", type=peers.positive, default=4, help="minibatches of ours [default: 4]")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--binary", type=Path, help="the example training_steps [default: built with cargo]")
    return parser.parse_args()


def theirs(updates, size):
    """Steps per second of RecurrentPPO with this batch size."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Clock(BaseCallback):
        """The time at which each rollout begins."""

        def _init_callback(self):
            self.begun = []

        def _on_rollout_start(self):
            self.begun.append(time.process_time())

        def _on_step(self):
            return True

    clock = Clock()
    memory = {"lstm_hidden_size": CELLS, "shared_lstm": True, "enable_critic_lstm": False}
    model = RecurrentPPO(
        "MlpLstmPolicy",
        make_vec_env("CartPole-v1", ENVIRONMENTS, seed=1),
        n_steps=STEPS,
        n_epochs=EPOCHS,
        batch_size=size,
        policy_kwargs=memory,
        seed=1,
        device="cpu",
    )
    model.learn(ROLLOUT * (updates + 1), callback=clock)
    return ROLLOUT * updates / (time.process_time() - clock.begun[1])


def ours(program, updates, minibatches, kind):
    shape = [ENVIRONMENTS, STEPS, EPOCHS, minibatches, CELLS, updates, kind]
    said = subprocess.run([program, *map(str, shape)], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)["steps_per_second"]


def main():
    args = arguments()
    peers.ready(args.venv, [peers.TORCH, *peers.RECURRENT_PPO])
    import sb3_contrib
    import torch

    torch.set_num_threads(1)
    program = args.binary or peers.built("training_steps")
    batches = [THEIR_BATCH, ROLLOUT // args.minibatches]
    rounds = []
    for _ in range(args.rounds):
        found = [ours(program, args.updates, args.minibatches, kind) for kind in KINDS]
        rounds.append((*found, *(theirs(args.updates, size) for size in batches)))
    return report(args, sb3_contrib.__version__, batches, rounds)


def report(args, version, batches, rounds):
    """Ratios: a row for each kind of ours, a column for each batch size of theirs."""
    ratios = [[statistics.median(row[kind] / row[2 + size] for row in rounds) for size in (0, 1)] for kind in (0, 1)]
    fine = ratios[0][0] >= LEAST
    if args.json:
        found = {"schema": "recurrent_ppo-v2", "sb3_contrib": version, "kinds": KINDS, "batches": batches, "rounds": rounds}
        print(json.dumps({**found, "ratios": ratios, "least": LEAST, "passed": fine}))
        return 0 if fine else 1
    print(f"# training, {ENVIRONMENTS} x {STEPS} steps, {EPOCHS} epochs, LSTM {CELLS}, one thread: steps per second")
    print(f"# {'':5}  ours, {args.minibatches} minibatches  RecurrentPPO {version} with batches of")
    print(f"# {'round':>5}  " + "  ".join(f"{x:>8}" for x in [*KINDS, *batches]))
    for number, row in enumerate(rounds, 1):
        print(f"  {number:5}  " + "  ".join(f"{x:8.0f}" for x in row))
    for kind, row in zip(KINDS, ratios):
        print(f"# median ratios of {kind}: {row[0]:.1f} and {row[1]:.1f}")
    print(f"# the first of {KINDS[0]} is to be at least {LEAST:.0f}")
    return 0 if fine else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
