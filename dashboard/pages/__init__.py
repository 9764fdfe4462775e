"""One file per page; each has a `page` that draws it."""
