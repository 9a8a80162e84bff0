#include "transport/grpc/internal/mismatch.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/lib/address_utils/parse_address.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/gpr/alloc.h"
#include "transport/grpc/internal/grpc_abi.h"

// A function of libgrpc that Penstock never calls. Only its address is checked.
// The mangled name contains the release of abseil (an inline namespace) and the
// type of string_view. If libgrpc was built with another abseil, the symbol is
// missing and null.
bool grpc_parse_ipv6_hostport(absl::string_view hostport,
                              grpc_resolved_address* address, bool log_errors)
    __attribute__((weak));

namespace penstock {
namespace core {
namespace {

// The result of grpc_version_string() in gRPC 1.51.
constexpr char kCoreVersion[] = "29.0.0";

// Returns true if the loaded libgrpc has the same struct layouts as this build.
// Closures and reference counts differ between builds of one release, and a
// channel stack contains both. Therefore compares the sizes of an empty channel
// stack.
bool LaysOutStructsAsWeDo() {
  return grpc_channel_stack_size(nullptr, 0) ==
         GPR_ROUND_UP_TO_ALIGNMENT_SIZE(sizeof(grpc_channel_stack));
}

// Returns the name of the loaded gRPC if transport/grpc was compiled for a
// different gRPC. Otherwise returns "".
std::string Stranger() {
  if (std::string(grpc_version_string()) != kCoreVersion) {
    return absl::StrCat("gRPC core ", grpc_version_string());
  }
  if (grpc::Version() != GRPC_CPP_VERSION_STRING) {
    return absl::StrCat("gRPC C++ ", grpc::Version());
  }
  if (&grpc_parse_ipv6_hostport == nullptr) {
    return "gRPC " GRPC_CPP_VERSION_STRING " built with another abseil";
  }
  if (!LaysOutStructsAsWeDo()) {
    return "gRPC " GRPC_CPP_VERSION_STRING " built with other options";
  }
  return "";
}

}  // namespace

const char* GrpcMismatch() {
  static const std::string* const mismatch = [] {
    auto* text = new std::string(Stranger());
    if (!text->empty()) {
      absl::StrAppend(text, " is loaded, but Penstock needs core ",
                      kCoreVersion, ", gRPC " GRPC_CPP_VERSION_STRING " of ",
                      PENSTOCK_BUILT_ON, "; connections stay with stock gRPC");
    }
    return text;
  }();
  return mismatch->empty() ? nullptr : mismatch->c_str();
}

}  // namespace core
}  // namespace penstock
