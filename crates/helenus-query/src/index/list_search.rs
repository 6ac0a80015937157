//! Searches of posting lists that are sent to the owner of the lists.

/// A search of posting lists on the node that owns them.
#[derive(Clone, Debug)]
pub struct ListSearch {
    /// The number of the index's hidden table.
    pub index: u32,
    /// The lists, in the order of reading.
    pub lists: Vec<i64>,
    /// The query vector. It has length 1 if the measure is cosine.
    pub vector: Vec<f32>,
    /// Version of the schema of the search's plan. The owner must have this version or a newer one.
    pub schema_version: u64,
}
