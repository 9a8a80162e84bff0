// Tests connections whose TCP ends at any moment, even while the ends move to
// shared memory. CMakeLists.txt builds this file, because Bazel's gRPC is
// older.

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/fake_tcp.h"
#include "tests/transport/event_engine/user.h"
#include "transport/event_engine/introducer.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr char kIp[] = "127.77.7.8";
constexpr uint16_t kServerPort = 50052;
// Longer than the ends take to move.
constexpr uint32_t kLongestMicros = 20000;

// Returns the number of connections that are not closed.
size_t OpenConnections() {
  size_t open = 0;
  for (const auto& connection : AllConnections()) {
    open += connection->Describe().closed ? 0 : 1;
  }
  return open;
}

// Sends until the connection has ended.
void SendAll(User* user, const std::atomic<bool>* has_ended, uint32_t seed) {
  std::mt19937 random(seed);
  while (!*has_ended) user->Write(std::string(1 + random() % 5000, 'x'));
}

// Returns the number of bytes received before the end.
size_t ReadAll(User* user) {
  size_t bytes = 0;
  while (user->error().ok()) bytes += user->Read(1 << 16).size();
  return bytes;
}

TEST(LifelineTest, EndOfTcpEndsTheConnectionAtAnyMoment) {
  MeetingPlaces places{Settings()};
  const auto server_address = AddressAt(kIp, kServerPort);
  places.Open(server_address, kServerPort);
  int moved = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto up = std::make_shared<Pipe>(GetCrew());
    const auto down = std::make_shared<Pipe>(GetCrew());
    const auto client_address =
        AddressAt(kIp, static_cast<uint16_t>(40000 + seed));
    User client, server;
    WrapConnected(
        std::make_unique<FakeTcp>(down, up, client_address, server_address),
        GetCrew(), Settings(), client.Take());
    client.Wait();
    places.WrapAccepted(
        std::make_unique<FakeTcp>(up, down, server_address, client_address),
        GetCrew(), server.Take());
    server.Wait();
    std::atomic<bool> has_ended{false};
    std::thread writer([&] { SendAll(&client, &has_ended, seed); });
    std::thread reader([&] { (void)ReadAll(&server); });
    std::this_thread::sleep_for(
        std::chrono::microseconds(random() % kLongestMicros));
    moved += Describe(/*is_client=*/true).path == "shm" ? 1 : 0;
    // Ends both directions in random order.
    (random() % 2 == 0 ? up : down)->Close();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    up->Close();
    down->Close();
    reader.join();
    (void)ReadAll(&client);
    has_ended = true;
    writer.join();
    client.Close();
    server.Close();
    EXPECT_EQ(OpenConnections(), 0u);
    if (HasFailure()) return;
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 40) << "some must end before they have moved";
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
