// The streaming methods of TensorClient.

#include <utility>

#include "tensor_service/bundle_stream.h"
#include "tensor_service/calls.h"
#include "tensor_service/client.h"
#include "tensor_service/stream_call.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {

absl::StatusOr<size_t> TensorClient::PutStream(const Bundle& bundle,
                                               size_t max_message_bytes) {
  StreamCall call(channel_, "/penstock.tensor.v1.TensorExchange/PutStream",
                  timeout_);
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
    const std::vector<std::string>& names, size_t max_message_bytes) {
  v1::GetStreamRequest request;
  for (const std::string& name : names) request.add_names(name);
  request.set_max_message_bytes(max_message_bytes);
  StreamCall call(channel_, "/penstock.tensor.v1.TensorExchange/GetStream",
                  timeout_);
  BundleJoiner joiner;
  grpc::ByteBuffer message;
  if (call.Write(FromProto(request)) && call.WritesDone()) {
    while (call.Read(&message)) {
      absl::Status added = joiner.Add(message);
      if (!added.ok()) return added;
      message.Clear();  // or it would be held while the next one comes
    }
  }
  absl::Status status = call.Finish();
  if (!status.ok()) return status;
  return joiner.Take();
}

}  // namespace penstock::tensor
