#include "collectives/host/meeting.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <ctime>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/host/introduction.h"
#include "collectives/host/member.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/address.h"

namespace penstock::collectives {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// A fixture with a meeting of two ranks. Rank 0 leads the meeting on another
// thread.
class MeetingTest : public testing::Test {
 protected:
  MeetingTest() {
    auto meeting = Meeting::Open();
    EXPECT_TRUE(meeting.ok()) << meeting.status();
    invitation_ = meeting->invitation();
    led_ = std::async(std::launch::async,
                      [meeting = *std::move(meeting)]() mutable {
                        return meeting.Lead(2, {kMinSlotBytes}, kLong);
                      });
  }

  // Lets rank 1 join at the end, which must succeed although others were
  // refused, or say nothing.
  ~MeetingTest() override {
    EXPECT_EQ(JoinAs(invitation_, 1, 2, kMinSlotBytes), "");
    EXPECT_TRUE(led_.get().ok());
  }

  static std::string JoinAs(const std::string& invitation, int rank, int ranks,
                            uint64_t slot_bytes) {
    return std::string(
        Join(invitation, rank, ranks, {slot_bytes}, kLong).status().message());
  }

  std::string invitation_;
  std::vector<base::UniqueFd> silent_;
  std::future<absl::StatusOr<Members>> led_;
};

TEST_F(MeetingTest, RefusesAWrongToken) {
  std::string other = invitation_;
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_EQ(JoinAs(other, 1, 2, kMinSlotBytes),
            "rank 0 refuses: this is another group: wrong token");
}

TEST_F(MeetingTest, RefusesAnotherNumberOfRanks) {
  EXPECT_EQ(JoinAs(invitation_, 1, 3, kMinSlotBytes),
            "rank 0 refuses: rank 1 expects 3 ranks, rank 0 expects 2");
}

TEST_F(MeetingTest, RefusesSlotsOfAnotherSize) {
  EXPECT_EQ(JoinAs(invitation_, 1, 2, 2 * kMinSlotBytes),
            "rank 0 refuses: rank 1 has slots of 8192 bytes, rank 0 of 4096");
}

TEST_F(MeetingTest, RefusesAPoolOfAnotherSize) {
  EXPECT_EQ(
      Join(invitation_, 1, 2, {kMinSlotBytes, 8192}, kLong).status().message(),
      "rank 0 refuses: rank 1 has a pool of 8192 bytes, rank 0 of 0");
}

TEST_F(MeetingTest, RefusesAnotherVersionAndNonsense) {
  const std::string name = invitation_.substr(0, invitation_.find(' '));
  for (const bool version : {true, false}) {
    auto socket = fabric::shm::ConnectTo({name, ""});
    ASSERT_TRUE(socket.ok()) << socket.status();
    std::string bytes = version ? Encode(Introduction()) : "nonsense";
    if (version) bytes[4] = 9;
    ASSERT_GT(write(socket->get(), bytes.data(), bytes.size()), 0);
    const auto answer = ReceiveUntil(socket->get(), absl::InfiniteFuture());
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->introduction.text,
              version ? "a rank speaks version 9 of collectives, not 2"
                      : "malformed message of a rank");
  }
}

TEST_F(MeetingTest, RefusesARankWithoutMemory) {
  const std::string name = invitation_.substr(0, invitation_.find(' '));
  auto socket = fabric::shm::ConnectTo({name, ""});
  ASSERT_TRUE(socket.ok()) << socket.status();
  const std::string hello = Encode(Introduction());
  ASSERT_GT(write(socket->get(), hello.data(), hello.size()), 0);
  const auto answer = ReceiveUntil(socket->get(), absl::InfiniteFuture());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->introduction.text,
            "a rank's message has 0 descriptors, not 2");
}

TEST_F(MeetingTest, SilentCallersKeepNobodyOut) {
  const std::string name = invitation_.substr(0, invitation_.find(' '));
  const absl::Time end = absl::Now() + kLong;
  while (silent_.size() < 3 * kMaxHostRanks) {
    ASSERT_LT(absl::Now(), end) << "rank 0 accepts nobody";
    auto socket = fabric::shm::ConnectTo({name, ""});
    if (socket.ok()) silent_.push_back(*std::move(socket));
  }
}

// Calls before rank 0 accepts callers, and after as many others as can wait.
TEST(Meeting, ARankWaitsUntilItsCallIsAccepted) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  const std::string invitation = meeting->invitation();
  std::vector<base::UniqueFd> silent;
  absl::Status last;
  while (last.ok()) {
    auto socket = fabric::shm::ConnectTo(
        {invitation.substr(0, invitation.find(' ')), ""});
    last = socket.status();
    if (socket.ok()) silent.push_back(*std::move(socket));
  }
  EXPECT_EQ(last.code(), absl::StatusCode::kResourceExhausted) << last;
  auto joined = std::async(std::launch::async, [&] {
    return Join(invitation, 1, 2, {kMinSlotBytes}, kLong).status();
  });
  EXPECT_EQ(joined.wait_for(std::chrono::milliseconds(100)),
            std::future_status::timeout);
  EXPECT_TRUE(meeting->Lead(2, {kMinSlotBytes}, kLong).ok());
  EXPECT_EQ(joined.get(), absl::OkStatus());
}

TEST(Meeting, RefusesARankThatComesTwice) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  const std::string invitation = meeting->invitation();
  const auto join = [&](int rank) {
    return std::async(std::launch::async, [=] {
      return Join(invitation, rank, 3, {kMinSlotBytes}, kLong);
    });
  };
  auto led = std::async(std::launch::async, [&] {
    return meeting->Lead(3, {kMinSlotBytes}, kLong);
  });
  auto first = join(1), second = join(1);
  // Waits until one of the two callers is refused. The other caller waits for
  // rank 2.
  while (first.wait_for(std::chrono::milliseconds(1)) ==
             std::future_status::timeout &&
         second.wait_for(std::chrono::milliseconds(1)) ==
             std::future_status::timeout) {
  }
  auto third = join(2);
  const std::vector<absl::Status> results = {first.get().status(),
                                             second.get().status()};
  EXPECT_NE(results[0].ok(), results[1].ok());
  EXPECT_EQ(results[results[0].ok() ? 1 : 0].message(),
            "rank 0 refuses: rank 1 has come already");
  EXPECT_TRUE(third.get().ok());
  EXPECT_TRUE(led.get().ok());
}

// Sends the greeting of a rank. The rank then waits for the others.
base::UniqueFd SayHello(const std::string& invitation, int rank, int ranks) {
  const std::vector<std::string> parts = absl::StrSplit(invitation, ' ');
  auto socket = fabric::shm::ConnectTo({parts[0], ""});
  EXPECT_TRUE(socket.ok()) << socket.status();
  auto own = OwnMember::Create({kMinSlotBytes});
  EXPECT_TRUE(own.ok()) << own.status();
  Introduction hello;
  hello.rank = static_cast<uint32_t>(rank);
  hello.ranks = static_cast<uint32_t>(ranks);
  hello.sizes = {kMinSlotBytes};
  hello.token = absl::HexStringToBytes(parts[1]);
  EXPECT_TRUE(Send(socket->get(), hello, (*own)->memory_fd(), (*own)->life_fd(),
                   absl::InfiniteFuture())
                  .ok());
  return *std::move(socket);
}

TEST(Meeting, ARankThatDiesAfterItsHelloMayComeAgain) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  const std::string invitation = meeting->invitation();
  auto led = std::async(std::launch::async, [&] {
    return meeting->Lead(3, {kMinSlotBytes}, kLong);
  });
  SayHello(invitation, 1, 3);  // hangs up
  const auto join = [&](int rank) {
    return std::async(std::launch::async, [=] {
      return Join(invitation, rank, 3, {kMinSlotBytes}, kLong).status();
    });
  };
  auto first = join(1), second = join(2);
  EXPECT_EQ(first.get(), absl::OkStatus());
  EXPECT_EQ(second.get(), absl::OkStatus());
  EXPECT_TRUE(led.get().ok());
}

// Tests that a process without a free descriptor sleeps while it waits, instead
// of looping.
TEST(Meeting, WaitsQuietlyIfThereIsNoDescriptorForACaller) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  const std::string invitation = meeting->invitation();
  auto led = std::async(std::launch::async, [&] {
    const auto members =
        meeting->Lead(3, {kMinSlotBytes}, absl::Milliseconds(500));
    timespec used = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    EXPECT_LT(absl::DurationFromTimespec(used), absl::Milliseconds(50));
    return members.status();
  });
  // Sends a greeting of another meeting. The answer shows that rank 0 waits for
  // callers.
  std::string other = invitation;
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_FALSE(Join(other, 1, 3, {kMinSlotBytes}, kLong).ok());
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {3, limit.rlim_max};
  const std::string name = invitation.substr(0, invitation.find(' '));
  base::UniqueFd caller(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(
      connect(caller.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(led.get().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(Meeting, NamesTheMissingRanks) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  EXPECT_EQ(meeting->Lead(3, {kMinSlotBytes}, absl::ZeroDuration())
                .status()
                .message(),
            "these ranks did not come: 1, 2");
}

TEST(Meeting, RefusesWrongArguments) {
  const auto join = [](const std::string& invitation, int rank, int ranks,
                       uint64_t slot_bytes) {
    return std::string(
        Join(invitation, rank, ranks, {slot_bytes}, kLong).status().message());
  };
  EXPECT_EQ(join("x", 1, 2, kMinSlotBytes), "malformed invitation");
  EXPECT_EQ(join("x", 0, 2, kMinSlotBytes), "rank 0, expected 1 to 1");
  EXPECT_EQ(join("x", 1, 65, kMinSlotBytes),
            "a group of 65 ranks, expected 1 to 64");
  EXPECT_EQ(join("x", 1, 2, 100),
            "slots of 100 bytes, expected a multiple of 4096 up to 67108864");
}

}  // namespace
}  // namespace penstock::collectives
