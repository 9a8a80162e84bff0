#include "tests/e2e/verbs/rig.h"

#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/e2e/verbs/echo.h"
#include "tests/vm/windows.h"

namespace penstock::e2e {
namespace {

Options OptionsOf(Policy policy, std::vector<Fabric> fabrics,
                  const std::string& device) {
  Options options;
  options.policy = policy;
  options.fabrics = std::move(fabrics);
  options.verbs_device = device;
  options.verbs_gid_index = -1;
  options.verbs_traffic_class = -1;
  options.data_protection = DataProtection::kRequired;
  return options;
}

}  // namespace

Options VerbsAt(const std::string& device) {
  return OptionsOf(Policy::kPrefer, {Fabric::kVerbs, Fabric::kTcp}, device);
}

Options OnlyVerbsAt(const std::string& device) {
  return OptionsOf(Policy::kRequire, {Fabric::kVerbs}, device);
}

Options OnlyTcp() { return OptionsOf(Policy::kPrefer, {Fabric::kTcp}, ""); }

std::string Shell(const std::string& command) {
  FILE* pipe = popen(absl::StrCat("{ ", command, "\n} 2>&1").c_str(), "re");
  if (pipe == nullptr) {
    ADD_FAILURE() << "no shell";
    return "";
  }
  std::string output;
  char part[4096];
  while (size_t size = fread(part, 1, sizeof part, pipe)) {
    output.append(part, size);
  }
  EXPECT_EQ(pclose(pipe), 0) << command << ": " << output;
  return std::string(absl::StripSuffix(output, "\n"));
}

bool Await(std::chrono::seconds time, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

PathReport PathOf(grpc::Channel* channel) {
  const std::vector<PathReport> reports = DescribePaths(*channel);
  if (reports.size() != 1) return PathReport();
  if (reports[0].path == "verbs") {
    EXPECT_TRUE(UsesWindowsAsWanted(reports[0].detail)) << reports[0];
  }
  return reports[0];
}

// Starts gRPC, and never shuts it down; see stack.cc.
VerbsRig::VerbsRig() { grpc_init(); }

VerbsRig::~VerbsRig() { StopServing(); }

void VerbsRig::Serve(grpc::Service* service, const Options& options,
                     std::shared_ptr<grpc::ServerCredentials> credentials) {
  Serve([service](grpc::ServerBuilder* b) { b->RegisterService(service); },
        options, std::move(credentials));
}

void VerbsRig::Serve(const std::function<void(grpc::ServerBuilder*)>& add,
                     const Options& options,
                     std::shared_ptr<grpc::ServerCredentials> credentials) {
  StopServing();
  grpc::ServerBuilder builder;
  Enable(&builder, options);
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port_);
  add(&builder);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
}

void VerbsRig::StopServing() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

std::shared_ptr<grpc::Channel> VerbsRig::Connect(
    const Options& options,
    std::shared_ptr<grpc::ChannelCredentials> credentials) const {
  return grpc::CreateCustomChannel(
      address(), Credentials(std::move(credentials), options), OwnConnection());
}

std::string VerbsRig::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

}  // namespace penstock::e2e
