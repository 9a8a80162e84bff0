#include "tensor_service/codec/names.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

absl::StatusOr<NamesSize> Count(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return CountNames(grpc::ByteBuffer(&slice, 1));
}

TEST(Names, AreCountedWithTheirBytes) {
  v1::GetStreamRequest request;
  request.add_names("abc");
  request.add_names("");
  request.add_names(std::string(1000, 'n'));
  request.set_max_message_bytes(7);
  const auto size = Count(request.SerializeAsString());
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->names, 3u);
  EXPECT_GE(size->bytes, 1003u);
  EXPECT_LE(size->bytes, 1003u + 4);
}

TEST(Names, NoRequestAtAllHasNone) {
  EXPECT_EQ(CountNames(grpc::ByteBuffer())->names, 0u);
  EXPECT_EQ(Count("")->names, 0u);
}

// Compares the number of names with protobuf's. A lower number would leave
// memory uncounted.
TEST(Names, AreAsManyAsProtobufReads) {
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string bytes;
    for (size_t left = random() % 12; left > 0; --left) {
      const unsigned what = random() % 4;
      bytes.push_back(what == 0   ? '\x0a'
                      : what == 1 ? static_cast<char>(random() % 4)
                                  : static_cast<char>(random()));
    }
    v1::GetRequest request;
    const bool is_good = request.ParseFromString(bytes);
    const auto size = Count(bytes);
    if (!is_good || !size.ok()) continue;
    ++read;
    ASSERT_EQ(size->names, static_cast<size_t>(request.names_size()));
  }
  EXPECT_GT(read, 1000);
}

}  // namespace
}  // namespace penstock::tensor
