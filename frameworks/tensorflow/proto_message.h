// Stores a protobuf in a request or a response of transport/rpc, and reads it
// back.

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

// Stores `proto` as the metadata of `message`, or as the payload if `proto` is
// too large for metadata. Returns false, and stores nothing, if `proto` has 2
// GiB or more, which protobuf cannot serialise. `Message` is rpc::Request or
// rpc::Response.
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

// Reads a protobuf that SetProto() stored. Returns false if the bytes are not
// such a protobuf.
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
