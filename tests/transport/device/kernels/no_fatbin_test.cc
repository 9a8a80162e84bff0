// Tests a build without CUDA's compiler.

#include <gtest/gtest.h>

#include "transport/device/kernels/fatbin.h"

namespace penstock::device::kernels {
namespace {

TEST(NoFatbinTest, ItSaysThatKernelsAreLeftOut) {
  EXPECT_EQ(Fatbin().status(),
            absl::UnimplementedError("reduction kernels: built without CUDA's "
                                     "compiler: kernels are left out"));
  EXPECT_EQ(Architectures(), "");
}

}  // namespace
}  // namespace penstock::device::kernels
