// Tests the trace of a process after known calls.

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

std::string TracePath() {
  return absl::StrCat(testing::TempDir(), "/trace-", getpid(), ".json");
}

// Sets the trace's file. Must precede the first channel or server, which reads
// the setting.
const int kSet =
    setenv("PENSTOCK_TRACE",
           absl::StrCat(testing::TempDir(), "/trace-%p.json").c_str(), 1);

// The begin event and the end event of one span.
struct Span {
  std::string name;
  std::string path;
  uint64_t connection = 0;
  uint32_t stream = 0;
  uint64_t bytes = 0;
  bool ok = false;
  double begin = 0;
  double end = 0;
};

double NowMicros() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Fails the test unless each begin precedes a matching end.
std::vector<Span> Parse(const std::string& text) {
  std::map<std::string, Span> open;
  std::vector<Span> spans;
  for (const nlohmann::json& event : nlohmann::json::parse(text)) {
    // Requires the field "id2". With "id", equal numbers in the files of
    // different processes would mean the same span.
    const std::string id = event["id2"]["local"];
    EXPECT_EQ(event["pid"], getpid());
    if (event["ph"] == "b") {
      Span span;
      span.name = event["name"];
      span.path = event["args"]["path"];
      span.connection = event["tid"];
      span.stream = event["args"]["stream"];
      span.bytes = event["args"].value("bytes", 0);
      span.ok = event["args"].value("status", false);
      span.begin = event["ts"];
      EXPECT_TRUE(open.emplace(id, span).second) << id;
    } else {
      EXPECT_EQ(event["ph"], "e");
      EXPECT_EQ(open.count(id), 1u) << id;
      EXPECT_EQ(open[id].name, event["name"]);
      open[id].end = event["ts"];
      EXPECT_LE(open[id].begin, open[id].end);
      spans.push_back(open[id]);
      open.erase(id);
    }
  }
  EXPECT_TRUE(open.empty());
  return spans;
}

// Detects new writes to a file.
class Writes {
 public:
  explicit Writes(const std::string& path) {
    EXPECT_GE(inotify_add_watch(fd_, path.c_str(), IN_MODIFY), 0) << path;
  }
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;
  ~Writes() { close(fd_); }
  // Blocks until the file is written again, or for `limit`.
  void Await(std::chrono::milliseconds limit) {
    pollfd written = {fd_, POLLIN, 0};
    poll(&written, 1, static_cast<int>(limit.count()));
    char events[4096];
    while (read(fd_, events, sizeof(events)) > 0) {
    }
  }

 private:
  const int fd_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
};

class TraceTest : public ServiceTest {
 protected:
  // Returns the spans of this name that began at `begin` or later. Returns none
  // while the file is being written.
  static std::vector<Span> Find(double begin, const std::string& name) {
    std::ifstream file(TracePath());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<Span> found;
    if (!nlohmann::json::accept(text)) return found;
    for (Span& span : Parse(text)) {
      if (span.begin >= begin && span.name == name) found.push_back(span);
    }
    return found;
  }

  // Waits until `count` spans of this name have begun at `begin` or later.
  // Returns these spans.
  static std::vector<Span> Since(double begin, const std::string& name,
                                 size_t count) {
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    Writes writes(TracePath());
    std::vector<Span> found = Find(begin, name);
    while (found.size() < count && std::chrono::steady_clock::now() < limit) {
      writes.Await(std::chrono::seconds(1));
      found = Find(begin, name);
    }
    EXPECT_EQ(found.size(), count) << name;
    return found;
  }
};

TEST_P(TraceTest, EachCallIsThereOnBothSidesWithinItsTime) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const double begin = NowMicros();
  constexpr size_t kCalls = 300;  // more than are sampled without a trace
  for (size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  }
  double last = 0;
  for (const Span& call : Since(begin, "call", kCalls)) {
    EXPECT_TRUE(call.ok);
    EXPECT_EQ(call.path, FabricOf(GetParam()));
    EXPECT_LE(last, call.begin) << "one after another";
    last = call.begin;
  }
  Since(begin, "handling", kCalls);
}

TEST_P(TraceTest, MessagesLieWithinTheirCalls) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const double begin = NowMicros();
  constexpr size_t kBytes = 1 << 20;
  SimpleRequest request;
  request.set_response_size(kBytes);
  *request.mutable_payload() = ZeroPayload(kBytes);
  constexpr size_t kCalls = 5;
  for (size_t i = 0; i < kCalls; ++i) {
    Call call;
    SimpleResponse response;
    ASSERT_TRUE(stub_->UnaryCall(&call, request, &response).ok());
  }
  const std::vector<Span> calls = Since(begin, "call", kCalls);
  const std::vector<Span> handlings = Since(begin, "handling", kCalls);
  const auto within = [&](const Span& message, bool to_its_end) {
    for (const std::vector<Span>* streams : {&calls, &handlings}) {
      for (const Span& stream : *streams) {
        if (stream.connection != message.connection ||
            stream.stream != message.stream) {
          continue;
        }
        return stream.begin <= message.begin && message.begin <= stream.end &&
               (!to_its_end || message.end <= stream.end);
      }
    }
    return false;
  };
  for (const Span& read : Since(begin, "reading", 2 * kCalls)) {
    EXPECT_GE(read.bytes, kBytes);
    EXPECT_TRUE(within(read, true));
  }
  // Checks only when the span began, because the peer may release the message
  // after the end of the call.
  for (const Span& sent : Since(begin, "announced message", 2 * kCalls)) {
    EXPECT_GE(sent.bytes, kBytes);
    EXPECT_TRUE(within(sent, false));
  }
}

TEST_P(TraceTest, ACancelledCallHasNoStatus) {
  const double begin = NowMicros();
  {
    Call call;
    auto stream = OpenStream(&call);
    call.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
  }
  const std::vector<Span> calls = Since(begin, "call", 1);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls[0].ok);
}

INSTANTIATE_TEST_SUITE_P(Over, TraceTest, EachPenstockPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
