// The service of a victim: calls of any method, with messages of plain bytes.

#ifndef PENSTOCK_TESTS_ADVERSARY_SERVICE_H_
#define PENSTOCK_TESTS_ADVERSARY_SERVICE_H_

#include <string>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::adversary {

// Sends back each message.
constexpr char kEcho[] = "/victim/Echo";
// The first message is "COUNT SIZE". Sends COUNT messages of SIZE zeros.
constexpr char kReply[] = "/victim/Reply";
// Reads nothing, until it is cancelled.
constexpr char kUnread[] = "/victim/Unread";

grpc::ByteBuffer ToBuffer(const std::string& text);
std::string ToText(const grpc::ByteBuffer& buffer);

// Serves calls without a thread for each.
class Service final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SERVICE_H_
