#include "frameworks/tensorflow/hello.h"

#include "transport/rpc/greeting.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace tensorflow {
namespace {

// The type of a hello. The number changes whenever the encoding changes.
constexpr char kRequestType[] = "type.penstock/tensorflow.hello.1";
constexpr char kResponseType[] = "type.penstock/tensorflow.here.1";

}  // namespace

::tensorflow::RecvTensorRequest HelloRequest() {
  ::tensorflow::RecvTensorRequest request;
  request.set_step_id(-1);
  request.set_rendezvous_key("penstock: where is your data plane?");
  request.mutable_transport_options()->set_type_url(kRequestType);
  return request;
}

bool IsHelloRequest(const ::tensorflow::RecvTensorRequest& request) {
  return request.transport_options().type_url() == kRequestType;
}

::tensorflow::RecvTensorResponse HelloResponse(const Hello& hello) {
  std::string bytes;
  wire::AppendNumber<uint16_t>(hello.port, &bytes);
  wire::AppendNumber<uint8_t>(static_cast<uint8_t>(hello.token.size()), &bytes);
  bytes += hello.token;
  ::tensorflow::RecvTensorResponse response;
  response.mutable_transport_options()->set_type_url(kResponseType);
  response.mutable_transport_options()->set_value(bytes);
  return response;
}

absl::StatusOr<Hello> ParseHello(
    const ::tensorflow::RecvTensorResponse& response) {
  const std::string bytes(response.transport_options().value());
  wire::Reader reader(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  Hello hello;
  hello.port = reader.Number<uint16_t>();
  hello.token = reader.String(reader.Number<uint8_t>());
  if (response.transport_options().type_url() != kResponseType ||
      !reader.ok() || hello.port == 0 || hello.token.empty() ||
      hello.token.size() > rpc::kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        "the peer's penstock-tensorflow is of another release");
  }
  return hello;
}

}  // namespace tensorflow
}  // namespace penstock
