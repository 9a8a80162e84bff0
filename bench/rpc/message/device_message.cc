#include "bench/rpc/message/device_message.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/allocator.h"
#include "tensor_service/device_memory.h"

namespace penstock {
namespace bench {
namespace {

using tensor::Buffer;
using tensor::DeviceMemory;

// The number of bytes in a message's first word; see payload.h.
constexpr size_t kFirstWord = 8;

// Returns host memory of at least `size` bytes with fast copies to devices. The
// memory belongs to this thread.
absl::StatusOr<uint8_t*> Scratch(size_t size) {
  thread_local std::shared_ptr<Buffer> scratch;
  if (scratch == nullptr || scratch->size() < size) {
    scratch = nullptr;
    auto larger = tensor::DefaultAllocator()->Allocate(size);
    if (!larger.ok()) return larger.status();
    scratch = *std::move(larger);
  }
  return reinterpret_cast<uint8_t*>(scratch->mutable_data());
}

}  // namespace

// Device memory that no message uses now, by size, for later messages. Never
// freed, and thus as large as all messages that existed at the same time.
class DeviceMessages::Spares {
 public:
  std::shared_ptr<Buffer> Take(size_t size) {
    absl::MutexLock lock(&mu_);
    std::vector<std::shared_ptr<Buffer>>& some = by_size_[size];
    if (some.empty()) return nullptr;
    std::shared_ptr<Buffer> taken = std::move(some.back());
    some.pop_back();
    return taken;
  }
  void Put(std::shared_ptr<Buffer> buffer) {
    absl::MutexLock lock(&mu_);
    by_size_[buffer->size()].push_back(std::move(buffer));
  }

 private:
  absl::Mutex mu_;
  std::map<size_t, std::vector<std::shared_ptr<Buffer>>> by_size_
      ABSL_GUARDED_BY(mu_);
};

DeviceMessages::DeviceMessages(const tensor::Device& device)
    : device_(device), spares_(std::make_shared<Spares>()) {}

absl::StatusOr<std::shared_ptr<Buffer>> DeviceMessages::MakeBuffer(
    size_t size, size_t offset, Write write) {
  const absl::StatusOr<uint8_t*> here = Scratch(size);
  if (!here.ok()) return here.status();
  write({*here, size}, offset);
  DeviceMemory* const memory = tensor::GetDeviceMemory();
  std::shared_ptr<Buffer> there = spares_->Take(size);
  if (there == nullptr) {
    auto fresh = memory->Allocate(device_, size);
    if (!fresh.ok()) return fresh.status();
    there = *std::move(fresh);
  }
  const tensor::CopyFromHost copy = {reinterpret_cast<const char*>(*here), size,
                                     there.get(), 0};
  absl::Status copied = memory->Copy(absl::MakeConstSpan(&copy, 1));
  if (!copied.ok()) return copied;
  const uintptr_t address = there->device_address();
  return Buffer::WrapDevice(
      device_, address, size, /*writable=*/false,
      [spares = spares_, there]() mutable { spares->Put(std::move(there)); });
}

absl::StatusOr<grpc::ByteBuffer> DeviceMessages::Make(const BufferSizes& parts,
                                                      Write write) {
  std::vector<grpc::Slice> slices;
  size_t offset = 0;
  for (size_t size : parts) {
    const size_t end = offset + size;
    if (offset == 0) {
      uint8_t first[kFirstWord];
      const size_t word = std::min(size, kFirstWord);
      write({first, word}, 0);
      slices.emplace_back(first, word);
      offset = word;
    }
    if (offset < end) {
      auto buffer = MakeBuffer(end - offset, offset, write);
      if (!buffer.ok()) return buffer.status();
      auto lent = tensor::GetDeviceMemory()->Lend(*std::move(buffer));
      if (!lent.ok()) return lent.status();
      slices.push_back(*std::move(lent));
    }
    offset = end;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status DeviceMessages::ReadAll(const grpc::ByteBuffer& message,
                                     Read read) {
  DeviceMemory* const memory = tensor::GetDeviceMemory();
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) {
    return absl::DataLossError("a message that cannot be decompressed");
  }
  for (const grpc::Slice& slice : slices) {
    const tensor::Device at = memory->DeviceOfSlice(slice.begin());
    if (at.is_host()) {
      read({slice.begin(), slice.size()});
      continue;
    }
    const absl::StatusOr<uint8_t*> here = Scratch(slice.size());
    if (!here.ok()) return here.status();
    const auto there = Buffer::WrapDevice(
        at, reinterpret_cast<uintptr_t>(slice.begin()), slice.size(),
        /*writable=*/false, nullptr);
    const tensor::CopyToHost copy = {there.get(), 0, slice.size(),
                                     reinterpret_cast<char*>(*here)};
    absl::Status copied = memory->Copy(absl::MakeConstSpan(&copy, 1));
    if (!copied.ok()) return copied;
    read({*here, slice.size()});
  }
  return absl::OkStatus();
}

}  // namespace bench
}  // namespace penstock
