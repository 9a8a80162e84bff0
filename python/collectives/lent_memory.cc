#include "python/collectives/lent_memory.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "python/collectives/bindings.h"
#include "python/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr char kName[] = "dltensor";
constexpr char kUsedName[] = "used_dltensor";
// Defines the type code of bools, because Debian's header of DLPack lacks it.
constexpr int kBoolCode = 6;

// Python's format for elements of a type of DLPack.
struct Row {
  int code;
  int bits;
  const char* format;
};

constexpr Row kRows[] = {
    {kDLFloat, 32, "f"},  {kDLFloat, 64, "d"},    {kDLFloat, 16, "e"},
    {kDLBfloat, 16, "H"}, {kDLInt, 64, "q"},      {kDLInt, 32, "i"},
    {kDLInt, 16, "h"},    {kDLInt, 8, "b"},       {kDLUInt, 8, "B"},
    {kDLUInt, 16, "H"},   {kDLUInt, 32, "I"},     {kDLUInt, 64, "Q"},
    {kBoolCode, 8, "?"},  {kDLComplex, 64, "Zf"}, {kDLComplex, 128, "Zd"},
};

const Row* RowOf(const DLDataType& type) {
  for (const Row& row : kRows) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) {
      return &row;
    }
  }
  return nullptr;
}

// Returns true for memory of the CPU, including memory that is pinned for a
// GPU.
bool IsOfCpu(const DLDevice& device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost;
}

absl::Status Check(const DLTensor& array) {
  if (!IsOfCpu(array.device)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the array is on a device of type ",
                     static_cast<int>(array.device.device_type),
                     ", and collectives take arrays of the CPU: copy it there "
                     "first, for example by array.cpu()"));
  }
  if (RowOf(array.dtype) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the array has elements of DLPack's type ", int{array.dtype.code},
      " with ", int{array.dtype.bits}, " bits in ", array.dtype.lanes,
      " lanes, which collectives do not take"));
}

}  // namespace

LentMemory::LentMemory(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kName) == 0) {
    Throw(absl::InvalidArgumentError(
        "__dlpack__() has returned no unused DLPack capsule: give a numpy "
        "array or a tensor of PyTorch"));
  }
  auto* const lent =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  const absl::Status status = Check(lent->dl_tensor);
  if (!status.ok()) Throw(status);
  PyCapsule_SetName(capsule.ptr(), kUsedName);
  lent_ = lent;
}

LentMemory::~LentMemory() {
  if (lent_->deleter != nullptr) lent_->deleter(lent_);
}

bool LentMemory::is_bfloat16() const {
  return lent_->dl_tensor.dtype.code == kDLBfloat;
}

py::buffer_info LentMemory::Describe() const {
  const DLTensor& array = lent_->dl_tensor;
  const Row& row = *RowOf(array.dtype);
  const ssize_t item = row.bits / 8;
  std::vector<ssize_t> shape(array.shape, array.shape + array.ndim);
  std::vector<ssize_t> strides(shape.size());
  ssize_t dense = item;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = array.strides == nullptr ? dense : array.strides[i] * item;
    dense *= shape[i];
  }
  return {static_cast<char*>(array.data) + array.byte_offset,
          item,
          row.format,
          array.ndim,
          std::move(shape),
          std::move(strides)};
}

void BindLentMemory(py::module_& module) {
  py::class_<LentMemory>(module, "LentMemory", py::buffer_protocol())
      .def(py::init<const py::object&>())
      .def_property_readonly("is_bfloat16", &LentMemory::is_bfloat16)
      .def_buffer(&LentMemory::Describe);
}

}  // namespace penstock::python
