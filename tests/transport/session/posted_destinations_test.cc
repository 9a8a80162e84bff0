// Tests destinations that are posted to a session's stream: which parts are
// read into them, attacks of a hostile peer, and destinations that a lost path
// keeps.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/session/session.h"
#include "transport/wire/announce.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using memory::Destinations;
using wire::FrameType;

constexpr size_t kSize = 9000;

LinkOptions WithDestinations() {
  LinkOptions options;
  options.min_destination_bytes = 1;
  return options;
}

// The memory for one part.
struct Place {
  Place() : memory(kSize, 'Z') {
    destinations = std::make_shared<Destinations>(
        std::vector<memory::Destination>{{memory.data(), memory.size()}},
        nullptr, Destinations::Registered::kForOneMessage);
  }
  bool is_untouched() const {
    return std::all_of(memory.begin(), memory.end(),
                       [](uint8_t byte) { return byte == 'Z'; });
  }
  std::vector<uint8_t> memory;
  std::shared_ptr<Destinations> destinations;
};

memory::Bytes BytesOf(const std::string& text) {
  return memory::CopyBytes(
             {reinterpret_cast<const uint8_t*>(text.data()), text.size()})
      .value();
}

class PostedDestinationsTest : public SessionTest {
 protected:
  void OpenStream() {
    fast_options_ = WithDestinations();
    OpenWithPath();
    client_->Open(1);
    client_->Flush();
    Run();
    server_->stream(1).Take();
    server_->stream(1).keeps = true;
  }
  void Send(const std::vector<std::string>& pieces) {
    memory::Payload payload;
    for (const std::string& piece : pieces) payload.Append(BytesOf(piece));
    (*client_)->output().SendMessage(1, std::move(payload),
                                     /*compressed=*/false);
    client_->Flush();
  }
  const std::vector<memory::Payload>& received() {
    return server_->stream(1).kept;
  }

  Place place_;
};

TEST_F(PostedDestinationsTest, FirstLargeMessageLandsThere) {
  OpenStream();
  (*server_)->input().PostDestinations(1, place_.destinations);
  Send({"a short one"});
  Send({Letters(kSize), "and more"});
  Send({Letters(kSize, 2)});
  Run();
  ASSERT_EQ(received().size(), 3u);
  EXPECT_EQ(received()[1].pieces()[0].data, place_.memory.data());
  EXPECT_TRUE(ToString(received()[1]) == Letters(kSize) + "and more");
  EXPECT_TRUE(ToString(received()[2]) == Letters(kSize, 2));
  server_->stream(1).kept.clear();
  EXPECT_FALSE(place_.destinations->is_taken());
}

TEST_F(PostedDestinationsTest, StreamThatEndsHasThemNoMore) {
  OpenStream();
  (*server_)->input().PostDestinations(1, place_.destinations);
  (*server_)->streams().Detach(1);
  Send({Letters(kSize)});
  Run();
  EXPECT_EQ(place_.destinations.use_count(), 1);
  EXPECT_TRUE(place_.is_untouched());
  (*server_)->input().PostDestinations(99, place_.destinations);
  EXPECT_EQ(place_.destinations.use_count(), 1) << "no such stream";
}

// Tests a lost path that a polling thread holds, perhaps for longer than the
// session.
TEST_F(PostedDestinationsTest, LostPathThatSomebodyHoldsKeepsThem) {
  OpenStream();
  (*server_)->input().PostDestinations(1, place_.destinations);
  std::shared_ptr<fabric::Endpoint> held = (*server_)->path().endpoint();
  Send({Letters(kSize)});
  Step(&fast(), kServer);
  ASSERT_TRUE(place_.destinations->is_taken());
  fast().DropOneSide(kClient, absl::UnavailableError("cut"));
  Step(&fast(), kClient);
  StepAll(lifeline_.get(), kServer);
  Run();
  server_->Flush();
  ASSERT_EQ(received().size(), 1u);
  EXPECT_NE(received()[0].pieces()[0].data, place_.memory.data());
  EXPECT_TRUE(ToString(received()[0]) == Letters(kSize));
  EXPECT_TRUE(place_.destinations->is_taken());
  held.reset();
  EXPECT_FALSE(place_.destinations->is_taken());
}

TEST_F(PostedDestinationsTest, SessionThatIsDestroyedLeavesThemToItsPath) {
  OpenStream();
  (*server_)->input().PostDestinations(1, place_.destinations);
  std::shared_ptr<fabric::Endpoint> held = (*server_)->path().endpoint();
  Send({Letters(kSize)});
  Step(&fast(), kServer);
  ASSERT_TRUE(place_.destinations->is_taken());
  server_->Destroy();
  EXPECT_TRUE(place_.destinations->is_taken());
  held.reset();
  EXPECT_FALSE(place_.destinations->is_taken());
}

// A fixture whose announcements the test writes itself.
class HostileAnnouncementTest : public RawPeerTest {
 protected:
  HostileAnnouncementTest() : RawPeerTest(WithDestinations()) {
    Open();
    AddPath();
    raw_->Send(Header(FrameType::kHeaders, 1), "open");
    Run();
    (*peer_)->input().PostDestinations(1, place_.destinations);
    peer_->stream(1).keeps = true;
  }
  // Announces a message with parts on two paths: the fast path of the first
  // attempt, and the lifeline.
  void Announce(const std::vector<wire::AnnouncedPart>& fast,
                const wire::AnnouncedPart& slow) {
    wire::Announce announce;
    announce.id = 1;
    announce.length = slow.length;
    announce.regions = {{1, fast}, {0, {slow}}};
    raw_->Send(Header(FrameType::kAnnounce, 1),
               wire::EncodeAnnounce(announce, 2));
    Run();
  }
  // Exposes `size` bytes on `path`. The fast path does not know keys of the
  // lifeline.
  wire::AnnouncedPart Exposed(fabric::Endpoint* path, size_t size) {
    const auto exposure =
        path->Expose(memory::Payload(BytesOf(Letters(size))), 1).value();
    return {exposure.region[0].key, exposure.region[0].offset, size};
  }

  Place place_;
};

TEST_F(HostileAnnouncementTest, PartsThatCannotBeReadAreReadOverTheLifeline) {
  Announce({{77, 5, 10}, {78, 6, kSize}},
           Exposed(raw_->endpoint(), kSize + 10));
  ASSERT_EQ(peer_->stream(1).kept.size(), 1u);
  EXPECT_TRUE(ToString(peer_->stream(1).kept[0]) == Letters(kSize + 10));
  EXPECT_TRUE(place_.is_untouched());
  EXPECT_FALSE(place_.destinations->is_taken());
}

TEST_F(HostileAnnouncementTest, MessageThatCannotBeReadAtAllFreesThem) {
  Announce({{77, 5, 10}, {78, 6, kSize}}, {79, 0, kSize + 10});
  const Lines lines = peer_->stream(1).Take();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().find("reset UNAVAILABLE"), 0u) << lines.back();
  EXPECT_TRUE(place_.is_untouched());
  EXPECT_EQ(place_.destinations.use_count(), 1);
}

// Delivers only half of the message. The session writes to the destination, but
// must not deliver the message.
TEST_F(HostileAnnouncementTest, PartThatFailsAfterOthersHaveLandedFreesThem) {
  Announce({Exposed(raw_fast_->endpoint(), kSize), {78, 6, 10}},
           {79, 0, kSize + 10});
  EXPECT_TRUE(peer_->stream(1).kept.empty());
  EXPECT_FALSE(place_.destinations->is_taken());
  EXPECT_EQ(place_.destinations.use_count(), 1);
}

TEST_F(HostileAnnouncementTest, PartsBehindTheEndOfNumbersEndTheSession) {
  Announce({{7, UINT64_MAX - 4, 10}, {7, 5, kSize}},
           Exposed(raw_->endpoint(), kSize + 10));
  EXPECT_TRUE((*peer_)->closed());
  EXPECT_TRUE(place_.is_untouched());
  EXPECT_EQ(place_.destinations.use_count(), 1);
}

TEST_F(HostileAnnouncementTest, SamePartTwiceLandsOnce) {
  const wire::AnnouncedPart part = Exposed(raw_fast_->endpoint(), kSize);
  Announce({part, part}, {79, 0, 2 * kSize});
  ASSERT_EQ(peer_->stream(1).kept.size(), 1u);
  EXPECT_TRUE(ToString(peer_->stream(1).kept[0]) ==
              Letters(kSize) + Letters(kSize));
  EXPECT_EQ(peer_->stream(1).kept[0].pieces()[0].data, place_.memory.data());
  EXPECT_NE(peer_->stream(1).kept[0].pieces()[1].data, place_.memory.data());
}

}  // namespace
}  // namespace session
}  // namespace penstock
