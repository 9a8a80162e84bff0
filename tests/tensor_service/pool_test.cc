// Tests tensors in Penstock's pool: sending without a copy, the cost of a peer
// that keeps tensors, and writing.

#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tensor_service/client.h"
#include "tensor_service/codec.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/service.h"
#include "tensor_service/store.h"
#include "tests/tensor_service/enabled_server.h"
#include "tests/tensor_service/random_bundle.h"
#include "tests/tensor_service/same_memory.h"

namespace penstock::tensor {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

Allocator* Pool() { return PoolAllocator<penstock::Allocator>(); }

Tensor BytesInPool(size_t bytes, uint8_t value = 0) {
  Tensor tensor =
      *Tensor::Allocate(DType::kUint8, {static_cast<int64_t>(bytes)}, Pool());
  memset(tensor.buffer()->mutable_data(), value, bytes);
  return tensor;
}

Bundle Only(const std::string& name, const Tensor& tensor) {
  Bundle bundle;
  bundle.tensors.push_back({name, tensor});
  return bundle;
}

std::vector<std::string> NamesOf(const Bundle& bundle) {
  std::vector<std::string> names;
  for (const NamedTensor& named : bundle.tensors) names.push_back(named.name);
  return names;
}

class PoolTest : public testing::TestWithParam<Fabric> {
 protected:
  PoolTest()
      : service_(MakeTensorService(&store_)),
        server_(service_.get(), GetParam()),
        client_(std::make_unique<TensorClient>(server_.channel())) {
    EXPECT_TRUE(client_->List().ok());
  }

  bool InPlace() const { return GetParam() == Fabric::kShm; }

  // Sends a bundle to the other process and back. Returns the bundle that comes
  // back.
  Bundle Fetch(const Bundle& bundle) {
    EXPECT_TRUE(store_.Put(bundle).ok());
    auto got = client_->Get(NamesOf(bundle));
    EXPECT_TRUE(got.ok()) << got.status();
    store_.Delete(NamesOf(bundle));
    return got.ok() ? *std::move(got) : Bundle();
  }

  TensorStore store_{size_t{16} << 30};
  std::unique_ptr<grpc::Service> service_;
  EnabledServer server_;
  std::unique_ptr<TensorClient> client_;
};

TEST_P(PoolTest, BundleIsReadWhereItsSenderHasIt) {
  Bundle bundle;
  for (int i = 0; i < 20; ++i) {
    const size_t bytes = i % 2 == 0 ? 100 * kKiB + static_cast<size_t>(i) : 40;
    bundle.tensors.push_back(
        {absl::StrCat("t", i), BytesInPool(bytes, static_cast<uint8_t>(i))});
  }
  const Bundle got = Fetch(bundle);
  ASSERT_EQ(got.tensors.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    const Tensor& sent = bundle.tensors[i].tensor;
    const Tensor& tensor = got.tensors[i].tensor;
    EXPECT_EQ(tensor.bytes(), sent.bytes()) << i;
    const bool is_large = sent.byte_size() >= kMinPooledBytes;
    EXPECT_EQ(IsSameMemory(sent, tensor), InPlace() && is_large) << i;
  }
}

TEST_P(PoolTest, StoreOfThePeerKeepsTheSendersMemory) {
  const Tensor sent = BytesInPool(100 * kKiB, 1);
  ASSERT_TRUE(client_->Put(Only("x", sent)).ok());
  EXPECT_EQ(IsSameMemory(sent, store_.All().tensors[0].tensor), InPlace());
}

// Tests that the memory of the remaining message is freed, at the sender too.
TEST_P(PoolTest, StoreOfThePeerKeepsNoMessageForOneOfManyTensors) {
  Bundle bundle;
  for (const char* name : {"a", "b", "c"}) {
    bundle.tensors.push_back({name, BytesInPool(100 * kKiB, 1)});
  }
  ASSERT_TRUE(client_->Put(bundle).ok());
  for (const NamedTensor& kept : store_.All().tensors) {
    EXPECT_EQ(kept.tensor.held_bytes(), 100 * kKiB);
    EXPECT_FALSE(IsSameMemory(*bundle.Find(kept.name), kept.tensor));
  }
}

TEST_P(PoolTest, AnyBundleComesThroughAligned) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Bundle bundle = RandomBundle(&random, kMiB, Pool(), HeapAllocator());
    ASSERT_TRUE(client_->Put(bundle).ok());
    const auto got = client_->Get(NamesOf(bundle));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->tensors.size(), bundle.tensors.size());
    for (size_t i = 0; i < bundle.tensors.size(); ++i) {
      const Tensor& tensor = got->tensors[i].tensor;
      EXPECT_EQ(tensor.dtype(), bundle.tensors[i].tensor.dtype());
      EXPECT_EQ(tensor.shape(), bundle.tensors[i].tensor.shape());
      EXPECT_EQ(tensor.bytes(), bundle.tensors[i].tensor.bytes());
      EXPECT_TRUE(tensor.IsAligned()) << tensor.ToString();
    }
    store_.Delete(NamesOf(bundle));
  }
}

// Tests rows that are sent in place, rows that are packed, and the bytes after
// them.
TEST_P(PoolTest, StridedViewsComeThroughAligned) {
  Tensor matrix = *Tensor::Allocate(DType::kF32, {64, 32768}, Pool());
  for (size_t i = 0; i < matrix.byte_size(); ++i) {
    matrix.buffer()->mutable_data()[i] = static_cast<char>(i * 7 + i / 4096);
  }
  std::vector<NamedView> views;
  for (const int64_t columns : {20000, 1, 16385, 16386, 100, 32768}) {
    views.push_back({absl::StrCat(columns),
                     *StridedView::Create(DType::kF32, {60, columns},
                                          {4 * 32768, 4}, matrix.buffer(), 4)});
    views.push_back(
        {absl::StrCat("one of ", columns),
         *StridedView::Create(DType::kF64, {}, {}, matrix.buffer())});
  }
  ASSERT_TRUE(client_->Put(Bundle(), views).ok());
  for (const NamedView& named : views) {
    const auto got = store_.Get({named.name});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(got->tensors[0].tensor.IsAligned()) << named.name;
    EXPECT_EQ(got->tensors[0].tensor.bytes(), named.view.Pack()->bytes());
  }
}

// Tests pieces that are sent in place. The peer joins them by copying.
TEST_P(PoolTest, StreamOfPiecesComesThrough) {
  const Tensor sent = BytesInPool(kMiB, 5);
  ASSERT_TRUE(client_->PutStream(Only("x", sent), 64 * kKiB).ok());
  const auto got = client_->GetStream({"x"}, 64 * kKiB);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensors[0].tensor.bytes(), sent.bytes());
}

// Tests a tensor that fits into a message. A stream does not copy such a tensor
// either.
TEST_P(PoolTest, StreamKeepsTheSendersMemory) {
  Bundle bundle;
  for (const char* name : {"a", "b", "c"}) {
    bundle.tensors.push_back({name, BytesInPool(kMiB, 6)});
  }
  ASSERT_TRUE(client_->PutStream(bundle).ok());
  for (const NamedTensor& kept : store_.All().tensors) {
    EXPECT_EQ(IsSameMemory(*bundle.Find(kept.name), kept.tensor), InPlace())
        << kept.name;
  }
}

TEST_P(PoolTest, WritingLeavesWhatThePeerHas) {
  Tensor mine = BytesInPool(kMiB, 1);
  Bundle got = Fetch(Only("x", mine));
  ASSERT_EQ(got.tensors.size(), 1u);
  const char* const sent = mine.bytes().data();
  (*mine.mutable_flat<uint8_t>())[0] = 2;
  EXPECT_EQ((*got.tensors[0].tensor.flat<uint8_t>())[0], 1);
  EXPECT_EQ((*mine.flat<uint8_t>())[0], 2);
  if (InPlace()) {
    EXPECT_NE(mine.bytes().data(), sent);
  }
}

TEST_P(PoolTest, MemoryIsWrittenToAgainWhenThePeerHasLetGo) {
  Tensor mine = BytesInPool(kMiB, 1);
  const char* const memory = mine.bytes().data();
  Fetch(Only("x", mine));
  // Makes calls until the release is noticed, which happens when the next
  // message is sent.
  for (int i = 0; i < 1000 && mine.buffer().use_count() > 1; ++i) {
    ASSERT_TRUE(client_->List().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(mine.mutable_flat<uint8_t>().ok());
  EXPECT_EQ(mine.bytes().data(), memory);
}

TEST_P(PoolTest, ReceiverThatKeepsAllCostsCopiesAndNoFailure) {
  constexpr size_t kBytes = 64 * kMiB;
  constexpr int kMost = 100;  // the pool has at most 1 GiB
  std::vector<Bundle> kept;
  bool is_full = false;
  for (int i = 0; i < kMost && !is_full; ++i) {
    const Tensor sent = BytesInPool(kBytes, static_cast<uint8_t>(i));
    kept.push_back(Fetch(Only("x", sent)));
    ASSERT_EQ(kept.back().tensors.size(), 1u) << i;
    const Tensor& got = kept.back().tensors[0].tensor;
    ASSERT_EQ(got.bytes()[0], static_cast<char>(i));
    ASSERT_EQ(got.bytes()[kBytes - 1], static_cast<char>(i));
    is_full = !IsSameMemory(sent, got);
  }
  EXPECT_TRUE(is_full);
  // Sends small tensors as well.
  Tensor small = BytesInPool(100 * kKiB, 9);
  EXPECT_EQ(Fetch(Only("y", small)).tensors[0].tensor.bytes(), small.bytes());
  EXPECT_TRUE(small.mutable_flat<uint8_t>().ok());
}

INSTANTIATE_TEST_SUITE_P(Fabrics, PoolTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return info.param == Fabric::kShm ? "shm" : "tcp";
                         });

}  // namespace
}  // namespace penstock::tensor
