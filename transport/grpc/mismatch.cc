#include "transport/grpc/mismatch.h"

#include <grpc/grpc.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace core {
namespace {

// What grpc_version_string() says in gRPC 1.51.
constexpr char kCoreVersion[] = "29.0.0";

}  // namespace

const char* GrpcMismatch() {
  static const std::string* const mismatch = [] {
    auto* text = new std::string;
    if (std::string(grpc_version_string()) != kCoreVersion) {
      *text = absl::StrCat(
          "gRPC core ", grpc_version_string(),
          " is loaded, but Penstock needs ", kCoreVersion,
          " (gRPC 1.51.1 of Debian 12); connections stay with stock gRPC");
    }
    return text;
  }();
  return mismatch->empty() ? nullptr : mismatch->c_str();
}

}  // namespace core
}  // namespace penstock
