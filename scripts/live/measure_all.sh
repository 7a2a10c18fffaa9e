#!/usr/bin/env bash
# Everything that is claimed of real NCCL, on one box with one GPU, in a quarter of an hour: for 2, 4 and 8 ranks over loopback
# and 4 ranks over 10 and 25 Gb/s a sweep of at most a minute, a policy fitted to it, and both the policy that
# it started from and the fitted one against NCCL's own choice; then a short training on live episodes, and what is otherwise tried with
# made-up libraries alone: a launcher, the guard, compute beside the calls, threads.
#
#   PROGRAM=target/release/dynamiccl LIBRARY=target/release/libnccl_tuner_dynamiccl.so OUT=folder scripts/live/measure_all.sh [PART...]
#
# PARTs: 8 4 2 10gbit 25gbit fitted episodes launcher guard beside threads (all, in this order, without any). Every result is
# in OUT as soon as it is there, and OUT/summary.txt has a line for each. A part that fails or has no time left is skipped.
# POLICY (shipped) is what is judged zero-shot, told what the box is by CONTEXT (shared_gpu.toml beside this), and fitted; NCCL
# names libnccl.so.2 (else PyTorch's or the system's); IP and TC name ip and tc where they are not on the search path; CLOCKS
# (slowest) are whose clocks count, BUDGET (52 s, so that a sweep with its start stays within a minute) is a sweep's, LIMIT
# (900 s) that of everything, FITTERS (4) the threads of a fit.
# Exit code 0: every part was carried out; 1: one was not; 2: usage.
set -uo pipefail
if [[ ! -x "${PROGRAM:-}" || ! -f "${LIBRARY:-}" || -z "${OUT:-}" ]]; then
    echo "usage: PROGRAM=path/to/dynamiccl LIBRARY=path/to/libnccl_tuner_dynamiccl.so OUT=folder measure_all.sh [PART...]" >&2
    exit 2
fi
program=$(readlink -f "$PROGRAM") library=$(readlink -f "$LIBRARY")
context=$(readlink -f "${CONTEXT:-$(dirname "$0")/shared_gpu.toml}")
mkdir -p "$OUT"
out=$(readlink -f "$OUT") policy=${POLICY:-shipped} clocks=${CLOCKS:-slowest} limit=${LIMIT:-900} fitters=${FITTERS:-4}
if [[ "$policy" != shipped ]]; then policy=$(readlink -f "$policy"); fi
parts=("$@")
if ((${#parts[@]} == 0)); then parts=(8 4 2 10gbit 25gbit fitted episodes launcher guard beside threads); fi
links=(${IP:+--ip "$IP"} ${TC:+--tc "$TC"})
summary=$out/summary.txt failed=0
: >"$summary"

nccl=${NCCL:-}
if [[ -z "$nccl" ]]; then
    nccl=$(python3 -c 'import glob, os, site, sys
found = [f for root in site.getsitepackages() + sys.path for f in glob.glob(os.path.join(root, "nvidia/nccl/lib/libnccl.so.2"))]
print(found[0] if found else "")' 2>/dev/null)
fi
words=(--library "$library" ${nccl:+--nccl "$nccl"})

say() { echo "$(printf '%3d s' $SECONDS)  $*" | tee -a "$summary"; }

# Runs a command for at most so many seconds, if there are as many left; what it says goes to NAME.json and NAME.err.
step() { # step NAME SECONDS COMMAND...
    local name=$1 most=$2 status
    shift 2
    if ((SECONDS + most / 2 > limit)); then
        say "skipped $name: no time left"
        failed=1
        return 1
    fi
    timeout -k 5 "$most" "$@" >"$out/$name.json" 2>"$out/$name.err"
    status=$?
    # A verdict of no is a result, too.
    if ((status > 1)); then
        say "FAILED  $name ($status): $(tail -n 1 "$out/$name.err")"
        failed=1
        return 1
    fi
    say "$(python3 - "$name" "$out/$name.json" 2>/dev/null <<'PYTHON' || echo "done    $name"
import json, sys
name, file = sys.argv[1:]
d = json.load(open(file))
if d["command"] == "live eval":
    s, cells = d["speedup"], d["cells"]
    low = [f'{c["collective"]} {c["bytes"]} {c["speedup"]["ratio"]:.3f}' for c in cells if c["speedup"]["high"] < 0.97]
    low95 = sum(c["speedup"]["high"] < 0.95 for c in cells)
    print(f'{name}: {s["ratio"]:.3f} ({s["low"]:.3f}-{s["high"]:.3f}) of {len(cells)} cells, surely below 0.95: {low95}, '
          f'below 0.97: {len(low)} {"; ".join(low)}')
elif d["command"] == "live train":
    for s in d["sweeps"]:
        a = s["after"]
        print(f'{name}: {s["sweep"]} before {s["before"]["speedup"]:.3f} after {a["speedup"]:.3f} best {s["oracle"]:.3f} '
              f'worst {a["worst_cell"]:.3f} below {a["below"]}, {d["steps"]} steps, {d["calls"]} calls, {d["seconds"]:.0f} s')
elif d["command"] == "live sweep":
    print(f'{name}: {len(d["cells"])} cells, {d["rows"]} rows in {d["seconds"]:.0f} s, drift {d["drift"]:.2f}, '
          f'unsure {d["again"]["unsure"]}')
else:
    print(f'{name}: {json.dumps({k: v for k, v in d.items() if isinstance(v, (int, float, str, bool))})}')
PYTHON
)"
}

# Fits to the sweep of a configuration; one that was cut short has whole cells. Nothing is measured meanwhile.
fit() { # fit NAME
    step "fit-$1" 80 "$program" live train --policy "$policy" --sweep "$out/$1.csv" --seconds 40 --threads "$fitters" \
        --out "$out/$1.safetensors" --json
}

configuration() { # configuration NAME RANKS LARGEST CLOCKS WORDS...
    local name=$1 ranks=$2 largest=$3 clocks=$4 clock
    local budget=${BUDGET:-52}
    shift 4
    local ours=(--ranks "$ranks" --share-gpu --sizes "1K..$largest" "${words[@]}" "$@")
    for clock in $clocks; do
        step "sweep-$name-$clock" 75 "$program" live sweep "${ours[@]}" --clock "$clock" --budget "$budget" \
            --out "$out/$name-$clock.csv" --json
    done
    for clock in $clocks; do
        step "eval-zero-$name-$clock" 50 "$program" live eval "${ours[@]}" --clock "$clock" --policy "$policy" \
            --context "$context" --json
    done
    echo "$name|$clocks|${ours[*]}" >>"$out/.configurations"
}

fitted() {
    local name clocks ours clock
    [[ -f "$out/.configurations" ]] || return
    while IFS='|' read -r name clocks ours; do
        for clock in $clocks; do
            # No path here has a space that is not ours.
            # shellcheck disable=SC2086
            fit "$name-$clock" && step "eval-fitted-$name-$clock" 50 "$program" live eval $ours --clock "$clock" \
                --policy "$out/$name-$clock.safetensors" --json
        done
    done <"$out/.configurations"
}

short=(--sizes "4K,64K,1M" --collectives allreduce --rounds 5 --most-rounds 5 "${words[@]}")

# Two processes as mpirun starts them, or mpirun itself where it is there; MPS is ours to start then.
launcher() {
    local pipe pid=$$ rank
    pipe=$(mktemp -d -p /tmp)
    export CUDA_MPS_PIPE_DIRECTORY=$pipe CUDA_MPS_LOG_DIRECTORY=$pipe
    export DYNAMICCL_LIVE_SECRET=measured-secret-$pid-$RANDOM$RANDOM
    nvidia-cuda-mps-control -d >/dev/null 2>&1
    local words=(live sweep --share-gpu --rendezvous 127.0.0.1:29477 --out "$out/launcher.csv" "${short[@]}" --json)
    if command -v mpirun >/dev/null; then
        # Bound to one core each, ranks would wait for their own proxy threads.
        step launcher-mpirun 40 mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 -x DYNAMICCL_LIVE_SECRET \
            -x CUDA_MPS_PIPE_DIRECTORY -x CUDA_MPS_LOG_DIRECTORY "$program" "${words[@]}"
    else
        OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
            timeout -k 5 40 "$program" "${words[@]}" >"$out/launcher-rank1.out" 2>&1 &
        rank=$!
        step launcher-by-variables 40 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 \
            OMPI_COMM_WORLD_LOCAL_SIZE=2 "$program" "${words[@]}"
        wait "$rank"
    fi
    echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY DYNAMICCL_LIVE_SECRET
}

# A coordinator that is killed in the middle leaves nothing behind.
guard() {
    local pid left tries
    if ((SECONDS + 25 > limit)); then
        say "skipped guard: no time left"
        failed=1
        return
    fi
    rm -f "$out"/guard.csv*
    "$program" live sweep --ranks 2 --share-gpu --out "$out/guard.csv" "${words[@]}" >"$out/guard.out" 2>"$out/guard.err" &
    pid=$!
    for tries in $(seq 100); do
        [[ $(cat "$out/guard.csv" 2>/dev/null | wc -l) -gt 1 ]] && break
        sleep 0.2
    done
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    for tries in $(seq 40); do
        left=$(ps -eo stat=,args= | awk '$1 !~ /^Z/ && (/live worker/ || /nvidia-cuda-mps/) && !/awk/')
        [[ -z "$left" ]] && break
        sleep 0.5
    done
    if [[ -z "$left" ]]; then say "guard: nothing is left of a coordinator that was killed, after $((tries / 2)) s"; else
        say "FAILED  guard: left behind: $left"
        failed=1
    fi
}

rm -f "$out/.configurations"
for part in "${parts[@]}"; do
    case $part in
        8) configuration loopback_8ranks 8 16M "$clocks" ;;
        4) configuration loopback_4ranks 4 16M "$clocks" ;;
        2) configuration loopback_2ranks 2 16M "$clocks" ;;
        10gbit) configuration 10gbit_4ranks 4 1M "$clocks" --link 10gbit "${links[@]}" ;;
        25gbit) configuration 25gbit_4ranks 4 4M "$clocks" --link 25gbit "${links[@]}" ;;
        fitted) fitted ;;
        episodes)
            step train-episodes 60 "$program" live train --ranks 2 --share-gpu --sizes 4K,64K,1M --policy "$policy" \
                --calls 5000 --seconds 30 --threads "$fitters" "${words[@]}" --out "$out/episodes.safetensors" --json &&
                step eval-episodes 20 "$program" live eval --ranks 2 --share-gpu --sizes 4K,64K,1M "${words[@]}" \
                    --policy "$out/episodes.safetensors" --json
            step check-env-live 30 "$program" check-env live --ranks 2 --share-gpu --sizes 4K,64K --steps 2000 "${words[@]}" --json
            ;;
        launcher) launcher ;;
        guard) guard ;;
        beside) step beside 30 "$program" live sweep --ranks 2 --share-gpu --beside 0.5 --out "$out/beside.csv" "${short[@]}" --json ;;
        threads) step threads 40 "$program" live sweep --ranks 2 --share-gpu --threads 128,256,512 --out "$out/threads.csv" "${short[@]}" --json ;;
        *)
            echo "measure_all.sh: no part \"$part\"" >&2
            exit 2
            ;;
    esac
done
wait
rm -f "$out/.configurations"
say "all parts are through"
exit $failed
