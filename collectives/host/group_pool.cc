// Runs the operations of a group on buffers that peers read in place.
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/host/exchange.h"
#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/blocks.h"

namespace penstock::collectives {

// Reduces this rank's block of all buffers in place, then copies the blocks of
// the other ranks. Only this rank reads and writes its block before the ranks
// meet. After the last meeting, the caller may change all bytes, because no
// other rank reads them any more.
absl::optional<absl::Status> HostGroup::AllReduceInPool(const Call& call,
                                                        void* data) {
  const CallWords words = Encode(call);
  const size_t bytes = BytesOf(call.dtype, call.count);
  absl::Status status = exchange_.Meet(
      words, data == nullptr ? 0 : exchange_.PlaceOf(data, bytes));
  if (!status.ok()) return status;
  std::array<const void*, kMaxHostRanks> buffers;
  std::array<const void*, kMaxHostRanks> from;
  const Range own = BlockOf(rank(), ranks(), call.count);
  for (int peer = 0; peer < ranks(); ++peer) {
    buffers[peer] = exchange_.OperandOf(peer, bytes);
    if (buffers[peer] == nullptr) return absl::nullopt;
    from[peer] = At(buffers[peer], own.begin, call.dtype);
  }
  collectives::Reduce(
      call.op, call.dtype, absl::MakeConstSpan(from.data(), ranks()),
      At(data, own.begin, call.dtype), static_cast<size_t>(own.count));
  status = exchange_.Meet(words);
  if (!status.ok()) return status;
  for (int peer = 0; peer < ranks(); ++peer) {
    const Range block = BlockOf(peer, ranks(), call.count);
    Copy(At(buffers[peer], block.begin, call.dtype),
         At(data, block.begin, call.dtype), BytesOf(call.dtype, block.count));
  }
  status = exchange_.CheckReads();
  return status.ok() ? exchange_.Meet(words) : status;
}

absl::optional<absl::Status> HostGroup::BroadcastFromPool(const Call& call,
                                                          void* data) {
  const CallWords words = Encode(call);
  const size_t bytes = BytesOf(call.dtype, call.count);
  absl::Status status = exchange_.Meet(
      words, rank() == call.root ? exchange_.PlaceOf(data, bytes) : 0);
  if (!status.ok()) return status;
  const uint8_t* const from = exchange_.OperandOf(call.root, bytes);
  if (from == nullptr) return absl::nullopt;
  if (rank() != call.root) Copy(from, data, bytes);
  status = exchange_.CheckReads();
  return status.ok() ? exchange_.Meet(words) : status;
}

}  // namespace penstock::collectives
