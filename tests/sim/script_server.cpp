// The conversions between Redis and Lua are those of
// https://redis.io/docs/latest/develop/programmability/lua-api/
#include "script_server.hpp"

#include <array>
#include <lua.hpp>
#include <set>
#include <stdexcept>

namespace dlock::sim {
namespace {

using redis::Reply;

void push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

std::string text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return {text, size};
}

void push_field(lua_State* lua, const char* name, std::string_view text) {
  lua_newtable(lua);
  push_text(lua, text);
  lua_setfield(lua, -2, name);
}

void push(lua_State* lua, const Reply& reply, bool is_status) {
  switch (reply.kind) {
    case Reply::Kind::nil:
      lua_pushboolean(lua, 0);
      return;
    case Reply::Kind::integer:
      lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
      return;
    case Reply::Kind::text:
      if (is_status) return push_field(lua, "ok", reply.text);
      return push_text(lua, reply.text);
    case Reply::Kind::error:
      return push_field(lua, "err", reply.text);
    case Reply::Kind::array:
      lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
      for (std::size_t i = 0; i < reply.items.size(); ++i) {
        push(lua, reply.items[i], false);
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
      }
  }
}

// What is on top of the stack.
Reply pop(lua_State* lua) {
  Reply out;
  switch (lua_type(lua, -1)) {
    case LUA_TNUMBER:
      out.kind = Reply::Kind::integer;
      out.integer = static_cast<std::int64_t>(lua_tonumber(lua, -1));
      break;
    case LUA_TSTRING:
      out.kind = Reply::Kind::text;
      out.text = text_at(lua, -1);
      break;
    case LUA_TBOOLEAN:
      if (lua_toboolean(lua, -1) == 0) break;
      out.kind = Reply::Kind::integer;
      out.integer = 1;
      break;
    case LUA_TTABLE: {
      for (const char* const name : {"err", "ok"}) {
        lua_getfield(lua, -1, name);
        if (lua_isstring(lua, -1) != 0) {
          out.kind = *name == 'e' ? Reply::Kind::error : Reply::Kind::text;
          out.text = text_at(lua, -1);
        }
        lua_pop(lua, 1);
        if (out.kind != Reply::Kind::nil) break;
      }
      if (out.kind != Reply::Kind::nil) break;
      out.kind = Reply::Kind::array;
      for (int i = 1;; ++i) {
        lua_rawgeti(lua, -1, i);
        if (lua_isnil(lua, -1)) break;
        out.items.push_back(pop(lua));
      }
      lua_pop(lua, 1);
      break;
    }
    default:
      break;
  }
  lua_pop(lua, 1);
  return out;
}

std::vector<std::string> words_of(lua_State* lua) {
  std::vector<std::string> out;
  out.reserve(static_cast<std::size_t>(lua_gettop(lua)));
  for (int i = 1; i <= lua_gettop(lua); ++i) {
    const int type = lua_type(lua, i);
    if (type == LUA_TNUMBER && lua_tonumber(lua, i) == static_cast<double>(lua_tointeger(lua, i))) {
      out.push_back(std::to_string(lua_tointeger(lua, i)));
    } else if (type == LUA_TNUMBER) {
      std::array<char, 64> digits{};
      std::snprintf(digits.data(), digits.size(), "%.17g", lua_tonumber(lua, i));
      out.emplace_back(digits.data());
    } else if (type == LUA_TSTRING) {
      out.push_back(text_at(lua, i));
    } else {
      return {};
    }
  }
  return out;
}

// One Lua for all servers.
class Lua {
 public:
  Lua() : lua_(luaL_newstate()) {
    luaL_openlibs(lua_);
    lua_gc(lua_, LUA_GCSETPAUSE, kPause);
    lua_newtable(lua_);
    add("call", [](lua_State* lua) { return run_command(lua) ? 1 : lua_error(lua); });
    add("pcall", [](lua_State* lua) {
      run_command(lua);
      return 1;
    });
    lua_setglobal(lua_, "redis");
  }
  ~Lua() { lua_close(lua_); }
  Lua(const Lua&) = delete;
  Lua& operator=(const Lua&) = delete;

  Reply run(RedisModel& model, std::string_view text, std::span<const std::string> keys,
            std::span<const std::string> arguments) {
    model_ = &model;
    const auto [found, is_new] = compiled_.emplace(text.data(), 0);
    if (is_new) {
      if (luaL_loadbuffer(lua_, text.data(), text.size(), "script") != 0) {
        throw std::logic_error(text_at(lua_, -1));
      }
      found->second = luaL_ref(lua_, LUA_REGISTRYINDEX);
    }
    set_texts("KEYS", keys);
    set_texts("ARGV", arguments);
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, found->second);
    if (lua_pcall(lua_, 0, 1, 0) == 0 || lua_isstring(lua_, -1) == 0) return pop(lua_);
    Reply fault{.kind = Reply::Kind::error, .text = "ERR " + text_at(lua_, -1), .items = {}};
    lua_pop(lua_, 1);
    return fault;
  }

 private:
  static constexpr int kPause = 1'000;  // %, of the memory in use: scripts leave little behind

  void add(const char* name, lua_CFunction function) {
    lua_pushlightuserdata(lua_, this);
    lua_pushcclosure(lua_, function, 1);
    lua_setfield(lua_, -2, name);
  }
  // No destructor of ours is skipped when Lua jumps out of a function that raises an error: the
  // words are gone by then.
  static bool run_command(lua_State* lua) {
    const std::vector<std::string> words = words_of(lua);
    if (words.empty()) {
      push_field(lua, "err", "ERR Lua redis lib command arguments must be strings or integers");
      return false;
    }
    const auto* const self = static_cast<const Lua*>(lua_touserdata(lua, lua_upvalueindex(1)));
    const RedisModel::Answer answer = self->model_->call(words);
    push(lua, answer.reply, answer.is_status);
    return !answer.reply.is_error();
  }
  void set_texts(const char* name, std::span<const std::string> texts) {
    lua_createtable(lua_, static_cast<int>(texts.size()), 0);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      push_text(lua_, texts[i]);
      lua_rawseti(lua_, -2, static_cast<int>(i) + 1);
    }
    lua_setglobal(lua_, name);
  }

  lua_State* const lua_;
  RedisModel* model_ = nullptr;          // of the script that runs
  std::map<const char*, int> compiled_;  // where Lua has it
};

}  // namespace

std::string_view with_bug(std::string_view text, const ScriptBug& bug) {
  static std::set<std::string> all;
  std::string out(text);
  std::size_t at = out.find(bug.from);
  if (at == std::string::npos) throw std::logic_error("no such text: " + std::string(bug.from));
  for (; at != std::string::npos; at = out.find(bug.from, at + bug.to.size())) {
    out.replace(at, bug.from.size(), bug.to);
  }
  return *all.insert(std::move(out)).first;
}

Reply ScriptServer::eval(std::string_view text, std::span<const std::string> keys,
                         std::span<const std::string> arguments) {
  static Lua lua;
  return lua.run(model_, text, keys, arguments);
}

}  // namespace dlock::sim
