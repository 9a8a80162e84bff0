// Runs this folder's program "peer" in a child process.

#ifndef PENSTOCK_TESTS_E2E_CHILD_H_
#define PENSTOCK_TESTS_E2E_CHILD_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/process/child.h"

namespace penstock::e2e {

using process::Child;

// Runs "peer" in `role` with `flags`.
std::unique_ptr<Child> StartPeer(
    const std::string& role, const std::vector<std::string>& flags,
    const std::vector<std::string>& environment = {});

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CHILD_H_
