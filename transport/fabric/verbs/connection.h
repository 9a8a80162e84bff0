// A queue pair with all that it needs, from its making to its end.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTION_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/completions.h"
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/private_data.h"
#include "transport/fabric/verbs/receives.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/fabric/verbs/site.h"
#include "transport/fabric/verbs/supervisor.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Bytes of one message, its header included.
constexpr uint32_t kBufferBytes = 16 * 1024 + 64;
// Requests that have not ended: messages, reads, and windows that are bound and
// invalidated, two requests for each large message.
constexpr uint32_t kSendRequests = 128;

// What it exposes can be reached through its queue pair and no other: by
// windows or, without, in a protection domain of its own. While it is being set
// up its owner handles the connection manager's events; afterwards it does so
// itself, and notes that the connection is lost.
//
// Lives until its endpoint is gone; memory of its pools may be held longer. In
// a forked child it touches nothing. Thread-safe where it says so.
class Connection : public CmHandler, public Supervised {
 public:
  // `id` has a device. Its queue pair is made, and receives are posted.
  static absl::StatusOr<std::shared_ptr<Connection>> Create(const Site& site,
                                                            CmId id);
  ~Connection() override;

  rdma_cm_id* id() const { return id_.get(); }
  ibv_qp* queue_pair() const { return id_->qp; }
  Api* api() const { return api_; }
  // What this side can do, to be told to the peer.
  const Terms& terms() const { return terms_; }
  uint32_t inline_bytes() const { return inline_bytes_; }
  // Asks the peer, or grants what it asked for, with `private_data`.
  absl::Status Connect(absl::string_view private_data);
  absl::Status Accept(const CmEvent& request, absl::string_view private_data);
  // The peer has proven itself and said this: the connection is looked after
  // from now on, and has its events itself.
  static void Begin(const std::shared_ptr<Connection>& self, const Terms& peer);
  const Terms& peer() const { return peer_; }
  // Once it is established: the peer may read what is exposed, through regions
  // and windows. The connection manager would let it write, too.
  absl::Status PermitReads();
  // "rxe0/1, GID 1, RoCE v2, mtu 4096, to 10.9.0.2, windows", or "staged: " and
  // why; and counters of its registrations, if there were any.
  std::string Describe() const;

  Completions* completions() { return completions_.get(); }
  Receives* receives() { return receives_.get(); }
  // Shared by all connections of the device, if windows are used.
  Domain* domain() const { return domain_.get(); }
  // What this one may have of its pools, beside the buffers of messages.
  const std::shared_ptr<Quota>& exposed_quota() const { return exposed_quota_; }
  const std::shared_ptr<Quota>& read_quota() const { return read_quota_; }

  // The device does nothing for this connection any more, and nothing will be
  // written to memory that it was to fill.
  void DestroyQueuePair();

  // Thread-safe. The connection is over, for the first reason that is given.
  void Lose(const absl::Status& cause);
  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  absl::Status cause() const;

  void OnCmEvent(CmEvent event) override;

  // Hands what was added to `queue` to the device; where it does not take it,
  // the connection is lost. Also tells the supervisor what is under way: so
  // call it even if nothing was added, after requests have ended.
  void Post(SendQueue* queue);
  // Whether a request is to be posted whose end will be told of.
  bool TakeProbeRequest() { return wants_probe_.exchange(false); }

  ibv_context* device() const override { return id_->verbs; }
  uint8_t port() const override { return id_->port_num; }
  void OnDeviceEvent(const absl::Status& cause) override { Lose(cause); }
  void OnTick() override;

 private:
  Connection(const Site& site, CmId id);
  absl::Status LookAtDevice();
  absl::Status MakeDomain();
  absl::Status MakeQueuePair();

  const Site site_;
  Api* const api_;
  const uint32_t fork_count_;
  CmId id_;
  Terms terms_;
  Terms peer_;
  uint32_t inline_bytes_ = 0;
  absl::Status windows_;  // or why they are not used
  std::shared_ptr<Domain> domain_;
  const std::shared_ptr<Quota> exposed_quota_;
  const std::shared_ptr<Quota> read_quota_;
  std::unique_ptr<Completions> completions_;
  std::unique_ptr<Receives> receives_;

  // Of all requests ever, as of the last Post().
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> wants_probe_{false};
  // Of the ticks so far, on the loop: how many saw work and no progress.
  uint64_t ended_then_ = 0;
  int idle_ticks_ = 0;

  std::atomic<bool> lost_{false};
  mutable std::mutex mu_;
  absl::Status cause_;  // guarded by mu_
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CONNECTION_H_
