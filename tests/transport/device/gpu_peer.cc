// The other process of gpu_sharing_test. Reads commands about device memory,
// one per line, and answers each with a line.
//
//   share BYTES BYTE                     -> shared HANDLE BYTES OFFSET
//   sum HANDLE BYTES OFFSET LENGTH       -> sum NUMBER, of the range
//   fill HANDLE BYTES OFFSET LENGTH BYTE -> filled
//
// HANDLE is in hexadecimal. The answer to a failed command is "error ...".
// Shared memory lives until the end of the input.

#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/transport/device/sum_of.h"
#include "transport/device/devices.h"
#include "transport/device/handles.h"
#include "transport/device/library.h"
#include "transport/device/process_devices.h"

namespace penstock {
namespace device {
namespace {

const uint8_t* DataOf(const std::string& bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

class Peer {
 public:
  explicit Peer(Api* api) : devices_(api, 0), access_(&devices_) {}

  absl::StatusOr<std::string> Do(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "share") return Share(&words);
    std::string handle;
    uint64_t size = 0;
    size_t offset = 0;
    size_t length = 0;
    words >> handle >> size >> offset >> length;
    const auto open = access_.Open(absl::HexStringToBytes(handle), size);
    if (!open.ok()) return open.status();
    const absl::Span<const uint8_t> range(open->data + offset, length);
    if (verb == "sum") return Sum(range);
    if (verb == "fill") return Fill(range, &words);
    return absl::InvalidArgumentError("what?");
  }

 private:
  absl::StatusOr<std::string> Share(std::istream* words) {
    size_t size = 0;
    int byte = 0;
    *words >> size >> byte;
    const auto open = devices_.At(0);
    if (!open.ok()) return open.status();
    auto block = AllocateOnDevice((*open)->device.get(), size);
    if (!block.ok()) return block.status();
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
    auto* const data = reinterpret_cast<uint8_t*>(block->get());
    blocks_.push_back(*std::move(block));
    const std::string bytes(size, static_cast<char>(byte));
    absl::Status filled = access_.CopyFromHost({DataOf(bytes), size}, data);
    if (!filled.ok()) return filled;
    const auto shared = access_.Share({data, size});
    if (!shared.ok()) return shared.status();
    std::ostringstream text;
    text << "shared " << absl::BytesToHexString(shared->handle) << " "
         << shared->size << " " << shared->offset;
    return text.str();
  }

  absl::StatusOr<std::string> Sum(absl::Span<const uint8_t> range) {
    std::string bytes(range.size(), 0);
    absl::Status copied =
        access_.CopyToHost(range, const_cast<uint8_t*>(DataOf(bytes)));
    if (!copied.ok()) return copied;
    return "sum " + std::to_string(SumOf(bytes));
  }

  absl::StatusOr<std::string> Fill(absl::Span<const uint8_t> range,
                                   std::istream* words) {
    int byte = 0;
    *words >> byte;
    const std::string bytes(range.size(), static_cast<char>(byte));
    absl::Status copied = access_.CopyFromHost(
        {DataOf(bytes), bytes.size()}, const_cast<uint8_t*>(range.data()));
    if (!copied.ok()) return copied;
    return std::string("filled");
  }

  Devices devices_;
  ProcessDevices access_;
  std::vector<DeviceBlock> blocks_;
};

int Main() {
  const auto api = OpenLibrary();
  if (!api.ok()) {
    std::cout << "error " << api.status() << std::endl;
    return 1;
  }
  Peer peer(*api);
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto answer = peer.Do(line);
    if (answer.ok()) {
      std::cout << *answer << std::endl;
    } else {
      std::cout << "error " << answer.status() << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace device
}  // namespace penstock

int main() { return penstock::device::Main(); }
