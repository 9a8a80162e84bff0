#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/hierarchical/group.h"
#include "collectives/hierarchical/layout.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

// Returns a part of `call`. An average becomes a sum, which is divided at the
// end.
Call Phase(const Call& call, Operation operation, int root, int64_t count) {
  Call phase = call;
  phase.operation = operation;
  if (call.op == ReduceOp::kAverage) phase.op = ReduceOp::kSum;
  phase.root = root;
  phase.count = count;
  return phase;
}

// Returns true if all hosts have the same number of consecutive ranks. The
// blocks of the hosts are then consecutive in a buffer of all ranks.
bool IsRegular(const Layout& layout) {
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (layout.host_of[rank] != rank / layout.largest()) return false;
  }
  return layout.ranks() == layout.hosts() * layout.largest();
}

// Returns zeroed memory, because parts that nobody writes are also sent and
// must not contain old data.
absl::StatusOr<memory::Block> Zeros(size_t bytes) {
  absl::StatusOr<memory::Block> block =
      memory::AllocateBlock(std::max<size_t>(1, bytes));
  if (block.ok()) std::memset(block->data.get(), 0, bytes);
  return block;
}

// Returns the index of a rank's block in a buffer with equal shares for all
// hosts.
int64_t ShareOf(const Layout& layout, int rank) {
  return int64_t{layout.host_of[rank]} * layout.largest() +
         layout.place_of[rank];
}

}  // namespace

absl::Status HierarchicalGroup::RunPhases(const Call& call, const void* in,
                                          void* out) {
  absl::Status status = all_->Begin(call);
  if (status.ok() && host_ != nullptr) status = OfHost(host_->Agree(call));
  if (!status.ok()) return status;
  switch (call.operation) {
    case Operation::kAllReduce:
      return AllReducePhases(call, in, out);
    case Operation::kBroadcast:
      return BroadcastPhases(call, out);
    case Operation::kAllGather:
      return AllGatherPhases(call, in, out);
    case Operation::kReduceScatter:
      return ReduceScatterPhases(call, in, out);
    default:
      return BarrierPhases(call);
  }
}

absl::Status HierarchicalGroup::AllReducePhases(const Call& call,
                                                const void* in, void* out) {
  absl::Status status;
  if (host_ != nullptr) {
    status =
        OfHost(host_->RunPhase(Phase(call, Operation::kReduce, 0, call.count),
                               in, is_leader() ? out : nullptr));
  } else {
    Copy(in, out, BytesOf(call.dtype, call.count));
  }
  if (status.ok() && leaders_ != nullptr) {
    status = OfLeaders(leaders_->RunPhase(
        call, Phase(call, Operation::kAllReduce, 0, call.count), out, out));
  }
  if (status.ok() && host_ != nullptr) {
    status = OfHost(host_->RunPhase(
        Phase(call, Operation::kBroadcast, 0, call.count), out, out));
  }
  if (status.ok() && call.op == ReduceOp::kAverage) {
    Divide(call.dtype, out, ranks(), static_cast<size_t>(call.count));
  }
  return status;
}

absl::Status HierarchicalGroup::BroadcastPhases(const Call& call, void* data) {
  const int host = layout_.host_of[call.root];
  const bool has_root = host == layout_.host_of[rank()];
  absl::Status status;
  if (has_root && host_ != nullptr) {
    status =
        OfHost(host_->RunPhase(Phase(call, Operation::kBroadcast,
                                     layout_.place_of[call.root], call.count),
                               data, data));
  }
  if (status.ok() && leaders_ != nullptr) {
    status = OfLeaders(leaders_->RunPhase(
        call, Phase(call, Operation::kBroadcast, host, call.count), data,
        data));
  }
  if (status.ok() && !has_root && host_ != nullptr) {
    status = OfHost(host_->RunPhase(
        Phase(call, Operation::kBroadcast, 0, call.count), data, data));
  }
  return status;
}

absl::Status HierarchicalGroup::AllGatherPhases(const Call& call,
                                                const void* in, void* out) {
  const DType dtype = call.dtype;
  const int64_t share = layout_.largest() * call.count;
  const bool is_regular = IsRegular(layout_);
  memory::Block packed;
  void* all = out;
  if (!is_regular && is_leader()) {
    auto block = Zeros(BytesOf(dtype, layout_.hosts() * share));
    if (!block.ok()) return block.status();
    packed = *std::move(block);
    all = packed.data.get();
  }
  void* const own =
      is_leader() ? At(all, layout_.host_of[rank()] * share, dtype) : nullptr;
  absl::Status status;
  if (host_ != nullptr) {
    status = OfHost(host_->RunPhase(
        Phase(call, Operation::kGather, 0, call.count), in, own));
  } else {
    Copy(in, own, BytesOf(dtype, call.count));
  }
  if (status.ok() && leaders_ != nullptr) {
    status = OfLeaders(leaders_->RunPhase(
        call, Phase(call, Operation::kAllGather, 0, share), own, all));
    for (int peer = 0; peer < ranks() && !is_regular; ++peer) {
      Copy(At(all, ShareOf(layout_, peer) * call.count, dtype),
           At(out, peer * call.count, dtype), BytesOf(dtype, call.count));
    }
  }
  if (!status.ok() || host_ == nullptr) return status;
  return OfHost(host_->RunPhase(
      Phase(call, Operation::kBroadcast, 0, ranks() * call.count), out, out));
}

absl::Status HierarchicalGroup::ReduceScatterPhases(const Call& call,
                                                    const void* in, void* out) {
  const DType dtype = call.dtype;
  const int64_t all = ranks() * call.count;
  const int64_t share = layout_.largest() * call.count;
  memory::Block sum;
  memory::Block packed;
  memory::Block own;
  if (is_leader()) {
    const std::pair<memory::Block*, int64_t> blocks[] = {
        {&sum, all}, {&packed, layout_.hosts() * share}, {&own, share}};
    for (const auto& [block, count] : blocks) {
      auto made = Zeros(BytesOf(dtype, count));
      if (!made.ok()) return made.status();
      *block = *std::move(made);
    }
  }
  absl::Status status;
  if (host_ != nullptr) {
    status = OfHost(host_->RunPhase(Phase(call, Operation::kReduce, 0, all), in,
                                    sum.data.get()));
  } else {
    Copy(in, sum.data.get(), BytesOf(dtype, all));
  }
  if (status.ok() && leaders_ != nullptr) {
    for (int peer = 0; peer < ranks(); ++peer) {
      Copy(At(sum.data.get(), peer * call.count, dtype),
           At(packed.data.get(), ShareOf(layout_, peer) * call.count, dtype),
           BytesOf(dtype, call.count));
    }
    status = OfLeaders(leaders_->RunPhase(
        call, Phase(call, Operation::kReduceScatter, 0, share),
        packed.data.get(), own.data.get()));
  }
  if (status.ok() && host_ != nullptr) {
    status = OfHost(host_->RunPhase(
        Phase(call, Operation::kScatter, 0, call.count), own.data.get(), out));
  } else if (status.ok()) {
    Copy(own.data.get(), out, BytesOf(dtype, call.count));
  }
  if (status.ok() && call.op == ReduceOp::kAverage) {
    Divide(dtype, out, ranks(), static_cast<size_t>(call.count));
  }
  return status;
}

// Runs no barrier within hosts before the leaders' barrier: all ranks of a host
// have already arrived, because they have agreed on the call.
absl::Status HierarchicalGroup::BarrierPhases(const Call& call) {
  absl::Status status;
  if (leaders_ != nullptr) {
    status = OfLeaders(leaders_->RunPhase(call, call, nullptr, nullptr));
  }
  if (!status.ok() || host_ == nullptr) return status;
  return OfHost(host_->RunPhase(call, nullptr, nullptr));
}

}  // namespace penstock::collectives
