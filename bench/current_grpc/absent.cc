// Replaces the parts of bench/rpc that need the adapter for gRPC 1.51.1:
// tensors and devices. Each function returns an error that says so.

#include "absl/strings/str_cat.h"
#include "bench/rpc/message/devices.h"
#include "bench/rpc/message/tensor_form.h"
#include "bench/rpc/setup/prepare_memory.h"

namespace penstock {
namespace {

absl::Status Absent(absl::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat(what,
                   " cannot be measured with gRPC 1.60 or later; Bazel builds "
                   "bench/rpc with gRPC 1.51.1 (docs/method.md)"));
}

}  // namespace

namespace bench {

absl::Status CheckTensorForm() { return Absent("--message=tensor"); }
void PutTensorsIntoPool() {}
absl::StatusOr<grpc::ByteBuffer> MakeTensors(const BufferSizes&, WritePart) {
  return CheckTensorForm();
}
absl::Status ReadTensors(const grpc::ByteBuffer&, ReadPart) {
  return CheckTensorForm();
}

absl::Status CheckDevice() { return Absent("--memory=device"); }
absl::Status UseDevice() { return CheckDevice(); }
absl::Status CheckLending() { return CheckDevice(); }
absl::Status PrepareMemory(const RunOptions& options) {
  return options.on_device ? CheckDevice() : absl::OkStatus();
}
void SetMessagesOnDevice(const tensor::Device&) {}
bool MessagesAreOnDevice() { return false; }
absl::StatusOr<grpc::ByteBuffer> MakeOnDevice(const BufferSizes&, WritePart) {
  return CheckDevice();
}
absl::Status ReadFromDevice(const grpc::ByteBuffer&, ReadPart) {
  return CheckDevice();
}

}  // namespace bench
}  // namespace penstock
