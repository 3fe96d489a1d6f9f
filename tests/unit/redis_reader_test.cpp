#include <gtest/gtest.h>

#include "backends/redis/reader.hpp"

namespace dlock::redis {
namespace {

using Got = Reader::Got;

struct Outcome {
  Got got;
  Reply reply;
};

Outcome read(const std::string& bytes, std::size_t chunk) {
  Reader reader;
  Outcome out{Got::nothing, {}};
  for (std::size_t at = 0; at < bytes.size() && out.got == Got::nothing; at += chunk) {
    reader.feed(bytes.data() + at, std::min(chunk, bytes.size() - at));
    out.got = reader.next(out.reply);
  }
  return out;
}

TEST(RedisReader, ReadsEveryKindOfReplyInPiecesOfAnySize) {
  const std::string binary("a\r\n\0b", 5);
  const std::string whole =
      "*6\r\n+OK\r\n-ERR no\r\n:-42\r\n$5\r\n" + binary + "\r\n$-1\r\n*2\r\n*0\r\n*-1\r\n";
  for (const std::size_t chunk : {1u, 2u, 3u, 7u, 1000u}) {
    const Outcome out = read(whole, chunk);
    ASSERT_EQ(out.got, Got::reply) << chunk;
    ASSERT_EQ(out.reply.items.size(), 6u);
    EXPECT_EQ(out.reply.at(0).text, "OK");
    EXPECT_EQ(out.reply.at(0).kind, Reply::Kind::text);
    EXPECT_TRUE(out.reply.at(1).is_error());
    EXPECT_EQ(out.reply.at(2).integer, -42);
    EXPECT_EQ(out.reply.at(3).text, binary);
    EXPECT_EQ(out.reply.at(4).kind, Reply::Kind::nil);
    EXPECT_EQ(out.reply.at(5).at(0).kind, Reply::Kind::array);
    EXPECT_EQ(out.reply.at(5).at(1).kind, Reply::Kind::nil);
  }
}

TEST(RedisReader, GivesMergedRepliesOneByOne) {
  Reader reader;
  const std::string bytes = ":1\r\n:2\r\n:3";
  reader.feed(bytes.data(), bytes.size());
  Reply reply;
  EXPECT_EQ(reader.next(reply), Got::reply);
  EXPECT_EQ(reply.integer, 1);
  EXPECT_EQ(reader.next(reply), Got::reply);
  EXPECT_EQ(reply.integer, 2);
  EXPECT_EQ(reader.next(reply), Got::nothing);
  reader.feed("\r\n", 2);
  EXPECT_EQ(reader.next(reply), Got::reply);
  EXPECT_EQ(reply.integer, 3);
}

TEST(RedisReader, WhatIsNotTheProtocolIsGarbageForGood) {
  std::string nested;
  for (int i = 0; i < 1'000'000; ++i) nested += "*1\r\n";
  for (const std::string& bytes :
       {std::string("HTTP/1.1 400 Bad Request\r\n"), std::string("SSH-2.0\r\n"),
        std::string("\0\r\n", 3), std::string("$-2\r\n"), std::string("$x\r\n"),
        std::string("*-5\r\n"), std::string("*2147483647\r\n"),
        std::string("*9223372036854775807\r\n"), std::string("$9223372036854775808\r\n"),
        std::string(":99999999999999999999\r\n"), std::string("*200001\r\n"),
        // RESP3, which dlock never asks for; hiredis 1.x knows it.
        std::string("%1\r\n+a\r\n+b\r\n"), std::string("%0\r\n"), std::string("~1\r\n+a\r\n"),
        std::string(">1\r\n+a\r\n"), std::string("_\r\n"), std::string("#t\r\n"),
        std::string(",1.5\r\n"), std::string("(12345678901234567890\r\n"),
        std::string("=5\r\ntxt:a\r\n"), std::string("*1\r\n%1\r\n+a\r\n+b\r\n"), nested}) {
    for (const std::size_t chunk : {std::size_t{1024}, bytes.size()}) {
      Reader reader;
      Got got = Got::nothing;
      Reply reply;
      for (std::size_t at = 0; at < bytes.size() && got == Got::nothing; at += chunk) {
        reader.feed(bytes.data() + at, std::min(chunk, bytes.size() - at));
        got = reader.next(reply);
      }
      EXPECT_EQ(got, Got::garbage) << bytes.substr(0, 30);
      reader.feed(":1\r\n", 4);
      EXPECT_EQ(reader.next(reply), Got::garbage) << bytes.substr(0, 30);
    }
  }
}

TEST(RedisReader, AnEndlessReplyIsGarbageAfterSixteenMegabytes) {
  for (const std::string start : {"$2147483647\r\n", "+", "$-"}) {
    Reader reader;
    reader.feed(start.data(), start.size());
    const std::string block(4 * 1024 * 1024, '1');
    Reply reply;
    int blocks = 0;
    while (reader.next(reply) == Got::nothing && blocks < 1'000) {
      reader.feed(block.data(), block.size());
      ++blocks;
    }
    EXPECT_LE(blocks, 5) << start;
  }
}

TEST(RedisReader, ManySmallArraysTogetherAreTooManyToo) {
  std::string bytes = "*1000\r\n";
  for (int i = 0; i < 1'000; ++i) {
    bytes += "*1000\r\n";
    for (int j = 0; j < 1'000; ++j) bytes += ":1\r\n";
  }
  EXPECT_EQ(read(bytes, 16 * 1024).got, Got::garbage);
}

TEST(RedisReader, ALongReplyThatIsAllowedIsRead) {
  std::string bytes = "*100000\r\n";
  for (int i = 0; i < 100'000; ++i) bytes += "$3\r\nabc\r\n";
  const Outcome out = read(bytes, 16 * 1024);
  ASSERT_EQ(out.got, Got::reply);
  EXPECT_EQ(out.reply.items.size(), 100'000u);
}

}  // namespace
}  // namespace dlock::redis
