// Tests limits on one request and one client of a store, which leave room for
// other clients.

#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensor_service/client.h"
#include "tensor_service/tensor.grpc.pb.h"
#include "tests/tensor_service/shares_test_util.h"

namespace penstock::tensor {
namespace {

// Returns this process's peak memory, in bytes.
size_t PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * kKiB;
}

// Tests a request of many names of three bytes each. Without limits, a request
// of 3 MB makes the server take 1.4 GB.
TEST_F(SharesTest, OneNameAMillionTimesIsRefusedBeforeItTakesMemory) {
  ASSERT_TRUE(store_.Put(Only("w", OfBytes(kKiB))).ok());
  std::string names;
  for (int i = 0; i < 1000000; ++i) names += "\x0a\x01w";
  const size_t before = PeakBytes();
  for (const char* method : {"Get", "GetStream", "Delete"}) {
    const absl::Status status = Call(method, names);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "1000000 tensors"))
        << status;
  }
  EXPECT_LT(PeakBytes() - before, 32 * kMiB);
  EXPECT_EQ(store_.usage().tensors, 1u);
  EXPECT_EQ(store_.usage().answer_bytes, 0u);
}

TEST_F(SharesTest, NameThatIsRepeatedWithinReasonIsAnsweredAsOften) {
  ASSERT_TRUE(store_.Put(Only("w", OfBytes(kKiB))).ok());
  TensorClient client(Channel());
  const auto got = client.Get(std::vector<std::string>(4000, "w"));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensors.size(), 4000u);
  EXPECT_TRUE(Becomes([&] { return store_.usage().answer_bytes == 0; }));
}

// Tests short tensors, whose elements are copied into each answer.
TEST_F(SharesTest, CopiedElementsCountToo) {
  ASSERT_TRUE(store_.Put(Only("w", OfBytes(kKiB - 1))).ok());
  TensorClient client(Channel());
  EXPECT_TRUE(client.Get(std::vector<std::string>(4000, "w")).ok());
  EXPECT_EQ(client.Get(std::vector<std::string>(6000, "w")).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SharesTest, FullStoreIsReadAndListed) {
  TensorClient client(Channel());
  Bundle all;
  for (int i = 0; i < 4000; ++i) {
    all.tensors.push_back({absl::StrCat("t", i), OfBytes(kKiB)});
  }
  ASSERT_TRUE(client.Put(all).ok());
  ASSERT_TRUE(
      client.Put(Only("rest", OfBytes(kBudget - 4000 * 1600 - kKiB))).ok());
  EXPECT_EQ(client.List()->size(), 4001u);
  EXPECT_TRUE(client.Get({"rest"}).ok());
}

TEST_F(SharesTest, AnswersThatAreNotReadCountAndGiveBack) {
  ASSERT_TRUE(store_.Put(Only("x", OfBytes(6 * kMiB))).ok());
  v1::GetRequest get;
  get.add_names("x");
  const auto channel = Channel();
  {
    const Stalled stalled(channel, "/penstock.tensor.v1.TensorExchange/Get",
                          get);
    ASSERT_TRUE(Becomes([&] { return store_.usage().answer_bytes > 0; }));
    // Replaces the first tensor, so that the client's copy of it is no longer
    // stored.
    ASSERT_TRUE(store_.Put(Only("x", OfBytes(6 * kMiB))).ok());
    EXPECT_GE(store_.usage().bytes, 12 * kMiB);
    EXPECT_EQ(store_.Put(Only("y", OfBytes(5 * kMiB))).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  // Makes a call, so that some thread polls for the connection. Otherwise the
  // cancellation takes 10 s.
  EXPECT_TRUE(TensorClient(channel).List().ok());
  EXPECT_TRUE(Becomes([&] { return store_.usage().bytes < 7 * kMiB; }));
  EXPECT_TRUE(Becomes([&] { return store_.usage().answer_bytes == 0; }));
}

// A stream that announces a tensor of this size, and sends one byte of it.
class Announced {
 public:
  Announced(v1::TensorExchange::Stub* stub, size_t bytes) {
    writer_ = stub->PutStream(&context_, &reply_);
    v1::BundlePart part;
    v1::Tensor* const piece = part.add_tensors()->mutable_tensor();
    part.mutable_tensors(0)->set_name("t");
    piece->set_dtype(v1::DTYPE_UINT8);
    piece->add_shape(1);
    piece->set_data("p");
    part.mutable_header()->mutable_piece()->set_dtype(v1::DTYPE_UINT8);
    part.mutable_header()->mutable_piece()->add_shape(
        static_cast<int64_t>(bytes));
    writer_->Write(part);
  }

  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() { return writer_->Finish(); }

 private:
  grpc::ClientContext context_;
  v1::PutReply reply_;
  std::unique_ptr<grpc::ClientWriter<v1::BundlePart>> writer_;
};

TEST_F(SharesTest, StalledPutStreamLeavesRoomForOtherClients) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  Announced all(stub.get(), kBudget - 4 * kKiB);
  ASSERT_TRUE(Becomes([&] { return store_.usage().bytes > 15 * kMiB; }));
  TensorClient other(Channel());
  EXPECT_TRUE(Becomes(
      [&] { return other.PutStream(Only("s", OfBytes(3 * kMiB))).ok(); }));
  const grpc::Status evicted = all.Finish();
  EXPECT_EQ(evicted.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(absl::StrContains(evicted.error_message(), "stalls"))
      << evicted.error_message();
  // Expects that a call with one message has the same limit.
  Announced again(stub.get(), kBudget - 4 * kMiB);
  ASSERT_TRUE(Becomes([&] { return store_.usage().bytes > 14 * kMiB; }));
  EXPECT_TRUE(
      Becomes([&] { return other.Put(Only("u", OfBytes(4 * kMiB))).ok(); }));
  EXPECT_EQ(again.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(SharesTest, StalledPutStreamWithinItsShareIsLeftAlone) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  Announced half(stub.get(), kBudget / 2 - 4 * kKiB);
  ASSERT_TRUE(Becomes([&] { return store_.usage().bytes > 7 * kMiB; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  TensorClient other(Channel());
  EXPECT_TRUE(other.Put(Only("u", OfBytes(7 * kMiB))).ok());
  EXPECT_EQ(other.Put(Only("v", OfBytes(4 * kMiB))).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_GT(store_.usage().bytes, 14 * kMiB);
  half.Cancel();
  EXPECT_EQ(half.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Becomes([&] { return store_.usage().bytes < 8 * kMiB; }));
}

// Tests a stream that stays open. Other clients wait for their turn, or return.
TEST_F(SharesTest, StreamThatGoesOnMayHaveEverything) {
  TensorClient client(Channel());
  const auto stored = client.PutStream(Only("x", OfBytes(15 * kMiB)), 64 << 10);
  EXPECT_TRUE(stored.ok()) << stored.status();
}

TEST_F(SharesTest, ExchangeNeedsRoomForBoth) {
  TensorClient client(Channel());
  ASSERT_TRUE(client.Put(Only("x", OfBytes(9 * kMiB))).ok());
  EXPECT_EQ(client.Exchange(Only("x", OfBytes(8 * kMiB))).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(client.Exchange(Only("x", OfBytes(6 * kMiB)))
                ->tensors[0]
                .tensor.byte_size(),
            9 * kMiB);
}

}  // namespace
}  // namespace penstock::tensor
