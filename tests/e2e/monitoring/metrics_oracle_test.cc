// Tests a process's metrics against the callers' own counts. The calls end in
// every way, while paths are lost and metrics are read.

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "penstock/metrics.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// Returns the sum of all series of `name` that have all of `labels`.
double SumOf(const std::string& text, const std::string& name,
             const std::vector<std::string>& labels) {
  double sum = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, name + "{") &&
        !absl::StartsWith(line, name + " ")) {
      continue;
    }
    bool fits = true;
    for (const std::string& label : labels) {
      fits = fits && absl::StrContains(line, label);
    }
    double value = 0;
    if (fits && absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) {
      sum += value;
    }
  }
  return sum;
}

// Shuts down all packet sockets of this process, which are those of shared
// memory. To Penstock, this looks like the death of the peer.
void TearDownSharedMemory() {
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    int type = 0;
    socklen_t size = sizeof type;
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
        type == SOCK_SEQPACKET &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
      shutdown(fd, SHUT_RDWR);
    }
  }
  closedir(folder);
}

struct Counts {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> cancelled{0};
  std::atomic<uint64_t> late{0};
  std::atomic<uint64_t> messages{0};
  std::atomic<uint64_t> bytes{0};

  void Add(const google::protobuf::MessageLite& message) {
    ++messages;
    bytes += message.ByteSizeLong();
  }
};

class MetricsOracleTest : public ServiceTest {
 protected:
  double Since(const std::string& name,
               const std::vector<std::string>& labels) const {
    return SumOf(MetricsText(), name, labels) - SumOf(before_, name, labels);
  }
  // Waits until the metric has the value, because gauges and some events are
  // counted after the end of their call.
  bool Becomes(double wanted, const std::string& name,
               const std::vector<std::string>& labels) const {
    const auto end = In(kPatience);
    while (Since(name, labels) != wanted) {
      if (std::chrono::system_clock::now() > end) {
        ADD_FAILURE() << name << " is " << Since(name, labels) << ", not "
                      << wanted;
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

  void MakeUnaryCall(size_t bytes, bool fails) {
    Call call;
    SimpleRequest request;
    *request.mutable_payload() = ZeroPayload(bytes);
    request.set_response_size(static_cast<int>(bytes));
    if (fails) request.mutable_response_status()->set_code(9);
    SimpleResponse response;
    const grpc::Status status = stub_->UnaryCall(&call, request, &response);
    ++counts_.calls;
    counts_.Add(request);
    if (!fails) counts_.Add(response);
    EXPECT_EQ(status.ok(), !fails) << status.error_message();
  }

  enum class End { kStatus, kCancel };
  void MakeStream(int rounds, size_t bytes, End how) {
    Call call;
    auto stream = stub_->FullDuplexCall(&call);
    ++counts_.calls;
    for (int i = 0; i < rounds; ++i) {
      const auto request = RequestOf(bytes, bytes);
      StreamingOutputCallResponse response;
      ASSERT_TRUE(stream->Write(request));
      ASSERT_TRUE(stream->Read(&response));
      counts_.Add(request);
      counts_.Add(response);
    }
    if (how == End::kStatus) {
      stream->WritesDone();
    } else {
      ++counts_.cancelled;
      call.TryCancel();
    }
    EXPECT_EQ(stream->Finish().ok(), how == End::kStatus);
  }
  // Makes a call that cannot be answered before its deadline.
  void MissDeadline() {
    grpc::ClientContext call;
    call.set_deadline(In(std::chrono::milliseconds(300)));
    auto stream = stub_->FullDuplexCall(&call);
    const auto request = RequestOf(1, 1);
    ASSERT_TRUE(stream->Write(request));
    StreamingOutputCallResponse response;
    ASSERT_TRUE(stream->Read(&response));
    counts_.Add(request);
    counts_.Add(response);
    ++counts_.calls;
    ++counts_.late;
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_EQ(stream->Finish().error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }

  void MakeCalls(int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int i = 0; i < 60; ++i) {
      const size_t bytes = size_t{1} << (random() % 19);
      switch (random() % 6) {
        case 0:
        case 1:
          MakeUnaryCall(bytes, false);
          break;
        case 2:
          MakeUnaryCall(bytes, true);
          break;
        case 3:
          MakeStream(3, bytes, End::kStatus);
          break;
        case 4:
          MakeStream(2, bytes, End::kCancel);
          break;
        default:
          if (i % 5 == 0) MissDeadline();
      }
    }
  }

  void RunThreads() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([this, i] { MakeCalls(i); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Mark() { before_ = MetricsText(); }

  void ExpectWhatWasCounted() {
    for (const char* role : {"role=\"client\"", "role=\"server\""}) {
      Becomes(counts_.calls, "penstock_streams_started_total", {role});
      Becomes(0, "penstock_streams", {role});
      const double resets = Since("penstock_streams_reset_total", {role});
      EXPECT_GE(resets, counts_.cancelled);
      // Allows for calls that count as reset. Both sides know the deadline, and
      // the server may report the expiry first, by a status.
      EXPECT_LE(resets, counts_.cancelled + counts_.late);
    }
    for (const char* way : {"direction=\"sent\"", "direction=\"received\""}) {
      Becomes(counts_.messages, "penstock_messages_total", {way});
      Becomes(counts_.bytes, "penstock_message_bytes_total", {way});
    }
    const double announced =
        Since("penstock_messages_total",
              {"kind=\"announced\"", "direction=\"sent\""});
    EXPECT_GT(announced, 0);
    Becomes(announced, "penstock_announced_message_duration_seconds_count", {});
    EXPECT_EQ(SumOf(MetricsText(), "penstock_announced_messages", {}), 0);
  }

  Counts counts_;
  std::string before_;
};

TEST_P(MetricsOracleTest, EachCallAndMessageCountsOnce) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Mark();
  RunThreads();
  ExpectWhatWasCounted();
}

// Tests that each message counts once although paths are lost. A message that
// is resent over another path counts for its first path.
TEST_P(MetricsOracleTest, EachCountsOnceThoughPathsAreLost) {
  if (GetParam() != Path::kShm) GTEST_SKIP() << "of shm";
  const auto used = channel();
  const auto is_over = [&](const std::string& path) {
    const auto reports = DescribePaths(*used);
    return reports.size() == 1 && reports[0].path == path;
  };
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Mark();
  std::atomic<bool> done{false};
  std::atomic<int> losses{0};
  // Waits for some more messages on the connection.
  const auto await_traffic = [&] {
    const auto sent = [&] {
      const auto reports = DescribePaths(*used);
      return reports.empty() ? 0 : reports[0].messages_sent;
    };
    const uint64_t enough = sent() + 20;
    while (sent() < enough && !done) std::this_thread::yield();
  };
  std::thread vandal([&] {
    // Stops after two losses, because a path that is lost repeatedly is retried
    // less and less often.
    while (losses < 2 && !done) {
      await_traffic();
      if (!is_over("shm")) continue;
      TearDownSharedMemory();
      while (is_over("shm") && !done) std::this_thread::yield();
      if (!done) ++losses;
    }
  });
  RunThreads();
  done = true;
  vandal.join();
  const auto end = In(3 * kPatience);
  while (!is_over("shm") && std::chrono::system_clock::now() < end) {
    Call call;
    MakeUnaryCall(1, false);
  }
  ASSERT_TRUE(is_over("shm"));
  ExpectWhatWasCounted();
  const double lost = Since("penstock_paths_lost_total", {});
  EXPECT_GE(lost, 2 * losses);
  Becomes(lost, "penstock_paths_regained_total", {});
  for (const char* role : {"role=\"client\"", "role=\"server\""}) {
    EXPECT_EQ(Since("penstock_path_decisions_total",
                    {role, "path=\"shm\"", "reason=\"none\""}),
              lost / 2);
    EXPECT_EQ(Since("penstock_path_decisions_total", {role, "path=\"tcp\""}),
              lost / 2)
        << role;
  }
  EXPECT_EQ(Since("penstock_path_decisions_total", {"reason=\"lost\""}), lost);
}

INSTANTIATE_TEST_SUITE_P(Over, MetricsOracleTest, EachPenstockPath(),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
