#include "tensor_service/status.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

// gRPC's value for "no limit".
constexpr int kNoLimit = -1;

// The name of a channel argument, which
// transport/grpc/filters/decompress_filter.h also defines.
constexpr char kMaxDecompressedArg[] = "penstock.max_decompressed_bytes";

// Returns the setting to change. Matches the text, because gRPC returns
// RESOURCE_EXHAUSTED for many reasons. The texts are those of
// message_size_filter.cc in gRPC 1.51.
absl::string_view Advice(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return "";
  if (absl::StrContains(status.error_message(), "Received message larger")) {
    return "; raise the receiver's max_receive_message_length: "
           "tensor::AllowUnlimitedMessages on a server, "
           "tensor::UnlimitedMessages on a channel";
  }
  if (absl::StrContains(status.error_message(), "Sent message larger")) {
    return "; raise the sender's max_send_message_length: "
           "tensor::AllowUnlimitedMessages on a server, "
           "tensor::UnlimitedMessages on a channel";
  }
  return "";
}

// Limits the length of a message, in bytes. gRPC encodes a byte as up to three,
// and allows 8 KiB of metadata. Above that, gRPC's clients fail this call, and
// possibly later calls on the same connection, with RESOURCE_EXHAUSTED.
constexpr size_t kMaxMessageText = 2048;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(Prefix(status.message(), kMaxMessageText)));
}

absl::Status FromGrpc(const grpc::Status& status, absl::string_view operation) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(
      static_cast<absl::StatusCode>(status.error_code()),
      absl::StrCat(operation, ": ", status.error_message(), Advice(status)));
}

grpc::ChannelArguments UnlimitedMessages(int max_decompressed_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kNoLimit);
  arguments.SetMaxSendMessageSize(kNoLimit);
  arguments.SetInt(kMaxDecompressedArg, max_decompressed_bytes);
  return arguments;
}

void AllowUnlimitedMessages(grpc::ServerBuilder* builder,
                            int max_decompressed_bytes) {
  builder->SetMaxReceiveMessageSize(kNoLimit);
  builder->SetMaxSendMessageSize(kNoLimit);
  builder->AddChannelArgument(kMaxDecompressedArg, max_decompressed_bytes);
}

}  // namespace penstock::tensor
