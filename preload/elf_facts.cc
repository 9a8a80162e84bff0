#include "preload/elf_facts.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"

namespace penstock::preload {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Entry = ElfW(Dyn);

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
#error "which machine is this?"
#endif

// Functions that instrumented code calls first, as entries of the loader's name
// table.
constexpr struct {
  absl::string_view function;
  const char* name;
} kSanitizers[] = {
    {absl::string_view("__asan_init\0", 12), "AddressSanitizer"},
    {absl::string_view("__tsan_init\0", 12), "ThreadSanitizer"},
    {absl::string_view("__hwasan_init\0", 14), "HWAddressSanitizer"},
    {absl::string_view("__msan_init\0", 12), "MemorySanitizer"}};

// A text of gRPC's core, which remains in a file without symbols.
constexpr absl::string_view kTextOfGrpc = "src/core/lib/surface/call.cc";

// Copies a T from a possibly unaligned offset. Returns nothing if the file is
// too short.
template <typename T>
absl::optional<T> At(absl::string_view file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

absl::string_view TextAt(absl::string_view file, uint64_t offset) {
  if (offset >= file.size()) return {};
  const absl::string_view rest = file.substr(offset);
  const size_t end = rest.find('\0');
  return end == rest.npos ? absl::string_view() : rest.substr(0, end);
}

std::vector<Segment> SegmentsOf(absl::string_view file, const Header& header) {
  std::vector<Segment> segments;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment =
        At<Segment>(file, header.e_phoff + i * header.e_phentsize);
    if (segment.has_value()) segments.push_back(*segment);
  }
  return segments;
}

// Returns the file offset of the bytes at `address`.
absl::optional<uint64_t> OffsetOf(uint64_t address,
                                  const std::vector<Segment>& segments) {
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return absl::nullopt;
}

std::vector<Entry> DynamicOf(absl::string_view file, const Segment& dynamic) {
  std::vector<Entry> entries;
  for (uint64_t at = 0; at + sizeof(Entry) <= dynamic.p_filesz;
       at += sizeof(Entry)) {
    const auto entry = At<Entry>(file, dynamic.p_offset + at);
    if (!entry.has_value() || entry->d_tag == DT_NULL) break;
    entries.push_back(*entry);
  }
  return entries;
}

// Returns the loader's name table, without truncated parts.
absl::string_view NamesOf(absl::string_view file,
                          const std::vector<Segment>& segments,
                          const std::vector<Entry>& entries) {
  absl::optional<uint64_t> begin;
  uint64_t size = 0;
  for (const Entry& entry : entries) {
    if (entry.d_tag == DT_STRTAB) begin = OffsetOf(entry.d_un.d_ptr, segments);
    if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
  }
  if (!begin.has_value() || *begin > file.size()) return {};
  return file.substr(*begin, size);
}

void ReadDynamic(absl::string_view file, const std::vector<Segment>& segments,
                 const Segment& dynamic, ElfFacts* facts) {
  const std::vector<Entry> entries = DynamicOf(file, dynamic);
  const absl::string_view names = NamesOf(file, segments, entries);
  for (const Entry& entry : entries) {
    if (entry.d_tag != DT_NEEDED) continue;
    facts->needed.emplace_back(TextAt(names, entry.d_un.d_val));
  }
  for (const auto& sanitizer : kSanitizers) {
    if (absl::StrContains(names, sanitizer.function)) {
      facts->sanitizer = sanitizer.name;
    }
  }
}

}  // namespace

absl::optional<ElfFacts> ReadElf(absl::string_view file) {
  if (!absl::StartsWith(file, absl::string_view(ELFMAG, SELFMAG))) return {};
  ElfFacts facts;
  const auto header = At<Header>(file, 0);
  facts.is_32_bit =
      header.has_value() && header->e_ident[EI_CLASS] == ELFCLASS32;
  facts.is_native = header.has_value() &&
                    header->e_ident[EI_CLASS] == ELFCLASS64 &&
                    header->e_machine == kMachine;
  if (!facts.is_native) return facts;
  const std::vector<Segment> segments = SegmentsOf(file, *header);
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_INTERP) {
      facts.is_dynamic = true;
      facts.loader = std::string(TextAt(file, segment.p_offset));
    }
    if (segment.p_type == PT_DYNAMIC) {
      ReadDynamic(file, segments, segment, &facts);
    }
  }
  facts.has_grpc = absl::StrContains(file, kTextOfGrpc);
  return facts;
}

}  // namespace penstock::preload
