#!/usr/bin/env python3
"""One update of a recurrent policy, ours beside PyTorch's eager nn.LSTM, on one thread.

    scripts/bench/lstm_update.py [--rounds 7] [--updates 12] [--json] [--binary PATH] [--venv DIR]

An update is what training does with a minibatch: LSTM(96 to 128) over 32 sequences of 64 steps, 23 outputs (heads
of 7, 3, 8 and 4 choices, and a value), the clipped PPO loss with entropy and value, backward, a global norm of at
most 0.5, Adam. Ours is agent/examples/lstm_update.rs: the LSTM and the optimiser of the learner itself, burn above
them. Both begin with the same weights and go through the same numbers; their losses must agree, or neither time
means anything. Rounds alternate, so that a machine which slows down slows both, and times are those on a core, so
that others who use the machine count for little.

Exit code 0: the losses agree and the median over rounds of (our time / PyTorch's) is at most 2; 1: not so; 2: bad
usage. The first update of a round warms up and does not count.

Needs cargo, Python 3.10 and PyPI (PyTorch is a download of some 3 GB, once): it installs PyTorch into a virtual
environment of its own.
"""

import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

SEQUENCES, STEPS, INPUTS, CELLS = 32, 64, 96, 128
HEADS = [7, 3, 8, 4]
OUTPUTS = sum(HEADS) + 1
RATE, LONGEST, CLIP, ENTROPY, VALUE = 1e-3, 0.5, 0.2, 0.01, 0.5
MOST = 2.0
LOSS_TOLERANCE = 1e-4


def arguments():
    parser = peers.parser(__doc__)
    parser.add_argument("--rounds", type=peers.positive, default=7)
    parser.add_argument("--updates", type=peers.positive, default=12, help="updates of a round [default: 12]")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--binary", type=Path, help="the example lstm_update [default: built with cargo]")
    return parser.parse_args()


def batch(torch):
    """Weights and a minibatch, in the order in which the example reads them."""
    torch.manual_seed(1)
    rows = SEQUENCES * STEPS
    normal = lambda *dims, scale=1.0: torch.randn(*dims) * scale
    return {
        "seen": normal(STEPS, SEQUENCES, INPUTS),
        "weight": normal(INPUTS + CELLS, 4 * CELLS, scale=(INPUTS + CELLS) ** -0.5),
        "bias": normal(4 * CELLS, scale=0.1),
        "head_weight": normal(CELLS, OUTPUTS, scale=CELLS**-0.5),
        "head_bias": normal(OUTPUTS, scale=0.1),
        "choices": torch.stack([torch.randint(head, (rows,)) for head in HEADS], 1).float(),
        "before": -sum(torch.tensor(float(head)).log() for head in HEADS) + normal(rows, scale=0.1),
        "advantages": normal(rows),
        "returns": normal(rows),
    }


class Peer:
    """The update in PyTorch."""

    def __init__(self, torch, numbers):
        self.torch, self.numbers = torch, numbers
        self.lstm = torch.nn.LSTM(INPUTS, CELLS)
        self.heads = torch.nn.Linear(CELLS, OUTPUTS)
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(numbers["weight"][:INPUTS].T)
            self.lstm.weight_hh_l0.copy_(numbers["weight"][INPUTS:].T)
            self.lstm.bias_ih_l0.copy_(numbers["bias"])
            self.lstm.bias_hh_l0.zero_()
            self.heads.weight.copy_(numbers["head_weight"].T)
            self.heads.bias.copy_(numbers["head_bias"])
        # Its second bias adds nothing but numbers to move.
        self.lstm.bias_hh_l0.requires_grad_(False)
        self.moved = [p for m in (self.lstm, self.heads) for p in m.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(self.moved, lr=RATE, eps=1e-5)
        self.choices = numbers["choices"].long()

    def update(self):
        torch, numbers = self.torch, self.numbers
        hidden, _ = self.lstm(numbers["seen"])
        outputs = self.heads(hidden.reshape(-1, CELLS))
        logits = torch.split(outputs, [*HEADS, 1], dim=1)
        chosen, entropy = 0.0, 0.0
        for head, of_head in enumerate(logits[:-1]):
            ln = torch.log_softmax(of_head, 1)
            chosen = chosen + ln.gather(1, self.choices[:, head : head + 1]).squeeze(1)
            entropy = entropy - (ln.exp() * ln).sum(1)
        ratio = (chosen - numbers["before"]).exp()
        advantages = numbers["advantages"]
        surrogate = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)
        wrong = (logits[-1].squeeze(1) - numbers["returns"]) ** 2
        loss = -surrogate.mean() - ENTROPY * entropy.mean() + VALUE * wrong.mean()
        self.adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.moved, LONGEST)
        self.adam.step()
        return loss.item()


def theirs(torch, numbers, updates):
    peer = Peer(torch, numbers)
    losses = [peer.update()]
    begun = time.process_time()
    losses += [peer.update() for _ in range(updates)]
    return losses, (time.process_time() - begun) / updates


def ours(program, path, updates):
    said = subprocess.run([program, path, str(updates)], check=True, capture_output=True, text=True)
    said = json.loads(said.stdout)
    return said["losses"], said["seconds"]


def write(numbers, path):
    with open(path, "wb") as file:
        for tensor in numbers.values():
            flat = tensor.flatten().tolist()
            file.write(struct.pack(f"<{len(flat)}f", *flat))


def main():
    args = arguments()
    peers.ready(args.venv, [peers.TORCH])
    import torch

    torch.set_num_threads(1)
    program = args.binary or peers.built("lstm_update")
    numbers = batch(torch)
    rounds, apart = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "batch"
        write(numbers, path)
        for _ in range(args.rounds):
            their_losses, their_seconds = theirs(torch, numbers, args.updates)
            our_losses, our_seconds = ours(program, path, args.updates)
            apart = max(apart, *(abs(a - b) for a, b in zip(their_losses, our_losses, strict=True)))
            rounds.append((1e3 * our_seconds, 1e3 * their_seconds))
    return report(args, torch.__version__, rounds, apart)


def report(args, version, rounds, apart):
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    fine = ratio <= MOST and apart <= LOSS_TOLERANCE
    if args.json:
        found = {"schema": "lstm_update-v1", "torch": version, "rounds_ms": rounds, "ratio": ratio}
        print(json.dumps({**found, "most": MOST, "losses_apart": apart, "passed": fine}))
        return 0 if fine else 1
    print(f"# LSTM({INPUTS} to {CELLS}), {OUTPUTS} outputs, {SEQUENCES} x {STEPS} steps, one thread: ms of an update")
    print(f"# {'round':>5}  {'ours':>8}  {'PyTorch ' + version:>20}  {'ratio':>6}")
    for number, (ours, theirs) in enumerate(rounds, 1):
        print(f"  {number:5}  {ours:8.2f}  {theirs:20.2f}  {ours / theirs:6.2f}")
    print(f"# median ratio {ratio:.2f} (at most {MOST}); losses of {args.updates} updates within {apart:.1e}")
    return 0 if fine else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
