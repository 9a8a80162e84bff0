#include "collectives/net/buffers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/operand_memory.h"
#include "collectives/schedule/plan.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

int64_t BufferCount(const Call& call, int ranks) {
  switch (call.operation) {
    case Operation::kReduceScatter:
    case Operation::kAllGather:
    case Operation::kGather:
    case Operation::kScatter:
    case Operation::kAllToAll:
      return call.count * ranks;
    default:
      return call.count;
  }
}

absl::Status Buffers::Own(const Call& call, int64_t elements) {
  absl::StatusOr<memory::Block> block =
      memory::AllocateBlock(std::max<size_t>(1, BytesOf(call.dtype, elements)));
  if (!block.ok()) return block.status();
  block_ = *std::move(block);
  data_ = block_.data.get();
  return absl::OkStatus();
}

absl::StatusOr<Buffers> Buffers::Fill(const Call& call, int rank, int ranks,
                                      int64_t extent, OperandMemory* memory,
                                      const void* in, void* out) {
  Buffers buffers(memory);
  const int64_t block = rank * call.count;
  const int64_t all = BufferCount(call, ranks);
  const size_t bytes = BytesOf(call.dtype, call.count);
  const bool is_root = rank == call.root;
  buffers.data_ = out;
  absl::Status status;
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
      if (out == nullptr) status = buffers.Own(call, all);
      if (status.ok()) status = buffers.CopyIn(in, buffers.data_, bytes);
      break;
    case Operation::kReduceScatter:
      status = buffers.Own(call, all);
      if (!status.ok()) break;
      status = buffers.CopyIn(in, buffers.data_, bytes * ranks);
      buffers.out_ = out;
      break;
    case Operation::kAllGather:
    case Operation::kGather:
      if (out == nullptr) {
        status = buffers.Own(call, std::max(extent, block + call.count));
      }
      if (!status.ok()) break;
      status = buffers.CopyIn(in, At(buffers.data_, block, call.dtype), bytes);
      break;
    case Operation::kScatter:
      buffers.out_ = out;
      // Uses the caller's `in` as the buffer of the root, which only sends.
      if (is_root) {
        buffers.data_ = const_cast<void*>(in);
      } else {
        status = buffers.Own(call, std::max(extent, block + call.count));
      }
      break;
    case Operation::kAllToAll:
    case Operation::kBroadcast:
    case Operation::kBarrier:
      break;
  }
  if (!status.ok()) return status;
  if (buffers.out_ != nullptr) {
    buffers.result_ = At(buffers.data_, block, call.dtype);
    buffers.result_bytes_ = bytes;
  }
  return buffers;
}

absl::Status Buffers::CopyIn(const void* from, void* to, size_t bytes) {
  if (from == to || bytes == 0) return absl::OkStatus();
  return block_.data == nullptr ? callers_->Copy(from, to, bytes)
                                : callers_->CopyToHost(from, to, bytes);
}

absl::Status Buffers::Deliver() {
  if (out_ == nullptr || out_ == result_ || result_bytes_ == 0) {
    return absl::OkStatus();
  }
  return block_.data == nullptr
             ? callers_->Copy(result_, out_, result_bytes_)
             : callers_->CopyFromHost(result_, out_, result_bytes_);
}

}  // namespace penstock::collectives
