#!/usr/bin/env bash
# Prints what the profiler adds to NCCL's calls, beside an empty C call in the same run.
#
#   scripts/bench/profiler_latency.sh [VERSION…]
#
# Builds the plugin and the C host of its tests, which drives the profiler by the given versions of the interface
# (default: 1, 4 and 6) over 100,000 collectives, with a writer that keeps up. Every figure contains the clock that
# measures it; "clock alone" is that. Needs cargo and cc; a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."

versions=("$@")
if ((${#versions[@]} == 0)); then versions=(1 4 6); fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cargo build --release --quiet --locked --package dynamiccl-plugin
library=$(realpath "${CARGO_TARGET_DIR:-target}/release/libnccl_tuner_dynamiccl.so")
cc -std=gnu11 -O2 -o "$scratch/host" policies/plugin/tests/profiler/host.c -ldl -lpthread

for version in "${versions[@]}"; do
    echo "profiler v$version"
    DYNAMICCL_PROFILE=$scratch/records "$scratch/host" "$library" bench "$version"
done
