// Makes TensorFlow know the protocol "grpc+penstock", as the library is loaded.

#include <memory>

#include "frameworks/tensorflow/plugin_settings.h"
#include "frameworks/tensorflow/pool_allocator.h"
#include "frameworks/tensorflow/server.h"
#include "tensorflow/core/distributed_runtime/server_lib.h"
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

// A bad setting is reported when a server is made.
void ApplyMemorySetting() {
  const absl::StatusOr<PluginSettings> settings = ResolvePluginSettings();
  if (!settings.ok() || !settings->tensors_in_pool) return;
  const absl::Status used = UsePoolForTensors();
  if (!used.ok()) base::LogWarning(used.message());
}

const bool registered = [] {
  ApplyMemorySetting();
  // Never destroyed: TensorFlow keeps it.
  ::tensorflow::ServerFactory::Register("PENSTOCK_SERVER", new Factory);
  return true;
}();

}  // namespace
}  // namespace tensorflow
}  // namespace penstock
