// hiredis' parser of the Redis protocol, made to build our Reply and to refuse endless replies.
#pragma once

#include <memory>

#include "backends/redis/reply.hpp"

struct redisReader;

namespace dlock::redis {

class Reader {
 public:
  Reader();
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  enum class Got { nothing, reply, garbage };

  void feed(const char* bytes, std::size_t count);
  /// The next whole reply of what was fed.  After garbage nothing can be read any more: what the
  /// server speaks is not the protocol, or a reply is larger than any that we ask for.
  Got next(Reply& reply);

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> reader_;
  std::size_t elements_ = 0;  // of the reply that is being read
  std::size_t fed_ = 0;       // bytes since the last whole reply
};

}  // namespace dlock::redis
