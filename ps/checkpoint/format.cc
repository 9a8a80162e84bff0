#include "ps/checkpoint/format.h"

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/little_endian.h"
#include "tensor_service/checksum.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr absl::string_view kHeaderMagic = "PSTKSHRD";
constexpr absl::string_view kTrailerMagic = "PSTKFOOT";

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged: ", what));
}

// Removes the checksum at the end of `bytes`. Returns true if the checksum
// matches the rest.
bool TakeChecksum(absl::string_view* bytes) {
  const size_t size = bytes->size() - sizeof(uint64_t);
  absl::string_view checksum = bytes->substr(size);
  *bytes = bytes->substr(0, size);
  return Take<uint64_t>(&checksum) == tensor::ChecksumOf(*bytes);
}

std::string HeaderAndId(absl::string_view header, uint64_t id) {
  std::string both(header);
  Put(id, &both);
  return both;
}

void PutPart(const Part& part, std::string* out) {
  Put(static_cast<uint32_t>(part.kind), out);
  Put(part.table, out);
  for (uint64_t number : {part.offset, part.bytes, part.blocks, part.first_row,
                          part.rows, part.removed, part.step, part.digest}) {
    Put(number, out);
  }
}

absl::StatusOr<Part> TakePart(absl::string_view* bytes) {
  Part part;
  const auto kind = Take<uint32_t>(bytes);
  if (kind != static_cast<uint32_t>(TableKind::kDense) &&
      kind != static_cast<uint32_t>(TableKind::kSparse)) {
    return Damaged("a part of an unknown kind");
  }
  part.kind = static_cast<TableKind>(kind);
  part.table = Take<uint32_t>(bytes);
  for (uint64_t* number :
       {&part.offset, &part.bytes, &part.blocks, &part.first_row, &part.rows,
        &part.removed, &part.step, &part.digest}) {
    *number = Take<uint64_t>(bytes);
  }
  return part;
}

void PutClock(const WorkerClock& clock, std::string* out) {
  Put(clock.rank, out);
  Put(uint32_t{0}, out);
  Put(clock.incarnation, out);
  Put(clock.clock, out);
}

WorkerClock TakeClock(absl::string_view* bytes) {
  WorkerClock clock;
  clock.rank = Take<uint32_t>(bytes);
  Take<uint32_t>(bytes);
  clock.incarnation = Take<uint64_t>(bytes);
  clock.clock = Take<uint64_t>(bytes);
  return clock;
}

}  // namespace

absl::Status CheckVersion(uint32_t version) {
  if (version == kFormatVersion) return absl::OkStatus();
  if (version == 0) return Damaged("version 0");
  return absl::FailedPreconditionError(absl::StrCat(
      "has version ", version, " of the format; this program reads version ",
      kFormatVersion, ": use the program that wrote it, or a newer one"));
}

uint64_t Digest(uint64_t before, absl::string_view header) {
  return tensor::ChecksumOf(HeaderAndId(header, before));
}

std::string Encode(const FileHeader& header) {
  std::string out(kHeaderMagic);
  Put(kFormatVersion, &out);
  Put(header.shard, &out);
  Put(header.id, &out);
  Put(tensor::ChecksumOf(out), &out);
  return out;
}

absl::StatusOr<FileHeader> DecodeFileHeader(absl::string_view bytes) {
  if (bytes.size() != kFileHeaderBytes ||
      bytes.substr(0, kHeaderMagic.size()) != kHeaderMagic) {
    return Damaged("it does not begin as a shard does");
  }
  absl::string_view rest = bytes.substr(kHeaderMagic.size());
  const auto version = Take<uint32_t>(&rest);
  FileHeader header;
  header.shard = Take<uint32_t>(&rest);
  header.id = Take<uint64_t>(&rest);
  // Verify the checksum before the version: a flipped bit in the version must
  // not look like a newer format. A newer format keeps this header.
  if (!TakeChecksum(&bytes)) return Damaged("the header's checksum differs");
  const absl::Status known = CheckVersion(version);
  if (!known.ok()) return known;
  return header;
}

std::string Encode(const BlockHeader& header, uint64_t id) {
  std::string out;
  Put(static_cast<uint32_t>(header.kind), &out);
  for (uint32_t number : {header.table, header.stream, header.count}) {
    Put(number, &out);
  }
  for (uint64_t number :
       {header.first, header.number, header.length, header.checksum}) {
    Put(number, &out);
  }
  Put(tensor::ChecksumOf(HeaderAndId(out, id)), &out);
  return out;
}

absl::StatusOr<BlockHeader> DecodeBlockHeader(absl::string_view bytes,
                                              uint64_t id) {
  if (bytes.size() != kBlockHeaderBytes) return Damaged("a block's header");
  absl::string_view rest = bytes;
  const auto kind = Take<uint32_t>(&rest);
  BlockHeader header;
  for (uint32_t* number : {&header.table, &header.stream, &header.count}) {
    *number = Take<uint32_t>(&rest);
  }
  for (uint64_t* number :
       {&header.first, &header.number, &header.length, &header.checksum}) {
    *number = Take<uint64_t>(&rest);
  }
  const absl::string_view checked =
      bytes.substr(0, kBlockHeaderBytes - sizeof(uint64_t));
  if (Take<uint64_t>(&rest) != tensor::ChecksumOf(HeaderAndId(checked, id))) {
    return Damaged("the block header's checksum differs");
  }
  if (kind < static_cast<uint32_t>(BlockKind::kDense) ||
      kind > static_cast<uint32_t>(BlockKind::kRemoved)) {
    return Damaged("a block of an unknown kind");
  }
  header.kind = static_cast<BlockKind>(kind);
  if (header.length > kMaxBlockBytes) {
    return Damaged(absl::StrCat("a block of ", header.length, " bytes"));
  }
  return header;
}

std::string Encode(const Footer& footer) {
  std::string out;
  Put(footer.id, &out);
  Put(footer.shard, &out);
  Put(uint32_t{0}, &out);
  Put(static_cast<uint64_t>(footer.parts.size()), &out);
  Put(static_cast<uint64_t>(footer.clocks.size()), &out);
  for (const Part& part : footer.parts) PutPart(part, &out);
  for (const WorkerClock& clock : footer.clocks) PutClock(clock, &out);
  return out;
}

absl::StatusOr<Footer> DecodeFooter(absl::string_view bytes) {
  if (bytes.size() < kFooterHeadBytes) return Damaged("a short footer");
  Footer footer;
  footer.id = Take<uint64_t>(&bytes);
  footer.shard = Take<uint32_t>(&bytes);
  Take<uint32_t>(&bytes);
  const auto parts = Take<uint64_t>(&bytes);
  const auto clocks = Take<uint64_t>(&bytes);
  // Checks both counts against the length of the footer before multiplying
  // them, so that nothing overflows.
  if (parts > bytes.size() / kPartBytes ||
      clocks > bytes.size() / kClockBytes ||
      parts * kPartBytes + clocks * kClockBytes != bytes.size()) {
    return Damaged("the footer's counts do not fit its length");
  }
  footer.parts.reserve(parts);
  for (uint64_t i = 0; i < parts; ++i) {
    absl::StatusOr<Part> part = TakePart(&bytes);
    if (!part.ok()) return part.status();
    footer.parts.push_back(*part);
  }
  footer.clocks.reserve(clocks);
  for (uint64_t i = 0; i < clocks; ++i) {
    footer.clocks.push_back(TakeClock(&bytes));
  }
  return footer;
}

std::string Encode(const Trailer& trailer) {
  std::string out;
  for (uint64_t number : {trailer.offset, trailer.length, trailer.checksum}) {
    Put(number, &out);
  }
  return out.append(kTrailerMagic.data(), kTrailerMagic.size());
}

absl::StatusOr<Trailer> DecodeTrailer(absl::string_view bytes) {
  if (bytes.size() != kTrailerBytes ||
      bytes.substr(kTrailerBytes - kTrailerMagic.size()) != kTrailerMagic) {
    return Damaged("it does not end as a shard does");
  }
  Trailer trailer;
  for (uint64_t* number :
       {&trailer.offset, &trailer.length, &trailer.checksum}) {
    *number = Take<uint64_t>(&bytes);
  }
  return trailer;
}

}  // namespace penstock::ps::checkpoint
