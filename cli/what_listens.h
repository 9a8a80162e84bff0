// Finds out what listens at a target that is no gRPC server.

#ifndef PENSTOCK_CLI_WHAT_LISTENS_H_
#define PENSTOCK_CLI_WHAT_LISTENS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock::cli {

// Connects to `target`, as gRPC names it, and greets as an HTTP/2 client does.
// Returns what the answer means, and what to do, as the end of a sentence about
// the target. Returns "" if the answer is HTTP/2, if none comes within `limit`,
// or if it cannot connect. `with_tls`: the caller speaks TLS to the target, so
// a server of TLS is no surprise.
//
// Looks a name up once more, which `limit` does not bound.
std::string WhatListensAt(absl::string_view target, absl::Duration limit,
                          bool with_tls);

// Returns the same of the first bytes of an answer.
std::string MeaningOfAnswer(absl::string_view answer, bool with_tls);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_WHAT_LISTENS_H_
