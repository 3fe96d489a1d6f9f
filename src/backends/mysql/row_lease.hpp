// What mysql-row has besides the lease of mysql: a locked row.
#pragma once

#include <memory>

#include "backends/mysql/lease.hpp"
#include "backends/mysql/place.hpp"
#include "core/backend.hpp"
#include "core/patience.hpp"

namespace dlock::mysql {

/// Locks the row of the key in the table of rows by a transaction that lasts as long as the lease
/// that it returns: in share mode unless `request` is exclusive.  So other programs that lock that
/// row are kept out, too, and keep us out.  They are waited for while `lease` is renewed.  If
/// that fails, what is left of it is the caller's to remove.  Errors as of Backend::acquire().
Result<std::unique_ptr<Lease>> lock_row(const std::shared_ptr<const Place>& place,
                                        std::unique_ptr<Lease> lease, const Request& request,
                                        const Wait& wait, Patience& patience);

}  // namespace dlock::mysql
