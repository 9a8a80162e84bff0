#include "collectives/net/assembly.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/call.h"
#include "transport/rpc/client.h"

namespace penstock::collectives {
namespace {

using Addresses = absl::StatusOr<std::vector<std::string>>;

// Returns the address of a port that nobody uses now.
std::string FreeTarget() {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd.get(), generic, size), 0);
  EXPECT_EQ(getsockname(fd.get(), generic, &size), 0);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

class Assembly : public testing::Test {
 protected:
  Assembly() {
    options_.target = FreeTarget();
    options_.token = "secret";
    options_.ranks = 3;
  }

  std::future<Addresses> Come(int rank, int ranks = 3) {
    AssemblyOptions options = options_;
    options.rank = rank;
    options.ranks = ranks;
    return std::async(std::launch::async, [options] {
      return ExchangeAddresses(options, absl::StrCat("address ", options.rank));
    });
  }

  AssemblyOptions options_;
};

TEST_F(Assembly, GivesAllRanksAllAddresses) {
  const std::vector<std::string> all = {"address 0", "address 1", "address 2"};
  auto two = Come(2), zero = Come(0), one = Come(1);
  for (auto* each : {&zero, &one, &two}) {
    const Addresses addresses = each->get();
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    EXPECT_EQ(*addresses, all);
  }
}

TEST_F(Assembly, TellsWrongRanksWhyAndServesTheOthers) {
  auto zero = Come(0);
  EXPECT_EQ(Come(1, 2).get().status().message(),
            "rank 0 refuses: rank 1 expects 2 ranks, rank 0 expects 3");
  EXPECT_EQ(Come(3, 3).get().status().message(), "rank 3, expected 0 to 2");
  auto first = Come(1), second = Come(1);
  // Waits until one of the two callers is refused. The other caller waits for
  // rank 2.
  while (first.wait_for(std::chrono::milliseconds(1)) ==
             std::future_status::timeout &&
         second.wait_for(std::chrono::milliseconds(1)) ==
             std::future_status::timeout) {
  }
  auto two = Come(2);
  const Addresses results[] = {first.get(), second.get()};
  EXPECT_NE(results[0].ok(), results[1].ok());
  EXPECT_EQ(results[results[0].ok() ? 1 : 0].status().message(),
            "rank 0 refuses: rank 1 has come already");
  EXPECT_TRUE(two.get().ok());
  EXPECT_TRUE(zero.get().ok());
}

TEST_F(Assembly, NamesTheMissingRanks) {
  options_.timeout = absl::Milliseconds(50);
  EXPECT_EQ(Come(0).get().status().message(), "these ranks did not come: 1, 2");
  const absl::Status status = Come(1).get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message().substr(0, 10), "rank 0 at ");
}

// Rank 1 calls before, between or during the attempts of rank 0.
TEST_F(Assembly, RankZeroTellsTheOthersWhichRanksAreMissing) {
  options_.timeout = absl::Seconds(20);
  auto one = Come(1);
  options_.timeout = absl::Milliseconds(200);
  while (one.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) {
    EXPECT_EQ(Come(0).get().status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  const absl::Status status = one.get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), absl::StrCat("rank 0 at ", options_.target,
                                           ": these ranks did not come: 2"));
}

// Tests that another process may join as a rank that has given up.
TEST_F(Assembly, ARankMayComeAgain) {
  auto zero = Come(0);
  options_.timeout = absl::Milliseconds(300);
  EXPECT_FALSE(Come(1).get().ok());
  options_.timeout = absl::Minutes(1);
  auto one = Come(1), two = Come(2);
  EXPECT_TRUE(one.get().ok());
  EXPECT_TRUE(two.get().ok());
  EXPECT_TRUE(zero.get().ok());
}

// A process that has the secret, and sends what the test says.
class Attacker {
 public:
  explicit Attacker(const AssemblyOptions& options) {
    rpc::Client::Options client;
    client.target = options.target;
    client.token = options.token;
    client_ = *rpc::Client::Connect(client, [](const absl::Status&) {});
  }

  std::future<absl::Status> Send(Message::Kind kind, uint32_t rank,
                                 size_t bytes = 0) {
    Message message;
    message.kind = kind;
    message.from = rank;
    message.key.number = 3;
    message.text = "address";
    rpc::Request request;
    request.method = "m";
    request.metadata = Encode(message);
    request.payload =
        memory::Payload(*memory::CopyBytes(std::vector<uint8_t>(bytes)));
    auto answer = std::make_shared<std::promise<absl::Status>>();
    client_->Call(std::move(request),
                  [answer](const absl::StatusOr<rpc::Response>& got) {
                    answer->set_value(got.status());
                  });
    return answer->get_future();
  }

 private:
  std::unique_ptr<rpc::Client> client_;
};

// Returns a future, once rank 0 listens and has no connection but the test's.
std::future<Addresses> Begin(std::future<Addresses> zero,
                             const AssemblyOptions& options) {
  while (!absl::IsInvalidArgument(
      Attacker(options).Send(Message::Kind::kPart, 1).get())) {
  }
  return zero;
}

TEST_F(Assembly, KeepsNoElementsOfARank) {
  auto zero = Begin(Come(0), options_);
  Attacker attacker(options_);
  EXPECT_EQ(attacker.Send(Message::Kind::kHello, 1, 1).get().code(),
            absl::StatusCode::kResourceExhausted);
  auto one = Come(1), two = Come(2);
  EXPECT_TRUE(one.get().ok());
  EXPECT_TRUE(two.get().ok());
  EXPECT_TRUE(zero.get().ok());
}

// Tests that rank 0 stays for rank 2, although rank 1 leaves twice.
TEST_F(Assembly, ARankLeavesOnce) {
  auto zero = Begin(Come(0), options_);
  Attacker attacker(options_);
  auto one = attacker.Send(Message::Kind::kHello, 1);
  auto two = attacker.Send(Message::Kind::kHello, 2);
  EXPECT_EQ(one.get(), absl::OkStatus());
  EXPECT_EQ(two.get(), absl::OkStatus());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(attacker.Send(Message::Kind::kLeave, 1).get(), absl::OkStatus());
  }
  EXPECT_EQ(zero.wait_for(std::chrono::milliseconds(100)),
            std::future_status::timeout);
  // Rank 0 may close the connection before it answers the last rank.
  attacker.Send(Message::Kind::kLeave, 2).wait();
  EXPECT_TRUE(zero.get().ok());
}

TEST_F(Assembly, ARankLeavesOverItsOwnConnection) {
  auto zero = Begin(Come(0), options_);
  Attacker attacker(options_);
  auto one = attacker.Send(Message::Kind::kHello, 1);
  auto two = attacker.Send(Message::Kind::kHello, 2);
  EXPECT_EQ(one.get(), absl::OkStatus());
  EXPECT_EQ(two.get(), absl::OkStatus());
  for (int rank = 0; rank <= 3; ++rank) {
    EXPECT_EQ(Attacker(options_).Send(Message::Kind::kLeave, rank).get().code(),
              absl::StatusCode::kPermissionDenied)
        << rank;
  }
  EXPECT_EQ(zero.wait_for(std::chrono::milliseconds(100)),
            std::future_status::timeout);
  EXPECT_EQ(attacker.Send(Message::Kind::kLeave, 1).get(), absl::OkStatus());
  attacker.Send(Message::Kind::kLeave, 2).wait();
  EXPECT_TRUE(zero.get().ok());
}

}  // namespace
}  // namespace penstock::collectives
