#include "backends/redis/reader.hpp"

#include <hiredis/read.h>

namespace dlock::redis {
namespace {

// No reply to dlock comes near; a list of locks is asked for in portions.
constexpr std::size_t kMostBytes = 16 * 1024 * 1024;
constexpr std::size_t kMostElements = 200'000;
constexpr int kMostNested = 8;  // as in hiredis 0.x; 1.x has no limit

// Where the value of this task belongs; a new root if it has no parent.
Reply* place_of(const redisReadTask* task) {
  if (task->parent == nullptr) return new Reply;
  auto* parent = static_cast<Reply*>(task->parent->obj);
  return &parent->items[static_cast<std::size_t>(task->idx)];
}

// hiredis 1.x also reads the types of RESP3, which dlock never asks for: it makes texts and arrays
// of most of them.  Null is "out of memory" to the parser, and ends the reading.
void* make_text(const redisReadTask* task, char* bytes, std::size_t length) {
  if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS &&
      task->type != REDIS_REPLY_ERROR) {
    return nullptr;
  }
  Reply* reply = place_of(task);
  reply->kind = task->type == REDIS_REPLY_ERROR ? Reply::Kind::error : Reply::Kind::text;
  reply->text.assign(bytes, length);
  return reply;
}

// To free a reply is a call within a call for each array in an array: too many end the process.
bool too_deep(const redisReadTask* task) {
  int depth = 0;
  while ((task = task->parent) != nullptr && depth < kMostNested) ++depth;
  return depth == kMostNested;
}

// The count is an int in hiredis 0.x, a size_t in 1.x.
template <class Count>
void* make_array(const redisReadTask* task, Count count) {
  if (task->type != REDIS_REPLY_ARRAY || too_deep(task)) return nullptr;
  auto& elements = *static_cast<std::size_t*>(task->privdata);
  elements += static_cast<std::size_t>(count);
  if (static_cast<std::size_t>(count) > kMostElements || elements > kMostElements) return nullptr;
  Reply* reply = place_of(task);
  reply->kind = Reply::Kind::array;
  reply->items.resize(static_cast<std::size_t>(count));
  return reply;
}

void* make_integer(const redisReadTask* task, long long value) {
  Reply* reply = place_of(task);
  reply->kind = Reply::Kind::integer;
  reply->integer = value;
  return reply;
}

// A null text or array is nil in RESP2; RESP3 has a type of its own for it.
void* make_nil(const redisReadTask* task) {
  if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_ARRAY) return nullptr;
  return place_of(task);
}

void free_root(void* root) { delete static_cast<Reply*>(root); }

// The functions exist in hiredis 1.x only.
template <class Functions>
void refuse_newer(Functions& functions) {
  if constexpr (requires { functions.createDouble; }) {
    functions.createDouble = [](const redisReadTask*, double, char*, std::size_t) -> void* {
      return nullptr;
    };
    functions.createBool = [](const redisReadTask*, int) -> void* { return nullptr; };
  }
}

redisReplyObjectFunctions make_functions() {
  redisReplyObjectFunctions functions{};
  functions.createString = make_text;
  functions.createArray = make_array;
  functions.createInteger = make_integer;
  functions.createNil = make_nil;
  functions.freeObject = free_root;
  refuse_newer(functions);
  return functions;
}

}  // namespace

void Reader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

Reader::Reader() {
  static redisReplyObjectFunctions functions = make_functions();
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (reader_) reader_->privdata = &elements_;
}

Reader::~Reader() = default;

void Reader::feed(const char* bytes, std::size_t count) {
  fed_ += count;
  if (reader_) redisReaderFeed(reader_.get(), bytes, count);
}

Reader::Got Reader::next(Reply& reply) {
  void* root = nullptr;
  if (!reader_ || redisReaderGetReply(reader_.get(), &root) != 0) return Got::garbage;
  if (root == nullptr) return fed_ > kMostBytes ? Got::garbage : Got::nothing;
  const std::unique_ptr<Reply> owned(static_cast<Reply*>(root));
  reply = std::move(*owned);
  elements_ = 0;
  fed_ = 0;
  return Got::reply;
}

}  // namespace dlock::redis
