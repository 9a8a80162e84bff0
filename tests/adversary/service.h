// The victim's service: accepts calls of any method, with raw messages.

#ifndef PENSTOCK_TESTS_ADVERSARY_SERVICE_H_
#define PENSTOCK_TESTS_ADVERSARY_SERVICE_H_

#include <string>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::adversary {

// Echoes each message.
constexpr char kEcho[] = "/victim/Echo";
// The first message is "COUNT SIZE". Sends COUNT messages of SIZE zeros.
constexpr char kReply[] = "/victim/Reply";
// Reads nothing, until the call is cancelled.
constexpr char kUnread[] = "/victim/Unread";

grpc::ByteBuffer ToBuffer(const std::string& text);
std::string ToText(const grpc::ByteBuffer& buffer);

// Serves calls without a thread per call.
class Service final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SERVICE_H_
