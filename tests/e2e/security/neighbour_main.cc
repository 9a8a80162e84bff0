// neighbour ROLE ADDRESS [FLAG...]: a process of another user, in another
// namespace, or with less memory than the test.
//
//   neighbour server ADDRESS   serves; prints "serving ADDRESS", with the port
//   neighbour client ADDRESS   echoes messages of 8 bytes, 1 MiB and 64 MiB;
//                              prints "echoed BYTES" for each, then
//                              "status CODE MESSAGE" and "path PATH"
//
//   uid=N        becomes this user
//   pid, net     unshares this namespace
//   fsize=N      sets RLIMIT_FSIZE, which also limits shared memory
//   directory=D  sets Options::shm_directory
//   tls          uses the key, certificate and authority in the environment:
//                NEIGHBOUR_KEY, NEIGHBOUR_CERTIFICATE, NEIGHBOUR_AUTHORITY
//
// The process ends when its input ends, or with the process that started it.

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/raw.h"

namespace penstock::e2e {
namespace {

constexpr char kPortPlace[] = ":0";

struct Flags {
  bool pid = false, net = false, tls = false;
  uid_t uid = 0;
  rlim_t fsize = RLIM_INFINITY;
  std::string directory;
};

Flags Parse(const std::vector<std::string>& words) {
  Flags flags;
  for (absl::string_view word : words) {
    if (word == "pid") flags.pid = true;
    if (word == "net") flags.net = true;
    if (word == "tls") flags.tls = true;
    const std::string value(word.substr(word.find('=') + 1));
    if (absl::StartsWith(word, "uid=")) flags.uid = std::stoul(value);
    if (absl::StartsWith(word, "fsize=")) flags.fsize = std::stoull(value);
    if (absl::StartsWith(word, "directory=")) flags.directory = value;
  }
  return flags;
}

// Enters the namespaces of the flags. Must precede gRPC's threads.
bool Enter(const Flags& flags) {
  const rlimit limit = {flags.fsize, flags.fsize};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  if (flags.net && unshare(CLONE_NEWNET) != 0) return false;
  if (flags.pid) {
    if (unshare(CLONE_NEWPID) != 0) return false;
    const pid_t child = fork();
    if (child > 0) {
      int status = 1;
      waitpid(child, &status, 0);
      _exit(WEXITSTATUS(status));
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  return flags.uid == 0 || (setgid(flags.uid) == 0 && setuid(flags.uid) == 0);
}

Options OptionsOf(const Flags& flags) {
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = {Fabric::kShm, Fabric::kTcp};
  options.shm_directory = flags.directory;
  return options;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::shared_ptr<grpc::ServerCredentials> ForServer(const Flags& flags) {
  if (!flags.tls) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(
      {Variable("NEIGHBOUR_KEY"), Variable("NEIGHBOUR_CERTIFICATE")});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ForClient(const Flags& flags) {
  if (!flags.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = Variable("NEIGHBOUR_AUTHORITY");
  return grpc::SslCredentials(options);
}

void AwaitEndOfInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

int Serve(const std::string& address, const Flags& flags) {
  RawEchoService service;
  grpc::ServerBuilder builder;
  Enable(&builder, OptionsOf(flags));
  builder.SetMaxReceiveMessageSize(-1);
  int port = 0;
  builder.AddListeningPort(address, ForServer(flags), &port);
  builder.RegisterCallbackGenericService(&service);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  absl::string_view bound = address;
  const bool has_port = absl::ConsumeSuffix(&bound, kPortPlace);
  std::cout << "serving " << bound << (has_port ? absl::StrCat(":", port) : "")
            << std::endl;
  AwaitEndOfInput();
  return 0;
}

grpc::Status Echo(const std::shared_ptr<grpc::Channel>& channel) {
  Call call;
  RawStream stream(channel, &call);
  for (size_t bytes : {size_t{8}, size_t{1} << 20, size_t{64} << 20}) {
    const std::string message = Pattern(bytes);
    if (!stream.Write(message) || stream.Read() != message) break;
    std::cout << "echoed " << bytes << std::endl;
  }
  stream.WritesDone();
  return stream.Finish();
}

int CallServer(const std::string& address, const Flags& flags) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  if (flags.tls) arguments.SetSslTargetNameOverride("penstock.test");
  auto channel = grpc::CreateCustomChannel(
      address, Credentials(ForClient(flags), OptionsOf(flags)), arguments);
  const grpc::Status status = Echo(channel);
  std::cout << "status " << status.error_code() << " " << status.error_message()
            << std::endl;
  for (const PathReport& report : DescribePaths(*channel)) {
    std::cout << "path " << report << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace penstock::e2e

int main(int argc, char** argv) {
  using namespace penstock::e2e;
  if (argc < 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Flags flags = Parse({argv + 3, argv + argc});
  if (!Enter(flags)) {
    std::cout << "may not" << std::endl;
    _exit(3);
  }
  const bool serves = std::string(argv[1]) == "server";
  const int code = serves ? Serve(argv[2], flags) : CallServer(argv[2], flags);
  // Skips gRPC's shutdown, which may wait ten seconds; see stack_test.cc.
  _exit(code);
}
