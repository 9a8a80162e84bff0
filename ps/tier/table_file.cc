#include "ps/tier/table_file.h"

#include <rocksdb/status.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

TableFile::TableFile(std::string path, Shortage::Kind kind, DiskCalls* calls,
                     Shortage* shortage)
    : path_(std::move(path)), kind_(kind), calls_(calls), shortage_(shortage) {
  Try([this] {
    fd_.Reset(calls_->Create(path_));
    return fd_.valid() ? 0 : errno;
  });
}

void TableFile::Try(absl::FunctionRef<int()> call) {
  if (error_ != 0) return;
  Shortage::Waiting waiting(shortage_);
  for (int error = call(); error != 0; error = call()) {
    if (error == EINTR) continue;
    if (kind_ == Shortage::Kind::kFlush && waiting.UntilRetry(error)) continue;
    GiveUp(error);
    return;
  }
}

void TableFile::GiveUp(int error) {
  error_ = error;
  if (fd_.valid()) calls_->Empty(fd_.get());
  if (!shortage_->closed()) shortage_->OnFailed(kind_, error, size_);
}

int TableFile::WriteSome(Slice* data) {
  const ssize_t written =
      calls_->Write(fd_.get(), data->data(), data->size(),
                    static_cast<off_t>(size_ - data->size()));
  if (written < 0) return errno;
  if (written == 0) return EIO;
  data->remove_prefix(static_cast<size_t>(written));
  return 0;
}

// Appends data to the file. Drops the data if the file was abandoned.
IOStatus TableFile::Append(const Slice& data, const IOOptions& /*options*/,
                           IODebugContext* /*debug*/) {
  size_ += data.size();
  Slice rest = data;
  Try([&] {
    int error = 0;
    while (error == 0 && !rest.empty()) error = WriteSome(&rest);
    return error;
  });
  return IOStatus::OK();
}

IOStatus TableFile::Append(
    const Slice& data, const IOOptions& options,
    const rocksdb::DataVerificationInfo& /*verification*/,
    IODebugContext* debug) {
  return Append(data, options, debug);
}

IOStatus TableFile::Flush(const IOOptions& /*options*/,
                          IODebugContext* /*debug*/) {
  return IOStatus::OK();
}

// Makes the file durable. Does not retry a failed sync, because the kernel may
// have dropped the data, and a later success would prove nothing.
IOStatus TableFile::Sync(const IOOptions& /*options*/,
                         IODebugContext* /*debug*/) {
  if (error_ == 0 && calls_->Sync(fd_.get()) != 0) GiveUp(errno);
  if (error_ == 0) shortage_->OnDone(kind_);
  return status();
}

IOStatus TableFile::Close(const IOOptions& /*options*/,
                          IODebugContext* /*debug*/) {
  fd_.Reset();
  return status();
}

uint64_t TableFile::GetFileSize(const IOOptions& /*options*/,
                                IODebugContext* /*debug*/) {
  return size_;
}

IOStatus TableFile::status() const {
  if (error_ == 0) return IOStatus::OK();
  if (shortage_->closed()) {
    return rocksdb::status_to_io_status(rocksdb::Status::ShutdownInProgress());
  }
  // Returns an error other than NoSpace(): after NoSpace(), RocksDB would stop
  // all writes and poll the disk itself.
  IOStatus failed = IOStatus::IOError(
      absl::StrCat("write ", path_, ": ",
                   std::error_code(error_, std::generic_category()).message()));
  failed.SetRetryable(true);
  failed.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
  return failed;
}

}  // namespace penstock::ps
