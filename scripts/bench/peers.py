"""What the benchmarks beside Python's libraries share: a virtual environment with them, and our own programs.

Both scripts use one environment, because PyTorch alone takes 7 GB.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TORCH = "torch==2.9.0"
RECURRENT_PPO = ["sb3-contrib==2.9.2", "gymnasium==1.4.0"]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def positive(word):
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}: give 1 or more")
    return number


def parser(about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    default = TARGET / "bench-torch"
    parser.add_argument("--venv", type=Path, default=default, help=f"where peers are installed [default: {default}]")
    return parser


def ready(folder, packages):
    """Runs the script again under an interpreter that has these packages, unless this is it."""
    python = folder / "bin" / "python"
    if os.environ.get("DYNAMICCL_PEERS") == str(python):
        return
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-m", "pip", "install", "--quiet", *packages]).returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: cannot install {', '.join(packages)} into {folder}; is PyPI reachable?")
    os.execve(python, [str(python), *sys.argv], {**os.environ, "DYNAMICCL_PEERS": str(python)})


def built(example):
    """Our example of this name, built."""
    command = f"cargo build --release --package dynamiccl-agent --example {example}"
    if subprocess.run(command.split(), cwd=ROOT).returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: `{command}` failed")
    return TARGET / "release" / "examples" / example
