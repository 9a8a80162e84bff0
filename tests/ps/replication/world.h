// The time and the network of a simulated cluster.

#ifndef PENSTOCK_TESTS_PS_REPLICATION_WORLD_H_
#define PENSTOCK_TESTS_PS_REPLICATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "tests/ps/simulation/dice.h"

namespace penstock::ps::replication {

// Runs events in the order of their times. Delivers messages between named
// places. A message may be late, delivered twice, reordered or lost.
class World {
 public:
  explicit World(uint64_t seed);

  Dice& dice() { return dice_; }
  absl::Time now() const { return now_; }
  // Returns a random duration up to `most`, small ones as often as large ones.
  absl::Duration Draw(absl::Duration most);

  void After(absl::Duration delay, std::function<void()> event);
  void RunOne();

  void Send(const std::string& from, const std::string& to,
            std::function<void()> deliver);
  // Stops all messages from `from` to `to` for a while.
  void Cut(const std::string& from, const std::string& to, absl::Duration time);
  // Ends the faults. Messages then arrive soon, and exactly once.
  void EndFaults();
  bool is_fair() const { return is_fair_; }
  // True if clocks jump and differ by more than a lease allows.
  bool has_wild_clocks() const { return has_wild_clocks_; }

  // Records the first error.
  void Fail(const std::string& what);
  const std::string& error() const { return error_; }
  void Count(const std::string& what) { ++counts_[what]; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

 private:
  using Link = std::pair<std::string, std::string>;

  Dice dice_;
  absl::Time now_ = absl::UnixEpoch();
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> events_;
  uint64_t next_event_ = 0;
  std::map<Link, absl::Time> cuts_;
  const bool has_wild_clocks_;
  const uint64_t loss_;    // percent
  const uint64_t repeat_;  // percent
  const absl::Duration latency_;
  bool is_fair_ = false;
  std::string error_;
  std::map<std::string, uint64_t> counts_;
};

// The clock of one host. Runs at its own speed, and jumps.
class HostClock {
 public:
  explicit HostClock(World* world);

  absl::Time Now();
  void Jump(absl::Duration by) { offset_ += by; }
  // Returns the true duration of a wait for `time` by this clock.
  absl::Duration Real(absl::Duration time) const { return time / speed_; }

 private:
  World* const world_;
  double speed_;
  absl::Duration offset_;
  absl::Time since_;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_TESTS_PS_REPLICATION_WORLD_H_
