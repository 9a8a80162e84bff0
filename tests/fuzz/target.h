// What a fuzz target is: two functions, in one file NAME_fuzz.cc.

#ifndef PENSTOCK_TESTS_FUZZ_TARGET_H_
#define PENSTOCK_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// libFuzzer's: any bytes, and 0 is returned. What must not be aborts.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace penstock {
namespace fuzz {

// Inputs that reach far into the code: where mutation begins.
std::vector<std::string> Seeds();

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_TARGET_H_
