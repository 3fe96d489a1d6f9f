// Why.     The client library (3.8) believes the numbers in an answer.  If an answer of 20 bytes
//          counts 2^31 names, the library allocates 16 GB and looks for each of them.  It also
//          ignores that an answer ends too early: a list that it could not read is an empty list,
//          and an empty list is a free lock.
// How.     The library unpacks each answer with the functions of an iarchive that it gets from
//          create_buffer_iarchive().  The linker has it call unpack() below instead: CMakeLists.txt
//          says --wrap.  The library frees what that returns, with free(3).
// Damage.  A missing number is 0 and a missing text is empty.  A missing Bool is true, because the
//          only Bool that there is ends a list.  No function returns an error: the library would
//          leave the fields that follow without a value, and use them.  answer_is_damaged() tells.
// Too many. An assertion of the library fails if an answer is of no request, or has more parts than
//          its request.  The former is replaced by the answer to a ping, and the latter ends early.
#include "backends/zookeeper/unpack.hpp"

#include <zookeeper/recordio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dlock::zookeeper {
namespace {

// So many names of locks are longer than the longest answer that dlock accepts (session.cpp).
constexpr std::int32_t kMostItems = 2'000'000;
constexpr std::size_t kBytesOfItem = 4;  // at least: each begins with a number

// Messages that are of no request begin with one of these: of a watch, and the answers to a ping,
// to credentials, and to a list of watches.
constexpr std::array<std::int32_t, 4> kNoRequest{-1, -2, -4, -8};
constexpr std::array<unsigned char, 16> kPing{0xff, 0xff, 0xff, 0xfe};

thread_local Unpacked unpacked;
thread_local std::optional<std::size_t> expected = 0;  // parts

struct Bytes {
  const unsigned char* next;
  std::size_t left;
  std::size_t parts_left = 0;
};

Bytes& bytes_of(iarchive* archive) { return *static_cast<Bytes*>(archive->priv); }

// Null, and the answer is damaged, if there are fewer.
const unsigned char* take(iarchive* archive, std::size_t count) {
  Bytes& bytes = bytes_of(archive);
  if (bytes.left < count) {
    bytes.left = 0;
    unpacked.damaged = true;
    return nullptr;
  }
  bytes.left -= count;
  return std::exchange(bytes.next, bytes.next + count);
}

template <class Number>
int take_number(iarchive* archive, const char*, Number* value) {
  *value = 0;
  const unsigned char* const bytes = take(archive, sizeof *value);
  if (bytes == nullptr) return 0;
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < sizeof *value; ++i) out = out << 8U | bytes[i];
  *value = static_cast<Number>(out);
  return 0;
}

// In front of each part, and behind the last one: whether there is no more.
int take_bool(iarchive* archive, const char*, std::int32_t* value) {
  const unsigned char* const byte = take(archive, 1);
  std::size_t& parts = bytes_of(archive).parts_left;
  const bool ends = byte == nullptr || *byte != 0;
  if (ends != (parts == 0)) unpacked.damaged = true;
  *value = ends || parts == 0 ? 1 : 0;
  if (*value == 0) --parts;
  return 0;
}

// Bytes with their count in front of them, and a 0 behind them.  None for a count of -1, if there
// may be none.
char* take_block(iarchive* archive, std::int32_t& length, bool may_be_none) {
  take_number(archive, nullptr, &length);
  if (length == -1 && may_be_none) return nullptr;
  const auto count = static_cast<std::size_t>(length);
  const unsigned char* const bytes = take(archive, length < 0 ? SIZE_MAX : count);
  if (bytes == nullptr) length = 0;
  const auto size = static_cast<std::size_t>(length);
  auto* const out = static_cast<char*>(std::calloc(size + 1, 1));
  if (out == nullptr) {
    length = 0;
    unpacked.damaged = true;
  } else if (bytes != nullptr) {
    std::memcpy(out, bytes, size);
  }
  return out;
}

int take_text(iarchive* archive, const char*, char** text) {
  std::int32_t length = 0;
  *text = take_block(archive, length, false);
  return 0;
}

int take_data(iarchive* archive, const char*, buffer* data) {
  data->buff = take_block(archive, data->len, true);
  return 0;
}

int start_list(iarchive* archive, const char*, std::int32_t* count) {
  take_number(archive, nullptr, count);
  const std::size_t left = bytes_of(archive).left;
  if (*count >= 0 && *count <= kMostItems &&
      static_cast<std::size_t>(*count) <= left / kBytesOfItem) {
    return 0;
  }
  *count = 0;
  unpacked.damaged = true;
  return 0;
}

// Whether there is a request that the message may be the answer to, or it needs none.
bool is_expected(iarchive archive, Bytes message) {
  if (expected) return true;
  archive.priv = &message;
  std::int32_t request = 0;
  take_number(&archive, nullptr, &request);
  return std::find(kNoRequest.begin(), kNoRequest.end(), request) != kNoRequest.end();
}

int pass(iarchive*, const char*) { return 0; }

}  // namespace

Unpacked take_unpacked() { return std::exchange(unpacked, {}); }

void expect_answer(std::optional<std::size_t> parts) { expected = parts; }

bool answer_is_damaged() { return unpacked.damaged; }
void report_damage() { unpacked.damaged = true; }

extern "C" {
iarchive* unpack(char* buffer, int length) __asm__("__wrap_create_buffer_iarchive");

iarchive* unpack(char* buffer, int length) {
  ++unpacked.answers;
  auto* const archive = static_cast<iarchive*>(std::malloc(sizeof(iarchive)));
  auto* const bytes = static_cast<Bytes*>(std::malloc(sizeof(Bytes)));
  if (archive == nullptr || bytes == nullptr) std::abort();  // the library does not look
  *bytes = {reinterpret_cast<const unsigned char*>(buffer), static_cast<std::size_t>(length),
            expected.value_or(0)};
  *archive = {.start_record = pass,
              .end_record = pass,
              .start_vector = start_list,
              .end_vector = pass,
              .deserialize_Bool = take_bool,
              .deserialize_Int = take_number<std::int32_t>,
              .deserialize_Long = take_number<std::int64_t>,
              .deserialize_Buffer = take_data,
              .deserialize_String = take_text,
              .priv = bytes};
  if (!is_expected(*archive, *bytes)) {
    *bytes = {kPing.data(), kPing.size()};
    unpacked.damaged = true;
  }
  return archive;
}
}

}  // namespace dlock::zookeeper
