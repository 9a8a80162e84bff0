#include "transport/fabric/verbs/loopback_pair.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "transport/base/steady_time.h"
#include "transport/base/token.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kMaxGids = 256;
constexpr uint32_t kRequests = 4;
// The exponent of the acknowledgement timeout, 67 ms, and the number of
// retries. Packets to the same device are not lost, but a busy device may be
// slow.
constexpr uint8_t kTimeout = 14;
constexpr uint8_t kRetries = 2;
constexpr uint8_t kRnrTimer = 12;
// The pause between checks for a completion. A hardware device completes within
// microseconds. A software device needs the processor meanwhile.
constexpr absl::Duration kPause = absl::Microseconds(50);

// Returns a higher number for a better entry. Prefers the entry that the
// connection manager would use: v2, with an address that is not link-local.
int Rank(const ibv_gid_entry& entry) {
  const bool is_link_local =
      entry.gid.raw[0] == 0xfe && (entry.gid.raw[1] & 0xc0) == 0x80;
  return (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) +
         (is_link_local ? 0 : 1);
}

absl::StatusOr<ibv_gid_entry> FindGid(Api* api, ibv_context* device,
                                      uint8_t port) {
  std::vector<ibv_gid_entry> entries(kMaxGids);
  const ssize_t count =
      api->QueryGidTable(device, entries.data(), entries.size());
  const ibv_gid_entry* best = nullptr;
  for (ssize_t i = 0; i < count; ++i) {
    if (entries[i].port_num != port) continue;
    if (best == nullptr || Rank(entries[i]) > Rank(*best)) best = &entries[i];
  }
  if (best == nullptr) return absl::NotFoundError("the port has no address");
  return *best;
}

// Returns an initial packet sequence number: 24 unpredictable bits.
absl::StatusOr<uint32_t> NewSequenceNumber() {
  absl::StatusOr<std::string> random = base::NewToken();
  if (!random.ok()) return random.status();
  uint32_t number = 0;
  std::memcpy(&number, random->data(), sizeof number);
  return number & 0xffffff;
}

absl::StatusOr<QueuePair> CreateQp(Api* api, ibv_pd* pd, ibv_cq* queue) {
  ibv_qp_init_attr attr = {};
  attr.send_cq = queue;
  attr.recv_cq = queue;
  attr.cap.max_send_wr = kRequests;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_wr = 1;
  attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  ibv_qp* const made = api->IbvCreateQp(pd, &attr);
  if (made != nullptr) return QueuePair(api, made);
  return CallFailed(api, errno, "create a queue pair", pd->context);
}

// Takes `qp` through INIT, RTR and RTS (IBTA 10.3.1). `here` and `there` are
// the initial sequence numbers of the two sides.
absl::Status Connect(Api* api, ibv_qp* qp, uint32_t peer, uint32_t here,
                     uint32_t there, const LoopbackRoute& route) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = route.port;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
  int error = api->ModifyQp(
      qp, &attr,
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error == 0) {
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr = route.address;
    attr.path_mtu = route.mtu;
    attr.dest_qp_num = peer;
    attr.rq_psn = there;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = kRnrTimer;
    error = api->ModifyQp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                              IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  if (error == 0) {
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = here;
    attr.timeout = kTimeout;
    attr.retry_cnt = kRetries;
    attr.rnr_retry = kRetries;
    attr.max_rd_atomic = 1;
    error = api->ModifyQp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                              IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_MAX_QP_RD_ATOMIC);
  }
  if (error == 0) return absl::OkStatus();
  return CallFailed(api, error, "connect a queue pair", qp->context);
}

}  // namespace

absl::StatusOr<LoopbackRoute> FindLoopback(Api* api, ibv_context* device,
                                           uint8_t port) {
  ibv_port_attr attr = {};
  const int error = api->QueryPort(device, port, &attr);
  if (error != 0) return CallFailed(api, error, "query a port", device);
  if (attr.state != IBV_PORT_ACTIVE) {
    return absl::NotFoundError("the port is down");
  }
  LoopbackRoute route;
  route.port = port;
  route.mtu = attr.active_mtu;
  route.address.port_num = port;
  if (attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
    route.address.dlid = attr.lid;
    return route;
  }
  absl::StatusOr<ibv_gid_entry> gid = FindGid(api, device, port);
  if (!gid.ok()) return gid.status();
  route.address.is_global = 1;
  route.address.grh.dgid = gid->gid;
  route.address.grh.sgid_index = static_cast<uint8_t>(gid->gid_index);
  route.address.grh.hop_limit = 1;
  return route;
}

absl::StatusOr<LoopbackPair> LoopbackPair::Create(Api* api, ibv_pd* pd,
                                                  ibv_cq* queue,
                                                  const LoopbackRoute& route) {
  absl::StatusOr<QueuePair> reader = CreateQp(api, pd, queue);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<QueuePair> owner = CreateQp(api, pd, queue);
  if (!owner.ok()) return owner.status();
  const absl::StatusOr<uint32_t> readers = NewSequenceNumber();
  if (!readers.ok()) return readers.status();
  const absl::StatusOr<uint32_t> owners = NewSequenceNumber();
  if (!owners.ok()) return owners.status();
  absl::Status connected =
      Connect(api, reader->get(), (*owner)->qp_num, *readers, *owners, route);
  if (connected.ok()) {
    connected =
        Connect(api, owner->get(), (*reader)->qp_num, *owners, *readers, route);
  }
  if (!connected.ok()) return connected;
  return LoopbackPair(*std::move(reader), *std::move(owner));
}

absl::StatusOr<ibv_wc_status> DoRequest(Api* api, ibv_qp* qp,
                                        ibv_send_wr request,
                                        absl::Time deadline) {
  request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int error = api->PostSend(qp, &request, &bad);
  if (error != 0) {
    return CallFailed(api, error, "post a request", qp->context);
  }
  ibv_wc completion = {};
  int count = 0;
  while ((count = api->PollCq(qp->send_cq, 1, &completion)) == 0) {
    if (base::SteadyNow() >= deadline) {
      return absl::DeadlineExceededError("the device does not complete");
    }
    absl::SleepFor(kPause);
  }
  if (count < 0) return CallFailed(api, -count, "poll", qp->context);
  return completion.status;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
