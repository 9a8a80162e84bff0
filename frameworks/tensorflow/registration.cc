// Makes TensorFlow know the protocol "grpc+penstock", as the library is loaded.

#include <memory>

#include "frameworks/tensorflow/server.h"
#include "tensorflow/core/distributed_runtime/server_lib.h"

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

const bool registered = [] {
  // Never destroyed: TensorFlow keeps it.
  ::tensorflow::ServerFactory::Register("PENSTOCK_SERVER", new Factory);
  return true;
}();

}  // namespace
}  // namespace tensorflow
}  // namespace penstock
