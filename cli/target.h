// The argument TARGET and its options, which several commands share.

#ifndef PENSTOCK_CLI_TARGET_H_
#define PENSTOCK_CLI_TARGET_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/client_options.h"
#include "grpcpp/grpcpp.h"
#include "penstock/penstock.h"

namespace penstock::cli {

// Returns INVALID_ARGUMENT, with a correction, for a text that names no server:
// a name without a port, or a URL.
absl::Status CheckTarget(absl::string_view name);

class Target {
 public:
  // Adds TARGET, --fabrics, --timeout and the TLS options.
  void Declare(CLI::App* app, bool is_required);
  // Returns INVALID_ARGUMENT for invalid arguments, such as a target without a
  // port.
  absl::Status Check();

  // Returns TARGET as the user wrote it, printable, or empty.
  std::string Name() const;
  absl::Duration timeout() const { return client_.timeout(); }
  // Returns a new channel over Penstock, without message limits, that shares no
  // connection. Returns an error if a file cannot be read. Removes
  // PENSTOCK_METRICS, PENSTOCK_TRACE and PENSTOCK_RECORD from this process's
  // environment, because a probe may run in the environment of a server for
  // which they are meant. Call this function before other threads are started.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Open() const;
  // Returns the path of the channel's first connection, printable. `path` is
  // empty if there is no connection.
  PathReport Path(grpc::Channel* channel) const;
  // Returns the meaning of a failed call, and a remedy. May connect to the
  // target to identify the program that listens there, for at most a second.
  std::string Explain(const grpc::Status& status) const;

 private:
  // Returns a text that says which side causes stock gRPC to carry a
  // connection.
  std::string WhyHttp2() const;

  CLI::Option* option_ = nullptr;  // TARGET itself
  std::string name_;
  std::string fabrics_;
  Options options_;
  ClientOptions client_;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TARGET_H_
