// The headers of tests.h, and gRPC's public API.

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "third_party/precompiled/tests.h"
