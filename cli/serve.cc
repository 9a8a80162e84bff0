#include "cli/serve.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/interrupt.h"
#include "cli/prober.h"
#include "cli/tls_files.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/method_handler.h"
#include "nlohmann/json.hpp"
#include "penstock/penstock.h"
#include "transport/base/listen_address.h"
#include "transport/base/listen_error.h"
#include "transport/base/printable.h"
#include "transport/settings/settings.h"

namespace penstock::cli {
namespace {

using grpc::ByteBuffer;

// The time for calls to end after Ctrl-C.
constexpr absl::Duration kGrace = absl::Seconds(1);
constexpr size_t kMaxTextBytes = 200;

// Returns each message unchanged, from the same memory.
class EchoService final : public grpc::Service {
 public:
  EchoService() {
    using grpc::internal::RpcMethod;
    AddMethod(new grpc::internal::RpcServiceMethod(
        kEchoMethod, RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<EchoService, ByteBuffer,
                                             ByteBuffer>(Echo, this)));
  }

 private:
  static grpc::Status Echo(EchoService*, grpc::ServerContext*,
                           const ByteBuffer* request, ByteBuffer* reply) {
    if (!request->Valid()) {
      return {grpc::StatusCode::INTERNAL, "the call has no message"};
    }
    *reply = *request;
    return grpc::Status::OK;
  }
};

class Serve final : public Command {
 public:
  Manual manual() const override {
    return {
        "serve",
        "runs a server for penstock ping, for trying things out",
        "Returns the payload of penstock ping, over the path that both sides "
        "agree on, and answers gRPC's health service. It has no other "
        "purpose.\n\nThere are no passwords: anybody who can connect may call "
        "the server. Therefore it listens on 127.0.0.1, where only programs of "
        "this machine can connect, unless --listen names another address. With "
        "--cert, --key and --ca, only clients with a certificate that the CA "
        "signed may call it.\n\nCtrl-C ends the server.",
        {{"penstock serve", "on 127.0.0.1:50051"},
         {"penstock serve --listen=0.0.0.0:7000", "for other machines, too"},
         {"penstock serve --port=0 --json",
          "on any free port, which it prints for a program"}},
        "Ctrl-C or SIGTERM ended it",
        "it could not listen, or could not print the address"};
  }

  void Declare(CLI::App* app) override {
    app->add_option("-l,--listen", listen_,
                    "the address to listen on, with or without a port (default "
                    "127.0.0.1); 0.0.0.0 means all addresses")
        ->type_name("ADDRESS[:PORT]");
    port_option_ = app->add_option(
        "-p,--port", port_,
        "the port, if --listen has none; 0 selects a free one (default 50051)");
    port_option_->type_name("PORT");
    app->add_option("--cert", files_.cert,
                    "use TLS with this certificate (PEM)")
        ->type_name("FILE");
    app->add_option("--key", files_.key, "the certificate's private key (PEM)")
        ->type_name("FILE");
    app->add_option("--ca", files_.ca,
                    "accept only clients with a certificate that a CA in this "
                    "file signed (PEM)")
        ->type_name("FILE");
    app->add_flag("--json", json_, "print the address as a JSON object");
  }

  absl::Status Check() override {
    if (port_ < 0 || port_ > 65535) {
      return absl::InvalidArgumentError("--port: must be 0 to 65535");
    }
    const auto address = base::ListenAddress::Parse(listen_);
    if (!address.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--listen: ", address.status().message()));
    }
    if (address->port.has_value() && port_option_->count() > 0) {
      return absl::InvalidArgumentError(
          "--listen has a port already: leave out --port");
    }
    address_ = *address;
    port_ = address_.port.value_or(port_);
    if (!files_.ca.empty() && files_.cert.empty()) {
      return absl::InvalidArgumentError("--ca needs --cert and --key");
    }
    return files_.Check();
  }

  absl::StatusOr<int> Run(const Context& context) override {
    WatchInterrupts();
    auto security = Security();
    if (!security.ok()) return security.status();
    const absl::StatusOr<Settings> settings = ResolveSettings({});
    if (!settings.ok() && Requires({})) {
      return absl::FailedPreconditionError(
          absl::StrCat("Penstock is required but not used: ",
                       base::Printable(settings.status().message(), 400)));
    }
    grpc::EnableDefaultHealthCheckService(true);
    EchoService service;
    grpc::ServerBuilder builder;
    Enable(&builder);
    int port = 0;
    builder.AddListeningPort(address_.WithPort(port_), *security, &port);
    // Keeps the port to this server. Otherwise a second server could share the
    // port, and take half of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxPayload));
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr || port == 0) return WhyNot();
    context.out->Write(Announcement(port));
    // Nobody has the address if it cannot be printed.
    if (context.out->status().ok()) SleepUntil(absl::InfiniteFuture());
    server->Shutdown(absl::ToChronoTime(absl::Now() + kGrace));
    return kOk;
  }

 private:
  // Returns why the server cannot listen. gRPC only logs the reason.
  absl::Status WhyNot() const {
    const std::string why = base::WhyCannotListen(address_.host, port_);
    return absl::UnavailableError(absl::StrCat(
        "cannot listen at ", Printed(port_), ": ",
        why.empty() ? "GRPC_VERBOSITY=info has gRPC say why" : why,
        absl::StrContains(why, "in use") ? "; --port=0 takes a free one" : ""));
  }

  std::string Printed(int port) const {
    return base::Printable(address_.WithPort(port), kMaxTextBytes);
  }

  // Returns the whole text of standard output, so that a reader may close the
  // pipe after the first line.
  std::string Announcement(int port) const {
    const std::string address = Printed(port);
    if (json_) {
      const nlohmann::ordered_json json = {{"address", address},
                                           {"port", port}};
      return json.dump() + "\n";
    }
    const std::string first =
        absl::StrCat("listening at ", address, ", until Ctrl-C. Try it:\n  ");
    if (!address_.is_any()) return absl::StrCat(first, PingOf(address));
    // Clients cannot connect to a wildcard address.
    return absl::StrCat(
        first, PingOf(absl::StrCat(address_.loopback(), ":", port)),
        "or on another machine, by this one's name or address:\n  ",
        PingOf(absl::StrCat("HOST:", port)));
  }
  std::string PingOf(absl::string_view target) const {
    return absl::StrCat("penstock ping ", target,
                        files_.cert.empty() ? "" : " --ca=FILE", "\n");
  }

  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Security() const {
    if (files_.cert.empty()) return grpc::InsecureServerCredentials();
    const absl::StatusOr<TlsTexts> texts = files_.Read();
    if (!texts.ok()) return texts.status();
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({texts->key, texts->cert});
    if (!files_.ca.empty()) {
      options.pem_root_certs = texts->ca;
      options.client_certificate_request =
          GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    }
    return grpc::SslServerCredentials(options);
  }

  std::string listen_ = "127.0.0.1";
  CLI::Option* port_option_ = nullptr;  // --port itself
  int port_ = 50051;
  base::ListenAddress address_;
  TlsFiles files_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeServe() { return std::make_unique<Serve>(); }

}  // namespace penstock::cli
