#include "transport/grpc/privacy.h"

#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>

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

}  // namespace core
}  // namespace penstock
