#!/usr/bin/env python3
"""Steps per second of training, ours beside sb3-contrib's RecurrentPPO, on one thread.

    scripts/bench/recurrent_ppo.py [--rounds 3] [--updates 3] [--json] [--binary PATH] [--venv DIR]

Both gather 16 environments x 128 steps and go through them 4 times in 4 minibatches, with an LSTM of 128 cells. Theirs
acts in CartPole-v1, one LSTM for policy and value (its fastest way with a memory that both see); ours in its own
simulator (agent/examples/training_steps.rs), which is the larger of the two environments. The first update of each
round warms up and does not count. Rounds alternate, so that a machine which slows down slows both.

Exit code 0: the median over rounds of (our steps per second / theirs) is at least 10; 1: not so; 2: bad usage.

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

ENVIRONMENTS, STEPS, EPOCHS, MINIBATCHES, CELLS = 16, 128, 4, 4, 128
ROLLOUT = ENVIRONMENTS * STEPS
LEAST = 10.0


def arguments():
    parser = peers.parser(__doc__)
    parser.add_argument("--rounds", type=peers.positive, default=3)
    parser.add_argument("--updates", type=peers.positive, default=3, help="updates of a round [default: 3]")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--binary", type=Path, help="the example training_steps [default: built with cargo]")
    return parser.parse_args()


def theirs(updates):
    """Steps per second of RecurrentPPO."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Clock(BaseCallback):
        """The time at which each rollout begins."""

        def _init_callback(self):
            self.begun = []

        def _on_rollout_start(self):
            self.begun.append(time.perf_counter())

        def _on_step(self):
            return True

    clock = Clock()
    memory = {"lstm_hidden_size": CELLS, "shared_lstm": True, "enable_critic_lstm": False}
    model = RecurrentPPO(
        "MlpLstmPolicy",
        make_vec_env("CartPole-v1", ENVIRONMENTS, seed=1),
        n_steps=STEPS,
        n_epochs=EPOCHS,
        batch_size=ROLLOUT // MINIBATCHES,
        policy_kwargs=memory,
        seed=1,
        device="cpu",
    )
    model.learn(ROLLOUT * (updates + 1), callback=clock)
    return ROLLOUT * updates / (time.perf_counter() - clock.begun[1])


def ours(program, updates):
    shape = [ENVIRONMENTS, STEPS, EPOCHS, MINIBATCHES, CELLS, updates]
    said = subprocess.run([program, *map(str, shape)], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)["steps_per_second"]


def main():
    args = arguments()
    peers.ready(args.venv, [peers.TORCH, *peers.RECURRENT_PPO])
    import sb3_contrib
    import torch

    torch.set_num_threads(1)
    program = args.binary or peers.built("training_steps")
    rounds = [(ours(program, args.updates), theirs(args.updates)) for _ in range(args.rounds)]
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    if args.json:
        found = {"schema": "recurrent_ppo-v1", "sb3_contrib": sb3_contrib.__version__, "torch": torch.__version__}
        print(json.dumps({**found, "rounds": rounds, "ratio": ratio, "least": LEAST, "passed": ratio >= LEAST}))
        return 0 if ratio >= LEAST else 1
    print(f"# training, {ENVIRONMENTS} x {STEPS} steps, {EPOCHS} epochs, LSTM {CELLS}, one thread: steps per second")
    print(f"# {'round':>5}  {'ours':>8}  {'RecurrentPPO ' + sb3_contrib.__version__:>20}  {'ratio':>6}")
    for number, (ours_, theirs_) in enumerate(rounds, 1):
        print(f"  {number:5}  {ours_:8.0f}  {theirs_:20.0f}  {ours_ / theirs_:6.1f}")
    print(f"# median ratio {ratio:.1f} (at least {LEAST:.0f})")
    return 0 if ratio >= LEAST else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
