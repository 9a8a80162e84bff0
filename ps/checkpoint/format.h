// The bytes of a shard file. All numbers are little-endian.
//
//   header    magic "PSTKSHRD" | version u32 | shard u32 | id u64
//             | checksum u64 of the bytes before it
//   blocks    kind u32 | table u32 | stream u32 | count u32 | first u64
//             | number u64 | length u64 | payload's checksum u64
//             | checksum u64 of the header before it and of the id
//             | payload of `length` bytes
//   footer    id u64 | shard u32 | 0 u32 | parts u64 | clocks u64
//             | parts, of kPartBytes each | clocks, of kClockBytes each
//   trailer   footer's offset u64 | its length u64 | its checksum u64
//             | magic "PSTKFOOT"
//
// Checksums are XXH3-64. Each attempt draws a new id, so that a reader
// recognizes an old block that another attempt has left on the disk.

#ifndef PENSTOCK_PS_CHECKPOINT_FORMAT_H_
#define PENSTOCK_PS_CHECKPOINT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/records.h"

namespace penstock::ps::checkpoint {

// The version of the format of shards and manifests. This program writes and
// reads only this version.
constexpr uint32_t kFormatVersion = 1;

// The sizes of blocks, in bytes. A writer begins a new block when the payload
// reaches kBlockBytes. A reader accepts payloads up to kMaxBlockBytes, and
// holds one payload at a time.
constexpr size_t kBlockBytes = 1 << 20;
constexpr uint64_t kMaxBlockBytes = 16 << 20;

constexpr size_t kFileHeaderBytes = 32;
constexpr size_t kBlockHeaderBytes = 56;
constexpr size_t kFooterHeadBytes = 32;
constexpr size_t kPartBytes = 72;
constexpr size_t kClockBytes = 24;
constexpr size_t kTrailerBytes = 32;
// The number of bytes before the value of a sparse row: id, last use and count.
constexpr size_t kRowHeadBytes = 24;
constexpr uint64_t kMaxFooterBytes = 16 << 20;

enum class BlockKind : uint32_t {
  kDense = 1,    // elements of one stream
  kRows = 2,     // rows of a sparse table
  kRemoved = 3,  // u64 ids, removed since the base checkpoint
};

struct FileHeader {
  uint32_t shard = 0;
  uint64_t id = 0;
};

struct BlockHeader {
  BlockKind kind = BlockKind::kDense;
  uint32_t table = 0;
  uint32_t stream = 0;  // dense
  uint32_t count = 0;   // of rows or ids
  uint64_t first = 0;   // dense: the first element, as the table counts them
  uint64_t number = 0;  // of the block in its part
  uint64_t length = 0;
  uint64_t checksum = 0;  // the payload's
};

// A part of a shard: consecutive blocks. Holds rows of a dense table, stream by
// stream, or the server's rows of a sparse table.
struct Part {
  TableKind kind = TableKind::kDense;
  uint32_t table = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  uint64_t first_row = 0;  // dense
  uint64_t rows = 0;
  uint64_t removed = 0;  // sparse
  uint64_t step = 0;
  // The digest of the block headers; see Digest(). The headers have the
  // payloads' checksums, so the digest covers all bytes.
  uint64_t digest = 0;
};

struct Footer {
  uint32_t shard = 0;
  uint64_t id = 0;
  std::vector<Part> parts;
  std::vector<WorkerClock> clocks;
};

struct Trailer {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t checksum = 0;
};

std::string Encode(const FileHeader& header);
std::string Encode(const BlockHeader& header, uint64_t id);
std::string Encode(const Footer& footer);
std::string Encode(const Trailer& trailer);

// Decode exactly the bytes that Encode() returns. Return DATA_LOSS if the bytes
// are damaged, and FAILED_PRECONDITION if they are of a newer version.
absl::StatusOr<FileHeader> DecodeFileHeader(absl::string_view bytes);
absl::StatusOr<BlockHeader> DecodeBlockHeader(absl::string_view bytes,
                                              uint64_t id);
absl::StatusOr<Footer> DecodeFooter(absl::string_view bytes);
absl::StatusOr<Trailer> DecodeTrailer(absl::string_view bytes);

// Returns OK for kFormatVersion, DATA_LOSS for 0, and FAILED_PRECONDITION
// otherwise.
absl::Status CheckVersion(uint32_t version);

// Returns the digest `before`, extended by the encoded header of one more
// block.
uint64_t Digest(uint64_t before, absl::string_view header);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_FORMAT_H_
