// Random steps of a pair of movable streams.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_STREAM_RANDOM_STEPS_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_STREAM_RANDOM_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/stream/ends.h"

namespace penstock {
namespace event_engine {

// Returns a random number below its argument.
using Below = std::function<uint32_t(uint32_t)>;

// Takes 400 random steps with each of 300 pairs, and expects that no byte is
// lost or changed. `new_pair` draws the options of the pair's link.
inline void RunAtRandom(
    const std::function<std::unique_ptr<Pair>(const Below&)>& new_pair) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Below below = [&random](uint32_t limit) { return random() % limit; };
    const std::unique_ptr<Pair> pair = new_pair(below);
    for (int step = 0; step < 400; ++step) {
      pair->Step(below);
      ASSERT_TRUE(pair->status().ok())
          << "step " << step << ": " << pair->status();
    }
    ASSERT_TRUE(pair->Ends());
    ASSERT_TRUE(pair->status().ok()) << pair->status();
  }
}

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_STREAM_RANDOM_STEPS_H_
