#include "transport/session/send_meter.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace session {
namespace {

// Only one message of kMessagesPerSample is timed. Timing reads the clock two
// or three times, about 25 ns each, compared with several microseconds per
// message. The first messages of a path are all timed, to find its limit soon.
constexpr unsigned kMessagesPerSample = 8;
constexpr unsigned kFirstMessages = 128;

protocol::EagerTuner MakeTuner(const Tuning& tuning,
                               const fabric::Capabilities& path) {
  return protocol::EagerTuner(tuning.EagerBounds(path),
                              !path.can_load && path.push_bytes == 0);
}

}  // namespace

SendMeter::SendMeter(const Tuning& tuning, const fabric::Capabilities& lifeline)
    : tuning_(tuning),
      lifeline_capabilities_(lifeline),
      lifeline_(MakeTuner(tuning, lifeline)),
      fast_(lifeline_) {
  Activate(lifeline_capabilities_);
}

void SendMeter::UseFastPath(const fabric::Capabilities& path) {
  fast_ = MakeTuner(tuning_, path);
  using_fast_ = true;
  Activate(path);
}

void SendMeter::LoseFastPath() {
  using_fast_ = false;
  Activate(lifeline_capabilities_);
}

void SendMeter::Activate(const fabric::Capabilities& path) {
  messages_ = 0;
  timed_from_ = active().adapts() ? std::max<size_t>(path.eager_range.least, 1)
                                  : std::numeric_limits<size_t>::max();
}

uint64_t SendMeter::BeginTimed() {
  const unsigned before = messages_++;
  if (before >= kFirstMessages && before % kMessagesPerSample != 0) return 0;
  return tuning_.now_ns();
}

void SendMeter::OnCopied(uint64_t begun_ns, size_t bytes) {
  if (begun_ns == 0) return;
  active().OnCopied(bytes, tuning_.now_ns() - begun_ns);
}

void SendMeter::OnAnnounced(uint64_t begun_ns, size_t bytes) {
  if (begun_ns == 0) return;
  active().OnAnnounced(bytes, tuning_.now_ns() - begun_ns);
}

void SendMeter::OnReleased(uint64_t begun_ns, size_t bytes) {
  if (begun_ns == 0) return;
  active().OnReleased(bytes, tuning_.now_ns() - begun_ns);
}

}  // namespace session
}  // namespace penstock
