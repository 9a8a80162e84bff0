"""Options of targets that are built against PyTorch's wheel."""

load("@torch//:defs.bzl", "TORCH_RELEASE")
load("@system//:defs.bzl", "PYTHON_INCLUDE")

# For targets that need an installed PyTorch; see tools/setup --torch.
NEEDS_TORCH = [] if TORCH_RELEASE else ["//third_party/torch:missing"]

# PyTorch's headers need C++20 since release 2.12, and warn a lot. Hidden
# visibility keeps the module's symbols apart from those of other modules.
TORCH_COPTS = [
    "-std=c++20",
    "-fvisibility=hidden",
    "-isystem%s" % PYTHON_INCLUDE,
    "-Wno-deprecated-declarations",
]
