// Tests the answers of a process on its status socket.

#include "absl/status/status.h"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"
#include "transport/monitoring/status_client.h"

namespace penstock::e2e {
namespace {

using monitoring::AskProcess;
using monitoring::kAskConnections;
using monitoring::kAskMetrics;

constexpr absl::Duration kLimit = absl::Seconds(30);

// Asks this process. Waits for the socket, which appears shortly after the
// first connection.
absl::StatusOr<std::string> Ask(absl::string_view question) {
  const absl::Time end = absl::Now() + kLimit;
  absl::StatusOr<std::string> answer;
  do {
    answer = AskProcess(getpid(), question, kLimit);
  } while (absl::IsNotFound(answer.status()) && absl::Now() < end);
  return answer;
}

std::vector<nlohmann::json> Connections() {
  const absl::StatusOr<std::string> answer = Ask(kAskConnections);
  EXPECT_TRUE(answer.ok()) << answer.status();
  std::vector<nlohmann::json> all;
  const std::string text = answer.value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    all.push_back(nlohmann::json::parse(std::string(line)));
  }
  return all;
}

// A descriptor, closed with the last reference.
using Fd = std::shared_ptr<const int>;

Fd Connect() {
  const Fd fd(new int(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
              [](const int* fd) {
                close(*fd);
                delete fd;
              });
  sockaddr_un address;
  const socklen_t size = monitoring::StatusAddress(getpid(), &address);
  EXPECT_EQ(connect(*fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  return fd;
}

// Waits until the other side has closed the connection.
bool IsClosed(const Fd& fd) {
  char byte;
  return recv(*fd, &byte, 1, 0) <= 0;
}

// Returns the number of Penstock's threads, without gRPC's.
int Threads() {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    std::string name;
    std::ifstream(absl::StrCat("/proc/self/task/", entry->d_name, "/comm")) >>
        name;
    count += absl::StartsWith(name, "penstock");
  }
  closedir(tasks);
  return count;
}

class StatusTest : public ServiceTest {};

// Tests a process without connections. Runs first in this process: the name of
// the suite comes first.
TEST(StatusBeforeAnyConnection, CostsNothingAndIsNotThere) {
  grpc::ServerBuilder builder;
  Enable(&builder);
  auto channel = grpc::CreateChannel(
      "127.0.0.1:1", Credentials(grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Threads(), 0);
  EXPECT_TRUE(
      absl::IsNotFound(AskProcess(getpid(), kAskMetrics, kLimit).status()));
}

TEST_P(StatusTest, TellsMetrics) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const absl::StatusOr<std::string> answer = Ask(kAskMetrics);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(absl::StartsWith(*answer, "# HELP penstock_"));
  EXPECT_TRUE(absl::StrContains(*answer, "penstock_sessions{"));
}

TEST_P(StatusTest, TellsOfEachConnection) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  int clients = 0;
  for (const nlohmann::json& each : Connections()) {
    if (each["role"] != "client" || each["peer"] != "ipv4:" + address()) {
      continue;
    }
    ++clients;
    EXPECT_EQ(each["path"], FabricOf(GetParam()));
    EXPECT_EQ(each["messages_sent"], 1);
    EXPECT_EQ(each["streams_started"], 1);
    EXPECT_EQ(each["reason"].get<std::string>().empty(),
              GetParam() != Path::kTcp);
  }
  EXPECT_EQ(clients, 1);
}

// Tests the counters of one connection. The `id` of this test's channel
// identifies the connection.
TEST_P(StatusTest, WhatIsCountedCanBeComparedBetweenAnswers) {
  const auto mine = [this] {
    for (nlohmann::json& each : Connections()) {
      if (each["role"] == "client" && each["peer"] == "ipv4:" + address()) {
        return std::move(each);
      }
    }
    return nlohmann::json();
  };
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const nlohmann::json before = mine();
  constexpr int kCalls = 10;
  constexpr size_t kLarge = 1 << 20;
  for (int i = 0; i < kCalls; ++i) {
    Call call;
    SimpleRequest request;
    *request.mutable_payload() = ZeroPayload(i < 3 ? kLarge : 10);
    SimpleResponse response;
    ASSERT_TRUE(stub_->UnaryCall(&call, request, &response).ok());
  }
  const nlohmann::json after = mine();
  EXPECT_EQ(after["id"], before["id"]);
  const auto since = [&](const char* field) {
    return after[field].get<int64_t>() - before[field].get<int64_t>();
  };
  EXPECT_EQ(since("announced_messages_sent"), 3);
  EXPECT_GT(since("announced_bytes_sent"), 3 * kLarge);
  EXPECT_EQ(since("eager_messages_sent"), kCalls - 3);
  EXPECT_EQ(since("eager_messages_received"), kCalls);
  EXPECT_EQ(since("messages_sent"), kCalls);
  EXPECT_EQ(since("streams_reset"), 0);
  uint64_t timed = 0;
  for (const auto& count : after["client_streams"]["buckets"]) {
    timed += count.get<uint64_t>();
  }
  EXPECT_EQ(timed, kCalls + 1u);
  EXPECT_GT(after["client_streams"]["sum_ns"], 0);
  EXPECT_EQ(after["client_streams"]["buckets"].size(), 26u);
  std::set<uint64_t> ids;
  for (const nlohmann::json& each : Connections()) {
    EXPECT_TRUE(ids.insert(each["id"].get<uint64_t>()).second);
  }
}

// Tests that docs/operations.md documents each field. An example counts.
TEST_P(StatusTest, EachFieldIsDocumented) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  std::stringstream text;
  text << std::ifstream("docs/operations.md").rdbuf();
  const std::vector<nlohmann::json> connections = Connections();
  ASSERT_FALSE(connections.empty());
  for (const auto& field : connections[0].items()) {
    const bool is_part = absl::StartsWith(field.key(), "eager_messages") ||
                         absl::StartsWith(field.key(), "eager_bytes") ||
                         absl::StartsWith(field.key(), "announced_messages") ||
                         absl::StartsWith(field.key(), "announced_bytes");
    EXPECT_TRUE(is_part || absl::StrContains(
                               text.str(), absl::StrCat("`", field.key(), "`")))
        << field.key();
  }
}

TEST_P(StatusTest, AnswersOtherProcessesOfItsUser) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    _exit(AskProcess(parent, kAskMetrics, kLimit).ok() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_P(StatusTest, RefusesOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    const absl::Status status =
        AskProcess(parent, kAskMetrics, kLimit).status();
    _exit(absl::IsPermissionDenied(status) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(StatusTest, TheChildOfAForkDoesNotAnswerForItsParent) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status =
        AskProcess(getpid(), kAskMetrics, absl::Seconds(1)).status();
    _exit(absl::IsNotFound(status) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(StatusTest, AForkDoesNotKeepAnswersOpen) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  const Fd fd = Connect();
  // Asks once more. Clients are accepted in order, so the answer proves that
  // the earlier client was accepted.
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    pause();
  }
  const timeval limit = {15, 0};
  setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  EXPECT_GT(send(*fd, "metrics\n", 8, MSG_NOSIGNAL), 0);
  char bytes[4096];
  ssize_t got = 0;
  do {
    got = recv(*fd, bytes, sizeof bytes, 0);
  } while (got > 0);
  EXPECT_EQ(got, 0) << "the child has a copy of the connection";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_P(StatusTest, OtherQuestionsAreNotAnswered) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  for (const char* question : {"", "metric", "metrics ", "quit"}) {
    EXPECT_TRUE(
        absl::IsUnavailable(AskProcess(getpid(), question, kLimit).status()))
        << question;
  }
  const Fd fd = Connect();
  const std::string endless(1000, 'x');
  EXPECT_GT(send(*fd, endless.data(), endless.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(IsClosed(fd));
}

TEST_P(StatusTest, ThoseWhoNeitherAskNorReadAreFewAndForAShortTime) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  std::vector<Fd> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(Connect());
  EXPECT_TRUE(IsClosed(Connect())) << "there are eight";
  EXPECT_TRUE(
      absl::IsUnavailable(AskProcess(getpid(), kAskMetrics, kLimit).status()));
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  // Expects that silent clients are dropped, after five seconds.
  for (const Fd& each : silent) EXPECT_TRUE(IsClosed(each));
  EXPECT_TRUE(Ask(kAskMetrics).ok());
}

TEST_P(StatusTest, ThousandsOfQuestionsWhileCallsRun) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(Ask(kAskMetrics).ok());
  std::vector<std::thread> askers;
  for (int i = 0; i < 2; ++i) {
    askers.emplace_back([i] {
      for (int j = 0; j < 1000; ++j) {
        const auto answer = AskProcess(
            getpid(), i == 0 ? kAskMetrics : kAskConnections, kLimit);
        EXPECT_TRUE(answer.ok()) << answer.status();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    EXPECT_TRUE(MakeEmptyCall(stub.get()).ok());
  }
  for (std::thread& thread : askers) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Over, StatusTest, EachPenstockPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
