#!/usr/bin/env bash
# Kills a training run at random points, resumes it each time, and compares what it leaves with what an
# undisturbed run leaves: policy.safetensors to the byte, metrics.jsonl in everything but the clock.
#
#   scripts/bench/kill_and_resume.sh [KILLS] [SEED]       [default: 20 kills, seed 1]
#
# Exit code 0: equal. Needs cargo, bash and Python 3.
set -euo pipefail
cd "$(dirname "$0")/../.."

kills=${1:-20} seed=${2:-1}
# One moment for both, so that the files can be equal.
export SOURCE_DATE_EPOCH=1794738790
cargo build --release --locked --bin dynamiccl
dynamiccl=$(realpath "${CARGO_TARGET_DIR:-target}/release/dynamiccl")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
brief=(--eval-clusters dgx_h100 --eval-worlds 1 --eval-seeds 1 --against nccl -q)
# A small network and small updates, so that kills fall into every part of a run: environments, gradients,
# judgements, checkpoints.
words=(train --curriculum smoke --seed "$seed" --steps 65536 --set evaluation.every=8192 --set evaluation.worlds=1
    --set rollout.environments=16)
for width in memory embedding expert resource critic; do words+=(--set "network.$width=16"); done
RANDOM=$seed

began=$(date +%s%N)
"$dynamiccl" "${words[@]}" --out "$scratch/whole" "${brief[@]}" >/dev/null
took=$((($(date +%s%N) - began) / 1000000))
echo "undisturbed: $took ms"

"$dynamiccl" "${words[@]}" --out "$scratch/killed" --checkpoint-every 1024 "${brief[@]}" >/dev/null &
killed=0 at=''
while ((killed < kills)); do
    # On average a little less than the share of the run that one start has to get through.
    milliseconds=$((RANDOM % (took / kills + 400) + 50))
    sleep "$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))"
    if ! kill -0 $! 2>/dev/null; then break; fi
    kill -9 $!
    wait $! 2>/dev/null || true
    killed=$((killed + 1))
    at+=" $(cd "$scratch"/killed/*/checkpoints && printf '%s\n' step-*.ckpt | tr -dc '0-9\n' | sort -n | tail -1)"
    "$dynamiccl" train --resume latest --out "$scratch/killed" --checkpoint-every 1024 "${brief[@]}" >/dev/null &
done
wait $!
echo "killed $killed times, last checkpoints then:$at"
if ((killed < kills)); then
    echo "the run was over before it had been killed $kills times; give fewer, or a slower machine" >&2
    exit 1
fi

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
