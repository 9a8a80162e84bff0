#include "tensor_service/strided.h"

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/encode_strided.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::shared_ptr<Buffer> Numbered(size_t size) {
  std::shared_ptr<Buffer> buffer = *Buffer::Allocate(size);
  for (size_t i = 0; i < size; ++i) {
    buffer->mutable_data()[i] = static_cast<char>(i * 7 + i / 256);
  }
  return buffer;
}

std::string Flat(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

// Packs by definition: finds each element by its index.
std::string NaivelyPacked(const Buffer& buffer, size_t offset, size_t element,
                          const Shape& shape,
                          const std::vector<int64_t>& strides) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::string packed;
  for (int64_t n = 0; n < count; ++n) {
    auto at = static_cast<int64_t>(offset);
    int64_t rest = n;
    for (size_t d = shape.size(); d-- > 0;) {
      at += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    packed.append(buffer.data() + at, element);
  }
  return packed;
}

struct Random {
  DType dtype;
  Shape shape;
  std::vector<int64_t> strides;
  size_t offset;
};

// Returns a random view, which may have elements outside the buffer. Rows are
// often contiguous, so that runs have all lengths.
Random RandomView(std::mt19937* random, size_t buffer_bytes) {
  Random view;
  view.dtype = static_cast<DType>(1 + (*random)() % 10);
  auto next = static_cast<int64_t>(ElementSize(view.dtype));
  for (unsigned rank = (*random)() % 5; rank > 0; --rank) {
    auto size = static_cast<int64_t>((*random)() % (20 >> rank % 2));
    // Sometimes makes long runs, of arbitrary lengths and of multiples of 8.
    if (view.shape.empty() && (*random)() % 4 == 0) {
      size = static_cast<int64_t>(10000 + (*random)() % 70000) &
             ((*random)() % 2 == 0 ? ~0 : ~7);
    }
    int64_t stride = next;
    switch ((*random)() % 8) {
      case 0:
        stride = 0;
        break;
      case 1:
        stride = -next;
        break;
      case 2:
        stride = next * 2;
        break;
      case 3:
        stride = next + static_cast<int64_t>((*random)() % 16);
        break;
      default:
        break;
    }
    view.shape.insert(view.shape.begin(), size);
    view.strides.insert(view.strides.begin(), stride);
    if (stride != 0) next = std::abs(stride) * std::max<int64_t>(size, 1);
  }
  view.offset = (*random)() % 2 == 0 ? 0 : (*random)() % buffer_bytes;
  return view;
}

TEST(Strided, AnyViewPacksAndTravelsAsANaivePackerHasIt) {
  constexpr size_t kBytes = 4 << 20;
  const std::shared_ptr<Buffer> buffer = Numbered(kBytes);
  int made = 0;
  int in_place = 0;
  for (unsigned seed = 0; seed < 12000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Random raw = RandomView(&random, kBytes);
    const auto view = StridedView::Create(raw.dtype, raw.shape, raw.strides,
                                          buffer, raw.offset);
    if (!view.ok() || view->byte_size() > kBytes / 4) continue;
    ++made;
    const std::string expected = NaivelyPacked(
        *buffer, raw.offset, ElementSize(raw.dtype), raw.shape, raw.strides);
    ASSERT_EQ(view->byte_size(), expected.size());
    ASSERT_EQ(view->num_runs() * view->run_bytes(), expected.size());
    ASSERT_EQ(view->Pack()->bytes(), expected);
    Bundle bundle;
    bundle.tensors.push_back({"before", *Tensor::Of<int8_t>({3}, {1, 2, 3})});
    const bool has_runs = view->num_runs() > 1;
    in_place += has_runs && IsSentInPlace(*view, kMaxSlices - 2) ? 1 : 0;
    const auto message =
        Encode(bundle, {{"v", *view}, {"again", *view}}, "head");
    ASSERT_TRUE(message.ok()) << message.status();
    std::string header;
    const auto decoded = Decode(*message, &header);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(header, "head");
    ASSERT_EQ(decoded->tensors.size(), 3u);
    for (const size_t i : {1, 2}) {
      ASSERT_EQ(decoded->tensors[i].tensor.bytes(), expected);
      ASSERT_EQ(decoded->tensors[i].tensor.shape(), raw.shape);
      ASSERT_EQ(decoded->tensors[i].tensor.dtype(), raw.dtype);
    }
    // Encodes the same tensor by generated code.
    v1::Bundle stock;
    ASSERT_TRUE(stock.ParseFromString(Flat(*message)));
    ASSERT_EQ(stock.tensors(1).tensor().data(), expected);
    ASSERT_EQ(stock.tensors(2).name(), "again");
  }
  EXPECT_GT(made, 1000);
  EXPECT_GT(in_place, 20);
  EXPECT_LT(in_place, made);
}

TEST(Strided, AlignedLikeTensorsInOnePiece) {
  const std::shared_ptr<Buffer> buffer = Numbered(2 << 20);
  std::vector<NamedView> views;
  for (const int64_t row : {70000, 65536, 65540, 40, 100}) {
    views.push_back(
        {std::string(static_cast<size_t>(row % 77), 'n'),
         *StridedView::Create(DType::kF32, {16, row / 4}, {80000, 4}, buffer)});
    views.push_back(
        {"d", *StridedView::Create(DType::kF64, {3}, {800}, buffer)});
  }
  const std::string flat = Flat(*Encode(Bundle(), views));
  std::shared_ptr<Buffer> aligned = *Buffer::Allocate(flat.size());
  flat.copy(aligned->mutable_data(), flat.size());
  const grpc::Slice slice = SliceOf(aligned);
  const auto decoded = Decode(grpc::ByteBuffer(&slice, 1));
  ASSERT_TRUE(decoded.ok());
  for (const NamedTensor& named : decoded->tensors) {
    EXPECT_TRUE(named.tensor.IsAligned()) << named.tensor.ToString();
  }
}

std::vector<grpc::Slice> SlicesOf(const StridedView& view,
                                  Allocator* allocator = nullptr) {
  std::vector<grpc::Slice> slices;
  const auto message = Encode(Bundle(), {{"v", view}}, "", allocator);
  EXPECT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(message->Dump(&slices).ok());
  return slices;
}

const char* BeginOf(const grpc::Slice& slice) {
  return reinterpret_cast<const char*>(slice.begin());
}

TEST(Strided, LongRunsAreSentWhereTheyLie) {
  constexpr size_t kRow = 2 * kMinRunBytes;
  const std::shared_ptr<Buffer> buffer = Numbered(100 * kRow);
  // Makes the left half of a matrix, with its rows in reverse order.
  const auto view =
      StridedView::Create(DType::kUint8, {100, kMinRunBytes},
                          {-static_cast<int64_t>(kRow), 1}, buffer, 99 * kRow);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->num_runs(), 100u);
  const auto slices = SlicesOf(*view);
  ASSERT_EQ(slices.size(), 101u);
  for (size_t row = 0; row < 100; ++row) {
    EXPECT_EQ(BeginOf(slices[row + 1]), buffer->data() + (99 - row) * kRow);
    EXPECT_EQ(slices[row + 1].size(), kMinRunBytes);
  }
}

TEST(Strided, ContiguousViewIsOneRunWhateverItsShape) {
  const std::shared_ptr<Buffer> buffer = Numbered(4000);
  const auto view =
      StridedView::Create(DType::kF32, {1, 10, 1, 5, 10, 1},
                          {kMin, 200, kMax, 40, 4, -3}, buffer, 2000);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->num_runs(), 1u);
  const auto slices = SlicesOf(*view);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(BeginOf(slices[1]), buffer->data() + 2000);
}

// An allocator that records its allocations.
class Recorder final : public Allocator {
 public:
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) override {
    if (is_full) return absl::ResourceExhaustedError("the pool is full");
    auto buffer = Buffer::Allocate(bytes);
    if (buffer.ok()) given.push_back((*buffer)->data());
    return buffer;
  }
  bool is_full = false;
  std::vector<const char*> given;
};

TEST(Strided, ShortRunsArePackedOnceIntoMemoryThatIsSent) {
  const std::shared_ptr<Buffer> buffer = Numbered(4 << 20);
  Recorder pool;
  // Tries short runs, rows whose size is no multiple of 8 bytes, and too many
  // rows, which overlap.
  for (const auto& view :
       {*StridedView::Create(DType::kF32, {1024, 1024}, {4, 4096}, buffer),
        *StridedView::Create(DType::kUint8, {10, kMinRunBytes + 1}, {80000, 1},
                             buffer),
        *StridedView::Create(DType::kUint8, {512, kMinRunBytes}, {8, 1},
                             buffer)}) {
    pool.given.clear();
    const auto slices = SlicesOf(view, &pool);
    ASSERT_EQ(slices.size(), 2u);
    ASSERT_EQ(pool.given.size(), 1u);
    EXPECT_EQ(BeginOf(slices[1]), pool.given[0]);
    EXPECT_EQ(slices[1].size(), view.byte_size());
  }
  EXPECT_EQ(SlicesOf(*StridedView::Create(DType::kUint8, {510, kMinRunBytes},
                                          {8, 1}, buffer))
                .size(),
            511u);
}

TEST(Strided, ViewsShareTheSlicesOfTheirMessage) {
  const std::shared_ptr<Buffer> buffer = Numbered(4 << 20);
  const StridedView view =
      *StridedView::Create(DType::kUint8, {200, kMinRunBytes}, {8, 1}, buffer);
  const auto message =
      Encode(Bundle(), {{"a", view}, {"b", view}, {"c", view}, {"d", view}});
  ASSERT_TRUE(message.ok());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(message->Dump(&slices).ok());
  EXPECT_EQ(slices.size(), 201u + 201u + 2u + 2u);
}

TEST(Strided, FullAllocatorIsAStatus) {
  const std::shared_ptr<Buffer> buffer = Numbered(8192);
  Recorder pool;
  pool.is_full = true;
  const auto message =
      Encode(Bundle(),
             {{"v", *StridedView::Create(DType::kUint8, {4096}, {2}, buffer)}},
             "", &pool);
  EXPECT_EQ(message.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Strided, MessageKeepsTheBufferAliveAndFromBeingWritten) {
  Tensor tensor = *Tensor::Of<float>({4096}, std::vector<float>(4096, 1));
  const char* const memory = tensor.bytes().data();
  absl::StatusOr<grpc::ByteBuffer> message =
      Encode(Bundle(), {{"v", *StridedView::Create(DType::kF32, {1024}, {4},
                                                   tensor.buffer(), 4096)}});
  ASSERT_TRUE(message.ok());
  (*tensor.mutable_flat<float>())[1024] = 2;
  EXPECT_NE(tensor.bytes().data(), memory) << "written to what is being sent";
  tensor = Tensor();
  EXPECT_EQ((*Decode(*message)->tensors[0].tensor.flat<float>())[0], 1);
}

TEST(Strided, NameThatIsNotUtf8IsRefused) {
  const auto view = StridedView::Create(DType::kUint8, {1}, {1}, Numbered(1));
  EXPECT_EQ(Encode(Bundle(), {{"\xff", *view}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Strided, MessageAboveFourGibibytesIsRefused) {
  // Makes a view that repeats the same elements.
  const auto view = StridedView::Create(DType::kUint8, {256, 16 << 20}, {0, 1},
                                        Numbered(16 << 20));
  ASSERT_TRUE(view.ok()) << view.status();
  const auto message = Encode(Bundle(), {{"v", *view}});
  EXPECT_EQ(message.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Strided, ElementsOutsideTheBufferAreRefused) {
  const std::shared_ptr<Buffer> buffer = Numbered(100);
  struct Case {
    Shape shape;
    std::vector<int64_t> strides;
    size_t offset;
    bool is_inside;
  };
  const std::vector<Case> cases = {
      {{}, {}, 96, true},
      {{}, {}, 97, false},
      {{}, {}, 101, false},
      {{}, {}, ~size_t{0}, false},
      {{25}, {4}, 0, true},
      {{25}, {4}, 1, false},
      {{26}, {4}, 0, false},
      {{25}, {-4}, 96, true},
      {{25}, {-4}, 95, false},
      {{25}, {-4}, 97, false},
      {{5, 5}, {20, -4}, 16, true},
      {{5, 5}, {20, -4}, 15, false},
      {{5, 5}, {20, -4}, 17, false},
      {{2}, {kMax}, 0, false},
      {{2}, {kMin}, 0, false},
      {{2}, {kMin}, 50, false},
      {{3}, {kMax / 2 + 1}, 0, false},
      {{3, 3, 3}, {kMax / 2, kMax / 2, 2}, 0, false},
      {{kMax / 4}, {kMax}, 0, false},
      {{kMax / 4}, {4}, 0, false},
      {{1000}, {0}, 96, true},
      {{1, 1}, {kMin, kMax}, 0, true},
      {{0, kMax}, {kMin, kMax}, 100, true},
      {{0}, {4}, 101, false},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& each = cases[i];
    const auto view = StridedView::Create(DType::kF32, each.shape, each.strides,
                                          buffer, each.offset);
    EXPECT_EQ(view.ok(), each.is_inside) << i << ": " << view.status();
    if (!view.ok()) {
      EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(Strided, ViewThatMeansNothingIsRefused) {
  const std::shared_ptr<Buffer> buffer = Numbered(100);
  for (const auto& view :
       {StridedView::Create(DType::kF32, {2, 2}, {8}, buffer),
        StridedView::Create(DType::kF32, {2}, {8, 4}, buffer),
        StridedView::Create(DType::kF32, {-1}, {4}, buffer),
        StridedView::Create(DType::kF32, {kMax, kMax}, {0, 0}, buffer),
        StridedView::Create(DType::kF32, Shape(17, 1),
                            std::vector<int64_t>(17, 4), buffer),
        StridedView::Create(DType::kF32, {1}, {4}, nullptr)}) {
    EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace penstock::tensor
