// Tests operations whose parts are received in the caller's memory, and sent
// from it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/call.h"
#include "collectives/net/address.h"
#include "collectives/net/group.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/message.h"
#include "collectives/net/targets.h"
#include "collectives/net/window.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/member.h"
#include "tests/collectives/net/ranks.h"
#include "tests/transport/rpc/cutting_proxy.h"

namespace penstock::collectives {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kLong = 6 * 1024 * 1024 + 4321;  // bytes

Bytes Pattern(uint32_t seed) {
  Bytes bytes(kLong);
  std::mt19937 random(seed);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

Call BroadcastFrom(int root) {
  Call call = {Operation::kBroadcast, ReduceOp::kMax, tensor::DType::kUint8};
  call.count = kLong;
  call.root = root;
  return call;
}

// Returns the address of a rank as others reach it through `proxy`.
std::string Through(const rpc::CuttingProxy& proxy,
                    const std::string& address) {
  Address parsed = *ParseAddress(address);
  parsed.target = absl::StrCat("127.0.0.1:", proxy.port());
  return ToText(parsed);
}

int PortOf(const std::string& address) {
  const std::string target = ParseAddress(address)->target;
  return std::stoi(target.substr(target.find(':') + 1));
}

// Tests that the memory belongs to the caller again when an operation returns:
// each rank writes to the memory immediately, and finds its own bytes there
// after the next operation.
TEST(InPlace, NobodyUsesTheMemoryAfterTheOperation) {
  constexpr int kRanks = 3;
  RunRanks(OpenTeam(kRanks, Over({Fabric::kTcp})), {}, [](NetGroup* group) {
    Bytes data, other(kLong);
    const auto count = static_cast<int64_t>(other.size());
    for (uint32_t round = 0; round < 6; ++round) {
      const int root = static_cast<int>(round) % kRanks;
      data = group->rank() == root ? Pattern(round) : Bytes(kLong);
      ASSERT_TRUE(
          group->Broadcast(tensor::DType::kUint8, data.data(), count, root)
              .ok());
      ASSERT_TRUE(data == Pattern(round)) << "rank " << group->rank();
      std::fill(data.begin(), data.end(), 'F');
      ASSERT_TRUE(group
                      ->AllReduce(ReduceOp::kMax, tensor::DType::kUint8,
                                  other.data(), other.data(), count)
                      .ok());
      ASSERT_EQ(std::count(data.begin(), data.end(), 'F'), kLong);
    }
    ASSERT_TRUE(group->Barrier().ok());
  });
}

// Tests the way of a part from its offer to the ledger.
TEST(InPlace, PartIsReceivedWhereItWasOffered) {
  Team team = OpenTeam(2, Over({Fabric::kTcp}));
  const std::vector<std::string> addresses = team.addresses;
  const auto ledger =
      std::make_shared<Ledger>(0, 2, progress::PollingMode::kAdaptive);
  const auto targets = std::make_shared<Targets>(ledger);
  const std::string digest = Digest(addresses);
  team.listeners[0]->Admit(ledger, digest, targets);
  auto links = std::async(std::launch::async, [&] {
    return Links::Connect(*ParseAddresses(addresses), digest,
                          team.listeners[0]->options(), ledger,
                          absl::Minutes(1));
  });
  Member member(1, std::move(team.listeners[1]), addresses);
  const auto connected = links.get();
  ASSERT_TRUE(connected.ok()) << connected.status();
  Bytes place(kMaxPartBytes);
  targets->Offer(1, {0, 5, 1}, place.data(), place.size());
  const Bytes sent = Pattern(1);
  const auto window = std::make_shared<Window>();
  for (uint32_t part = 0; part < 3; ++part) {
    ASSERT_TRUE(
        member.links()
            ->SendPart(0, {0, 5, part}, {}, &sent[part], place.size(), window)
            .ok());
  }
  for (uint32_t part = 0; part < 3; ++part) {
    absl::optional<Part> received;
    while (!received.has_value()) {
      const uint32_t seen = ledger->signal().count();
      received = ledger->Take(1, {0, 5, part});
      if (!received.has_value()) {
        ledger->signal().Await(seen, absl::Milliseconds(20));
      }
    }
    ASSERT_EQ(received->payload.size(), place.size());
    EXPECT_EQ(received->payload.pieces()[0].data == place.data(), part == 1);
  }
  EXPECT_TRUE(std::equal(place.begin(), place.end(), sent.begin() + 1));
}

// Runs a broadcast whose root, rank 1, stops in the middle of a part. Returns
// the first byte that rank 0 has when the operation ends with its timeout.
// Expects that nothing is written to the memory afterwards.
uint8_t FirstByteFromAStoppedRoot() {
  Team team = OpenTeam(2, Over({Fabric::kTcp}));
  const std::vector<std::string> addresses = team.addresses;
  rpc::CuttingProxy proxy;
  // More than the ranks exchange to form the group, and less than a part more.
  proxy.SetAndHold(PortOf(addresses[0]), kMaxPartBytes / 2);
  auto zero = std::async(std::launch::async, [&] {
    NetGroupOptions options;
    options.timeout = absl::Milliseconds(300);
    return NetGroup::Form(std::move(team.listeners[0]), addresses, options);
  });
  Member root(1, std::move(team.listeners[1]), addresses,
              {Through(proxy, addresses[0]), addresses[1]});
  auto group = zero.get();
  EXPECT_TRUE(group.ok()) << group.status();
  if (testing::Test::HasFailure()) return 0;
  Bytes data(kLong, 'Z');
  auto broadcast = std::async(std::launch::async, [&] {
    return (*group)->Broadcast(tensor::DType::kUint8, data.data(), kLong, 1);
  });
  const Bytes sent(kMaxPartBytes, 'S');
  EXPECT_TRUE(root.links()
                  ->SendPart(0, {0, 1, 0}, Encode(BroadcastFrom(1)),
                             sent.data(), sent.size(),
                             std::make_shared<Window>())
                  .ok());
  const absl::Status status = broadcast.get();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  const uint8_t first = data[0];
  std::fill(data.begin(), data.end(), 'F');
  root.links()->Disconnect(0);
  group->reset();
  EXPECT_EQ(std::count(data.begin(), data.end(), 'F'), kLong);
  return first;
}

TEST(InPlace, RankThatStopsInAPartDoesNotKeepTheMemory) {
  uint8_t first = 'Z';
  // Repeats the test if the part came too late on a busy machine.
  for (int i = 0; i < 5 && first == 'Z' && !HasFailure(); ++i) {
    first = FirstByteFromAStoppedRoot();
  }
  EXPECT_EQ(first, 'S') << "the part was not received in place";
}

// Tests a root that sends its first part again after rank 0 has taken it, and
// then dies. The repeated part does not replace elements, and holds nobody up.
TEST(InPlace, RepeatedPartIsDropped) {
  // The number of parts that the root sends before the operation. A rank
  // acknowledges the last of them only when it has taken those before.
  constexpr uint32_t kEarly = Ledger::kMaxUntaken / kMaxPartBytes + 1;
  constexpr uint32_t kParts = kEarly + 3;
  constexpr int64_t kCount = kParts * kMaxPartBytes;
  Team team = OpenTeam(2, Over({Fabric::kTcp}));
  const std::vector<std::string> addresses = team.addresses;
  auto zero = std::async(std::launch::async, [&] {
    NetGroupOptions options;
    options.algorithms = "broadcast=binomial-tree";
    return NetGroup::Form(std::move(team.listeners[0]), addresses, options);
  });
  auto root =
      std::make_unique<Member>(1, std::move(team.listeners[1]), addresses);
  auto group = zero.get();
  ASSERT_TRUE(group.ok()) << group.status();
  Call call = BroadcastFrom(1);
  call.count = kCount;
  const auto window = std::make_shared<Window>();
  const auto send = [&](uint32_t part, char letter) {
    const Bytes sent(kMaxPartBytes, static_cast<uint8_t>(letter));
    ASSERT_TRUE(root->links()
                    ->SendPart(0, {0, 1, part}, Encode(call), sent.data(),
                               sent.size(), window)
                    .ok());
  };
  const auto flush = [&] {
    while (!window->IsBelow(1)) std::this_thread::yield();
  };
  for (uint32_t part = 0; part < kEarly; ++part) send(part, 'S');
  Bytes data(kCount, 'Z');
  auto broadcast = std::async(std::launch::async, [&] {
    return (*group)->Broadcast(tensor::DType::kUint8, data.data(), kCount, 1);
  });
  flush();
  send(0, 'D');
  flush();
  for (uint32_t part = kEarly; part < kParts; ++part) send(part, 'S');
  flush();
  root.reset();
  ASSERT_EQ(broadcast.wait_for(std::chrono::seconds(30)),
            std::future_status::ready);
  const absl::Status status = broadcast.get();
  EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  EXPECT_EQ(std::count(data.begin(), data.end(), 'D'), 0);
}

}  // namespace
}  // namespace penstock::collectives
