// Protobufs as what a call asks, or is answered.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_PROTO_MESSAGE_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_PROTO_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "google/protobuf/message_lite.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/call.h"

namespace penstock {
namespace tensorflow {

// Sets the metadata to `proto`, or the payload if it is larger than metadata
// may be. Returns false for one that has 2 GiB or more, which protobuf does not
// write. `Message` is rpc::Request or rpc::Response.
template <typename Message>
bool SetProto(const google::protobuf::MessageLite& proto, Message* message) {
  std::string text;
  if (!proto.SerializeToString(&text)) return false;
  if (text.size() <= rpc::kMaxMetadataBytes) {
    message->metadata = std::move(text);
    return true;
  }
  auto owner = std::make_shared<const std::string>(std::move(text));
  message->payload = memory::Payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner});
  return true;
}

// Returns whether the message holds a proto of the kind.
template <typename Message>
bool ParseProto(const Message& message, google::protobuf::MessageLite* proto) {
  if (message.payload.size() == 0) {
    return proto->ParseFromString(message.metadata);
  }
  std::string text(message.payload.size(), '\0');
  message.payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return proto->ParseFromString(text);
}

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_PROTO_MESSAGE_H_
