#include "tests/transport/fabric/verbs/fake/fake_queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

bool IsLocal(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

bool IsSupported(ibv_wr_opcode opcode) {
  return IsLocal(opcode) || opcode == IBV_WR_SEND ||
         opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
         opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE;
}

// Returns the bytes of an inline request. A device copies inline data, and
// ignores keys.
std::string Gather(const ibv_send_wr& wr) {
  std::string data;
  for (int i = 0; i < wr.num_sge; ++i) {
    data.append(reinterpret_cast<const char*>(wr.sg_list[i].addr),
                wr.sg_list[i].length);
  }
  return data;
}

}  // namespace

int FakeQueuePairs::CreateSrq(ibv_pd* pd, const ibv_srq_init_attr& attr,
                              ibv_srq** made) {
  if (!ledger_->IsAlive("ibv_pd", pd)) return EINVAL;
  const FakeDevice& device = *FakeDevices::Of(pd->context);
  if (device.removed) return EIO;
  const uint32_t max_wr = static_cast<uint32_t>(device.options.max_srq_wr);
  const uint32_t max_sge = static_cast<uint32_t>(device.options.max_srq_sge);
  if (attr.attr.max_wr == 0 || attr.attr.max_wr > max_wr ||
      attr.attr.max_sge > max_sge) {
    return EINVAL;
  }
  auto* const srq = new FakeSrq();
  srq->context = pd->context;
  srq->pd = pd;
  srq->srq_context = attr.srq_context;
  srq->max_wr = attr.attr.max_wr;
  srq->max_sge = attr.attr.max_sge;
  ++static_cast<FakePd*>(pd)->users;
  ledger_->Made("ibv_srq", srq);
  *made = srq;
  return 0;
}

int FakeQueuePairs::DestroySrq(ibv_srq* srq) {
  if (!ledger_->IsAlive("ibv_srq", srq)) return EINVAL;
  auto* const own = static_cast<FakeSrq*>(srq);
  if (own->users > 0) {
    ledger_->Misused("ibv_destroy_srq before its queue pairs");
    return EBUSY;
  }
  --static_cast<FakePd*>(srq->pd)->users;
  ledger_->Ended(srq);
  delete own;
  return 0;
}

int FakeQueuePairs::PostSrqRecv(ibv_srq* srq, ibv_recv_wr* request,
                                ibv_recv_wr** bad) {
  if (!ledger_->IsAlive("ibv_srq", srq)) return EINVAL;
  auto* const own = static_cast<FakeSrq*>(srq);
  for (; request != nullptr; request = request->next) {
    *bad = request;
    if (static_cast<uint32_t>(request->num_sge) > own->max_sge) return EINVAL;
    if (own->receives.size() >= own->max_wr) return ENOMEM;
    FakeReceive receive;
    receive.wr_id = request->wr_id;
    receive.parts.assign(request->sg_list, request->sg_list + request->num_sge);
    own->receives.push_back(std::move(receive));
  }
  *bad = nullptr;
  return 0;
}

int FakeQueuePairs::CheckCreate(ibv_pd* pd,
                                const ibv_qp_init_attr& attr) const {
  if (!ledger_->IsAlive("ibv_pd", pd)) return EINVAL;
  if (!ledger_->IsAlive("ibv_cq", attr.send_cq)) return EINVAL;
  if (!ledger_->IsAlive("ibv_cq", attr.recv_cq)) return EINVAL;
  const FakeDevice& device = *FakeDevices::Of(pd->context);
  if (device.removed) return EIO;
  const DeviceOptions& options = device.options;
  const ibv_qp_cap& cap = attr.cap;
  if (attr.qp_type != IBV_QPT_RC || attr.send_cq->context != pd->context ||
      attr.recv_cq->context != pd->context ||
      cap.max_send_wr > static_cast<uint32_t>(options.max_qp_wr) ||
      cap.max_send_sge > static_cast<uint32_t>(options.max_sge) ||
      cap.max_inline_data > options.max_inline) {
    return EINVAL;
  }
  if (attr.srq == nullptr) return 0;
  if (!ledger_->IsAlive("ibv_srq", attr.srq)) return EINVAL;
  const bool same = attr.srq->pd == pd;
  const bool near = attr.srq->context == pd->context;
  return near && (same || !options.srq_same_pd) ? 0 : EINVAL;
}

int FakeQueuePairs::Create(ibv_pd* pd, ibv_qp_init_attr* attr, FakeQp** made) {
  const int error_number = CheckCreate(pd, *attr);
  if (error_number != 0) return error_number;
  auto* const qp = new FakeQp();
  qp->context = pd->context;
  qp->qp_context = attr->qp_context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->srq = attr->srq;
  qp->qp_num = ++last_qp_num_;
  qp->state = IBV_QPS_INIT;
  qp->qp_type = IBV_QPT_RC;
  qp->init = *attr;
  ++static_cast<FakePd*>(pd)->users;
  ++static_cast<FakeCq*>(qp->send_cq)->users;
  ++static_cast<FakeCq*>(qp->recv_cq)->users;
  if (qp->srq != nullptr) ++static_cast<FakeSrq*>(qp->srq)->users;
  all_[qp->qp_num] = qp;
  ledger_->Made("ibv_qp", qp);
  *made = qp;
  return 0;
}

void FakeQueuePairs::Destroy(FakeQp* qp) {
  if (qp->unacked_async > 0) {
    ledger_->Misused("rdma_destroy_qp with unacknowledged async events hangs");
  }
  // Reports a queue pair with bound windows. IBTA 11.2.5.4 calls its
  // destruction an error; Soft-RoCE of Linux 6.1 hangs.
  if (memory_->UnbindAll(qp->qp_num) > 0) {
    ledger_->Misused("rdma_destroy_qp with a window bound through it");
  }
  devices_->ForgetAsync(qp->context, qp);
  --static_cast<FakePd*>(qp->pd)->users;
  --static_cast<FakeCq*>(qp->send_cq)->users;
  --static_cast<FakeCq*>(qp->recv_cq)->users;
  if (qp->srq != nullptr) --static_cast<FakeSrq*>(qp->srq)->users;
  all_.erase(qp->qp_num);
  ledger_->Ended(qp);
  delete qp;
}

bool FakeQueuePairs::AwaitsAsyncAck(const ibv_qp* qp,
                                    std::thread::id destroyer) const {
  if (!ledger_->IsAlive("ibv_qp", qp)) return false;
  const auto& own = *static_cast<const FakeQp*>(qp);
  return own.unacked_async > 0 && own.async_taker != destroyer;
}

FakeQp* FakeQueuePairs::Find(uint32_t qp_num) const {
  const auto found = all_.find(qp_num);
  return found == all_.end() ? nullptr : found->second;
}

int FakeQueuePairs::CheckSend(const FakeQp& qp, const ibv_send_wr& wr) const {
  if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR) return EINVAL;
  if (qp.posted - qp.freed >= qp.init.cap.max_send_wr) return ENOMEM;
  if (!IsSupported(wr.opcode)) return EINVAL;
  if (IsLocal(wr.opcode)) return 0;
  if (wr.num_sge < 0 ||
      static_cast<uint32_t>(wr.num_sge) > qp.init.cap.max_send_sge) {
    return EINVAL;
  }
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return 0;
  const bool too_long = Gather(wr).size() > qp.init.cap.max_inline_data;
  return too_long || wr.opcode == IBV_WR_RDMA_READ ? EINVAL : 0;
}

int FakeQueuePairs::PostSend(ibv_qp* qp, ibv_send_wr* request,
                             ibv_send_wr** bad, uint64_t* sequence) {
  if (!ledger_->IsAlive("ibv_qp", qp)) return EINVAL;
  auto* const own = static_cast<FakeQp*>(qp);
  for (; request != nullptr; request = request->next) {
    *bad = request;
    const int error_number = CheckSend(*own, *request);
    if (error_number != 0) return error_number;
    FakeSend work;
    work.sequence = (*sequence)++;
    work.slot = own->posted++;
    work.wr = *request;
    work.wr.next = nullptr;
    work.wr.sg_list = nullptr;
    if (request->opcode == IBV_WR_BIND_MW) {
      work.window_key = request->bind_mw.mw->rkey;
    } else if ((request->send_flags & IBV_SEND_INLINE) != 0) {
      work.inlined = Gather(*request);
    } else if (request->opcode != IBV_WR_LOCAL_INV) {
      work.parts.assign(request->sg_list, request->sg_list + request->num_sge);
    }
    own->sends.push_back(std::move(work));
  }
  *bad = nullptr;
  return 0;
}

int FakeQueuePairs::Modify(ibv_qp* qp, const ibv_qp_attr& attr, int mask) {
  if (!ledger_->IsAlive("ibv_qp", qp)) return EINVAL;
  if (static_cast<FakeQp*>(qp)->is_raw) {
    return ModifyRaw(static_cast<FakeQp*>(qp), attr, mask);
  }
  // Accepts attributes without effect here, which RTS allows to change. Only
  // the connection manager makes other transitions.
  const int harmless = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS |
                       IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE;
  if ((mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_ERR) {
    Break(static_cast<FakeQp*>(qp));
    return 0;
  }
  const bool stays = (mask & IBV_QP_STATE) == 0 || attr.qp_state == qp->state;
  return stays && (mask & ~(harmless | IBV_QP_STATE)) == 0 ? 0 : EINVAL;
}

int FakeQueuePairs::Query(ibv_qp* qp, ibv_qp_attr* attr,
                          ibv_qp_init_attr* init) const {
  if (!ledger_->IsAlive("ibv_qp", qp)) return EINVAL;
  const auto& own = *static_cast<FakeQp*>(qp);
  *attr = ibv_qp_attr();
  attr->qp_state = qp->state;
  attr->cur_qp_state = qp->state;
  attr->path_mtu = IBV_MTU_1024;
  attr->dest_qp_num = own.dest_qp_num;
  attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  attr->cap = own.init.cap;
  attr->max_rd_atomic = static_cast<uint8_t>(own.max_rd_atomic);
  attr->max_dest_rd_atomic = static_cast<uint8_t>(own.max_dest_rd_atomic);
  attr->port_num = 1;
  attr->rnr_retry = static_cast<uint8_t>(own.rnr_retry);
  *init = own.init;
  return 0;
}

void FakeQueuePairs::Break(FakeQp* qp) {
  if (qp->state == IBV_QPS_ERR) return;
  qp->state = IBV_QPS_ERR;
  const FakeDevice& device = *FakeDevices::Of(qp->context);
  if (qp->srq == nullptr || !device.options.last_wqe_events) return;
  decltype(ibv_async_event::element) element = {};
  element.qp = qp;
  devices_->Report(qp->context, IBV_EVENT_QP_LAST_WQE_REACHED, element);
}

void FakeQueuePairs::Polled(const FakeCompletion& completion) {
  if (!completion.is_send) return;
  FakeQp* const qp = Find(completion.wc.qp_num);
  if (qp != nullptr) qp->freed = std::max(qp->freed, completion.slot + 1);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
