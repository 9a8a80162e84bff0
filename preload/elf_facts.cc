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

// A text of gRPC's core, in the file wherever its symbols have been removed.
constexpr absl::string_view kTextOfGrpc = "src/core/lib/surface/call.cc";

// Copies a T from where it may lie unaligned. Nothing if it is not all there.
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

// Returns where the file has what will be at `address`.
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

std::vector<std::string> NeededBy(absl::string_view file,
                                  const std::vector<Segment>& segments,
                                  const Segment& dynamic) {
  const std::vector<Entry> entries = DynamicOf(file, dynamic);
  absl::optional<uint64_t> strings;
  for (const Entry& entry : entries) {
    if (entry.d_tag == DT_STRTAB)
      strings = OffsetOf(entry.d_un.d_ptr, segments);
  }
  std::vector<std::string> needed;
  for (const Entry& entry : entries) {
    if (entry.d_tag != DT_NEEDED || !strings.has_value()) continue;
    needed.emplace_back(TextAt(file, *strings + entry.d_un.d_val));
  }
  return needed;
}

}  // namespace

absl::optional<ElfFacts> ReadElf(absl::string_view file) {
  if (!absl::StartsWith(file, absl::string_view(ELFMAG, SELFMAG))) return {};
  ElfFacts facts;
  const auto header = At<Header>(file, 0);
  facts.is_native = header.has_value() &&
                    header->e_ident[EI_CLASS] == ELFCLASS64 &&
                    header->e_machine == kMachine;
  if (!facts.is_native) return facts;
  const std::vector<Segment> segments = SegmentsOf(file, *header);
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_INTERP) facts.is_dynamic = true;
    if (segment.p_type == PT_DYNAMIC) {
      facts.needed = NeededBy(file, segments, segment);
    }
  }
  facts.has_grpc = absl::StrContains(file, kTextOfGrpc);
  return facts;
}

}  // namespace penstock::preload
