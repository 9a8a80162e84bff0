// Counts the system calls of calls with a tracer: over shared memory, and over
// TCP without polling. docs/threading.md#system-calls-of-a-call explains the
// system calls that remain.

#include "tests/process/system_calls.h"

#include <sys/syscall.h>

#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"

namespace penstock::e2e {
namespace {

using process::SystemCalls;

constexpr int kCalls = 400;
// Allows some other system calls: those of the connection itself, such as
// heartbeats, and those of calls that begin just when the peer falls asleep.
constexpr int kFew = kCalls / 10;
constexpr int kMostRounds = 20;
constexpr int kMostRings = kCalls + kFew;
// The time after which deferred releases are sent. The same value as in
// transport/connection/connection.cc.
constexpr absl::Duration kDeferLimit = absl::Milliseconds(5);

std::unique_ptr<Child> StartBusy(std::vector<std::string> arguments,
                                 const std::string& polling) {
  arguments.insert(arguments.begin(), "tests/e2e/processes/busy");
  return Child::Start(std::move(arguments), {"PENSTOCK_POLLING=" + polling});
}

// A server and a client, whose calls are counted.
class Processes {
 public:
  // Starts both processes. `bytes` is the size of request and response.
  Processes(const std::string& polling, int bytes,
            const std::string& path = "Shm")
      : server_(StartBusy({"server", "sync", path}, polling)) {
    const std::string port = server_->Find("port ").value_or("");
    client_ = StartBusy({"calls", path, "127.0.0.1:" + port,
                         absl::StrCat(kCalls), absl::StrCat(bytes)},
                        polling);
    if (!client_->Find("connected").has_value()) return;
    if (path == "Tcp") {
      Count();
      return;
    }
    // Repeats the calls until doorbells are used. The first calls may end
    // before the doorbells are set up.
    for (int round = 0; round < kMostRounds; ++round) {
      Count();
      if (!done_ || OnSockets() <= kFew) return;
    }
  }

  bool traced() const { return trace_ != nullptr; }
  bool done() const { return done_; }
  // Returns the maximum number of expirations of the timer of deferred releases
  // during the counted calls.
  int64_t MostTimers() const { return took_ / kDeferLimit; }
  int64_t RingsOfServer() { return trace_->CountZeroWrites(server_->pid()); }
  int64_t RingsOfClient() { return trace_->CountZeroWrites(client_->pid()); }
  int64_t OfClient(int64_t number) {
    return trace_->Count(client_->pid(), number);
  }
  // Returns how often the processes have polled for input without sleeping, or
  // have yielded their cores.
  int64_t Polls() {
    int64_t sum = 0;
    for (const int64_t number : {SYS_poll, SYS_sched_yield}) {
      sum += trace_->Count(server_->pid(), number) + OfClient(number);
    }
    return sum;
  }
  // Returns the number of system calls on sockets, of both processes together.
  int64_t OnSockets() {
    int64_t sum = 0;
    for (const int64_t number : {SYS_sendmsg, SYS_recvmsg, SYS_sendto,
                                 SYS_recvfrom, SYS_writev, SYS_readv}) {
      sum += trace_->Count(server_->pid(), number) + OfClient(number);
    }
    return sum;
  }

 private:
  void Count() {
    trace_ = nullptr;  // one tracer at a time
    trace_ = SystemCalls::Trace({server_->pid(), client_->pid()});
    if (trace_ == nullptr) return;
    const absl::Time start = absl::Now();
    client_->Tell("\n");
    done_ = client_->Find("done").has_value();
    took_ = absl::Now() - start;
  }

  const std::unique_ptr<Child> server_;
  std::unique_ptr<Child> client_;
  std::unique_ptr<SystemCalls> trace_;
  bool done_ = false;
  absl::Duration took_;
};

class SystemCallsTest : public testing::TestWithParam<int> {
 protected:
  static bool IsLent() { return GetParam() > 8; }
};

TEST_P(SystemCallsTest, SleepersAreWokenByOneCallEach) {
  Processes processes("event", GetParam());
  if (!processes.traced()) GTEST_SKIP() << "this process may not trace";
  ASSERT_TRUE(processes.done());
  for (const int64_t rings :
       {processes.RingsOfServer(), processes.RingsOfClient()}) {
    EXPECT_GE(rings, kCalls - kFew);
    // Allows for late releases. The release of a lent message is sent with the
    // response, or with the next call. On a busy machine, both are late.
    EXPECT_LE(rings, kMostRings + (IsLent() ? processes.MostTimers() : 0));
  }
  EXPECT_LE(processes.OnSockets(), kFew);
  // Skips the rest for lent messages: a timer runs while messages are lent, and
  // calls under a tracer take about as long as the timer.
  if (IsLent()) return;
  EXPECT_LE(processes.OfClient(SYS_write), kMostRings);
  EXPECT_LE(processes.OfClient(SYS_read), kFew);
  EXPECT_LE(processes.OfClient(SYS_epoll_wait), kMostRings + kFew);
}

TEST_P(SystemCallsTest, PollersAreNotWoken) {
  Processes processes("busy", GetParam());
  if (!processes.traced()) GTEST_SKIP() << "this process may not trace";
  ASSERT_TRUE(processes.done());
  EXPECT_LE(processes.RingsOfServer(), kFew);
  EXPECT_LE(processes.RingsOfClient(), kFew);
  EXPECT_LE(processes.OnSockets(), kFew);
}

// Tests that no thread spins in mode "event". In mode "busy", the same calls
// poll the sockets. On a busy machine, locks of abseil also call sched_yield().
TEST(TcpSystemCallsTest, EventModeDoesNotPoll) {
  Processes sleeping("event", 8, "Tcp");
  if (!sleeping.traced()) GTEST_SKIP() << "this process may not trace";
  ASSERT_TRUE(sleeping.done());
  EXPECT_LE(sleeping.Polls(), kCalls / 2);
  Processes spinning("busy", 8, "Tcp");
  ASSERT_TRUE(spinning.done());
  EXPECT_GE(spinning.Polls(), kCalls);
}

// Runs each test with a small message, and with one that is lent.
INSTANTIATE_TEST_SUITE_P(Bytes, SystemCallsTest, testing::Values(8, 256 << 10));

}  // namespace
}  // namespace penstock::e2e
