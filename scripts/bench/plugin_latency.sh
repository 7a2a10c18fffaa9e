#!/usr/bin/env bash
# Measures what the plugin costs a call, and shows that ranks decide alike, at full size.
#
#   scripts/bench/plugin_latency.sh [CALLS]      CALLS: 1000000 where it is not said
#
# Builds the library and the C host of its tests. Then:
#   1. 256 communicators, 16 threads, CALLS calls of each thread that were all decided before: p50 and p99 of a call
#      beside those of an empty C call in the same run (both with the clock that measures them), memory that was
#      taken meanwhile, allocations. Three times; the middle one counts.
#   2. 8 processes, of three versions of the interface and with other pauses of their threads, CALLS calls: one digest.
#
# Exit code 0: p50 is at most 150 ns and p99 at most 1000 ns, nothing was allocated, and the digests are one; 1: not so.
# Needs cargo, cc and bash, and a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."

calls=${1:-1000000}
target=${CARGO_TARGET_DIR:-target}
# What a user's shell has set for a job is not part of this.
while read -r name; do unset "$name"; done < <(compgen -e | grep -E '^(NCCL|DYNAMICCL)_' || true)

cargo build --release --locked -p dynamiccl-plugin
library=$target/release/libnccl_tuner_dynamiccl.so
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cc -O2 -std=gnu11 -pthread -rdynamic -o "$scratch/host" policies/plugin/tests/host/*.c -ldl -lm

failed=0
for _ in 1 2 3; do
    "$scratch/host" "$library" latency 256 16 "$calls"
done | tee "$scratch/latency"
middle=$(sort -k8n "$scratch/latency" | sed -n 2p)
read -r p50 p99 allocated < <(awk '{ print $8, $10, $NF }' <<<"$middle")
if ((p50 > 150 || p99 > 1000 || allocated > 0)); then failed=1; fi
echo "p50 $p50 ns (bar 150), p99 $p99 ns (bar 1000), allocations $allocated (bar 0)"

for process in 0 1 2 3 4 5 6 7; do
    "$scratch/host" "$library" digest "$calls" 4 "$process" $((3 + process % 3)) >"$scratch/digest.$process" &
done
wait
digests=$(sort "$scratch"/digest.* | uniq -c | sed 's/^ *//')
echo "processes: $digests"
if [[ "$digests" != "8 "* || $(wc -l <<<"$digests") != 1 ]]; then failed=1; fi
exit $failed
