"""Arrays of all kinds, in blocks, in threads, on devices: what the mathematics is computed with."""
