// Implements the public headers for gRPC 1.60 and later.

#include "penstock/penstock.h"

#include <utility>

#include "absl/memory/memory.h"
#include "grpc/impl/channel_arg_names.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "transport/event_engine/connections.h"
#include "transport/event_engine/engine.h"
#include "transport/event_engine/outer_composition.h"
#include "transport/event_engine/usable_settings.h"
#include "transport/memory/destinations.h"
#include "transport/preload.h"
#include "transport/settings/settings.h"

PENSTOCK_NOTE();

namespace penstock {
namespace {

// Makes BuildAndStart() fail, by adding a port that cannot be bound.
void Refuse(grpc::ServerBuilder* builder) {
  builder->AddListeningPort(
      "unix:/dev/null/penstock-is-required-but-not-usable",
      grpc::InsecureServerCredentials());
}

// Adds the arguments of a channel that uses Penstock.
class EngineCredentials final : public grpc::ChannelCredentials {
 public:
  EngineCredentials(std::shared_ptr<grpc::ChannelCredentials> wrapped,
                    const Settings& settings)
      : grpc::ChannelCredentials(event_engine::ForOuterComposition(
            CoreOf(wrapped.get()), settings.policy == Policy::kRequire)),
        wrapped_(std::move(wrapped)),
        number_(event_engine::InternSettings(settings)) {}

 private:
  // Named through the derived class, which may access the protected function.
  static grpc_channel_credentials* CoreOf(grpc::ChannelCredentials* wrapped) {
    return (wrapped->*&EngineCredentials::c_creds)();
  }

  std::shared_ptr<grpc::Channel> CreateChannelImpl(
      const grpc::string& target,
      const grpc::ChannelArguments& arguments) override {
    return grpc::CreateCustomChannel(target, wrapped_, WithOurs(arguments));
  }
  std::shared_ptr<grpc::Channel> CreateChannelWithInterceptors(
      const grpc::string& target, const grpc::ChannelArguments& arguments,
      std::vector<std::unique_ptr<
          grpc::experimental::ClientInterceptorFactoryInterface>>
          interceptors) override {
    return grpc::experimental::CreateCustomChannelWithInterceptors(
        target, wrapped_, WithOurs(arguments), std::move(interceptors));
  }

  // Appends Penstock's arguments. Arguments that come later in the list win, so
  // the program's own frame size is kept.
  grpc::ChannelArguments WithOurs(
      const grpc::ChannelArguments& arguments) const {
    grpc::ChannelArguments all = arguments;
    all.SetInt(event_engine::kSettingsArgument, number_);
    const grpc_channel_args list = arguments.c_channel_args();
    for (size_t i = 0; i < list.num_args; ++i) {
      if (absl::string_view(list.args[i].key) ==
          GRPC_ARG_HTTP2_MAX_FRAME_SIZE) {
        return all;
      }
    }
    all.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, event_engine::kMaxFrameBytes);
    return all;
  }

  const std::shared_ptr<grpc::ChannelCredentials> wrapped_;
  const int number_;
};

}  // namespace

void Enable(grpc::ServerBuilder* builder, const Options& options) {
  absl::StatusOr<Settings> settings = event_engine::UsableSettings(options);
  if (!settings.ok()) {
    if (Requires(options)) Refuse(builder);
    return;
  }
  if (settings->policy == Policy::kOff) return;
  builder->AddChannelArgument(event_engine::kSettingsArgument,
                              event_engine::InternSettings(*settings));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE,
                              event_engine::kMaxFrameBytes);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(
    std::shared_ptr<grpc::ChannelCredentials> credentials,
    const Options& options) {
  absl::StatusOr<Settings> settings = event_engine::UsableSettings(options);
  if (!settings.ok() && Requires(options)) {
    // Returns null, because a channel without credentials fails each call.
    return nullptr;
  }
  if (!settings.ok() || settings->policy == Policy::kOff) return credentials;
  return std::make_shared<EngineCredentials>(std::move(credentials), *settings);
}

namespace {

std::vector<PathReport> Reports(bool of_clients) {
  std::vector<PathReport> reports;
  for (const auto& connection : event_engine::AllConnections()) {
    if (connection->is_client() != of_clients) continue;
    event_engine::MovableConnection::Description of = connection->Describe();
    if (of.closed) continue;
    PathReport report;
    report.peer = std::move(of.peer);
    report.path = std::move(of.path);
    report.detail = std::move(of.detail);
    report.reason = std::move(of.reason);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace

// Reports all connections of the process. gRPC's public headers do not tell
// which channel or server owns a connection.
std::vector<PathReport> DescribePaths(grpc::Channel&) { return Reports(true); }
std::vector<PathReport> DescribePaths(grpc::Server&) { return Reports(false); }

// Ignores the ranges, because bytes of HTTP/2 cannot be received into them.
std::shared_ptr<Destinations> Destinations::Make(
    const std::vector<Range>& ranges, std::shared_ptr<const void> owner,
    Use use) {
  return Make(ranges, std::move(owner), use, Slices::kHost);
}

std::shared_ptr<Destinations> Destinations::Make(const std::vector<Range>&,
                                                 std::shared_ptr<const void>,
                                                 Use, Slices) {
  return absl::WrapUnique(new Destinations(nullptr));
}

Destinations::Destinations(std::shared_ptr<memory::Destinations> shared)
    : shared_(std::move(shared)) {}

Destinations::~Destinations() = default;

void Destinations::AttachTo(grpc::ClientContext*) const {}

bool Destinations::in_use() const { return false; }

}  // namespace penstock
