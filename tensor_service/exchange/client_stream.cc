// Implements the methods of TensorClient that send and receive in parts.

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/calls.h"
#include "tensor_service/calls/await_written.h"
#include "tensor_service/client.h"
#include "tensor_service/codec/bundle_stream.h"
#include "tensor_service/exchange/client_attempt.h"
#include "tensor_service/exchange/stream_call.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

// An upper bound for the overhead of a tensor in a message, without name and
// elements, in bytes.
constexpr size_t kTensorBytes = 256;

size_t MachineMemory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Counts the bytes that a server sends. The counts that the server reports are
// not trusted.
class Budget {
 public:
  explicit Budget(size_t bytes)
      : bytes_(bytes == 0 ? MachineMemory() : bytes), left_(bytes_) {}

  absl::Status Take(const std::string& name, size_t held_bytes) {
    const size_t beside = kTensorBytes + name.size();
    if (left_ < beside || left_ - beside < held_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "get stream: a tensor of ", held_bytes, " bytes has no room: ", left_,
          " of ", bytes_, " bytes are left; allow more by max_bytes"));
    }
    left_ -= beside + held_bytes;
    return absl::OkStatus();
  }

 private:
  const size_t bytes_;
  size_t left_;
};

}  // namespace

size_t TensorClient::part_bytes() const {
  return std::min(kStreamMessageBytes, parts_above_);
}

absl::StatusOr<size_t> TensorClient::PutStream(const Bundle& bundle,
                                               size_t max_message_bytes) {
  Attempt attempt(*this);
  absl::Status written = AwaitWritten(&attempt.queue, bundle, &attempt.timeout);
  if (!written.ok()) return written;
  return PutInParts(&attempt, bundle, max_message_bytes);
}

absl::StatusOr<size_t> TensorClient::PutInParts(Attempt* attempt,
                                                const Bundle& bundle,
                                                size_t max_message_bytes) {
  StreamCall call(channel_, "/penstock.tensor.v1.TensorExchange/PutStream",
                  attempt->Left(), interrupted_);
  BundleCutter cutter(bundle, max_message_bytes);
  bool goes_on = true;
  while (goes_on && !cutter.done()) {
    absl::StatusOr<grpc::ByteBuffer> message = cutter.Next();
    if (!message.ok()) return message.status();
    goes_on = call.Write(*message);
  }
  grpc::ByteBuffer bytes;
  if (goes_on && call.WritesDone()) call.Read(&bytes);
  absl::Status status = call.Finish();
  if (!status.ok()) return status;
  v1::PutReply reply;
  status = ToProto(bytes, &reply);
  if (!status.ok()) return status;
  return reply.stored_bytes();
}

absl::StatusOr<Bundle> TensorClient::GetStream(
    const std::vector<std::string>& names, size_t max_message_bytes,
    size_t max_bytes, absl::Span<Destination> destinations) {
  Attempt attempt(*this);
  return GetInParts(&attempt, names, max_message_bytes, max_bytes,
                    destinations);
}

absl::StatusOr<Bundle> TensorClient::GetInParts(
    Attempt* attempt, const std::vector<std::string>& names,
    size_t max_message_bytes, size_t max_bytes,
    absl::Span<Destination> destinations) {
  v1::GetStreamRequest request;
  for (const std::string& name : names) request.add_names(name);
  request.set_max_message_bytes(max_message_bytes);
  StreamCall call(channel_, "/penstock.tensor.v1.TensorExchange/GetStream",
                  attempt->Left(), interrupted_);
  Budget budget(max_bytes);
  BundleJoiner joiner(
      [&budget](const std::string& name, size_t held_bytes) {
        return budget.Take(name, held_bytes);
      },
      DeviceTensors::kToHost, destinations);
  grpc::ByteBuffer message;
  if (call.Write(FromProto(request)) && call.WritesDone()) {
    while (call.Read(&message)) {
      absl::Status added = joiner.Add(message);
      if (!added.ok()) return added;
      message.Clear();  // frees the message before the next one comes
    }
  }
  absl::Status status = call.Finish();
  if (!status.ok()) return status;
  return joiner.Take();
}

}  // namespace penstock::tensor
