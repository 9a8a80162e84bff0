// Converts values that a Python program pulls and pushes, and the results.

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

// All functions here throw an error that names the argument and the table. An
// array becomes a tensor as by FromAny(), which shares the memory if possible.

// Converts the arguments of a pull. `dense` is an iterable of names; None means
// all. `rows` is a dict of ids by table, or None. `dtype` is "f16", "bf16" or
// None.
ps::PullSpec PullSpecOf(pybind11::handle dense, pybind11::handle rows,
                        pybind11::handle dtype);
// Converts the arguments of a push. `dense` is a dict of arrays by table.
// `rows` is a dict of pairs (ids, array) by table. Either may be None.
ps::StepGradients GradientsOf(pybind11::handle dense, pybind11::handle rows);
// Converts `tensors`, a dict of arrays by table, or None. `name` names that
// argument.
tensor::Bundle BundleOf(pybind11::handle tensors, const std::string& name);

// Return a call's completion callback, which ends `pending` with the result:
// - of a pull, (dict of Tensors by table, clock, seconds waited);
// - of a push, a tuple with "counted", "duplicate" or "late" for each server.
std::function<void(absl::StatusOr<ps::Pulled>)> EndPull(
    std::shared_ptr<Pending> pending, const ps::PullSpec& spec);
std::function<void(absl::StatusOr<ps::Pushed>)> EndPush(
    std::shared_ptr<Pending> pending);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_PS_VALUES_H_
