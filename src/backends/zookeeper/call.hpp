// One request to the servers, and its answer.
#pragma once

#include <zookeeper/zookeeper.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "util/clock.hpp"

namespace dlock::zookeeper {

struct Reply {
  bool done = false;
  int code = ZOK;                      // a ZOO_ERRORS
  Deadline sent;                       // or a little earlier
  std::string text;                    // the path of a node that was created, the data of one
  std::vector<std::string> names;      // of children
  Stat stat{};                         // of create, get, exists and set
  std::vector<zoo_op_result_t> parts;  // of all_or_none(); written by the library
  std::string server, asked;           // for -vv; empty without

  bool ok() const { return code == ZOK; }
  /// Whether all_or_none() did nothing because this step, counted from 0, failed with `error`.
  bool failed_at(std::size_t step, int error) const {
    return code == error && step < parts.size() && parts[step].err == error;
  }
  /// It is not known whether the request was carried out.
  bool in_doubt() const {
    // The library gives ZRUNTIMEINCONSISTENCY to a request whose answer it does not expect any
    // more, after a connection was lost between two requests; ZMARSHALLINGERROR to one whose answer
    // it cannot read; and ZCLOSING to one that was under way when its handle was closed.
    return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZRUNTIMEINCONSISTENCY ||
           code == ZMARSHALLINGERROR || code == ZCLOSING;
  }
};
using Call = std::shared_ptr<Reply>;

/// "zookeeper 10.0.0.7:2181", for -vv: the server that `handle` is connected to now.
std::string current_server(zhandle_t* handle);

/// Whether the server is to tell, once, when the node (or the list of children) changes.
enum class Watch { no, yes };

enum class NodeKind { ephemeral, ephemeral_sequential, container, persistent };

// Each is sent at once, or when there is a connection.  `auth`: the node will be open only to who
// creates it.

Call create(zhandle_t* handle, const std::string& path, const std::string& data, NodeKind kind,
            bool auth);
Call get(zhandle_t* handle, const std::string& path, Watch watch);
Call get_children(zhandle_t* handle, const std::string& path, Watch watch);
Call exists(zhandle_t* handle, const std::string& path, Watch watch);
/// -1, here and below: whatever its version is.
Call set(zhandle_t* handle, const std::string& path, const std::string& data, int version = -1);
Call remove(zhandle_t* handle, const std::string& path, int version);
/// Answered by the leader, also by one that is cut off and leads nobody any more.
Call sync(zhandle_t* handle, const std::string& path);

struct Step {
  enum class Kind { check, create, remove, set };
  Kind kind;  // check: fails if the node has another version; create: a persistent node
  std::string path;
  std::string data = {};
  int version = -1;
};
/// "delete /dlock/job".
std::string shown(const Step& step);
/// Does all of the steps at once, or nothing if one of them fails.
Call all_or_none(zhandle_t* handle, const std::vector<Step>& steps, bool auth);
Call remove_both(zhandle_t* handle, const std::string& one, const std::string& other);
/// Changes nothing.  It is answered as a write is: when a majority of the servers has it.  Fails if
/// the node is not there.
Call prove(zhandle_t* handle, const std::string& path);

}  // namespace dlock::zookeeper
