// A TCP connection of gRPC whose bytes may move to a path.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_MOVABLE_CONNECTION_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_MOVABLE_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpc/event_engine/event_engine.h"
#include "grpc/event_engine/slice_buffer.h"
#include "transport/base/limited_log.h"
#include "transport/base/mutex.h"
#include "transport/event_engine/path_watch.h"
#include "transport/event_engine/stream/movable_stream.h"
#include "transport/event_engine/stream/tls_handshake.h"
#include "transport/event_engine/tcp_writer.h"
#include "transport/event_engine/threads/crew.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace event_engine {

// Returns the error of a connection without a path, with Policy::kRequire.
absl::Status RequiredButNotUsed(const absl::Status& why);

// The state of one endpoint: TCP, the stream, and gRPC's pending operations.
// Lives longer than the endpoint: until no thread polls and TCP has called all
// callbacks. Thread-safe. Calls callbacks without the lock.
class MovableConnection
    : public std::enable_shared_from_this<MovableConnection> {
 public:
  using Endpoint = grpc_event_engine::experimental::EventEngine::Endpoint;
  using SliceBuffer = grpc_event_engine::experimental::SliceBuffer;
  using Callback = absl::AnyInvocable<void(absl::Status)>;

  // With `requires_path`, the connection fails when its path is lost. `peer` is
  // for people: "ipv4:127.0.0.1:50051".
  MovableConnection(std::unique_ptr<Endpoint> tcp, Crew* crew, bool is_client,
                    bool requires_path, std::string peer);
  ~MovableConnection();

  bool is_client() const { return is_client_; }

  // Read() and Write() work as in EventEngine::Endpoint.
  bool Read(Callback on_read, SliceBuffer* buffer, Endpoint::ReadArgs args);
  bool Write(Callback on_written, SliceBuffer* data, Endpoint::WriteArgs args);

  // Receives the client's first bytes of TLS, or the reason why the connection
  // has none.
  using OnTls = std::function<void(absl::StatusOr<std::string> opening)>;
  // Declares that this connection is between hosts, and that its path will be
  // of the fabric `name`. Calls `on_tls` on the crew when TLS's handshake has
  // ended. If a path is required, gRPC then receives no bytes until a path is
  // found, and the connection fails if none is found. Call before the first
  // Read() and Write().
  void AwaitTls(std::string name, OnTls on_tls);

  // Begins an attempt to get a path. Called without the lock.
  using Seek = std::function<std::unique_ptr<fabric::PendingConnect>(
      fabric::ConnectCallback found)>;
  // Begins an attempt to get a path. The attempt calls `found`, and ends when
  // this connection ends. Makes at most kMaxSeeks attempts. Seeks again when
  // TCP delivers bytes after these events:
  //
  //   - A path was lost.
  //   - A client's first attempt failed before its server had sent anything. A
  //     busy server accepts the TCP connection late, and expects the client at
  //     the meeting place only afterwards, perhaps shortly before its first
  //     bytes arrive.
  static constexpr int kMaxSeeks = 4;
  void SeekPath(Seek seek, fabric::ConnectCallback found);
  // Handles the result of the attempt. Returns OK if the path is used, or the
  // reason why it is not.
  absl::Status OnPath(absl::StatusOr<std::unique_ptr<fabric::Endpoint>> path);
  // Called when gRPC destroys the endpoint. Ends everything, but first sends,
  // for at most kDepartureLimit, the bytes that gRPC believes to be sent: bytes
  // on the path, and bytes that TCP repeats after the loss of a path.
  void Close();

  struct Description {
    bool closed = false;
    std::string peer;
    std::string path;    // "shm", "verbs" or "http2"
    std::string detail;  // the parts of the path
    std::string reason;  // why there is no path
  };
  Description Describe();

 private:
  // An operation that has ended. The callback is called, and the bytes are
  // dropped, after the lock is released.
  struct EndedOperation {
    Callback callback;  // may be null
    absl::Status status;
    SliceBuffer bytes;
  };
  using Ended = std::vector<EndedOperation>;
  // A scope that holds the lock. The destructor settles the state, unlocks,
  // calls the callbacks, and drops bytes that are no longer needed.
  class Section;

  // Ends the parts that Close() has left running.
  void End();
  void OnTcpRead(const absl::Status& status);
  void OnTcpWritten(const absl::Status& status);
  bool PollPath();
  // Delivers the path's input, and notices the loss of the path. Returns false
  // if input is left after a bounded number of polls.
  bool PollUntilEmptyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Nudge();
  void SeekAgain();

  bool ReadNowLocked(SliceBuffer* buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls on_tls_ when TLS's handshake has ended, or when the bytes are found
  // not to be TLS.
  void CheckHandshakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteWrittenLocked(SliceBuffer* bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeTcpLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status UsePathLocked(std::shared_ptr<fabric::Endpoint> path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops the lost path. The connection continues over TCP, unless a path is
  // required.
  void LeavePathLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Records that TCP has delivered bytes after the loss of the path. The peer
  // has thus sent its mark and continues on TCP, so it is not about to end.
  void GoOnWithoutPathLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if a write to TCP may begin. After a failure, only a
  // connection that departs may write: the bytes that gRPC believes to be sent.
  bool MayWriteTcpLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return failure_.ok() || (is_departing() && !requires_path_);
  }
  bool is_departing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return departing_self_ != nullptr;
  }
  void SeekSoonLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if bytes that gRPC believes to be sent have not been sent yet.
  bool HasBytesToSendLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FailLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Handles the section's events until nothing is left to do.
  void SettleLocked(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if the path was lost or the stream failed, and no step has
  // handled this event yet.
  bool HasUnhandledEndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The steps of SettleLocked().
  void SettleOnceLocked(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleReadLocked(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleWriteLocked(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropWritesLocked(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteTcpLocked(Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadTcpLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RingLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LogPathLocked(const std::string& text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Crew* const crew_;
  const bool is_client_;
  const bool requires_path_;
  const std::string peer_;

  base::Mutex mu_;
  std::unique_ptr<Endpoint> tcp_ ABSL_GUARDED_BY(mu_);  // null once closed
  MovableStream stream_ ABSL_GUARDED_BY(mu_);
  std::string path_name_ ABSL_GUARDED_BY(mu_) = "shm";
  TlsHandshake handshake_ ABSL_GUARDED_BY(mu_);
  OnTls on_tls_ ABSL_GUARDED_BY(mu_);  // null once called, or on one host
  // True if gRPC must not receive bytes yet.
  bool awaits_path_ ABSL_GUARDED_BY(mu_) = false;
  // Keeps this connection alive after gRPC has destroyed the endpoint, while
  // the path or TCP still sends.
  std::shared_ptr<MovableConnection> departing_self_ ABSL_GUARDED_BY(mu_);
  Seek seek_ ABSL_GUARDED_BY(mu_);
  int seeks_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<fabric::PendingConnect> attempt_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<PathWatch> watch_ ABSL_GUARDED_BY(mu_);
  bool has_heard_ ABSL_GUARDED_BY(mu_) = false;  // TCP has delivered bytes
  // True if no path was found before the peer's first bytes.
  bool was_not_met_ ABSL_GUARDED_BY(mu_) = false;
  bool announced_ ABSL_GUARDED_BY(mu_) = false;  // the path of stream_
  // True if the log has reported the path, and has not yet reported its loss.
  bool was_announced_ ABSL_GUARDED_BY(mu_) = false;
  // True if a path was lost and TCP has delivered no bytes since. When a peer
  // ends normally, its path often ends before its TCP connection.
  bool may_be_ending_ ABSL_GUARDED_BY(mu_) = false;
  int nudges_ ABSL_GUARDED_BY(mu_) = 0;
  bool nudge_waits_ ABSL_GUARDED_BY(mu_) = false;  // for its timer
  std::string why_no_path_ ABSL_GUARDED_BY(mu_);
  base::LimitedLog log_ ABSL_GUARDED_BY(mu_);

  // The pending operations of gRPC.
  Callback on_read_ ABSL_GUARDED_BY(mu_);
  SliceBuffer* read_buffer_ ABSL_GUARDED_BY(mu_) = nullptr;
  Endpoint::ReadArgs read_args_ ABSL_GUARDED_BY(mu_);
  Callback on_written_ ABSL_GUARDED_BY(mu_);  // of a write to the path

  TcpWriter writer_ ABSL_GUARDED_BY(mu_);
  SliceBuffer tcp_input_ ABSL_GUARDED_BY(mu_);
  bool reads_tcp_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_MOVABLE_CONNECTION_H_
