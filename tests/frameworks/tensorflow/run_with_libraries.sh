#!/usr/bin/env bash
# Runs a program that is linked with TensorFlow's libraries.
# Usage: run_with_libraries.sh PYTHON PROGRAM
set -euo pipefail
# Finds TensorFlow's folder without an import, which takes seconds.
home=$("$1" -c 'import importlib.util as util
print(util.find_spec("tensorflow").submodule_search_locations[0])')
# Silences TensorFlow, which logs each malformed message.
export TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-3}
LD_LIBRARY_PATH=$home exec "$2"
