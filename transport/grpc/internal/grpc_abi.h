// Include this header first in every file that includes gRPC's internal
// headers.
//
// libgrpc was compiled as C++14 and without NDEBUG. In C++17, an inline static
// member of a template would be read-only data here, but libgrpc writes to that
// member at run time. With NDEBUG, structs lose members. Either difference
// would crash at once.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_GRPC_ABI_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_GRPC_ABI_H_

#include <grpc/support/port_platform.h>

#if __cplusplus >= 201703L
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
