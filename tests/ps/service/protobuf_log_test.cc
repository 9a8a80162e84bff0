#include "ps/service/protobuf_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ps/wire/ps.pb.h"

namespace penstock::ps {
namespace {

TEST(ProtobufLogTest, PeersCannotFloodTheLog) {
  constexpr int kMessages = 5000;
  TakeProtobufLog();
  testing::internal::CaptureStderr();
  v1::Piece piece;
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_FALSE(piece.ParseFromString(std::string("\x0a\x01\xff")));
  }
  const std::string written = testing::internal::GetCapturedStderr();
  const auto lines = std::count(written.begin(), written.end(), '\n');
  EXPECT_GT(lines, 0);
  EXPECT_LT(lines, kMessages / 2);
  EXPECT_NE(written.find("UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace penstock::ps
