// Include this header first in every file that includes gRPC's internal
// headers.
//
// This code must be compiled in the same language version as libgrpc, and
// without NDEBUG.
// - Debian 12 and 13 and Ubuntu 24.04 compiled libgrpc as C++14. If this code
//   were compiled as C++17, an inline static member of a template would be
//   read-only data here, but libgrpc writes to that member at run time.
// - Debian's forky and sid compiled libgrpc as C++17, with parameters of
//   std::string_view. Their abseil refuses C++14.
// With NDEBUG, structs lose members. Each of these differences would cause a
// crash.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_GRPC_ABI_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_GRPC_ABI_H_

#include <grpc/support/port_platform.h>

#include "absl/base/config.h"

#if __cplusplus >= 201703L && !defined(ABSL_USES_STD_STRING_VIEW)
#error "compile transport/grpc as C++14, as libgrpc was: see grpc_abi.h"
#endif
#ifdef NDEBUG
#error "compile transport/grpc without NDEBUG, as libgrpc was: see grpc_abi.h"
#endif

#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/transport/transport.h"

static_assert(sizeof(grpc_closure) == 72, "not the ABI of Debian's libgrpc");
static_assert(sizeof(grpc_stream_refcount) == 96,
              "not the ABI of Debian's libgrpc");

#endif  // PENSTOCK_TRANSPORT_GRPC_INTERNAL_GRPC_ABI_H_
