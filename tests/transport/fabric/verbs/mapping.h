// Memory whose pages a program can replace.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_MAPPING_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_MAPPING_H_

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A mapping whose pages can be replaced while its addresses stay the same.
class Mapping {
 public:
  using OnReplace = std::function<void(void* data, size_t size)>;

  // Calls `on_replace` before the old pages are unmapped. `on_replace` notifies
  // simulated devices.
  explicit Mapping(size_t size, OnReplace on_replace = {})
      : size_(size), on_replace_(std::move(on_replace)) {
    Map(nullptr, 0);
  }
  ~Mapping() { munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Replaces the pages by others, filled with `fill`.
  void Replace(char fill) {
    if (on_replace_) on_replace_(data_, size_);
    munmap(data_, size_);
    Map(data_, MAP_FIXED_NOREPLACE);
    Fill(fill);
  }
  void Fill(char fill) { std::memset(data_, fill, size_); }
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Returns a part like a gRPC slice, alive as long as the payload.
  memory::Bytes Part(size_t offset, size_t size) const {
    return memory::Bytes{data_ + offset, size, std::make_shared<int>()};
  }
  memory::Payload Slice(size_t offset, size_t size) const {
    return memory::Payload(Part(offset, size));
  }
  memory::Payload Slice() const { return Slice(0, size_); }

 private:
  void Map(void* where, int flags) {
    void* const mapped = mmap(where, size_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    data_ = static_cast<uint8_t*>(mapped);
  }

  const size_t size_;
  const OnReplace on_replace_;
  uint8_t* data_ = nullptr;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_MAPPING_H_
