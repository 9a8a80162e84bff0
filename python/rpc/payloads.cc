#include "python/rpc/payloads.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "python/gil.h"
#include "transport/base/streaming_copy.h"
#include "transport/pool.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The smallest copy, in bytes, during which the GIL is released. For fewer
// bytes, releasing and taking the GIL costs more than the copy.
constexpr size_t kLeastUnlockedBytes = 64 * 1024;

// The smallest copy, in bytes, that bypasses the caches. Smaller messages are
// still in a cache when the next process reads them.
constexpr size_t kLeastStreamedBytes = 4 * 1024 * 1024;

constexpr size_t kHugePage = 2 * 1024 * 1024;
// The smallest new object, in bytes, that asks for huge pages, as NumPy's
// arrays do. Such an object contains a whole huge page.
constexpr size_t kLeastHugeBytes = 2 * kHugePage;

// The smallest block, in bytes, for which glibc always maps new pages. Copies
// to such a block use the caches, because the kernel has just cleared its
// pages, which are in the caches.
constexpr size_t kLeastNewBytes = 32 * 1024 * 1024;

std::shared_ptr<uint8_t> Allocate(size_t bytes) {
  if (bytes >= kLeastPoolBytes) {
    std::shared_ptr<uint8_t> pooled = AllocateFromPool(bytes);
    if (pooled != nullptr) return pooled;
  }
  absl::StatusOr<memory::Block> block = memory::AllocateBlock(bytes);
  return block.ok() ? std::move(block->data) : nullptr;
}

void CopyIn(absl::string_view message, uint8_t* to) {
  if (message.size() < kLeastStreamedBytes) {
    memcpy(to, message.data(), message.size());
  } else {
    base::StreamingCopy(message.data(), to, message.size());
  }
}

void CopyOut(const memory::Payload& payload, uint8_t* to) {
  if (payload.size() < kLeastStreamedBytes ||
      payload.size() >= kLeastNewBytes) {
    return payload.CopyTo(to);
  }
  for (const memory::Bytes& piece : payload.pieces()) {
    base::StreamingCopy(piece.data, to, piece.size);
    to += piece.size;
  }
}

// Asks for huge pages within memory that may have no pages yet. A fault for
// each small page takes longer than the copy.
void AskForHugePages(uint8_t* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (begin + bytes) / kHugePage * kHugePage;
  // A system that cannot follow the advice uses small pages.
  (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

// The memory of a message, for memoryviews. Python's buffer protocol keeps this
// object while a memoryview lives.
struct HeldMessage {
  memory::Bytes bytes;
};

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
  CopyIn(message, data.get());
  const uint8_t* const begin = data.get();
  return memory::Payload(
      memory::Bytes{begin, message.size(), std::move(data), nullptr});
}

py::bytes ToBytes(const memory::Payload& payload) {
  PyObject* const object = PyBytes_FromStringAndSize(
      nullptr, static_cast<Py_ssize_t>(payload.size()));
  if (object == nullptr) throw py::error_already_set();
  auto bytes = py::reinterpret_steal<py::bytes>(object);
  auto* const data = reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(object));
  std::optional<Unlocked> unlocked;
  if (payload.size() >= kLeastUnlockedBytes) unlocked.emplace();
  if (payload.size() >= kLeastHugeBytes) AskForHugePages(data, payload.size());
  CopyOut(payload, data);  // into the new object, which no other code has yet
  return bytes;
}

py::object ToObject(const memory::Payload& payload, bool as_view) {
  if (!as_view || payload.size() < kLeastPoolBytes ||
      payload.pieces().size() != 1) {
    return ToBytes(payload);
  }
  return py::memoryview(py::cast(HeldMessage{payload.pieces().front()}));
}

void BindPayloads(py::module_& module) {
  py::class_<HeldMessage>(module, "HeldMessage", py::buffer_protocol())
      .def_buffer([](const HeldMessage& message) {
        return py::buffer_info(message.bytes.data,
                               static_cast<py::ssize_t>(message.bytes.size));
      });
}

}  // namespace penstock::python
