#include "transport/grpc/handshake/credentials.h"

#include <grpc/grpc_security.h>

#include <utility>

#include "src/core/ext/filters/client_channel/client_channel_factory.h"
#include "src/core/ext/filters/client_channel/subchannel.h"
#include "src/core/lib/channel/channel_args.h"
#include "src/core/lib/security/credentials/credentials.h"
#include "src/core/lib/security/security_connector/security_connector.h"
#include "src/cpp/client/secure_credentials.h"
#include "transport/grpc/handshake/connector.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {
namespace {

grpc_core::UniqueTypeName CredentialsType() {
  static grpc_core::UniqueTypeName::Factory factory("Penstock");
  return factory.Create();
}

// The channel argument with a channel's settings. gRPC finds an argument even
// if the program wraps Penstock's credentials in others. Compared by value, so
// that channels with equal settings share connections.
constexpr char kSettingsArg[] = "penstock.internal.settings";
const grpc_arg_pointer_vtable kSettingsVtable = {
    [](void* settings) -> void* {
      return new Settings(*static_cast<Settings*>(settings));
    },
    [](void* settings) { delete static_cast<Settings*>(settings); },
    [](void* a, void* b) {
      return static_cast<Settings*>(a)->ToString().compare(
          static_cast<Settings*>(b)->ToString());
    }};

// A factory of subchannels that connect with our Connector.
class ChannelFactory : public grpc_core::ClientChannelFactory {
 public:
  grpc_core::RefCountedPtr<grpc_core::Subchannel> CreateSubchannel(
      const grpc_resolved_address& address,
      const grpc_core::ChannelArgs& args) override;
};

class PenstockCredentials : public grpc_channel_credentials {
 public:
  PenstockCredentials(grpc_core::RefCountedPtr<grpc_channel_credentials> inner,
                      Settings settings)
      : inner_(std::move(inner)), settings_(std::move(settings)) {}

  grpc_core::RefCountedPtr<grpc_channel_security_connector>
  create_security_connector(
      grpc_core::RefCountedPtr<grpc_call_credentials> call_credentials,
      const char* target, grpc_core::ChannelArgs* args) override {
    return inner_->create_security_connector(std::move(call_credentials),
                                             target, args);
  }

  grpc_core::RefCountedPtr<grpc_channel_credentials>
  duplicate_without_call_credentials() override {
    // Returns the credentials without their call credentials. gRPC's default
    // would pass the call credentials on to load balancers.
    return grpc_core::MakeRefCounted<PenstockCredentials>(
        inner_->duplicate_without_call_credentials(), settings_);
  }

  // Replaces these credentials by the inner credentials in the channel's
  // arguments. gRPC asks the credentials in the arguments for their type (xDS),
  // compares them, and removes call credentials from them. If the application
  // has composed call credentials with these credentials, the composite stays
  // in the arguments.
  grpc_core::ChannelArgs update_arguments(
      grpc_core::ChannelArgs args) override {
    static auto* const factory = new ChannelFactory();  // never destroyed
    if (args.GetObject<grpc_channel_credentials>() == this) {
      args = args.SetObject(inner_);
    }
    args = inner_->update_arguments(std::move(args));
    // Keeps settings that the inner credentials already have, perhaps within a
    // composite. The program's settings thus override settings that the
    // preloaded stub would add.
    if (args.GetPointer<Settings>(kSettingsArg) != nullptr) return args;
    return args.SetObject<grpc_core::ClientChannelFactory>(factory).Set(
        kSettingsArg, grpc_core::ChannelArgs::Pointer(new Settings(settings_),
                                                      &kSettingsVtable));
  }

  grpc_core::UniqueTypeName type() const override { return CredentialsType(); }

 private:
  // Compares the settings too, because channels with equal credentials share
  // connections.
  int cmp_impl(const grpc_channel_credentials* other) const override {
    const auto* peer = static_cast<const PenstockCredentials*>(other);
    const int order = settings_.ToString().compare(peer->settings_.ToString());
    return order != 0 ? order : inner_->cmp(peer->inner_.get());
  }

  const grpc_core::RefCountedPtr<grpc_channel_credentials> inner_;
  const Settings settings_;
};

grpc_core::RefCountedPtr<grpc_core::Subchannel>
ChannelFactory::CreateSubchannel(const grpc_resolved_address& address,
                                 const grpc_core::ChannelArgs& args) {
  auto* credentials = args.GetObject<grpc_channel_credentials>();
  absl::optional<std::string> authority =
      args.GetOwnedString(GRPC_ARG_DEFAULT_AUTHORITY);
  const auto* settings = args.GetPointer<Settings>(kSettingsArg);
  if (credentials == nullptr || !authority.has_value() || settings == nullptr) {
    return nullptr;
  }
  grpc_core::ChannelArgs new_args = args;
  auto security = credentials->create_security_connector(
      /*call_creds=*/nullptr, authority->c_str(), &new_args);
  if (security == nullptr) return nullptr;
  return grpc_core::Subchannel::Create(
      grpc_core::MakeOrphanable<Connector>(*settings), address,
      new_args.SetObject(std::move(security)));
}

// Gives access to the protected AsSecureCredentials(). A derived class may take
// a pointer to this member, and the pointer works for any object of the base
// class.
struct Access : public grpc::ChannelCredentials {
  using grpc::ChannelCredentials::AsSecureCredentials;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> WrapCredentials(
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const Settings& settings) {
  if (credentials == nullptr) return nullptr;
  grpc::SecureChannelCredentials* secure =
      (credentials.get()->*(&Access::AsSecureCredentials))();
  const grpc_core::RefCountedPtr<grpc_channel_credentials> inner(
      secure != nullptr ? secure->GetRawCreds()->Ref().release()
                        : grpc_insecure_credentials_create());
  return std::make_shared<grpc::SecureChannelCredentials>(
      WrapCredentials(inner.get(), settings));
}

grpc_channel_credentials* WrapCredentials(grpc_channel_credentials* credentials,
                                          const Settings& settings) {
  if (credentials == nullptr) return nullptr;
  return new PenstockCredentials(credentials->Ref(), settings);
}

}  // namespace core
}  // namespace penstock
