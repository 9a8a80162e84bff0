// Tests how a group forms, and that strangers cannot disturb it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/fault.h"
#include "collectives/net/address.h"
#include "collectives/net/group.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"
#include "tests/collectives/net/ranks.h"
#include "transport/base/unique_fd.h"

namespace penstock::collectives {
namespace {

const ListenerOptions kTcpOnly = Over({Fabric::kTcp});

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

TEST(Form, NamesRanksThatDoNotCome) {
  Team team = OpenTeam(3, kTcpOnly);
  NetGroupOptions options;
  options.forming_timeout = absl::Milliseconds(100);
  const auto group =
      NetGroup::Form(std::move(team.listeners[0]), team.addresses, options);
  EXPECT_EQ(group.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Text(group.status()), "these ranks did not come: 1, 2");
}

TEST(Form, NamesARankThatIsGone) {
  Team team = OpenTeam(2, kTcpOnly);
  team.listeners[1] = nullptr;
  const auto group =
      NetGroup::Form(std::move(team.listeners[0]), team.addresses, {});
  EXPECT_EQ(group.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Text(group.status()).substr(0, 7), "rank 1:");
}

TEST(Form, RefusesARankThatIsGivenTwice) {
  Team team = OpenTeam(2, kTcpOnly);
  const std::vector<std::string> same = {team.addresses[0], team.addresses[0]};
  EXPECT_EQ(
      Text(NetGroup::Form(std::move(team.listeners[0]), same, {}).status()),
      "ranks 0 and 1 have the same address, " +
          team.addresses[0].substr(0, team.addresses[0].find(' ')));
  NetGroupOptions options;
  options.rank = 0;
  EXPECT_EQ(
      Text(NetGroup::Form(std::move(team.listeners[1]), team.addresses, options)
               .status()),
      "the address of rank 0 is another one: is a rank given twice?");
}

// Tests two processes that both claim rank 1 at rank 0.
TEST(Form, RefusesARankWithOtherAddresses) {
  Team team = OpenTeam(3, kTcpOnly);
  const std::vector<std::string> first = {team.addresses[0], team.addresses[1]};
  const std::vector<std::string> second = {team.addresses[0],
                                           team.addresses[2]};
  auto zero = std::async(std::launch::async, [&] {
    return NetGroup::Form(std::move(team.listeners[0]), first, {});
  });
  auto one = std::async(std::launch::async, [&] {
    NetGroupOptions options;
    options.rank = 1;
    return NetGroup::Form(std::move(team.listeners[1]), first, options);
  });
  const auto group = zero.get();
  ASSERT_TRUE(group.ok()) << group.status();
  NetGroupOptions options;
  options.rank = 1;
  EXPECT_EQ(Text(NetGroup::Form(std::move(team.listeners[2]), second, options)
                     .status()),
            "rank 0: rank 1 has other addresses than rank 0: is a rank given "
            "twice?");
  // Expects that the other group member works.
  const auto other = one.get();
  ASSERT_TRUE(other.ok()) << other.status();
  auto barrier =
      std::async(std::launch::async, [&] { return (*other)->Barrier(); });
  EXPECT_TRUE((*group)->Barrier().ok());
  EXPECT_TRUE(barrier.get().ok());
}

TEST(Form, RefusesAWrongToken) {
  Team team = OpenTeam(2, kTcpOnly);
  auto address = ParseAddress(team.addresses[1]);
  ASSERT_TRUE(address.ok());
  address->token.back() ^= 1;
  const std::vector<std::string> wrong = {team.addresses[0], ToText(*address)};
  const auto group = NetGroup::Form(std::move(team.listeners[0]), wrong, {});
  EXPECT_EQ(Text(group.status()).substr(0, 7), "rank 1:") << group.status();
}

// Lets strangers connect, send other protocols or nothing, and stay connected.
// The group must form.
TEST(Form, StrangersAtAListenerHurtNobody) {
  Team team = OpenTeam(2, kTcpOnly);
  const std::string target =
      team.addresses[0].substr(0, team.addresses[0].find(' '));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(
      static_cast<uint16_t>(std::stoi(target.substr(target.find(':') + 1))));
  std::vector<base::UniqueFd> strangers;
  for (const std::string bytes :
       {std::string(), std::string(100'000, '\xFF'), std::string("PSTKrpc?"),
        std::string("GET / HTTP/1.1\r\n\r\n")}) {
    strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(strangers.back().get(),
                      reinterpret_cast<sockaddr*>(&address), sizeof address),
              0);
    (void)send(strangers.back().get(), bytes.data(), bytes.size(),
               MSG_NOSIGNAL);
  }
  RunRanks(std::move(team), {},
           [](NetGroup* group) { EXPECT_TRUE(group->Barrier().ok()); });
}

TEST(Form, RefusesMalformedAddressesAndRanks) {
  NetGroupOptions options;
  options.rank = 2;
  Team team = OpenTeam(2, kTcpOnly);
  EXPECT_EQ(
      Text(NetGroup::Form(std::move(team.listeners[0]), team.addresses, options)
               .status()),
      "rank 2, expected 0 to 1");
  options.rank = 1;
  const std::vector<std::string> malformed = {"nonsense", team.addresses[1]};
  EXPECT_EQ(
      Text(NetGroup::Form(std::move(team.listeners[1]), malformed, options)
               .status()),
      "rank 0: malformed address, expected \"host:port token host\"");
}

TEST(Message, IsDecodedAsItWasEncoded) {
  Message message;
  message.kind = Message::Kind::kFailure;
  message.from = 7;
  message.key = {ChannelOf(5), 1'000'000'000'000, 9};
  message.words = {3, 4};
  message.fault = Fault::kLate;
  message.culprit = 2;
  message.text = "why";
  const auto decoded = DecodeMessage(Encode(message));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Encode(*decoded), Encode(message));
  EXPECT_EQ(decoded->key.channel, ChannelOf(5));
  EXPECT_EQ(decoded->text, "why");
}

TEST(Message, OfAHostilePeerIsRefused) {
  const std::string bytes = Encode(Message());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeMessage(bytes.substr(0, size)).ok());
  }
  std::string other = bytes;
  other[4] = 9;
  EXPECT_EQ(Text(DecodeMessage(other).status()),
            "a rank speaks version 9 of collectives, not 2");
  other = bytes;
  other[6] = 77;
  EXPECT_FALSE(DecodeMessage(other).ok());
  other = bytes;
  other[48] = 99;
  EXPECT_FALSE(DecodeMessage(other).ok());
  EXPECT_FALSE(DecodeMessage(bytes + std::string(2000, 'x')).ok());
}

}  // namespace
}  // namespace penstock::collectives
