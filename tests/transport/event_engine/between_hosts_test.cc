// Tests connections between two hosts: TCP in memory, and simulated RDMA
// devices. The test itself takes the place of gRPC and TLS.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/event_engine/fake_tcp.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/event_engine/connections.h"
#include "transport/event_engine/introducer.h"
#include "transport/fabric/verbs/fabric.h"

namespace penstock {
namespace event_engine {
namespace {

using fabric::verbs::FakeVerbs;
using fabric::verbs::VerbsFabric;

constexpr char kClientIp[] = "10.0.0.1";
constexpr char kServerIp[] = "10.0.0.2";
constexpr absl::Duration kPatience = absl::Seconds(30);

Crew* GetCrew() { return *Crew::Get(progress::PollingMode::kEvent); }

// Returns the first bytes of a TLS connection, with a random number of their
// own.
std::string Hello() {
  static std::atomic<char> next{0};
  const std::string head = {22, 3, 1, 0, 100, 1, 0, 0, 96, 3, 3};
  return head + std::string(32, ++next) + std::string(62, 'h');
}

std::string Record(size_t size, char byte) {
  const std::string head = {23, 3, 3, static_cast<char>(size >> 8),
                            static_cast<char>(size & 0xff)};
  return head + std::string(size, byte);
}

// One end of a connection as gRPC uses it, but with blocking calls.
class User {
 public:
  OnEndpoint Take() {
    return [this](absl::StatusOr<std::unique_ptr<EventEngine::Endpoint>> made) {
      ASSERT_TRUE(made.ok()) << made.status();
      endpoint_ = *std::move(made);
      has_endpoint_.Notify();
    };
  }
  void Wait() { has_endpoint_.WaitForNotification(); }
  void Close() { endpoint_.reset(); }

  void Write(const std::string& bytes) {
    SliceBuffer data;
    data.Append(Slice::FromCopiedString(bytes));
    auto written = std::make_shared<absl::Notification>();
    if (endpoint_->Write([written](const absl::Status&) { written->Notify(); },
                         &data, {})) {
      return;
    }
    EXPECT_TRUE(written->WaitForNotificationWithTimeout(kPatience));
  }
  // Returns `size` bytes, or fewer at the end of the connection.
  std::string Read(size_t size) {
    while (read_.size() < size && error_.ok()) ReadSome();
    const std::string bytes = read_.substr(0, size);
    read_.erase(0, bytes.size());
    return bytes;
  }
  const absl::Status& error() const { return error_; }

 private:
  void ReadSome() {
    SliceBuffer buffer;
    absl::Notification done;
    if (!endpoint_->Read(
            [&](const absl::Status& status) {
              error_ = status;
              done.Notify();
            },
            &buffer, {})) {
      done.WaitForNotification();
    }
    for (size_t i = 0; i < buffer.Count(); ++i) {
      read_ += std::string(buffer.RefSlice(i).as_string_view());
    }
  }

  absl::Notification has_endpoint_;
  std::unique_ptr<EventEngine::Endpoint> endpoint_;
  std::string read_;
  absl::Status error_;
};

class BetweenHostsTest : public testing::Test {
 protected:
  BetweenHostsTest() {
    settings_.fabrics = {Fabric::kVerbs, Fabric::kTcp};
    fabric::verbs::DeviceOptions device;
    device.name = "client";
    device.addresses = {kClientIp};
    api_->AddDevice(device);
    device.name = "server";
    device.addresses = {kServerIp};
    api_->AddDevice(device);
  }
  ~BetweenHostsTest() override {
    client_.Close();
    server_.Close();
  }

  RdmaOpener Opener() {
    return [api = api_](const Settings&, const TcpAddress& local, uint16_t port)
               -> absl::StatusOr<std::shared_ptr<fabric::Fabric>> {
      fabric::verbs::Options options;
      options.addresses = {local.IpText()};
      options.listen_port = port;
      options.setup_timeout = absl::Seconds(2);
      auto rdma = std::make_shared<VerbsFabric>(options, api);
      const auto offer = rdma->Offer();
      if (!offer.ok()) return offer.status();
      return rdma;
    };
  }
  void ConnectClient() {
    client_side_ = NewSide(/*is_client=*/true, client_port_, server_port_);
    WrapConnected(std::move(client_side_), GetCrew(), settings_, client_.Take(),
                  Opener());
    client_.Wait();
  }
  void Listen() {
    places_ = std::make_unique<MeetingPlaces>(settings_, Opener());
    places_->Open(AddressAt(kServerIp, server_port_), server_port_);
  }
  void Accept() {
    places_->WrapAccepted(
        NewSide(/*is_client=*/false, client_port_, server_port_), GetCrew(),
        server_.Take());
    server_.Wait();
  }
  void ConnectBoth() {
    Listen();
    Accept();
    ConnectClient();
  }
  std::unique_ptr<FakeTcp> NewSide(bool is_client, uint16_t client_port,
                                   uint16_t server_port) {
    const auto client = AddressAt(kClientIp, client_port);
    const auto server = AddressAt(kServerIp, server_port);
    return is_client ? std::make_unique<FakeTcp>(down_, up_, client, server)
                     : std::make_unique<FakeTcp>(up_, down_, server, client);
  }

  MovableConnection::Description Describe(bool is_client) {
    for (const auto& connection : AllConnections()) {
      auto of = connection->Describe();
      if (connection->is_client() == is_client && !of.closed) return of;
    }
    return {};
  }
  bool WaitForPath(const std::string& path) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Describe(true).path != path || Describe(false).path != path) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  // Waits for the reason why the client stays on TCP.
  std::string WaitForReason() {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Describe(true).reason.empty() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return Describe(true).reason;
  }
  // Sends bytes from one end to the other.
  static void Send(const std::string& bytes, User* from, User* to) {
    from->Write(bytes);
    EXPECT_EQ(to->Read(bytes.size()), bytes);
  }
  // Sends the first TLS messages in both directions.
  void ShakeHands() {
    hello_ = Hello();
    Send(hello_, &client_, &server_);
    Send(Record(100, 's'), &server_, &client_);
  }

  // Never destroyed, because the event loop may still use it.
  FakeVerbs* const api_ = new FakeVerbs;
  Settings settings_;
  const uint16_t client_port_ = 40000;
  const uint16_t server_port_ = 50051;
  const std::shared_ptr<Pipe> up_ = std::make_shared<Pipe>(GetCrew());
  const std::shared_ptr<Pipe> down_ = std::make_shared<Pipe>(GetCrew());
  std::unique_ptr<FakeTcp> client_side_;
  std::unique_ptr<MeetingPlaces> places_;
  User client_, server_;
  std::string hello_;
};

TEST_F(BetweenHostsTest, TlsMovesToRdma) {
  ConnectBoth();
  ShakeHands();
  ASSERT_TRUE(WaitForPath("verbs")) << WaitForReason();
  const size_t up = up_->all().size(), down = down_->all().size();
  for (size_t size : {1, 1000, 16000, 16384}) {
    Send(Record(size, 'a'), &client_, &server_);
    Send(Record(size, 'b'), &server_, &client_);
  }
  EXPECT_EQ(up_->all().size(), up) << "the rest is on the path";
  EXPECT_EQ(down_->all().size(), down);
}

TEST_F(BetweenHostsTest, LostPathLosesNoBytes) {
  ConnectBoth();
  ShakeHands();
  ASSERT_TRUE(WaitForPath("verbs")) << WaitForReason();
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
  EXPECT_FALSE(WaitForReason().empty());
  client_.Write(Record(100, 'c'));
  EXPECT_EQ(up_->all(), hello_ + Record(100, 'c'));
  EXPECT_EQ(Describe(true).path, "http2");
}

// Another user of the server's machine listens at the port, and knows the
// addresses of the connection, but not its bytes.
TEST_F(BetweenHostsTest, AnotherUsersPortIsRefused) {
  TcpAddress client = *TcpAddress::Of(
      AddressAt(kClientIp, client_port_).address(), sizeof(sockaddr_in));
  TcpAddress server = *TcpAddress::Of(
      AddressAt(kServerIp, server_port_).address(), sizeof(sockaddr_in));
  auto other = *Opener()(settings_, server, server_port_);
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
  EXPECT_FALSE(WaitForReason().empty());
  EXPECT_EQ(up_->all(), hello_);
  EXPECT_EQ(Describe(true).path, "http2");
}

TEST_F(BetweenHostsTest, TakenRdmaPortIsTheReason) {
  TcpAddress server = *TcpAddress::Of(
      AddressAt(kServerIp, server_port_).address(), sizeof(sockaddr_in));
  auto other = *Opener()(settings_, server, server_port_);
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
  EXPECT_EQ(up_->all(), hello_);
}

TEST_F(BetweenHostsTest, RequiredPathComesBeforeTheFirstBytes) {
  settings_.policy = Policy::kRequire;
  ConnectBoth();
  ShakeHands();  // reads nothing before the path is found
  EXPECT_TRUE(WaitForPath("verbs")) << WaitForReason();
  Send(Record(10, 'a'), &client_, &server_);
}

TEST_F(BetweenHostsTest, RequiredPathThatIsRefusedEndsTheConnection) {
  settings_.policy = Policy::kRequire;
  ConnectClient();
  client_.Write(Hello());
  down_->Write(Record(100, 's'));
  EXPECT_EQ(client_.Read(1), "");
  EXPECT_TRUE(absl::StrContains(client_.error().message(), "is required"))
      << client_.error();
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
  ConnectBoth();
  ShakeHands();
  ASSERT_TRUE(WaitForPath("verbs")) << WaitForReason();
  api_->Hold();
  client_.Write(Record(1000, 'z'));
  client_.Close();
  absl::SleepFor(absl::Milliseconds(20));
  api_->Release();
  EXPECT_EQ(server_.Read(1005), Record(1000, 'z'));
  EXPECT_EQ(server_.Read(1), "");
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
