#include "cli/serve.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/interrupt.h"
#include "cli/prober.h"
#include "cli/target.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/method_handler.h"
#include "nlohmann/json.hpp"
#include "penstock/penstock.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

using grpc::ByteBuffer;

// How long calls may take to end after Ctrl-C.
constexpr absl::Duration kGrace = absl::Seconds(1);
constexpr size_t kMaxTextBytes = 200;

// Returns each message as it came, from the same memory.
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
    *reply = *request;
    return grpc::Status::OK;
  }
};

class Serve final : public Command {
 public:
  Manual manual() const override {
    return {
        "serve",
        "a server for penstock ping, to try things out",
        "Returns what penstock ping sends, over whatever path the two "
        "sides agree on, and answers gRPC's health service. It has no "
        "other purpose, and no authentication: it listens at 127.0.0.1 "
        "unless told otherwise. Ctrl-C ends it.",
        {{"penstock serve", "at 127.0.0.1:50051"},
         {"penstock serve --listen=0.0.0.0 --port=7000", "for other machines"},
         {"penstock serve --port=0 --json",
          "at any free port, which it "
          "prints for a program"}},
        "it was ended by Ctrl-C or SIGTERM",
        "it could not listen"};
  }

  void Declare(CLI::App* app) override {
    app->add_option("-p,--port", port_,
                    "where to listen; 0 takes a free one (default 50051)")
        ->type_name("PORT");
    app->add_option("-l,--listen", host_,
                    "the address at which to listen (default 127.0.0.1)")
        ->type_name("ADDRESS");
    app->add_option("--cert", files_.cert,
                    "use TLS, and show this certificate (PEM)")
        ->type_name("FILE");
    app->add_option("--key", files_.key, "its private key (PEM)")
        ->type_name("FILE");
    app->add_option("--ca", files_.ca,
                    "admit only clients whom this PEM file vouches for")
        ->type_name("FILE");
    app->add_flag("--json", json_, "print where it listens as a JSON object");
  }

  absl::Status Check() override {
    if (port_ < 0 || port_ > 65535) {
      return absl::InvalidArgumentError("--port: must be 0 to 65535");
    }
    if (!files_.ca.empty() && files_.cert.empty()) {
      return absl::InvalidArgumentError("--ca needs --cert and --key");
    }
    return files_.Check();
  }

  absl::StatusOr<int> Run(const Context& context) override {
    WatchInterrupts();
    auto security = Security();
    if (!security.ok()) return security.status();
    grpc::EnableDefaultHealthCheckService(true);
    EchoService service;
    grpc::ServerBuilder builder;
    Enable(&builder);
    int port = 0;
    builder.AddListeningPort(Address(port_), *security, &port);
    // Else a second server would share the port, and take half of the calls.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxPayload));
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen at ", Printed(port_),
          ": is the port in use (see: ss -ltnp), or the address another "
          "machine's? --port=0 takes a free port"));
    }
    Announce(port, context.out);
    SleepUntil(absl::InfiniteFuture());
    server->Shutdown(absl::ToChronoTime(absl::Now() + kGrace));
    return kOk;
  }

 private:
  std::string Address(int port) const {
    const bool is_v6 = host_.find(':') != std::string::npos &&
                       host_.find('[') == std::string::npos;
    return is_v6 ? absl::StrFormat("[%s]:%d", host_, port)
                 : absl::StrCat(host_, ":", port);
  }
  std::string Printed(int port) const {
    return base::Printable(Address(port), kMaxTextBytes);
  }

  void Announce(int port, Output* out) const {
    const std::string address = Printed(port);
    if (json_) {
      const nlohmann::ordered_json json = {{"address", address},
                                           {"port", port}};
      return out->Write(json.dump() + "\n");
    }
    out->Write(absl::StrCat("listening at ", address,
                            ", until Ctrl-C. Now, in another terminal:\n  "
                            "penstock ping ",
                            address, files_.cert.empty() ? "" : " --ca=FILE",
                            "\n"));
  }

  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Security() const {
    if (files_.cert.empty()) return grpc::InsecureServerCredentials();
    const auto cert = ReadFile(files_.cert);
    if (!cert.ok()) return cert.status();
    const auto key = ReadFile(files_.key);
    if (!key.ok()) return key.status();
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({*key, *cert});
    if (!files_.ca.empty()) {
      const auto ca = ReadFile(files_.ca);
      if (!ca.ok()) return ca.status();
      options.pem_root_certs = *ca;
      options.client_certificate_request =
          GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    }
    return grpc::SslServerCredentials(options);
  }

  int port_ = 50051;
  std::string host_ = "127.0.0.1";
  TlsFiles files_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeServe() { return std::make_unique<Serve>(); }

}  // namespace penstock::cli
