#include "transport/fabric/verbs/receives.h"

#include <utility>

#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {

absl::StatusOr<std::unique_ptr<Receives>> Receives::Create(
    Api* api, ibv_pd* pd, Pool* pool, uint32_t count, uint32_t buffer_bytes) {
  absl::StatusOr<std::shared_ptr<PoolLease>> memory =
      pool->Allocate(uint64_t{count} * buffer_bytes);
  if (!memory.ok()) return memory.status();
  absl::StatusOr<SharedReceiveQueue> queue = CreateSrq(api, pd, count);
  if (!queue.ok()) return queue.status();
  std::unique_ptr<Receives> receives(new Receives(
      api, *std::move(memory), *std::move(queue), count, buffer_bytes));
  for (uint32_t i = 0; i < count; ++i) {
    absl::Status posted = receives->Post(i);
    if (!posted.ok()) return posted;
  }
  return receives;
}

Receives::Receives(Api* api, std::shared_ptr<PoolLease> memory,
                   SharedReceiveQueue queue, uint32_t count,
                   uint32_t buffer_bytes)
    : api_(api),
      memory_(std::move(memory)),
      queue_(std::move(queue)),
      count_(count),
      buffer_bytes_(buffer_bytes) {}

absl::Span<const uint8_t> Receives::Buffer(uint64_t wr_id,
                                           uint32_t bytes) const {
  if (wr_id >= count_ || bytes > buffer_bytes_) return {};
  return {memory_->data() + wr_id * buffer_bytes_, bytes};
}

absl::Status Receives::Post(uint64_t wr_id) {
  ibv_sge piece = {};
  piece.addr =
      reinterpret_cast<uintptr_t>(memory_->data() + wr_id * buffer_bytes_);
  piece.length = buffer_bytes_;
  piece.lkey = memory_->lkey();
  ibv_recv_wr request = {};
  request.wr_id = wr_id;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = api_->PostSrqRecv(queue_.get(), &request, &bad);
  if (error == 0) return absl::OkStatus();
  return CallFailed(api_, error, "post a receive", queue_->context);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
