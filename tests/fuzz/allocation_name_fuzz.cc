// Tests device::AllocationNames::Decode with arbitrary bytes.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/device/allocation_name.h"

namespace penstock {
namespace fuzz {
namespace {

constexpr size_t kMarkBytes = 16;

const device::AllocationNames& Names() {
  static const auto& names =
      *new device::AllocationNames(device::AllocationNames::Create().value());
  return names;
}

}  // namespace

std::vector<std::string> Seeds() {
  device::AllocationName name;
  name.size = 64 * 1024;
  name.address = 0x7f0000000000;
  name.id = 7;
  std::string other = Names().Encode(name);
  other.back() = static_cast<char>(other.back() + 1);
  return {Names().Encode(name), other};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::fuzz;
  const absl::string_view bytes = AsText({data, size});
  const auto decoded = Names().Decode(bytes);
  if (!decoded.ok()) return 0;
  const std::string again = Names().Encode(decoded->name);
  Require(
      again.substr(0, size - kMarkBytes) == bytes.substr(0, size - kMarkBytes),
      "a name is encoded to the very bytes that it came from");
  Require(decoded->is_own == (again == bytes), "its mark says whose it is");
  return 0;
}
