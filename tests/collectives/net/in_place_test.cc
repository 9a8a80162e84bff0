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

// The number of parts that the root sends before the operation. A rank
// acknowledges the last of them only when it has taken those before, and has
// then offered places for the parts that follow.
constexpr uint32_t kEarly = Ledger::kMaxUntaken / kMaxPartBytes + 1;
constexpr uint32_t kParts = kEarly + 3;

// A broadcast from rank 1, whose parts the test sends.
class BroadcastTest : public testing::Test {
 protected:
  // Forms the group, and begins the operation at rank 0. Rank 1 reaches rank 0
  // through `proxy`, which may be null. Returns when rank 0 has taken kEarly
  // parts.
  void Begin(rpc::CuttingProxy* proxy, const NetGroupOptions& options) {
    Team team = OpenTeam(2, Over({Fabric::kTcp}));
    const std::vector<std::string> addresses = team.addresses;
    std::vector<std::string> ways = addresses;
    if (proxy != nullptr) {
      proxy->SetAndHold(PortOf(addresses[0]),
                        kEarly * kMaxPartBytes + kMaxPartBytes / 2);
      ways[0] = Through(*proxy, addresses[0]);
    }
    auto formed = std::async(std::launch::async, [&] {
      return NetGroup::Form(std::move(team.listeners[0]), addresses, options);
    });
    root_ = std::make_unique<Member>(1, std::move(team.listeners[1]), addresses,
                                     ways);
    auto group = formed.get();
    ASSERT_TRUE(group.ok()) << group.status();
    group_ = *std::move(group);
    for (uint32_t part = 0; part < kEarly; ++part) Send(part, 'S');
    data_.assign(kParts * kMaxPartBytes, 'Z');
    broadcast_ = std::async(std::launch::async, [this] {
      return group_->Broadcast(tensor::DType::kUint8, data_.data(),
                               kParts * kMaxPartBytes, 1);
    });
    Flush();
  }
  void Send(uint32_t part, char letter) {
    Call call = {Operation::kBroadcast, ReduceOp::kMax, tensor::DType::kUint8};
    call.count = kParts * kMaxPartBytes;
    call.root = 1;
    const Bytes sent(kMaxPartBytes, static_cast<uint8_t>(letter));
    ASSERT_TRUE(root_->links()
                    ->SendPart(0, {0, 1, part}, Encode(call), sent.data(),
                               sent.size(), window_)
                    .ok());
  }
  // Waits until rank 0 has acknowledged all parts.
  void Flush() {
    while (!window_->IsBelow(1)) std::this_thread::yield();
  }

  const std::shared_ptr<Window> window_ = std::make_shared<Window>();
  std::unique_ptr<Member> root_;
  std::unique_ptr<NetGroup> group_;
  Bytes data_;
  std::future<absl::Status> broadcast_;
};

// Tests a root that stops in the middle of a part. Nothing is written to the
// memory after the operation has ended with its timeout.
TEST_F(BroadcastTest, RootThatStopsInAPartDoesNotKeepTheMemory) {
  NetGroupOptions options;
  options.timeout = absl::Milliseconds(300);
  uint8_t first = 'Z';
  // Repeats the test if the part came too late on a busy machine.
  for (int i = 0; i < 5 && first == 'Z' && !HasFailure(); ++i) {
    rpc::CuttingProxy proxy;
    Begin(&proxy, options);
    if (HasFatalFailure()) return;
    Send(kEarly, 'T');
    const absl::Status status = broadcast_.get();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    first = data_[kEarly * kMaxPartBytes];
    std::fill(data_.begin(), data_.end(), 'F');
    root_->links()->Disconnect(0);
    group_.reset();
    EXPECT_EQ(std::count(data_.begin(), data_.end(), 'F'),
              static_cast<ptrdiff_t>(data_.size()));
    root_.reset();
  }
  EXPECT_EQ(first, 'T') << "the part was not received in place";
}

// Tests a root that sends its first part again after rank 0 has taken it, and
// then dies. The repeated part does not replace elements, and holds nobody up.
TEST_F(BroadcastTest, RepeatedPartIsDropped) {
  Begin(nullptr, {});
  if (HasFatalFailure()) return;
  Send(0, 'D');
  Flush();
  for (uint32_t part = kEarly; part < kParts; ++part) Send(part, 'S');
  Flush();
  root_.reset();
  ASSERT_EQ(broadcast_.wait_for(std::chrono::seconds(30)),
            std::future_status::ready);
  const absl::Status status = broadcast_.get();
  EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  EXPECT_EQ(std::count(data_.begin(), data_.end(), 'D'), 0);
}

}  // namespace
}  // namespace penstock::collectives
