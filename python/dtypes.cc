#include "python/dtypes.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::DType;

struct Row {
  DType dtype;
  char kind;
  ssize_t size;
};

// The NumPy type of each element type. NumPy has no bf16.
constexpr Row kRows[] = {
    {DType::kF32, 'f', 4},   {DType::kF64, 'f', 8},   {DType::kF16, 'f', 2},
    {DType::kInt8, 'i', 1},  {DType::kInt16, 'i', 2}, {DType::kInt32, 'i', 4},
    {DType::kInt64, 'i', 8}, {DType::kUint8, 'u', 1}, {DType::kBool, 'b', 1},
};

py::dtype Make(char kind, ssize_t size) {
  return py::dtype(absl::StrCat(std::string(1, kind), size));
}

std::string Remedy(char kind, ssize_t size) {
  if (kind == 'u') {
    return absl::StrCat("; array.view('int", 8 * size, "') has the same bits");
  }
  if (kind == 'c') return "; array.view() as floats has one dimension more";
  return "; convert it with array.astype()";
}

}  // namespace

absl::StatusOr<DType> DTypeOfNumpy(const py::dtype& numpy) {
  for (const Row& row : kRows) {
    if (row.kind == numpy.kind() && row.size == numpy.itemsize()) {
      return row.dtype;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no tensor has elements of numpy's ", TextOf(numpy),
                   ": they are float16, float32, ",
                   "float64, int8, int16, int32, int64, uint8, bool or bf16",
                   Remedy(numpy.kind(), numpy.itemsize())));
}

absl::StatusOr<DType> ParseDType(const py::object& named) {
  if (py::isinstance<py::str>(named)) {
    const auto name = named.cast<std::string>();
    if (name == "bfloat16") return DType::kBF16;
    for (int number = 1; tensor::IsDType(number); ++number) {
      const auto dtype = static_cast<DType>(number);
      if (tensor::Name(dtype) == name) return dtype;
    }
  }
  return DTypeOfNumpy(py::dtype::from_args(named));
}

absl::StatusOr<py::dtype> NumpyOf(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return Make(row.kind, row.size);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "numpy has no ", tensor::Name(dtype), ": take its bits with ",
      "tensor.bits(), or the tensor by DLPack, as torch.from_dlpack(tensor)"));
}

py::dtype BitsOf(DType dtype) {
  return Make('u', static_cast<ssize_t>(tensor::ElementSize(dtype)));
}

}  // namespace penstock::python
