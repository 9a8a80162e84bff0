// The options of a command for its calls to servers: timeout and TLS.

#ifndef PENSTOCK_CLI_CLIENT_OPTIONS_H_
#define PENSTOCK_CLI_CLIENT_OPTIONS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/tls_files.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace penstock::cli {

class ClientOptions {
 public:
  // Adds --timeout and the TLS options.
  void Declare(CLI::App* app);
  // Returns INVALID_ARGUMENT for a timeout that cannot be parsed, and for a TLS
  // option without the option that it needs.
  absl::Status Check();

  absl::Duration timeout() const { return timeout_; }
  bool WithTls() const;
  // Returns credentials. Returns an error that names the file if a file is
  // unusable.
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Security() const;
  // Returns arguments for a channel that shares no connection with other
  // channels. Answers may have any size, but decompress to at most 64 MiB.
  grpc::ChannelArguments Arguments() const;

 private:
  std::string timeout_text_ = "5s";
  absl::Duration timeout_ = absl::Seconds(5);
  bool tls_ = false;
  TlsFiles files_;
  std::string server_name_;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_CLIENT_OPTIONS_H_
