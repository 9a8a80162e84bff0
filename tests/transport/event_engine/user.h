// One end of a connection as gRPC uses it, for tests in place of gRPC and TLS.

#ifndef PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_USER_H_
#define PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_USER_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/event_engine/fake_tcp.h"
#include "transport/event_engine/connections.h"
#include "transport/event_engine/introducer.h"

namespace penstock {
namespace event_engine {

constexpr absl::Duration kPatience = absl::Seconds(30);

inline Crew* GetCrew() { return *Crew::Get(progress::PollingMode::kEvent); }

// Returns the first bytes of a TLS connection, with a new random number.
inline std::string Hello() {
  static std::atomic<char> next{0};
  const std::string head = {22, 3, 1, 0, 100, 1, 0, 0, 96, 3, 3};
  return head + std::string(32, ++next) + std::string(62, 'h');
}

inline std::string Record(size_t size, char byte) {
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

// Returns the state of the only open connection of this side.
inline MovableConnection::Description Describe(bool is_client) {
  for (const auto& connection : AllConnections()) {
    auto of = connection->Describe();
    if (connection->is_client() == is_client && !of.closed) return of;
  }
  return {};
}
// Waits until both sides use `path`.
inline bool WaitForPath(const std::string& path) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (Describe(true).path != path || Describe(false).path != path) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}
// Waits for the reason why the client stays on TCP.
inline std::string WaitForReason() {
  const absl::Time deadline = absl::Now() + kPatience;
  while (Describe(true).reason.empty() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return Describe(true).reason;
}

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_EVENT_ENGINE_USER_H_
