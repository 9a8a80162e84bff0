// Tests with random events that nothing is written to memory that is free.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "gtest/gtest.h"
#include "tests/transport/session/destinations_test_util.h"
#include "tests/transport/session/message_reader_test_util.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/session/message_reader.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {
namespace {

using memory::Destination;
using Sizes = std::vector<size_t>;

// Runs with random events, which a seed decides: announced messages, posted
// destinations and failing calls. Unused memory has a mark, and is freed with
// its owner. The test, or asan, thus notices every write to unused memory.
class RandomDestinationsTest : public DestinationsTest,
                               public ::testing::WithParamInterface<uint32_t> {
 protected:
  RandomDestinationsTest()
      : DestinationsTest(/*can_divert=*/GetParam() % 2 == 1),
        random_(GetParam()) {}

  size_t Size() {
    constexpr size_t kSizes[] = {1, 2, 3, 64, 100, 4096, 4097, 9000};
    return kSizes[random_() % 8];
  }
  bool OneIn(uint32_t n) { return random_() % n == 0; }

  void PostRandom() {
    std::vector<Destination> ranges;
    const size_t count = random_() % 6;
    for (size_t i = 0; i < count; ++i) {
      const size_t size = OneIn(10) ? 0 : Size();
      ranges.push_back({NewMemory(size), size});
      // Adds a second range that overlaps the first.
      if (size > 1 && OneIn(4)) {
        const size_t at = random_() % size;
        ranges.push_back(
            {ranges.back().data + at, 1 + random_() % (size - at)});
      }
    }
    places_ = ranges;
    Post(std::move(ranges));
  }
  void BeginRandom() {
    Sizes sizes(1 + random_() % 8);
    for (size_t& size : sizes) size = Size();
    const memory::Payload payload = PayloadOf(sizes);
    wire::Announce announce = Expose(++id_, payload, 1 + random_() % 8);
    if (OneIn(2)) {  // no part is next to another one
      announce.regions[0].parts.clear();
      for (const memory::Bytes& piece : payload.pieces()) {
        const auto apart = Expose(id_, memory::Payload(piece), 1);
        announce.regions[0].parts.push_back(apart.regions[0].parts[0]);
      }
    }
    expected_[id_] = ToString(payload);
    const absl::Status status =
        reader_->Begin(1 + random_() % 2, announce, destinations_);
    EXPECT_TRUE(status.ok()) << status;
  }
  void OnMessageRead(uint32_t, uint64_t id,
                     absl::StatusOr<memory::Payload> message,
                     uint64_t budgeted) override {
    reader_->Consumed(budgeted);
    if (!message.ok()) return;
    EXPECT_TRUE(ToString(*message) == expected_[id]) << "message " << id;
    Landed(*message);
    messages_.emplace_back(id, *std::move(message));
  }
  void DropMessages() {
    for (const auto& message : messages_) {
      EXPECT_TRUE(ToString(message.second) == expected_[message.first])
          << "message " << message.first << " has changed while it was held";
    }
    messages_.clear();
  }
  // Writes to the destinations if nobody uses them, as the program may.
  void MarkIfFree() {
    if (destinations_ == nullptr || destinations_->is_taken()) return;
    for (const Destination& place : places_) {
      std::fill_n(place.data, place.size, 'F');
    }
    is_marked_ = true;
  }
  void CheckMark() {
    if (!std::exchange(is_marked_, false) || destinations_ == nullptr) return;
    for (const Destination& place : places_) {
      for (size_t i = 0; i < place.size; ++i) {
        ASSERT_EQ(place.data[i], 'F') << "written to though it was free";
      }
    }
  }
  void DoSomething() {
    switch (random_() % 16) {
      case 0:
        return reader_->Abandon(1 + random_() % 2);
      case 1:
        return fast_.FailNthRead(Side::kB, 1 + random_() % 5);
      case 2:
        return DropMessages();
      case 3:
        if (!OneIn(4)) return;
        is_lost_ = true;
        for (auto& landing : reader_->LoseFastPath()) {
          filled_.push_back(std::move(landing));
        }
        return;
      case 4:
        if (OneIn(8)) Drop();
        return;
      case 5:
        // Makes the program release the destinations. The program does not look
        // at them afterwards.
        if (!OneIn(4)) return;
        destinations_.reset();
        places_.clear();  // the memory may be used for something else
        return;
      case 6:
        if (id_ < 4 && !is_dropped_) BeginRandom();
        return;
      default:
        if (OneIn(3) || !StepFast()) lifeline_.Step();
    }
  }
  void Drop() {
    is_dropped_ = true;
    fast_.Drop();
  }
  // Runs a step of the device, which also continues on a lost path.
  bool StepFast() {
    in_fast_ = true;
    const bool any = fast_.Step();
    in_fast_ = false;
    return any;
  }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    if (!in_fast_ || !is_lost_) MessageReaderTest::OnReadDone(cookie, status);
  }
  void OnBroken(const absl::Status& cause) override {
    if (!std::exchange(is_lost_, true)) MessageReaderTest::OnBroken(cause);
  }

  std::mt19937 random_;
  std::map<uint64_t, std::string> expected_;
  std::vector<std::pair<uint64_t, memory::Payload>> messages_;
  MessageReader::Filled filled_;
  bool is_marked_ = false;
  bool is_lost_ = false;
  bool is_dropped_ = false;
  bool in_fast_ = false;
};

TEST_P(RandomDestinationsTest, NothingIsWrittenToWhatIsFree) {
  fast_.SetReadOrder(Side::kB,
                     [this](size_t waiting) { return random_() % waiting; });
  PostRandom();
  BeginRandom();
  for (int i = 0; i < 100; ++i) {
    MarkIfFree();
    // Unless the event begins a read, unused destinations must not change.
    const uint64_t begun = id_;
    ASSERT_NO_FATAL_FAILURE(DoSomething());
    if (id_ == begun && destinations_ != nullptr &&
        !destinations_->is_taken()) {
      ASSERT_NO_FATAL_FAILURE(CheckMark());
    }
    is_marked_ = false;
  }
  while (StepFast() || lifeline_.Step()) {
  }
  EXPECT_EQ(reader_->pending_parts(), 0u) << "a message is stuck";
  readers_[1].reset();
  filled_.clear();
  DropMessages();
  EXPECT_TRUE(destinations_ == nullptr || !destinations_->is_taken());
  destinations_.reset();
  EXPECT_TRUE(owner_.expired()) << "somebody still holds the memory";
  EXPECT_EQ(fast_.prepared(Side::kB), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDestinationsTest,
                         ::testing::Range(1u, 301u));

}  // namespace
}  // namespace session
}  // namespace penstock
