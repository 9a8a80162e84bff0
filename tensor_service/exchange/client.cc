#include "tensor_service/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/calls.h"
#include "tensor_service/calls/await_written.h"
#include "tensor_service/calls/receive_call.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/encode_strided.h"
#include "tensor_service/exchange/client_attempt.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

// The largest bundle for one message, leaving room for names and shapes.
constexpr size_t kMaxWhole = kMaxMessageBytes - (64 << 20);

bool HasDeviceTensors(const Bundle& bundle) {
  return std::any_of(bundle.tensors.begin(), bundle.tensors.end(),
                     [](const NamedTensor& named) {
                       return !named.tensor.device().is_host();
                     });
}

bool HasDevices(absl::Span<const Destination> destinations) {
  return std::any_of(destinations.begin(), destinations.end(),
                     [](const Destination& destination) {
                       return !destination.into.device().is_host();
                     });
}

std::string PathOf(const char* method) {
  return absl::StrCat("/penstock.tensor.v1.TensorExchange/", method);
}

grpc::ByteBuffer GetRequestOf(const std::vector<std::string>& names,
                              size_t max_bytes) {
  v1::GetRequest request;
  for (const std::string& name : names) request.add_names(name);
  request.set_max_bytes(std::max<size_t>(max_bytes, 1));
  return FromProto(request);
}

}  // namespace

TensorClient::TensorClient(std::shared_ptr<grpc::Channel> channel,
                           absl::Duration timeout,
                           std::function<bool()> interrupted,
                           size_t parts_above)
    : channel_(std::move(channel)),
      timeout_(timeout),
      interrupted_(std::move(interrupted)),
      parts_above_(std::min(parts_above, kMaxWhole)) {}

absl::StatusOr<grpc::ByteBuffer> TensorClient::Call(
    const char* method, const grpc::ByteBuffer& request) {
  Attempt attempt(*this);
  return Call(&attempt, method, request);
}

absl::StatusOr<grpc::ByteBuffer> TensorClient::Call(
    Attempt* attempt, const char* method, const grpc::ByteBuffer& request) {
  attempt->queue.Start(channel_, PathOf(method), request, attempt->timeout);
  CallQueue::Result result = std::move(attempt->queue.Wait().front());
  if (!result.status.ok()) return result.status;
  return std::move(result.reply);
}

absl::StatusOr<grpc::ByteBuffer> TensorClient::EncodeOnceWritten(
    Attempt* attempt, const Bundle& bundle, absl::Span<const NamedView> views) {
  absl::Status written =
      AwaitWritten(&attempt->queue, bundle, &attempt->timeout);
  if (!written.ok()) return written;
  return Encode(bundle, views);
}

absl::StatusOr<Bundle> TensorClient::Receive(
    Attempt* attempt, const char* method, const grpc::ByteBuffer& request,
    absl::Span<Destination> destinations, const PostedRanges* posted,
    DeviceTensors device_tensors) {
  absl::StatusOr<grpc::ByteBuffer> bytes =
      CallAndReceive(&attempt->queue, channel_, PathOf(method), request,
                     attempt->timeout, posted, &destinations);
  if (!bytes.ok()) return bytes.status();
  return Decode(*bytes, /*header=*/nullptr, destinations, device_tensors);
}

absl::StatusOr<size_t> TensorClient::Put(const Bundle& bundle) {
  // Sends a bundle with tensors on devices as one message if possible, because
  // a transport sends a tensor on a device whole, not in parts.
  const size_t most = HasDeviceTensors(bundle) ? kMaxWhole : parts_above_;
  if (bundle.byte_size() <= most) return Put(bundle, {});
  return PutStream(bundle, part_bytes());
}

absl::StatusOr<size_t> TensorClient::Put(const Bundle& bundle,
                                         absl::Span<const NamedView> views) {
  Attempt attempt(*this);
  absl::StatusOr<grpc::ByteBuffer> request =
      EncodeOnceWritten(&attempt, bundle, views);
  if (!request.ok()) return request.status();
  absl::StatusOr<grpc::ByteBuffer> bytes = Call(&attempt, "Put", *request);
  if (!bytes.ok()) return bytes.status();
  v1::PutReply reply;
  absl::Status status = ToProto(*bytes, &reply);
  if (!status.ok()) return status;
  return reply.stored_bytes();
}

absl::StatusOr<Bundle> TensorClient::Get(const std::vector<std::string>& names,
                                         absl::Span<Destination> destinations,
                                         DeviceTensors device_tensors) {
  const auto posted = Post(destinations, /*often=*/false, device_tensors);
  return GetAny(names, destinations, posted.get(), device_tensors);
}

absl::StatusOr<Bundle> TensorClient::Get(const std::vector<std::string>& names,
                                         PreparedDestinations* destinations) {
  return GetAny(names, destinations->destinations(),
                destinations->posted_.get(), destinations->device_tensors_);
}

absl::StatusOr<Bundle> TensorClient::GetAny(
    const std::vector<std::string>& names, absl::Span<Destination> destinations,
    const PostedRanges* posted, DeviceTensors device_tensors) {
  Attempt attempt(*this);
  // Receives in one message if tensors may go to devices, because streams
  // receive on the host. See also Put().
  const bool to_devices =
      device_tensors == DeviceTensors::kKeep || HasDevices(destinations);
  absl::StatusOr<Bundle> bundle =
      Receive(&attempt, "Get",
              GetRequestOf(names, to_devices ? kMaxWhole : parts_above_),
              destinations, posted, device_tensors);
  if (!absl::IsOutOfRange(bundle.status())) return bundle;
  return GetInParts(&attempt, names, part_bytes(), /*max_bytes=*/0,
                    destinations);
}

absl::StatusOr<Bundle> TensorClient::Exchange(
    const Bundle& bundle, absl::Span<Destination> destinations,
    DeviceTensors device_tensors) {
  Attempt attempt(*this);
  absl::StatusOr<grpc::ByteBuffer> request =
      EncodeOnceWritten(&attempt, bundle);
  if (!request.ok()) return request.status();
  const auto posted = Post(destinations, /*often=*/false, device_tensors);
  return Receive(&attempt, "Exchange", *request, destinations, posted.get(),
                 device_tensors);
}

absl::StatusOr<Bundle> TensorClient::Exchange(
    const Bundle& bundle, PreparedDestinations* destinations) {
  Attempt attempt(*this);
  absl::StatusOr<grpc::ByteBuffer> request =
      EncodeOnceWritten(&attempt, bundle);
  if (!request.ok()) return request.status();
  return Receive(&attempt, "Exchange", *request, destinations->destinations(),
                 destinations->posted_.get(), destinations->device_tensors_);
}

absl::StatusOr<size_t> TensorClient::Delete(
    const std::vector<std::string>& names) {
  v1::DeleteRequest request;
  for (const std::string& name : names) request.add_names(name);
  absl::StatusOr<grpc::ByteBuffer> bytes = Call("Delete", FromProto(request));
  if (!bytes.ok()) return bytes.status();
  v1::DeleteReply reply;
  absl::Status status = ToProto(*bytes, &reply);
  if (!status.ok()) return status;
  return reply.deleted();
}

absl::StatusOr<std::vector<TensorClient::Entry>> TensorClient::List() {
  absl::StatusOr<grpc::ByteBuffer> bytes =
      Call("List", FromProto(v1::ListRequest()));
  if (!bytes.ok()) return bytes.status();
  v1::ListReply reply;
  absl::Status status = ToProto(*bytes, &reply);
  if (!status.ok()) return status;
  std::vector<Entry> entries;
  for (const v1::ListReply::Entry& entry : reply.entries()) {
    if (!IsDType(entry.dtype())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "list: tensor ", entry.name(), " has an unknown element type"));
    }
    entries.push_back({entry.name(), static_cast<DType>(entry.dtype()),
                       Shape(entry.shape().begin(), entry.shape().end())});
  }
  return entries;
}

}  // namespace penstock::tensor
