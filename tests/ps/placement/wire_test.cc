#include "ps/placement/wire.h"

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

absl::Status Take(const std::string& text) {
  v1::PlacementMap message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return FromMessage(message).status();
}

bool IsInvalid(const absl::Status& status, const std::string& what) {
  return status.code() == absl::StatusCode::kInvalidArgument &&
         status.message().find(what) != absl::string_view::npos;
}

TEST(PlacementWireTest, MessageHasWhatTheMapHas) {
  const PlacementMap map = *PlacementMap::FromParts(
      7, {"a:1", "b:2"},
      {{{"dense", TableLayout::Kind::kDense, 10, 4},
        {{0, 6, 1}, {6, 4, 0}},
        {}},
       {{"sparse", TableLayout::Kind::kSparse, 0, 64}, {}, {1, 0, 1}}});
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  ASSERT_TRUE(printer.PrintToString(ToMessage(map), &text));
  EXPECT_EQ(text,
            "epoch: 7 servers: \"a:1\" servers: \"b:2\" "
            "tables { name: \"dense\" dense { rows: 10 row_bytes: 4 "
            "ranges { rows: 6 server: 1 } ranges { first_row: 6 rows: 4 } } } "
            "tables { name: \"sparse\" sparse { row_bytes: 64 "
            "shard_servers: 1 shard_servers: 0 shard_servers: 1 } } ");
  EXPECT_TRUE(Take(text).ok());
}

TEST(PlacementWireTest, WhatAPeerMayNotSayIsRefusedByTable) {
  const std::string head = "epoch: 1 servers: 'a' servers: 'b' ";
  EXPECT_TRUE(Take(head).ok());
  EXPECT_TRUE(IsInvalid(Take("epoch: 1"), "0 servers"));
  EXPECT_TRUE(IsInvalid(Take("servers: 'a'"), "epoch"));
  EXPECT_TRUE(IsInvalid(Take(head + "tables { name: 'x' }"),
                        "'x': it is neither dense nor sparse"));
  EXPECT_TRUE(IsInvalid(Take(head + "tables { dense { } }"), "its name"));
  EXPECT_TRUE(IsInvalid(Take(head + "tables { name: 'x' sparse { } }"), "'x'"));
  EXPECT_TRUE(
      IsInvalid(Take(head + "tables { name: 'x' sparse { shard_servers: 2 } }"),
                "'x': shard 0 is at server 2 of 2"));
  EXPECT_TRUE(
      IsInvalid(Take(head + "tables { name: 'x' dense { rows: 4 row_bytes: 4 "
                            "ranges { rows: 3 } ranges { first_row: 2 rows: 2 "
                            "server: 1 } } }"),
                "'x': a range begins at row 2, not at 3"));
  EXPECT_TRUE(IsInvalid(
      Take(head + "tables { name: 'x' dense { rows: 18446744073709551615 "
                  "row_bytes: 18446744073709551615 "
                  "ranges { rows: 18446744073709551615 } } }"),
      "'x'"));
}

TEST(PlacementWireTest, MapThatIsTooLargeIsRefused) {
  v1::PlacementMap message;
  message.set_epoch(1);
  message.add_servers("a");
  for (size_t i = 0; i <= PlacementMap::kMaxTables; ++i) message.add_tables();
  EXPECT_TRUE(IsInvalid(FromMessage(message).status(), "tables"));
  message.clear_tables();
  for (size_t i = 0; i <= PlacementMap::kMaxParts / PlacementMap::kMaxShards;
       ++i) {
    v1::PlacedTable* table = message.add_tables();
    table->set_name(std::string(i + 1, 'x'));
    for (size_t shard = 0; shard < PlacementMap::kMaxShards; ++shard) {
      table->mutable_sparse()->add_shard_servers(0);
    }
  }
  EXPECT_TRUE(IsInvalid(FromMessage(message).status(), "parts"));
  message.mutable_tables()->RemoveLast();
  EXPECT_TRUE(FromMessage(message).ok());
}

}  // namespace
}  // namespace penstock::ps
