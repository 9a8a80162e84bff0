// Tests a peer that announces so many messages that their reads must wait. If
// all reads fail at once, the reader must not recurse once for each read.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/message_reader_test_util.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {
namespace {

// The number of messages that fit into the windows of two streams. Each message
// counts as one byte plus 64.
constexpr uint64_t kMany = 2 * 4 * 1024 * 1024 / 65;

// Makes all messages wait, because the first uses up the budget. Then breaks
// the lifeline, so that each of the waiting reads ends as it begins.
TEST_F(MessageReaderTest, AnyNumberOfReadsMayFailAtOnce) {
  reader_->LoseFastPath();
  Begin(1, Expose(1, 10000));
  wire::Announce announce;
  announce.length = 1;
  announce.regions.push_back({0, {{1, 1, 1}}});
  for (announce.id = 2; announce.id <= kMany; ++announce.id) {
    Begin(1, announce);
  }
  lifeline_.DropOneSide(Side::kB);
  Run();
  EXPECT_EQ(Take().size(), 2 * kMany);  // "released" and "failed" for each
}

}  // namespace
}  // namespace session
}  // namespace penstock
