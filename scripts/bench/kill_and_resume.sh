#!/usr/bin/env bash
# Kills a training run at random points, resumes it each time, and compares what it leaves with what an
# undisturbed run leaves: policy.safetensors to the byte, metrics.jsonl in everything but the clock.
#
#   scripts/bench/kill_and_resume.sh [KILLS] [SEED]       [default: 20 kills, seed 1]
#
# Exit code 0: equal. Needs cargo, bash and Python 3.
set -euo pipefail
cd "$(dirname "$0")/../.."

kills=${1:-20} seed=${2:-1} steps=65536
# One moment for both, so that the files can be equal.
export SOURCE_DATE_EPOCH=1794738790
cargo build --release --locked --bin dynamiccl
dynamiccl=$(realpath "${CARGO_TARGET_DIR:-target}/release/dynamiccl")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
brief=(--eval-clusters dgx_h100 --eval-worlds 1 --eval-seeds 1 --against nccl -q)
# A small network and small updates, so that kills fall into every part of a run: environments, gradients,
# judgements, checkpoints.
words=(train --curriculum smoke --seed "$seed" --steps "$steps" --set evaluation.every=8192 --set evaluation.worlds=1
    --set rollout.environments=16)
words+=(--set network.table=false)
for width in memory embedding expert resource critic; do words+=(--set "network.$width=16"); done
RANDOM=$seed

"$dynamiccl" "${words[@]}" --out "$scratch/whole" "${brief[@]}" >/dev/null

# The step of the newest checkpoint.
newest() {
    local files
    files=$(ls "$scratch"/killed/*/checkpoints 2>/dev/null) || true
    sed -n 's/^step-\([0-9]*\)\.ckpt$/\1/p' <<<"$files" | sort -n | tail -1
}

"$dynamiccl" "${words[@]}" --out "$scratch/killed" --checkpoint-every 1024 "${brief[@]}" >/dev/null &
at=''
for ((kill = 0; kill < kills; kill++)); do
    # A random point of each share of the run, and then any moment until the next checkpoint and beyond.
    share=$(((steps - 2048) / kills))
    target=$((kill * share + RANDOM % share))
    until step=$(newest) && ((${step:--1} >= target)); do
        if ! kill -0 $! 2>/dev/null; then
            echo "the run ended by itself before kill $((kill + 1)) of $kills" >&2
            exit 1
        fi
        sleep 0.02
    done
    sleep "$(printf '0.%03d' $((RANDOM % 300)))"
    if ! kill -9 $! 2>/dev/null; then
        echo "the run was over before kill $((kill + 1)) of $kills" >&2
        exit 1
    fi
    wait $! 2>/dev/null || true
    at+=" $(newest)"
    "$dynamiccl" train --resume latest --out "$scratch/killed" --checkpoint-every 1024 "${brief[@]}" >/dev/null &
done
wait $!
echo "killed $kills times, newest checkpoints then:$at"

cmp "$scratch"/whole/*/policy.safetensors "$scratch"/killed/*/policy.safetensors
python3 - "$scratch"/{whole,killed}/*/metrics.jsonl <<'PYTHON'
import json, sys

def timeless(path):
    clock = ("seconds", "sps", "time")
    lines = [json.loads(line) for line in open(path)]
    return [{key: value for key, value in line.items() if key not in clock} for line in lines]

whole, killed = map(timeless, sys.argv[1:])
assert whole == killed, "the metrics differ"
print(f"equal: policy.safetensors, and {len(whole)} lines of metrics.jsonl")
PYTHON
