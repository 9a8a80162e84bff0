#include "transport/grpc/handshake/server_setup.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/impl/server_builder_plugin.h"
#include "grpcpp/impl/server_initializer.h"
#include "grpcpp/server.h"
#include "src/core/lib/channel/channel_args.h"
#include "src/core/lib/config/core_configuration.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/surface/server.h"
#include "src/core/lib/transport/handshaker_factory.h"
#include "src/core/lib/transport/handshaker_registry.h"
#include "transport/grpc/filters/decompress_filter.h"
#include "transport/grpc/filters/device_filter.h"
#include "transport/grpc/filters/recording_filter.h"
#include "transport/grpc/handshake/server_negotiator.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/internal/mismatch.h"
#include "transport/grpc/polling/socket_users.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace core {
namespace {

constexpr char kServerArg[] = "penstock.internal.server";

// Marks a Penstock server for the handshaker factory. The channel argument and
// the plugin share this object. `server` is set before ports open, and is valid
// while their handshakes run.
struct ServerContext {
  Settings settings;
  grpc_core::Server* server = nullptr;
  const SocketUser socket_user;
};

// Returns the server of `initializer`, a private member. C++ lets an explicit
// instantiation name the member, and the template's friend function returns it.
grpc::Server* ServerOf(grpc::ServerInitializer* initializer);
template <grpc::Server* grpc::ServerInitializer::*kMember>
struct ServerAccess {
  friend grpc::Server* ServerOf(grpc::ServerInitializer* initializer) {
    return initializer->*kMember;
  }
};
template struct ServerAccess<&grpc::ServerInitializer::server_>;

class Plugin : public grpc::ServerBuilderPlugin {
 public:
  explicit Plugin(std::shared_ptr<ServerContext> context)
      : context_(std::move(context)) {}
  std::string name() override { return "penstock"; }
  void InitServer(grpc::ServerInitializer* initializer) override {
    context_->server =
        grpc_core::Server::FromC(ServerOf(initializer)->c_server());
  }
  void Finish(grpc::ServerInitializer*) override {}
  void ChangeArguments(const std::string&, void*) override {}

 private:
  const std::shared_ptr<ServerContext> context_;
};

// A reference to the context. Each copy of the argument that gRPC makes holds
// one.
using Share = std::shared_ptr<ServerContext>;
const grpc_arg_pointer_vtable kShareVtable = {
    [](void* share) -> void* { return new Share(*static_cast<Share*>(share)); },
    [](void* share) { delete static_cast<Share*>(share); },
    [](void* a, void* b) {
      return grpc_core::QsortCompare(static_cast<Share*>(a)->get(),
                                     static_cast<Share*>(b)->get());
    }};

class Option : public grpc::ServerBuilderOption {
 public:
  explicit Option(const Settings& settings)
      : context_(std::make_shared<ServerContext>()) {
    context_->settings = settings;
  }
  void UpdateArguments(grpc::ChannelArguments* arguments) override {
    arguments->SetPointerWithVtable(kServerArg, &context_, &kShareVtable);
  }
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->push_back(std::make_unique<Plugin>(context_));
  }

 private:
  std::shared_ptr<ServerContext> context_;
};

class NegotiatorFactory : public grpc_core::HandshakerFactory {
 public:
  void AddHandshakers(const grpc_core::ChannelArgs& args, grpc_pollset_set*,
                      grpc_core::HandshakeManager* manager) override {
    auto* share = args.GetPointer<Share>(kServerArg);
    if (share == nullptr || (*share)->server == nullptr) return;
    manager->Add(grpc_core::MakeRefCounted<ServerNegotiator>((*share)->settings,
                                                             (*share)->server));
  }
  HandshakerPriority Priority() override {
    // A priority after all of gRPC's handshakers, including security. The enum
    // has no name for this value.
    return static_cast<HandshakerPriority>(1000);
  }
};

// Returns true if gRPC's configuration exists already. Registering would then
// abort the process. Reads a private member; see ServerOf().
bool IsConfigured();
template <std::atomic<grpc_core::CoreConfiguration*>* kMember>
struct ConfigAccess {
  friend bool IsConfigured() { return kMember->load() != nullptr; }
};
template struct ConfigAccess<&grpc_core::CoreConfiguration::config_>;

// Registers the factory and the filters. Runs before main(), because gRPC
// builds its configuration once, on first use. Servers that were not enabled
// stay as they are. Returns false if gRPC's configuration exists already, or if
// gRPC is another release.
bool Register() {
  if (GrpcMismatch() != nullptr || IsConfigured()) return false;
  grpc_core::CoreConfiguration::RegisterBuilder(
      [](grpc_core::CoreConfiguration::Builder* builder) {
        builder->handshaker_registry()->RegisterHandshakerFactory(
            grpc_core::HANDSHAKER_SERVER,
            std::make_unique<NegotiatorFactory>());
        RegisterDecompressFilter(builder);
        RegisterRecordingFilter(builder);
        RegisterDeviceFilter(builder);
      });
  memory::PermitDevices();
  return true;
}

const bool g_registered = Register();

absl::Status LoadedLate() {
  return absl::FailedPreconditionError(
      "the Penstock library was loaded after gRPC had been used: link it into "
      "the program, or load it first");
}

}  // namespace

absl::Status ServersAreHooked() {
  if (const char* mismatch = GrpcMismatch()) {
    return absl::FailedPreconditionError(mismatch);
  }
  return g_registered ? absl::OkStatus() : LoadedLate();
}

absl::Status EnableServer(grpc::ServerBuilder* builder,
                          const Settings& settings) {
  if (!g_registered) return LoadedLate();
  builder->SetOption(std::make_unique<Option>(settings));
  return absl::OkStatus();
}

absl::StatusOr<grpc_server*> CreateEnabledServer(
    decltype(&grpc_server_create) create, const grpc_channel_args* arguments,
    const Settings& settings) {
  if (!g_registered) return LoadedLate();
  // Keeps the server as it is, if another library that contains Penstock has
  // already enabled it with its own settings.
  if (grpc_channel_args_find(arguments, kServerArg) != nullptr) {
    return create(arguments, /*reserved=*/nullptr);
  }
  grpc_core::ExecCtx exec_ctx;  // for the destruction of argument copies
  Share context = std::make_shared<ServerContext>();
  context->settings = settings;
  const grpc_arg mark = grpc_channel_arg_pointer_create(
      const_cast<char*>(kServerArg), &context, &kShareVtable);
  const grpc_channel_args* marked =
      grpc_channel_args_copy_and_add(arguments, &mark, 1);
  grpc_server* server = create(marked, /*reserved=*/nullptr);
  grpc_channel_args_destroy(marked);
  context->server = grpc_core::Server::FromC(server);
  return server;
}

}  // namespace core
}  // namespace penstock
