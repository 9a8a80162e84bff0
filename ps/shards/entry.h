// The content of an entry in the log of a shard.

#ifndef PENSTOCK_PS_SHARDS_ENTRY_H_
#define PENSTOCK_PS_SHARDS_ENTRY_H_

#include <cstddef>
#include <utility>

#include "ps/consistency/cut.h"
#include "ps/replication/log.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The gradients of a push. The tensors share the memory of the received
// message.
class PushPayload final : public replication::Payload {
 public:
  explicit PushPayload(tensor::Bundle gradients)
      : gradients_(std::move(gradients)), bytes_(SizeOf(gradients_)) {}

  const tensor::Bundle& gradients() const { return gradients_; }
  size_t bytes() const override { return bytes_; }

 private:
  static size_t SizeOf(const tensor::Bundle& bundle) {
    size_t bytes = 0;
    for (const tensor::NamedTensor& each : bundle.tensors) {
      bytes += sizeof(each) + each.name.size() + each.tensor.byte_size();
    }
    return bytes;
  }

  const tensor::Bundle gradients_;
  const size_t bytes_;
};

// A change of the members or of their clocks, other than a join or a push.
class EventPayload final : public replication::Payload {
 public:
  enum class Kind {
    kHeartbeat,  // a heartbeat of a worker that is no member
    kLeave,
    kLost,
    kStart,  // the run starts without the missing workers
    // The steps before a cut end for all workers; see Coordinator::CloseCut().
    kCut,
  };

  EventPayload(Kind kind, const WorkerId& worker)
      : kind_(kind), worker_(worker) {}

  explicit EventPayload(CutPoint cut)
      : kind_(Kind::kCut), cut_(std::move(cut)) {}

  Kind kind() const { return kind_; }
  const WorkerId& worker() const { return worker_; }
  const CutPoint& cut() const { return cut_; }
  size_t bytes() const override {
    return sizeof(*this) + cut_.clocks.size() * sizeof(RankClock);
  }

 private:
  const Kind kind_;
  const WorkerId worker_;
  const CutPoint cut_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_ENTRY_H_
