#include "transport/protocol/chunk_tuner.h"

#include <algorithm>

namespace penstock {
namespace protocol {
namespace {

// Two reads count as one if their ends are at most kTogetherNs apart, and at
// most kTogetherShare of the time since Begin(). Such reads ended while the
// reader's thread was asleep, so only the time of the last one is right.
// Processing a read takes some hundred nanoseconds. On paths of low latency,
// reads may really end so close together; kTogetherShare excludes these.
constexpr double kTogetherNs = 500;
constexpr double kTogetherShare = 1.0 / 16;
// A read that takes less than this multiple of the shortest read did not wait
// for earlier reads.
constexpr double kLatencyCounts = 2;

}  // namespace

constexpr double ChunkTuner::kMaxDelayNs;
constexpr double ChunkTuner::kPipes;

void ChunkTuner::Begin(uint64_t now_ns) {
  opening_ = true;
  measures_ = false;
  begun_ns_ = now_ns;
  opened_ = 0;
  ended_ = 0;
  last_ = Point();
}

void ChunkTuner::OnRead(size_t bytes, uint64_t now_ns) {
  const bool probes = wants_start();
  ++under_way_;
  if (!adapts()) return;
  sizes_.push_back(bytes);
  bytes_under_way_ += bytes;
  if (probes) {
    probe_left_ = under_way_;
    probe_bytes_ = bytes_under_way_;
    probe_ns_ = now_ns;
  }
  if (!opening_ || opened_ == ends_.size()) return;
  ends_[opened_] = bytes + (opened_ == 0 ? 0 : ends_[opened_ - 1]);
  ++opened_;
  measures_ = true;
}

void ChunkTuner::OnReadDone(bool ok, uint64_t now_ns) {
  --under_way_;
  if (!adapts()) return;
  bytes_under_way_ -= sizes_.front();
  sizes_.pop_front();
  opening_ = false;
  if (measures_) OnOpeningReadDone(ok, now_ns);
  if (probe_left_ > 0 && --probe_left_ == 0) OnProbeDone(ok, now_ns);
}

void ChunkTuner::OnOpeningReadDone(bool ok, uint64_t now_ns) {
  if (!ok) {
    measures_ = false;
    return;
  }
  // Skips the first piece if the peer pushes it, because the piece may have
  // arrived before Begin().
  if (ended_ > 0 || !first_is_pushed_) {
    OnPoint(Point{static_cast<double>(ends_[ended_]),
                  static_cast<double>(now_ns - begun_ns_)});
  }
  if (++ended_ < opened_) return;
  measures_ = false;
  if (last_.bytes == 0) return;
  fit_.Add(last_.bytes, last_.ns);
  if (!fit_.has_line() || fit_.slope() <= 0) return;
  ns_per_byte_ = fit_.slope();
  busy_ = LineFit();  // not needed: the path is idle at times
  Settle();
}

void ChunkTuner::OnProbeDone(bool ok, uint64_t now_ns) {
  const double ns = static_cast<double>(now_ns - probe_ns_);
  if (!ok || least_ns_ == 0 || ns < kLatencyCounts * least_ns_) return;
  busy_.Add(probe_bytes_, ns);
  if (!busy_.has_ratio()) return;
  ns_per_byte_ = busy_.ratio();
  Settle();
}

void ChunkTuner::OnPoint(const Point& point) {
  const double together = std::min(kTogetherNs, point.ns * kTogetherShare);
  if (last_.bytes > 0 && point.ns - last_.ns > together) {
    fit_.Add(last_.bytes, last_.ns);
  }
  last_ = point;
  if (least_ns_ == 0 || point.ns < least_ns_) least_ns_ = point.ns;
}

void ChunkTuner::Settle() {
  double wanted = static_cast<double>(start_);
  double latency_share_ns = 0;
  if (fit_.has_line() && fit_.slope() > 0) {
    latency_share_ns = fit_.fixed() / max_reads_;
    wanted = std::max(wanted, kPipes * latency_share_ns / fit_.slope());
  }
  size_.Propose(
      std::min(wanted, (latency_share_ns + kMaxDelayNs) / ns_per_byte_));
}

}  // namespace protocol
}  // namespace penstock
