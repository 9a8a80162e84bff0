#include "tests/ps/checkpoint/memory_files.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/names.h"

namespace penstock::ps::checkpoint {
namespace {

std::string LastName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

absl::Status None(absl::string_view path) {
  return absl::NotFoundError(absl::StrCat(path, ": none"));
}

}  // namespace

class MemoryWritable : public WritableFile {
 public:
  MemoryWritable(MemoryFiles* files, std::shared_ptr<MemoryFiles::Node> node)
      : files_(files), node_(std::move(node)) {}

  absl::StatusOr<size_t> Write(absl::string_view bytes) override {
    absl::MutexLock lock(&files_->mu_);
    const absl::Status status = files_->Begin();
    size_t size = std::min(bytes.size(), files_->most_at_once_);
    if (!status.ok()) size = absl::IsAborted(status) ? 0 : size / 2;
    // A crash interrupts the write after half of the bytes.
    if (files_->operations_ == files_->crash_at_ + 1) size = bytes.size() / 2;
    node_->bytes.append(bytes.data(), size);
    if (!status.ok()) return status;
    return size;
  }

  absl::Status Sync() override {
    absl::MutexLock lock(&files_->mu_);
    const absl::Status status = files_->Begin();
    if (status.ok()) node_->synced = node_->bytes;
    return status;
  }

 private:
  MemoryFiles* const files_;
  const std::shared_ptr<MemoryFiles::Node> node_;
};

class MemoryReadable : public ReadableFile {
 public:
  MemoryReadable(MemoryFiles* files, std::shared_ptr<MemoryFiles::Node> node)
      : files_(files), node_(std::move(node)) {}

  uint64_t size() const override {
    absl::MutexLock lock(&files_->mu_);
    return node_->bytes.size();
  }

  absl::StatusOr<size_t> Read(uint64_t offset, char* to, size_t size) override {
    absl::MutexLock lock(&files_->mu_);
    const absl::Status status = files_->Begin();
    if (!status.ok()) return status;
    const std::string& bytes = node_->bytes;
    if (offset >= bytes.size()) return 0;
    const size_t got =
        std::min({size, static_cast<size_t>(bytes.size() - offset),
                  files_->most_at_once_});
    memcpy(to, bytes.data() + offset, got);
    return got;
  }

 private:
  MemoryFiles* const files_;
  const std::shared_ptr<MemoryFiles::Node> node_;
};

class MemoryLock : public FileLock {
 public:
  MemoryLock(MemoryFiles* files, absl::string_view path)
      : files_(files),
        path_(path),
        node_(files->Find(path)),
        locked_(files->locked_) {}
  ~MemoryLock() override { *locked_ = false; }
  absl::Status Check() const override {
    absl::MutexLock lock(&files_->mu_);
    if (files_->Find(path_) == node_) return absl::OkStatus();
    return absl::FailedPreconditionError("the lock was removed");
  }

 private:
  MemoryFiles* const files_;
  const std::string path_;
  const std::shared_ptr<MemoryFiles::Node> node_;
  const std::shared_ptr<std::atomic<bool>> locked_;
};

void MemoryFiles::FailOnce(int number, absl::Status status) {
  absl::MutexLock lock(&mu_);
  fail_at_ = number;
  failure_ = std::move(status);
}

void MemoryFiles::RemoveAll() {
  absl::MutexLock lock(&mu_);
  root_ = Node();
  DropLock();
}

void MemoryFiles::CrashAt(int number) {
  absl::MutexLock lock(&mu_);
  crash_at_ = number;
}

void MemoryFiles::LoseLock() {
  absl::MutexLock lock(&mu_);
  DropLock();
}

void MemoryFiles::Restart(Loss loss, unsigned seed) {
  absl::MutexLock lock(&mu_);
  crash_at_ = -1;
  fail_at_ = -1;
  DropLock();
  std::mt19937 random(seed);
  if (loss != Loss::kNothing) Lose(&root_, loss, &random);
}

void MemoryFiles::Lose(Node* node, Loss loss, std::mt19937* random) {
  const auto by_chance = [&] { return (*random)() % 2 == 0; };
  if (loss == Loss::kAllUnsynced) node->entries = node->synced_entries;
  if (loss == Loss::kSome) {
    std::set<std::string> names;
    for (const auto& entry : node->entries) names.insert(entry.first);
    for (const auto& entry : node->synced_entries) names.insert(entry.first);
    for (const std::string& name : names) {
      if (by_chance()) continue;
      const auto old = node->synced_entries.find(name);
      if (old == node->synced_entries.end()) {
        node->entries.erase(name);
      } else {
        node->entries[name] = old->second;
      }
    }
  }
  const bool loses_data = loss != Loss::kSome || by_chance();
  if (loses_data && node->bytes.size() > node->synced.size()) {
    // Bytes that were not written back read as zeros, or are missing.
    node->bytes =
        node->synced +
        std::string(by_chance() ? node->bytes.size() - node->synced.size() : 0,
                    '\0');
  }
  node->synced = node->bytes;
  node->synced_entries = node->entries;
  for (auto& entry : node->entries) Lose(entry.second.get(), loss, random);
}

std::map<std::string, std::string> MemoryFiles::Contents() const {
  absl::MutexLock lock(&mu_);
  std::map<std::string, std::string> contents;
  for (const auto& [name, node] : root_.entries) {
    if (!node->is_folder) contents[name] = node->bytes;
    for (const auto& [inner, file] : node->entries) {
      contents[absl::StrCat(name, "/", inner)] = file->bytes;
    }
    if (node->is_folder && node->entries.empty()) contents[name + "/"] = "";
  }
  return contents;
}

std::string* MemoryFiles::Bytes(const std::string& path) {
  absl::MutexLock lock(&mu_);
  return &Find(path)->bytes;
}

void MemoryFiles::Plant(const std::string& path, std::string bytes) {
  absl::MutexLock lock(&mu_);
  const size_t slash = path.find('/');
  Node* folder = &root_;
  if (slash != std::string::npos) {
    auto& entry = root_.entries[path.substr(0, slash)];
    if (entry == nullptr) entry = std::make_shared<Node>();
    entry->is_folder = true;
    folder = entry.get();
  }
  auto node = std::make_shared<Node>();
  node->bytes = std::move(bytes);
  folder->entries[LastName(path)] = node;
}

absl::Status MemoryFiles::Begin() {
  const int number = operations_++;
  if (crash_at_ >= 0 && number >= crash_at_) {
    return absl::AbortedError("crashed");
  }
  return number == fail_at_ ? failure_ : absl::OkStatus();
}

MemoryFiles::Node* MemoryFiles::FolderOf(absl::string_view path) {
  const size_t slash = path.find('/');
  if (slash == absl::string_view::npos) return &root_;
  const auto found = root_.entries.find(std::string(path.substr(0, slash)));
  return found == root_.entries.end() || !found->second->is_folder
             ? nullptr
             : found->second.get();
}

std::shared_ptr<MemoryFiles::Node> MemoryFiles::Find(absl::string_view path) {
  Node* folder = FolderOf(path);
  if (folder == nullptr) return nullptr;
  const auto found = folder->entries.find(LastName(path));
  return found == folder->entries.end() ? nullptr : found->second;
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFiles::Create(
    absl::string_view path) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  Node* folder = FolderOf(path);
  if (folder == nullptr) return None(path);
  auto& entry = folder->entries[LastName(path)];
  if (entry != nullptr) return absl::AlreadyExistsError(path);
  entry = std::make_shared<Node>();
  return std::make_unique<MemoryWritable>(this, entry);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFiles::Open(
    absl::string_view path) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  auto node = Find(path);
  if (node == nullptr) return None(path);
  return std::make_unique<MemoryReadable>(this, std::move(node));
}

absl::Status MemoryFiles::MakeFolder(absl::string_view path) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  if (Find(path) != nullptr) return absl::AlreadyExistsError(path);
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  root_.entries[std::string(path)] = node;
  return status;
}

absl::StatusOr<std::vector<FolderEntry>> MemoryFiles::List(
    absl::string_view folder) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  Node* node = folder.empty() ? &root_ : Find(folder).get();
  if (node == nullptr) return None(folder);
  std::vector<FolderEntry> entries;
  for (const auto& [name, entry] : node->entries) {
    entries.push_back({name, entry->is_folder ? FolderEntry::Type::kFolder
                                              : FolderEntry::Type::kFile});
  }
  return entries;
}

absl::Status MemoryFiles::Rename(absl::string_view from, absl::string_view to) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  auto node = Find(from);
  if (node == nullptr) return None(from);
  Node* folder = FolderOf(from);
  folder->entries.erase(LastName(from));
  folder->entries[LastName(to)] = std::move(node);
  return status;
}

absl::Status MemoryFiles::Remove(absl::string_view path) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  if (Find(path) == nullptr) return None(path);
  FolderOf(path)->entries.erase(LastName(path));
  if (path == kLockName) DropLock();
  return status;
}

absl::Status MemoryFiles::RemoveFolder(absl::string_view path) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  auto node = Find(path);
  if (node == nullptr) return None(path);
  if (!node->entries.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not empty"));
  }
  root_.entries.erase(std::string(path));
  return status;
}

absl::Status MemoryFiles::SyncFolder(absl::string_view folder) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  Node* node = folder.empty() ? &root_ : Find(folder).get();
  if (node == nullptr) return None(folder);
  node->synced_entries = node->entries;
  return status;
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFiles::Lock(
    absl::string_view path) {
  absl::MutexLock lock(&mu_);
  const absl::Status status = Begin();
  if (!status.ok()) return status;
  if (*locked_) return absl::FailedPreconditionError("locked");
  *locked_ = true;
  auto& entry = root_.entries[std::string(path)];
  if (entry == nullptr) entry = std::make_shared<Node>();
  return std::make_unique<MemoryLock>(this, path);
}

}  // namespace penstock::ps::checkpoint
