// Reads the fields of a byte range, and appends fields to a string.

#ifndef PENSTOCK_TRANSPORT_WIRE_READER_H_
#define PENSTOCK_TRANSPORT_WIRE_READER_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "transport/base/byte_order.h"

namespace penstock {
namespace wire {

// Reads fields one after another. Once a field is truncated, it and all later
// fields read as zero or as an empty string. Check ok() once, at the end.
class Reader {
 public:
  explicit Reader(absl::Span<const uint8_t> bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    if (rest_.size() < sizeof(T)) {
      Fail();
      return 0;
    }
    T value = base::LoadLittle<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }

  std::string String(size_t length) {
    if (rest_.size() < length) {
      Fail();
      return std::string();
    }
    std::string value(reinterpret_cast<const char*>(rest_.data()), length);
    rest_.remove_prefix(length);
    return value;
  }

  // Returns true if no field so far was truncated.
  bool ok() const { return ok_; }
  // Returns true if ok(), and no bytes are left.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  absl::Span<const uint8_t> rest_;
  bool ok_ = true;
};

// Appends `value` to `*out` in wire order.
template <typename T>
void AppendNumber(T value, std::string* out) {
  uint8_t bytes[sizeof(T)];
  base::StoreLittle<T>(value, bytes);
  out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_READER_H_
