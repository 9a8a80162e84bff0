// Tests that a process which polls the sockets of busy connections uses no core
// for dead peers and idle connections. The connections are plain TCP.

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"
#include "tests/e2e/child.h"
#include "tests/e2e/path.h"
#include "tests/e2e/test_service.h"
#include "tests/process/usage.h"
#include "transport/progress/poll_set.h"

namespace penstock::e2e {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWait(1000);
// Limits the CPU time during a wait of kWait, on one core. A thread that spins
// takes the whole core, or half of it on a busy machine.
constexpr double kMostSeconds = 0.25;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Waits until a process has at most `most` descriptors. Each has one more for a
// moment as a thread begins, because malloc reads the number of cores.
bool HasAtMost(pid_t pid, int most) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (process::Descriptors(pid) > most) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// Forwards one connection to a server. After Trickle(), delivers the server's
// bytes one by one.
class Proxy {
 public:
  explicit Proxy(int server_port)
      : listener_(socket(AF_INET, SOCK_STREAM, 0)),
        server_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, name, size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, name, &size), 0);
    port_ = ntohs(address.sin_port);
    sockaddr_in server = Loopback(server_port);
    EXPECT_EQ(
        connect(server_, reinterpret_cast<sockaddr*>(&server), sizeof server),
        0);
    thread_ = std::thread([this] { Run(); });
  }
  ~Proxy() {
    ends_ = true;
    thread_.join();
    for (const int fd : {listener_, server_, client_}) close(fd);
  }

  int port() const { return port_; }
  void Trickle() { trickles_ = true; }

 private:
  void Run() {
    pollfd accepting = {listener_, POLLIN, 0};
    while (!ends_ && poll(&accepting, 1, 10) == 0) {
    }
    if (ends_) return;
    client_ = accept(listener_, nullptr, nullptr);
    pollfd ends[] = {{client_, POLLIN, 0}, {server_, POLLIN, 0}};
    while (!ends_) {
      if (poll(ends, 2, 10) <= 0) continue;
      if (ends[0].revents != 0 && !Forward(client_, server_)) return;
      if (ends[1].revents != 0 && !Forward(server_, client_)) return;
    }
  }
  bool Forward(int from, int to) {
    const bool slow = trickles_ && from == server_;
    if (slow) std::this_thread::sleep_for(milliseconds(20));
    char bytes[4096];
    const ssize_t got = read(from, bytes, slow ? 1 : sizeof bytes);
    return got > 0 &&
           send(to, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) == got;
  }

  const int listener_, server_;
  int client_ = -1;
  int port_ = 0;
  std::atomic<bool> trickles_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

class SpinningTest : public testing::Test {
 protected:
  SpinningTest()
      : server_(process::Child::Start(
            {"tests/e2e/processes/busy", "server", "callback", "Tcp"})) {
    EXPECT_TRUE(absl::SimpleAtoi(server_->Find("port ").value_or(""), &port_));
  }

  static std::unique_ptr<TestService::Stub> Connect(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return TestService::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port),
        CredentialsFor(Path::kTcp, grpc::InsecureChannelCredentials()),
        arguments));
  }
  // Makes calls until a thread polls the connection's socket. Expects that this
  // happens.
  static void KeepBusy(TestService::Stub* stub) {
    constexpr int kLeast = 300, kMost = 30 * 1000;
    for (int i = 0; i < kLeast || (!IsPolling() && i < kMost); ++i) {
      ASSERT_TRUE(MakeEmptyCall(stub).ok());
    }
    EXPECT_TRUE(IsPolling());
  }
  // Returns true if the waiting threads of this process poll any socket. There
  // are no fast paths in these tests.
  static bool IsPolling() { return !progress::PollSet::Get()->empty(); }
  // Makes a call that gets no answer in time. Expects that this process sleeps
  // meanwhile.
  static void ExpectSleep(TestService::Stub* stub) {
    const double before = process::CpuSeconds(getpid());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + kWait);
    Empty response;
    EXPECT_EQ(stub->EmptyCall(&context, Empty(), &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_LT(process::CpuSeconds(getpid()) - before, kMostSeconds);
  }

  const std::unique_ptr<process::Child> server_;
  int port_ = 0;
};

TEST_F(SpinningTest, SilentPeerUsesNoCore) {
  const auto stub = Connect(port_);
  KeepBusy(stub.get());
  server_->Suspend();
  ExpectSleep(stub.get());
  server_->Resume();
  EXPECT_TRUE(MakeEmptyCall(stub.get()).ok());
}

TEST_F(SpinningTest, TricklingPeerUsesNoCore) {
  Proxy proxy(port_);
  const auto stub = Connect(proxy.port());
  KeepBusy(stub.get());
  proxy.Trickle();
  ExpectSleep(stub.get());
}

TEST_F(SpinningTest, KilledPeerUsesNoCore) {
  const auto stub = Connect(port_);
  KeepBusy(stub.get());
  server_->Kill();
  EXPECT_FALSE(MakeEmptyCall(stub.get()).ok()) << "notices the end";
  ExpectSleep(stub.get());
}

TEST_F(SpinningTest, BusyConnectionTakesNoFurtherDescriptor) {
  // Lets both processes open what they have once, such as the status socket.
  // They do so some time after their first connection.
  auto stub = Connect(port_);
  KeepBusy(stub.get());
  int before = process::Descriptors(getpid());
  int of_server = process::Descriptors(server_->pid());
  stub.reset();
  EXPECT_TRUE(HasAtMost(getpid(), --before));
  EXPECT_TRUE(HasAtMost(server_->pid(), --of_server));
  stub = Connect(port_);
  EXPECT_TRUE(MakeEmptyCall(stub.get()).ok());
  before = process::Descriptors(getpid());
  of_server = process::Descriptors(server_->pid());
  KeepBusy(stub.get());
  EXPECT_TRUE(HasAtMost(getpid(), before));
  EXPECT_TRUE(HasAtMost(server_->pid(), of_server));
}

TEST_F(SpinningTest, AThousandIdleConnectionsHoldUpNoBusyOne) {
  constexpr int kIdle = 1000, kBusy = 10;
  std::vector<std::unique_ptr<TestService::Stub>> idle, busy;
  for (int i = 0; i < kIdle; ++i) {
    idle.push_back(Connect(port_));
    ASSERT_TRUE(MakeEmptyCall(idle.back().get()).ok()) << i;
  }
  for (int i = 0; i < kBusy; ++i) busy.push_back(Connect(port_));
  std::vector<std::thread> threads;
  for (const auto& stub : busy) {
    threads.emplace_back([&stub] { KeepBusy(stub.get()); });
  }
  for (std::thread& thread : threads) thread.join();
  const double before = process::CpuSeconds(getpid());
  const double of_server = process::CpuSeconds(server_->pid());
  std::this_thread::sleep_for(kWait);
  EXPECT_LT(process::CpuSeconds(getpid()) - before, kMostSeconds);
  EXPECT_LT(process::CpuSeconds(server_->pid()) - of_server, kMostSeconds);
}

// Raises the descriptor limit to the machine's maximum, for a thousand
// connections. The server inherits the limit.
const bool g_raised = [] {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}();

}  // namespace
}  // namespace penstock::e2e
