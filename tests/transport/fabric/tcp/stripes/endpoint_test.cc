// Tests the limits of an endpoint of stripes, over loopback.

#include "transport/fabric/tcp/stripes/endpoint.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/stripes/tcp_pair.h"
#include "transport/base/unique_fd.h"
#include "transport/connection/keepalive.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

class Counter : public EndpointEvents {
 public:
  void OnPacket(absl::Span<const uint8_t> packet) override {
    bytes += packet.size();
  }
  void OnWritable() override {}
  void OnReadDone(uint64_t, const absl::Status& status) override {
    EXPECT_TRUE(status.ok()) << status;
    ++reads;
  }
  void OnDoorbell() override {}
  void OnBroken(const absl::Status& cause) override { broken = cause; }

  size_t bytes = 0;
  size_t reads = 0;
  absl::Status broken;
};

// An endpoint of two stripes. The test has the other ends of the sockets.
class StripesEndpointTest : public testing::Test {
 protected:
  StripesEndpointTest() {
    std::vector<base::UniqueFd> sockets;
    for (TcpPair& pair : pairs_) {
      fds_.push_back(pair.server.get());
      sockets.push_back(std::move(pair.server));
    }
    endpoint_ = StripesEndpoint::Create(std::move(sockets)).value();
    endpoint_->Start(&events_);
  }

  // Polls whenever there is input, for as long as `goes_on` returns true. Calls
  // `polled` after each poll.
  static bool PollWhile(
      Endpoint* endpoint, const std::function<bool()>& goes_on,
      const std::function<void()>& polled = [] {}) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(9);
    while (goes_on()) {
      if (std::chrono::steady_clock::now() > end) return false;
      if (!endpoint->HasInput()) continue;
      endpoint->Poll();
      polled();
    }
    return true;
  }
  // Makes an endpoint of the other ends.
  std::unique_ptr<Endpoint> Peer(Counter* events) {
    std::vector<base::UniqueFd> sockets;
    for (TcpPair& pair : pairs_) sockets.push_back(std::move(pair.client));
    std::unique_ptr<Endpoint> peer =
        StripesEndpoint::Create(std::move(sockets)).value();
    peer->Start(events);
    return peer;
  }

  TcpPair pairs_[2];
  std::vector<int> fds_;
  Counter events_;
  std::unique_ptr<Endpoint> endpoint_;
  std::atomic<bool> done_{false};
};

TEST_F(StripesEndpointTest, IsNotDrainedBeforeThePeersKernelHasAllBytes) {
  const std::vector<uint8_t> packet(60 * 1024);
  EXPECT_TRUE(endpoint_->IsDrained());
  // Sends until bytes wait in this side's kernel, and none in the endpoint.
  size_t sent = 0;
  int waiting = 0;
  while (waiting == 0) {
    ASSERT_TRUE(endpoint_->Send({packet.data(), packet.size()}));
    sent += packet.size();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(ioctl(fds_[0], SIOCOUTQ, &waiting), 0);
  }
  EXPECT_FALSE(endpoint_->IsDrained());
  Counter received;
  const std::unique_ptr<Endpoint> peer = Peer(&received);
  ASSERT_TRUE(PollWhile(peer.get(), [&] { return received.bytes < sent; }));
  // Polls whenever there is input, and checks after each poll, like an owner.
  bool is_drained = false;
  ASSERT_TRUE(PollWhile(
      endpoint_.get(), [&] { return !is_drained; },
      [&] { is_drained = endpoint_->IsDrained(); }));
}

TEST_F(StripesEndpointTest, OnePollSendsABoundedAmount) {
  constexpr int kRoom = 64 * 1024 * 1024;
  for (int fd : fds_) {
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kRoom, sizeof kRoom) != 0) {
      GTEST_SKIP() << "needs CAP_NET_ADMIN for a large send buffer";
    }
  }
  constexpr size_t kReads = 64, kBytes = 256 * 1024;
  Counter received;
  const std::unique_ptr<Endpoint> peer = Peer(&received);
  const memory::Block block = memory::AllocateBlock(kBytes).value();
  const Exposure exposure =
      endpoint_->Expose(memory::Payload(block.AsBytes()), 1).value();
  std::vector<uint8_t> into(kReads * kBytes);
  for (size_t i = 0; i < kReads; ++i) {
    peer->Read(exposure.region[0], 0, {&into[i * kBytes], kBytes}, i);
  }
  while (!endpoint_->HasInput()) std::this_thread::yield();
  endpoint_->Poll();
  int waiting = 0, all = 0;
  for (int fd : fds_) {
    ASSERT_EQ(ioctl(fd, SIOCOUTQ, &waiting), 0);
    all += waiting;
  }
  EXPECT_GT(all, 0);
  EXPECT_LE(all, 5 * 1024 * 1024);
  std::thread server(
      [&] { EXPECT_TRUE(PollWhile(endpoint_.get(), [&] { return !done_; })); });
  EXPECT_TRUE(PollWhile(peer.get(), [&] { return received.reads < kReads; }));
  done_ = true;
  server.join();
}

TEST_F(StripesEndpointTest, StripesShareTheLimitOfWaitingReads) {
  const memory::Block block = memory::AllocateBlock(1024 * 1024).value();
  const Exposure exposure =
      endpoint_->Expose(memory::Payload(block.AsBytes()), 1).value();
  std::string request;
  tcp::AppendUnitHeader(
      tcp::UnitHeader{tcp::kReadBodyBytes, tcp::UnitType::kRead, 1}, &request);
  tcp::AppendReadRequest({exposure.region[0].key, 0, 1024 * 1024}, &request);
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += request;
  // Half of the session's limit, on one of two stripes.
  for (int i = 0; i < 400 && events_.broken.ok(); ++i) {
    ASSERT_EQ(send(pairs_[1].client.get(), requests.data(), requests.size(),
                   MSG_NOSIGNAL),
              static_cast<ssize_t>(requests.size()));
    while (endpoint_->HasInput()) endpoint_->Poll();
  }
  ASSERT_TRUE(PollWhile(endpoint_.get(), [&] {
    return events_.broken.ok() && endpoint_->HasInput();
  }));
  EXPECT_EQ(events_.broken.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StripesEndpointTest, DeadSocketsAreNoticedBeforeKeepaliveGivesUp) {
  const absl::Duration limit = connection::Keepalive::Config().timeout;
  for (int fd : fds_) {
    int idle = 0, interval = 0, probes = 0, millis = 0;
    socklen_t size = sizeof idle;
    getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size);
    getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, &size);
    getsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, &size);
    getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, &size);
    EXPECT_LT(absl::Seconds(idle + interval * probes), limit);
    EXPECT_LT(absl::Milliseconds(millis), limit);
    EXPECT_GT(millis, 0);
  }
}

}  // namespace
}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
