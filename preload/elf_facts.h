// Reads from a program's file how the program is linked.

#ifndef PENSTOCK_PRELOAD_ELF_FACTS_H_
#define PENSTOCK_PRELOAD_ELF_FACTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::preload {

struct ElfFacts {
  bool is_native = false;  // for this kind of processor
  // True for a 32-bit mode or another 32-bit processor. Such a file is not
  // native.
  bool is_32_bit = false;
  bool is_dynamic = false;  // started by a loader, which supports LD_PRELOAD
  std::string loader;       // "/lib64/ld-linux-x86-64.so.2", or empty
  std::vector<std::string> needed;  // the libraries that the file itself names
  bool has_grpc = false;            // has gRPC's core linked into it
  std::string sanitizer;  // the sanitizer, "AddressSanitizer", or empty
};

// Parses a whole file. Returns nothing if the bytes are no ELF file. Omits
// unreadable parts of a damaged file. Accepts any bytes.
absl::optional<ElfFacts> ReadElf(absl::string_view file);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_ELF_FACTS_H_
