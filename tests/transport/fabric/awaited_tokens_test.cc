// Tests which attempt gets a peer that arrives, and how the other attempts end.

#include "transport/fabric/awaited_tokens.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/setup_test_util.h"

namespace penstock {
namespace fabric {
namespace {

constexpr absl::Duration kLong = absl::Minutes(10);
constexpr absl::Duration kShort = absl::Milliseconds(20);

std::shared_ptr<AwaitedTokens> Make(absl::Duration limit = kLong) {
  return AwaitedTokens::Create(Loop(), limit, "nobody came to the test");
}

TEST(AwaitedTokens, AttemptIsTakenOnceByItsName) {
  auto tokens = Make();
  Told told;
  auto handle = tokens->Await("name", told.Give());
  EXPECT_EQ(tokens->Take("another name"), nullptr);
  std::shared_ptr<Attempt> taken = tokens->Take("name");
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->token(), "token");
  EXPECT_EQ(tokens->Take("name"), nullptr);
  EXPECT_EQ(told.calls(), 0);
}

TEST(AwaitedTokens, WrongProofUsesNothingUp) {
  auto tokens = Make();
  Told told;
  auto handle = tokens->Await("name", told.Give());
  auto knows = [](const std::string& token) {
    return [token](const Attempt& attempt) { return attempt.token() == token; };
  };
  EXPECT_EQ(tokens->Take("name", knows("guess")), nullptr);
  EXPECT_NE(tokens->Take("name", knows("token")), nullptr);
}

TEST(AwaitedTokens, SecondAttemptOfANameIsToldAndTheFirstStillWaits) {
  auto tokens = Make();
  Told first, second;
  auto one = tokens->Await("name", first.Give());
  auto two = tokens->Await("name", second.Give());
  EXPECT_TRUE(absl::IsAlreadyExists(second.Wait()));
  two.reset();
  EXPECT_NE(tokens->Take("name"), nullptr);
  EXPECT_EQ(first.calls(), 0);
}

TEST(AwaitedTokens, CancelledAttemptIsForgottenAndNotTold) {
  auto tokens = Make();
  Told told;
  std::shared_ptr<Attempt> attempt = told.Give();
  std::weak_ptr<Attempt> forgotten = attempt;
  tokens->Await("name", std::move(attempt)).reset();
  EXPECT_TRUE(forgotten.expired());
  EXPECT_EQ(tokens->Take("name"), nullptr);
  EXPECT_EQ(told.calls(), 0);
}

// Awaits a name whose earlier attempt was cancelled, but not yet forgotten.
TEST(AwaitedTokens, AttemptThatWasDroppedDoesNotHoldItsName) {
  auto tokens = Make();
  Told first, second;
  std::shared_ptr<Attempt> dropped = first.Give();
  auto one = tokens->Await("name", dropped);
  dropped->Cancel();
  EXPECT_EQ(tokens->Take("name"), nullptr);
  auto two = tokens->Await("name", second.Give());
  one.reset();
  EXPECT_NE(tokens->Take("name"), nullptr) << "not the second one's to forget";
}

TEST(AwaitedTokens, AttemptEndsInTimeAndIsForgotten) {
  auto tokens = Make(kShort);
  Told told;
  auto handle = tokens->Await("name", told.Give());
  const absl::Status status = told.Wait();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "nobody came")) << status;
  EXPECT_EQ(tokens->Take("name"), nullptr);
}

TEST(AwaitedTokens, TakingDoesNotLengthenTheTime) {
  auto tokens = Make(kShort);
  Told told;
  auto handle = tokens->Await("name", told.Give());
  std::shared_ptr<Attempt> taken = tokens->Take("name");
  EXPECT_TRUE(absl::IsDeadlineExceeded(told.Wait()));
}

TEST(AwaitedTokens, FinishedAttemptIsToldNothingMore) {
  auto tokens = Make(kShort);
  Told told, later;
  auto handle = tokens->Await("name", told.Give());
  tokens->Take("name")->Finish(absl::UnavailableError("first"));
  auto after = tokens->Await("other", later.Give());
  EXPECT_TRUE(absl::IsDeadlineExceeded(later.Wait())) << "its own time is over";
  EXPECT_TRUE(absl::IsUnavailable(told.Wait()));
  EXPECT_EQ(told.calls(), 1);
}

TEST(AwaitedTokens, MayGoBeforeTheHandles) {
  auto tokens = Make(kShort);
  Told kept, cancelled;
  auto handle = tokens->Await("kept", kept.Give());
  auto other = tokens->Await("cancelled", cancelled.Give());
  tokens.reset();
  other.reset();
  EXPECT_TRUE(absl::IsDeadlineExceeded(kept.Wait()));
  DrainLoop();
  EXPECT_EQ(cancelled.calls(), 0);
}

// Destroys a handle in a forked child in which the lock is held forever. If the
// handle waited for the lock, an alarm would end the child.
TEST(AwaitedTokens, HandleInAForkedChildWaitsForNobody) {
  auto tokens = Make();
  Told told;
  auto handle = tokens->Await("name", told.Give());
  pid_t child = -1;
  (void)tokens->Take("name", [&](const Attempt&) {
    child = fork();
    if (child == 0) {
      alarm(10);
      handle.reset();
      _exit(0);
    }
    return false;
  });
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NE(tokens->Take("name"), nullptr) << "the parent's goes on";
}

TEST(FailLater, TellsOnTheLoopsThread) {
  absl::Notification held;
  Loop()->Post([&held] { held.WaitForNotification(); });
  Told told;
  auto handle = FailLater(told.Give(), absl::NotFoundError("no device"));
  EXPECT_EQ(told.calls(), 0);
  held.Notify();
  EXPECT_TRUE(absl::IsNotFound(told.Wait()));
}

TEST(FailLater, CancelledAttemptIsNotTold) {
  absl::Notification held;
  Loop()->Post([&held] { held.WaitForNotification(); });
  Told told;
  FailLater(told.Give(), absl::NotFoundError("no device")).reset();
  held.Notify();
  DrainLoop();
  EXPECT_EQ(told.calls(), 0);
}

}  // namespace
}  // namespace fabric
}  // namespace penstock
