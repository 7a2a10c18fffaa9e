#!/usr/bin/env bash
# The libtorch that `--features libtorch` is built against and runs with, from PyPI alone: CPU only, without
# PyTorch's Python side.
#
#     scripts/libtorch-from-pypi.sh [DIR]        [default: target/libtorch]
#     source DIR/env
#     cargo build --release --features libtorch
#
# burn 0.22 speaks to tch 0.22, and that to libtorch 2.9.0 and no other. PyPI has it inside PyTorch's wheel
# (0.9 GB to load, 0.6 GB kept). The wheel is built for CUDA: what links against its GPU library is left
# out, and the two CUDA libraries that even its CPU part wants are loaded beside it (no GPU is needed).
#
# Exit code 0: DIR is ready (at once where it was before); 1: a download or a check failed; 2: bad usage.
# Needs Linux on x86-64, python3 with pip, and a C compiler.
set -euo pipefail

torch=2.9.0
cuda=12.8.90

usage() {
    sed -n '2,16s/^# \{0,1\}//p' "$0"
}

case "${1:-}" in
-h | --help) usage && exit 0 ;;
-*) echo "libtorch-from-pypi: there is no option $1; give a folder or nothing" >&2 && exit 2 ;;
esac
if [ $# -gt 1 ]; then
    echo "libtorch-from-pypi: $# arguments; give one folder or nothing" >&2 && exit 2
fi
if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "libtorch-from-pypi: $(uname -sm): only Linux on x86-64 is known to work" >&2 && exit 2
fi
for program in python3 cc; do
    command -v "$program" >/dev/null || { echo "libtorch-from-pypi: needs $program" >&2 && exit 2; }
done

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:-$root/target/libtorch}"
into=$(cd "${1:-$root/target/libtorch}" && pwd)
if [ -f "$into/env" ]; then
    echo "libtorch $torch is in $into; run: source $into/env" && exit 0
fi

wheels=$(mktemp -d "$into/wheels.XXXXXX")
trap 'rm -rf "$wheels"' EXIT
# The libraries are the same for every Python; one is named so that any pip finds a wheel.
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$wheels" \
    --implementation cp --python-version 3.11 --abi cp311 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_5_x86_64 \
    "torch==$torch" "nvidia-cuda-runtime-cu12==$cuda" "nvidia-cuda-cupti-cu12==$cuda"

mkdir -p "$into/lib"
python3 - "$wheels" "$into" <<'PYTHON'
import pathlib, shutil, sys, zipfile

wheels, into = map(pathlib.Path, sys.argv[1:])
libraries = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.12", "libcupti.so.12"}
for wheel in wheels.glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = pathlib.PurePosixPath(name)
            if path.name in libraries and "lib" in path.parts:
                target = into / "lib" / path.name
            elif path.parts[:2] == ("torch", "include") and not name.endswith("/"):
                target = into / pathlib.PurePosixPath(*path.parts[1:])
            else:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, open(target, "wb") as sink:
                shutil.copyfileobj(source, sink)
missing = sorted(library for library in libraries if not (into / "lib" / library).exists())
sys.exit(f"libtorch-from-pypi: the wheels have no {', '.join(missing)}" if missing else 0)
PYTHON

# What is linked against; PyTorch's own would bring its GPU library along.
echo 'int libtorch_of_the_cpu;' | cc -shared -fPIC -x c - -o "$into/lib/libtorch.so" \
    -Wl,-soname,libtorch.so -Wl,--no-as-needed -L"$into/lib" -l:libtorch_cpu.so -Wl,--allow-shlib-undefined
echo "$torch" >"$into/build-version"
cat >"$into/env" <<ENV
export LIBTORCH=$into
export LD_LIBRARY_PATH=$into/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
ENV
echo "libtorch $torch is in $into; run: source $into/env"
