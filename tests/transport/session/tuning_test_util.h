// Two sessions over a fake fast path with latency and bandwidth, and a clock
// that the test advances.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_TUNING_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_TUNING_TEST_UTIL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fake/line.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace session {

using fabric::fake::Speed;

// A clock that only the test advances.
class ManualClock {
 public:
  uint64_t now_ns() const { return now_ns_; }
  void AdvanceTo(uint64_t now_ns) { now_ns_ = std::max(now_ns_, now_ns); }
  // Does `work`, which takes `ns`. All of the time passes between the first and
  // the second time that `work` reads the clock.
  template <typename Work>
  void Spend(uint64_t ns, Work work) {
    pending_ns_ = ns;
    work();
    now_ns_ += pending_ns_;
    pending_ns_ = 0;
  }
  uint64_t Read() {
    const uint64_t read = now_ns_;
    now_ns_ += pending_ns_;
    pending_ns_ = 0;
    return read;
  }

 private:
  uint64_t now_ns_ = 1000;
  uint64_t pending_ns_ = 0;
};

// The number of times that the sender's eager limit and the receiver's chunk
// size have changed.
struct Changes {
  int eager = 0;
  int chunk = 0;
};

// The CPU cost of sending, in addition to the link.
struct Costs {
  double copy_ns_per_byte = 0;
  uint64_t announce_ns = 0;
};

// A fixture whose fast path starts with eager messages up to 12 KiB, and pieces
// of 16 KiB, four in parallel.
class TuningSimulation : public SessionTest {
 protected:
  TuningSimulation();

  void Begin(const Speed& to_server, const Speed& to_client);
  void SetSpeed(Side from, const Speed& speed);
  // Sends `count` messages of random sizes. Sends each message after the
  // previous one was received and read.
  Changes Send(Side from, int count, size_t least, size_t most);

  // Sends messages with four in flight at any time. Returns the number of
  // changes of the receiver's chunk size.
  int SendWithoutPause(Side from, int count, size_t least, size_t most);

  uint64_t chunk(Side reader) {
    return peer(reader)->path().Describe().chunk_bytes;
  }
  uint64_t eager(Side sender) {
    return peer(sender)->path().Describe().eager_max_bytes;
  }
  size_t Random(size_t least, size_t most) {
    return least + random_() % (most - least + 1);
  }
  double RandomFactor(double least, double most) {
    return least + (most - least) * (random_() % 10000) / 10000;
  }

  Costs costs_;
  // The noise: before each message, latency and bandwidth in both directions
  // change by a random factor of up to this value.
  double noise_ = 1;
  // Delays one message in this many, by a hundred times the latency.
  int delayed_ = 0;

 private:
  void RunInTime();
  void Disturb(int message);
  void SendOne(Side from, size_t size);

  ManualClock clock_;
  std::mt19937 random_{1};
  Speed speeds_[2];
  memory::Block bytes_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_TUNING_TEST_UTIL_H_
