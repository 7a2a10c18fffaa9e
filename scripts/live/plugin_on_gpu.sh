#!/usr/bin/env bash
# Shows on real NCCL that the plugin is loaded by each of its interfaces, that NCCL runs what it chose, that results
# are right, that `observe` costs nothing that can be seen, and that 100,000 collectives with other knobs at every
# call neither hang nor err. Two ranks share one GPU.
#
#   scripts/live/plugin_on_gpu.sh LIBRARY [FOLDER]
#
# LIBRARY is libnccl_tuner_dynamiccl.so (`dynamiccl plugin path`); logs and records go to FOLDER. Beside this file it
# needs plugin_report.py and plugin_worker.py.
# Needs: one NVIDIA GPU, nvidia-cuda-mps-control (without MPS it works, and times mean nothing), Python 3.9 with PyTorch
# and its NCCL. Another NCCL is shown too where NCCL_OTHER names its libnccl.so.2, or one lies in
# /usr/lib/x86_64-linux-gnu. For all parts on an NCCL that is not PyTorch's, preload it (LD_PRELOAD=.../libnccl.so.2; 2.28 or
# newer). PYTHON names the interpreter, CALLS the number of collectives (100000). Takes about two
# minutes and never more than 200 s.
# Prints a table and PASS or FAIL per line. Exit code 0: all pass; 1: one does not.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if (($# < 1)) || [[ ! -f "$1" ]]; then
    echo "usage: plugin_on_gpu.sh LIBRARY [FOLDER]; LIBRARY is libnccl_tuner_dynamiccl.so" >&2
    exit 2
fi
library=$(readlink -f "$1")
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
other=${NCCL_OTHER:-/usr/lib/x86_64-linux-gnu/libnccl.so.2}

if command -v nvidia-cuda-mps-control >/dev/null; then
    # Its pipes need a short path.
    mps=$(mktemp -d /tmp/mps.XXXXXX)
    export CUDA_MPS_PIPE_DIRECTORY=$mps/pipe CUDA_MPS_LOG_DIRECTORY=$mps/log
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    if nvidia-cuda-mps-control -d; then
        trap 'echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1; rm -rf "$mps"' EXIT
    else
        echo "# MPS does not start: times will mean nothing"
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
else
    echo "# no MPS here: times will mean nothing"
fi

arguments=("$library" "$folder" --calls "${CALLS:-100000}")
if [[ -f "$other" ]]; then arguments+=(--other "$other"); fi
timeout --kill-after 5 195 "${PYTHON:-python3}" "$here/plugin_report.py" "${arguments[@]}"
