#!/usr/bin/env bash
# Shows that a policy decides the same, to the bit, however it was built for whichever x86-64.
#
#   scripts/bench/bit_exact.sh [DECISIONS [CPU/OPT-LEVEL…]]
#
# Builds the example decision_digest for each CPU that this machine can run, at opt-level 1 and 3, and
# compares the fingerprints of 1,000,000 decisions. Exit code 0: all are the same; 1: one is not.
# Needs cargo and bash. Takes some minutes; builds go to a directory of their own, which is removed.
set -euo pipefail
cd "$(dirname "$0")/../.."

decisions=${1:-1000000}
builds=("${@:2}")

# Whether this machine can run code for a CPU: by the flags that only its level has.
can_run() {
    local wanted flag
    case $1 in
        x86-64) wanted='sse2' ;;
        x86-64-v2) wanted='ssse3 sse4_1 sse4_2 popcnt cx16' ;;
        x86-64-v3) wanted='avx2 bmi1 bmi2 fma f16c movbe abm' ;;
        x86-64-v4) wanted='avx512f avx512bw avx512cd avx512dq avx512vl' ;;
        *)
            echo "unknown CPU \"$1\" (known: x86-64, x86-64-v2, x86-64-v3, x86-64-v4)" >&2
            exit 2
            ;;
    esac
    for flag in $wanted; do
        grep -qw "$flag" /proc/cpuinfo || return 1
    done
}

if ((${#builds[@]} == 0)); then
    for cpu in x86-64 x86-64-v2 x86-64-v3 x86-64-v4; do
        builds+=("$cpu/3" "$cpu/1")
    done
fi

host=$(rustc -vV | sed -n 's/^host: //p')
if [[ "$host" != x86_64-* ]]; then
    echo "left out: $host is no x86-64; its tests pin the same fingerprint"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
first=
compared=0
failed=0
for build in "${builds[@]}"; do
    cpu=${build%/*} level=${build#*/}
    if ! can_run "$cpu"; then
        echo "$cpu opt-level $level: left out, this machine cannot run it"
        continue
    fi
    # With a target of its own, what only runs while building is built once for all.
    RUSTFLAGS="-C target-cpu=$cpu" CARGO_TARGET_DIR="$scratch" \
        cargo build --quiet --release --locked --package dynamiccl-policies --example decision_digest \
        --target "$host" --config "profile.release.opt-level=$level" --config profile.release.debug=false
    said=$("$scratch/$host/release/examples/decision_digest" "$decisions")
    echo "$cpu opt-level $level: $said"
    first=${first:-$said}
    compared=$((compared + 1))
    if [[ "$said" != "$first" ]]; then failed=1; fi
done
if ((compared < 2)); then
    echo "fewer than two builds run here: nothing was compared" >&2
    exit 1
fi
if ((failed)); then
    echo "builds decide differently"
    exit 1
fi
echo "all $compared builds decide the same"
