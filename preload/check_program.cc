#include "preload/check_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "preload/elf_facts.h"
#include "preload/find_program.h"
#include "preload/release.h"
#include "transport/base/printable.h"
#include "transport/base/status_util.h"
#include "transport/base/unique_fd.h"

namespace penstock::preload {
namespace {

// Caps the chain of scripts that name scripts, like the kernel.
constexpr int kMaxScripts = 5;
// Limits the bytes of the first line, as the kernel does.
constexpr size_t kMaxFirstLine = 256;

// The libraries of Penstock's gRPC, and the prefixes of all releases.
constexpr absl::string_view kSonames[] = {PENSTOCK_GRPC_CORE,
                                          PENSTOCK_GRPC_CPP};
constexpr absl::string_view kBeginnings[] = {"libgrpc.so.", "libgrpc++.so.",
                                             "libgrpc_unsecure.so.",
                                             "libgrpc++_unsecure.so."};

// The name of glibc's loader for any processor: "ld-linux-x86-64.so.2".
constexpr absl::string_view kLoader = "/ld-linux";

// A read-only file in memory.
class Mapping {
 public:
  Mapping(int fd, size_t size)
      : size_(size),
        data_(size == 0 ? MAP_FAILED
                        : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0)) {}
  ~Mapping() {
    if (data_ != MAP_FAILED) munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  absl::string_view bytes() const {
    if (data_ == MAP_FAILED) return {};
    return {static_cast<const char*>(data_), size_};
  }

 private:
  const size_t size_;
  void* const data_;
};

absl::Status Cannot(const std::string& file, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(file, " ", why));
}

bool IsOtherGrpc(absl::string_view library) {
  for (absl::string_view ours : kSonames) {
    if (library == ours) return false;
  }
  for (absl::string_view beginning : kBeginnings) {
    if (absl::StartsWith(library, beginning)) return true;
  }
  return false;
}

absl::Status CheckElf(const std::string& file, const ElfFacts& facts) {
  if (facts.is_32_bit) return Cannot(file, "is a 32-bit program");
  if (!facts.is_native) return Cannot(file, "is for another processor");
  if (facts.has_grpc) {
    return Cannot(file, "has gRPC linked into it, not as a library");
  }
  if (!facts.is_dynamic) return Cannot(file, "is statically linked");
  if (!absl::StrContains(facts.loader, kLoader)) {
    return Cannot(file, absl::StrCat("is for another C library than glibc (",
                                     base::Printable(facts.loader, 100), ")"));
  }
  if (!facts.sanitizer.empty()) {
    return Cannot(file, absl::StrCat("is built with ", facts.sanitizer,
                                     ", and Penstock's library is not"));
  }
  for (const std::string& library : facts.needed) {
    if (IsOtherGrpc(library)) {
      return Cannot(
          file,
          absl::StrCat("is linked to ", library,
                       ", and Penstock is made for gRPC " PENSTOCK_GRPC_RELEASE
                       " (" PENSTOCK_GRPC_CORE ")"));
    }
  }
  return absl::OkStatus();
}

// Returns true if the program gets more rights than its caller. The loader then
// ignores LD_PRELOAD.
bool GetsRights(const std::string& file, const struct stat& status) {
  if (geteuid() != getuid() || getegid() != getgid()) return true;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()) return true;
  return getuid() != 0 &&
         getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
}

// Returns the interpreter of a script with this first line, without "#!".
absl::StatusOr<std::string> InterpreterOf(absl::string_view line,
                                          const std::string& path) {
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::InvalidArgumentError("no interpreter");
  if (!absl::EndsWith(words[0], "/env")) return words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i][0] == '-' || absl::StrContains(words[i], "=")) continue;
    return FindProgram(words[i], path);
  }
  return words[0];
}

// Checks a file that is a program or a script. `scripts` is the number of
// scripts that led to this file.
absl::Status Check(const std::string& file, const std::string& path,
                   int scripts) {
  const base::UniqueFd fd(
      open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!fd.valid() || fstat(fd.get(), &status) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat("read ", file));
  }
  if (!S_ISREG(status.st_mode)) return Cannot(file, "is not a file");
  const Mapping mapping(fd.get(), status.st_size);
  absl::string_view bytes = mapping.bytes();
  if (absl::ConsumePrefix(&bytes, "#!")) {
    const absl::string_view line = bytes.substr(0, kMaxFirstLine);
    const absl::StatusOr<std::string> interpreter =
        InterpreterOf(line.substr(0, line.find('\n')), path);
    if (!interpreter.ok() || scripts == kMaxScripts) return absl::OkStatus();
    return Check(*interpreter, path, scripts + 1);
  }
  if (GetsRights(file, status)) {
    return Cannot(file,
                  "gets more rights than its caller (set-uid, set-gid or "
                  "capabilities), so that nothing is preloaded");
  }
  const absl::optional<ElfFacts> facts = ReadElf(bytes);
  // Accepts a file in an unknown format, because a shell runs such a file; see
  // execvp().
  return facts.has_value() ? CheckElf(file, *facts) : absl::OkStatus();
}

}  // namespace

absl::Status CheckProgram(const std::string& file, const std::string& path) {
  return Check(file, path, /*scripts=*/0);
}

}  // namespace penstock::preload
