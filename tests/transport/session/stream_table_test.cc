#include "transport/session/stream_table.h"

#include <memory>
#include <set>

#include "gtest/gtest.h"

namespace penstock {
namespace session {
namespace {

TEST(StreamTable, FindsWhatIsThere) {
  StreamTable table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(1), nullptr);
  Stream* const first = table.Add(1, 10, 10);
  Stream* const second = table.Add(2, 10, 10);
  EXPECT_EQ(table.Find(1), first);
  EXPECT_EQ(table.Find(1), first);
  EXPECT_EQ(table.Find(2), second);
  EXPECT_EQ(table.Find(3), nullptr);
  EXPECT_EQ(table.Find(2), second);
  table.Erase(1);
  EXPECT_EQ(table.Find(1), nullptr);
  EXPECT_EQ(table.Find(2), second);
  table.Erase(2);
  EXPECT_EQ(table.Find(2), nullptr);
  table.Erase(2);
  EXPECT_TRUE(table.empty());
}

TEST(StreamTable, AnIdThatWasMissedIsFoundOnceItIsThere) {
  StreamTable table;
  EXPECT_EQ(table.Find(7), nullptr);
  Stream* const stream = table.Add(7, 10, 10);
  EXPECT_EQ(table.Find(7), stream);
}

std::unique_ptr<const memory::Payload> Owning(
    const std::shared_ptr<int>& owner) {
  return std::make_unique<const memory::Payload>(memory::Bytes{
      reinterpret_cast<const uint8_t*>(owner.get()), sizeof(int), owner});
}

TEST(StreamTable, StreamsInMemoryOfOthersAreFresh) {
  StreamTable table;
  auto owner = std::make_shared<int>();
  Stream* const old = table.Add(1, 10, 10);
  old->wants_message = old->draining = true;
  old->reset = absl::UnavailableError("gone");
  old->inbox.Add(protocol::Inbox::Kind::kMessage).message = Owning(owner);
  table.Erase(1);
  EXPECT_EQ(owner.use_count(), 1);
  Stream* const fresh = table.Add(2, 10, 10);
  EXPECT_EQ(fresh, old);  // the same memory again
  EXPECT_FALSE(fresh->wants_message || fresh->draining);
  EXPECT_FALSE(fresh->reset.has_value());
  EXPECT_TRUE(fresh->inbox.empty());
}

TEST(StreamTable, EndsWithItsStreams) {
  auto owner = std::make_shared<int>();
  {
    StreamTable table;
    for (uint32_t id = 1; id <= 10; ++id) {
      table.Add(id, 10, 10)
          ->inbox.Add(protocol::Inbox::Kind::kMessage)
          .message = Owning(owner);
    }
    for (uint32_t id = 1; id <= 8; ++id) table.Erase(id);
    std::set<uint32_t> left;
    left.insert(table.first_id());
    table.Erase(table.first_id());
    left.insert(table.first_id());
    EXPECT_EQ(left, (std::set<uint32_t>{9, 10}));
  }
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace session
}  // namespace penstock
