#include "transport/device/survey.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "transport/device/library.h"
#include "transport/device/status.h"

namespace penstock {
namespace device {
namespace {

// Returns the value of an attribute, or 0 if the driver is too old to know it.
int Attribute(Api* api, int number, abi::DeviceId id) {
  int value = 0;
  const abi::Result asked = api->DeviceGetAttribute(&value, number, id);
  return asked == abi::kSuccess ? value : 0;
}

}  // namespace

std::string UuidText(const abi::Uuid& uuid) {
  const std::string hex =
      absl::BytesToHexString({uuid.bytes, sizeof uuid.bytes});
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-",
                      hex.substr(12, 4), "-", hex.substr(16, 4), "-",
                      hex.substr(20));
}

absl::StatusOr<Traits> AskTraits(Api* api, int ordinal, abi::DeviceId* id) {
  absl::Status asked;
  const auto ask = [&](abi::Result result, absl::string_view operation) {
    if (result == abi::kSuccess) return true;
    asked =
        CallFailed(api, result, absl::StrCat(operation, " on cuda:", ordinal));
    return false;
  };
  char name[128] = "";
  abi::Uuid uuid = {};
  int is_unified = 0;
  if (!ask(api->DeviceGet(id, ordinal), "find the device") ||
      !ask(api->DeviceGetName(name, sizeof name - 1, *id),
           "ask for the name") ||
      !ask(api->DeviceGetUuid(&uuid, *id), "ask for the UUID") ||
      !ask(api->DeviceGetAttribute(&is_unified, abi::kUnifiedAddressing, *id),
           "ask for unified addressing")) {
    return asked;
  }
  if (is_unified == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuda:", ordinal, " has no unified addressing"));
  }
  Traits traits;
  traits.name = name;
  traits.uuid = UuidText(uuid);
  traits.pci_address = absl::StrFormat("%04x:%02x:%02x.0",
                                       Attribute(api, abi::kPciDomainId, *id),
                                       Attribute(api, abi::kPciBusId, *id),
                                       Attribute(api, abi::kPciDeviceId, *id));
  traits.copy_engines = Attribute(api, abi::kAsyncEngineCount, *id);
  traits.multiprocessors = Attribute(api, abi::kMultiprocessorCount, *id);
  traits.has_dma_buf = Attribute(api, abi::kDmaBufSupported, *id) != 0;
  traits.has_gpu_direct =
      Attribute(api, abi::kGpuDirectRdmaSupported, *id) != 0;
  traits.sees_remote_writes = Attribute(api, abi::kGpuDirectRdmaWritesOrdering,
                                        *id) >= abi::kWritesOrderedForOwner;
  traits.flushes_remote_writes =
      (Attribute(api, abi::kGpuDirectRdmaFlushWritesOptions, *id) &
       abi::kFlushWritesByHost) != 0;
  return traits;
}

absl::StatusOr<Survey> LookAtDevices() {
  absl::StatusOr<Api*> api = OpenLibrary();
  if (!api.ok()) return api.status();
  return LookAtDevices(*api);
}

absl::StatusOr<Survey> LookAtDevices(Api* api) {
  Survey survey;
  int count = 0;
  abi::Result asked = api->DriverGetVersion(&survey.version);
  if (asked == abi::kSuccess) asked = api->DeviceGetCount(&count);
  if (asked != abi::kSuccess) {
    return CallFailed(api, asked, "count the devices");
  }
  for (int i = 0; i < count; ++i) {
    abi::DeviceId id = 0;
    absl::StatusOr<Traits> traits = AskTraits(api, i, &id);
    if (!traits.ok()) return traits.status();
    survey.devices.push_back(*std::move(traits));
  }
  return survey;
}

}  // namespace device
}  // namespace penstock
