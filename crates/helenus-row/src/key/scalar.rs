//! Ordered bytes of scalar values.
