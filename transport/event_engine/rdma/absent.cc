// Replaces verbs.cc in builds without RDMA.

#include "transport/event_engine/rdma/rdma.h"

namespace penstock {
namespace event_engine {

absl::StatusOr<std::shared_ptr<fabric::Fabric>> OpenRdma(const Settings&,
                                                         const TcpAddress&,
                                                         uint16_t) {
  return absl::UnimplementedError(
      "this build has none (cmake -DPENSTOCK_RDMA=ON)");
}

}  // namespace event_engine
}  // namespace penstock
