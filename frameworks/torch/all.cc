// Includes all sources that need PyTorch's headers, because compiling the
// headers takes longer than compiling the sources.

// IWYU pragma: begin_keep
#include "frameworks/torch/backend.cc"    // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/exchanges.cc"  // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/gathers.cc"    // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/messages.cc"   // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/module.cc"     // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/pool_allocator.cc"  // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/reconfiguration.cc"  // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/reductions.cc"  // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/tensors.cc"  // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/window.cc"   // NOLINT(bugprone-suspicious-include)
#include "frameworks/torch/work.cc"     // NOLINT(bugprone-suspicious-include)
// IWYU pragma: end_keep
