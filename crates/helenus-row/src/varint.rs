//! Variable-length integers in packed values: LEB128, signed ones zigzagged.
