// What a Python program pulls and pushes, and what comes of it.

#ifndef PENSTOCK_PYTHON_PS_VALUES_H_
#define PENSTOCK_PYTHON_PS_VALUES_H_

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/client/gradients.h"
#include "ps/client/pull.h"
#include "ps/client/push_queue.h"
#include "python/pending.h"
#include "tensor_service/tensor.h"

namespace penstock::python {

// All throw what names the argument and the table. Values share memory as
// FromAny() does.

// `dense` is an iterable of names, or None for all; `rows` a dict of ids by
// table, or None; `dtype` "f16", "bf16" or None.
ps::PullSpec PullSpecOf(pybind11::handle dense, pybind11::handle rows,
                        pybind11::handle dtype);
// `dense` is a dict of arrays by table; `rows` one of pairs (ids, array), or
// None.
ps::StepGradients GradientsOf(pybind11::handle dense, pybind11::handle rows);
// `name` is the argument's: a dict of arrays by table, or None.
tensor::Bundle BundleOf(pybind11::handle tensors, const std::string& name);

// Return what a call that was started calls back. It ends `pending`:
//   a pull with (dict of Tensors by table, clock, seconds waited)
//   a push with a tuple of "counted", "duplicate" or "late", by server
std::function<void(absl::StatusOr<ps::Pulled>)> EndPull(
    std::shared_ptr<Pending> pending, const ps::PullSpec& spec);
std::function<void(absl::StatusOr<ps::Pushed>)> EndPush(
    std::shared_ptr<Pending> pending);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PS_VALUES_H_
