// Tests how the sockets of one session are matched, over loopback.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/stripes/tcp_pair.h"
#include "transport/base/token.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/tcp/stripes/address.h"
#include "transport/fabric/tcp/stripes/fabric.h"
#include "transport/fabric/tcp/stripes/greeting.h"
#include "transport/fabric/tcp/stripes/listener.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

using End = absl::StatusOr<std::unique_ptr<Endpoint>>;

// The result of one Listen() or Connect().
class Result {
 public:
  ConnectCallback callback() {
    return
        [promise = promise_](End end) { promise->set_value(std::move(end)); };
  }
  End Take() {
    std::future<End> future = promise_->get_future();
    if (future.wait_for(std::chrono::seconds(20)) !=
        std::future_status::ready) {
      return absl::DeadlineExceededError("no callback");
    }
    return future.get();
  }

 private:
  std::shared_ptr<std::promise<End>> promise_ =
      std::make_shared<std::promise<End>>();
};

// A listening socket, which gives accepted sockets to their sessions as a
// server does.
class Port {
 public:
  Port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
        0);
    EXPECT_EQ(listen(fd_.get(), 16), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(
        getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length),
        0);
    text_ = absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port));
  }

  const std::string& text() const { return text_; }
  // Accepts a socket, reads its greeting, and gives it to its session.
  void GiveNext() {
    base::UniqueFd socket(accept(fd_.get(), nullptr, nullptr));
    std::string bytes(kGreetingBytes, '\0');
    ASSERT_EQ(recv(socket.get(), &bytes[0], bytes.size(), MSG_WAITALL),
              static_cast<ssize_t>(bytes.size()));
    Greeting greeting;
    ASSERT_EQ(InspectGreeting(bytes, &greeting), Verdict::kGreeting);
    GiveStripe(std::move(socket), greeting);
  }
  // Accepts a socket, reads its greeting, writes `answer`, and closes.
  void AnswerNext(const std::string& answer) {
    const base::UniqueFd socket(accept(fd_.get(), nullptr, nullptr));
    std::string bytes(kGreetingBytes, '\0');
    EXPECT_EQ(recv(socket.get(), &bytes[0], bytes.size(), MSG_WAITALL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
  }
  void Close() { fd_.Reset(); }

 private:
  base::UniqueFd fd_;
  std::string text_;
};

// Returns true if the other end of `fd` closes the connection soon.
bool IsClosed(int fd) {
  timeval patience = {};
  patience.tv_sec = 5;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char byte;
  const ssize_t got = recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

// Gives a socket with this greeting. Returns its other end. Keeps a copy of the
// given descriptor in `copy`, if not null.
base::UniqueFd Give(int count, int index, const std::string& token,
                    base::UniqueFd* copy = nullptr) {
  TcpPair pair;
  if (copy != nullptr) copy->Reset(dup(pair.server.get()));
  Greeting greeting;
  greeting.count = static_cast<uint8_t>(count);
  greeting.index = static_cast<uint8_t>(index);
  greeting.token = token;
  GiveStripe(std::move(pair.server), greeting);
  return std::move(pair.client);
}

// Lowers the limit of descriptors, and takes all but `free` of them.
class FewDescriptors {
 public:
  explicit FewDescriptors(int free) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = kLimit;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int fd = dup(0); fd >= 0; fd = dup(0)) taken_.emplace_back(fd);
    taken_.resize(taken_.size() - static_cast<size_t>(free));
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

  static constexpr int kLimit = 128;
  // The number of free descriptors that a path must leave.
  static constexpr int kLeast = kLimit / 4 * 3 / 2;

 private:
  rlimit before_ = {};
  std::vector<base::UniqueFd> taken_;
};

class StripesSetup : public testing::Test {
 protected:
  std::unique_ptr<PendingConnect> Await(int most, Result* result,
                                        absl::Duration limit) {
    return AwaitStripes(std::make_shared<Attempt>(token_, result->callback()),
                        Address::Parse(peer_).value(), most, limit);
  }

  const std::string token_ = base::NewToken().value();
  std::string peer_ = "ipv4:127.0.0.1:9";  // the session's, with any port
};

TEST_F(StripesSetup, BothSidesGetTheSmallerNumber) {
  for (const auto& limits : {std::pair<int, int>{2, 5}, {5, 3}}) {
    Port port;
    StripesFabric server(limits.first, "ipv4:127.0.0.1:1");
    StripesFabric client(limits.second, port.text());
    Result listened, connected;
    const std::string token = base::NewToken().value();
    const auto listening = server.Listen(token, listened.callback());
    const auto connecting =
        client.Connect(server.Offer().value(), token, connected.callback());
    const int count = std::min(limits.first, limits.second);
    for (int i = 0; i < count; ++i) port.GiveNext();
    const End here = listened.Take(), there = connected.Take();
    ASSERT_TRUE(here.ok()) << here.status();
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_EQ((*here)->Describe(), absl::StrCat(count, " sockets"));
    EXPECT_EQ((*there)->Describe(), absl::StrCat(count, " sockets"));
  }
}

TEST_F(StripesSetup, SocketsOfOthersAreClosed) {
  Result result;
  const auto waiting = Await(4, &result, absl::Seconds(20));
  EXPECT_TRUE(IsClosed(Give(2, 0, std::string(16, 'x')).get()));
  EXPECT_TRUE(IsClosed(Give(5, 0, token_).get())) << "too many";
  const base::UniqueFd first = Give(3, 1, token_);
  EXPECT_TRUE(IsClosed(Give(3, 1, token_).get())) << "twice";
  EXPECT_TRUE(IsClosed(Give(2, 0, token_).get())) << "another number";
  const base::UniqueFd second = Give(3, 0, token_), third = Give(3, 2, token_);
  const End end = result.Take();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ((*end)->Describe(), "3 sockets");
  EXPECT_TRUE(IsClosed(Give(3, 0, token_).get())) << "the token is used up";
}

TEST_F(StripesSetup, WaitingEndsInTime) {
  Result result;
  const auto waiting = Await(4, &result, absl::Milliseconds(50));
  const base::UniqueFd first = Give(2, 0, token_);
  EXPECT_EQ(result.Take().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsClosed(first.get()));
}

TEST_F(StripesSetup, WhoeverGivesUpWaitingClosesTheSockets) {
  Result result;
  auto waiting = Await(4, &result, absl::Seconds(20));
  const base::UniqueFd first = Give(2, 0, token_);
  waiting = nullptr;
  EXPECT_TRUE(IsClosed(first.get()));
  EXPECT_TRUE(IsClosed(Give(2, 1, token_).get()));
}

TEST_F(StripesSetup, SocketsOfOtherHostsAreClosed) {
  Result result;
  peer_ = "ipv4:127.0.0.2:9";
  const auto waiting = Await(2, &result, absl::Seconds(20));
  EXPECT_TRUE(IsClosed(Give(2, 0, token_).get()));
  EXPECT_TRUE(IsClosed(Give(2, 1, token_).get()));
}

// Tests sockets whose descriptors a forked child has copied.
TEST_F(StripesSetup, CopiesOfDescriptorsKeepNoConnection) {
  base::UniqueFd copies[3];
  Result result;
  auto waiting = Await(4, &result, absl::Seconds(20));
  const base::UniqueFd gathered = Give(2, 0, token_, &copies[0]);
  EXPECT_TRUE(IsClosed(Give(2, 0, token_, &copies[1]).get())) << "twice";
  EXPECT_TRUE(IsClosed(Give(2, 0, std::string(16, 'x'), &copies[2]).get()));
  waiting = nullptr;
  EXPECT_TRUE(IsClosed(gathered.get()));
}

TEST_F(StripesSetup, WaitingEndsWhenDescriptorsBecomeFew) {
  // Makes the event loop and its descriptors before the limit.
  EXPECT_TRUE(IsClosed(Give(2, 0, token_).get()));
  Result result;
  const FewDescriptors few(FewDescriptors::kLeast + 5);
  const auto waiting = Await(16, &result, absl::Seconds(20));
  std::vector<base::UniqueFd> given;
  for (int i = 0; i < 4; ++i) given.push_back(Give(16, i, token_));
  EXPECT_EQ(result.Take().status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Tests a socket that a proxy has passed to a server that does not wait for it.
TEST_F(StripesSetup, AnotherAnswerOrNoneEndsTheAttemptAtOnce) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 400"), std::string("PSTK"), std::string()}) {
    Port port;
    StripesFabric client(2, port.text());
    Result connected;
    const auto connecting = client.Connect("2", token_, connected.callback());
    port.AnswerNext(answer);
    const absl::Status status = connected.Take().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_NE(status.message().find("proxy"), std::string::npos) << status;
  }
}

TEST_F(StripesSetup, AClosedPortIsAnError) {
  Port port;
  port.Close();
  StripesFabric client(2, port.text());
  Result connected;
  const auto connecting = client.Connect("2", token_, connected.callback());
  EXPECT_EQ(connected.Take().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(StripesSetup, MalformedOffersAreErrors) {
  StripesFabric client(2, "ipv4:127.0.0.1:1");
  for (const char* offer : {"", "1", "-4", "four", "4 5"}) {
    Result connected;
    const auto connecting = client.Connect(offer, token_, connected.callback());
    EXPECT_EQ(connected.Take().status().code(),
              absl::StatusCode::kInvalidArgument)
        << offer;
  }
}

TEST(StripesAddress, ComparesHosts) {
  const auto is_same = [](const char* one, const char* other) {
    return Address::Parse(one)->IsSameHost(*Address::Parse(other));
  };
  EXPECT_TRUE(is_same("ipv4:10.1.2.3:1", "ipv4:10.1.2.3:2"));
  EXPECT_TRUE(is_same("ipv4:10.1.2.3:1", "ipv6:[::ffff:10.1.2.3]:1"));
  EXPECT_TRUE(is_same("ipv6:[fe80::1%2]:1", "ipv6:[fe80::1%2]:2"));
  EXPECT_FALSE(is_same("ipv4:10.1.2.3:1", "ipv4:10.1.2.4:1"));
  EXPECT_FALSE(is_same("ipv6:[::1]:1", "ipv6:[::2]:1"));
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const base::UniqueFd ends[2] = {base::UniqueFd(pair[0]),
                                  base::UniqueFd(pair[1])};
  const Address unknown = Address::OfPeer(pair[0]).value();
  EXPECT_FALSE(unknown.IsSameHost(unknown));
}

TEST(StripesAddress, HasGrpcsForm) {
  const auto v4 = Address::Parse("ipv4:10.1.2.3:5000");
  ASSERT_TRUE(v4.ok());
  const auto* four = reinterpret_cast<const sockaddr_in*>(&v4->storage);
  EXPECT_EQ(four->sin_family, AF_INET);
  EXPECT_EQ(ntohs(four->sin_port), 5000);
  EXPECT_EQ(ntohl(four->sin_addr.s_addr), 0x0a010203u);
  for (const char* text : {"ipv6:[fe80::1%2]:7", "ipv6:%5Bfe80::1%252%5D:7"}) {
    const auto v6 = Address::Parse(text);
    ASSERT_TRUE(v6.ok()) << text;
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&v6->storage);
    EXPECT_EQ(six->sin6_family, AF_INET6);
    EXPECT_EQ(ntohs(six->sin6_port), 7);
    EXPECT_EQ(six->sin6_scope_id, 2u);
  }
  for (const char* text :
       {"", "unix:/tmp/x", "10.1.2.3:5000", "ipv4:10.1.2.3", "ipv4:host:1",
        "ipv4:10.1.2.3:65536", "ipv6:[::1]", "ipv6:::1:5"}) {
    EXPECT_FALSE(Address::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
