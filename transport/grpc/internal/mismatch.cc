#include "transport/grpc/internal/mismatch.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/lib/channel/channel_stack.h"
#include "src/core/lib/gpr/alloc.h"
#include "src/core/lib/iomgr/error.h"
#include "transport/grpc/internal/grpc_abi.h"

// Functions of libgrpc that Penstock never calls. Only their addresses are
// checked: a symbol that libgrpc lacks is null.

// The mangled name contains abseil's inline namespace, and so its release.
bool grpc_error_has_clear_grpc_status(grpc_error_handle error)
    __attribute__((weak));

// The mangled name contains the type of string_view: that of the standard
// library if libgrpc was compiled as C++17, or else abseil's.
void GrpcParseIpv6HostportOfCxx17() __asm__(
    "_Z24grpc_parse_ipv6_hostportSt17basic_string_viewIcSt11char_traitsIcEE"
    "P21grpc_resolved_addressb") __attribute__((weak));

namespace penstock {
namespace core {
namespace {

// The result of grpc_version_string() in gRPC 1.51.
constexpr char kCoreVersion[] = "29.0.0";

constexpr bool kIsCxx17 = __cplusplus >= 201703L;

// Returns true if the loaded libgrpc is a build in C++17.
bool IsGrpcCxx17() { return &GrpcParseIpv6HostportOfCxx17 != nullptr; }

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
  if (IsGrpcCxx17() != kIsCxx17) {
    return absl::StrCat("gRPC " GRPC_CPP_VERSION_STRING " built with ",
                        kIsCxx17 ? "C++14" : "C++17");
  }
  if (&grpc_error_has_clear_grpc_status == nullptr) {
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
