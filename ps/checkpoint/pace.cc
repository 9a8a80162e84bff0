#include "ps/checkpoint/pace.h"

#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/time/clock.h"

namespace penstock::ps::checkpoint {
namespace {

absl::Duration ThreadTime() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace

constexpr absl::Duration Pace::kShortest;
constexpr absl::Duration Pace::kLongest;

Pace::System Pace::RealSystem() {
  return {ThreadTime, [](absl::Duration time) { absl::SleepFor(time); }};
}

Pace::Pace(double share, std::function<uint64_t()> pushes, System system)
    : rest_for_work_(std::max(0.0, 1 / share - 1)),
      pushes_(std::move(pushes)),
      system_(std::move(system)),
      worked_until_(system_.processor_time()),
      last_pushes_(pushes_()) {}

void Pace::Rest() {
  const absl::Duration rest =
      (system_.processor_time() - worked_until_) * rest_for_work_;
  if (rest < kShortest) return;
  const uint64_t pushes = pushes_();
  if (pushes != last_pushes_) system_.sleep(std::min(rest, kLongest));
  last_pushes_ = pushes;
  worked_until_ = system_.processor_time();
}

void Pace::Hurry() { worked_until_ = system_.processor_time(); }

double ShareOfOne(double share_of_all) {
  return share_of_all * std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace penstock::ps::checkpoint
