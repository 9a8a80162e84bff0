#include "python/rpc/payloads.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "python/gil.h"
#include "transport/pool.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The smallest copy, in bytes, during which the GIL is released. For fewer
// bytes, releasing and taking the GIL costs more than the copy.
constexpr size_t kLeastUnlockedBytes = 64 * 1024;

std::shared_ptr<uint8_t> Allocate(size_t bytes) {
  if (bytes >= kLeastPoolBytes) {
    std::shared_ptr<uint8_t> pooled = AllocateFromPool(bytes);
    if (pooled != nullptr) return pooled;
  }
  absl::StatusOr<memory::Block> block = memory::AllocateBlock(bytes);
  return block.ok() ? std::move(block->data) : nullptr;
}

}  // namespace

absl::string_view ViewOf(const py::bytes& bytes) {
  return {PyBytes_AS_STRING(bytes.ptr()),
          static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

absl::StatusOr<memory::Payload> ToPayload(absl::string_view message) {
  if (message.empty()) return memory::Payload();
  std::shared_ptr<uint8_t> data = Allocate(message.size());
  if (data == nullptr) {
    return absl::ResourceExhaustedError("no memory for the message");
  }
  memcpy(data.get(), message.data(), message.size());
  const uint8_t* const begin = data.get();
  return memory::Payload(
      memory::Bytes{begin, message.size(), std::move(data), nullptr});
}

py::bytes ToBytes(const memory::Payload& payload) {
  PyObject* const object = PyBytes_FromStringAndSize(
      nullptr, static_cast<Py_ssize_t>(payload.size()));
  if (object == nullptr) throw py::error_already_set();
  auto bytes = py::reinterpret_steal<py::bytes>(object);
  std::optional<Unlocked> unlocked;
  if (payload.size() >= kLeastUnlockedBytes) unlocked.emplace();
  // Writes into the new object, which no other code has yet.
  payload.CopyTo(reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(object)));
  return bytes;
}

}  // namespace penstock::python
