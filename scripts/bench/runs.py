"""Training runs and their judgement, for the scripts beside this file: each is done once and kept.

A run's folder has result.json (the last line of `train --json`) and eval.json (the document of `eval --json`); what is
there and was made by the same command of the same program is not done again. Needs Python 3.9 and nothing else.
"""

import functools
import hashlib
import json
import math
import os
import subprocess
import sys
import time

SAY_EVERY = 30.0
REPOSITORY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def say(words):
    print(words, file=sys.stderr, flush=True)


def binary(named):
    """The program: the one that was named, or the repository's, built first."""
    if named:
        return named
    subprocess.run(["cargo", "build", "--release", "--quiet", "--bin", "dynamiccl"], cwd=REPOSITORY, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target"))
    return os.path.join(target, "release", "dynamiccl")


def kept(path, command):
    """What an earlier call with the same command has left; None where there is nothing, or something else."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found["result"] if found.get("command") == command else None


def keep(path, command, result):
    half = path + ".half"
    with open(half, "w", encoding="utf-8") as file:
        json.dump({"command": command, "result": result}, file)
    os.replace(half, path)


def train(program, folder, title, words, how=()):
    """The last line of `train WORDS HOW --out FOLDER --json`, and how long the whole command took. HOW changes nothing
    but the time."""
    os.makedirs(folder, exist_ok=True)
    place, command = os.path.join(folder, "result.json"), ["train", *words]
    key = [digest(program), *command]
    done = kept(place, key)
    if done:
        say(f"{title}: trained before, {done['seconds']:.0f} s")
        return done
    say(f"{title}: dynamiccl {' '.join(command)}")
    began = said = time.monotonic()
    last = None
    with subprocess.Popen([program, *command, *how, "--out", folder, "--json"], stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            last = json.loads(line)
            if time.monotonic() - said > SAY_EVERY and "step" in last:
                said = time.monotonic()
                regret = ", ".join(f"{where} {value:.3f}" for where, value in numbers(last.get("regret")))
                say(f"{title}: step {last['step']}, stage {last.get('stage')}, {last.get('sps', 0):.0f} steps/s {regret}")
    if run.returncode != 0 or not last or not last.get("done"):
        raise SystemExit(f"{title}: train ended with {run.returncode} before it was done; its last line is {last}")
    last["wall_seconds"] = time.monotonic() - began
    keep(place, key, last)
    return last


def numbers(regret):
    """Pairs of name and number of what a line says of regret, whatever form that has."""
    if isinstance(regret, dict):
        return [(name, value) for name, value in regret.items() if isinstance(value, (int, float))]
    return [("regret", regret)] if isinstance(regret, (int, float)) else []


def evaluate(program, place, title, words):
    """The document of `eval WORDS --json`, kept in this file as long as the policy is the same."""
    command = ["eval", *words]
    key = [digest(program), *command, *[digest(word) for word in words if os.path.isfile(word)]]
    done = kept(place, key)
    if done:
        return done
    say(f"{title}: dynamiccl {' '.join(command)}")
    run = subprocess.run([program, *command, "--json"], stdout=subprocess.PIPE, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{title}: eval ended with {run.returncode}")
    document = json.loads(run.stdout)
    keep(place, key, document)
    return document


@functools.cache
def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def tuner(document, name=None):
    """A tuner of a document: the first one, or the one of this name."""
    found = [t for t in document["tuners"] if name is None or t["name"] == name]
    if not found:
        raise SystemExit(f"nobody called {name} was judged")
    return found[0]


def figures(judged, group):
    """The figures of a tier (a number), of `held_out` or of `overall`; None where there are none."""
    if isinstance(group, int):
        return next((tier for tier in judged["tiers"] if tier["tier"] == group), None)
    return judged[group]


def mean(values):
    return sum(values) / len(values)


def deviation(values):
    """Standard deviation of a sample; 0 of one."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(sum((x - middle) ** 2 for x in values) / (len(values) - 1))


def percent(values):
    """Mean ± σ of shares, as per cent."""
    if not values:
        return "-"
    return f"{100 * mean(values):.2f} ± {100 * deviation(values):.2f}"


def table(titles, rows):
    """A table in Markdown."""
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
