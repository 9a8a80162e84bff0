#include "tensor_service/text.h"

#include "absl/strings/str_cat.h"

namespace penstock::tensor {

absl::string_view Prefix(absl::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && most - end < 3 && (text[end] & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

std::string Quoted(absl::string_view name) {
  const absl::string_view prefix = Prefix(name, 200);
  return prefix.size() == name.size() ? std::string(name)
                                      : absl::StrCat(prefix, "...");
}

}  // namespace penstock::tensor
