// Records the calls of this process's servers: time, size and connection. Never
// records contents or the identity of the caller.

#ifndef PENSTOCK_TRANSPORT_RECORD_RECORDER_H_
#define PENSTOCK_TRANSPORT_RECORD_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/record/part.h"

namespace penstock {
namespace record {

// Holds unwritten parts, up to a limit. Drops and counts parts beyond the
// limit. Thread-safe.
class Recorder {
 public:
  // Limits the bytes of all queued parts, with their messages.
  static constexpr size_t kMaxQueuedBytes = 16 * 1024 * 1024;

  // Returns the recorder of the process, which is never destroyed. Returns null
  // if nothing is recorded, if recording has stopped, and in the child of a
  // fork.
  static Recorder* OfProcess();
  // Sets the recorder of the process. Call it once.
  static void SetOfProcess(Recorder* recorder);

  Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  uint64_t NextClient() { return ++clients_; }
  uint64_t NextCall() { return ++calls_; }
  int64_t NowMicros() const;

  // Queues a part and returns true if there was room. Otherwise counts the call
  // as dropped; the caller then adds no further part of this call.
  bool Add(Part part);
  // Removes and returns all queued parts.
  std::vector<Part> Take();
  // Returns how many calls were dropped or cut since the previous call of
  // TakeLeftOut().
  uint64_t TakeLeftOut() { return left_out_.exchange(0); }

  // Stops recording: from now on Add() neither queues nor counts.
  void Stop();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  const absl::Time begun_;
  const int pid_;
  std::atomic<uint64_t> clients_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> left_out_{0};
  std::atomic<bool> stopped_{false};  // is set under the lock
  base::Mutex mu_;
  size_t queued_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Part> queue_ ABSL_GUARDED_BY(mu_);
};

// The record of one call. Does nothing without a recorder, before Begin(),
// after End(), and once the recorder has stopped. Holds at most
// Part::kMaxMessages messages. One thread may use it at a time.
class RecordedCall {
 public:
  RecordedCall() = default;
  // Records the call as cancelled if it has begun and has not ended.
  ~RecordedCall();
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

  void Begin(Recorder* recorder, uint64_t client, absl::string_view method);
  void Received(uint64_t bytes) { Add(bytes, /*sent=*/false); }
  void Sent(uint64_t bytes) { Add(bytes, /*sent=*/true); }
  // Records the end of the call with `status`, a status code of gRPC.
  void End(int status);

 private:
  // Returns true if the call is being recorded.
  bool Takes();
  void Add(uint64_t bytes, bool sent);
  void HandOver();

  Recorder* recorder_ = nullptr;
  int64_t begun_us_ = 0;
  Part part_;
};

}  // namespace record
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RECORD_RECORDER_H_
