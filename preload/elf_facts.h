// What a program's file says of how it is linked.

#ifndef PENSTOCK_PRELOAD_ELF_FACTS_H_
#define PENSTOCK_PRELOAD_ELF_FACTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::preload {

struct ElfFacts {
  bool is_native = false;   // for this kind of processor
  bool is_32_bit = false;   // for a mode of it, or another one; not native
  bool is_dynamic = false;  // a loader runs first, which knows LD_PRELOAD
  std::string loader;       // "/lib64/ld-linux-x86-64.so.2", or none
  std::vector<std::string> needed;  // the libraries that it names itself
  bool has_grpc = false;            // gRPC's core is linked into it
  std::string sanitizer;  // "AddressSanitizer", or none: it is built with that
};

// Reads a whole file. Nothing if it is not an ELF file. Of one that is damaged,
// what cannot be read is left out. Total: any bytes will do.
absl::optional<ElfFacts> ReadElf(absl::string_view file);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_ELF_FACTS_H_
