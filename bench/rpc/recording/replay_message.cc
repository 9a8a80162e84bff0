#include "bench/rpc/recording/replay_message.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rpc/message/payload.h"
#include "grpcpp/support/slice.h"

namespace penstock {
namespace bench {

grpc::ByteBuffer MakeReplayMessage(size_t bytes, uint64_t seed) {
  const grpc::Slice slice(bytes);
  if (bytes > 0) {
    FillPayload(const_cast<uint8_t*>(slice.begin()), bytes, seed);
  }
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status CheckReplayMessage(const grpc::ByteBuffer& message, size_t bytes,
                                uint64_t seed) {
  std::vector<grpc::Slice> slices;
  if (message.Valid()) message.Dump(&slices);
  WordSum sum;
  size_t size = 0;
  for (const grpc::Slice& slice : slices) {
    sum.Add(slice.begin(), slice.size());
    size += slice.size();
  }
  if (size != bytes) {
    return absl::DataLossError(
        absl::StrCat("a message has ", size, " bytes instead of ", bytes));
  }
  if (bytes > 0 && sum.value() != ExpectedSum(bytes, seed)) {
    return absl::DataLossError("the bytes of a message are wrong");
  }
  return absl::OkStatus();
}

}  // namespace bench
}  // namespace penstock
