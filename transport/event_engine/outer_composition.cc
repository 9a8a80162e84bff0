#include "transport/event_engine/outer_composition.h"

#include "absl/strings/str_cat.h"
#if __has_include("grpc/credentials.h")
#include "grpc/credentials.h"  // later releases split grpc_security.h
#endif
#include "grpc/grpc_security.h"
#include "grpc/support/string_util.h"
#include "transport/base/log.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr char kRemedy[] =
    "compose inside, as in penstock::Credentials("
    "grpc::CompositeChannelCredentials(ssl, call))";

using Metadata = grpc_metadata[GRPC_METADATA_CREDENTIALS_PLUGIN_SYNC_MAX];

// Adds no metadata. gRPC calls this function before each call. Fails if `state`
// is not null, that is, if Penstock is required.
int GetMetadata(void* state, grpc_auth_metadata_context,
                grpc_credentials_plugin_metadata_cb, void*, Metadata,
                size_t* count, grpc_status_code* status, const char** error) {
  static const bool warned =
      (base::LogWarning(absl::StrCat("Penstock is not used: ", kRemedy)), true);
  (void)warned;
  *count = 0;
  *status = state == nullptr ? GRPC_STATUS_OK : GRPC_STATUS_FAILED_PRECONDITION;
  *error =
      state == nullptr
          ? nullptr
          : gpr_strdup(absl::StrCat("Penstock is not used: ", kRemedy).c_str());
  return 1;
}

char* DebugString(void*) { return gpr_strdup("penstock"); }

}  // namespace

grpc_channel_credentials* ForOuterComposition(grpc_channel_credentials* wrapped,
                                              bool is_required) {
  if (wrapped == nullptr) return nullptr;
  static char required;
  grpc_metadata_credentials_plugin plugin = {};
  plugin.get_metadata = &GetMetadata;
  plugin.debug_string = &DebugString;
  plugin.destroy = [](void*) {};
  plugin.state = is_required ? &required : nullptr;
  plugin.type = "penstock";
  grpc_call_credentials* const warns =
      grpc_metadata_credentials_create_from_plugin(plugin, GRPC_SECURITY_NONE,
                                                   nullptr);
  grpc_channel_credentials* const composed =
      grpc_composite_channel_credentials_create(wrapped, warns, nullptr);
  grpc_call_credentials_release(warns);
  return composed;
}

}  // namespace event_engine
}  // namespace penstock
