//! One clustering value as ordered bytes.
