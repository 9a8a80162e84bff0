#include "bench/rpc/client/load.h"

#include "bench/rpc/client/watchdog.h"
#include "bench/rpc/setup/service.h"

namespace penstock {
namespace bench {
namespace {

// The difference between the first seeds of two lanes. A reply to the wrong
// lane has a seed outside the lane's range.
constexpr uint64_t kSeedsPerLane = uint64_t{1} << 40;

std::chrono::steady_clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

Lane::Lane(Load* load, uint64_t index)
    : load_(load), seed_((index + 1) * kSeedsPerLane) {
  if (load_->plan_.push) seed_ |= kWantsAck;
  if (!load_->plan_.resend) return;
  seed_ |= kUnread;
  resent_ = MakePayload(load_->plan_.bytes, seed_);
}

bool Lane::Start(grpc::ByteBuffer* message) {
  start_ = Clock::now();
  if (!load_->Next(start_)) return false;
  if (load_->plan_.handover) return StartHandover(message);
  if (load_->plan_.resend) {
    *message = resent_;
    return true;
  }
  *message = MakePayload(load_->plan_.bytes, ++seed_);
  return true;
}

void Lane::Finish(const grpc::Status& status, const grpc::ByteBuffer& reply) {
  absl::Status result = FromGrpc(status);
  const bool handover = load_->plan_.handover;
  if (result.ok()) {
    result = handover ? FinishHandover(reply)
                      : CheckReply(reply, load_->plan_.reply_bytes(), seed_);
  }
  if (!result.ok()) {
    load_->Fail(result);
  } else if (!handover) {
    Record();
  }
}

bool Lane::StartHandover(grpc::ByteBuffer* message) {
  if (!pooled_) {
    pooled_ = Allocator::Allocate(load_->plan_.bytes);
    if (!pooled_ || !pooled_.is_pooled()) {
      load_->Fail(absl::ResourceExhaustedError("no memory in the pool"));
      return false;
    }
    FillPayload(pooled_.data(), pooled_.size(), seed_ | kWantsTimes);
  }
  const grpc::Slice slice = pooled_.ToSlice();
  *message = grpc::ByteBuffer(&slice, 1);
  start_ = Clock::now();
  return true;
}

absl::Status Lane::FinishHandover(const grpc::ByteBuffer& reply) {
  const absl::StatusOr<HandoverTimes> times = ReadTimes(reply);
  if (!times.ok()) return times.status();
  const auto got = Clock::time_point(std::chrono::nanoseconds(times->got_ns));
  latencies_us_.push_back(
      std::chrono::duration<double, std::micro>(got - start_).count());
  reads_us_.push_back((times->read_ns - times->got_ns) * 1e-3);
  load_->watchdog_->Progress();
  return absl::OkStatus();
}

void Lane::Written() {
  tally_.AddSeed(seed_);
  Record();
}

void Lane::Close(const grpc::Status& status, const grpc::ByteBuffer& reply) {
  absl::Status result = FromGrpc(status);
  if (result.ok()) result = tally_.Check(reply);
  if (!result.ok()) load_->Fail(result);
}

void Lane::Record() {
  const std::chrono::duration<double, std::micro> time = Clock::now() - start_;
  latencies_us_.push_back(time.count());
  load_->watchdog_->Progress();
}

Load::Load(const LoadPlan& plan, Watchdog* watchdog)
    : plan_(plan),
      watchdog_(watchdog),
      start_(Clock::now()),
      end_(start_ + Seconds(plan.seconds)) {
  const uint64_t lanes = uint64_t{1} * plan.threads * plan.window;
  for (uint64_t i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(this, i));
  }
}

std::vector<Lane*> Load::LanesOf(int thread) {
  std::vector<Lane*> lanes;
  for (int i = 0; i < plan_.window; ++i) {
    lanes.push_back(lanes_[thread * plan_.window + i].get());
  }
  return lanes;
}

bool Load::Next(Clock::time_point now) {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  const int64_t index = started_.fetch_add(1, std::memory_order_relaxed);
  if (plan_.rpcs > 0) return index < plan_.rpcs;
  // Always starts the first message, because a burst without messages has no
  // median.
  return index == 0 || now < end_;
}

void Load::Stop() { stopped_.store(true, std::memory_order_relaxed); }

void Load::Fail(const absl::Status& status) {
  Stop();
  const std::lock_guard<std::mutex> lock(mu_);
  error_.Update(status);
}

absl::StatusOr<LoadResult> Load::Finish() {
  LoadResult result;
  result.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    result.latencies_us.insert(result.latencies_us.end(),
                               lane->latencies_us_.begin(),
                               lane->latencies_us_.end());
    result.reads_us.insert(result.reads_us.end(), lane->reads_us_.begin(),
                           lane->reads_us_.end());
  }
  const std::lock_guard<std::mutex> lock(mu_);
  if (!error_.ok()) return error_;
  return result;
}

}  // namespace bench
}  // namespace penstock
