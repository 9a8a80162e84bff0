#include "transport/fabric/verbs/send_queue.h"

#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {

SendQueue::SendQueue(Api* api, uint32_t capacity, uint32_t signal_every)
    : api_(api), signal_every_(signal_every), entries_(capacity) {}

ibv_send_wr* SendQueue::Add(Kind kind, uint64_t cookie, Signal signal) {
  Entry& entry = At(added_);
  entry.done = Done{kind, cookie};
  entry.piece = ibv_sge();
  entry.request = ibv_send_wr();
  entry.request.wr_id = added_;
  entry.request.sg_list = &entry.piece;
  entry.request.num_sge = 1;
  ++since_signal_;
  if (signal == Signal::kNow || since_signal_ > signal_every_) {
    entry.request.send_flags = IBV_SEND_SIGNALED;
    since_signal_ = 0;
  }
  ++added_;
  return &entry.request;
}

absl::Status SendQueue::Post(ibv_qp* qp) {
  if (posted_ == added_) return absl::OkStatus();
  for (uint64_t i = posted_; i + 1 < added_; ++i) {
    At(i).request.next = &At(i + 1).request;
  }
  ibv_send_wr* bad = nullptr;
  ibv_send_wr* const first = &At(posted_).request;
  posted_ = added_;
  const int error = api_->PostSend(qp, first, &bad);
  if (error == 0) return absl::OkStatus();
  return CallFailed(api_, error, "post a request", qp->context);
}

bool SendQueue::Pop(uint64_t wr_id, Done* done) {
  // Returns false also for an id that was never posted.
  if (ended_ == posted_ || wr_id - ended_ >= posted_ - ended_) return false;
  *done = At(ended_).done;
  ++ended_;
  return true;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
