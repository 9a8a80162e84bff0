// The grpc_transport that runs gRPC's streams over a Penstock session.

#ifndef PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
#define PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/transport.h"
#include "src/core/lib/transport/transport_impl.h"
#include "transport/connection/connection.h"
#include "transport/grpc/channel_limits.h"
#include "transport/grpc/ended_calls.h"
#include "transport/grpc/endpoint_stream.h"
#include "transport/grpc/goaway.h"
#include "transport/grpc/held_write.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/internal/late_slices.h"
#include "transport/grpc/lifeline_input.h"
#include "transport/grpc/metadata_table.h"
#include "transport/grpc/path_waker.h"
#include "transport/grpc/pings.h"
#include "transport/grpc/stream_acceptor.h"
#include "transport/grpc/stream_list.h"
#include "transport/session/session.h"

namespace penstock {
// The namespace is not named after the folder: within a namespace
// penstock::grpc, `grpc` would not mean gRPC's namespace.
namespace core {

class Stream;

// A transport for gRPC over one Penstock connection. Thread-safe: the
// connection's mutex guards all members. Call in an ExecCtx. Closures are
// scheduled in the ExecCtx, so none runs under the mutex.
//
// gRPC, or the handshaker that made the transport, holds the first reference
// until grpc_transport_destroy(). Each stream, the read in flight, and the
// write in flight hold one reference each.
class Transport final : public grpc_transport,
                        public connection::Connection,
                        public EndpointStreamEvents {
 public:
  // A scope that holds the lock and a reference. Ends with FinishAndUnlock().
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(Transport* transport)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(transport->mu_)
        : transport_(transport) {
      transport_->Lock();
    }
    // Continues a section that TryLock() has begun.
    Section(Transport* transport, std::adopt_lock_t)
        ABSL_EXCLUSIVE_LOCKS_REQUIRED(transport->mu_)
        : transport_(transport) {}
    ~Section() ABSL_UNLOCK_FUNCTION() { transport_->FinishAndUnlock(); }

   private:
    LateSlices late_slices_;  // destroyed last, after unlocking
    Transport* const transport_;
  };

  // Called with the result of the negotiation, once, from an ExecCtx, without
  // locks. The status is OK if a path was chosen that satisfies the settings.
  // Otherwise the session is closed, and the status is the reason.
  using Settled = std::function<void(const absl::Status&)>;

  // The configuration of a transport. The transport's constructor fills in the
  // peer, from the endpoint, and the connection's limits, from `limits`.
  struct Config : connection::Config {
    ChannelLimits limits;
    // The security information that channelz shows. May be null.
    grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode::Security>
        security;
  };

  // Returns a transport that has not started. Takes ownership of `endpoint`.
  // `received` are the bytes that followed the negotiation. `settled` may be
  // empty.
  static Transport* Create(const Config& config, grpc_endpoint* endpoint,
                           grpc_core::SliceBuffer received, Settled settled);
  static Transport* From(grpc_transport* transport) {
    return static_cast<Transport*>(transport);
  }
  // Returns true if `transport` is a Transport. From() may then be called.
  static bool IsOurs(const grpc_transport& transport) {
    return transport.vtable == Vtable();
  }

  // Sends the hello and starts reading, unless the session is closed. Call
  // once.
  void Start();
  // Ends the session and all streams with the reason `why`.
  void Close(const absl::Status& why);
  // Returns true if the transport can now send a message from device memory
  // without a copy to the host.
  bool TakesDeviceMemory();
  // Returns the connection's channelz node, which counts streams and messages.
  // The node's id is the transport's key in the registry.
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode>& socket_node()
      const {
    return socket_node_;
  }

  // Functions for streams. Except OnDestroyed(), call them under the lock.
  const ChannelLimits& limits() const { return limits_; }
  // Encodes metadata, and sends new table entries to the peer. The result is
  // valid until the next call.
  absl::string_view Encode(const grpc_metadata_batch& metadata);
  const ReceivedEntries& received_entries() const {
    mu_.AssertHeld();
    return received_entries_;
  }
  Goaway* goaway() {
    mu_.AssertHeld();
    return &goaway_;
  }
  void AddStream(Stream* stream);
  void RemoveStream(Stream* stream);
  // Call when gRPC has destroyed a stream, without the lock.
  void OnDestroyed();

 private:
  // Contains the functions of the vtable; see transport_vtable.cc.
  struct Operations;

  Transport(const Config& config, grpc_endpoint* endpoint,
            grpc_core::SliceBuffer received, Settled settled);
  ~Transport() override;

  static const grpc_transport_vtable* Vtable();
  // Sends the output that was added under the lock, updates the transport's
  // state, and unlocks.
  void FinishAndUnlock() ABSL_UNLOCK_FUNCTION(mu_);
  // Unlocks, and then gives gRPC the streams that the peer has opened.
  void UnlockAndAccept() ABSL_UNLOCK_FUNCTION(mu_);

  // Receives from the lifeline's socket. Called by threads that poll.
  bool PollInput();
  // Calls `poll` in a section, and returns its result. Needs no ExecCtx.
  // Returns false if TryLock(may_block) does.
  bool PollInSection(bool may_block, absl::FunctionRef<bool()> poll);
  void OnConnectionClosed(const grpc_error_handle& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Overrides of EndpointStreamEvents.
  void Hold() override { Ref(); }
  bool WriteLater() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool OnRead(grpc_error_handle error, bool may_block) override;
  bool OnWritten(grpc_error_handle error, bool may_block) override;

  // Overrides of connection::Connection.
  void Enter(absl::FunctionRef<void()> work) override;
  void Release() override;
  bool PollPath() override;
  void LeaveInput() override;
  void OnPathChanged(const std::shared_ptr<fabric::Endpoint>& path) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSettled(const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnEnded(const absl::Status& cause) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStream() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasCalls() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !streams_.empty();
  }

  void OnStreamOpened(uint32_t stream) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnGoaway(uint32_t last_stream, const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPing() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPong(uint64_t cookie) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status OnEntry(uint32_t number, absl::string_view entry) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ChannelLimits limits_;
  EndpointStream* const stream_;  // the byte stream
  const grpc_core::RefCountedPtr<grpc_core::channelz::SocketNode> socket_node_;
  std::vector<std::shared_ptr<PathWaker>> wakers_
      ABSL_GUARDED_BY(mu_);  // of the path in use
  Settled settled_ ABSL_GUARDED_BY(mu_);
  EndedCalls ended_;
  StreamList streams_ ABSL_GUARDED_BY(mu_);
  StreamAcceptor acceptor_ ABSL_GUARDED_BY(mu_);
  Goaway goaway_ ABSL_GUARDED_BY(mu_);
  Pings pings_ ABSL_GUARDED_BY(mu_);
  LifelineInput input_ ABSL_GUARDED_BY(mu_);
  std::weak_ptr<HeldWrite> held_write_ ABSL_GUARDED_BY(mu_);
  // True if a write was held back since the background thread last wrote.
  bool holds_ ABSL_GUARDED_BY(mu_) = false;
  SentEntries sent_entries_ ABSL_GUARDED_BY(mu_);
  ReceivedEntries received_entries_ ABSL_GUARDED_BY(mu_);
  std::string encoded_ ABSL_GUARDED_BY(mu_);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TRANSPORT_H_
