#include "transport/memory/bytes.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/memory/device_access.h"
#include "transport/memory/large_blocks.h"

namespace penstock {
namespace memory {
namespace {

constexpr size_t kAlignment = 64;

// The size, in bytes, from which blocks come from LargeBlocks, because new
// pages would cost more than reused pages.
constexpr size_t kLargeBytes = 1024 * 1024;

std::shared_ptr<uint8_t> AllocateSmall(size_t size) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, std::max<size_t>(size, 1)) != 0) {
    return nullptr;
  }
  return std::shared_ptr<uint8_t>(static_cast<uint8_t*>(memory), free);
}

std::atomic<std::shared_ptr<uint8_t> (*)(size_t)> g_allocate_staging{nullptr};

}  // namespace

absl::StatusOr<Block> AllocateBlock(size_t size) {
  std::shared_ptr<uint8_t> memory = size >= kLargeBytes
                                        ? LargeBlocks::Get()->Allocate(size)
                                        : AllocateSmall(size);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a message of ", size, " bytes"));
  }
  return Block{std::move(memory), size};
}

namespace {

absl::StatusOr<Block> AllocateStaging(size_t size) {
  const auto allocate = g_allocate_staging.load(std::memory_order_acquire);
  if (allocate != nullptr) {
    std::shared_ptr<uint8_t> memory = allocate(size);
    if (memory != nullptr) return Block{std::move(memory), size};
  }
  return AllocateBlock(size);
}

}  // namespace

absl::StatusOr<Bytes> CopyBytes(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < kAlignedBytes) {
    auto copy = std::make_shared<const std::string>(
        reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Bytes{reinterpret_cast<const uint8_t*>(copy->data()), copy->size(),
                 copy};
  }
  absl::StatusOr<Block> block = AllocateBlock(bytes.size());
  if (!block.ok()) return block.status();
  memcpy(block->data.get(), bytes.data(), bytes.size());
  return block->AsBytes();
}

absl::Status Bytes::CopyTo(uint8_t* out) const {
  if (device != nullptr) return device->CopyToHost(span(), out);
  memcpy(out, data, size);
  return absl::OkStatus();
}

void SetStagingMemory(std::shared_ptr<uint8_t> (*allocate)(size_t bytes)) {
  g_allocate_staging.store(allocate, std::memory_order_release);
}

absl::StatusOr<Bytes> ToHost(Bytes bytes) {
  if (bytes.device == nullptr) return bytes;
  absl::StatusOr<Block> block = AllocateStaging(bytes.size);
  if (!block.ok()) return block.status();
  absl::Status copied = bytes.CopyTo(block->data.get());
  if (!copied.ok()) return copied;
  return block->AsBytes();
}

absl::StatusOr<Bytes> Own(Bytes bytes) {
  if (bytes.owner != nullptr) return bytes;
  if (bytes.device != nullptr) return ToHost(std::move(bytes));
  return CopyBytes(bytes.span());
}

absl::StatusOr<Payload> ToHost(const Payload& payload) {
  Payload on_host;
  for (const Bytes& piece : payload.pieces()) {
    absl::StatusOr<Bytes> bytes = ToHost(piece);
    if (!bytes.ok()) return bytes.status();
    on_host.Append(*std::move(bytes));
  }
  return on_host;
}

void Payload::Append(Bytes bytes) {
  if (bytes.size == 0) return;
  size_ += bytes.size;
  pieces_.push_back(std::move(bytes));
}

std::vector<Bytes> Payload::Part(size_t offset, size_t length) const {
  std::vector<Bytes> parts;
  for (const Bytes& piece : pieces_) {
    if (length == 0) break;
    if (offset >= piece.size) {
      offset -= piece.size;
      continue;
    }
    size_t take = std::min(length, piece.size - offset);
    parts.push_back(piece.Part(offset, take));
    length -= take;
    offset = 0;
  }
  return parts;
}

bool Payload::on_host() const {
  for (const Bytes& piece : pieces_) {
    if (piece.device != nullptr) return false;
  }
  return true;
}

void Payload::CopyTo(uint8_t* out) const {
  for (const Bytes& piece : pieces_) {
    memcpy(out, piece.data, piece.size);
    out += piece.size;
  }
}

absl::Status Payload::CopyFromAnywhereTo(uint8_t* out) const {
  for (const Bytes& piece : pieces_) {
    absl::Status copied = piece.CopyTo(out);
    if (!copied.ok()) return copied;
    out += piece.size;
  }
  return absl::OkStatus();
}

}  // namespace memory
}  // namespace penstock
