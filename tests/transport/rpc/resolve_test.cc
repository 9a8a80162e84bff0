// Tests that a slow name server delays only the callers that query this server.

#include "transport/rpc/resolve.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/awaited.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/aside.h"
#include "transport/progress/foreign_fd.h"

// Returns the options of ThreadSanitizer, which calls this function. Without
// this option, ThreadSanitizer kills a forked child that starts threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace rpc {
namespace {

// A simulated name server. Answers queries for hosts that begin with "slow"
// only when the test says so.
class NameServer {
 public:
  static NameServer* Get() {
    static NameServer* const server = new NameServer;
    return server;
  }
  void OnQuestion(const std::string& host) {
    if (is_quick_) return;
    std::unique_lock<std::mutex> lock(mu_);
    ++questions_[host];
    changed_.notify_all();
    changed_.wait(lock, [&] {
      return !absl::StartsWith(host, "slow") || answered_.count(host) != 0;
    });
  }
  void WaitForQuestion(const std::string& host) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [&] { return questions_[host] != 0; });
  }
  void Answer(const std::string& host) {
    std::lock_guard<std::mutex> lock(mu_);
    answered_.insert(host);
    changed_.notify_all();
  }
  // Makes the server answer all later queries immediately, without a lock. For
  // a forked child.
  void BeQuick() { is_quick_ = true; }
  int questions(const std::string& host) {
    std::lock_guard<std::mutex> lock(mu_);
    return questions_[host];
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::map<std::string, int> questions_;
  std::set<std::string> answered_;
  std::atomic<bool> is_quick_{false};
};

}  // namespace
}  // namespace rpc
}  // namespace penstock

// Replaces the function of the C library. Resolves each name to this host.
extern "C" int getaddrinfo(const char* host, const char* port,
                           const addrinfo* hints, addrinfo** found) {
  using Function =
      int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
    return real(host, port, hints, found);
  }
  penstock::rpc::NameServer::Get()->OnQuestion(host);
  return real("127.0.0.1", port, hints, found);
}

namespace penstock {
namespace rpc {
namespace {

Awaited<absl::StatusOr<Addresses>> Ask(const std::string& host) {
  Awaited<absl::StatusOr<Addresses>> answer;
  Resolve({host, "1"}, [answer](absl::StatusOr<Addresses> addresses) {
    answer.Set(std::move(addresses));
  });
  return answer;
}

// Returns names that only one test uses, because the process keeps queries in
// flight.
std::vector<std::string> SlowNames(const std::string& test, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    names.push_back(absl::StrCat("slow-", test, "-", i));
  }
  return names;
}

// Queries all names, and waits until the name server has received the queries.
class SlowQuestions {
 public:
  explicit SlowQuestions(const std::vector<std::string>& names)
      : names_(names) {
    for (const std::string& name : names_) {
      answers_.push_back(Ask(name));
      NameServer::Get()->WaitForQuestion(name);
    }
  }
  ~SlowQuestions() {
    for (const std::string& name : names_) NameServer::Get()->Answer(name);
    for (const auto& answer : answers_) {
      EXPECT_TRUE(answer.Get().has_value());
    }
  }

 private:
  const std::vector<std::string> names_;
  std::vector<Awaited<absl::StatusOr<Addresses>>> answers_;
};

TEST(Resolve, NumbersAreAnsweredAtOnce) {
  const SlowQuestions slow(SlowNames("all", progress::kMostNameThreads));
  bool answered = false;
  Resolve({"127.0.0.1", "7"}, [&](absl::StatusOr<Addresses> addresses) {
    answered = addresses.ok() && addresses->size() == 1;
  });
  EXPECT_TRUE(answered);
}

TEST(Resolve, ASlowNameDelaysNoClose) {
  const SlowQuestions slow(SlowNames("close", progress::kMostNameThreads));
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  base::UniqueFd other(ends[1]);
  progress::ForeignFd(base::UniqueFd(ends[0])).Reset();
  while (fcntl(ends[0], F_GETFD) != -1) std::this_thread::yield();
  const Awaited<bool> collected;
  progress::RunAside(progress::Aside::kStatus,
                     [collected] { collected.Set(true); });
  EXPECT_TRUE(collected.Get().has_value());
}

TEST(Resolve, SlowNamesLeaveOthersAThread) {
  const SlowQuestions slow(SlowNames("some", progress::kMostNameThreads - 1));
  const auto answer = Ask("quick").Get();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ok()) << answer->status();
}

TEST(Resolve, WhoAsksAgainSharesTheQuestion) {
  const std::string name = SlowNames("shared", 1)[0];
  std::vector<Awaited<absl::StatusOr<Addresses>>> answers;
  {
    const SlowQuestions slow({name});
    for (int i = 0; i < 100; ++i) answers.push_back(Ask(name));
  }
  for (const auto& answer : answers) {
    const auto addresses = answer.Get();
    ASSERT_TRUE(addresses.has_value());
    EXPECT_TRUE(addresses->ok()) << addresses->status();
  }
  EXPECT_EQ(NameServer::Get()->questions(name), 1);
  // Asks again. This makes a new query, because the name was answered.
  EXPECT_TRUE(Ask(name).Get().has_value());
  EXPECT_EQ(NameServer::Get()->questions(name), 2);
}

TEST(Resolve, TheChildOfAForkAsksForItself) {
  const SlowQuestions slow(SlowNames("parent", 1));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    NameServer::Get()->BeQuick();
    _exit(Ask(SlowNames("parent", 1)[0]).Get().has_value() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
