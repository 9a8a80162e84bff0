// Takes down the calls of this process's servers: when, how large, over which
// connection; never what is in them, nor who made them.

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

// Holds what is not yet written, of which there is a bounded amount. What does
// not fit is left out and counted. Thread-safe.
class Recorder {
 public:
  // Of parts together, with their messages.
  static constexpr size_t kMaxQueuedBytes = 16 * 1024 * 1024;

  // Returns the recorder of the process; null: nothing is recorded, or no
  // longer, or this is the child of a fork. Once there is one, it is never
  // destroyed.
  static Recorder* OfProcess();
  // Makes `recorder` that of the process. Call it once.
  static void SetOfProcess(Recorder* recorder);

  Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  uint64_t NextClient() { return ++clients_; }
  uint64_t NextCall() { return ++calls_; }
  int64_t NowMicros() const;

  // Returns whether there was room. If not, the caller adds no further part of
  // this call, which is counted as left out.
  bool Add(Part part);
  // Takes all that there is.
  std::vector<Part> Take();
  // Returns how many calls were left out, or cut, since it was last asked.
  uint64_t TakeLeftOut() { return left_out_.exchange(0); }

  // From now on nothing is taken, nor counted.
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

// One call. Does nothing without a recorder, before Begin(), and after End().
// Once the recorder has stopped, nothing is measured or held any more. Used by
// one thread at a time. Holds at most Part::kMaxMessages messages.
class RecordedCall {
 public:
  RecordedCall() = default;
  // Ends as cancelled what has begun and not ended.
  ~RecordedCall();
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

  void Begin(Recorder* recorder, uint64_t client, absl::string_view method);
  void Received(uint64_t bytes) { Add(bytes, /*sent=*/false); }
  void Sent(uint64_t bytes) { Add(bytes, /*sent=*/true); }
  // `status` is one of gRPC's codes.
  void End(int status);

 private:
  // Whether there is something to take down.
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
