#!/usr/bin/env bash
# Runs a Python test with TensorFlow's Python, which finds the package as if its
# wheel were installed.
# Usage: run_with_tensorflow.sh PYTHON TEST [ARGUMENTS...]
set -euo pipefail
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/tensorflow.XXXXXX")
trap 'rm -rf "$folder"' EXIT
site=$folder/site-packages  # TensorFlow looks for plugins in folders so named
mkdir -p "$site/tensorflow-plugins"
cp -RL frameworks/tensorflow/python/penstock_tensorflow "$site"
cp -L frameworks/tensorflow/libpenstock_tensorflow.so "$site/penstock_tensorflow"
cp -L frameworks/tensorflow/libpenstock_tensorflow_loader.so \
  "$site/tensorflow-plugins"
export PYTHONPATH=$site:$PWD/tests/frameworks/tensorflow:$PWD/bench
export TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-2} CUDA_VISIBLE_DEVICES=
"$1" "${@:2}"
