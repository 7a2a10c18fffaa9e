#!/usr/bin/env bash
# Trains a moment and lets the real TensorBoard read what was written: scalars, histograms and images, once
# from an undisturbed run and once from a run that was killed and resumed, where no step may come twice.
#
#   scripts/check-tensorboard.sh
#
# Needs cargo, Python 3.9 with venv, and PyPI: it installs TensorBoard into a virtual environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
venv=$target/tensorboard-venv
# As the tests build it: anything less would build burn anew with other features.
cargo test --release --workspace --locked --no-run --quiet
dynamiccl=$(realpath "$target/release/dynamiccl")

if [[ ! -x $venv/bin/python ]]; then python3 -m venv "$venv"; fi
# setuptools: TensorBoard still asks it for its plugins.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'tensorboard==2.20.0' 'setuptools<81'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
brief=(--eval-clusters dgx_h100 --eval-worlds 1 --eval-seeds 1 --against nccl -q)
"$dynamiccl" train --curriculum smoke --out "$scratch" --steps 8192 --checkpoint-every 2048 \
    --set rollout.environments=16 --set evaluation.every=2048 --set evaluation.worlds=1 "${brief[@]}" >/dev/null
run=$(echo "$scratch"/smoke__*)
# As if the process had been killed after the checkpoint before the last.
rm "$run/checkpoints/step-8192.ckpt"
"$dynamiccl" train --resume "$run" "${brief[@]}" >/dev/null
"$venv/bin/python" scripts/check_tensorboard.py "$run/tb" 8192
