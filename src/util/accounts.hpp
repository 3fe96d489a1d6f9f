// What is known of users and groups: who can do what root can, and who is in a group.
#pragma once

#include <sys/types.h>

namespace dlock::util {

/// True of root, and of who owns "/".  In a user namespace, as in containers without root, also of
/// the number that stands for all users who have none there: the owner of what comes from the host,
/// as /tmp and /dev often do, is root there, and cannot be told from other users of the host, nor
/// from the container's own "nobody".
bool may_be_root(uid_t user);

bool is_member(uid_t user, gid_t group);

/// Whether `group` was made for this user alone, as useradd(8) does; where the umask is 002, it may
/// write to all that the user creates.  Users that only a directory service knows, and whose first
/// group it is, are overlooked.  Group 0 is never private: system users have it on Red Hat, and in
/// containers each user for whom nobody has chosen a group.
bool is_private_group(gid_t group, uid_t user);

}  // namespace dlock::util
