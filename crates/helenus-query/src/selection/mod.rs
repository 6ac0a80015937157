//! The SELECT clause: typed selectors, evaluated over rows and groups.
