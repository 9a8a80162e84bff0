// Statuses and size limits between Abseil and gRPC.

#ifndef PENSTOCK_TENSOR_SERVICE_STATUS_H_
#define PENSTOCK_TENSOR_SERVICE_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/status.h"

namespace penstock::tensor {

grpc::Status ToGrpc(const absl::Status& status);

// `operation` and its object go before the message ("push to ps1: ..."). Where
// a stock size limit has refused a message, the setting to change is named.
absl::Status FromGrpc(const grpc::Status& status, absl::string_view operation);

// gRPC refuses messages above 4 MiB unless told otherwise; a bundle has no
// such limit. The first goes to CreateCustomChannel, the second to the builder
// before BuildAndStart. Memory stays bounded by the service's own budget once
// the message is read.
grpc::ChannelArguments UnlimitedMessages();
void AllowUnlimitedMessages(grpc::ServerBuilder* builder);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STATUS_H_
