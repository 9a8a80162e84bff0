// The headers of PyTorch that the sources here include, compiled once: they
// take a minute.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_TORCH_HEADERS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_TORCH_HEADERS_H_

// IWYU pragma: begin_exports
#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
// IWYU pragma: end_exports

#endif  // PENSTOCK_FRAMEWORKS_TORCH_TORCH_HEADERS_H_
