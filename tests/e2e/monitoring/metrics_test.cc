// Tests the metrics of a process after known calls.

#include "penstock/metrics.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// The values of metrics as numbers, by name and labels.
using Series = std::map<std::string, double>;

Series Parse(const std::string& text) {
  Series series;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
    double value = -1;
    EXPECT_TRUE(parts.size() == 2 && absl::SimpleAtod(parts[1], &value))
        << line;
    series[std::string(parts[0])] = value;
  }
  return series;
}

class MetricsTest : public ServiceTest {
 protected:
  MetricsTest() { Mark(); }

  // Starts counting from now.
  void Mark() { before_ = Parse(MetricsText()); }
  double Since(const std::string& series) {
    const Series now = Parse(MetricsText());
    const auto it = now.find(series);
    EXPECT_NE(it, now.end()) << series;
    return it == now.end() ? -1 : it->second - before_[series];
  }
  static double Now(const std::string& series) {
    return Parse(MetricsText())[series];
  }
  static std::string Label(const char* rest = "") {
    return absl::StrCat("path=\"", FabricOf(GetParam()), "\"", rest);
  }
  static std::string Messages(const char* unit, const char* kind,
                              const char* direction) {
    return absl::StrCat("penstock_message", unit, "_total{", Label(),
                        ",kind=\"", kind, "\",direction=\"", direction, "\"}");
  }
  // Returns the number of eager messages over all fabrics. A connection's first
  // message may be sent before this side has agreed on the fast path.
  double EagerMessages(const char* direction) const {
    double sum = 0;
    for (const auto& each : Parse(MetricsText())) {
      if (absl::StartsWith(each.first, "penstock_messages_total") &&
          absl::StrContains(each.first, "eager") &&
          absl::StrContains(each.first, direction)) {
        const auto before = before_.find(each.first);
        sum += each.second - (before == before_.end() ? 0 : before->second);
      }
    }
    return sum;
  }
  bool MakeCall(size_t bytes) {
    Call call;
    SimpleRequest request;
    request.set_response_size(static_cast<int>(bytes));
    *request.mutable_payload() = ZeroPayload(bytes);
    SimpleResponse response;
    return stub_->UnaryCall(&call, request, &response).ok() &&
           response.payload().body().size() == bytes;
  }

 private:
  Series before_;
};

class PenstockMetricsTest : public MetricsTest {};

TEST_P(PenstockMetricsTest, CountsMessagesByPathKindAndDirection) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Mark();
  constexpr int kSmall = 40;
  constexpr int kLarge = 7;
  constexpr size_t kLargeBytes = 1 << 20;
  for (int i = 0; i < kSmall; ++i) ASSERT_TRUE(MakeCall(100));
  for (int i = 0; i < kLarge; ++i) ASSERT_TRUE(MakeCall(kLargeBytes));
  // Expects counts of both requests and responses, because both sides are in
  // this process.
  for (const char* direction : {"sent", "received"}) {
    EXPECT_EQ(Since(Messages("s", "eager", direction)), 2 * kSmall);
    EXPECT_EQ(Since(Messages("s", "announced", direction)), 2 * kLarge);
    const double bytes = Since(Messages("_bytes", "announced", direction));
    EXPECT_GT(bytes, 2 * kLarge * kLargeBytes);
    EXPECT_LT(bytes, 2 * kLarge * (kLargeBytes + 64));
  }
}

TEST_P(PenstockMetricsTest, TimesStreamsAndAnnouncedMessages) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Mark();
  constexpr int kCalls = 30;
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(MakeCall(1 << 20));
  const std::string stream = "penstock_client_stream_duration_seconds";
  EXPECT_EQ(Since(stream + "_count{" + Label() + "}"), kCalls);
  EXPECT_GT(Since(stream + "_sum{" + Label() + "}"), 0);
  EXPECT_EQ(Since(stream + "_bucket{" + Label(",le=\"+Inf\"") + "}"), kCalls);
  const std::string message = "penstock_announced_message_duration_seconds";
  // Allows for the last call's messages. They may be released after the end of
  // the call.
  EXPECT_GE(Since(message + "_count{" + Label() + "}"), 2 * kCalls - 2);
  EXPECT_EQ(Since("penstock_streams_started_total{role=\"server\"}"), kCalls);
  EXPECT_EQ(Since("penstock_streams_started_total{role=\"client\"}"), kCalls);
  EXPECT_EQ(Since("penstock_streams_reset_total{role=\"client\"}"), 0);
}

TEST_P(PenstockMetricsTest, CountsCallsThatEndWithoutAStatus) {
  Call call;
  auto stream = OpenStream(&call);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(Now("penstock_streams{role=\"client\"}"), 1);
  Mark();
  call.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_EQ(Since("penstock_streams_reset_total{role=\"client\"}"), 1);
  EXPECT_EQ(Now("penstock_streams{role=\"client\"}"), 0);
}

TEST_P(PenstockMetricsTest, ShowsSessionsAndWhatTheyHaveAtPresent) {
  const std::string client =
      absl::StrCat("penstock_sessions{role=\"client\",", Label(), "}");
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  EXPECT_EQ(Now(client), 1);
  const auto reports = DescribePaths(*channel());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_LE(Now("penstock_eager_limit_min_bytes{" + Label() + "}"),
            static_cast<double>(reports[0].eager_max_bytes));
  EXPECT_GE(Now("penstock_eager_limit_max_bytes{" + Label() + "}"),
            static_cast<double>(reports[0].eager_max_bytes));
  EXPECT_EQ(Now("penstock_budget_limit_bytes{budget=\"read\"}"),
            2 * (64 << 20));
}

// Tests an unset limit. No metric may show it, because a number would look like
// the lowest limit.
TEST_P(PenstockMetricsTest, LimitsThatThereAreNotAreNotShown) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  for (const auto& each : Parse(MetricsText())) {
    if (absl::StrContains(each.first, "limit") ||
        absl::StrContains(each.first, "_chunk_")) {
      EXPECT_GT(each.second, 0) << each.first;
    }
  }
}

// Tests that the end of a connection removes its gauges, and keeps its
// counters.
TEST_P(PenstockMetricsTest, SumsStayWhenAThousandConnectionsHaveEnded) {
  constexpr int kConnections = 1000;
  const std::string live =
      absl::StrCat("penstock_sessions{role=\"client\",", Label(), "}");
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Mark();
  for (int i = 0; i < kConnections; ++i) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    ASSERT_TRUE(MakeEmptyCall(stub.get()).ok());
  }
  EXPECT_EQ(Since("penstock_sessions_started_total{role=\"client\"}"),
            kConnections);
  EXPECT_EQ(EagerMessages("sent"), 2 * kConnections);
  EXPECT_EQ(EagerMessages("received"), 2 * kConnections);
  const double decisions = Since(
      absl::StrCat("penstock_path_decisions_total{role=\"client\",",
                   Label(GetParam() == Path::kTcp ? ",reason=\"not_enabled\"}"
                                                  : ",reason=\"none\"}")));
  if (GetParam() == Path::kTcp) {
    EXPECT_EQ(decisions, kConnections);
  } else {
    // Expects at least some decisions. At 256 connections per second, most end
    // before they try another path.
    EXPECT_GT(decisions, 0);
    EXPECT_LE(decisions, kConnections);
  }
  // Waits for the end of the connections, which comes shortly after the end of
  // their channel.
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (Now(live) > 1 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Now(live), 1);
  EXPECT_EQ(Since("penstock_sessions_ended_total{role=\"client\",end="
                  "\"closed\"}"),
            kConnections);
}

TEST_P(PenstockMetricsTest, ScrapesWhileCallsRunAndConnectionsEnd) {
  std::atomic<bool> done{false};
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 2; ++i) {
    scrapers.emplace_back([&] {
      double last = 0;
      while (!done) {
        const double now = Now(Messages("s", "eager", "sent"));
        EXPECT_GE(now, last);
        last = now;
      }
    });
  }
  Mark();
  constexpr int kRounds = 100;
  for (int i = 0; i < kRounds; ++i) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    for (int j = 0; j < 5; ++j) {
      ASSERT_TRUE(MakeEmptyCall(stub.get()).ok());
    }
  }
  done = true;
  for (std::thread& thread : scrapers) thread.join();
  EXPECT_EQ(EagerMessages("sent"), 2 * 5 * kRounds);
}

TEST_P(MetricsTest, NamesNoPeerAndNothingOfACall) {
  Call call;
  call.AddMetadata("secret-key", "secret-value");
  Empty response;
  ASSERT_TRUE(stub_->EmptyCall(&call, Empty(), &response).ok());
  const std::string text = MetricsText();
  for (const std::string& word :
       {std::string("secret"), address(), std::string("127.0.0.1"),
        std::string("EmptyCall")}) {
    EXPECT_FALSE(absl::StrContains(text, word)) << word;
  }
}

TEST_P(MetricsTest, ConnectionsWithStockGrpcAreCountedAsSuch) {
  if (IsPenstock(GetParam())) GTEST_SKIP() << "both sides are Penstock's";
  Mark();
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const char* const role =
      GetParam() == Path::kStockServer ? "client" : "server";
  EXPECT_GE(Since(absl::StrCat("penstock_path_decisions_total{role=\"", role,
                               "\",path=\"http2\",reason=\"stock_peer\"}")),
            1);
}

TEST(ServeMetricsTest, RefusesWhatIsNoAddress) {
  for (const char* address :
       {"", ":", "x", "1:", ":9464", "70000", "-1", "+1", " 9464", "9464 ",
        "a b:1", "127.0.0.1:9464,0.0.0.0:1", "9464s", "[::1]9464", "[]:1"}) {
    EXPECT_EQ(ServeMetrics(address).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(ServeMetricsTest, APortThatIsTakenIsAnError) {
  const absl::StatusOr<int> port = ServeMetrics("0");
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_GT(*port, 0);
  EXPECT_EQ(ServeMetrics(absl::StrCat(*port)).status().code(),
            absl::StatusCode::kUnavailable);
}

// Asks for metrics at the port like a scraper, as long as there are answers.
void AskAtPort(int port, std::atomic<int>* answers) {
  while (true) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    char answer[4096];
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) ==
            0 &&
        send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
      while (recv(fd, answer, sizeof answer, 0) > 0) {
      }
    }
    ++*answers;
    close(fd);
  }
}

// Asks for the metrics' text, like a program with a metrics server of its own.
void AskForText(std::atomic<int>* answers) {
  while (!MetricsText().empty()) ++*answers;
}

// Exits like a program that returns from main(): runs all destructors.
[[noreturn]] void ExitWhileScraped() {
  const absl::StatusOr<int> port = ServeMetrics("0");
  if (!port.ok()) exit(1);
  // Never destroys the object, because other threads count until the process
  // ends.
  auto* const answers = new std::atomic<int>(0);
  for (int i = 0; i < 2; ++i) {
    std::thread(AskAtPort, *port, answers).detach();
    std::thread(AskForText, answers).detach();
  }
  while (*answers < 10) std::this_thread::yield();
  exit(0);
}

TEST(ServeMetricsTest, TheProcessMayExitDuringAScrape) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EXIT(ExitWhileScraped(), testing::ExitedWithCode(0), "");
  }
}

TEST(ServeMetricsTest, LeavesSignalsToTheProgram) {
  signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(ServeMetrics("0").ok());
  EXPECT_EQ(signal(SIGPIPE, SIG_DFL), SIG_DFL);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

TEST(ServeMetricsTest, TheChildOfAForkDoesNotKeepThePort) {
  const absl::StatusOr<int> port = ServeMetrics("0");
  ASSERT_TRUE(port.ok()) << port.status();
  const pid_t child = fork();
  if (child == 0) {
    int listening = 0;
    for (int fd = 3; fd < 1024; ++fd) {
      int listens = 0;
      socklen_t size = sizeof listens;
      getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
      sockaddr_in address = {};
      size = sizeof address;
      if (listens != 0 &&
          getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
          ntohs(address.sin_port) == *port) {
        ++listening;
      }
    }
    _exit(listening);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Tests a program that itself listens at the same port, at another address.
TEST(ServeMetricsTest, TheChildOfAForkKeepsTheProgramsListeners) {
  // Makes the kernel choose a port that is free at 127.0.0.1.
  const int port = ServeMetrics("127.0.0.1:0").value();
  const int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  address.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(bind(own, reinterpret_cast<sockaddr*>(&address), sizeof address),
            0);
  ASSERT_EQ(listen(own, 1), 0);
  const pid_t child = fork();
  if (child == 0) {
    int listens = 0;
    socklen_t size = sizeof listens;
    getsockopt(own, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    _exit(listens == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(own);
}

INSTANTIATE_TEST_SUITE_P(Over, PenstockMetricsTest, EachPenstockPath(),
                         PathName());
INSTANTIATE_TEST_SUITE_P(Over, MetricsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
