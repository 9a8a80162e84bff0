// The part of the fake connection manager in which two ids connect and
// disconnect.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tests/transport/fabric/verbs/fake/fake_cm.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The sizes of private data in the connection manager's messages for
// RDMA_PS_TCP. Receivers see all bytes, including zeros.
constexpr size_t kRequestBytes = 56;
constexpr size_t kReplyBytes = 196;
constexpr size_t kRejectBytes = 148;

// Reasons of a reject (IBTA 12.6.7.2).
constexpr int kInvalidServiceId = 8;
constexpr int kConsumerDefined = 28;

std::string Padded(const void* data, size_t length, size_t size) {
  std::string padded;
  if (length > 0) padded.assign(static_cast<const char*>(data), length);
  padded.resize(size);
  return padded;
}

// Sets `*got` to `wanted`, or to `most` if `wanted` is 0xff. Returns EINVAL if
// `wanted` exceeds `most`.
int Bound(uint8_t wanted, int most, uint8_t* got) {
  *got = wanted == 0xff ? static_cast<uint8_t>(most) : wanted;
  return *got > most ? EINVAL : 0;
}

}  // namespace

int FakeCm::Connect(rdma_cm_id* id, const rdma_conn_param* param) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->state != FakeIdState::kRouteResolved || id->qp == nullptr ||
      param == nullptr || param->private_data_len > kRequestBytes) {
    return EINVAL;
  }
  own->param = *param;
  const int most = own->device->options.max_qp_rd_atom;
  if (Bound(param->responder_resources, most,
            &own->param.responder_resources) != 0 ||
      Bound(param->initiator_depth, most, &own->param.initiator_depth) != 0) {
    return EINVAL;
  }
  own->param.qp_num = id->qp->qp_num;
  own->state = FakeIdState::kConnecting;
  const std::string data =
      Padded(param->private_data, param->private_data_len, kRequestBytes);
  FakeDevice* const target =
      network_->devices.FindByAddress(&id->route.addr.dst_addr);
  network_->Send(
      own->device, target == nullptr ? own->device : target,
      [this, serial = own->serial, data] { OnRequest(serial, data); });
  return 0;
}

void FakeCm::OnRequest(uint64_t from, const std::string& private_data) {
  FakeId* const client = Find(from);
  if (client == nullptr || client->state != FakeIdState::kConnecting) return;
  const rdma_addr& address = client->route.addr;
  FakeDevice* const device = network_->devices.FindByAddress(&address.dst_addr);
  FakeId* const listener = FindListener(&address.dst_addr);
  if (listener == nullptr || device == nullptr) {
    if (network_->options.silent_hosts || device == nullptr) {
      client->state = FakeIdState::kClosed;
      return Report(client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    }
    return RefuseRequest(from, device, kInvalidServiceId);
  }
  if (listener->backlog == 0) {
    return RefuseRequest(from, device, kConsumerDefined);
  }
  --listener->backlog;
  auto* const id = new FakeId();
  id->serial = ++last_serial_;
  id->channel = listener->channel;
  id->context = listener->context;
  id->ps = listener->ps;
  id->qp_type = IBV_QPT_RC;
  id->state = FakeIdState::kRequested;
  id->handed_out = false;
  id->listener = listener->serial;
  id->peer = from;
  id->peer_param = client->param;
  id->route.addr.src_storage = address.dst_storage;
  id->route.addr.dst_storage = address.src_storage;
  Attach(id, device);
  ids_[id->serial] = id;
  ++static_cast<FakeEventChannel*>(id->channel)->ids;
  client->peer = id->serial;

  auto* const event = new FakeCmEvent();
  event->id = id;
  event->listen_id = listener;
  event->event = RDMA_CM_EVENT_CONNECT_REQUEST;
  event->param.conn = client->param;
  // Requests that the other side answers as many requests as this side may
  // start.
  event->param.conn.responder_resources = client->param.initiator_depth;
  event->param.conn.initiator_depth = client->param.responder_resources;
  event->private_data = private_data;
  event->on_get = [this, listener, id] {
    ++listener->backlog;
    id->handed_out = true;
    network_->ledger.Made("rdma_cm_id", id);
  };
  Push(listener, event);
}

int FakeCm::Accept(rdma_cm_id* id, const rdma_conn_param* param) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->state != FakeIdState::kRequested || id->qp == nullptr ||
      (param != nullptr && param->private_data_len > kReplyBytes)) {
    return EINVAL;
  }
  rdma_conn_param use = {};
  use.responder_resources = use.initiator_depth = 0xff;
  use.rnr_retry_count = 7;
  if (param != nullptr) use = *param;
  const int most = own->device->options.max_qp_rd_atom;
  // Replaces 0xff, which stands for the number that the peer has offered.
  if (use.responder_resources == 0xff) {
    use.responder_resources = own->peer_param.initiator_depth;
  }
  if (use.initiator_depth == 0xff) {
    use.initiator_depth = own->peer_param.responder_resources;
  }
  if (use.responder_resources > most || use.initiator_depth > most) {
    return EINVAL;
  }
  use.qp_num = id->qp->qp_num;
  own->param = use;
  own->state = FakeIdState::kAccepted;
  Ready(own);
  FakeId* const client = Find(own->peer);
  if (client == nullptr) return 0;
  const std::string data =
      param == nullptr
          ? Padded(nullptr, 0, kReplyBytes)
          : Padded(param->private_data, param->private_data_len, kReplyBytes);
  network_->Send(
      own->device, client->device,
      [this, serial = client->serial, data] { OnReply(serial, data); });
  return 0;
}

void FakeCm::OnReply(uint64_t to, const std::string& private_data) {
  FakeId* const client = Find(to);
  if (client == nullptr || client->state != FakeIdState::kConnecting) return;
  FakeId* const server = Find(client->peer);
  if (server == nullptr) return;
  client->peer_param = server->param;
  client->state = FakeIdState::kConnected;
  rdma_conn_param seen = server->param;
  seen.responder_resources = server->param.initiator_depth;
  seen.initiator_depth = server->param.responder_resources;
  const bool has_qp = client->qp != nullptr;
  ReportConnection(
      client,
      has_qp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE, 0,
      seen, private_data, [this, client] {
        if (client->qp == nullptr) return;
        Ready(client);
        FakeId* const server = Find(client->peer);
        if (server == nullptr) return;
        network_->Send(client->device, server->device,
                       [this, serial = server->serial] { OnReady(serial); });
      });
}

// Sets the queue pair to the parameters on which both sides have agreed.
void FakeCm::Ready(FakeId* id) {
  auto* const qp = static_cast<FakeQp*>(id->qp);
  const FakeId* const peer = Find(id->peer);
  qp->dest_qp_num = id->peer_param.qp_num;
  qp->dest_device = peer == nullptr ? id->device : peer->device;
  qp->max_rd_atomic =
      std::min(id->param.initiator_depth, id->peer_param.responder_resources);
  qp->max_dest_rd_atomic = id->param.responder_resources;
  qp->rnr_retry = id->peer_param.rnr_retry_count;
  // Skips a queue pair that its owner has broken in the meantime.
  if (qp->state == IBV_QPS_INIT) qp->state = IBV_QPS_RTS;
}

void FakeCm::OnReady(uint64_t to) {
  FakeId* const server = Find(to);
  if (server == nullptr || server->state != FakeIdState::kAccepted) return;
  server->state = FakeIdState::kConnected;
  Report(server, RDMA_CM_EVENT_ESTABLISHED, 0);
}

int FakeCm::Reject(rdma_cm_id* id, const void* data, uint8_t length) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->state != FakeIdState::kRequested || length > kRejectBytes) {
    return EINVAL;
  }
  own->state = FakeIdState::kClosed;
  FakeId* const client = Find(own->peer);
  if (client == nullptr) return 0;
  const std::string padded = Padded(data, length, kRejectBytes);
  network_->Send(own->device, client->device,
                 [this, serial = client->serial, padded] {
                   OnReject(serial, kConsumerDefined, padded);
                 });
  return 0;
}

void FakeCm::RefuseRequest(uint64_t to, FakeDevice* from, int reason) {
  FakeId* const client = Find(to);
  if (client == nullptr) return;
  network_->Send(from, client->device, [this, to, reason] {
    OnReject(to, reason, Padded(nullptr, 0, kRejectBytes));
  });
}

void FakeCm::OnReject(uint64_t to, int reason,
                      const std::string& private_data) {
  FakeId* const id = Find(to);
  if (id == nullptr || (id->state != FakeIdState::kConnecting &&
                        id->state != FakeIdState::kRequested &&
                        id->state != FakeIdState::kAccepted)) {
    return;
  }
  id->state = FakeIdState::kClosed;
  // Drops the events of an id that nobody has taken yet, as the kernel does.
  // Accepting such an id fails later.
  if (!id->handed_out) return;
  ReportConnection(id, RDMA_CM_EVENT_REJECTED, reason, rdma_conn_param(),
                   private_data, [this, id] {
                     if (id->qp == nullptr) return;
                     network_->queue_pairs.Break(static_cast<FakeQp*>(id->qp));
                   });
}

int FakeCm::Disconnect(rdma_cm_id* id) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (id->qp != nullptr) {
    network_->queue_pairs.Break(static_cast<FakeQp*>(id->qp));
  }
  if (own->state != FakeIdState::kConnected &&
      own->state != FakeIdState::kAccepted) {
    return EINVAL;
  }
  SayGoodbye(own);
  return 0;
}

void FakeCm::SayGoodbye(FakeId* id) {
  FakeId* const peer = Find(id->peer);
  if (id->said_goodbye) return;
  id->said_goodbye = true;
  if (id->heard_goodbye && network_->options.timewait_events) {
    Report(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  }
  if (peer == nullptr) return;
  network_->Send(id->device, peer->device,
                 [this, serial = peer->serial] { OnGoodbye(serial); });
}

void FakeCm::OnGoodbye(uint64_t to) {
  FakeId* const id = Find(to);
  if (id == nullptr || id->heard_goodbye) return;
  id->heard_goodbye = true;
  Report(id, RDMA_CM_EVENT_DISCONNECTED, 0);
  if (id->said_goodbye && network_->options.timewait_events) {
    Report(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
