// Tests the description of a connection in channelz, which must be the same
// over each path.

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// Returns the first few sockets of this process, in order.
std::vector<std::string> Sockets() {
  std::vector<std::string> sockets;
  for (int id = 1; id < 1000; ++id) {
    char* json = grpc_channelz_get_socket(id);
    if (json == nullptr) continue;
    sockets.push_back(json);
    gpr_free(json);
  }
  return sockets;
}

// Returns NUMBER of "name":"NUMBER" in `json`, or 0, which channelz omits.
int NumberOf(const std::string& name, const std::string& json) {
  const std::string start = absl::StrCat("\"", name, "\":\"");
  const size_t at = json.find(start);
  if (at == std::string::npos) return 0;
  const size_t begin = at + start.size();
  int number = -1;
  (void)!absl::SimpleAtoi(json.substr(begin, json.find('"', begin) - begin),
                          &number);
  return number;
}

class ChannelzTest : public ServiceTest {
 protected:
  // Returns the two ends of the one connection, or none.
  static std::vector<std::string> Ends() {
    std::vector<std::string> ends;
    for (const std::string& socket : Sockets()) {
      if (NumberOf("streamsStarted", socket) > 0) ends.push_back(socket);
    }
    return ends;
  }
};

TEST_P(ChannelzTest, BothEndsCountCallsAndMessages) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Call call;
  auto stream = OpenStream(&call);
  EXPECT_TRUE(PingPong(stream.get()));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  Call cancelled;
  stream = OpenStream(&cancelled);
  cancelled.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
  ASSERT_TRUE(service_.AwaitCancelled(1));
  const std::vector<std::string> ends = Ends();
  ASSERT_EQ(ends.size(), 2u);
  for (const std::string& end : ends) {
    EXPECT_EQ(NumberOf("streamsStarted", end), 7) << end;
    EXPECT_EQ(NumberOf("messagesSent", end), 8) << end;
    EXPECT_EQ(NumberOf("messagesReceived", end), 8) << end;
    if (!IsPenstock(GetParam())) continue;  // stock gRPC counts ends later
    EXPECT_EQ(NumberOf("streamsSucceeded", end), 6) << end;
    EXPECT_EQ(NumberOf("streamsFailed", end), 1) << end;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ChannelzTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
