// Identifies a program that listens at a target but is no gRPC server.

#ifndef PENSTOCK_CLI_WHAT_LISTENS_H_
#define PENSTOCK_CLI_WHAT_LISTENS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock::cli {

// Connects to `target`, a name of gRPC's syntax, and greets like an HTTP/2
// client. Returns the meaning of the answer and a remedy, as the end of a
// sentence about the target. Returns "" if the answer is HTTP/2, if there is no
// answer within `limit`, or if the connection fails. `with_tls` is true if the
// caller uses TLS: then a TLS server is expected, and returns "".
//
// Resolves the name again, which `limit` does not cover.
std::string WhatListensAt(absl::string_view target, absl::Duration limit,
                          bool with_tls);

// Returns the meaning of `answer`, the first bytes that a server sent, as
// WhatListensAt() does.
std::string MeaningOfAnswer(absl::string_view answer, bool with_tls);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_WHAT_LISTENS_H_
