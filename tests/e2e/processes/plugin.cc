#include "tests/e2e/processes/plugin.h"

#include <sstream>
#include <utility>

#include "penstock/penstock.h"

namespace penstock::e2e {
namespace {

std::string Describe(grpc::Channel* channel) {
  std::ostringstream out;
  for (const PathReport& report : DescribePaths(*channel)) {
    out << report << "\n";
  }
  return out.str();
}

const Plugin kPlugin = {
    [](grpc::ServerBuilder* builder) { Enable(builder); },
    [](std::shared_ptr<grpc::ChannelCredentials> credentials) {
      return Credentials(std::move(credentials));
    },
    Describe,
};

}  // namespace
}  // namespace penstock::e2e

extern "C" const penstock::e2e::Plugin* GetPlugin() {
  return &penstock::e2e::kPlugin;
}
