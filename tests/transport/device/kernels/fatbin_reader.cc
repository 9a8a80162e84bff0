#include "tests/transport/device/kernels/fatbin_reader.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::device::kernels {
namespace {

// The header of a fatbin. The layout is not documented; these are the fields
// that cuobjdump shows.
struct FileHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // bytes after the header
};

struct ImageHeader {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t bytes;             // bytes after the header
  uint32_t compressed_bytes;  // compressed bytes without padding
  uint32_t options;
  uint16_t minor;
  uint16_t major;
  uint32_t architecture;
  uint32_t name[2];
  uint64_t flags;
  uint64_t unused;
  uint64_t content_bytes;  // size after decompression
};
static_assert(sizeof(ImageHeader) == 64, "the layout has holes");

constexpr uint32_t kMagic = 0xba55ed50;
constexpr uint16_t kPtx = 1;
constexpr uint16_t kElf = 2;
constexpr uint64_t kLz4 = 0x2000;
constexpr uint64_t kZstd = 0x8000;
constexpr uint64_t kMostContent = 1 << 24;
constexpr unsigned char kKernelSymbol = 0x10;  // a flag of st_other

template <typename Struct>
absl::StatusOr<Struct> Take(absl::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Struct)) {
    return absl::DataLossError(absl::StrCat("cut at byte ", bytes.size()));
  }
  Struct taken;
  memcpy(&taken, bytes.data() + offset, sizeof(taken));
  return taken;
}

absl::StatusOr<std::string> DecompressZstd(absl::string_view compressed,
                                           uint64_t bytes) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  // Opens the library by name. dpkg needs the library, so it is present, but
  // its headers may be missing.
  void* library = dlopen("libzstd.so.1", RTLD_NOW);
  if (library == nullptr) {
    return absl::UnimplementedError("there is no libzstd.so.1 here");
  }
  std::string content(bytes, '\0');
  const auto decompress =
      reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress"));
  const size_t written = decompress(&content[0], content.size(),
                                    compressed.data(), compressed.size());
  dlclose(library);
  if (written != bytes) return absl::DataLossError("broken zstd");
  return content;
}

absl::StatusOr<std::string> ContentOf(const ImageHeader& header,
                                      absl::string_view stored) {
  if ((header.flags & (kZstd | kLz4)) == 0) return std::string(stored);
  if ((header.flags & kZstd) == 0) {
    return absl::UnimplementedError("compressed with LZ4");
  }
  if (header.content_bytes > kMostContent) {
    return absl::DataLossError("too large");
  }
  return DecompressZstd(stored.substr(0, header.compressed_bytes),
                        header.content_bytes);
}

std::set<std::string> KernelsOfElf(absl::string_view elf) {
  std::set<std::string> names;
  const auto file = Take<Elf64_Ehdr>(elf, 0);
  if (!file.ok()) return names;
  for (int i = 0; i < file->e_shnum; ++i) {
    const auto section =
        Take<Elf64_Shdr>(elf, file->e_shoff + i * uint64_t{sizeof(Elf64_Shdr)});
    if (!section.ok() || section->sh_type != SHT_SYMTAB) continue;
    const auto strings = Take<Elf64_Shdr>(
        elf, file->e_shoff + section->sh_link * uint64_t{sizeof(Elf64_Shdr)});
    if (!strings.ok()) continue;
    for (uint64_t at = 0; at < section->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = Take<Elf64_Sym>(elf, section->sh_offset + at);
      if (!symbol.ok() || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
          ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL ||
          (symbol->st_other & kKernelSymbol) == 0 || symbol->st_size == 0) {
        continue;
      }
      names.insert(elf.data() + strings->sh_offset + symbol->st_name);
    }
  }
  return names;
}

std::set<std::string> KernelsOfPtx(absl::string_view ptx) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(ptx, ".visible .entry ");
  std::set<std::string> names;
  for (size_t i = 1; i < parts.size(); ++i) {
    names.emplace(parts[i].substr(0, parts[i].find('(')));
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<Image>> ReadFatbin(absl::string_view fatbin) {
  const auto file = Take<FileHeader>(fatbin, 0);
  if (!file.ok()) return file.status();
  if (file->magic != kMagic ||
      file->header_bytes + file->bytes != fatbin.size()) {
    return absl::DataLossError("not the size that its header tells");
  }
  std::vector<Image> images;
  for (uint64_t at = file->header_bytes; at < fatbin.size();) {
    const auto header = Take<ImageHeader>(fatbin, at);
    if (!header.ok()) return header.status();
    if (header->kind != kPtx && header->kind != kElf) {
      return absl::DataLossError(absl::StrCat("image of kind ", header->kind));
    }
    at += header->header_bytes;
    if (at > fatbin.size() || header->bytes > fatbin.size() - at) {
      return absl::DataLossError("an image is cut");
    }
    auto content = ContentOf(*header, fatbin.substr(at, header->bytes));
    if (!content.ok()) return content.status();
    images.push_back({absl::StrCat(header->kind == kPtx ? "compute_" : "sm_",
                                   header->architecture),
                      *std::move(content)});
    at += header->bytes;
  }
  return images;
}

std::set<std::string> KernelsOf(const Image& image) {
  return image.architecture.rfind("sm_", 0) == 0 ? KernelsOfElf(image.content)
                                                 : KernelsOfPtx(image.content);
}

}  // namespace penstock::device::kernels
