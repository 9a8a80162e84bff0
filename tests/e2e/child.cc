#include "tests/e2e/child.h"

namespace penstock::e2e {

std::unique_ptr<Child> StartPeer(const std::string& role,
                                 const std::vector<std::string>& flags,
                                 const std::vector<std::string>& environment) {
  std::vector<std::string> command = {"tests/e2e/peer", role};
  command.insert(command.end(), flags.begin(), flags.end());
  return Child::Start(std::move(command), environment);
}

}  // namespace penstock::e2e
