// A queue pair with all its resources, from the set-up to the end.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CONNECTION_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/completions.h"
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/formats/private_data.h"
#include "transport/fabric/verbs/gpu_direct.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/receives.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/fabric/verbs/site.h"
#include "transport/fabric/verbs/supervisor.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The size of a packet's buffer, in bytes: the largest packet and its header.
constexpr uint32_t kBufferBytes = 16 * 1024 + 64;
// Caps the requests in flight. Requests are packets, reads, and two for each
// large message: one binds the message's window, and one invalidates the
// window.
constexpr uint32_t kSendRequests = 128;

// One connection over a queue pair, which the connection manager sets up.
// Exposed memory can be reached only through this queue pair: by windows, or by
// a protection domain of the connection's own.
//
// During the set-up, the owner handles the connection manager's events. From
// Begin() on, the connection handles them itself, and records when it is lost.
// The endpoint and running callbacks share the connection, which lives as long
// as either of them. Memory of its pools may be held for longer. Touches
// nothing in a forked child. Thread-safe where noted.
class CmConnection : public CmHandler, public Supervised {
 public:
  // Makes the queue pair of `id`, which has a device, and posts the receives.
  static absl::StatusOr<std::shared_ptr<CmConnection>> Create(const Site& site,
                                                              CmId id);
  ~CmConnection() override;

  rdma_cm_id* id() const { return id_.get(); }
  ibv_qp* queue_pair() const { return id_->qp; }
  Api* api() const { return api_; }
  // Returns this side's capabilities, for the peer.
  const Terms& terms() const { return terms_; }
  uint32_t inline_bytes() const { return inline_bytes_; }
  // Send the request to the peer, or accept the peer's request. Both send
  // `private_data`.
  absl::Status Connect(absl::string_view private_data);
  absl::Status Accept(const CmEvent& request, absl::string_view private_data);
  // Ends the set-up. The peer has proven that it knows the token, and has the
  // capabilities `peer`. From now on the connection handles its own events, and
  // the supervisor monitors it.
  static void Begin(const std::shared_ptr<CmConnection>& self,
                    const Terms& peer);
  const Terms& peer() const { return peer_; }
  // Lets the peer read exposed memory, by regions and by windows. Call it once
  // the connection is established. The connection manager's own setting would
  // let the peer write, too.
  absl::Status PermitReads();
  // Returns a description for people: "rxe0/1, GID 1, RoCE v2, mtu 4096, to
  // 10.9.0.2, windows". Without windows, ends with "staged: " and the reason.
  // Adds the path of GPU memory, once it is known, and counters of
  // registrations if there were any.
  std::string Describe() const;

  Completions* completions() { return completions_.get(); }
  Receives* receives() { return receives_.get(); }
  // Returns the protection domain. If connections use windows, all connections
  // of the device share one domain.
  Domain* domain() const { return domain_.get(); }
  // Return this connection's quotas of the shared pools. Buffers of packets are
  // not counted.
  const std::shared_ptr<Quota>& exposed_quota() const { return exposed_quota_; }
  const std::shared_ptr<Quota>& read_quota() const { return read_quota_; }

  // Destroys the queue pair. On return, the device does nothing for this
  // connection any more, and no longer writes to the destinations of reads.
  void DestroyQueuePair();

  // Ends the connection; of several causes, keeps the first. The three
  // functions below are thread-safe.
  void Lose(const absl::Status& cause);
  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  absl::Status cause() const;

  void OnCmEvent(CmEvent event) override;

  // Posts the requests that were added to `queue`. Loses the connection if the
  // device refuses the requests. Also tells the supervisor how many requests
  // are in flight. Therefore call Post() after requests have ended, even if no
  // request was added.
  void Post(SendQueue* queue);
  // Returns true once after the supervisor has requested a signaled probe.
  bool TakeProbeRequest() { return wants_probe_.exchange(false); }

  ibv_context* device() const override { return id_->verbs; }
  uint8_t port() const override { return id_->port_num; }
  void OnDeviceEvent(const absl::Status& cause) override { Lose(cause); }
  void OnTick() override;

 private:
  CmConnection(const Site& site, CmId id);
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
  // The trust in windows, or the reason why they are not used.
  absl::StatusOr<WindowTrust> windows_;
  std::shared_ptr<GpuDirect> gpu_direct_;
  std::shared_ptr<Domain> domain_;
  const std::shared_ptr<Quota> exposed_quota_;
  const std::shared_ptr<Quota> read_quota_;
  std::unique_ptr<Completions> completions_;
  std::unique_ptr<Receives> receives_;

  // The total numbers of posted requests and of ended requests, as of the last
  // Post().
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> wants_probe_{false};
  // Used only on the loop: the number of ended requests at the last progress,
  // and the number of consecutive ticks with requests in flight but no
  // progress.
  uint64_t ended_then_ = 0;
  int idle_ticks_ = 0;

  std::atomic<bool> lost_{false};
  mutable base::Mutex mu_;
  absl::Status cause_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CONNECTION_H_
