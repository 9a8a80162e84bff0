#include "transport/base/host_id.h"

#include <fstream>

namespace penstock {
namespace base {

const std::string& HostId() {
  static const std::string* const id = [] {
    auto* text = new std::string;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::getline(file, *text);
    return text;
  }();
  return *id;
}

}  // namespace base
}  // namespace penstock
