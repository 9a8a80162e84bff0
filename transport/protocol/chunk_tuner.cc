#include "transport/protocol/chunk_tuner.h"

#include <algorithm>

namespace penstock {
namespace protocol {
namespace {

// Reads that ended apart, but are seen together as the reader wakes up: of
// these only the last one's time means something. Taking one in takes some
// hundred nanoseconds; on a path of little latency, pieces may really end so
// fast.
constexpr double kTogetherNs = 500;
constexpr double kTogetherShare = 1.0 / 16;

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

void ChunkTuner::OnRead(size_t bytes) {
  ++under_way_;
  if (!opening_ || opened_ == ends_.size()) return;
  ends_[opened_] = bytes + (opened_ == 0 ? 0 : ends_[opened_ - 1]);
  ++opened_;
  measures_ = true;
}

void ChunkTuner::OnReadDone(bool ok, uint64_t now_ns) {
  --under_way_;
  opening_ = false;
  if (!ok) measures_ = false;
  if (!measures_) return;
  // What was under way unasked may have been here already.
  if (ended_ > 0 || !first_is_pushed_) {
    OnPoint(Point{static_cast<double>(ends_[ended_]),
                  static_cast<double>(now_ns - begun_ns_)});
  }
  if (++ended_ < opened_) return;
  measures_ = false;
  if (last_.bytes == 0) return;
  fit_.Add(last_.bytes, last_.ns);
  Settle();
}

void ChunkTuner::OnPoint(const Point& point) {
  const double together = std::min(kTogetherNs, point.ns * kTogetherShare);
  if (last_.bytes > 0 && point.ns - last_.ns > together) {
    fit_.Add(last_.bytes, last_.ns);
  }
  last_ = point;
}

void ChunkTuner::Settle() {
  if (!fit_.has_line() || fit_.slope() <= 0) return;
  const double in_pipe = fit_.fixed() / fit_.slope();
  const double filling = kPipes * in_pipe / max_reads_;
  const double wanted = std::max(filling, static_cast<double>(start_));
  size_.Propose(std::min(wanted, kMaxDelayNs / fit_.slope()));
}

}  // namespace protocol
}  // namespace penstock
