// Limits the lines that protobuf logs about messages from peers.

#ifndef PENSTOCK_PS_SERVICE_PROTOBUF_LOG_H_
#define PENSTOCK_PS_SERVICE_PROTOBUF_LOG_H_

namespace penstock::ps {

// Redirects protobuf's lines to Penstock's log, which limits the number of
// lines. By default, protobuf writes a line to standard error for each string
// of a message that is not UTF-8. Any peer can cause such lines, because
// protobuf parses a message before the service checks the peer's permission.
void TakeProtobufLog();

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_PROTOBUF_LOG_H_
