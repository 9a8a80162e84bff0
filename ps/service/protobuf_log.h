// What protobuf has to say of messages that peers send.

#ifndef PENSTOCK_PS_SERVICE_PROTOBUF_LOG_H_
#define PENSTOCK_PS_SERVICE_PROTOBUF_LOG_H_

namespace penstock::ps {

// From now on, protobuf's lines go to Penstock's log and keep its limits.
// Protobuf itself writes one to standard error for each string of a message
// that is not UTF-8, before anybody is asked whether the peer may call.
void TakeProtobufLog();

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_PROTOBUF_LOG_H_
