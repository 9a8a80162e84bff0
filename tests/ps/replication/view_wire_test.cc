#include "ps/replication/view_wire.h"

#include <random>
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace penstock::ps::replication {
namespace {

View Example() { return {7, 3, {{{"a:1", 10}, {{"b:1", 11}}, {{"c:1", 12}}}}}; }

TEST(ViewWireTest, MessageHasWhatTheViewHas) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  ASSERT_TRUE(printer.PrintToString(ToMessage(Example()), &text));
  EXPECT_EQ(text,
            "run: 7 number: 3 shards { "
            "primary { server: \"a:1\" incarnation: 10 } "
            "backups { server: \"b:1\" incarnation: 11 } "
            "joiners { server: \"c:1\" incarnation: 12 } } ");
  EXPECT_TRUE(*FromBytes(ToBytes(Example())) == Example());
}

TEST(ViewWireTest, AViewWithAFlawIsRefused) {
  EXPECT_EQ(FromBytes("").status().code(), absl::StatusCode::kInvalidArgument);
  v1::ShardView message = ToMessage(Example());
  message.mutable_shards(0)->clear_primary();
  EXPECT_EQ(FromMessage(message).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ViewWireTest, AnyBytesAreAViewOrAnError) {
  std::mt19937_64 random(4711);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = ToBytes(Example());
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    bytes.resize(bytes.size() - random() % 4);
    const auto view = FromBytes(bytes);
    if (!view.ok()) {
      EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
    } else {
      EXPECT_TRUE(*FromBytes(ToBytes(*view)) == *view);
    }
  }
}

}  // namespace
}  // namespace penstock::ps::replication
