// What a victim serves: calls of any name, with messages of plain bytes.

#ifndef PENSTOCK_TESTS_ADVERSARY_SERVICE_H_
#define PENSTOCK_TESTS_ADVERSARY_SERVICE_H_

#include <string>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::adversary {

// Each message comes back.
constexpr char kEcho[] = "/victim/Echo";
// The first message is "COUNT SIZE": as many messages of so many zeros.
constexpr char kReply[] = "/victim/Reply";
// Reads nothing, until it is cancelled.
constexpr char kUnread[] = "/victim/Unread";

grpc::ByteBuffer ToBuffer(const std::string& text);
std::string ToText(const grpc::ByteBuffer& buffer);

// No thread waits in a call, however many there are.
class Service final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SERVICE_H_
