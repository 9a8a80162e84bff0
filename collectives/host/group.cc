#include "collectives/host/group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/host/copy_choice.h"
#include "collectives/host/exchange.h"
#include "collectives/host/meeting.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"
#include "transport/base/streaming_copy.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

}  // namespace

absl::StatusOr<std::unique_ptr<HostGroup>> HostGroup::Lead(
    Meeting meeting, const HostGroupOptions& options) {
  auto members =
      meeting.Lead(options.ranks, {options.slot_bytes, options.pool_bytes},
                   options.meeting_timeout);
  if (!members.ok()) return members.status();
  return std::unique_ptr<HostGroup>(
      new HostGroup(*std::move(members), options));
}

absl::StatusOr<std::unique_ptr<HostGroup>> HostGroup::Join(
    absl::string_view invitation, int rank, const HostGroupOptions& options) {
  auto members = collectives::Join(invitation, rank, options.ranks,
                                   {options.slot_bytes, options.pool_bytes},
                                   options.meeting_timeout);
  if (!members.ok()) return members.status();
  return std::unique_ptr<HostGroup>(
      new HostGroup(*std::move(members), options));
}

std::string HostGroup::Describe() const {
  std::string text = absl::StrCat("rank ", rank(), " of ", ranks(),
                                  " on one host, over shared memory");
  if (pool_->bytes() > 0) {
    absl::StrAppend(&text, ", with a pool of ", pool_->bytes(),
                    " bytes: ", read_in_place_.load(std::memory_order_relaxed),
                    " large operations read it in place, ",
                    copied_.load(std::memory_order_relaxed), " copied");
  }
  return text;
}

absl::Status HostGroup::Run(const Call& call, const void* in, void* out) {
  absl::Status own = exchange_.CheckOwner();
  if (!own.ok()) return own;
  base::MutexLock lock(&mu_);
  if (TriesPool(call)) {
    absl::optional<absl::Status> status = RunInPool(call, in, out);
    if (status.has_value()) return *std::move(status);
  }
  return RunBySlots(call, in, out);
}

absl::Status HostGroup::RunBySlots(const Call& call, const void* in,
                                   void* out) {
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce:
      return ReduceAll(call, in, out);
    case Operation::kReduceScatter:
      return ReduceBlocks(call, in, out);
    case Operation::kAllGather:
    case Operation::kGather:
      return GatherAll(call, in, out);
    case Operation::kScatter:
      return ScatterAll(call, in, out);
    case Operation::kBroadcast:
      return BroadcastAll(call, out);
    case Operation::kAllToAll:
      return Transpose(call, in, out);
    case Operation::kBarrier:
      break;
  }
  return exchange_.Meet(Encode(call));
}

absl::Status HostGroup::Agree(const Call& call) {
  absl::Status own = exchange_.CheckOwner();
  if (!own.ok()) return own;
  base::MutexLock lock(&mu_);
  return exchange_.Meet(Encode(call));
}

absl::Status HostGroup::SendLetter(const Letter& letter, const void* data) {
  absl::Status own = exchange_.CheckOwner();
  return own.ok() ? mail_.Send(letter, data) : own;
}

absl::Status HostGroup::ReceiveLetter(const Letter& letter, void* data) {
  absl::Status own = exchange_.CheckOwner();
  return own.ok() ? mail_.Receive(letter, data) : own;
}

int64_t HostGroup::SlotElements(DType dtype, int blocks) const {
  return static_cast<int64_t>(exchange_.slot_bytes() /
                              tensor::ElementSize(dtype)) /
         blocks;
}

absl::Status HostGroup::InPieces(const Call& call, int64_t most,
                                 const Fill& fill, const Take& take) {
  const CallWords words = Encode(call);
  int64_t begin = 0;
  do {
    const Piece piece = {begin, std::min(most, call.count - begin)};
    absl::Status ready = exchange_.Ready();
    if (!ready.ok()) return ready;
    fill(piece, exchange_.NextSlot());
    absl::Status met = exchange_.Meet(words);
    if (!met.ok()) return met;
    take(piece);
    begin += piece.count;
  } while (begin < call.count);
  return absl::OkStatus();
}

void HostGroup::ReduceSlots(const Call& call, const void* own, size_t offset,
                            int64_t count, void* into) {
  std::array<const void*, kMaxHostRanks> from;
  for (int peer = 0; peer < ranks(); ++peer) {
    from[peer] = peer == rank() ? own : exchange_.SlotOf(peer) + offset;
  }
  collectives::Reduce(call.op, call.dtype,
                      absl::MakeConstSpan(from.data(), ranks()), into,
                      static_cast<size_t>(count));
}

absl::Status HostGroup::AllReduceFlat(const Call& call, const void* in,
                                      void* out) {
  return InPieces(
      call, SlotElements(call.dtype, 1),
      [&](const Piece& piece, uint8_t* slot) {
        Copy(At(in, piece.begin, call.dtype), slot,
             BytesOf(call.dtype, piece.count));
      },
      [&](const Piece& piece) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        if (out == nullptr) return;
        ReduceSlots(call, At(in, piece.begin, call.dtype), 0, piece.count,
                    At(out, piece.begin, call.dtype));
      });
}

// Meets the other ranks twice for each piece. First each rank reduces its block
// into its next slot; then it copies the blocks of all ranks. The rank reads
// its own operand of its block from `in`, because no other rank needs that
// block in the first slot.
absl::Status HostGroup::AllReduceByBlocks(const Call& call, const void* in,
                                          void* out) {
  const CallWords words = Encode(call);
  absl::Status reduced;
  absl::Status status = InPieces(
      call, SlotElements(call.dtype, 1),
      [&](const Piece& piece, uint8_t* slot) {
        const Range own = BlockOf(rank(), ranks(), piece.count);
        const int64_t end = own.begin + own.count;
        Copy(At(in, piece.begin, call.dtype), slot,
             BytesOf(call.dtype, own.begin));
        Copy(At(in, piece.begin + end, call.dtype), At(slot, end, call.dtype),
             BytesOf(call.dtype, piece.count - end));
      },
      [&](const Piece& piece) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        const Range own = BlockOf(rank(), ranks(), piece.count);
        const size_t offset = BytesOf(call.dtype, own.begin);
        ReduceSlots(call, At(in, piece.begin + own.begin, call.dtype), offset,
                    own.count, exchange_.NextSlot() + offset);
        reduced = exchange_.Meet(words);
        if (!reduced.ok() || out == nullptr) return;
        for (int peer = 0; peer < ranks(); ++peer) {
          const Range block = BlockOf(peer, ranks(), piece.count);
          Copy(At(exchange_.SlotOf(peer), block.begin, call.dtype),
               At(out, piece.begin + block.begin, call.dtype),
               BytesOf(call.dtype, block.count));
        }
      });
  return reduced.ok() ? status : reduced;
}

absl::Status HostGroup::ReduceAll(const Call& call, const void* in, void* out) {
  const size_t bytes = BytesOf(call.dtype, call.count);
  if (static_cast<int64_t>(bytes) <= kFlatBytes / ranks()) {
    return AllReduceFlat(call, in, out);
  }
  // With two ranks, both ways read as many bytes of the peer. Blocks would only
  // save additions, and cost a second wait and a copy.
  return ranks() == 2 ? AllReduceFlat(call, in, out)
                      : AllReduceByBlocks(call, in, out);
}

absl::Status HostGroup::ReduceBlocks(const Call& call, const void* in,
                                     void* out) {
  const DType dtype = call.dtype;
  const int64_t count = call.count;
  return InPieces(
      call, SlotElements(dtype, ranks()),
      [&](const Piece& piece, uint8_t* slot) {
        const size_t bytes = BytesOf(dtype, piece.count);
        for (int to = 0; to < ranks(); ++to) {
          if (to == rank()) continue;
          Copy(At(in, to * count + piece.begin, dtype), slot + to * bytes,
               bytes);
        }
      },
      [&](const Piece& piece) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        ReduceSlots(call, At(in, rank() * count + piece.begin, dtype),
                    rank() * BytesOf(dtype, piece.count), piece.count,
                    At(out, piece.begin, dtype));
      });
}

absl::Status HostGroup::GatherAll(const Call& call, const void* in, void* out) {
  const size_t whole = ranks() * BytesOf(call.dtype, call.count);
  return InPieces(
      call, SlotElements(call.dtype, 1),
      [&](const Piece& piece, uint8_t* slot) {
        CopyPiece(At(in, piece.begin, call.dtype), slot,
                  BytesOf(call.dtype, piece.count), whole);
      },
      [&](const Piece& piece) {
        for (int from = 0; from < ranks() && out != nullptr; ++from) {
          CopyPiece(exchange_.SlotOf(from),
                    At(out, from * call.count + piece.begin, call.dtype),
                    BytesOf(call.dtype, piece.count), whole);
        }
      });
}

absl::Status HostGroup::ScatterAll(const Call& call, const void* in,
                                   void* out) {
  const DType dtype = call.dtype;
  const int64_t count = call.count;
  const int root = call.root;
  return InPieces(
      call, SlotElements(dtype, ranks()),
      [&](const Piece& piece, uint8_t* slot) {
        const size_t bytes = BytesOf(dtype, piece.count);
        for (int to = 0; to < ranks() && rank() == root; ++to) {
          Copy(At(in, to * count + piece.begin, dtype), slot + to * bytes,
               bytes);
        }
      },
      [&](const Piece& piece) {
        const size_t bytes = BytesOf(dtype, piece.count);
        Copy(exchange_.SlotOf(root) + rank() * bytes,
             At(out, piece.begin, dtype), bytes);
      });
}

absl::Status HostGroup::BroadcastAll(const Call& call, void* data) {
  const size_t bytes = BytesOf(call.dtype, call.count);
  if (bytes <= static_cast<size_t>(kFlatBytes)) {
    return BroadcastBySlots(call, data, false);
  }
  if (bytes >= kLargeResult || rank() != call.root) {
    return BroadcastBySlots(call, data, true);
  }
  const bool streams = broadcast_copies_.Streams(bytes);
  // Starts to measure now, because all ranks have just met in RunInPool(), so
  // no rank is late.
  const absl::Time begun = base::SteadyNow();
  absl::Status status = BroadcastBySlots(call, data, streams);
  broadcast_copies_.Record(bytes, streams, base::SteadyNow() - begun);
  return status;
}

absl::Status HostGroup::BroadcastBySlots(const Call& call, void* data,
                                         bool streams) {
  const DType dtype = call.dtype;
  const int root = call.root;
  return InPieces(
      call, SlotElements(dtype, 1),
      [&](const Piece& piece, uint8_t* slot) {
        if (rank() != root) return;
        (streams ? base::StreamingCopy : Copy)(
            At(data, piece.begin, dtype), slot, BytesOf(dtype, piece.count));
      },
      [&](const Piece& piece) {
        if (rank() == root) return;
        CopyPiece(exchange_.SlotOf(root), At(data, piece.begin, dtype),
                  BytesOf(dtype, piece.count), BytesOf(dtype, call.count));
      });
}

absl::Status HostGroup::Transpose(const Call& call, const void* in, void* out) {
  const DType dtype = call.dtype;
  const int64_t count = call.count;
  return InPieces(
      call, SlotElements(dtype, ranks()),
      [&](const Piece& piece, uint8_t* slot) {
        const size_t bytes = BytesOf(dtype, piece.count);
        for (int to = 0; to < ranks(); ++to) {
          Copy(At(in, to * count + piece.begin, dtype), slot + to * bytes,
               bytes);
        }
      },
      [&](const Piece& piece) {
        const size_t bytes = BytesOf(dtype, piece.count);
        for (int from = 0; from < ranks(); ++from) {
          Copy(exchange_.SlotOf(from) + rank() * bytes,
               At(out, from * count + piece.begin, dtype), bytes);
        }
      });
}

}  // namespace penstock::collectives
