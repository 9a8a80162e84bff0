#include "transport/settings/shm_arena.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace penstock {
namespace {

void Set(const char* value) {
  setenv("PENSTOCK_SHM_ARENA_MIB", value, /*replace=*/1);
}

TEST(ShmArenaTest, ItIsFromTheEnvironmentOrTheDefault) {
  EXPECT_EQ(*ResolveShmArenaBytes(), 0u);
  Set("16");
  EXPECT_EQ(*ResolveShmArenaBytes(), uint64_t{16} << 20);
  Set("1048576");
  EXPECT_EQ(*ResolveShmArenaBytes(), uint64_t{1} << 40);
  for (const char* value : {"15", "-1", "1GiB", "1048577"}) {
    Set(value);
    EXPECT_EQ(std::string(ResolveShmArenaBytes().status().message()),
              std::string("PENSTOCK_SHM_ARENA_MIB=") + value +
                  " is not a setting: use 16 to 1048576, or 0 for 1024, or a "
                  "quarter of the memory if that is less");
  }
}

}  // namespace
}  // namespace penstock
