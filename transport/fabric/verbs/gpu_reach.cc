#include "transport/fabric/verbs/gpu_reach.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The number of tests before a pause. A single failure may be due to an unusual
// range, or to a lack of memory. But messages must not wait for tests forever.
constexpr int kMaxTries = 3;

absl::string_view NameOf(absl::optional<GpuWay> way) {
  if (!way.has_value()) return "";
  return *way == GpuWay::kDmabuf ? "dmabuf" : "peermem";
}

// Returns the ways to try, the better one first. For sending, peermem is
// better: peers read through windows on a region that is kept. Linux binds no
// window to a dmabuf, so peers read by the key of a region that is made for one
// message. Receiving needs neither windows nor remote keys.
std::initializer_list<GpuWay> WaysOf(GpuUse use) {
  static constexpr std::initializer_list<GpuWay> kToSend = {GpuWay::kPeermem,
                                                            GpuWay::kDmabuf};
  static constexpr std::initializer_list<GpuWay> kToReceive = {
      GpuWay::kDmabuf, GpuWay::kPeermem};
  return use == GpuUse::kSend ? kToSend : kToReceive;
}

}  // namespace

absl::optional<GpuWay> GpuReach::way(GpuUse use) const {
  switch (known(use).state) {
    case State::kByDmabuf:
      return GpuWay::kDmabuf;
    case State::kByPeermem:
      return GpuWay::kPeermem;
    case State::kUnknown:
      break;
  }
  return absl::nullopt;
}

bool GpuReach::may_be(GpuUse use) const {
  return way(use).has_value() ||
         absl::ToUnixNanos(base::SteadyNow()) >= known(use).refused_until;
}

bool GpuReach::IsGivenUpLocked(GpuUse use) const {
  return !way(use).has_value() && known(use).tries >= kMaxTries;
}

absl::Status GpuReach::Check(GpuUse use) const {
  if (may_be(use)) return absl::OkStatus();
  base::MutexLock lock(&mu_);
  return known(use).why;
}

absl::Status GpuReach::Register(GpuUse use, Attempt attempt) {
  if (!way(use).has_value()) {
    base::MutexLock lock(&mu_);
    if (!may_be(use)) return known(use).why;
    if (!way(use).has_value()) return TryLocked(use, attempt);
  }
  absl::Status status = attempt(*way(use), /*is_trial=*/false);
  if (!status.ok()) {
    base::MutexLock lock(&mu_);
    last_failure_ = status;
  }
  return status;
}

absl::Status GpuReach::TryLocked(GpuUse use, Attempt attempt) {
  Known& tried = known(use);
  std::string why;
  for (const GpuWay way : WaysOf(use)) {
    absl::Status status = attempt(way, /*is_trial=*/true);
    if (status.ok()) {
      tried.state =
          way == GpuWay::kDmabuf ? State::kByDmabuf : State::kByPeermem;
      return status;
    }
    absl::StrAppend(&why, why.empty() ? "" : "; ", NameOf(way), ": ",
                    status.message());
  }
  // Replaces the code of the error, because the caller may react to the
  // original code by freeing regions and retrying.
  tried.why = absl::FailedPreconditionError(why);
  if (++tried.tries >= kMaxTries) {
    tried.refused_until = absl::ToUnixNanos(base::SteadyNow() + pause_);
  }
  return tried.why;
}

std::string GpuReach::Describe(bool with_windows) const {
  base::MutexLock lock(&mu_);
  const absl::string_view to_send =
      with_windows ? NameOf(way(GpuUse::kSend)) : "";
  const absl::string_view to_receive = NameOf(way(GpuUse::kReceive));
  const bool is_known = !to_send.empty() || !to_receive.empty();
  std::string text = is_known ? "GPUDirect" : "memory of GPUs staged";
  if (is_known && to_send == to_receive) {
    absl::StrAppend(&text, " by ", to_send);
  } else {
    if (!to_send.empty()) absl::StrAppend(&text, " by ", to_send, " to send");
    if (!to_send.empty() && !to_receive.empty()) text += ',';
    if (!to_receive.empty()) {
      absl::StrAppend(&text, " by ", to_receive, " for destinations");
    }
  }
  const bool sends_none = with_windows && IsGivenUpLocked(GpuUse::kSend);
  if (sends_none)
    absl::StrAppend(&text, ", not to send: ", send_.why.message());
  if (IsGivenUpLocked(GpuUse::kReceive)) {
    absl::StrAppend(&text, ", not for destinations: ", receive_.why.message());
  } else if (!is_known && !sends_none) {
    return "";
  }
  if (!last_failure_.ok()) {
    absl::StrAppend(&text, ", not of all memory: ", last_failure_.message());
  }
  return text;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
