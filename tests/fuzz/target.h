// The two functions of a fuzz target, which is one file NAME_fuzz.cc.

#ifndef PENSTOCK_TESTS_FUZZ_TARGET_H_
#define PENSTOCK_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Called by libFuzzer. Accepts any bytes and returns 0. Aborts if a promise of
// the code is broken.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace penstock {
namespace fuzz {

// Returns initial inputs for mutation that reach deep into the code.
std::vector<std::string> Seeds();

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_TARGET_H_
