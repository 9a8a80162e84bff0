#include "transport/grpc/filters/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "src/core/lib/slice/slice.h"

namespace penstock {
namespace core {
namespace {

// The bounds of the size of an output slice, in bytes. The first slice is twice
// as long as the input, and each later slice twice as long as the previous one.
constexpr uint64_t kMinBlockBytes = 1024;
constexpr uint64_t kMaxBlockBytes = 1024 * 1024;

// A zlib stream and its output. Produces at most one byte more than the limit,
// which shows that the message exceeds the limit.
class Inflater {
 public:
  Inflater(bool is_gzip, uint64_t input_bytes, uint64_t most,
           grpc_core::SliceBuffer* output)
      : most_(most), next_block_(2 * input_bytes), output_(output) {
    constexpr int kLargestWindow = 15;
    constexpr int kGzip = 16;  // expects gzip's header instead of zlib's
    is_good_ =
        inflateInit2(&stream_, kLargestWindow + (is_gzip ? kGzip : 0)) == Z_OK;
  }
  ~Inflater() {
    EndBlock();
    inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Decompresses the next bytes of the input.
  Inflated Add(const uint8_t* data, size_t size) {
    while (size > 0) {
      const auto part = static_cast<uInt>(
          std::min<size_t>(size, std::numeric_limits<uInt>::max()));
      const Inflated result = AddPart(data, part);
      if (result != Inflated::kWhole) return result;
      data += part;
      size -= part;
    }
    return Inflated::kWhole;
  }

  // Returns the verdict on the message. Call at the end of the input.
  Inflated Finish() {
    EndBlock();
    if (made_ > most_) return Inflated::kTooLong;
    return has_ended_ ? Inflated::kWhole : Inflated::kDamaged;
  }

 private:
  Inflated AddPart(const uint8_t* data, uInt size) {
    if (!is_good_ || has_ended_) return Inflated::kDamaged;
    stream_.next_in = const_cast<Bytef*>(data);
    stream_.avail_in = size;
    for (;;) {
      if (stream_.avail_out == 0 && !StartBlock()) return Inflated::kTooLong;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      has_ended_ = result == Z_STREAM_END;
      if (has_ended_) {
        return stream_.avail_in == 0 ? Inflated::kWhole : Inflated::kDamaged;
      }
      // Fails unless zlib made progress, or returned Z_BUF_ERROR because it
      // needs more input or more output space.
      if (result != Z_OK && result != Z_BUF_ERROR) return Inflated::kDamaged;
      if (stream_.avail_out > 0) return Inflated::kWhole;
    }
  }

  // Starts the next slice of the output. Returns false if the output exceeds
  // the limit.
  bool StartBlock() {
    EndBlock();
    if (made_ > most_) return false;
    const uint64_t wanted =
        std::min(std::max(next_block_, kMinBlockBytes), kMaxBlockBytes);
    const uint64_t left = most_ - made_;
    block_ = grpc_slice_malloc(wanted <= left ? wanted : left + 1);
    has_block_ = true;
    next_block_ = 2 * wanted;
    stream_.next_out = GRPC_SLICE_START_PTR(block_);
    stream_.avail_out = static_cast<uInt>(GRPC_SLICE_LENGTH(block_));
    return true;
  }

  void EndBlock() {
    if (!has_block_) return;
    has_block_ = false;
    grpc_core::Slice block(block_);
    const size_t filled = block.size() - stream_.avail_out;
    made_ += filled;
    if (filled > 0) output_->Append(block.TakeSubSlice(0, filled));
  }

  z_stream stream_ = {};
  bool is_good_ = false;
  bool has_ended_ = false;
  const uint64_t most_;
  uint64_t made_ = 0;  // bytes of output in finished blocks
  uint64_t next_block_;
  grpc_slice block_;
  bool has_block_ = false;
  grpc_core::SliceBuffer* const output_;
};

}  // namespace

Inflated InflateMessage(grpc_compression_algorithm algorithm,
                        const grpc_core::SliceBuffer& input, uint64_t most,
                        grpc_core::SliceBuffer* output) {
  if (algorithm != GRPC_COMPRESS_GZIP && algorithm != GRPC_COMPRESS_DEFLATE) {
    return Inflated::kDamaged;
  }
  Inflater inflater(algorithm == GRPC_COMPRESS_GZIP, input.Length(), most,
                    output);
  for (size_t i = 0; i < input.Count(); ++i) {
    const grpc_slice& slice = input.c_slice_buffer()->slices[i];
    const Inflated result =
        inflater.Add(GRPC_SLICE_START_PTR(slice), GRPC_SLICE_LENGTH(slice));
    if (result != Inflated::kWhole) return result;
  }
  return inflater.Finish();
}

}  // namespace core
}  // namespace penstock
