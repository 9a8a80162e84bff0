// Runs the suite over several sockets: pairs of UNIX sockets in this process.

#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/stripes/endpoint.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

class StripesHarness : public Harness {
 public:
  explicit StripesHarness(int count) {
    std::vector<base::UniqueFd> sockets[2];
    for (int i = 0; i < count; ++i) {
      int pair[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      for (Side side : kSides)
        sockets[Index(side)].emplace_back(pair[Index(side)]);
    }
    last_ = base::UniqueFd(dup(sockets[0].back().get()));
    for (Side side : kSides) {
      auto end =
          stripes::StripesEndpoint::Create(std::move(sockets[Index(side)]));
      ends_[Index(side)] = *std::move(end);
    }
  }
  ~StripesHarness() override { last_.Reset(); }

  // Breaks only the last stripe.
  bool Cut() override { return shutdown(last_.get(), SHUT_RDWR) == 0; }

 private:
  base::UniqueFd last_;
};

FabricCase Over(const std::string& name, int count) {
  FabricCase fabric;
  fabric.name = name;
  fabric.make = [count] { return absl::make_unique<StripesHarness>(count); };
  fabric.waking = Waking::kDescriptor;
  return fabric;
}

}  // namespace

std::vector<FabricCase> Fabrics() {
  return {Over("TwoStripes", 2), Over("FiveStripes", 5)};
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
