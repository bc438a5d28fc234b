"""`baton bench`: how fast the product is, as ratios to a yardstick measured in the same run on the same server."""
