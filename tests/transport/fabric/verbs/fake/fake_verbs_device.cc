// Implements the half of FakeVerbs that is libibverbs.

#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/transport/fabric/verbs/fake/fake_cm.h"
#include "tests/transport/fabric/verbs/fake/fake_network.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Returns the result of a function that creates an object: the object, or null
// and errno.
template <typename T>
T* Made(int error_number, T* made) {
  if (error_number == 0) return made;
  errno = error_number;
  return nullptr;
}

}  // namespace

int FakeVerbs::ForkInit() {
  std::unique_lock<std::mutex> lock(mu_);
  return Fault(Call::kForkInit);
}

const char* FakeVerbs::GetDeviceName(ibv_device* device) {
  return device->name;
}

int FakeVerbs::QueryDevice(ibv_context* context, ibv_device_attr* attr) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kQueryDevice)) return fault;
  return network_->devices.QueryDevice(context, attr);
}

int FakeVerbs::QueryPort(ibv_context* context, uint8_t port,
                         ibv_port_attr* attr) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kQueryPort)) return fault;
  return network_->devices.QueryPort(context, port, attr);
}

ssize_t FakeVerbs::QueryGidTable(ibv_context* context, ibv_gid_entry* entries,
                                 size_t max_entries) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kQueryGidTable)) return -fault;
  return static_cast<ssize_t>(
      network_->devices.QueryGidTable(context, entries, max_entries));
}

int FakeVerbs::GetAsyncEvent(ibv_context* context, ibv_async_event* event) {
  {
    std::unique_lock<std::mutex> lock(mu_);
    if (const int fault = Fault(Call::kGetAsyncEvent)) {
      errno = fault;
      return -1;
    }
  }
  while (FakeEventFd::Take(context->async_fd)) {
    std::unique_lock<std::mutex> lock(mu_);
    if (!network_->devices.TakeAsync(context, event)) continue;
    if (event->event_type == IBV_EVENT_QP_ACCESS_ERR ||
        event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
      auto* const qp = static_cast<FakeQp*>(event->element.qp);
      ++qp->unacked_async;
      qp->async_taker = std::this_thread::get_id();
    }
    return 0;
  }
  return -1;
}

void FakeVerbs::AckAsyncEvent(ibv_async_event* event) {
  std::unique_lock<std::mutex> lock(mu_);
  if (event->event_type != IBV_EVENT_QP_ACCESS_ERR &&
      event->event_type != IBV_EVENT_QP_LAST_WQE_REACHED) {
    return;
  }
  if (!network_->ledger.IsAlive("ibv_qp", event->element.qp)) return;
  --static_cast<FakeQp*>(event->element.qp)->unacked_async;
  acknowledged_.notify_all();
}

ibv_pd* FakeVerbs::AllocPd(ibv_context* context) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_pd* made = nullptr;
  int error_number = Fault(Call::kAllocPd);
  if (error_number == 0) {
    error_number = network_->memory.AllocPd(context, &made);
  }
  return Made(error_number, made);
}

int FakeVerbs::DeallocPd(ibv_pd* pd) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDeallocPd)) return fault;
  return network_->memory.DeallocPd(pd);
}

ibv_mr* FakeVerbs::RegMr(ibv_pd* pd, void* address, size_t length, int access) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_mr* made = nullptr;
  int error_number = Fault(Call::kRegMr);
  if (error_number == 0) {
    error_number = network_->memory.RegMr(pd, address, length, access, &made);
  }
  return Made(error_number, made);
}

bool FakeVerbs::HasRegDmabufMr() { return network_->options.has_reg_dmabuf_mr; }

ibv_mr* FakeVerbs::RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length,
                               uint64_t iova, int fd, int access) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_mr* made = nullptr;
  int error_number = HasRegDmabufMr() ? 0 : EOPNOTSUPP;
  if (error_number == 0) error_number = Fault(Call::kRegDmabufMr);
  if (error_number == 0) {
    error_number = network_->memory.RegDmabufMr(pd, offset, length, iova, fd,
                                                access, &made);
  }
  return Made(error_number, made);
}

int FakeVerbs::DeregMr(ibv_mr* mr) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDeregMr)) return fault;
  return network_->memory.DeregMr(mr);
}

ibv_mw* FakeVerbs::AllocMw(ibv_pd* pd, ibv_mw_type type) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_mw* made = nullptr;
  int error_number = Fault(Call::kAllocMw);
  if (error_number == 0) {
    error_number = network_->memory.AllocMw(pd, type, &made);
  }
  return Made(error_number, made);
}

int FakeVerbs::DeallocMw(ibv_mw* mw) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDeallocMw)) return fault;
  return network_->memory.DeallocMw(mw);
}

ibv_comp_channel* FakeVerbs::CreateCompChannel(ibv_context* context) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_comp_channel* made = nullptr;
  int error_number = Fault(Call::kCreateCompChannel);
  if (error_number == 0) {
    error_number = network_->completions.CreateChannel(context, &made);
  }
  return Made(error_number, made);
}

int FakeVerbs::DestroyCompChannel(ibv_comp_channel* channel) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDestroyCompChannel)) return fault;
  return network_->completions.DestroyChannel(channel);
}

ibv_cq* FakeVerbs::CreateCq(ibv_context* context, int entries, void* cq_context,
                            ibv_comp_channel* channel, int vector) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_cq* made = nullptr;
  int error_number = Fault(Call::kCreateCq);
  if (error_number == 0) {
    error_number = network_->completions.CreateCq(context, entries, cq_context,
                                                  channel, vector, &made);
  }
  return Made(error_number, made);
}

int FakeVerbs::DestroyCq(ibv_cq* cq) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDestroyCq)) return fault;
  return network_->completions.DestroyCq(cq);
}

int FakeVerbs::ReqNotifyCq(ibv_cq* cq, int solicited_only) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kReqNotifyCq)) return fault;
  return network_->completions.Arm(cq, solicited_only != 0);
}

int FakeVerbs::GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                          void** cq_context) {
  {
    std::unique_lock<std::mutex> lock(mu_);
    if (const int fault = Fault(Call::kGetCqEvent)) {
      errno = fault;
      return -1;
    }
  }
  while (FakeEventFd::Take(channel->fd)) {
    std::unique_lock<std::mutex> lock(mu_);
    *cq = network_->completions.TakeEvent(channel);
    if (*cq == nullptr) continue;
    *cq_context = (*cq)->cq_context;
    return 0;
  }
  return -1;
}

void FakeVerbs::AckCqEvents(ibv_cq* cq, unsigned int count) {
  std::unique_lock<std::mutex> lock(mu_);
  network_->completions.Ack(cq, count);
}

int FakeVerbs::PollCq(ibv_cq* cq, int entries, ibv_wc* completions) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kPollCq)) return -fault;
  if (!network_->ledger.IsAlive("ibv_cq", cq)) return -EINVAL;
  int count = 0;
  for (const FakeCompletion& taken : network_->completions.Poll(cq, entries)) {
    network_->queue_pairs.Polled(taken);
    completions[count++] = taken.wc;
  }
  return count;
}

ibv_srq* FakeVerbs::CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  std::unique_lock<std::mutex> lock(mu_);
  ibv_srq* made = nullptr;
  int error_number = Fault(Call::kCreateSrq);
  if (error_number == 0) {
    error_number = network_->queue_pairs.CreateSrq(pd, *attr, &made);
  }
  return Made(error_number, made);
}

int FakeVerbs::DestroySrq(ibv_srq* srq) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDestroySrq)) return fault;
  return network_->queue_pairs.DestroySrq(srq);
}

int FakeVerbs::PostSrqRecv(ibv_srq* srq, ibv_recv_wr* request,
                           ibv_recv_wr** bad) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kPostSrqRecv)) {
    *bad = request;
    return fault;
  }
  return Ran(network_->queue_pairs.PostSrqRecv(srq, request, bad));
}

int FakeVerbs::PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kPostSend)) {
    *bad = request;
    return fault;
  }
  return Ran(network_->PostSend(qp, request, bad));
}

ibv_qp* FakeVerbs::IbvCreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  std::unique_lock<std::mutex> lock(mu_);
  FakeQp* made = nullptr;
  int error_number = Fault(Call::kIbvCreateQp);
  if (error_number == 0) {
    error_number = network_->queue_pairs.CreateRaw(pd, attr, &made);
  }
  return Made<ibv_qp>(error_number, made);
}

int FakeVerbs::IbvDestroyQp(ibv_qp* qp) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kIbvDestroyQp)) return fault;
  // Waits for acknowledgements, as DestroyQp() does.
  const std::thread::id self = std::this_thread::get_id();
  const auto acknowledged = [this, qp, self] {
    return !network_->queue_pairs.AwaitsAsyncAck(qp, self);
  };
  (void)acknowledged_.wait_for(lock, std::chrono::seconds(10), acknowledged);
  return Ran(network_->queue_pairs.DestroyRaw(qp));
}

int FakeVerbs::ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kModifyQp)) return fault;
  return Ran(network_->queue_pairs.Modify(qp, *attr, mask));
}

int FakeVerbs::QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
                       ibv_qp_init_attr* init) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kQueryQp)) return fault;
  return network_->queue_pairs.Query(qp, attr, init);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
