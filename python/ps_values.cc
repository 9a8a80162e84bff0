#include "python/ps_values.h"

#include <pybind11/numpy.h>

#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "python/arguments.h"
#include "python/arrays.h"
#include "python/devices.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "python/from_any.h"
#include "python/tensor_object.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Tensor;

// Calls a function that may throw an exception of NumPy or another package.
// Adds `name` to such an exception.
template <typename Function>
auto Named(const std::string& name, const Function& function) {
  try {
    return function();
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;
    Throw(absl::InvalidArgumentError(absl::StrCat(name, ": ", error.what())));
  }
}

Tensor TensorOf(py::handle value, const std::string& name) {
  absl::StatusOr<Tensor> tensor = Named(name, [&value] {
    return FromAny(py::reinterpret_borrow<py::object>(value), /*copy=*/false);
  });
  const absl::Status status = tensor.ok()
                                  ? CheckOnHost(*tensor, "a parameter server")
                                  : tensor.status();
  if (status.ok()) return *std::move(tensor);
  Throw(
      absl::Status(status.code(), absl::StrCat(name, ": ", status.message())));
}

// Converts negative ids to the unsigned ids with the same bits.
std::vector<uint64_t> IdsOf(py::handle value, const std::string& name) {
  const std::string wanted = "an array of whole numbers, of one dimension";
  const absl::Status masked =
      CheckNotMasked(py::reinterpret_borrow<py::object>(value));
  if (!masked.ok()) {
    Throw(
        absl::InvalidArgumentError(absl::StrCat(name, ": ", masked.message())));
  }
  py::array array = Named(name, [&value]() -> py::array {
    return py::module_::import("numpy").attr("asarray")(value);
  });
  if (array.ndim() != 1) ThrowValue(value, name, wanted);
  if (array.size() == 0) return {};
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u') ThrowType(value, name, wanted);
  array = py::module_::import("numpy").attr("ascontiguousarray")(
      array, kind == 'i' ? "i8" : "u8");
  std::vector<uint64_t> ids(static_cast<size_t>(array.size()));
  std::memcpy(ids.data(), array.data(), ids.size() * sizeof(ids[0]));
  return ids;
}

ps::GradientRows RowsOf(const std::string& table, py::handle pair) {
  const std::string name = absl::StrCat("rows of ", table);
  const bool is_pair =
      (py::isinstance<py::tuple>(pair) || py::isinstance<py::list>(pair)) &&
      py::len(pair) == 2;
  if (!is_pair) ThrowType(pair, name, "a pair (ids, gradients)");
  const auto items = py::reinterpret_borrow<py::sequence>(pair);
  return {table, IdsOf(items[0], absl::StrCat(name, ": ids")),
          TensorOf(items[1], absl::StrCat(name, ": gradients"))};
}

std::string TableNameOf(py::handle key, const std::string& name) {
  return StrOf(key, absl::StrCat(name, ": the name of a table"));
}

const char* NameOf(ps::PushVerdict verdict) {
  switch (verdict) {
    case ps::PushVerdict::kCounted:
      return "counted";
    case ps::PushVerdict::kDuplicate:
      return "duplicate";
    case ps::PushVerdict::kLate:
      return "late";
  }
  return "";
}

py::object PulledToPython(const ps::Pulled& pulled,
                          const std::vector<std::string>& tables) {
  py::dict tensors;
  for (tensor::NamedTensor& named : pulled.AllDense().tensors) {
    tensors[py::str(named.name)] =
        std::make_unique<TensorObject>(std::move(named.tensor));
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    tensors[py::str(tables[i])] =
        std::make_unique<TensorObject>(pulled.Rows(i));
  }
  return py::make_tuple(tensors, pulled.clock(),
                        absl::ToDoubleSeconds(pulled.waited()));
}

py::object PushedToPython(const ps::Pushed& pushed) {
  py::list verdicts;
  for (const ps::PushVerdict verdict : pushed.verdicts) {
    verdicts.append(NameOf(verdict));
  }
  return py::tuple(verdicts);
}

absl::optional<tensor::DType> NarrowOf(py::handle named) {
  if (named.is_none()) return absl::nullopt;
  const absl::StatusOr<tensor::DType> dtype = Named("dtype", [&named] {
    return ParseDType(py::reinterpret_borrow<py::object>(named));
  });
  if (dtype.ok() &&
      (*dtype == tensor::DType::kF16 || *dtype == tensor::DType::kBF16)) {
    return *dtype;
  }
  ThrowValue(named, "dtype", "\"f16\", \"bf16\", or None for the tables' own");
}

}  // namespace

ps::PullSpec PullSpecOf(py::handle dense, py::handle rows, py::handle dtype) {
  ps::PullSpec spec;
  spec.all_dense = dense.is_none();
  if (!spec.all_dense) spec.dense = StrsOf(dense, "dense");
  if (!rows.is_none()) {
    for (const auto& [key, ids] : DictOf(rows, "rows")) {
      const std::string table = TableNameOf(key, "rows");
      spec.rows.push_back(
          {table, IdsOf(ids, absl::StrCat("rows of ", table, ": ids"))});
    }
  }
  spec.dtype = NarrowOf(dtype);
  return spec;
}

tensor::Bundle BundleOf(py::handle tensors, const std::string& name) {
  tensor::Bundle bundle;
  if (tensors.is_none()) return bundle;
  for (const auto& [key, value] : DictOf(tensors, name)) {
    const std::string table = TableNameOf(key, name);
    bundle.tensors.push_back(
        {table, TensorOf(value, absl::StrCat(name, " of ", table))});
  }
  return bundle;
}

ps::StepGradients GradientsOf(py::handle dense, py::handle rows) {
  ps::StepGradients gradients;
  gradients.dense = BundleOf(dense, "gradients");
  if (rows.is_none()) return gradients;
  for (const auto& [key, pair] : DictOf(rows, "rows")) {
    gradients.rows.push_back(RowsOf(TableNameOf(key, "rows"), pair));
  }
  return gradients;
}

std::function<void(absl::StatusOr<ps::Pulled>)> EndPull(
    std::shared_ptr<Pending> pending, const ps::PullSpec& spec) {
  std::vector<std::string> tables;
  tables.reserve(spec.rows.size());
  for (const ps::RowsWanted& rows : spec.rows) tables.push_back(rows.table);
  return [pending = std::move(pending),
          tables](absl::StatusOr<ps::Pulled> pulled) {
    // Holds the result by a pointer, because std::function requires a copyable
    // object.
    const auto kept =
        std::make_shared<absl::StatusOr<ps::Pulled>>(std::move(pulled));
    pending->End([kept, tables] {
      if (!kept->ok()) Throw(kept->status());
      return PulledToPython(**kept, tables);
    });
  };
}

std::function<void(absl::StatusOr<ps::Pushed>)> EndPush(
    std::shared_ptr<Pending> pending) {
  return
      [pending = std::move(pending)](const absl::StatusOr<ps::Pushed>& pushed) {
        pending->End([pushed] {
          if (!pushed.ok()) Throw(pushed.status());
          return PushedToPython(*pushed);
        });
      };
}

}  // namespace penstock::python
