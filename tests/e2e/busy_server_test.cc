// A server that clients keep busy over shared memory also answers others, about
// as well as a stock server under the same load in the same run does.

#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"

namespace penstock::e2e {
namespace {

constexpr char kProbeMillis[] = "300";

std::unique_ptr<Child> StartBusy(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tests/e2e/busy");
  return Child::Start(std::move(arguments));
}

int64_t NumberAfter(Child* child, const char* prefix) {
  const auto text = child->Find(prefix);
  EXPECT_TRUE(text.has_value()) << "no line '" << prefix << "'";
  return text.has_value() ? std::atoll(text->c_str()) : -1;
}

struct Load {
  const char* api;
  int clients;
  int calls;  // of each client
};

std::ostream& operator<<(std::ostream& out, const Load& load) {
  return out << load.api << "With" << load.clients << "x" << load.calls;
}

// A server under a load.
class BusyServer {
 public:
  BusyServer(const Load& load, const std::string& path)
      : server_(StartBusy({"server", load.api, path})),
        address_(
            absl::StrCat("127.0.0.1:", NumberAfter(server_.get(), "port "))),
        crowd_(StartBusy({"crowd", path, address_, absl::StrCat(load.clients),
                          absl::StrCat(load.calls)})) {
    EXPECT_TRUE(crowd_->Find("running").has_value());
  }

  // Returns the median of the times, in microseconds, that calls of a new
  // client take over `path`.
  int64_t Probe(const std::string& path) {
    auto probe = StartBusy({"probe", path, address_, kProbeMillis});
    return NumberAfter(probe.get(), "median ");
  }
  bool IsBusy() { return server_->IsAlive() && crowd_->IsAlive(); }

 private:
  const std::unique_ptr<Child> server_;
  const std::string address_;
  const std::unique_ptr<Child> crowd_;
};

class BusyServerTest : public testing::TestWithParam<Load> {};

TEST_P(BusyServerTest, AnswersOthersAsAStockServerDoes) {
  int64_t stock = 0;
  {
    BusyServer server(GetParam(), "Stock");
    stock = server.Probe("Stock");
  }
  ASSERT_GT(stock, 0);
  BusyServer server(GetParam(), "Shm");
  for (const char* path : {"StockClient", "Tcp", "Shm"}) {
    const int64_t median = server.Probe(path);
    EXPECT_GT(median, 0) << path;
    // The machine may have had other work in one of the two runs.
    EXPECT_LT(median, 20 * stock + 20000) << path << "; stock: " << stock;
  }
  EXPECT_TRUE(server.IsBusy());
}

INSTANTIATE_TEST_SUITE_P(
    Loads, BusyServerTest,
    testing::Values(Load{"async", 1, 16}, Load{"async", 8, 4},
                    Load{"async", 32, 4}, Load{"callback", 8, 4},
                    Load{"sync", 32, 1}),
    [](const auto& info) { return testing::PrintToString(info.param); });

}  // namespace
}  // namespace penstock::e2e
