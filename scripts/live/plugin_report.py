"""Starts the ranks of scripts/live/plugin_on_gpu.sh, reads what NCCL and the plugin wrote, and says PASS or FAIL.

    plugin_report.py LIBRARY FOLDER [--other LIBNCCL] [--calls N]     called by plugin_on_gpu.sh
    plugin_report.py --self-test                                      the readers of logs, on written-down ones

Needs Python 3.9 and nothing else; the ranks (plugin_worker.py) need PyTorch.
"""

import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 2
ROUNDS = 7
# Two ranks on one GPU are two hosts to NCCL, which talk through sockets; nothing else is asked of the machine.
ALONE = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
COLLECTIVES = {"Broadcast": "broadcast", "Reduce": "reduce", "AllGather": "allgather"}
COLLECTIVES |= {"ReduceScatter": "reducescatter", "AllReduce": "allreduce"}
# The plugin's line about a decision and NCCL's about what it launches.
DECISION = re.compile(
    r"DynamICCL: (\w+) (\S+) x\d+: NCCL would take (\S+); (?:left to NCCL|(?:would be )?(\S+), (\w+) channels)"
)
LAUNCH = re.compile(
    r"NCCL INFO (\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}"
)


class Verdicts:
    def __init__(self):
        self.failed = 0

    def say(self, passed, what, detail=""):
        self.failed += not passed
        print(f"{'PASS' if passed else 'FAIL'}  {what}{': ' + str(detail) if detail != '' else ''}", flush=True)
        return passed


class Job:
    """Two ranks of the worker, with their logs in a folder of their own."""

    def __init__(self, folder, name, task, variables, words=()):
        self.name, self.folder = name, os.path.join(folder, name)
        os.makedirs(self.folder, exist_ok=True)
        store = os.path.join(self.folder, "store")
        if os.path.exists(store):
            os.remove(store)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "DYNAMICCL_"))}
        self.ranks = []
        for rank in range(RANKS):
            own = {"NCCL_HOSTID": f"rank{rank}", "NCCL_DEBUG_FILE": self.path(f"nccl{rank}.log")}
            command = [sys.executable, os.path.join(HERE, "plugin_worker.py"), task, "--rank", str(rank)]
            command += ["--ranks", str(RANKS), "--store", store, *words]
            with open(self.path(f"stderr{rank}.log"), "w") as errors:
                self.ranks.append(
                    subprocess.Popen(
                        command, env={**clean, **ALONE, **own, **variables}, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, stderr=errors, text=True,
                    )
                )

    def path(self, name):
        return os.path.join(self.folder, name)

    def finish(self, seconds):
        """Waits for both, and gives their results and why there are none."""
        until, results, why = time.monotonic() + seconds, [], ""
        for rank, process in enumerate(self.ranks):
            try:
                out, _ = process.communicate(timeout=max(1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                why = why or f"rank {rank} hangs (more than {seconds} s)"
                self.kill()
                continue
            results += [json.loads(line[7:]) for line in out.splitlines() if line.startswith("RESULT ")]
            if process.returncode:
                why = why or f"rank {rank} ends with {process.returncode}: {self.last_words(rank)}"
        return results, why

    def last_words(self, rank):
        with open(self.path(f"stderr{rank}.log"), errors="replace") as errors:
            lines = [line.strip() for line in errors if line.strip()]
        return lines[-1][:300] if lines else "no word"

    def kill(self):
        for process in self.ranks:
            if process.poll() is None:
                process.kill()

    def log(self, rank):
        try:
            with open(self.path(f"nccl{rank}.log"), errors="replace") as log:
                return log.read()
        except OSError:
            return ""

    def records(self):
        """The plugin's records as {rank: {collective: [(bytes, algo/proto, channels), ...] in NCCL's order}}."""
        found = defaultdict(lambda: defaultdict(list))
        for file in sorted(glob.glob(self.path("records/*.jsonl"))):
            for line in open(file):
                call = json.loads(line)
                if "seq" in call:
                    channels = call.get("nchannels", call.get("nchannels_max"))
                    ran = (call["seq"], call["bytes"], f"{call.get('algo')}/{call.get('proto')}", channels)
                    found[call["rank"]][call["coll"]].append(ran)
        return {r: {c: [x[1:] for x in sorted(calls)] for c, calls in of.items()} for r, of in found.items()}


def decisions(log):
    """What the plugin chose, in order, by collective: (bytes, NCCL's own pair, the chosen or None, channels or None)."""
    chosen = defaultdict(list)
    for collective, size, own, pair, channels in DECISION.findall(log):
        asked = int(channels) if channels.isdigit() else None
        chosen[collective].append((in_bytes(size), own, pair or None, asked))
    return chosen


def in_bytes(size):
    """64K is 65536."""
    shift = {"K": 10, "M": 20, "G": 30}.get(size[-1])
    return int(size[:-1]) << shift if shift else int(size)


def launches(log):
    """What NCCL says that it ran, in order, by collective."""
    ran = defaultdict(list)
    for collective, _, algorithm, protocol, low, high in LAUNCH.findall(log):
        pair = f"{algorithm.lower()}/{protocol.lower()}"
        ran[COLLECTIVES.get(collective, collective)].append((pair, int(high) - int(low) + 1))
    return ran


def compare_chosen(chosen, ran, every_call):
    """Counts calls that ran as was chosen. The walk decides every call anew, so its nth decision is about the nth call; a
    policy's decision about a size is logged once and kept."""
    same, capped, wrong = 0, 0, []
    for collective, answers in chosen.items():
        by_size = {answer[0]: answer for answer in answers}
        for number, call in enumerate(ran.get(collective, [])):
            kept = by_size.get(call[0])
            answer = (answers[number] if number < len(answers) else None) if every_call else kept
            if answer is None and every_call:
                # Beyond what is logged.
                continue
            if answer is None or not fits(answer, call):
                wrong.append(f"{collective}: chose {answer}, ran {call}")
                continue
            same += 1
            capped += answer[3] is not None and call[2] < answer[3]
    return same, capped, wrong


def fits(answer, call):
    size, own, pair, channels = answer
    # NCCL may use fewer channels than were asked for: each gets some traffic, and a communicator has only so many.
    return call[0] == size and call[1] == (pair or own) and (channels is None or 1 <= call[2] <= channels)


def shown(library, folder, policy):
    """The variables of a job whose every step is logged and recorded."""
    return {
        "NCCL_TUNER_PLUGIN": library,
        "NCCL_PROFILER_PLUGIN": library,
        "NCCL_ENV_PLUGIN": library,
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,TUNING,ENV",
        "DYNAMICCL_POLICY": policy,
        "DYNAMICCL_PROFILE": folder,
        "DYNAMICCL_NTHREADS": "256",
    }


def has_env(log):
    version = re.search(r"NCCL version (\d+)\.(\d+)\.(\d+)", log)
    return bool(version) and tuple(map(int, version.groups())) >= (2, 28, 7)


def judge_check(job, policy, verdicts):
    results, why = job.finish(70)
    log = job.log(0)
    version = re.search(r"NCCL version (\S+)", log)
    title = f"[NCCL {version.group(1) if version else '?'}, {policy}]"
    if why or len(results) < RANKS:
        return verdicts.say(False, f"{title} the job runs", why or "no result")
    if not version:
        verdicts.say(False, f"{title} NCCL says its version", "no such line in its log")
    for interface, pattern in [
        ("tuner", r"TUNER/Plugin: Using DynamICCL \(v\d+\)"),
        ("profiler", r"PROFILER/Plugin: Loaded DynamICCL \(v\d+\)|Successfully loaded external profiler plugin .*"),
        # NCCL opens it before it has read NCCL_DEBUG, so its line may be lost; what it does is then the evidence.
        ("env", r"ENV/Plugin: Using DynamICCL \(v\d+\)|Successfully loaded external env plugin .*|Max NThreads \|\s+256 .*"),
    ]:
        line = re.search(pattern, log)
        if interface == "env" and not has_env(log):
            verdicts.say(not line, f"{title} no env interface before 2.28.7")
        else:
            verdicts.say(bool(line), f"{title} loaded by its {interface} interface", line.group(0) if line else "no line")
    if has_env(log):
        # NCCL 2.32 no longer logs the table.
        line = re.search(r"Max NThreads \|\s+256 .*|NCCL_NTHREADS set by environment to 256", log)
        verdicts.say(bool(line), f"{title} threads handed over", line.group(0) if line else "no word of them")
    begins = re.search(r"DynamICCL: (\d.*)", log)
    print(f"      {begins.group(1) if begins else 'no line of ours'}")
    calls, wrong = results[0]["calls"], [w for result in results for w in result["wrong"]]
    verdicts.say(not wrong, f"{title} results of five collectives are right", f"{calls} calls on {RANKS} ranks {wrong[:3] or ''}")
    records, chosen = job.records(), decisions(log)
    ran = records.get(0, {})
    same, capped, wrong = compare_chosen(chosen, ran, policy == "walk")
    detail = f"{same} records, {len({x[1:] for c in ran.values() for x in c})} settings, {capped} with fewer channels than asked"
    verdicts.say(same >= 200 and not wrong, f"{title} what ran is what was chosen", detail + (f"; {wrong[:3]}" if wrong else ""))
    told = launches(log)
    other = [
        f"{collective} {number}: record {call[1:]}, log {said}"
        for collective, calls in ran.items()
        for number, (call, said) in enumerate(zip(calls, told[collective]))
        if call[1:] != said
    ]
    count = sum(map(len, told.values()))
    detail = f"{count} launches" + (f", {len(other)} differ: {other[:2]}" if other else "")
    verdicts.say(not other and count >= 200, f"{title} NCCL's own log says the same", detail)
    verdicts.say(records.get(0) == records.get(1) and len(records) == RANKS, f"{title} all ranks ran the same")
    settings = sorted({f"{pair} {n}ch" for calls in ran.values() for _, pair, n in calls})
    print(f"      ran: {', '.join(settings)[:400]}")


def checks(args, verdicts):
    jobs = []
    for nccl, preload in [("own", None), ("other", args.other)]:
        if nccl == "other" and not preload:
            print("# no other NCCL here (NCCL_OTHER names one)")
            continue
        for policy in ["shipped", "walk"]:
            name = f"check-{nccl}-{policy}"
            folder = os.path.join(args.folder, name)
            variables = shown(args.library, os.path.join(folder, "records"), policy)
            if preload:
                variables["LD_PRELOAD"] = preload
            jobs.append((Job(args.folder, name, "check", variables), policy))
    for job, policy in jobs:
        judge_check(job, policy, verdicts)


def read_until(process, word):
    for line in process.stdout:
        if line.startswith(word):
            return line[len(word) :].strip()
    raise RuntimeError("a rank has ended")


def cost(args, verdicts):
    """`observe` beside no plugin: both jobs live at the same time and are measured in turn."""
    kinds = {
        "none": {"NCCL_TUNER_PLUGIN": "none"},
        "observe": {"NCCL_TUNER_PLUGIN": args.library, "DYNAMICCL_MODE": "observe"},
        "act": {"NCCL_TUNER_PLUGIN": args.library},
    }
    words = ["--calls", "60"]
    jobs = {kind: Job(args.folder, f"time-{kind}", "time", {**v, "NCCL_DEBUG": "WARN"}, words) for kind, v in kinds.items()}
    medians = defaultdict(lambda: defaultdict(list))
    try:
        for job in jobs.values():
            for process in job.ranks:
                read_until(process, "READY")
        for turn in range(ROUNDS):
            # Not always the same one first.
            order = list(kinds) if turn % 2 == 0 else list(kinds)[::-1]
            for kind in order:
                for process in jobs[kind].ranks:
                    process.stdin.write("go\n")
                    process.stdin.flush()
                rounds = [json.loads(read_until(process, "RESULT")) for process in jobs[kind].ranks]
                for row in rounds[0]["rows"]:
                    medians[row["bytes"]][kind].append(row["median_us"])
    except (RuntimeError, OSError) as error:
        words = [job.last_words(rank) for job in jobs.values() for rank in range(RANKS)]
        return verdicts.say(False, "observe against no plugin", f"{error}: {words}")
    finally:
        for job in jobs.values():
            for process in job.ranks:
                try:
                    process.stdin.close()
                except OSError:
                    pass
        time.sleep(1)
        for job in jobs.values():
            job.kill()
    print(f"# allreduce, {ROUNDS} interleaved rounds of 60 calls, median of medians (lowest-highest)")
    print("#    bytes        none us               observe us            observe/none (lowest-highest)   act us")
    fine = []
    for size, by_kind in medians.items():
        none, observe, act = (by_kind[kind] for kind in kinds)
        ratios = [o / n for o, n in zip(observe, none)]
        ratio = statistics.median(ratios)
        # Within noise: the spread of either job's rounds, or 5 %.
        spread = lambda xs: max(max(xs) / statistics.median(xs), statistics.median(xs) / min(xs))
        noise = max(spread(none), spread(observe), 1.05)
        fine.append(1 / noise <= ratio <= noise)
        show = lambda xs: f"{statistics.median(xs):9.1f} ({min(xs):.1f}-{max(xs):.1f})"
        print(f"  {size:9d}  {show(none):21s} {show(observe):21s} {ratio:6.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
              f"          {show(act)}")
    verdicts.say(bool(fine) and all(fine), "observe equals no plugin within noise", f"{sum(fine)} of {len(fine)} sizes")


def walk(args, verdicts):
    variables = {"NCCL_TUNER_PLUGIN": args.library, "DYNAMICCL_POLICY": "walk", "NCCL_DEBUG": "WARN"}
    job = Job(args.folder, "walk", "walk", variables, ["--calls", str(args.calls), "--check-every", "20"])
    results, why = job.finish(115)
    if why or len(results) < RANKS:
        return verdicts.say(False, f"{args.calls} collectives with other knobs at every call", why or "no result")
    wrong = [w for result in results for w in result["wrong"]]
    first = results[0]
    detail = f"{first['calls']} calls in {first['seconds']:.1f} s, {first['checked']} results compared on each rank {wrong[:3] or ''}"
    enough = all(result["calls"] >= args.calls for result in results)
    verdicts.say(enough and not wrong, "other knobs at every call: no hang, no wrong result", detail)


def self_test():
    log = """
h:1:1 [0] NCCL INFO DynamICCL: allreduce 1M x1: NCCL would take ring/ll128; tree/simple, 8 channels, own chunk, 61.3 us (policy)
h:1:1 [0] NCCL INFO DynamICCL: allgather 1000 x1: NCCL would take ring/ll; left to NCCL (fallback unsure)
h:1:1 [0] NCCL INFO DynamICCL: allreduce 4K x1: NCCL would take ring/ll; ring/ll, own channels, double chunk, 9 us (policy)
h:1:1 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo TREE proto SIMPLE channel{Lo..Hi}={0..1}
h:1:1 [0] NCCL INFO AllGather: 500 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}
"""
    chosen, told = decisions(log), launches(log)
    assert chosen["allreduce"] == [(1 << 20, "ring/ll128", "tree/simple", 8), (4096, "ring/ll", "ring/ll", None)], chosen
    assert chosen["allgather"] == [(1000, "ring/ll", None, None)], chosen
    assert told == {"allreduce": [("tree/simple", 2)], "allgather": [("ring/ll", 1)]}, told
    ran = {"allreduce": [(1 << 20, "tree/simple", 2)], "allgather": [(1000, "ring/ll", 1)]}
    assert compare_chosen(chosen, ran, True) == (2, 1, [])
    assert compare_chosen(chosen, ran, False) == (2, 1, [])
    other = {"allreduce": [(1 << 20, "ring/simple", 2)], "allgather": [(1000, "ring/ll", 4)]}
    assert len(compare_chosen(chosen, other, True)[2]) == 1 and len(compare_chosen(chosen, other, False)[2]) == 1
    assert not fits((8, "ring/ll", "tree/ll", 2), (8, "tree/ll", 3)) and not fits((8, "ring/ll", None, None), (4, "ring/ll", 3))
    assert has_env("NCCL version 2.28.9+cuda13.0") and not has_env("NCCL version 2.28.3+cuda12.9")
    print("self-test: logs are read")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("folder")
    parser.add_argument("--other")
    parser.add_argument("--calls", type=int, default=100_000)
    args = parser.parse_args()
    verdicts, began = Verdicts(), time.monotonic()
    for part in [checks, cost, walk]:
        part(args, verdicts)
        print(f"# {time.monotonic() - began:.0f} s", flush=True)
    print(f"Summary  {'all pass' if not verdicts.failed else f'{verdicts.failed} FAIL'}; logs in {args.folder}")
    return 1 if verdicts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
