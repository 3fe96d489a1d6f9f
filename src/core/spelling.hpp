// One spelling for a host or a path that can be written in several ways.
//
// It tells whether two texts mean the same place, without asking DNS or the file system.  So two
// names of one host stay different, as do two links to one file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/url.hpp"

namespace dlock {

/// The name in lower case without a dot at its end, an address as inet_ntop() writes it: "DB1." is
/// "db1", "127.1" is "127.0.0.1", "0:0::1" is "::1".
HostPort canonical(HostPort host);

/// "db1:3306,db2:3306": each in its canonical spelling, sorted, none twice.
std::string canonical_list(const std::vector<HostPort>& hosts);

/// An absolute path without "." and superfluous slashes.  ".." stays: what it means is for the file
/// system to say, where links are in the path.
std::string canonical_path(std::string_view path);

}  // namespace dlock
