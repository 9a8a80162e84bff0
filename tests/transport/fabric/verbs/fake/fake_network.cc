#include "tests/transport/fabric/verbs/fake/fake_network.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The opcode of a failed completion. A device may leave any number there.
constexpr auto kNoOpcode = static_cast<ibv_wc_opcode>(0x6f);

ibv_wc_opcode CompletedAs(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_RDMA_WRITE:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

bool IsLocal(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

uint64_t LengthOf(const std::vector<ibv_sge>& parts) {
  uint64_t length = 0;
  for (const ibv_sge& part : parts) length += part.length;
  return length;
}

std::string DataOf(const FakeSend& work) {
  if ((work.wr.send_flags & IBV_SEND_INLINE) != 0) return work.inlined;
  std::string data;
  for (const ibv_sge& part : work.parts) {
    data.append(reinterpret_cast<const char*>(part.addr), part.length);
  }
  return data;
}

void Scatter(const char* data, uint64_t length,
             const std::vector<ibv_sge>& parts) {
  for (const ibv_sge& part : parts) {
    const uint64_t now = std::min<uint64_t>(length, part.length);
    if (now > 0) std::memmove(reinterpret_cast<void*>(part.addr), data, now);
    data += now;
    length -= now;
  }
}

}  // namespace

void FakeNetwork::Send(const FakeDevice* from, const FakeDevice* to,
                       std::function<void()> deliver) {
  messages_.push_back({next_sequence_++, from, to, std::move(deliver)});
}

void FakeNetwork::Run() {
  while (!held && Step()) {
  }
}

bool FakeNetwork::Step() {
  // The candidates, by age: messages of the connection manager (no queue pair),
  // and the oldest request of each queue pair.
  std::vector<std::pair<uint64_t, uint32_t>> candidates;
  for (const Message& message : messages_) {
    if (faults.IsUp(message.from, message.to)) {
      candidates.emplace_back(message.sequence, 0);
    }
  }
  for (const auto& entry : queue_pairs.all()) {
    const FakeQp& qp = *entry.second;
    if (!qp.sends.empty()) {
      candidates.emplace_back(qp.sends.front().sequence, qp.qp_num);
    }
  }
  std::sort(candidates.begin(), candidates.end());
  for (const auto& candidate : candidates) {
    const bool done = candidate.second == 0
                          ? Deliver(candidate.first)
                          : TryHead(queue_pairs.Find(candidate.second));
    if (done) return true;
  }
  return false;
}

bool FakeNetwork::Deliver(uint64_t sequence) {
  const auto found =
      std::find_if(messages_.begin(), messages_.end(),
                   [&](const Message& m) { return m.sequence == sequence; });
  const std::function<void()> deliver = std::move(found->deliver);
  messages_.erase(found);
  deliver();
  return true;
}

bool FakeNetwork::TryHead(FakeQp* qp) {
  FakeSend& work = qp->sends.front();
  if (qp->state == IBV_QPS_ERR) {
    Complete(qp, IBV_WC_WR_FLUSH_ERR);
    return true;
  }
  const ibv_wc_status ordered = faults.TakeCompletion(work.wr.opcode);
  if (ordered != IBV_WC_SUCCESS) {
    Complete(qp, ordered);
    return true;
  }
  if (IsLocal(work.wr.opcode)) {
    Complete(qp, DoLocal(*qp, work));
    return true;
  }
  const ibv_wc_status local = CheckLocal(*qp, work);
  if (local != IBV_WC_SUCCESS) {
    Complete(qp, local);
    return true;
  }
  if (!faults.IsUp(FakeDevices::Of(qp->context), qp->dest_device)) {
    return false;
  }
  FakeQp* const peer = queue_pairs.Find(qp->dest_qp_num);
  if (peer == nullptr || peer->state == IBV_QPS_ERR) {
    Complete(qp, IBV_WC_RETRY_EXC_ERR);
    return true;
  }
  // Waits until the peer's owner has taken the event that makes the queue pair
  // ready.
  if (peer->state == IBV_QPS_INIT || peer->state == IBV_QPS_RESET) return false;
  // Fails the request, because its packet is out of sequence. The peer drops
  // such a packet: it counts as a duplicate, or an earlier packet is missing.
  if (peer->receive_psn != qp->send_psn) {
    Complete(qp, IBV_WC_RETRY_EXC_ERR);
    return true;
  }
  return TryRemote(qp, work, peer);
}

bool FakeNetwork::TryRemote(FakeQp* qp, const FakeSend& work, FakeQp* peer) {
  if (work.wr.opcode != IBV_WR_RDMA_READ &&
      work.wr.opcode != IBV_WR_RDMA_WRITE) {
    return TryMessage(qp, &qp->sends.front(), peer);
  }
  const ibv_wc_status status = DoAccess(*qp, work, peer);
  if (status == IBV_WC_REM_ACCESS_ERR) ReportAccessError(peer);
  Complete(qp, status);
  return true;
}

ibv_wc_status FakeNetwork::CheckLocal(const FakeQp& qp,
                                      const FakeSend& work) const {
  const uint64_t length = work.inlined.size() + LengthOf(work.parts);
  if (length > FakeDevices::Of(qp.context)->options.max_message_bytes) {
    return IBV_WC_LOC_LEN_ERR;
  }
  const bool for_writing = work.wr.opcode == IBV_WR_RDMA_READ;
  for (const ibv_sge& part : work.parts) {
    if (part.length == 0) continue;
    if (memory.Local(qp.pd, part, for_writing) == nullptr) {
      return IBV_WC_LOC_PROT_ERR;
    }
  }
  return IBV_WC_SUCCESS;
}

ibv_wc_status FakeNetwork::DoLocal(const FakeQp& qp, const FakeSend& work) {
  if (work.wr.opcode == IBV_WR_BIND_MW) {
    return memory.Bind(qp, work) ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
  }
  return memory.Invalidate(qp, work.wr.invalidate_rkey) ? IBV_WC_SUCCESS
                                                        : IBV_WC_LOC_QP_OP_ERR;
}

std::vector<ibv_sge> FakeNetwork::TargetsOf(const FakeQp& qp,
                                            const FakeSend& work) const {
  std::vector<ibv_sge> targets = work.parts;
  for (ibv_sge& part : targets) {
    if (part.length == 0) continue;
    part.addr = reinterpret_cast<uint64_t>(
        memory.Local(qp.pd, part, /*for_writing=*/true));
  }
  return targets;
}

ibv_wc_status FakeNetwork::DoAccess(const FakeQp& qp, const FakeSend& work,
                                    FakeQp* peer) {
  const bool reads = work.wr.opcode == IBV_WR_RDMA_READ;
  if (reads && (qp.max_rd_atomic == 0 || peer->max_dest_rd_atomic == 0)) {
    return IBV_WC_REM_INV_REQ_ERR;
  }
  const std::string data = reads ? std::string() : DataOf(work);
  const uint64_t length = reads ? LengthOf(work.parts) : data.size();
  if (length == 0) return IBV_WC_SUCCESS;
  void* const remote = memory.Remote(
      *peer, work.wr.wr.rdma.rkey, work.wr.wr.rdma.remote_addr, length,
      reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
  const unsigned access =
      reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (remote == nullptr || (peer->access & access) == 0) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  if (reads && !FakeDevices::Of(qp.context)->options.reads_bytes) {
    Scatter(std::string(length, 0).data(), length, TargetsOf(qp, work));
  } else if (reads) {
    Scatter(static_cast<const char*>(remote), length, TargetsOf(qp, work));
  } else {
    std::memcpy(remote, data.data(), length);
  }
  return IBV_WC_SUCCESS;
}

bool FakeNetwork::TryMessage(FakeQp* qp, FakeSend* work, FakeQp* peer) {
  auto* const srq = static_cast<FakeSrq*>(peer->srq);
  if (srq != nullptr && !srq->receives.empty()) {
    DoReceive(qp, *work, peer);
    return true;
  }
  ++work->rnr_attempts;
  const bool given_up =
      options.rnr_attempts > 0 && work->rnr_attempts >= options.rnr_attempts;
  if (qp->rnr_retry != 0 && !given_up) return false;
  Complete(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  return true;
}

void FakeNetwork::DoReceive(FakeQp* qp, const FakeSend& work, FakeQp* peer) {
  auto* const srq = static_cast<FakeSrq*>(peer->srq);
  const FakeReceive receive = std::move(srq->receives.front());
  srq->receives.pop_front();
  const std::string data = DataOf(work);
  ibv_wc wc = {};
  ibv_wc_status answer = IBV_WC_SUCCESS;
  if (data.size() > LengthOf(receive.parts)) {
    wc.status = IBV_WC_LOC_LEN_ERR;
    answer = IBV_WC_REM_INV_REQ_ERR;
  }
  for (const ibv_sge& part : receive.parts) {
    if (wc.status != IBV_WC_SUCCESS || part.length == 0) continue;
    if (memory.Local(srq->pd, part, true) == nullptr) {
      wc.status = IBV_WC_LOC_PROT_ERR;
      answer = IBV_WC_REM_OP_ERR;
    }
  }
  if (wc.status == IBV_WC_SUCCESS) {
    Scatter(data.data(), data.size(), receive.parts);
  }
  wc.byte_len = static_cast<uint32_t>(data.size());
  if (work.wr.opcode == IBV_WR_SEND_WITH_IMM) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = work.wr.imm_data;
  } else if (work.wr.opcode == IBV_WR_SEND_WITH_INV &&
             wc.status == IBV_WC_SUCCESS) {
    wc.wc_flags = IBV_WC_WITH_INV;
    wc.invalidated_rkey = work.wr.invalidate_rkey;
    if (!memory.Invalidate(*peer, work.wr.invalidate_rkey)) {
      wc.status = IBV_WC_REM_INV_REQ_ERR;
      answer = IBV_WC_REM_ACCESS_ERR;
    }
  }
  // Completes at the receiver first, so that the receiver's completion is there
  // when the sender's completion comes.
  CompleteReceive(peer, receive, wc,
                  (work.wr.send_flags & IBV_SEND_SOLICITED) != 0);
  if (answer == IBV_WC_REM_ACCESS_ERR) ReportAccessError(peer);
  Complete(qp, answer);
}

void FakeNetwork::CompleteReceive(FakeQp* qp, const FakeReceive& receive,
                                  ibv_wc wc, bool solicited) {
  FakeCompletion completion = {};
  completion.wc = wc;
  completion.wc.wr_id = receive.wr_id;
  completion.wc.qp_num = qp->qp_num;
  completion.wc.src_qp = qp->dest_qp_num;
  completion.wc.opcode = IBV_WC_RECV;
  if (wc.status != IBV_WC_SUCCESS) {
    completion.wc.opcode = kNoOpcode;
    completion.wc.byte_len = 0;
    completion.wc.wc_flags = 0;
    queue_pairs.Break(qp);
  }
  completions.Add(qp->recv_cq, completion, solicited);
}

void FakeNetwork::Complete(FakeQp* qp, ibv_wc_status status) {
  const FakeSend work = std::move(qp->sends.front());
  qp->sends.pop_front();
  const bool ok = status == IBV_WC_SUCCESS;
  if (!ok) queue_pairs.Break(qp);
  const bool signalled =
      qp->init.sq_sig_all != 0 || (work.wr.send_flags & IBV_SEND_SIGNALED) != 0;
  if (ok && !signalled) return;
  FakeCompletion completion = {};
  completion.is_send = true;
  completion.slot = work.slot;
  completion.wc.wr_id = work.wr.wr_id;
  completion.wc.status = status;
  completion.wc.qp_num = qp->qp_num;
  completion.wc.opcode = ok ? CompletedAs(work.wr.opcode) : kNoOpcode;
  if (ok && work.wr.opcode == IBV_WR_RDMA_READ) {
    completion.wc.byte_len = static_cast<uint32_t>(LengthOf(work.parts));
  }
  completions.Add(qp->send_cq, completion, /*solicited=*/false);
}

void FakeNetwork::ReportAccessError(FakeQp* qp) {
  decltype(ibv_async_event::element) element = {};
  element.qp = qp;
  devices.Report(qp->context, IBV_EVENT_QP_ACCESS_ERR, element);
  queue_pairs.Break(qp);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
