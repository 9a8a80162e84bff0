// forker PATH ADDRESS: forks without exec while it has a channel and a stream.
// Run it with GRPC_ENABLE_FORK_SUPPORT=1.
//
// Forks two children. The first calls on its own channel over PATH and prints
// "child STATUS". The second, except with stock gRPC, calls on the parent's
// channel and prints "inherited STATUS". Then the parent calls on its old
// channel, and prints its STATUS, "stream goes on" or "stream is lost", and
// "end".

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/path.h"

namespace penstock::e2e {
namespace {

// The time after which SIGALRM kills a hung child.
constexpr int kChildSeconds = 2;
constexpr int kCalls = 3;
// The deadline of calls that a forked child makes on its parent's channel. In
// the child, gRPC may have no threads to open a new connection. These calls
// then get no answer.
constexpr std::chrono::milliseconds kHeirsPatience(300);

std::shared_ptr<grpc::Channel> Connect(Path path, const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      address, CredentialsFor(path, grpc::InsecureChannelCredentials()),
      arguments);
}

void CallAndSay(const char* who, const std::shared_ptr<grpc::Channel>& channel,
                TestService::Stub* stub) {
  const grpc::Status status = MakeEmptyCall(stub);
  std::cout << who << " " << status.error_code() << " "
            << status.error_message();
  for (const PathReport& report : DescribePaths(*channel)) {
    std::cout << "over " << report.path;
  }
  std::cout << std::endl;
}

[[noreturn]] void RunChild(Path path, const std::string& address) {
  alarm(kChildSeconds);
  auto channel = Connect(path, address);
  auto stub = TestService::NewStub(channel);
  CallAndSay("child", channel, stub.get());
  _exit(0);
}

// Makes calls on the parent's channel, in the child. Makes as many calls as the
// parent will make, so that both use the same stream numbers.
[[noreturn]] void RunHeir(TestService::Stub* stub) {
  for (int i = 0; i < kCalls; ++i) {
    Call call;
    call.set_deadline(std::chrono::system_clock::now() + kHeirsPatience);
    Empty response;
    const grpc::Status status = stub->EmptyCall(&call, Empty(), &response);
    std::cout << "inherited " << status.error_code() << " "
              << status.error_message() << std::endl;
  }
  _exit(0);
}

int Main(Path path, const std::string& address) {
  auto channel = Connect(path, address);
  auto stub = TestService::NewStub(channel);
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  if (!PingPong(stream.get())) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) RunChild(path, address);
  waitpid(child, nullptr, 0);
  // Forks no second child with stock gRPC, because that child would break the
  // parent's connection.
  const pid_t heir = path == Path::kStock ? 0 : fork();
  if (heir < 0) return 1;
  if (heir == 0 && path != Path::kStock) RunHeir(stub.get());
  if (heir > 0) waitpid(heir, nullptr, 0);
  for (int i = 0; i < kCalls; ++i) CallAndSay("parent", channel, stub.get());
  std::cout << "stream " << (PingPong(stream.get()) ? "goes on" : "is lost")
            << std::endl
            << "end" << std::endl;
  return 0;
}

}  // namespace
}  // namespace penstock::e2e

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Skips gRPC's shutdown, which may wait ten seconds; see stack.cc.
  _exit(penstock::e2e::Main(*penstock::e2e::PathOfName(argv[1]), argv[2]));
}
