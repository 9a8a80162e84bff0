// Tests messages that are read into memory of the program: the destination of
// each part, and how long a device may write there.

#include "transport/memory/destinations.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "gtest/gtest.h"
#include "tests/transport/session/message_reader_test_util.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/session/message_reader.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {
namespace {

using memory::Destination;
using memory::Destinations;

class DestinationsTest : public MessageReaderTest {
 protected:
  static LinkOptions Options(bool can_divert) {
    LinkOptions options;
    options.min_destination_bytes = 3;
    options.can_divert = can_divert;
    return options;
  }
  explicit DestinationsTest(bool can_divert = false)
      : MessageReaderTest(Options(can_divert)) {
    keeps_ = true;
  }

  // Returns memory that is freed when nobody may write to it any longer.
  uint8_t* NewMemory(size_t size) {
    auto memory = std::make_shared<std::vector<uint8_t>>(size, 'Z');
    uint8_t* const data = memory->data();
    owned_.push_back(std::move(memory));
    return data;
  }
  void Post(std::vector<Destination> ranges) {
    using Owned = std::vector<std::shared_ptr<std::vector<uint8_t>>>;
    auto owner = std::make_shared<const Owned>(std::exchange(owned_, Owned()));
    owner_ = owner;
    destinations_ = std::make_shared<Destinations>(
        std::move(ranges), std::move(owner),
        Destinations::Registered::kForOneMessage);
  }
  // Posts a destination of each size.
  void PostSizes(const std::vector<size_t>& sizes) {
    std::vector<Destination> ranges;
    for (size_t size : sizes) ranges.push_back({NewMemory(size), size});
    places_ = ranges;
    Post(std::move(ranges));
  }

  static memory::Payload PayloadOf(const std::vector<size_t>& sizes) {
    memory::Payload payload;
    for (size_t size : sizes) {
      const std::string text =
          Letters(size, static_cast<uint32_t>(payload.size() + size));
      payload.Append(
          memory::CopyBytes(
              {reinterpret_cast<const uint8_t*>(text.data()), text.size()})
              .value());
    }
    return payload;
  }
  void BeginPosted(uint64_t id, const memory::Payload& payload) {
    const wire::Announce announce =
        Expose(id, payload, payload.pieces().size());
    const absl::Status status = reader_->Begin(1, announce, destinations_);
    EXPECT_TRUE(status.ok()) << status;
  }
  // Returns the indices of the destinations in places_ that hold a piece of the
  // message, in ascending order.
  std::vector<size_t> Landed(const memory::Payload& message) const {
    std::vector<size_t> landed;
    for (size_t i = 0; i < places_.size(); ++i) {
      for (const memory::Bytes& piece : message.pieces()) {
        if (piece.data != places_[i].data) continue;
        EXPECT_EQ(piece.size, places_[i].size);
        landed.push_back(i);
      }
    }
    return landed;
  }
  // Reads a message with `parts` into destinations with the sizes `places`.
  std::vector<size_t> LandedOf(const std::vector<size_t>& parts,
                               const std::vector<size_t>& places) {
    const memory::Payload payload = PayloadOf(parts);
    PostSizes(places);
    BeginPosted(++id_, payload);
    Run();
    if (kept_.size() != 1) {
      ADD_FAILURE() << "no message";
      return {};
    }
    const memory::Payload message = std::move(kept_.back());
    kept_.clear();
    EXPECT_TRUE(ToString(message) == ToString(payload));
    EXPECT_EQ(fast_.prepared(Side::kB), 0) << "none of it is written to now";
    reader_->Consumed(payload.size());
    return Landed(message);
  }

  std::vector<std::shared_ptr<std::vector<uint8_t>>> owned_;
  std::vector<Destination> places_;
  std::shared_ptr<Destinations> destinations_;
  std::weak_ptr<const void> owner_;
  uint64_t id_ = 0;
};

using Sizes = std::vector<size_t>;

TEST_F(DestinationsTest, PartsLandInPlacesOfTheirSize) {
  EXPECT_EQ(LandedOf({10, 1000, 20, 2000}, {1000, 2000}), (Sizes{0, 1}));
  EXPECT_EQ(LandedOf({1000}, {1000}), (Sizes{0}));
  EXPECT_EQ(LandedOf({1000, 1000, 1000}, {1000, 1000, 1000}), (Sizes{0, 1, 2}));
  EXPECT_EQ(LandedOf({9000, 9001}, {9000, 9001}), (Sizes{0, 1}));
}

TEST_F(DestinationsTest, PlacesMayComeInAnotherOrder) {
  EXPECT_EQ(LandedOf({10, 1000, 20, 2000}, {2000, 1000}), (Sizes{0, 1}));
}

TEST_F(DestinationsTest, PlacesOfOtherSizesAreLeft) {
  EXPECT_EQ(LandedOf({10, 1000, 20}, {999, 1001, 1030, 0}), Sizes());
  EXPECT_EQ(LandedOf({10, 1000, 20, 2000}, {999, 2000}), (Sizes{1}));
  EXPECT_EQ(LandedOf({1000, 1000}, {1000}), (Sizes{0}));
  EXPECT_EQ(LandedOf({1000}, {1000, 1000}), (Sizes{0}));
}

TEST_F(DestinationsTest, PathMayRefusePlaces) {
  EXPECT_EQ(LandedOf({2, 3}, {2, 3}), (Sizes{1}));
}

TEST_F(DestinationsTest, LifelineUsesNone) {
  reader_->LoseFastPath();
  EXPECT_EQ(LandedOf({1000, 2000}, {1000, 2000}), Sizes());
  EXPECT_FALSE(destinations_->is_taken());
}

// Tests that bytes keep their alignment in the remaining message.
TEST_F(DestinationsTest, RestLiesAsItDoesInTheMessage) {
  const memory::Payload payload = PayloadOf({8, 1000, 24, 1001, 7, 500});
  PostSizes({1000, 1001});
  BeginPosted(7, payload);
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  size_t at = 0;
  ASSERT_EQ(kept_[0].pieces().size(), 5u);
  for (const memory::Bytes& piece : kept_[0].pieces()) {
    if (piece.size < 1000) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(piece.data) % 64, at % 64);
    }
    at += piece.size;
  }
}

TEST_F(DestinationsTest, MessageHasThemUntilItIsDropped) {
  PostSizes({1000});
  BeginPosted(7, PayloadOf({1000, 8}));
  Run();
  EXPECT_TRUE(destinations_->is_taken());
  BeginPosted(8, PayloadOf({1000, 9}));
  Run();
  ASSERT_EQ(kept_.size(), 2u);
  EXPECT_EQ(Landed(kept_[1]), Sizes());
  kept_.clear();
  EXPECT_FALSE(destinations_->is_taken());
  BeginPosted(9, PayloadOf({1000, 10}));
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(Landed(kept_[0]), Sizes{0});
}

TEST_F(DestinationsTest, AbandonedReadHasThemUntilItEnds) {
  PostSizes({9000});
  BeginPosted(7, PayloadOf({9000}));
  destinations_.reset();
  reader_->Abandon(1);
  fast_.Step();
  EXPECT_FALSE(owner_.expired());
  Run();
  EXPECT_TRUE(owner_.expired());
  EXPECT_EQ(fast_.prepared(Side::kB), 0);
}

class DivertedDestinationsTest : public DestinationsTest {
 protected:
  DivertedDestinationsTest() : DestinationsTest(/*can_divert=*/true) {}
};

TEST_F(DivertedDestinationsTest, AbandonedReadLeavesThemImmediately) {
  PostSizes({9000});
  BeginPosted(7, PayloadOf({9000}));
  fast_.Step();
  uint8_t* const data = places_[0].data;
  EXPECT_NE(data[0], 'Z') << "the first chunk has not come";
  reader_->Abandon(1);
  EXPECT_FALSE(destinations_->is_taken());
  std::fill_n(data, 9000, 'F');
  Run();
  EXPECT_EQ(std::count(data, data + 9000, 'F'), 9000);
  EXPECT_EQ(Take(), Lines{"released 7"});
  EXPECT_EQ(reader_->in_use(), 0u);
}

// Tests that a lost path keeps the destinations until the path is destroyed.
TEST_F(DestinationsTest, LostPathHasThemUntilItIsDestroyed) {
  PostSizes({9000});
  const memory::Payload payload = PayloadOf({10, 9000});
  BeginPosted(7, payload);
  MessageReader::Filled filled = reader_->LoseFastPath();
  while (lifeline_.Step()) {
  }
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(Landed(kept_[0]), Sizes());
  EXPECT_TRUE(destinations_->is_taken());
  EXPECT_EQ(places_[0].data[0], 'Z');
  while (fast_.Step()) {
  }
  EXPECT_NE(places_[0].data[0], 'Z') << "the test has no late write";
  EXPECT_TRUE(ToString(kept_[0]) == ToString(payload));
  readers_[1].reset();
  filled.clear();
  EXPECT_FALSE(destinations_->is_taken());
}

TEST_F(DestinationsTest, FailedReadStartsOverElsewhere) {
  PostSizes({9000});
  const memory::Payload payload = PayloadOf({10, 9000});
  fast_.FailNthRead(Side::kB, 3);
  BeginPosted(7, payload);
  Run();
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(Landed(kept_[0]), Sizes());
  EXPECT_TRUE(ToString(kept_[0]) == ToString(payload));
  EXPECT_FALSE(destinations_->is_taken());
}

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
