// The messages of a stream between callbacks and Python's threads.

#ifndef PENSTOCK_PYTHON_RPC_STREAM_STATE_H_
#define PENSTOCK_PYTHON_RPC_STREAM_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "python/rpc/monitor.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/call.h"

namespace penstock::python {

// The state of a stream of a client or a server, which the stream's callbacks
// share. One thread may read while another one writes. Thread-safe. Needs no
// GIL.
class StreamState {
 public:
  // The largest message, in bytes, that counts as small.
  static constexpr size_t kSmallBytes = 128 * 1024;
  // The number of messages that are requested before the program reads them, so
  // that the peer can send while the program works. Higher for small messages,
  // so that a thread or loop that wakes up finds several messages.
  static constexpr int kReadAhead = 2;
  static constexpr int kSmallReadAhead = 8;
  // The number of writes that may wait for the peer before the writer itself
  // waits.
  static constexpr int kWriteAhead = 4;
  static constexpr int kSmallWriteAhead = 16;

  // If `holds_end` is true, a regular end is hidden until the program has read
  // all messages, as in gRPC.
  explicit StreamState(bool holds_end) : holds_end_(holds_end) {}

  // The callbacks of the stream.
  void OnMessage(absl::optional<memory::Payload> message);
  void OnAccepted(bool is_accepted);
  void OnMetadata(std::string metadata);
  // Ends the stream. If `keeps_unread` is true, unread messages stay readable,
  // and more may arrive until a read gets none. Returns false if the stream had
  // already ended. An error replaces an earlier end that the program has not
  // seen yet.
  bool End(rpc::End end, bool keeps_unread);

  // Returns the number of reads to request now, and counts them as requested.
  int TakeWantedReads();
  // Returns true if a read of the program need not wait.
  bool HasMessage();
  // Returns the next message. Returns nothing after the last one.
  absl::optional<memory::Payload> TakeMessage();
  // Counts a write of `bytes` bytes. Returns false if the stream has ended.
  bool BeginWrite(size_t bytes);
  // Returns true if a write need not wait: for room, or because the stream has
  // ended.
  bool HasRoom();

  // The functions below wait for an event until the deadline, and return true
  // if the event comes in time: a message or the last one; room for another
  // write, or the end; metadata, or the end; the end.
  bool AwaitMessage(absl::Time deadline);
  bool AwaitRoom(absl::Time deadline);
  bool AwaitMetadata(absl::Time deadline);
  bool AwaitEnd(absl::Time deadline);

  // Returns true if writing is useful, because the peer still accepts messages.
  bool is_open();
  // Returns true if the metadata has arrived, or the stream has ended without
  // metadata.
  bool has_metadata();
  // Returns true if the end has arrived and is not hidden.
  bool has_ended();
  absl::optional<std::string> metadata();
  // Returns the end of the stream. Call only after the end.
  rpc::End end();
  // Adds `number` to Reports when the stream has ended, or immediately if it
  // already has.
  void Report(uint64_t number);
  // Adds `number` to Reports once: at the next message, acceptance, metadata or
  // end. Adds the number immediately if such an event has happened since the
  // last report.
  void ReportChange(uint64_t number);
  // Adds `number` to Reports if the server has declined the stream, unless
  // Report() was called.
  void ReportDecline(uint64_t number);
  // Calls `expire` after `timeout`, unless the stream ends before.
  void ExpireAfter(absl::Duration timeout, std::function<void()> expire);

 private:
  // The work after an end, which the caller does without the lock.
  struct Ending {
    uint64_t number = 0;  // to report; 0: none
    progress::EventLoop::Id timer = 0;
  };

  // Wakes the waiting threads, and reports a change. Returns work if this
  // change has ended the stream.
  Ending ChangeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_);
  static void Finish(const Ending& ending);
  bool HasEndedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_) {
    return end_.has_value() &&
           (!holds_end_ || (input_ended_ && messages_.empty()));
  }
  bool IsDeclinedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_);
  bool HasMessageLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_) {
    return !messages_.empty() || input_ended_;
  }
  bool HasRoomLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_) {
    return writes_ < (writes_small_ ? kSmallWriteAhead : kWriteAhead) ||
           output_ended_;
  }
  bool HasMetadataLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(monitor_) {
    return metadata_.has_value() || end_.has_value();
  }

  const bool holds_end_;
  Monitor monitor_;
  std::deque<memory::Payload> messages_ ABSL_GUARDED_BY(monitor_);
  bool input_ended_ ABSL_GUARDED_BY(monitor_) = false;
  bool output_ended_ ABSL_GUARDED_BY(monitor_) = false;
  int reads_ ABSL_GUARDED_BY(monitor_) = 0;   // requested, without a message
  int writes_ ABSL_GUARDED_BY(monitor_) = 0;  // not accepted yet
  // True if the last message of a direction was small.
  bool reads_small_ ABSL_GUARDED_BY(monitor_) = false;
  bool writes_small_ ABSL_GUARDED_BY(monitor_) = false;
  absl::optional<std::string> metadata_ ABSL_GUARDED_BY(monitor_);
  absl::optional<rpc::End> end_ ABSL_GUARDED_BY(monitor_);
  uint64_t number_ ABSL_GUARDED_BY(monitor_) = 0;          // 0: none wanted
  uint64_t decline_number_ ABSL_GUARDED_BY(monitor_) = 0;  // likewise
  uint64_t change_number_ ABSL_GUARDED_BY(monitor_) = 0;   // likewise
  bool has_changed_ ABSL_GUARDED_BY(monitor_) = false;     // not reported yet
  bool is_finished_ ABSL_GUARDED_BY(monitor_) = false;     // by ChangeLocked()
  progress::EventLoop::Id timer_ ABSL_GUARDED_BY(monitor_) = 0;
};

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_STREAM_STATE_H_
