-- Removes what an acquire() has left that ends without a grant.
DELETE FROM {locks} WHERE owner IN ({owners})
