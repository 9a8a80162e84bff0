#include "transport/protocol/inbox.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace protocol {
namespace {

using Kind = Inbox::Kind;

Inbox::Item Ready(Kind kind) {
  Inbox::Item item;
  item.kind = kind;
  return item;
}

memory::Payload OfSize(size_t size) {
  return memory::Payload(memory::AllocateBlock(size).value().AsBytes());
}

void Add(Inbox* inbox, Inbox::Item item) {
  Inbox::Item& added = inbox->Add(item.kind);
  item.id = added.id;
  added = std::move(item);
}

TEST(Inbox, IsEmptyAtFirst) {
  Inbox inbox;
  Inbox::Item item;
  EXPECT_FALSE(inbox.Take(&item));
  EXPECT_FALSE(inbox.Complete(1, OfSize(1)));
}

TEST(Inbox, AnItemIsPlainAndReadyUntilItIsFilledIn) {
  Inbox inbox;
  inbox.Add(Kind::kMessage);
  Inbox::Item item;
  ASSERT_TRUE(inbox.Take(&item));
  EXPECT_FALSE(item.compressed);
  EXPECT_EQ(item.bytes, "");
  EXPECT_EQ(item.message, nullptr);
  EXPECT_EQ(item.length, 0u);
}

TEST(Inbox, ItemsComeOutInOrder) {
  Inbox inbox;
  const Kind kinds[] = {Kind::kHeaders, Kind::kMessage, Kind::kTooLarge,
                        Kind::kHalfClose, Kind::kTrailers};
  for (Kind kind : kinds) Add(&inbox, Ready(kind));
  Inbox::Item item;
  for (Kind kind : kinds) {
    ASSERT_TRUE(inbox.Take(&item));
    EXPECT_EQ(item.kind, kind);
  }
  EXPECT_FALSE(inbox.Take(&item));
}

TEST(Inbox, AMessageIsWhatWasReadOrWhatCameEagerly) {
  Inbox::Item eager = Ready(Kind::kMessage);
  eager.bytes = "eager";
  const memory::Payload of_eager = Inbox::MessageOf(eager);
  ASSERT_EQ(of_eager.pieces().size(), 1u);
  const memory::Bytes& bytes = of_eager.pieces()[0];
  EXPECT_EQ(std::string(bytes.data, bytes.data + bytes.size), "eager");
  EXPECT_EQ(bytes.owner, nullptr);
  Inbox::Item read = Ready(Kind::kMessage);
  read.message = std::make_unique<const memory::Payload>(OfSize(100));
  const uint8_t* const data = read.message->pieces()[0].data;
  const memory::Payload of_read = Inbox::MessageOf(read);
  ASSERT_EQ(of_read.pieces().size(), 1u);
  EXPECT_EQ(of_read.pieces()[0].data, data);
  EXPECT_EQ(of_read.size(), 100u);
  EXPECT_NE(of_read.pieces()[0].owner, nullptr);
}

TEST(Inbox, MessageThatIsBeingReadHoldsBackTheRest) {
  Inbox inbox;
  Add(&inbox, Ready(Kind::kHeaders));
  inbox.AddAnnounced(7);
  Add(&inbox, Ready(Kind::kTrailers));
  Inbox::Item item;
  EXPECT_TRUE(inbox.Take(&item));
  EXPECT_FALSE(inbox.Take(&item));
  EXPECT_TRUE(inbox.Complete(7, OfSize(9)));
  ASSERT_TRUE(inbox.Take(&item));
  EXPECT_EQ(item.kind, Kind::kMessage);
  EXPECT_EQ(item.message->size(), 9u);
  ASSERT_TRUE(inbox.Take(&item));
  EXPECT_EQ(item.kind, Kind::kTrailers);
}

TEST(Inbox, MessagesMayBeReadInAnyOrder) {
  Inbox inbox;
  for (uint64_t id : {1, 2, 3}) inbox.AddAnnounced(id);
  Inbox::Item item;
  EXPECT_TRUE(inbox.Complete(3, OfSize(30)));
  EXPECT_TRUE(inbox.Complete(2, OfSize(20)));
  EXPECT_FALSE(inbox.Take(&item));
  EXPECT_TRUE(inbox.Complete(1, OfSize(10)));
  for (size_t size : {10, 20, 30}) {
    ASSERT_TRUE(inbox.Take(&item));
    EXPECT_EQ(item.message->size(), size);
  }
}

TEST(Inbox, UnknownOrReadMessageIsNotCompleted) {
  Inbox inbox;
  inbox.AddAnnounced(1);
  EXPECT_FALSE(inbox.Complete(2, OfSize(1)));
  EXPECT_TRUE(inbox.Complete(1, OfSize(1)));
  EXPECT_FALSE(inbox.Complete(1, OfSize(2)));
  Inbox::Item item;
  ASSERT_TRUE(inbox.Take(&item));
  EXPECT_EQ(item.message->size(), 1u);
}

TEST(Inbox, MessageIsFoundAmongWhatIsReady) {
  Inbox inbox;
  Add(&inbox, Ready(Kind::kMessage));
  inbox.AddAnnounced(4);
  inbox.Add(Kind::kMessage);
  inbox.Add(Kind::kMessage);
  inbox.AddAnnounced(9);
  inbox.Add(Kind::kTrailers);
  EXPECT_TRUE(inbox.Complete(9, OfSize(90)));
  EXPECT_FALSE(inbox.Complete(5, OfSize(50)));
  EXPECT_TRUE(inbox.Complete(4, OfSize(40)));
  std::vector<size_t> sizes;
  Inbox::Item item;
  while (inbox.Take(&item)) sizes.push_back(Inbox::MessageOf(item).size());
  EXPECT_EQ(sizes, (std::vector<size_t>{0, 40, 0, 0, 90, 0}));
}

// Tests eager messages. They have no id, and must not be confused with
// announcement 0.
TEST(Inbox, ReadyItemsAreNeverCompleted) {
  Inbox inbox;
  Add(&inbox, Ready(Kind::kMessage));
  EXPECT_FALSE(inbox.Complete(0, OfSize(1)));
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
