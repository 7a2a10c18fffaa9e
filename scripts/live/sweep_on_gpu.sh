#!/usr/bin/env bash
# Shows `live` on real NCCL: two ranks on one GPU are swept, in short and in full, a rank that is killed or stopped ends
# the run with its name and leaves nothing behind, and a policy is judged against NCCL's own choice.
#
#   scripts/live/sweep_on_gpu.sh PROGRAM LIBRARY [FOLDER] [STEP...]
#
# PROGRAM is dynamiccl, LIBRARY libnccl_tuner_dynamiccl.so; results and logs go to FOLDER. STEPs: missing short kill
# stop interrupt full eval link campaign (the first five and eval without any). campaign is everything that is compared
# with the recorded sweeps, in about four minutes: two full sweeps of 2 ranks and how well they agree, 4 and 8 ranks, a
# shaped link, and the policy at 2, 4 and 8 ranks; it ends with FOLDER/summary.txt and FOLDER/results.tgz.
# Needs: one NVIDIA GPU, nvidia-cuda-mps-control, and an NCCL: NCCL names its libnccl.so.2, else the one of PyTorch's
# package or of the system is taken. link needs root, and IP and TC where ip and tc are not on the search path.
# RANKS (2), SIZES (1K..16M), LINK (10gbit), POLICY (shipped), RECORDED (the folder of recorded sweeps), LIMIT (300 s, after
# which campaign begins nothing more) change what is measured.
# Prints PASS or FAIL per line. Exit code 0: all pass; 1: one does not.
set -uo pipefail
if (($# < 2)) || [[ ! -x "$1" ]] || [[ ! -f "$2" ]]; then
    echo "usage: sweep_on_gpu.sh PROGRAM LIBRARY [FOLDER] [STEP...]" >&2
    exit 2
fi
program=$(readlink -f "$1") library=$(readlink -f "$2")
folder=${3:-$(mktemp -d)}
shift $(($# < 3 ? $# : 3))
steps=("$@")
if ((${#steps[@]} == 0)); then steps=(missing short kill stop interrupt eval); fi
mkdir -p "$folder"
ranks=${RANKS:-2} sizes=${SIZES:-1K..16M} link=${LINK:-10gbit} policy=${POLICY:-shipped} limit=${LIMIT:-300}
here=$(cd "$(dirname "$0")" && pwd)
recorded=${RECORDED:-$here/../../env/tests/data/live-h200}
links=(${IP:+--ip "$IP"} ${TC:+--tc "$TC"})
failed=0

nccl=${NCCL:-}
if [[ -z "$nccl" ]]; then
    nccl=$(python3 - <<'PYTHON' 2>/dev/null
import glob, os, site, sys
for root in site.getsitepackages() + sys.path:
    for found in glob.glob(os.path.join(root, "nvidia/nccl/lib/libnccl.so.2")):
        print(found)
        raise SystemExit
PYTHON
    )
fi
words=(--library "$library")
if [[ -n "$nccl" ]]; then words+=(--nccl "$nccl"); fi

verdict() { # verdict NAME STATUS WORDS...
    local name=$1 status=$2
    shift 2
    if ((status == 0)); then echo "PASS  $name  $*"; else
        echo "FAIL  $name  $*"
        failed=1
    fi
}

# Nothing of a run is left: no rank, no MPS daemon, no namespace.
nothing_left() {
    local left
    # Dead processes that nobody has collected are not running.
    left=$(ps -eo pid=,stat=,args= | awk '$2 !~ /^Z/ && (/live worker/ || /nvidia-cuda-mps/) && !/awk/'
        ls /var/run/netns 2>/dev/null | grep dynamiccl)
    if [[ -z "$left" ]]; then return 0; fi
    echo "# left behind: $left"
    return 1
}

worker_of() { # the process of rank $1
    local pid
    for pid in $(pgrep -f 'live worker'); do
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "DYNAMICCL_LIVE_RANK=$1"; then echo "$pid"; fi
    done | head -1
}

# Sends a signal to rank 1 in the middle of a sweep and looks at how it ends.
signal_rank() { # signal_rank NAME SIGNAL
    local name=$1 signal=$2 out=$folder/$1.csv pid worker begun took status
    rm -f "$out" "$out.about.json"
    "$program" live sweep --ranks "$ranks" --share-gpu --out "$out" --sizes 1K..16M "${words[@]}" \
        >"$folder/$name.out" 2>"$folder/$name.err" &
    pid=$!
    for _ in $(seq 600); do # until the first cell is in the file
        if [[ -f "$out" ]] && (($(wc -l <"$out") > 1)); then break; fi
        sleep 0.1
    done
    worker=$(worker_of 1)
    begun=$(date +%s.%N)
    kill "-$signal" "$worker"
    wait "$pid"
    status=$?
    took=$(python3 -c "import sys,time; print(round(time.time() - float(sys.argv[1]), 1))" "$begun")
    tail -1 "$folder/$name.err"
    verdict "$name" "$((status != 2))" "exit code $status"
    grep -q 'rank 1' "$folder/$name.err"
    verdict "$name-named" $? "the message names rank 1"
    python3 -c "import sys; sys.exit(float(sys.argv[1]) > 30)" "$took"
    verdict "$name-bounded" $? "after $took s"
    nothing_left
    verdict "$name-clean" $? "nothing is left"
    python3 - "$out" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
sys.exit(not rows or any(None in row.values() or not row["median_us"] for row in rows))
PYTHON
    verdict "$name-whole" $? "$(wc -l <"$out") lines are whole"
}

# Sweeps into FOLDER/NAME.csv.
measure() { # measure NAME RANKS WORDS...
    local name=$1 of=$2 status
    shift 2
    "$program" live sweep --ranks "$of" --share-gpu --out "$folder/$name.csv" --logs "$folder/logs_$name" "$@" "${words[@]}" \
        >"$folder/$name.out" 2>"$folder/$name.err"
    status=$?
    cat "$folder/$name.out"
    grep -v ETA "$folder/$name.err" | tail -3
    verdict "$name" "$status" "$([[ -f $folder/$name.csv ]] && wc -l <"$folder/$name.csv") lines"
    nothing_left
    verdict "$name-clean" $? "nothing is left"
}

# Judges the policy.
judge() { # judge NAME RANKS WORDS...
    local name=$1 of=$2 status
    shift 2
    "$program" live eval --ranks "$of" --share-gpu --policy "$policy" "$@" "${words[@]}" >"$folder/$name.out" 2>"$folder/$name.err"
    status=$?
    cat "$folder/$name.out"
    grep -v ETA "$folder/$name.err" | tail -3
    verdict "$name" "$((status > 1))" "exit code $status"
    nothing_left
    verdict "$name-clean" $? "nothing is left"
}

# How well one sweep ranks another; nothing where one is missing.
rank_by() { # rank_by OURS THEIRS
    if [[ -f $1 && -f $2 ]]; then
        echo "## $(basename "$1" .csv) looked up in $([[ $2 == "$recorded"/* ]] && echo "recorded ")$(basename "$2" .csv)"
        python3 "$here/ranking.py" "$1" "$2"
    fi
}

campaign() {
    local at plan
    plan=(
        "measure a_2ranks 2 --budget 40"
        "judge eval_2ranks 2 --sizes 1K..16M"
        "judge eval_2ranks_first 2 --sizes 1K..16M --clock first"
        "measure b_2ranks 2 --budget 40"
        "measure a_4ranks 4 --sizes 1K..4M --budget 22"
        "judge eval_4ranks 4 --sizes 1K..4M --most-rounds 30"
        "measure a_8ranks 8 --sizes 1K..4M --budget 22"
        "judge eval_8ranks 8 --sizes 1K..4M --most-rounds 30"
        "measure ${link}_4ranks 4 --sizes 1K..1M --budget 12 --link $link ${links[*]}"
        "measure slowest_2ranks 2 --sizes 1K..4M --budget 20 --clock slowest"
    )
    for at in "${plan[@]}"; do
        if ((SECONDS > limit)); then
            verdict "${at% --*}" 1 "no time left after $SECONDS s"
            continue
        fi
        echo "# $SECONDS s: $at"
        $at
    done
    {
        nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader
        grep -h -E '^(Summary|# [0-9]|# a reference)' "$folder"/*_*ranks*.out
        rank_by "$folder/a_2ranks.csv" "$folder/b_2ranks.csv"
        rank_by "$folder/b_2ranks.csv" "$folder/a_2ranks.csv"
        rank_by "$folder/a_2ranks.csv" "$recorded/loopback_2ranks.csv"
        rank_by "$folder/b_2ranks.csv" "$recorded/loopback_2ranks.csv"
        rank_by "$recorded/loopback_2ranks.csv" "$folder/a_2ranks.csv"
        rank_by "$folder/a_4ranks.csv" "$recorded/loopback_4ranks.csv"
        rank_by "$folder/a_8ranks.csv" "$recorded/loopback_8ranks.csv"
        rank_by "$folder/${link}_4ranks.csv" "$recorded/${link}_4ranks.csv"
        rank_by "$folder/slowest_2ranks.csv" "$folder/a_2ranks.csv"
    } >"$folder/summary.txt" 2>&1
    cat "$folder/summary.txt"
    tar -czf "$folder/results.tgz" -C "$folder" --exclude=results.tgz .
    echo "# $SECONDS s in all"
}

for step in "${steps[@]}"; do
    echo "# $step"
    case $step in
        missing)
            CUDA_VISIBLE_DEVICES="" "$program" live sweep --ranks 2 --share-gpu --out "$folder/none.csv" "${words[@]}" \
                2>"$folder/missing.err"
            verdict missing "$(($? != 2))" "$(tail -1 "$folder/missing.err")"
            "$program" live sweep --ranks 2 --out "$folder/none.csv" "${words[@]}" 2>"$folder/share.err"
            verdict share "$(($? != 2))" "$(tail -1 "$folder/share.err")"
            ;;
        short)
            measure short "$ranks" --sizes 1K,64K,4M --collectives allreduce,allgather --rounds 3 --most-rounds 6
            ;;
        full) measure "full_${ranks}ranks" "$ranks" --sizes "$sizes" ;;
        link) measure "${link}_${ranks}ranks" "$ranks" --sizes "$sizes" --link "$link" "${links[@]}" ;;
        campaign) campaign ;;
        kill) signal_rank kill KILL ;;
        stop) signal_rank stop STOP ;;
        interrupt)
            out=$folder/interrupt.csv
            rm -f "$out" "$out.about.json"
            "$program" live sweep --ranks "$ranks" --share-gpu --out "$out" "${words[@]}" >/dev/null 2>"$folder/interrupt.err" &
            pid=$!
            for _ in $(seq 600); do
                if [[ -f "$out" ]] && (($(wc -l <"$out") > 1)); then break; fi
                sleep 0.1
            done
            kill -INT "$pid"
            wait "$pid"
            verdict interrupt "$(($? != 130))" "$(tail -1 "$folder/interrupt.err")"
            nothing_left
            verdict interrupt-clean $? "nothing is left"
            ;;
        eval) judge eval "$ranks" --sizes "$sizes" ;;
        *)
            echo "no step is called $step" >&2
            exit 2
            ;;
    esac
done
exit "$failed"
