#include "transport/record/recorder.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/record/part.h"
#include "transport/record/recording_file.h"

namespace penstock {
namespace record {
namespace {

using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name);
}

std::vector<std::string> LinesOf(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return {};
  std::string text;
  char buffer[4096];
  for (int got; (got = gzread(file, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  gzclose(file);
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

size_t SizeOf(const std::string& path) {
  struct stat status = {};
  stat(path.c_str(), &status);
  return static_cast<size_t>(status.st_size);
}

Part OneCall() {
  Part part;
  part.call = 7;
  part.client = 2;
  part.method = "/a.B/C";
  part.begun_us = 1000;
  part.messages = {{3, 100, false}, {40, 0, true}};
  part.is_last = true;
  part.ended_after_us = 41;
  part.status = 5;
  return part;
}

TEST(PartTest, ACallIsALine) {
  EXPECT_EQ(ToLine(OneCall()),
            "{\"call\":7,\"client\":2,\"method\":\"/a.B/C\",\"at\":1000,"
            "\"messages\":[[3,\"<\",100],[40,\">\",0]],\"end\":41,"
            "\"status\":5}\n");
}

TEST(PartTest, WhatAPeerCallsIsMadePlain) {
  Part part = OneCall();
  part.method = std::string("/a\"\\\n\0\xff{", 8) + std::string(1000, 'x');
  const std::string line = ToLine(part);
  EXPECT_THAT(line, HasSubstr("\"method\":\"/a______xxx"));
  EXPECT_LT(line.size(), 400u);
}

TEST(RecorderTest, ALongCallIsHandedOverInParts) {
  Recorder recorder;
  {
    RecordedCall call;
    call.Begin(&recorder, 1, "/a.B/C");
    for (size_t i = 0; i < Part::kMaxMessages + 1; ++i) call.Received(i);
  }
  const std::vector<Part> parts = recorder.Take();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(parts[0].is_first);
  EXPECT_FALSE(parts[0].is_last);
  EXPECT_EQ(parts[0].messages.size(), Part::kMaxMessages);
  EXPECT_FALSE(parts[1].is_first);
  EXPECT_TRUE(parts[1].is_last);
  ASSERT_EQ(parts[1].messages.size(), 1u);
  EXPECT_EQ(parts[1].messages[0].bytes, Part::kMaxMessages);
  EXPECT_EQ(parts[1].call, parts[0].call);
  EXPECT_EQ(parts[1].status, 1) << "it did not end: cancelled";
}

TEST(RecorderTest, WhatHasNoRoomIsLeftOutAndCounted) {
  Recorder recorder;
  uint64_t taken = 0;
  uint64_t refused = 0;
  while (refused < 10) {
    ++(recorder.Add(OneCall()) ? taken : refused);
    ASSERT_LT(taken, Recorder::kMaxQueuedBytes / sizeof(Part));
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_EQ(recorder.TakeLeftOut(), 10u);
  EXPECT_EQ(recorder.Take().size(), taken);
  EXPECT_TRUE(recorder.Add(OneCall())) << "there is room again";
}

TEST(RecorderTest, ACutCallSaysNothingMore) {
  Recorder recorder;
  RecordedCall call;
  call.Begin(&recorder, 1, "/a.B/C");
  while (recorder.Add(OneCall())) {
  }
  recorder.TakeLeftOut();
  for (size_t i = 0; i < 3 * Part::kMaxMessages; ++i) call.Sent(8);
  recorder.Take();
  call.End(0);
  EXPECT_EQ(recorder.TakeLeftOut(), 1u);
  EXPECT_TRUE(recorder.Take().empty());
}

TEST(RecorderTest, OnceItHasStoppedCallsAreNotMeasured) {
  Recorder recorder;
  RecordedCall open;
  open.Begin(&recorder, 1, "/a.B/C");
  open.Sent(8);
  recorder.Stop();
  open.Sent(8);
  open.End(0);
  RecordedCall late;
  late.Begin(&recorder, 1, "/a.B/C");
  late.End(0);
  EXPECT_TRUE(recorder.Take().empty());
  EXPECT_EQ(recorder.TakeLeftOut(), 0u);
  EXPECT_EQ(recorder.NextCall(), 2u) << "the late one has taken no number";
}

TEST(RecordingFileTest, IsWholeOnceItIsClosed) {
  const std::string path = PathOf("whole");
  Recorder recorder;
  auto file = RecordingFile::Open(path, &recorder);
  ASSERT_TRUE(file.ok()) << file.status();
  recorder.Add(OneCall());
  (*file)->Close();
  recorder.Add(OneCall());
  (*file)->Flush();
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("{\"penstock_recording\":1,\"time\":\"20"));
  EXPECT_EQ(lines[1] + "\n", ToLine(OneCall()));
}

TEST(RecordingFileTest, EndsAtItsFullSize) {
  const std::string path = PathOf("full-size");
  constexpr int64_t kMax = 20 * 1000;
  Recorder recorder;
  auto file = RecordingFile::Open(path, &recorder, kMax);
  ASSERT_TRUE(file.ok()) << file.status();
  testing::internal::CaptureStderr();
  for (uint64_t i = 0; i < 200 * 1000; ++i) {
    Part part = OneCall();
    // Chooses values that are hard to compress.
    part.begun_us = static_cast<int64_t>(i * 0x9e3779b97f4a7c15u >> 8);
    recorder.Add(std::move(part));
    if (i % 1000 == 0) (*file)->Flush();
  }
  (*file)->Close();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the file has reached its limit"));
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(log, "ends here")).size(),
            2u)
      << log;
  EXPECT_FALSE(recorder.Add(OneCall()));
  // Allows some kB more, because zlib returns compressed bytes in pieces of
  // this size.
  EXPECT_LT(SizeOf(path), static_cast<size_t>(2 * kMax + 32 * 1024));
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_GT(lines.size(), 100u);
  EXPECT_EQ(lines.back().back(), '}') << "no line is cut";
}

// Writes more than the limit of this process allows, as on a full disk.
[[noreturn]] void RecordWithoutRoom(const std::string& path, bool at_once) {
  const rlimit limit = {4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  Recorder recorder;
  auto file = RecordingFile::Open(path, &recorder);
  if (!file.ok()) _exit(2);
  for (uint64_t i = 0; i < 100 * 1000; ++i) {
    Part part = OneCall();
    part.begun_us = static_cast<int64_t>(i * 0x9e3779b97f4a7c15u >> 8);
    recorder.Add(std::move(part));
    if (i % 100 == 0 && !at_once) (*file)->Flush();
  }
  (*file)->Close();
  _exit(recorder.Add(OneCall()) ? 3 : 0);
}

TEST(RecordingFileTest, AFullDiskIsALineAndTheEnd) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const bool at_once : {false, true}) {
    EXPECT_EXIT(RecordWithoutRoom(PathOf("no-room"), at_once),
                testing::ExitedWithCode(0),
                "^[^\n]*the recording in [^\n]*no-room[^\n]* ends here: "
                "write: the file is larger than the limit on file sizes: "
                "raise it \\(ulimit -f[^\n]*\n$");
  }
}

size_t CountThreads() {
  size_t threads = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = readdir(tasks)) {
    if (task->d_name[0] != '.') ++threads;
  }
  closedir(tasks);
  return threads;
}

void SetStacks(size_t bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

// Exits with the number of the first step that went wrong.
[[noreturn]] void RecordWithAndWithoutAThread(const std::string& path) {
  alarm(60);
  SetStacks(size_t{1} << 47);  // no thread finds room for this
  if (RecordTo(path).ok()) _exit(1);
  if (Recorder::OfProcess() != nullptr) _exit(2);
  SetStacks(size_t{1} << 20);
  const size_t before = CountThreads();
  if (!RecordTo(path).ok()) _exit(3);
  Recorder* const recorder = Recorder::OfProcess();
  if (recorder == nullptr || !recorder->Add(OneCall())) _exit(4);
  FinishRecording();
  if (Recorder::OfProcess() != nullptr) _exit(5);
  while (CountThreads() > before) sched_yield();
  FinishRecording();
  _exit(LinesOf(path).size() == 2 ? 0 : 6);
}

TEST(RecordToTest, TakesNothingWithoutAThreadAndCostsNoneAtItsEnd) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(RecordWithAndWithoutAThread(PathOf("thread")),
              testing::ExitedWithCode(0), "");
}

// Catches the error lines of this process in a pipe, because no file has room
// for them.
class SaidToAPipe {
 public:
  SaidToAPipe() {
    if (pipe2(ends_, O_NONBLOCK) != 0 || dup2(ends_[1], STDERR_FILENO) == -1) {
      _exit(9);
    }
  }
  std::string Take() {
    char text[1024];
    const ssize_t size = read(ends_[0], text, sizeof(text));
    return std::string(text, size < 0 ? 0 : static_cast<size_t>(size));
  }

 private:
  int ends_[2];
};

constexpr char kTooLarge[] =
    ": write: the file is larger than the limit on file sizes: raise it "
    "(ulimit -f, RLIMIT_FSIZE)";

// Ends the recording when the disk is full. The remaining data is smaller than
// gzip's own buffer, so it is written at the close.
[[noreturn]] void EndWithoutRoom(const std::string& path) {
  SaidToAPipe said;
  Recorder recorder;
  auto file = RecordingFile::Open(path, &recorder);
  const rlimit limit = {SizeOf(path) + 4, SizeOf(path) + 4};
  setrlimit(RLIMIT_FSIZE, &limit);
  recorder.Add(OneCall());
  (*file)->Close();
  const std::string line =
      absl::StrCat("the end of the recording in ", path,
                   " could not be written", kTooLarge, "\n");
  _exit(absl::EndsWith(said.Take(), line) ? 0 : 1);
}

TEST(RecordingFileTest, AnEndThatHasNoRoomSaysWhy) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(EndWithoutRoom(PathOf("no-end")), testing::ExitedWithCode(0), "");
}

[[noreturn]] void BeginWithoutRoom(const std::string& path) {
  SaidToAPipe said;
  const rlimit limit = {0, 0};
  setrlimit(RLIMIT_FSIZE, &limit);
  Recorder recorder;
  const absl::Status status = RecordingFile::Open(path, &recorder).status();
  if (!said.Take().empty()) _exit(2);
  const std::string message =
      absl::StrCat("write a recording to ", path, kTooLarge);
  _exit(status.message() == message ? 0 : 1);
}

TEST(RecordingFileTest, ABeginThatHasNoRoomIsAnErrorAndNoLine) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(BeginWithoutRoom(PathOf("no-begin")), testing::ExitedWithCode(0),
              "");
}

TEST(RecordingFileTest, OnlyFilesAreWritten) {
  Recorder recorder;
  for (const char* path : {"/dev/full", "/no/such/folder/file", "/tmp"}) {
    const auto file = RecordingFile::Open(path, &recorder);
    EXPECT_FALSE(file.ok()) << path;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
  }
}

TEST(RecordingFileTest, TwoDoNotShareAFile) {
  const std::string path = PathOf("shared");
  Recorder recorder;
  const auto first = RecordingFile::Open(path, &recorder);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(RecordingFile::Open(path, &recorder).ok());
}

}  // namespace
}  // namespace record
}  // namespace penstock
