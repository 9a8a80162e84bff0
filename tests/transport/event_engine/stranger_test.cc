// Tests peers that send no HTTP/2, or invalid HTTP/2. Compares the bytes that
// they receive with those of stock gRPC.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/event_engine/echo.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr absl::string_view kEmptySettings("\0\0\0\4\0\0\0\0\0", 9);
// Limits the time until the end of a connection.
constexpr absl::Duration kPatience = absl::Seconds(20);

Options OverTcp() {
  Options options = kPenstock;
  options.fabrics = {Fabric::kTcp};
  return options;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

base::UniqueFd Connect(int port) {
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = Loopback(port);
  EXPECT_EQ(
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

void Send(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the peer has closed
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

// Returns all that the peer sends until its end, and "<end>" or "<silence>".
std::string ReadToTheEnd(int fd) {
  std::string got;
  char buffer[4096];
  const absl::Time until = absl::Now() + kPatience;
  while (absl::Now() < until) {
    pollfd readable = {fd, POLLIN, 0};
    if (poll(&readable, 1, 1000) <= 0) continue;
    const ssize_t count = recv(fd, buffer, sizeof buffer, 0);
    if (count <= 0) return got + "<end>";
    got.append(buffer, static_cast<size_t>(count));
  }
  return got + "<silence>";
}

// Sends bytes to a server, ends the sending, and returns the answer.
std::string AnswerTo(const EchoServer& server, const std::string& bytes) {
  const base::UniqueFd fd = Connect(server.port());
  Send(fd.get(), bytes);
  shutdown(fd.get(), SHUT_WR);
  return ReadToTheEnd(fd.get());
}

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

// Returns frames of HTTP/2 with random fields, whose lengths may be wrong.
std::string RandomFrames(std::mt19937* random) {
  std::string bytes = absl::StrCat(kPreface, kEmptySettings);
  for (int i = 0; i < 5; ++i) {
    const size_t size = (*random)() & ((1u << ((*random)() % 12)) - 1);
    const size_t says = (*random)() % 4 == 0 ? (*random)() % (1 << 24) : size;
    const char header[] = {static_cast<char>(says >> 16),
                           static_cast<char>(says >> 8),
                           static_cast<char>(says),
                           static_cast<char>((*random)() % 12),
                           static_cast<char>((*random)()),
                           0,
                           0,
                           0,
                           static_cast<char>((*random)() % 4)};
    bytes.append(header, sizeof header);
    bytes += RandomBytes(random, size);
  }
  return bytes;
}

std::vector<std::string> BadOpenings() {
  std::mt19937 random(1);
  std::vector<std::string> openings = {
      "",
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      // The beginning of a ClientHello.
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
      absl::StrCat(kPreface, "and no frame"),
      std::string(kPreface, 10),
  };
  for (int i = 0; i < 10; ++i) {
    openings.push_back(RandomBytes(&random, size_t{1} << (random() % 17)));
  }
  for (int i = 0; i < 40; ++i) openings.push_back(RandomFrames(&random));
  return openings;
}

void ExpectService(const EchoServer& server) {
  for (const Options& options : {kPenstock, kStock}) {
    const auto channel = NewChannel(server.target(), options);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(Echo(channel, std::string(100000, 'x')).ok());
    }
  }
}

TEST(StrangerTest, BadOpeningsAreAnsweredAsByStockGrpc) {
  const EchoServer stock(kStock), prefers(kPenstock), tcp(OverTcp());
  for (const std::string& opening : BadOpenings()) {
    const std::string expected = AnswerTo(stock, opening);
    EXPECT_EQ(expected.substr(expected.size() - 5), "<end>");
    EXPECT_EQ(AnswerTo(prefers, opening), expected);
    EXPECT_EQ(AnswerTo(tcp, opening), expected);
  }
  ExpectService(prefers);
  ExpectService(tcp);
}

// Sends the preface byte by byte on many connections. Meanwhile, other clients
// are served. The slow connections end at the server's deadline.
TEST(StrangerTest, SlowOpeningsDisturbNobody) {
  constexpr int kSlow = 200;
  EchoServer server(kPenstock);
  std::vector<base::UniqueFd> slow;
  for (int i = 0; i < kSlow; ++i) slow.push_back(Connect(server.port()));
  for (char byte : absl::string_view(kPreface)) {
    for (const base::UniqueFd& fd : slow) {
      Send(fd.get(), absl::string_view(&byte, 1));
    }
    if (byte == 'M') ExpectService(server);
  }
  ExpectService(server);
}

// Causes millions of answers, and reads none of them.
TEST(StrangerTest, StrangerThatNeverReadsDisturbsNobody) {
  constexpr size_t kRequests = 200000;
  std::string requests = absl::StrCat(kPreface, kEmptySettings);
  for (size_t i = 0; i < kRequests; ++i) {
    absl::StrAppend(&requests, kEmptySettings);
  }
  EchoServer server(kPenstock);
  const base::UniqueFd fd = Connect(server.port());
  std::thread sends([&] { Send(fd.get(), requests); });
  ExpectService(server);
  shutdown(fd.get(), SHUT_RDWR);
  sends.join();
  ExpectService(server);
}

// Answers a client's connections with fixed bytes, and ends them.
class BadServer {
 public:
  explicit BadServer(std::string answer) : answer_(std::move(answer)) {
    listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(0);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~BadServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::string target() const { return absl::StrCat("ipv4:127.0.0.1:", port_); }

 private:
  void Serve() {
    for (;;) {
      const base::UniqueFd fd(accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      Send(fd.get(), answer_);
      shutdown(fd.get(), SHUT_WR);
      (void)ReadToTheEnd(fd.get());
    }
  }

  const std::string answer_;
  base::UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

TEST(StrangerTest, BadServersGiveTheErrorOfStockGrpc) {
  std::mt19937 random(2);
  const std::string answers[] = {
      "", "HTTP/1.1 400 Bad Request\r\n\r\n", RandomBytes(&random, 1000),
      // Frames without a client's preface, as servers send them.
      RandomFrames(&random).substr(sizeof kPreface - 1)};
  for (const std::string& answer : answers) {
    const BadServer server(answer);
    const auto by = [&](const Options& options) {
      return Echo(NewChannel(server.target(), options), "hello");
    };
    const grpc::Status stock = by(kStock);
    EXPECT_FALSE(stock.ok());
    for (const Options& options : {kPenstock, OverTcp()}) {
      EXPECT_EQ(by(options).error_code(), stock.error_code());
    }
  }
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
