// Registers the protocol "grpc+penstock" with TensorFlow when the library
// loads.

#include <memory>

#include "frameworks/tensorflow/plugin_settings.h"
#include "frameworks/tensorflow/pool_allocator.h"
#include "frameworks/tensorflow/registered_memory.h"
#include "frameworks/tensorflow/server.h"
#include "tensorflow/core/distributed_runtime/server_lib.h"
#include "tensorflow/core/framework/allocator_registry.h"
#include "transport/base/log.h"

namespace penstock {
namespace tensorflow {
namespace {

class Factory final : public ::tensorflow::ServerFactory {
 public:
  bool AcceptsOptions(const ::tensorflow::ServerDef& definition) override {
    return definition.protocol() == kProtocol;
  }
  absl::Status NewServer(
      const ::tensorflow::ServerDef& definition, const Options& options,
      std::unique_ptr<::tensorflow::ServerInterface>* server) override {
    return Server::Create(definition, options.local_device_mgr, server);
  }
};

bool HasTakenMemory() {
  return ::tensorflow::AllocatorFactoryRegistry::singleton()->process_state() !=
         nullptr;
}

// Applies PENSTOCK_TENSORFLOW_MEMORY. Ignores an invalid value, which
// Server::Create() reports.
void ApplyMemorySetting() {
  const absl::StatusOr<PluginSettings> settings = ResolvePluginSettings();
  if (!settings.ok() || settings->memory == TensorMemory::kHeap) return;
  if (HasTakenMemory()) {
    return base::LogWarning(
        "TensorFlow has taken memory already: PENSTOCK_TENSORFLOW_MEMORY has "
        "no effect. Load the plugin before anything else of TensorFlow is "
        "used");
  }
  if (settings->memory == TensorMemory::kPool) {
    UsePoolForTensors();
  } else {
    RegisterTensorMemory();
  }
}

const bool registered = [] {
  ApplyMemorySetting();
  // Leaks the factory, because TensorFlow keeps it.
  ::tensorflow::ServerFactory::Register("PENSTOCK_SERVER", new Factory);
  return true;
}();

}  // namespace
}  // namespace tensorflow
}  // namespace penstock
