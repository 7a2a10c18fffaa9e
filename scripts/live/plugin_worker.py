"""One rank of a job that calls NCCL through torch.distributed; scripts/live/plugin_on_gpu.sh starts it.

    plugin_worker.py TASK --rank R --ranks N --store FILE [--calls N] [--check-every N]
                     [--seconds S] [--backend nccl]

TASK is
    check   all five collectives in small and large sizes, every result compared with what it must be
    time    medians of allreduce; a round for every line on stdin, one RESULT for each, so that several jobs can be
            measured in turn
    walk    many collectives of mixed kind and size, allgathers of uneven parts among them, every Nth compared

Needs PyTorch, and a GPU for the backend nccl; `--backend gloo` runs the same on the CPU, to test this file.
What it found is the line RESULT with one JSON object. A wrong result ends it with exit code 1.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

# One call in so many of the walk is an allgather of uneven parts.
UNEVEN = 50
KINDS = ["broadcast", "reduce", "allgather", "reducescatter", "allreduce"]


class Caller:
    """Makes collectives whose results are known: rank r sends pattern + r, in whole numbers that floats hold exactly."""

    def __init__(self, rank, ranks, device):
        self.rank, self.ranks, self.device = rank, ranks, device
        # Made once: 0..250 repeated, and one buffer to send from and one to receive into.
        self.most = 8 << 20
        self.pattern = (torch.arange(self.most, device=device) % 251).to(torch.float32)
        self.mine = torch.empty_like(self.pattern)
        self.got = torch.empty_like(self.pattern)

    def call(self, kind, count):
        """Runs one collective of `count` floats (of the larger side) without waiting, and gives where its result will be."""
        rank, ranks = self.rank, self.ranks
        part = count // ranks
        if kind == "allreduce":
            out = self.got[:count]
            torch.add(self.pattern[:count], rank, out=out)
            dist.all_reduce(out)
        elif kind == "broadcast":
            out = self.got[:count]
            torch.add(self.pattern[:count], rank, out=out)
            dist.broadcast(out, src=part % ranks)
        elif kind == "reduce":
            out = self.got[:count]
            torch.add(self.pattern[:count], rank, out=out)
            dist.reduce(out, dst=part % ranks)
        elif kind == "allgather":
            torch.add(self.pattern[:part], rank, out=self.mine[:part])
            out = self.got[: part * ranks]
            dist.all_gather_into_tensor(out, self.mine[:part])
        else:
            torch.add(self.pattern[: part * ranks], rank, out=self.mine[: part * ranks])
            out = self.got[:part]
            dist.reduce_scatter_tensor(out, self.mine[: part * ranks])
        return out

    def gathers_uneven(self, count):
        """Whether parts of different sizes are gathered right. PyTorch makes a group of broadcasts of that, and NCCL from 2.29
        on one kernel."""
        sizes = [count + other for other in range(self.ranks)]
        parts = list(self.got[: sum(sizes)].fill_(-1).split(sizes))
        mine = self.mine[: count + self.rank]
        torch.add(self.pattern[: len(mine)], self.rank, out=mine)
        dist.all_gather(parts, mine)
        return all(torch.equal(part, self.pattern[: len(part)] + other) for other, part in enumerate(parts))

    def expected(self, kind, count):
        """What the result must be; None where this rank gets none."""
        ranks, part = self.ranks, count // self.ranks
        total = ranks * (ranks - 1) // 2
        if kind == "allreduce":
            return self.pattern[:count] * ranks + total
        if kind == "broadcast":
            return self.pattern[:count] + part % ranks
        if kind == "reduce":
            return self.pattern[:count] * ranks + total if self.rank == part % ranks else None
        if kind == "allgather":
            return torch.cat([self.pattern[:part] + other for other in range(ranks)])
        return self.pattern[self.rank * part : (self.rank + 1) * part] * ranks + total

    def is_right(self, kind, count):
        # What a call before has left must not pass for a result.
        self.got[:count].fill_(-1)
        out = self.call(kind, count)
        expected = self.expected(kind, count)
        return expected is None or bool(torch.equal(out, expected))


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def check(caller, args):
    wrong, done = [], 0
    for kind in KINDS:
        for count in [256, 1000, 16 << 10, 256 << 10, 4 << 20]:
            count -= count % caller.ranks
            # With the barrier at the end below the 256 decisions that the plugin logs.
            for _ in range(10):
                done += 1
                if not caller.is_right(kind, count):
                    wrong.append(f"{kind} {4 * count}")
    return {"calls": done, "wrong": wrong}


def measure(caller, args):
    rows = []
    for count in [256, 16 << 10, 256 << 10, 4 << 20]:
        buffer = caller.got[:count].zero_()
        times = []
        for number in range(args.calls + 5):
            wait(caller.device)
            began = time.perf_counter()
            dist.all_reduce(buffer)
            wait(caller.device)
            if number >= 5:
                times.append((time.perf_counter() - began) * 1e6)
        rows.append({"bytes": 4 * count, "median_us": statistics.median(times), "min_us": min(times)})
    return {"rows": rows}


def is_late(caller, late):
    """Whether any rank has run out of time: all must stop at the same call."""
    flag = torch.tensor([float(late)], device=caller.device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def walk(caller, args):
    # The same on every rank: each draws from the same seed.
    draw = random.Random(7)
    wrong, checked, began = [], 0, time.perf_counter()
    for number in range(args.calls):
        kind = draw.choice(KINDS)
        # 8 B to 256 KiB, as many small ones as large, and seldom a round number.
        count = int(2 ** draw.uniform(1, 16))
        count = max(caller.ranks, count - count % caller.ranks)
        if number % args.check_every == 0:
            checked += 1
            if not caller.is_right(kind, count):
                wrong.append(f"{number}: {kind} {4 * count}")
        else:
            caller.call(kind, count)
        if number % UNEVEN == 0 and caller.device.type == "cuda" and not caller.gathers_uneven(count):
            wrong.append(f"{number}: uneven allgather {4 * count}")
        if number % 2000 == 1999 and is_late(caller, time.perf_counter() - began > args.seconds):
            break
    wait(caller.device)
    return {"calls": number + 1, "checked": checked, "wrong": wrong[:5], "seconds": time.perf_counter() - began}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=["check", "time", "walk"])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--check-every", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--backend", default="nccl")
    args = parser.parse_args()
    device = torch.device("cuda", 0) if args.backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store = f"file://{os.path.abspath(args.store)}"
    dist.init_process_group(
        args.backend, init_method=store, rank=args.rank, world_size=args.ranks, timeout=timedelta(seconds=60)
    )
    caller = Caller(args.rank, args.ranks, device)
    def tell(result):
        print("RESULT", json.dumps({"task": args.task, "rank": args.rank, **result}), flush=True)

    result = {}
    if args.task == "time":
        # Everything that happens once happens here.
        measure(caller, argparse.Namespace(calls=5))
        print("READY", flush=True)
        for _ in sys.stdin:
            tell(measure(caller, args))
    else:
        result = {"check": check, "walk": walk}[args.task](caller, args)
        tell(result)
    # The plugin writes its records every 50 ms.
    time.sleep(0.3)
    dist.barrier(**({"device_ids": [0]} if device.type == "cuda" else {}))
    dist.destroy_process_group()
    return 1 if result.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
