// The fast path of a session: attempts, use, and loss.

#ifndef PENSTOCK_TRANSPORT_SESSION_FAST_PATH_H_
#define PENSTOCK_TRANSPORT_SESSION_FAST_PATH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/fabric.h"
#include "transport/metrics/labels.h"
#include "transport/session/events.h"
#include "transport/session/message_reader.h"
#include "transport/session/parts.h"
#include "transport/session/path_handshake.h"
#include "transport/session/path_negotiator.h"
#include "transport/session/streams.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

// At most one path in addition to the lifeline. A PathHandshake decides when
// both sides use the path. If the path is lost, no frame is lost or repeated:
// unacknowledged frames are sent again over the lifeline. Not thread-safe.
class FastPath {
 public:
  // Refers to the arguments and to the objects in `parts`. All must outlive
  // this object. `input` receives the path's events.
  FastPath(const Parts& parts, Streams* streams, fabric::EndpointEvents* input,
           PathEvents* events);

  // Returns the number of the latest attempt to add a path. Drop results of
  // earlier attempts.
  uint32_t epoch() const { return handshake_.epoch(); }
  // Adds `path`, which carries the session once the peer has added it too. Does
  // nothing if there is a path already.
  void Add(const std::string& fabric, std::shared_ptr<fabric::Endpoint> path);
  // Handles a failed attempt. A client tries the next fabric. A server
  // continues to listen on its other fabrics. The attempt ends when all fabrics
  // have failed.
  void OnFailure(const std::string& fabric, const absl::Status& cause);
  // Sends the token to the client. The client presents the token when it
  // connects; see PathEvents::OnListenWanted().
  void Offer(const std::string& token);
  // Returns true if another attempt is useful: on a client that uses only the
  // lifeline although both sides have another fabric in common.
  bool CanRetry() const;
  // Begins another attempt. Does nothing unless CanRetry().
  void Retry();
  // Continues over the lifeline alone, because the path broke or is being
  // closed.
  void Lose(const absl::Status& cause);

  // Returns the path that the session polls. Null if there is only the
  // lifeline.
  const std::shared_ptr<fabric::Endpoint>& endpoint() const { return path_; }
  // Returns true if the path carries the session.
  bool in_use() const { return in_use_; }
  // Returns true until the two sides agree on the path.
  bool negotiates() const {
    return greeted_ && !ended_ &&
           handshake_.state() != PathHandshake::State::kInUse &&
           handshake_.state() != PathHandshake::State::kSettled;
  }
  // Returns true if the path can now send a message from device memory without
  // a copy to the host.
  bool TakesDeviceMemory() const {
    return in_use_ && path_->TakesDeviceMemory();
  }
  // Makes the next Flush() send a few bytes over the lifeline, which wake the
  // peer. Does nothing if the lifeline carries the session.
  void RingLifeline() { rings_lifeline_ = in_use_; }
  // Describes the path that carries the session.
  PathDescription Describe() const;

  // The functions below are for the session.
  //
  // Returns the endpoint that carries the session.
  const fabric::Endpoint* carrier() const {
    return in_use_ ? path_.get() : lifeline_;
  }
  // Returns the kind of endpoint(). If there is none, returns the kind of the
  // last path.
  metrics::Fabric fabric() const { return kind_; }
  // Returns true if a few bytes must be sent over the lifeline to wake the
  // peer. The reasons are: this side has sent data, the peer waits until this
  // side has received data, or RingLifeline() was called.
  bool TakeRing() {
    const bool wanted = path_ != nullptr && path_->TakeDoorbellRequest();
    return std::exchange(rings_lifeline_, false) || wanted;
  }
  void OnHello(wire::Hello hello);
  absl::Status OnFrame(const wire::Frame& frame);
  // Drops the path for good. Call when the session is over.
  void End();
  // Destroys lost paths. Called only by Flush(): a function further down may
  // have been called by the lost path itself.
  void ReleaseLost() { lost_.clear(); }
  // Leaks the lost paths, in the child of a fork. Destroying a path would
  // release memory that the parent still uses.
  void LeakLost();
  // Keeps the memory into which the path's reads write, until the path is
  // destroyed. Call before the streams are destroyed.
  void KeepMemory();

 private:
  // The object to which path_ points: the path, and the memory that its reads
  // may still fill after the path's loss. Other owners may keep the path alive
  // after the session has dropped it.
  struct PathAndMemory {
    MessageReader::Filled filled;
    std::shared_ptr<fabric::Endpoint> path;  // destroyed first
  };

  void Apply(const PathHandshake::Actions& actions);
  void AddControl(wire::FrameType type, absl::string_view payload);
  void TryNext();
  void Drop();
  void CountLoss();
  void Report();

  const Config& config_;
  fabric::Endpoint* const lifeline_;
  Sender* const sender_;
  FrameWriter* const writer_;
  Counters* const counters_;
  const Recorder* const recorder_;
  Streams* const streams_;
  fabric::EndpointEvents* const input_;
  PathEvents* const events_;
  bool greeted_ = false;  // the peer's hello has come
  bool ended_ = false;
  std::shared_ptr<fabric::Endpoint> path_;
  std::shared_ptr<PathAndMemory> path_and_memory_;
  std::vector<std::shared_ptr<fabric::Endpoint>> lost_;
  bool in_use_ = false;
  bool rings_lifeline_ = false;  // with the next Flush()
  PathHandshake handshake_;
  PathNegotiator negotiator_;
  std::string fabric_;  // of path_
  metrics::Fabric kind_ = metrics::Fabric::kOther;
  // True after a path in use was dropped. If the session continues, the drop is
  // counted as a path loss.
  bool loss_is_uncounted_ = false;
  bool has_lost_path_ = false;  // and has not regained it
  std::string peer_token_;      // the acceptor's
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_FAST_PATH_H_
