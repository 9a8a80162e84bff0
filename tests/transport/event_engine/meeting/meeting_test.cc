#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "transport/event_engine/meeting/call.h"
#include "transport/event_engine/meeting/place.h"

namespace penstock {
namespace event_engine {
namespace {

// Returns an address that no other test process uses. No TCP socket is needed.
TcpAddress Listener() {
  static std::atomic<uint16_t> next{1};
  TcpAddress address;
  address.ip = {0xfd};
  const pid_t pid = getpid();
  for (int i = 0; i < 4; ++i) address.ip[4 + i] = pid >> (8 * i);
  address.port = next++;
  return address;
}

TcpAddress Client() {
  TcpAddress address = Listener();
  address.ip[1] = 1;
  return address;
}

// Waits for the result of an attempt.
struct Result {
  fabric::ConnectCallback Take() {
    return [this](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> endpoint) {
      result = std::move(endpoint);
      done.Notify();
    };
  }
  bool ok() {
    done.WaitForNotification();
    return result.ok();
  }

  absl::Notification done;
  absl::StatusOr<std::unique_ptr<fabric::Endpoint>> result;
};

fabric::shm::Options OptionsOf() {
  fabric::shm::Options options;
  options.other_users = false;
  return options;
}

std::unique_ptr<MeetingPlace> Open(const TcpAddress& address) {
  auto place = MeetingPlace::Open(address, OptionsOf());
  EXPECT_TRUE(place.ok()) << place.status();
  return *std::move(place);
}

TEST(MeetingTest, TheTwoEndsOfAConnectionMeet) {
  const TcpAddress server = Listener(), client = Client();
  auto place = Open(server);
  Result of_server, of_client;
  auto expected = place->Expect(client, server, of_server.Take());
  auto call = MeetingCall::Start(client, server, OptionsOf(), of_client.Take());
  EXPECT_TRUE(of_client.ok()) << of_client.result.status();
  EXPECT_TRUE(of_server.ok()) << of_server.result.status();
}

TEST(MeetingTest, ListenerAtTheWildcardAddressIsFound) {
  const TcpAddress server = Listener(), client = Client();
  auto place = Open(server.Wildcard());
  Result of_server, of_client;
  auto expected = place->Expect(client, server, of_server.Take());
  auto call = MeetingCall::Start(client, server, OptionsOf(), of_client.Take());
  EXPECT_TRUE(of_client.ok()) << of_client.result.status();
}

TEST(MeetingTest, StockServerIsAnError) {
  Result of_client;
  auto call =
      MeetingCall::Start(Client(), Listener(), OptionsOf(), of_client.Take());
  EXPECT_FALSE(of_client.ok());
}

TEST(MeetingTest, ConnectionOfAnotherProcessIsRefused) {
  const TcpAddress server = Listener();
  auto place = Open(server);
  Result of_server, of_client;
  auto expected = place->Expect(Client(), server, of_server.Take());
  auto call =
      MeetingCall::Start(Client(), server, OptionsOf(), of_client.Take());
  EXPECT_FALSE(of_client.ok());
}

TEST(MeetingTest, TakenNameIsAnError) {
  const TcpAddress server = Listener();
  auto place = Open(server);
  EXPECT_FALSE(MeetingPlace::Open(server, OptionsOf()).ok());
}

TEST(MeetingTest, StoppedCallDoesNotAnswer) {
  const TcpAddress server = Listener(), client = Client();
  // Stops the call on the event loop's thread. The call runs on that thread,
  // and so has not begun yet.
  absl::Notification done;
  auto* const loop = *progress::EventLoop::Get();
  loop->Post([&] {
    auto call = MeetingCall::Start(client, server, OptionsOf(), [](auto) {
      ADD_FAILURE() << "was stopped";
    });
    call.reset();
    progress::EventLoop::Get().value()->Post([&] { done.Notify(); });
  });
  done.WaitForNotification();
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
