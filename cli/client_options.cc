#include "cli/client_options.h"

#include "absl/strings/str_cat.h"
#include "cli/text/units.h"

namespace penstock::cli {

void ClientOptions::Declare(CLI::App* app) {
  app->add_option("-W,--timeout", timeout_text_,
                  "the timeout of each answer (default 5s)")
      ->type_name("TIME");
  app->add_flag("--tls", tls_, "use TLS, and trust the system's authorities");
  app->add_option("--ca", files_.ca,
                  "use TLS, and trust the authorities in this PEM file")
      ->type_name("FILE");
  app->add_option("--cert", files_.cert, "the client's certificate (PEM)")
      ->type_name("FILE");
  app->add_option("--key", files_.key, "the certificate's private key (PEM)")
      ->type_name("FILE");
  app->add_option("--server-name", server_name_,
                  "the name in the server's certificate")
      ->type_name("NAME");
}

absl::Status ClientOptions::Check() {
  if (!server_name_.empty() && !WithTls()) {
    return absl::InvalidArgumentError(
        "--server-name is for TLS: give --tls, or --ca=FILE, too");
  }
  const auto timeout = ParseLimit("--timeout", timeout_text_);
  if (!timeout.ok()) return timeout.status();
  timeout_ = *timeout;
  return files_.Check();
}

bool ClientOptions::WithTls() const {
  return tls_ || !files_.ca.empty() || !files_.cert.empty();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
ClientOptions::Security() const {
  if (!WithTls()) return grpc::InsecureChannelCredentials();
  const absl::StatusOr<TlsTexts> texts = files_.Read();
  if (!texts.ok()) return texts.status();
  return grpc::SslCredentials({texts->ca, texts->key, texts->cert});
}

grpc::ChannelArguments ClientOptions::Arguments() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // Limits decompression: a few compressed bytes could decompress to gigabytes.
  arguments.SetInt("penstock.max_decompressed_bytes", 64 << 20);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!server_name_.empty()) {
    arguments.SetSslTargetNameOverride(server_name_);
  }
  return arguments;
}

}  // namespace penstock::cli
