// What a parameter server takes as first values, and what it holds of them.

#include "ps/server.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "ps/optimizer.h"
#include "tensor_service/codec.h"

namespace penstock::ps {
namespace {

using tensor::Bundle;
using tensor::Tensor;

constexpr MemberId kChief = {0, 1};

Bundle Floats(const std::string& name, const std::vector<float>& values) {
  Bundle bundle;
  bundle.tensors.push_back(
      {name,
       *Tensor::Of<float>({static_cast<int64_t>(values.size())}, values)});
  return bundle;
}

class ServerTest : public testing::Test {
 protected:
  std::unique_ptr<Server> MakeServer(size_t max_variable_bytes = 1 << 20) {
    Server::Options options;
    options.max_variable_bytes = max_variable_bytes;
    options.log = [this](const std::string& note) { log_.push_back(note); };
    return std::make_unique<Server>(options, *MakeSgd(1));
  }

  std::vector<std::string> log_;
};

TEST_F(ServerTest, FirstValueThatIsNotFiniteIsRefusedByName) {
  const auto server = MakeServer();
  const float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    log_.clear();
    Bundle values = Floats("good", {1, 2});
    values.tensors.push_back(Floats("bad", {1, 2, bad}).tensors[0]);
    const absl::Status status = server->Initialize(kChief, values).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    for (const char* part : {"worker 0", "variable bad", "element 2"}) {
      EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
    }
    ASSERT_EQ(log_.size(), 1u);
    EXPECT_EQ(log_[0], status.message());
  }
  EXPECT_FALSE(server->report().initialized);
  const auto taken = server->Initialize(kChief, Floats("good", {1, 2}));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(*taken);
}

TEST_F(ServerTest, NameThatAWorkerHasChosenForgesNoLogLine) {
  const auto server = MakeServer();
  EXPECT_FALSE(
      server->Initialize(kChief, Floats("w\n\x1b[2J", {std::nanf("")})).ok());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_TRUE(absl::StrContains(log_[0], R"(variable w\x0a\x1b[2J)"))
      << log_[0];
}

// One that nobody keeps: of two variables, each is less than half of it.
TEST_F(ServerTest, VariablesDoNotKeepTheMessageThatTheyCameIn) {
  Bundle values = Floats("a", std::vector<float>(100));
  values.tensors.push_back(Floats("b", std::vector<float>(100)).tensors[0]);
  grpc::Slice bytes;
  ASSERT_TRUE(tensor::Encode(values)->DumpToSingleSlice(&bytes).ok());
  bool is_held = true;
  grpc::Slice message(
      const_cast<uint8_t*>(bytes.begin()), bytes.size(),
      [](void* held) { *static_cast<bool*>(held) = false; }, &is_held);
  const auto server = MakeServer();
  {
    const auto received = tensor::Decode(grpc::ByteBuffer(&message, 1));
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_TRUE(server->Initialize(kChief, *received).ok());
  }
  message = grpc::Slice();
  EXPECT_FALSE(is_held);
}

TEST_F(ServerTest, VariablesWithoutElementsAreCountedToo) {
  const auto server = MakeServer(/*max_variable_bytes=*/4096);
  Bundle values;
  for (int i = 0; i < 10; ++i) {
    values.tensors.push_back(Floats(std::to_string(i), {}).tensors[0]);
  }
  EXPECT_EQ(server->Initialize(kChief, values).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace penstock::ps
