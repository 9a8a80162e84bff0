#include "transport/fabric/verbs/survey.h"

#include <memory>

#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/devices.h"
#include "transport/fabric/verbs/library.h"
#include "transport/fabric/verbs/locked_memory.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

absl::Status OpenLibraries() { return OpenLibrary().status(); }

absl::StatusOr<std::vector<LocalAddress>> SurveyAddresses(
    const Options& options) {
  absl::StatusOr<Api*> api = OpenLibrary();
  if (!api.ok()) return api.status();
  absl::Status enough = CheckLockedMemory(LockedMemoryLimit());
  if (!enough.ok()) return enough;
  return SurveyAddresses(*api, options);
}

absl::StatusOr<std::vector<LocalAddress>> SurveyAddresses(
    Api* api, const Options& options) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  absl::StatusOr<std::shared_ptr<CmChannel>> channel =
      CmChannel::Create(api, *loop);
  if (!channel.ok()) return channel.status();
  absl::StatusOr<std::vector<BoundId>> bound =
      BindToDevices(api, channel->get(), options);
  if (!bound.ok()) return bound.status();
  const std::shared_ptr<Devices> devices = Devices::For(api);
  std::vector<LocalAddress> found;
  for (const BoundId& each : *bound) {
    LocalAddress local;
    local.address = each.address.Text();
    local.device = api->GetDeviceName(each.id->verbs->device);
    local.port = each.id->port_num;
    local.description = DescribeDevice(api, *each.id);
    local.windows =
        devices->WindowsOf(each.id->verbs, each.id->port_num).status();
    found.push_back(local);
  }
  return found;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
