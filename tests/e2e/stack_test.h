// Fixtures of the tests in this folder, parameterised by path.

#ifndef PENSTOCK_TESTS_E2E_STACK_TEST_H_
#define PENSTOCK_TESTS_E2E_STACK_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/adapter.h"
#include "tests/e2e/call.h"
#include "tests/e2e/path.h"
#include "tests/e2e/stack.h"
#include "tests/e2e/test_service.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

class StackTest : public testing::TestWithParam<Path>, public Stack {
 protected:
  StackTest() : Stack(GetParam()) {}
};

// A fixture with the interoperability service and a stub of it.
class ServiceTest : public StackTest {
 protected:
  void SetUp() override {
    Serve(&service_);
    stub_ = TestService::NewStub(channel());
  }
  // Stops the server before the service is destroyed.
  ~ServiceTest() override { StopServing(std::chrono::milliseconds(0)); }

  // Opens a stream, and sends a message to the server and back.
  std::unique_ptr<Stream> OpenStream(Call* call) {
    auto stream = stub_->FullDuplexCall(call);
    EXPECT_TRUE(PingPong(stream.get()));
    return stream;
  }

  TestServiceImpl service_;
  std::unique_ptr<TestService::Stub> stub_;
};

// Returns every path of Penstock.
inline std::vector<Path> PenstockPaths() {
  if (IsInVm()) return {Path::kVerbs};
  if (kIsEventEngine) return {Path::kShm};
  return {Path::kShm, Path::kTcp};
}
inline auto EachPenstockPath() { return testing::ValuesIn(PenstockPaths()); }
// Returns every path except kStock, for INSTANTIATE_TEST_SUITE_P.
inline auto EachPath() {
  std::vector<Path> paths = PenstockPaths();
  if (!IsInVm()) {
    paths.insert(paths.end(), {Path::kStockServer, Path::kStockClient});
  }
  return testing::ValuesIn(paths);
}

// Returns every path whose connections DescribePaths() shows.
inline auto EachDescribedPath() {
  std::vector<Path> paths = PenstockPaths();
  if (!IsInVm()) paths.push_back(Path::kStockServer);
  if (!IsInVm() && !kIsEventEngine) paths.push_back(Path::kStockClient);
  return testing::ValuesIn(paths);
}

struct PathName {
  std::string operator()(const testing::TestParamInfo<Path>& info) const {
    return NameOf(info.param);
  }
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_STACK_TEST_H_
