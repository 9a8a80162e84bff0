#include "transport/record/recorder.h"

#include <unistd.h>

#include <utility>

#include "transport/base/steady_time.h"

namespace penstock {
namespace record {
namespace {

// The code of CANCELLED in gRPC.
constexpr int kCancelled = 1;
constexpr int kUnknown = 2;
constexpr int kMaxStatus = 16;

std::atomic<Recorder*> of_process{nullptr};

size_t SizeOf(const Part& part) {
  return sizeof(Part) + part.method.size() +
         part.messages.capacity() * sizeof(Message);
}

}  // namespace

constexpr size_t Recorder::kMaxQueuedBytes;

Recorder* Recorder::OfProcess() {
  Recorder* const recorder = of_process.load(std::memory_order_acquire);
  if (recorder == nullptr || recorder->stopped()) return nullptr;
  return recorder->pid_ == getpid() ? recorder : nullptr;
}

void Recorder::SetOfProcess(Recorder* recorder) {
  of_process.store(recorder, std::memory_order_release);
}

Recorder::Recorder() : begun_(base::SteadyNow()), pid_(getpid()) {}

int64_t Recorder::NowMicros() const {
  return absl::ToInt64Microseconds(base::SteadyNow() - begun_);
}

bool Recorder::Add(Part part) {
  const size_t size = SizeOf(part);
  base::MutexLock lock(&mu_);
  if (stopped()) return false;
  if (queued_bytes_ + size > kMaxQueuedBytes) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  queued_bytes_ += size;
  queue_.push_back(std::move(part));
  return true;
}

std::vector<Part> Recorder::Take() {
  std::vector<Part> taken;
  base::MutexLock lock(&mu_);
  taken.swap(queue_);
  queued_bytes_ = 0;
  return taken;
}

void Recorder::Stop() {
  std::vector<Part> dropped;  // freed outside the lock
  base::MutexLock lock(&mu_);
  stopped_.store(true, std::memory_order_relaxed);
  dropped.swap(queue_);
  queued_bytes_ = 0;
}

RecordedCall::~RecordedCall() { End(kCancelled); }

void RecordedCall::Begin(Recorder* recorder, uint64_t client,
                         absl::string_view method) {
  if (recorder == nullptr || recorder_ != nullptr) return;
  if (recorder->stopped()) return;
  recorder_ = recorder;
  begun_us_ = recorder->NowMicros();
  part_.call = recorder->NextCall();
  part_.client = client;
  part_.method = std::string(method.substr(0, Part::kMaxMethodBytes));
  part_.begun_us = begun_us_;
}

bool RecordedCall::Takes() {
  if (recorder_ == nullptr) return false;
  if (!recorder_->stopped()) return true;
  recorder_ = nullptr;
  part_ = Part();
  return false;
}

void RecordedCall::Add(uint64_t bytes, bool sent) {
  if (!Takes()) return;
  if (part_.messages.size() == Part::kMaxMessages) HandOver();
  if (recorder_ == nullptr) return;
  part_.messages.push_back({recorder_->NowMicros() - begun_us_, bytes, sent});
}

void RecordedCall::End(int status) {
  if (!Takes()) return;
  part_.is_last = true;
  part_.ended_after_us = recorder_->NowMicros() - begun_us_;
  // Records a code out of range as UNKNOWN, as gRPC reports it to the peer.
  part_.status = status >= 0 && status <= kMaxStatus ? status : kUnknown;
  recorder_->Add(std::move(part_));
  recorder_ = nullptr;
}

void RecordedCall::HandOver() {
  Part next;
  next.call = part_.call;
  next.is_first = false;
  if (!recorder_->Add(std::move(part_))) recorder_ = nullptr;
  part_ = std::move(next);
}

}  // namespace record
}  // namespace penstock
