// Runs the operations of a group on operands that peers read in place.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/host/copy_choice.h"
#include "collectives/host/exchange.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/plan.h"

namespace penstock::collectives {
namespace {

// Returns the number of elements of a rank's operand.
int64_t OperandCount(const Call& call, int ranks) {
  const bool has_blocks = call.operation == Operation::kReduceScatter ||
                          call.operation == Operation::kScatter ||
                          call.operation == Operation::kAllToAll;
  return has_blocks ? ranks * call.count : call.count;
}

// Returns true if other ranks read the operand of `rank`.
bool IsRead(const Call& call, int rank) {
  switch (call.operation) {
    case Operation::kBroadcast:
    case Operation::kScatter:
      return rank == call.root;
    case Operation::kGather:
      return rank != call.root;
    default:
      return true;
  }
}

}  // namespace

bool HostGroup::TriesPool(const Call& call) const {
  const auto bytes =
      static_cast<int64_t>(BytesOf(call.dtype, OperandCount(call, ranks())));
  if (call.operation == Operation::kBarrier) return false;
  // Also meets without a pool: BroadcastAll() measures from there on.
  if (call.operation == Operation::kBroadcast) return bytes > kFlatBytes;
  // A smaller operand is one piece: by slots, it takes one meeting less.
  return exchange_.pool_bytes() > 0 &&
         bytes > static_cast<int64_t>(exchange_.slot_bytes());
}

absl::optional<absl::Status> HostGroup::RunInPool(const Call& call,
                                                  const void* in, void* out) {
  const CallWords words = Encode(call);
  const size_t bytes = BytesOf(call.dtype, OperandCount(call, ranks()));
  // An all_reduce writes its result where the operand was.
  const bool publishes = IsRead(call, rank()) &&
                         (call.operation != Operation::kAllReduce || in == out);
  absl::Status status =
      exchange_.Meet(words, publishes ? exchange_.PlaceOf(in, bytes) : 0);
  if (!status.ok()) return status;
  Operands operands;
  for (int peer = 0; peer < ranks(); ++peer) {
    const uint8_t* const published = exchange_.OperandOf(peer, bytes);
    if (published == nullptr && IsRead(call, peer)) {
      copied_.fetch_add(1, std::memory_order_relaxed);
      return absl::nullopt;
    }
    operands[peer] = peer == rank() ? in : published;
  }
  read_in_place_.fetch_add(1, std::memory_order_relaxed);
  status = ReadOperands(call, operands, out);
  if (status.ok()) status = exchange_.CheckReads();
  return status.ok() ? exchange_.Meet(words) : status;
}

absl::Status HostGroup::ReadOperands(const Call& call, const Operands& operands,
                                     void* out) {
  const int64_t own = rank() * call.count;
  switch (call.operation) {
    case Operation::kAllReduce:
      return AllReduceInPool(call, operands, out);
    case Operation::kReduce:
      return ReduceFromPool(call, operands, out);
    case Operation::kReduceScatter:
      ReduceOperands(call, operands, {own, call.count}, out);
      break;
    case Operation::kAllGather:
    case Operation::kGather:
      if (out != nullptr) CopyOperands(call, operands, 0, out);
      break;
    case Operation::kAllToAll:
      CopyOperands(call, operands, own, out);
      break;
    case Operation::kScatter:
      Copy(At(operands[call.root], own, call.dtype), out,
           BytesOf(call.dtype, call.count));
      break;
    case Operation::kBroadcast:
      Copy(operands[call.root], out, BytesOf(call.dtype, call.count));
      break;
    case Operation::kBarrier:
      break;
  }
  return absl::OkStatus();
}

void HostGroup::ReduceOperands(const Call& call, const Operands& operands,
                               const Range& range, void* into) const {
  std::array<const void*, kMaxHostRanks> from;
  for (int peer = 0; peer < ranks(); ++peer) {
    from[peer] = At(operands[peer], range.begin, call.dtype);
  }
  collectives::Reduce(call.op, call.dtype,
                      absl::MakeConstSpan(from.data(), ranks()), into,
                      static_cast<size_t>(range.count));
}

void HostGroup::CopyOperands(const Call& call, const Operands& operands,
                             int64_t begin, void* out) const {
  const size_t bytes = BytesOf(call.dtype, call.count);
  for (int peer = 0; peer < ranks(); ++peer) {
    CopyPiece(At(operands[peer], begin, call.dtype),
              At(out, peer * call.count, call.dtype), bytes, ranks() * bytes);
  }
}

// Reduces this rank's block of all buffers in place, then copies the blocks of
// the other ranks. Only this rank reads and writes its block before the ranks
// meet.
absl::Status HostGroup::AllReduceInPool(const Call& call,
                                        const Operands& operands, void* data) {
  const Range own = BlockOf(rank(), ranks(), call.count);
  ReduceOperands(call, operands, own, At(data, own.begin, call.dtype));
  absl::Status status = exchange_.Meet(Encode(call));
  for (int peer = 0; peer < ranks() && status.ok(); ++peer) {
    const Range block = BlockOf(peer, ranks(), call.count);
    Copy(At(operands[peer], block.begin, call.dtype),
         At(data, block.begin, call.dtype), BytesOf(call.dtype, block.count));
  }
  return status;
}

// Each rank reduces its block of a piece into its slot, and the root copies the
// blocks. The root may write a block of its own operand, because the rank that
// reads the block has finished. Of two ranks, the root reduces alone: blocks
// would save it little, and cost a copy.
absl::Status HostGroup::ReduceFromPool(const Call& call,
                                       const Operands& operands, void* out) {
  if (ranks() == 2) {
    if (out != nullptr) ReduceOperands(call, operands, {0, call.count}, out);
    return absl::OkStatus();
  }
  return InPieces(
      call, ranks() * SlotElements(call.dtype, 1),
      [&](const Piece& piece, uint8_t* slot) {
        Range own = BlockOf(rank(), ranks(), piece.count);
        own.begin += piece.begin;
        ReduceOperands(call, operands, own, slot);
      },
      [&](const Piece& piece) {
        for (int peer = 0; peer < ranks() && out != nullptr; ++peer) {
          const Range block = BlockOf(peer, ranks(), piece.count);
          Copy(exchange_.SlotOf(peer),
               At(out, piece.begin + block.begin, call.dtype),
               BytesOf(call.dtype, block.count));
        }
      });
}

}  // namespace penstock::collectives
