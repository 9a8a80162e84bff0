#!/usr/bin/env bash
# Runs a Python test with PyTorch's Python, which finds the package as if its
# wheel were installed.
# Usage: run_with_torch.sh PYTHON TEST [ARGUMENTS...]
set -euo pipefail
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/torch.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/penstock_torch-0.dist-info"
cp -RL frameworks/torch/python/penstock "$folder"
cp -L frameworks/torch/_backend.so "$folder/penstock/torch"
cp -L frameworks/torch/python/entry_points.txt \
  "$folder/penstock_torch-0.dist-info"
printf 'Metadata-Version: 2.1\nName: penstock-torch\nVersion: 0\n' \
  >"$folder/penstock_torch-0.dist-info/METADATA"
export PYTHONPATH=$folder:$PWD/tests/frameworks/torch:$PWD
# Adds the folder of CUDA's libraries, which the wheel needs if PyPI's packages
# of CUDA are missing.
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-/usr/local/cuda/lib64}
export CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
"$1" "${@:2}"
