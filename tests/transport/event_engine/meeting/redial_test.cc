#include "transport/event_engine/meeting/redial.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "transport/fabric/fake/link.h"

namespace penstock {
namespace event_engine {
namespace {

using Answer = absl::StatusOr<std::unique_ptr<fabric::Endpoint>>;

Answer NewEndpoint() {
  return fabric::fake::Link().Take(fabric::fake::Side::kA);
}

// Dials with two pauses. All `answers` except the last are errors.
Answer RedialWith(std::vector<bool> answers, int* dialed) {
  absl::Notification done;
  Answer last;
  auto handle = Redial::Start(
      [&](fabric::ConnectCallback answered)
          -> std::unique_ptr<fabric::PendingConnect> {
        const bool good = answers[(*dialed)++];
        answered(good ? NewEndpoint() : Answer(absl::AbortedError("refused")));
        return nullptr;
      },
      {absl::Milliseconds(1), absl::Milliseconds(1)},
      [&](Answer answer) {
        last = std::move(answer);
        done.Notify();
      });
  done.WaitForNotification();
  return last;
}

TEST(RedialTest, FirstSuccessEndsIt) {
  int dialed = 0;
  EXPECT_TRUE(RedialWith({false, true, false}, &dialed).ok());
  EXPECT_EQ(dialed, 2);
}

TEST(RedialTest, LastErrorIsTheResult) {
  int dialed = 0;
  EXPECT_TRUE(
      absl::IsAborted(RedialWith({false, false, false}, &dialed).status()));
  EXPECT_EQ(dialed, 3);
}

TEST(RedialTest, DestroyedHandleEndsIt) {
  absl::Notification dialed;
  auto callback = std::make_shared<int>();
  std::weak_ptr<int> weak = callback;
  auto handle = Redial::Start(
      [&](fabric::ConnectCallback answered)
          -> std::unique_ptr<fabric::PendingConnect> {
        answered(absl::AbortedError("refused"));
        dialed.Notify();
        return nullptr;
      },
      {absl::InfiniteDuration()},
      [callback = std::move(callback)](const Answer&) {
        ADD_FAILURE() << "was stopped";
      });
  dialed.WaitForNotification();
  handle.reset();
  absl::Notification turned;
  (*progress::EventLoop::Get())->Post([&] {
    (*progress::EventLoop::Get())->Post([&] { turned.Notify(); });
  });
  turned.WaitForNotification();
  EXPECT_TRUE(weak.expired()) << "the callback is dropped";
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
