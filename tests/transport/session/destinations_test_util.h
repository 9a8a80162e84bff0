// A message reader whose messages are read into memory of the program.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_DESTINATIONS_TEST_UTIL_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_DESTINATIONS_TEST_UTIL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/session/message_reader_test_util.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/session/message_reader.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {

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
  void Post(std::vector<memory::Destination> ranges) {
    using Owned = std::vector<std::shared_ptr<std::vector<uint8_t>>>;
    auto owner = std::make_shared<const Owned>(std::exchange(owned_, Owned()));
    owner_ = owner;
    destinations_ = std::make_shared<memory::Destinations>(
        std::move(ranges), std::move(owner),
        memory::Destinations::Registered::kForOneMessage);
  }
  // Posts a destination of each size.
  void PostSizes(const std::vector<size_t>& sizes) {
    std::vector<memory::Destination> ranges;
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
  std::vector<memory::Destination> places_;
  std::shared_ptr<memory::Destinations> destinations_;
  std::weak_ptr<const void> owner_;
  uint64_t id_ = 0;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_DESTINATIONS_TEST_UTIL_H_
