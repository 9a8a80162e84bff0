// Where to connect, and how: what commands with a TARGET share.

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

// Returns INVALID_ARGUMENT, with what to write instead, for what names no
// server: a name without a port, a URL.
absl::Status CheckTarget(absl::string_view name);

class Target {
 public:
  // Adds TARGET, --fabrics, --timeout and the options of TLS.
  void Declare(CLI::App* app, bool is_required);
  // Returns INVALID_ARGUMENT for a target without a port, and so on.
  absl::Status Check();

  // As it was given, made printable. Empty if it was not.
  std::string Name() const;
  absl::Duration timeout() const { return client_.timeout(); }
  // Returns a new channel over Penstock, without limits on messages, that
  // shares no connection with others. Returns an error if a file cannot be
  // read. From then on this process has neither PENSTOCK_METRICS nor
  // PENSTOCK_TRACE nor PENSTOCK_RECORD in its environment: a probe is to leave
  // them to its server. To be called before other threads are started.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Open() const;
  // Returns what carries the channel's connection, made printable; with an
  // empty `path` if there is none. Of several connections, the first.
  PathReport Path(grpc::Channel* channel) const;
  // Says what a failed call means, and what to do about it. May ask whatever
  // listens there what it is, for a second at most.
  std::string Explain(const grpc::Status& status) const;

 private:
  // Says which side is the reason that stock gRPC carries a connection.
  std::string WhyHttp2() const;

  CLI::Option* option_ = nullptr;  // TARGET itself
  std::string name_;
  std::string fabrics_;
  Options options_;
  ClientOptions client_;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TARGET_H_
