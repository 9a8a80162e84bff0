#include "transport/grpc/handshake/privacy.h"

#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/support/alloc.h>
#include <grpc/support/string_util.h>

#include <cstring>

#include "absl/strings/string_view.h"
#include "src/core/lib/security/context/security_context.h"
#include "src/core/tsi/transport_security_interface.h"

namespace penstock {
namespace core {

bool PromisesPrivacy(const grpc_core::ChannelArgs& args) {
  const auto* context = args.GetObject<grpc_auth_context>();
  if (context == nullptr) return false;  // no security handshake
  grpc_auth_property_iterator level = grpc_auth_context_find_properties_by_name(
      context, GRPC_TRANSPORT_SECURITY_LEVEL_PROPERTY_NAME);
  const grpc_auth_property* property = grpc_auth_property_iterator_next(&level);
  if (property == nullptr) return true;
  return absl::string_view(property->value, property->value_length) !=
         tsi_security_level_to_string(TSI_SECURITY_NONE);
}

void LowerSecurityLevel(const grpc_core::ChannelArgs& args) {
  auto* context = args.GetObject<grpc_auth_context>();
  if (context == nullptr) return;
  for (size_t i = 0; i < context->properties().count; ++i) {
    grpc_auth_property* property = &context->properties().array[i];
    if (absl::string_view(property->name) !=
        GRPC_TRANSPORT_SECURITY_LEVEL_PROPERTY_NAME) {
      continue;
    }
    gpr_free(property->value);
    property->value =
        gpr_strdup(tsi_security_level_to_string(TSI_SECURITY_NONE));
    property->value_length = strlen(property->value);
  }
}

}  // namespace core
}  // namespace penstock
