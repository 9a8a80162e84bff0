#include "tests/ps/replication/world.h"

#include <array>
#include <cmath>

namespace penstock::ps::replication {

World::World(uint64_t seed)
    : dice_(seed),
      has_wild_clocks_(dice_.Chance(20)),
      loss_(std::array<uint64_t, 4>{0, 1, 10, 30}[dice_.Below(4)]),
      repeat_(dice_.Chance(50) ? 10 : 0),
      latency_(absl::Milliseconds(std::array{1, 10, 100}[dice_.Below(3)])) {}

absl::Duration World::Draw(absl::Duration most) {
  return most * std::exp2(-0.01 * static_cast<double>(dice_.Below(1000)));
}

void World::After(absl::Duration delay, std::function<void()> event) {
  events_.emplace(std::make_pair(now_ + delay, next_event_++),
                  std::move(event));
}

void World::RunOne() {
  const auto first = events_.begin();
  now_ = first->first.first;
  const std::function<void()> event = std::move(first->second);
  events_.erase(first);
  event();
}

void World::Send(const std::string& from, const std::string& to,
                 std::function<void()> deliver) {
  if (is_fair_) return After(absl::Milliseconds(1), std::move(deliver));
  const auto cut = cuts_.find({from, to});
  if ((cut != cuts_.end() && now_ < cut->second) || dice_.Chance(loss_)) {
    return Count("message lost");
  }
  if (dice_.Chance(repeat_)) {
    Count("message repeated");
    After(Draw(absl::Seconds(20)), deliver);
  }
  const bool is_late = dice_.Chance(2);
  After(Draw(is_late ? absl::Seconds(20) : latency_), std::move(deliver));
}

void World::Cut(const std::string& from, const std::string& to,
                absl::Duration time) {
  Count("link cut");
  cuts_[{from, to}] = now_ + time;
}

void World::EndFaults() {
  is_fair_ = true;
  cuts_.clear();
}

void World::Fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

HostClock::HostClock(World* world)
    : world_(world),
      speed_(world->has_wild_clocks()
                 ? 0.5 + 0.001 * static_cast<double>(world->dice().Below(1000))
                 : 0.995 +
                       1e-5 * static_cast<double>(world->dice().Below(1000))),
      offset_(absl::Seconds(world->dice().Below(1000000))),
      since_(world->now()) {}

absl::Time HostClock::Now() {
  return absl::UnixEpoch() + offset_ + (world_->now() - since_) * speed_;
}

}  // namespace penstock::ps::replication
