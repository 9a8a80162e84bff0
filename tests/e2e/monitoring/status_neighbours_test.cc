// Tests status queries when other processes disturb: processes in other
// namespaces, processes that occupy the name, and a crowd of clients.

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/progress/lingering.h"
#include "transport/monitoring/status_client.h"

namespace penstock::e2e {
namespace {

using monitoring::AskProcess;
using monitoring::kAskMetrics;

constexpr absl::Duration kLimit = absl::Seconds(30);

// A socket, closed with the last reference.
using Fd = std::shared_ptr<const int>;

Fd NewSocket() {
  return Fd(
      new int(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      [](const int* fd) {
        close(*fd);
        delete fd;
      });
}

// Listens at a status socket's name of the process. Returns null if the name is
// taken.
Fd ListenAt(pid_t process, int name) {
  Fd fd = NewSocket();
  sockaddr_un address;
  const socklen_t size = monitoring::StatusAddress(process, &address, name);
  if (bind(*fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(*fd, 8) != 0) {
    return nullptr;
  }
  return fd;
}

// A process that runs examples/greeter's server and has served one connection.
class Greeter {
 public:
  // Starts the server in new namespaces (CLONE_NEW...). Calls `before` once the
  // process has its pid, before the process does anything else.
  explicit Greeter(int namespaces,
                   const std::function<void(pid_t)>& before = nullptr) {
    int said[2];
    int pids[2];
    int go[2];
    if (pipe(said) != 0 || pipe(pids) != 0 || pipe(go) != 0) std::abort();
    outer_ = fork();
    if (outer_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // Forks again, because the process that makes a pid namespace is not in
      // that namespace; only its children are.
      if (unshare(namespaces) != 0) _exit(1);
      const pid_t inner = fork();
      if (inner == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(go[0], &byte, 1) != 1) _exit(1);
        dup2(said[1], STDOUT_FILENO);
        execl("examples/greeter/greeter_server", "greeter_server",
              "127.0.0.1:0", nullptr);
        _exit(1);
      }
      if (write(pids[1], &inner, sizeof inner) < 0) _exit(1);
      waitpid(inner, nullptr, 0);
      _exit(0);
    }
    close(said[1]);
    close(pids[1]);
    if (read(pids[0], &pid_, sizeof pid_) == sizeof pid_) {
      if (before != nullptr) before(pid_);
      if (write(go[1], "g", 1) == 1) Greet(said[0]);
    }
    for (const int fd : {said[0], pids[0], go[0], go[1]}) close(fd);
  }
  ~Greeter() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    waitpid(outer_, nullptr, 0);
  }

  // Returns the process, or 0 if such namespaces are not available here.
  pid_t pid() const { return pid_; }
  bool IsGreeted() const {
    return std::system(absl::StrCat("timeout 20 ", client_).c_str()) == 0;
  }

 private:
  void Greet(int said) {
    std::unique_ptr<FILE, int (*)(FILE*)> lines(fdopen(dup(said), "r"),
                                                &fclose);
    char line[256] = {};
    ASSERT_NE(fgets(line, sizeof line, lines.get()), nullptr);
    const std::string text(line);
    client_ = absl::StrCat("examples/greeter/greeter_client 127.0.0.1:",
                           text.substr(text.rfind(' ') + 1));
    ASSERT_EQ(std::system(client_.c_str()), 0);
  }

  std::string client_;
  pid_t outer_ = 0;
  pid_t pid_ = 0;
};

// Asks `process` for its metrics. Waits for the socket, which appears shortly
// after the first connection.
absl::Status Ask(pid_t process) {
  const absl::Time end = absl::Now() + kLimit;
  absl::Status status;
  do {
    status = AskProcess(process, kAskMetrics, kLimit).status();
  } while (absl::IsNotFound(status) && absl::Now() < end);
  return status;
}

TEST(StatusNeighboursTest, ATakenNameLeavesOthers) {
  Fd squatter;
  const Greeter greeter(
      0, [&](pid_t process) { squatter = ListenAt(process, 0); });
  ASSERT_NE(squatter, nullptr);
  absl::Status status;
  const absl::Time end = absl::Now() + kLimit;
  do {  // until then, only the squatter owns the name
    status = AskProcess(greeter.pid(), kAskMetrics, kLimit).status();
  } while (absl::IsPermissionDenied(status) && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(StatusNeighboursTest, WhereAllNamesAreTakenNoStrangerIsBelieved) {
  std::vector<Fd> squatters;
  const Greeter greeter(0, [&](pid_t process) {
    for (int name = 0; name < monitoring::kStatusNames; ++name) {
      squatters.push_back(ListenAt(process, name));
    }
  });
  EXPECT_TRUE(absl::IsPermissionDenied(Ask(greeter.pid())));
}

TEST(StatusNeighboursTest, ProcessesOfPidNamespacesAreFoundByTheirPidHere) {
  const Greeter one(CLONE_NEWPID);
  if (one.pid() == 0) GTEST_SKIP() << "no pid namespaces here";
  EXPECT_TRUE(Ask(one.pid()).ok()) << Ask(one.pid());
  // Starts a second greeter that also has the pid 1 in its namespace, like the
  // process of any container in a Kubernetes pod.
  const Greeter two(CLONE_NEWPID);
  absl::Status status;
  const absl::Time end = absl::Now() + kLimit;
  do {  // until then, only the other process owns the name
    status = AskProcess(two.pid(), kAskMetrics, kLimit).status();
  } while (absl::IsPermissionDenied(status) && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Ask(one.pid()).ok());
}

TEST(StatusNeighboursTest, UsersWithoutANumberInAUserNamespaceAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  // Starts a greeter in a user namespace without a user map. There, the
  // process's own user appears as the overflow user.
  const Greeter greeter(CLONE_NEWUSER);
  if (greeter.pid() == 0) GTEST_SKIP() << "no user namespaces here";
  const absl::Status as_root = Ask(greeter.pid());
  EXPECT_TRUE(absl::IsUnavailable(as_root)) << as_root;
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(1234) != 0) _exit(2);
    const absl::Status status = Ask(greeter.pid());
    _exit(absl::IsPermissionDenied(status) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Returns once all threads of the process are stopped.
void Stop(pid_t process) {
  kill(process, SIGSTOP);
  std::string text;
  do {
    std::ifstream stat(absl::StrCat("/proc/", process, "/stat"));
    std::getline(stat, text);
  } while (!absl::StrContains(text, ") T "));
}

// Makes a connection for each descriptor, and leaves the descriptor unread in
// the socket. The process then is the descriptor's last owner.
void LeaveLingering(pid_t process, std::vector<Lingering>* all) {
  Stop(process);
  for (Lingering& each : *all) {
    const Fd fd = NewSocket();
    sockaddr_un address;
    const socklen_t size = monitoring::StatusAddress(process, &address);
    EXPECT_EQ(connect(*fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    SendWith(*fd, "x", {each.fd()});
    each.LetGo();
  }
  kill(process, SIGCONT);
}

TEST(StatusNeighboursTest, SocketsThatNobodyCanCloseSilenceNothing) {
  const Greeter greeter(0);
  ASSERT_TRUE(Ask(greeter.pid()).ok());
  std::vector<Lingering> all(25);
  LeaveLingering(greeter.pid(), &all);
  absl::Status status;
  const absl::Time end = absl::Now() + kLimit;
  do {  // until the earlier ones have been dropped
    status = AskProcess(greeter.pid(), kAskMetrics, absl::Seconds(5)).status();
  } while (absl::IsUnavailable(status) && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
  // Expects that the greeter still makes calls: hostile connections must not
  // delay the program.
  EXPECT_TRUE(greeter.IsGreeted());
}

// Tests connections of other users that leave descriptors in the socket. The
// process must drop these connections before it reads anything.
TEST(StatusNeighboursTest, OtherUsersSocketsThatNobodyCanCloseDoNeither) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Greeter greeter(0);
  ASSERT_TRUE(Ask(greeter.pid()).ok());
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  Stop(greeter.pid());
  const pid_t stranger = fork();
  if (stranger == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<Lingering> all(25);
    if (setuid(1234) != 0) _exit(1);
    for (Lingering& each : all) {
      const Fd fd = NewSocket();
      sockaddr_un address;
      const socklen_t size = monitoring::StatusAddress(greeter.pid(), &address);
      if (connect(*fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
        _exit(1);
      }
      SendWith(*fd, "x", {each.fd()});
      each.LetGo();
    }
    if (write(done[1], "d", 1) != 1) _exit(1);
    pause();  // keeps the far ends open
  }
  char byte;
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  kill(greeter.pid(), SIGCONT);
  const absl::Status status =
      AskProcess(greeter.pid(), kAskMetrics, kLimit).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(greeter.IsGreeted());
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  close(done[0]);
  close(done[1]);
}

// Tests a process that answers with descriptors whose close() takes forever.
TEST(StatusNeighboursTest, AHostileProcessHoldsNobodyUp) {
  const Fd hostile = ListenAt(getpid(), 0);
  ASSERT_NE(hostile, nullptr);
  Lingering lingering;
  auto answered = std::async(std::launch::async, [&] {
    pollfd ready = {*hostile, POLLIN, 0};
    if (poll(&ready, 1, 20 * 1000) != 1) return;
    const Fd asker(new int(accept4(*hostile, nullptr, nullptr, SOCK_CLOEXEC)),
                   [](const int* fd) {
                     close(*fd);
                     delete fd;
                   });
    SendWith(*asker, "penstock-status 1 1\n", {lingering.fd()});
    lingering.LetGo();
  });
  auto asked = std::async(std::launch::async, [] {
    return AskProcess(getpid(), kAskMetrics, absl::Seconds(10)).status();
  });
  EXPECT_EQ(asked.wait_for(std::chrono::seconds(20)), std::future_status::ready)
      << "who asks waits for a stranger";
  EXPECT_FALSE(asked.get().ok());
  // Releases the other thread if the asker closed its descriptor before
  // LetGo(): the last close() is then that thread's.
  lingering.End();
}

TEST(StatusNeighboursTest, ACrowdAtTheDoorOfAStoppedProcessCostsTheLimitOnly) {
  const Greeter greeter(0);
  ASSERT_TRUE(Ask(greeter.pid()).ok());
  Stop(greeter.pid());
  std::vector<Fd> crowd;
  int error = 0;
  while (error == 0) {
    crowd.push_back(NewSocket());
    sockaddr_un address;
    const socklen_t size = monitoring::StatusAddress(greeter.pid(), &address);
    if (connect(*crowd.back(), reinterpret_cast<sockaddr*>(&address), size) !=
        0) {
      error = errno;
    }
  }
  ASSERT_EQ(error, EAGAIN);
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      AskProcess(greeter.pid(), kAskMetrics, absl::Milliseconds(200))
          .status()));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  crowd.clear();
  kill(greeter.pid(), SIGCONT);
  absl::Status status;
  const absl::Time end = absl::Now() + kLimit;
  do {  // until the crowd is dropped
    status = Ask(greeter.pid());
  } while (absl::IsUnavailable(status) && absl::Now() < end);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace penstock::e2e
