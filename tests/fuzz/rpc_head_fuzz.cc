// Tests rpc::ParseRequest and rpc::ParseEnd.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/rpc/head.h"

namespace penstock {
namespace fuzz {
namespace {

void CheckRequest(absl::string_view head) {
  bool is_stream = false;
  const absl::StatusOr<rpc::Request> request =
      rpc::ParseRequest(head, &is_stream);
  if (!request.ok()) return;
  const absl::StatusOr<std::string> again =
      rpc::EncodeRequest(*request, is_stream);
  Require(again.ok(), "what was parsed can be sent");
  // Does not compare the timeout, because several numbers mean "no timeout".
  constexpr size_t kTimeout = sizeof(uint64_t);
  Require(again->substr(kTimeout) == head.substr(kTimeout),
          "a head is encoded to the very bytes that it came from");
  Require(request->timeout > absl::ZeroDuration(), "time is left");
}

void CheckEnd(absl::string_view head) {
  const absl::StatusOr<rpc::End> end = rpc::ParseEnd(head);
  if (!end.ok()) return;
  const std::string again = rpc::EncodeEnd(*end);
  Require(again.size() <= rpc::kMaxHeadBytes, "it is not too long to be sent");
  const absl::StatusOr<rpc::End> second = rpc::ParseEnd(again);
  Require(second.ok() && second->status == end->status &&
              second->metadata == end->metadata,
          "what was parsed can be sent, and is the same");
}

}  // namespace

std::vector<std::string> Seeds() {
  rpc::Request request;
  request.method = "tensor.Receive";
  request.metadata = "metadata";
  request.timeout = absl::Seconds(3);
  rpc::End good;
  good.metadata = "metadata";
  rpc::End bad;
  bad.status = absl::AbortedError("step 7 was aborted");
  bad.status.SetPayload("type.example/one", absl::Cord("value"));
  bad.status.SetPayload("type.example/two", absl::Cord());
  rpc::End bad_with_metadata = bad;
  bad_with_metadata.metadata = "metadata";
  return {*rpc::EncodeRequest(request), rpc::EncodeEnd(good),
          rpc::EncodeEnd(bad), *rpc::EncodeRequest(request, /*is_stream=*/true),
          rpc::EncodeEnd(bad_with_metadata)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view head = penstock::fuzz::AsText({data, size});
  penstock::fuzz::CheckRequest(head);
  penstock::fuzz::CheckEnd(head);
  return 0;
}
