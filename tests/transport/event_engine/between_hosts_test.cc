// Tests connections between two hosts: TCP in memory, and simulated RDMA
// devices. The test itself takes the place of gRPC and TLS.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/event_engine/fake_tcp.h"
#include "tests/transport/event_engine/hosts.h"
#include "tests/transport/event_engine/user.h"
#include "transport/event_engine/connections.h"
#include "transport/event_engine/introducer.h"
#include "transport/event_engine/rdma/rdma.h"
#include "transport/fabric/fake/link.h"

namespace penstock {
namespace event_engine {
namespace {

class BetweenHostsTest : public testing::Test, protected Hosts {
 protected:
  BetweenHostsTest() { settings_.fabrics = {Fabric::kVerbs, Fabric::kTcp}; }
  ~BetweenHostsTest() override {
    client_.Close();
    server_.Close();
  }

  void ConnectClient() {
    WrapConnected(ClientSide(), GetCrew(), settings_, client_.Take(), Opener());
    client_.Wait();
  }
  void Listen() {
    places_ = std::make_unique<MeetingPlaces>(settings_, Opener());
    places_->Open(server_address_, kServerPort);
  }
  void Accept() {
    places_->WrapAccepted(ServerSide(), GetCrew(), server_.Take());
    server_.Wait();
  }
  void ConnectBoth() {
    Listen();
    Accept();
    ConnectClient();
  }
  // Sends bytes from one end to the other.
  static void Send(const std::string& bytes, User* from, User* to) {
    from->Write(bytes);
    EXPECT_EQ(to->Read(bytes.size()), bytes);
  }
  // Sends the first flight of TLS in both directions.
  void Greet() {
    hello_ = Hello();
    Send(hello_, &client_, &server_);
    Send(Record(100, 's'), &server_, &client_);
  }
  // Does a TLS handshake. Afterwards both ends look for a path.
  void ShakeHands() {
    Greet();
    Send(Record(50, 'f'), &client_, &server_);
    server_.Write(Record(60, 't'));
    flights_ = hello_ + Record(50, 'f');
  }
  // Does a TLS handshake, and moves to the path.
  void MoveToRdma() {
    ConnectBoth();
    ShakeHands();
    EXPECT_EQ(client_.Read(65), Record(60, 't'));
    ASSERT_TRUE(WaitForPath("verbs")) << WaitForReason();
  }
  // Waits until at most `most` queue pairs are left. Returns false after
  // `limit`.
  bool WaitForQueuePairs(int most, absl::Duration limit) {
    const absl::Time deadline = absl::Now() + limit;
    while (api_->counts().qps > most) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

  Settings settings_;
  std::unique_ptr<MeetingPlaces> places_;
  User client_, server_;
  std::string hello_;
  std::string flights_;  // the client's connection
};

TEST_F(BetweenHostsTest, TlsMovesToRdma) {
  MoveToRdma();
  const size_t up = up_->all().size(), down = down_->all().size();
  for (size_t size : {1, 1000, 16000, 16384}) {
    Send(Record(size, 'a'), &client_, &server_);
    Send(Record(size, 'b'), &server_, &client_);
  }
  EXPECT_EQ(up_->all().size(), up) << "the rest is on the path";
  EXPECT_EQ(down_->all().size(), down);
}

TEST_F(BetweenHostsTest, LostPathLosesNoBytes) {
  MoveToRdma();
  api_->Hold();
  client_.Write(Record(1000, 'x'));
  server_.Write(Record(1000, 'y'));
  api_->RemoveDevice("client");
  api_->Release();
  EXPECT_EQ(server_.Read(1005), Record(1000, 'x'));
  EXPECT_EQ(client_.Read(1005), Record(1000, 'y'));
  Send(Record(10, 'a'), &client_, &server_);
  Send(Record(10, 'b'), &server_, &client_);
  EXPECT_TRUE(WaitForPath("http2"));
}

TEST_F(BetweenHostsTest, ConnectionWithoutTlsStaysOnTcp) {
  ConnectBoth();
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n and more bytes";
  Send(preface, &client_, &server_);
  Send(preface, &server_, &client_);
  EXPECT_TRUE(absl::StrContains(WaitForReason(), "without TLS"));
  EXPECT_EQ(up_->all(), preface);
  EXPECT_EQ(down_->all(), preface);
}

TEST_F(BetweenHostsTest, StockServerSeesOnlyTheClientsBytes) {
  ConnectClient();
  hello_ = Hello();
  client_.Write(hello_);
  client_.Write(Record(100, 'c'));
  EXPECT_FALSE(WaitForReason().empty());
  client_.Write(Record(100, 'd'));
  EXPECT_EQ(up_->all(), hello_ + Record(100, 'c') + Record(100, 'd'));
  EXPECT_EQ(Describe(true).path, "http2");
}

// Tests another user on the server's machine who listens at the port. This user
// knows the addresses of the connection, but not its bytes.
TEST_F(BetweenHostsTest, AnotherUsersPortIsRefused) {
  const TcpAddress client = TcpOf(client_address_);
  const TcpAddress server = TcpOf(server_address_);
  auto other = *Opener()(settings_, server, server.port);
  const std::string addresses = MeetingToken(client, server);
  std::vector<std::unique_ptr<fabric::PendingConnect>> listens;
  for (const std::string& token :
       {addresses, addresses + Hello().substr(0, TlsOpening::kBytes)}) {
    listens.push_back(other->Listen(
        token, [](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> got) {
          EXPECT_FALSE(got.ok());
        }));
  }
  ConnectClient();
  hello_ = Hello();
  client_.Write(hello_);
  client_.Write(Record(50, 'f'));
  EXPECT_FALSE(WaitForReason().empty());
  EXPECT_EQ(up_->all(), hello_ + Record(50, 'f'));
  EXPECT_EQ(Describe(true).path, "http2");
}

TEST_F(BetweenHostsTest, TakenRdmaPortIsTheReason) {
  const TcpAddress server = TcpOf(server_address_);
  auto other = *Opener()(settings_, server, server.port);
  ConnectBoth();
  ShakeHands();
  EXPECT_TRUE(absl::StrContains(Describe(false).reason, "is taken"))
      << Describe(false).reason;
  EXPECT_FALSE(WaitForReason().empty());
}

TEST_F(BetweenHostsTest, FabricsWithoutVerbsDoNotAsk) {
  settings_.fabrics = {Fabric::kTcp};
  ConnectBoth();
  ShakeHands();
  EXPECT_TRUE(absl::StrContains(WaitForReason(), "does not name verbs"));
  EXPECT_EQ(up_->all(), flights_);
}

TEST_F(BetweenHostsTest, RequiredPathComesBeforeTheFirstBytes) {
  settings_.policy = Policy::kRequire;
  ConnectBoth();
  ShakeHands();
  EXPECT_EQ(client_.Read(65), Record(60, 't'));  // waits for the path
  EXPECT_EQ(api_->counts().qps, 2);
  EXPECT_TRUE(WaitForPath("verbs")) << WaitForReason();
  Send(Record(10, 'a'), &client_, &server_);
}

TEST_F(BetweenHostsTest, RequiredPathThatIsRefusedEndsTheConnection) {
  settings_.policy = Policy::kRequire;
  ConnectClient();
  client_.Write(Hello());
  down_->Write(Record(100, 's'));
  EXPECT_EQ(client_.Read(105), Record(100, 's'));
  client_.Write(Record(50, 'f'));
  down_->Write(Record(60, 't'));
  EXPECT_EQ(client_.Read(1), "");
  EXPECT_TRUE(absl::StrContains(client_.error().message(), "is required"))
      << client_.error();
}

TEST_F(BetweenHostsTest, RequiredPathThatIsLostEndsTheConnection) {
  settings_.policy = Policy::kRequire;
  MoveToRdma();
  const size_t up = up_->all().size(), down = down_->all().size();
  api_->Hold();
  client_.Write(Record(1000, 'x'));
  server_.Write(Record(1000, 'y'));
  api_->RemoveDevice("client");
  api_->Release();
  for (User* user : {&client_, &server_}) {
    EXPECT_EQ(user->Read(1), "");
    EXPECT_TRUE(absl::StrContains(user->error().message(), "is required"))
        << user->error();
  }
  EXPECT_EQ(up_->all().size(), up) << "no byte goes over TCP";
  EXPECT_EQ(down_->all().size(), down);
}

TEST_F(BetweenHostsTest, RequiredPathNeedsTls) {
  settings_.policy = Policy::kRequire;
  ConnectBoth();
  client_.Write("PRI * HTTP/2.0");
  EXPECT_EQ(server_.Read(1), "");
  EXPECT_TRUE(absl::StrContains(server_.error().message(), "without TLS"))
      << server_.error();
}

TEST_F(BetweenHostsTest, LastBytesArriveBeforeTheEnd) {
  MoveToRdma();
  api_->Hold();
  client_.Write(Record(1000, 'z'));
  client_.Close();
  absl::SleepFor(absl::Milliseconds(20));
  api_->Release();
  EXPECT_EQ(server_.Read(1005), Record(1000, 'z'));
  EXPECT_EQ(server_.Read(1), "");
}

// gRPC ends the connection. At this time, TCP has no room for the bytes that
// the lost path had accepted.
TEST_F(BetweenHostsTest, LastBytesArriveAfterTheLossOfThePath) {
  MoveToRdma();
  api_->Hold();
  client_.Write(Record(1000, 'z'));
  up_->Fill();
  api_->RemoveDevice("client");
  api_->Release();
  ASSERT_TRUE(WaitForPath("http2"));
  client_.Close();
  absl::SleepFor(absl::Milliseconds(20));
  up_->Empty();
  EXPECT_EQ(server_.Read(1005), Record(1000, 'z'));
  EXPECT_EQ(server_.Read(1), "");
}

TEST_F(BetweenHostsTest, PathThatIsLostAtTheEndLosesNoBytes) {
  MoveToRdma();
  api_->Hold();
  client_.Write(Record(1000, 'z'));
  up_->Fill();
  client_.Close();
  api_->RemoveDevice("client");
  api_->Release();
  absl::SleepFor(absl::Milliseconds(20));
  up_->Empty();
  EXPECT_EQ(server_.Read(1005), Record(1000, 'z'));
  EXPECT_EQ(server_.Read(1), "");
}

// Tests that the path of a connection whose TCP is broken cannot send, and is
// not polled.
TEST_F(BetweenHostsTest, BrokenConnectionFreesItsQueuePairAtOnce) {
  MoveToRdma();
  api_->Hold();
  client_.Write(Record(1000, 'z'));
  down_->Close();
  EXPECT_EQ(client_.Read(1), "");
  client_.Close();
  EXPECT_TRUE(WaitForQueuePairs(1, absl::Seconds(1)));
  api_->Release();
}

// Tests a client that is not authenticated by TLS: it only sends the first
// bytes of TLS, and asks for a path.
TEST_F(BetweenHostsTest, StrangerGetsNoPath) {
  Listen();
  Accept();
  const std::string hello = Hello();
  up_->Write(hello);
  EXPECT_EQ(server_.Read(hello.size()), hello);
  server_.Write(Record(100, 's'));
  const TcpAddress client = TcpOf(client_address_);
  const TcpAddress server = TcpOf(server_address_);
  const auto stranger = Opener()(settings_, client, 0);
  absl::Notification answered;
  const auto call = CallByRdma(
      *stranger, server,
      MeetingToken(client, server) + hello.substr(0, TlsOpening::kBytes),
      [&](const absl::StatusOr<std::unique_ptr<fabric::Endpoint>>& got) {
        EXPECT_FALSE(got.ok());
        answered.Notify();
      });
  answered.WaitForNotification();
  EXPECT_EQ(Describe(false).path, "http2");
  EXPECT_TRUE(WaitForQueuePairs(0, kPatience));
}

// A fabric whose paths have no doorbell. No thread could therefore sleep on
// them.
class NoDoorbells final : public fabric::Fabric {
 public:
  absl::string_view name() const override { return "verbs"; }
  absl::StatusOr<std::string> Offer() override { return "offer"; }
  std::unique_ptr<fabric::PendingConnect> Listen(
      absl::string_view, fabric::ConnectCallback) override {
    return nullptr;
  }
  std::unique_ptr<fabric::PendingConnect> Connect(
      absl::string_view, absl::string_view,
      fabric::ConnectCallback done) override {
    done(fabric::fake::Link().Take(fabric::fake::Side::kA));
    return nullptr;
  }
};

TEST_F(BetweenHostsTest, RequiredPathMustBeUsable) {
  settings_.policy = Policy::kRequire;
  WrapConnected(ClientSide(), GetCrew(), settings_, client_.Take(),
                [](const Settings&, const TcpAddress&, uint16_t) {
                  return std::make_shared<NoDoorbells>();
                });
  client_.Write(Hello());
  client_.Write(Record(50, 'f'));
  EXPECT_EQ(client_.Read(1), "");
  EXPECT_TRUE(absl::StrContains(client_.error().message(), "ulimit -n"))
      << client_.error();
}

// Opening a port may block, and a stranger can connect often.
TEST_F(BetweenHostsTest, TakenRdmaPortIsSeldomTriedAgain) {
  std::atomic<int> openings{0};
  places_ = std::make_unique<MeetingPlaces>(
      settings_,
      [&](const Settings&, const TcpAddress&,
          uint16_t) -> absl::StatusOr<std::shared_ptr<fabric::Fabric>> {
        ++openings;
        return absl::AlreadyExistsError("the port is taken");
      });
  const absl::Time begin = absl::Now();
  places_->Open(server_address_, kServerPort);
  for (int i = 0; i < 50; ++i) {
    places_->WrapAccepted(ServerSide(), GetCrew(), [](const auto&) {});
  }
  EXPECT_LE(openings, 2 + (absl::Now() - begin) / absl::Seconds(1));
}

// Two threads open a port that is in use. The first thread blocks, and fails
// after the second thread has succeeded.
TEST_F(BetweenHostsTest, PortThatAnotherThreadHasOpenedStays) {
  std::atomic<int> openings{0};
  absl::Notification second_opened;
  std::weak_ptr<fabric::Fabric> port;
  places_ = std::make_unique<MeetingPlaces>(
      settings_,
      [&](const Settings&, const TcpAddress&,
          uint16_t) -> absl::StatusOr<std::shared_ptr<fabric::Fabric>> {
        const int number = ++openings;
        if (number == 2) second_opened.WaitForNotification();
        if (number < 3) return absl::AlreadyExistsError("the port is taken");
        auto made = std::make_shared<NoDoorbells>();
        port = made;
        return made;
      });
  places_->Open(server_address_, kServerPort);
  const auto accept_until = [&](int number) {
    while (openings < number) {
      places_->WrapAccepted(ServerSide(), GetCrew(), [](const auto&) {});
      absl::SleepFor(absl::Milliseconds(5));
    }
  };
  std::thread first([&] { accept_until(2); });
  while (openings < 2) absl::SleepFor(absl::Milliseconds(5));
  accept_until(3);
  EXPECT_FALSE(port.expired());
  second_opened.Notify();
  first.join();
  EXPECT_FALSE(port.expired());
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
