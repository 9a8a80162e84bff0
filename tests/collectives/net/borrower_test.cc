// Tests the wait for peers that still hold borrowed memory.

#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/net/address.h"
#include "collectives/net/group.h"
#include "collectives/net/links.h"
#include "collectives/net/message.h"
#include "collectives/net/window.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/member.h"
#include "tests/collectives/net/ranks.h"
#include "tests/transport/rpc/cutting_proxy.h"

namespace penstock::collectives {
namespace {

constexpr int64_t kBlock = int64_t{1} << 20;
constexpr int kRanks = 3;

// Returns the address of a rank as others reach it through `proxy`.
std::string Through(rpc::CuttingProxy* proxy, const std::string& address) {
  Address parsed = *ParseAddress(address);
  const size_t colon = parsed.target.find(':');
  proxy->Set(std::stoi(parsed.target.substr(colon + 1)),
             std::numeric_limits<size_t>::max());
  parsed.target =
      absl::StrCat(parsed.target.substr(0, colon), ":", proxy->port());
  return ToText(parsed);
}

// Sends all parts of two blocks to rank 0 before rank 0 asks for them.
void SendTwoBlocks(Links* links, const Call& call) {
  const std::vector<uint8_t> part(kMaxPartBytes);
  const auto window = std::make_shared<Window>();
  Key key = {0, 1, 0};
  for (; key.part < 2 * kBlock / kMaxPartBytes; ++key.part) {
    EXPECT_TRUE(
        links->SendPart(0, key, Encode(call), part.data(), part.size(), window)
            .ok());
  }
}

// Returns the error of rank 0. In a ring, rank 0 lends its blocks to rank 2,
// and then receives their new values from rank 2. Here rank 2 sends them before
// it has received anything.
std::string ErrorOfLender() {
  rpc::CuttingProxy proxy;
  Team team = OpenTeam(kRanks, Over({Fabric::kTcp}));
  std::vector<std::string> addresses = team.addresses;
  addresses[2] = Through(&proxy, addresses[2]);
  auto zero = std::async(std::launch::async, [&] {
    NetGroupOptions options;
    options.timeout = absl::Milliseconds(500);
    options.algorithms = "all_reduce=ring";
    return NetGroup::Form(std::move(team.listeners[0]), addresses, options);
  });
  auto one = std::async(std::launch::async, [&] {
    return std::make_unique<Member>(1, std::move(team.listeners[1]), addresses);
  });
  Member two(2, std::move(team.listeners[2]), addresses);
  const std::unique_ptr<Member> member = one.get();
  auto group = zero.get();
  EXPECT_TRUE(group.ok()) << group.status();
  if (testing::Test::HasFailure()) return "";
  proxy.Hold();
  Call call = {Operation::kAllReduce, ReduceOp::kMax, tensor::DType::kUint8};
  call.count = kRanks * kBlock;
  SendTwoBlocks(member->links(), call);
  SendTwoBlocks(two.links(), call);
  std::vector<uint8_t> data(call.count);
  const absl::Status status = (*group)->AllReduce(
      call.op, call.dtype, data.data(), data.data(), call.count);
  return std::string(status.message());
}

TEST(Borrower, ThatKeepsMemoryIsNamed) {
  const std::string expected =
      "rank 2 did not receive what was sent within 500ms";
  // Repeats the test if the machine was busy for longer than a timeout.
  std::string error;
  for (int i = 0; i < 5 && error != expected; ++i) error = ErrorOfLender();
  EXPECT_EQ(error, expected);
}

}  // namespace
}  // namespace penstock::collectives
