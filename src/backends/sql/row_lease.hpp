// What the row methods have besides a lease: a locked row.
#pragma once

#include <memory>

#include "backends/sql/database.hpp"
#include "core/backend.hpp"
#include "core/patience.hpp"

namespace dlock::sql {

/// Locks the row of the key in the table of rows by a transaction that lasts as long as the lease
/// that it returns: in share mode unless `request` is exclusive.  So other programs that lock that
/// row are kept out, too, and keep us out.  They are waited for while `lease` is renewed.  If that
/// fails, the lease is released as far as that is possible.  Errors as of Backend::acquire().
Result<std::unique_ptr<Lease>> lock_row(const std::shared_ptr<const Database>& database,
                                        std::unique_ptr<Lease> lease, const Request& request,
                                        const Wait& wait, Patience& patience);

}  // namespace dlock::sql
