#include "backends/zookeeper/call.hpp"

#include <array>
#include <string_view>

#include "util/exchange.hpp"

namespace dlock::zookeeper {
namespace {

void finish(Reply& reply, int code) {
  reply.code = code;
  reply.done = true;
  if (!reply.asked.empty()) {
    util::log_exchange(reply.server, reply.asked, zerror(code), reply.sent);
  }
}

// The library calls back exactly once for each request that it has taken, if only to say that the
// session was closed.  The box is a reference of its own until then.
class Box {
 public:
  Box(zhandle_t* handle, const char* doing, const std::string& path)
      : call_(std::make_shared<Reply>()), box_(std::make_unique<Call>(call_)) {
    call_->sent = Clock::now();
    if (!util::exchanges_shown()) return;
    call_->server = current_server(handle);
    call_->asked = doing + (' ' + path);
  }
  const void* data() const { return box_.get(); }
  void set_text(const std::string& text) const { call_->text = text; }
  // Room for the answers to the parts of a request.
  zoo_op_result_t* parts(std::size_t count) const {
    call_->parts.resize(count);
    return call_->parts.data();
  }
  Call taken(int code) {
    if (code == ZOK) {
      (void)box_.release();
    } else {
      finish(*call_, code);
    }
    return call_;
  }

 private:
  Call call_;
  std::unique_ptr<Call> box_;
};

Call open_box(int code, const void* data) {
  const std::unique_ptr<Call> box(static_cast<Call*>(const_cast<void*>(data)));
  finish(**box, code);
  return *box;
}

void done_void(int code, const void* data) { open_box(code, data); }

void done_string(int code, const char*, const void* data) { open_box(code, data); }

void done_stat(int code, const Stat* stat, const void* data) {
  const Call call = open_box(code, data);
  if (call->ok() && stat != nullptr) call->stat = *stat;
}

// The server appends a number to the path of a sequential node, and nothing to others.
void done_create(int code, const char* path, const Stat* stat, const void* data) {
  const std::string& asked = (*static_cast<const Call*>(data))->text;
  const bool fits = path != nullptr && std::string_view(path).starts_with(asked);
  const Call call = open_box(code == ZOK && !fits ? ZMARSHALLINGERROR : code, data);
  if (!call->ok()) return;
  call->text = path;
  if (stat != nullptr) call->stat = *stat;
}

void done_data(int code, const char* value, int length, const Stat* stat, const void* data) {
  const Call call = open_box(code, data);
  if (!call->ok()) return;
  if (value != nullptr && length > 0) call->text.assign(value, static_cast<std::size_t>(length));
  if (stat != nullptr) call->stat = *stat;
}

void done_names(int code, const String_vector* names, const void* data) {
  const Call call = open_box(code, data);
  if (!call->ok() || names == nullptr) return;
  for (std::int32_t i = 0; i < names->count; ++i) {
    if (names->data[i] != nullptr) call->names.emplace_back(names->data[i]);
  }
}

int mode_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::ephemeral:
      return ZOO_EPHEMERAL;
    case NodeKind::ephemeral_sequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
    case NodeKind::container:
      return ZOO_CONTAINER;
    case NodeKind::persistent:
      break;
  }
  return ZOO_PERSISTENT;
}

const ACL_vector* acl_of(bool auth) { return auth ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE; }

// With no copy of the texts of `step`.
zoo_op_t op_of(const Step& step, bool auth) {
  zoo_op_t op;
  const char* const path = step.path.c_str();
  const int size = static_cast<int>(step.data.size());
  switch (step.kind) {
    case Step::Kind::check:
      zoo_check_op_init(&op, path, step.version);
      break;
    case Step::Kind::create:
      zoo_create_op_init(&op, path, step.data.data(), size, acl_of(auth),
                         mode_of(NodeKind::persistent), nullptr, 0);
      break;
    case Step::Kind::remove:
      zoo_delete_op_init(&op, path, step.version);
      break;
    case Step::Kind::set:
      zoo_set_op_init(&op, path, step.data.data(), size, step.version, nullptr);
      break;
  }
  return op;
}

std::string shown(const std::vector<Step>& steps) {
  std::string out;
  for (const Step& step : steps) out += (out.empty() ? "" : ", ") + zookeeper::shown(step);
  return out;
}

}  // namespace

std::string shown(const Step& step) {
  constexpr std::array<const char*, 4> kWords{"check ", "create ", "delete ", "set "};
  return kWords.at(static_cast<std::size_t>(step.kind)) + step.path;
}

std::string current_server(zhandle_t* handle) {
  const char* const server = zoo_get_current_server(handle);
  return std::string("zookeeper ") + (server == nullptr ? "" : server);
}

Call create(zhandle_t* handle, const std::string& path, const std::string& data, NodeKind kind,
            bool auth) {
  Box box(handle, "create", path);
  box.set_text(path);
  return box.taken(zoo_acreate2(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                                acl_of(auth), mode_of(kind), done_create, box.data()));
}

Call get(zhandle_t* handle, const std::string& path, Watch watch) {
  Box box(handle, "get", path);
  return box.taken(
      zoo_aget(handle, path.c_str(), watch == Watch::yes ? 1 : 0, done_data, box.data()));
}

Call get_children(zhandle_t* handle, const std::string& path, Watch watch) {
  Box box(handle, "list", path);
  return box.taken(
      zoo_aget_children(handle, path.c_str(), watch == Watch::yes ? 1 : 0, done_names, box.data()));
}

Call exists(zhandle_t* handle, const std::string& path, Watch watch) {
  Box box(handle, "exists", path);
  return box.taken(
      zoo_aexists(handle, path.c_str(), watch == Watch::yes ? 1 : 0, done_stat, box.data()));
}

Call set(zhandle_t* handle, const std::string& path, const std::string& data, int version) {
  Box box(handle, "set", path);
  return box.taken(zoo_aset(handle, path.c_str(), data.data(), static_cast<int>(data.size()),
                            version, done_stat, box.data()));
}

Call remove(zhandle_t* handle, const std::string& path, int version) {
  Box box(handle, "delete", path);
  return box.taken(zoo_adelete(handle, path.c_str(), version, done_void, box.data()));
}

Call all_or_none(zhandle_t* handle, const std::vector<Step>& steps, bool auth) {
  std::vector<zoo_op_t> ops;
  for (const Step& step : steps) ops.push_back(op_of(step, auth));
  Box box(handle, "at once:", util::exchanges_shown() ? shown(steps) : "");
  return box.taken(zoo_amulti(handle, static_cast<int>(ops.size()), ops.data(),
                              box.parts(ops.size()), done_void, box.data()));
}

Call prove(zhandle_t* handle, const std::string& path) {
  return all_or_none(handle, {{.kind = Step::Kind::check, .path = path}}, false);
}

Call remove_both(zhandle_t* handle, const std::string& one, const std::string& other) {
  return all_or_none(handle, {{Step::Kind::remove, one}, {Step::Kind::remove, other}}, false);
}

Call sync(zhandle_t* handle, const std::string& path) {
  Box box(handle, "sync", path);
  return box.taken(zoo_async(handle, path.c_str(), done_string, box.data()));
}

}  // namespace dlock::zookeeper
