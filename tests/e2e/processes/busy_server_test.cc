// Tests that a server which clients keep busy over shared memory also serves
// others: new clients of all kinds, health checks and metrics scrapes. They may
// wait about as long as with a stock server under the same load in the same
// run.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"

namespace penstock::e2e {
namespace {

constexpr char kProbeMillis[] = "300";

std::unique_ptr<Child> StartBusy(std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {},
                                 int log = -1) {
  arguments.insert(arguments.begin(), "tests/e2e/processes/busy");
  return Child::Start(std::move(arguments), environment, log);
}

// Returns the number in the child's line, or -1 if no such line comes in time.
int64_t NumberAfter(Child* child, const char* prefix) {
  const auto text = child->Find(prefix);
  return text.has_value() ? std::atoll(text->c_str()) : -1;
}

struct Load {
  const char* api;
  int clients;
  int calls;      // per client
  int bytes = 0;  // of a request and of a response; 0 means empty calls
  const char* path = "Shm";
};

std::ostream& operator<<(std::ostream& out, const Load& load) {
  out << load.api << "With" << load.clients << "x" << load.calls;
  if (load.bytes > 0) out << "Of" << load.bytes;
  return out << "Over" << load.path;
}

// A server under load.
class BusyServer {
 public:
  BusyServer(const Load& load, const std::string& path)
      : server_(StartBusy({"server", load.api, path},
                          {"PENSTOCK_METRICS=127.0.0.1:0"}, log_)),
        address_(
            absl::StrCat("127.0.0.1:", NumberAfter(server_.get(), "port "))),
        crowd_(StartBusy({"crowd", path, address_, absl::StrCat(load.clients),
                          absl::StrCat(load.calls), absl::StrCat(load.bytes)})),
        has_load_(crowd_->Find("running").has_value()) {}
  ~BusyServer() { close(log_); }
  BusyServer(const BusyServer&) = delete;
  BusyServer& operator=(const BusyServer&) = delete;

  // Return the median response time, in microseconds, of calls of a new client
  // over `path`, of health checks, and of scrapes. Return -1 without an answer.
  int64_t Probe(const std::string& path) {
    return MedianOf({"probe", path, address_, kProbeMillis});
  }
  int64_t CheckHealth() { return MedianOf({"health", address_, kProbeMillis}); }
  int64_t Scrape() { return MedianOf({"scrape", MetricsPort(), kProbeMillis}); }
  // Returns true if the load began in time.
  bool has_load() const { return has_load_; }
  bool IsBusy() { return server_->IsAlive() && crowd_->IsAlive(); }

 private:
  static int64_t MedianOf(std::vector<std::string> probe) {
    return NumberAfter(StartBusy(std::move(probe)).get(), "median ");
  }
  // Returns the port in the server's log.
  std::string MetricsPort() const {
    constexpr absl::string_view kBefore = "metrics are served on port ";
    std::string log(1 << 16, '\0');
    log.resize(std::max<ssize_t>(0, pread(log_, &log[0], log.size(), 0)));
    const size_t at = log.find(kBefore.data());
    EXPECT_NE(at, log.npos) << log;
    if (at == log.npos) return "";
    return absl::StrCat(std::atoi(&log[at + kBefore.size()]));
  }

  const int log_ = memfd_create("log", MFD_CLOEXEC);
  const std::unique_ptr<Child> server_;
  const std::string address_;
  const std::unique_ptr<Child> crowd_;
  const bool has_load_;
};

// Compares a Penstock server with a stock server under the same load. Returns a
// text about the answers that took too long, or "" if there are none.
std::string LateAnswers(const Load& load) {
  int64_t stock = 0;
  {
    BusyServer server(load, "Stock");
    stock = server.Probe("Stock");
  }
  if (stock <= 0) return "not even a stock server answers";
  std::string late;
  const auto expect_answers = [&](const char* what, int64_t median) {
    // Uses a loose bound, because the machine may have had other work during
    // one of the two measurements.
    if (median <= 0 || median >= 20 * stock + 20000) {
      absl::StrAppend(&late, what, ": ", median, " us, stock: ", stock, "; ");
    }
  };
  BusyServer server(load, load.path);
  if (!server.has_load()) return "the load did not begin";
  for (const char* path : {"StockClient", "Tcp", "Shm"}) {
    expect_answers(path, server.Probe(path));
  }
  expect_answers("health", server.CheckHealth());
  expect_answers("metrics", server.Scrape());
  EXPECT_TRUE(server.IsBusy());
  return late;
}

class BusyServerTest : public testing::TestWithParam<Load> {};

// Repeats a comparison with late answers, because the machine may have been
// overloaded. A server that starves other clients fails each time.
TEST_P(BusyServerTest, AnswersOthersAsAStockServerDoes) {
  constexpr int kTries = 3;
  std::string late;
  for (int i = 0; i < kTries; ++i) {
    late = LateAnswers(GetParam());
    if (late.empty() || HasFailure()) break;
    std::cout << "late: " << late << "\n";
  }
  EXPECT_EQ(late, "");
}

INSTANTIATE_TEST_SUITE_P(
    Loads, BusyServerTest,
    testing::Values(Load{"async", 1, 16}, Load{"async", 8, 4},
                    Load{"async", 32, 4}, Load{"callback", 1, 16},
                    Load{"callback", 8, 4}, Load{"sync", 8, 1},
                    Load{"sync", 32, 1}),
    [](const auto& info) { return testing::PrintToString(info.param); });

}  // namespace
}  // namespace penstock::e2e
