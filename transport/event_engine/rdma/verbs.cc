// Replaces absent.cc in builds with RDMA.

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"
#include "transport/base/per_process.h"
#include "transport/event_engine/rdma/rdma.h"
#include "transport/fabric/verbs/fabric.h"
#include "transport/fabric/verbs/options.h"
#include "transport/settings/verbs_device.h"

namespace penstock {
namespace event_engine {
namespace {

using Opened = absl::StatusOr<std::shared_ptr<fabric::Fabric>>;

// Limits the time of one attempt to get a path. Calls do not wait for the
// attempt, except with Policy::kRequire.
constexpr absl::Duration kSetupTimeout = absl::Seconds(3);

// The fabrics of clients, by settings and address. Connections share them.
struct Shared {
  base::Mutex mu;
  std::map<std::string, std::shared_ptr<fabric::Fabric>> all
      ABSL_GUARDED_BY(mu);
};

Opened OpenNew(const Settings& settings, const TcpAddress& local,
               uint16_t port) {
  const VerbsDevice device =
      VerbsDevice::Parse(settings.verbs_device).value_or(VerbsDevice());
  fabric::verbs::Options options;
  options.device = device.name;
  options.port = device.port;
  options.gid_index = settings.verbs_gid_index;
  options.traffic_class = settings.verbs_traffic_class;
  options.listen_port = port;
  options.setup_timeout = kSetupTimeout;
  // Uses no memory windows: the path only sends packets, and exposes nothing to
  // the peer.
  options.windows = fabric::verbs::Windows::kNever;
  if (!local.IsWildcard()) options.addresses = {local.IpText()};
  auto rdma = std::make_shared<fabric::verbs::VerbsFabric>(options);
  const absl::StatusOr<std::string> listening = rdma->Offer();
  if (!listening.ok()) return listening.status();
  return rdma;
}

}  // namespace

Opened OpenRdma(const Settings& settings, const TcpAddress& local,
                uint16_t port) {
  if (port != 0) return OpenNew(settings, local, port);
  Shared* const shared = base::PerProcess<Shared>::Get();
  base::MutexLock lock(&shared->mu);
  std::shared_ptr<fabric::Fabric>& found =
      shared->all[absl::StrCat(local.IpText(), " ", settings.ToString())];
  if (found != nullptr) return found;
  Opened opened = OpenNew(settings, local, port);
  if (opened.ok()) found = *opened;
  return opened;
}

}  // namespace event_engine
}  // namespace penstock
