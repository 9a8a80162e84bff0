// Writes to TCP, one write after another.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_TCP_WRITER_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_TCP_WRITER_H_

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "grpc/event_engine/event_engine.h"
#include "grpc/event_engine/slice_buffer.h"

namespace penstock {
namespace event_engine {

// A queue of writes to an endpoint, because an endpoint allows one write at a
// time. The owner's lock guards all calls.
class TcpWriter {
 public:
  using Endpoint = grpc_event_engine::experimental::EventEngine::Endpoint;
  using SliceBuffer = grpc_event_engine::experimental::SliceBuffer;
  using Callback = absl::AnyInvocable<void(absl::Status)>;

  struct Item {
    SliceBuffer bytes;
    Callback done;  // may be null
    // True if gRPC believes that some of the bytes were sent, because a lost
    // path had accepted them.
    bool has_accepted_bytes = false;
    Endpoint::WriteArgs args;
  };

  void Push(Item item) { items_.push_back(std::move(item)); }
  // Sets the callback of the last item. Requires !idle().
  void SetLastDone(Callback done) { items_.back().done = std::move(done); }
  // Starts the next write, unless a write is in progress. Calls `on_written`
  // without the owner's lock; the owner then calls Finish(). If the write
  // completes immediately, returns true with the item in `*done`.
  bool StartNext(Endpoint* endpoint, Callback on_written, Item* done);
  // Ends and returns the write in progress. The owner drops the item without
  // its lock, because dropping bytes may run a function of the program.
  Item Finish();
  // Removes and returns the writes that have not started.
  std::vector<Item> TakeWaiting();
  // Removes and returns the callbacks of all writes. The writes themselves
  // continue.
  std::vector<Callback> TakeCallbacks();
  bool idle() const { return items_.empty(); }
  // Returns true if an unfinished write has has_accepted_bytes set.
  bool has_accepted_bytes() const;
  // Returns true if StartNext() would start a write.
  bool is_ready() const { return !items_.empty() && !writes_; }

 private:
  std::deque<Item> items_;  // the first may be in progress
  bool writes_ = false;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_TCP_WRITER_H_
