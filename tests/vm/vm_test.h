#ifndef TESTS_VM_VM_TEST_H_
#define TESTS_VM_VM_TEST_H_

#include <gtest/gtest.h>

#include <cstdlib>

namespace penstock {

// Base of tests that run in tools/rdma-vm. Elsewhere, the tests skip
// themselves. They do not check for the device, because a missing device in the
// machine must be a failure. A SetUp() of a derived class calls this one, and
// returns if IsSkipped().
class VmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RDMA_VM") == nullptr) {
      GTEST_SKIP() << "wants the devices of tools/rdma-vm";
    }
  }
};

}  // namespace penstock

#endif  // TESTS_VM_VM_TEST_H_
