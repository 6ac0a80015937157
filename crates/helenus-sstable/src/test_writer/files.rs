//! Writes the components of an SSTable.

use std::sync::Arc;

use bytes::Bytes;

use super::data::{encode, ordinal, put_values};
use super::{compress, put_short_bytes, put_vint, put_vint_bytes};
use crate::clustering::BoundKind;
use crate::data::Event;
use crate::file_name::{COMPRESSION_INFO, CRC, DATA, DIGEST, Descriptor, STATISTICS, SstableId, TOC};
use crate::folder::MemoryFolder;
use crate::statistics::SerializationHeader;
use crate::storage::Compressor;
use crate::table::SsTable;
use crate::version::Version;

const TIMESTAMP_EPOCH_US: i64 = 1_442_880_000_000_000;
const DELETION_TIME_EPOCH_S: i64 = 1_442_880_000;
const CRC_CHUNK_BYTES: usize = 100;

#[derive(Clone, Copy, Debug)]
pub struct Compression {
    pub compressor: Compressor,
    pub chunk_len: usize,
    pub max_compressed_len: i32,
}

/// Properties of an SSTable but its rows. Types are names of classes.
#[derive(Clone, Debug)]
pub struct TestTable {
    pub version: Version,
    pub min_timestamp_us: i64,
    pub min_local_deletion_s: i64,
    pub min_ttl_s: i32,
    pub key: &'static str,
    pub clustering: Vec<&'static str>,
    pub static_columns: Vec<(String, &'static str)>,
    pub regular_columns: Vec<(String, &'static str)>,
    pub compression: Option<Compression>,
    /// True if a chunk without data ends the file, as after a compaction.
    pub has_empty_chunk: bool,
}

impl TestTable {
    pub fn new(version: Version) -> TestTable {
        TestTable {
            version,
            min_timestamp_us: TIMESTAMP_EPOCH_US,
            min_local_deletion_s: DELETION_TIME_EPOCH_S,
            min_ttl_s: 0,
            key: "UTF8Type",
            clustering: vec!["Int32Type"],
            static_columns: Vec::new(),
            regular_columns: vec![("v".to_owned(), "Int32Type")],
            compression: None,
            has_empty_chunk: false,
        }
    }

    pub fn descriptor(&self) -> Descriptor {
        Descriptor {
            version: self.version,
            id: SstableId::Sequence(1),
        }
    }

    /// Returns the part of the header (`SerializationHeader.Serializer.serialize`).
    pub fn header_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        put_vint(
            &mut out,
            self.min_timestamp_us.wrapping_sub(TIMESTAMP_EPOCH_US) as u64,
        );
        let local_deletion = (self.min_local_deletion_s - DELETION_TIME_EPOCH_S) as i32;
        put_vint(&mut out, i64::from(local_deletion) as u64);
        put_vint(&mut out, self.min_ttl_s as u64);
        put_vint_bytes(&mut out, self.key.as_bytes());
        put_vint(&mut out, self.clustering.len() as u64);
        for class in &self.clustering {
            put_vint_bytes(&mut out, class.as_bytes());
        }
        for columns in [&self.static_columns, &self.regular_columns] {
            put_vint(&mut out, columns.len() as u64);
            for (name, class) in columns {
                put_vint_bytes(&mut out, name.as_bytes());
                put_vint_bytes(&mut out, class.as_bytes());
            }
        }
        out.into()
    }

    pub fn header(&self) -> SerializationHeader {
        SerializationHeader::decode(self.version, &self.header_bytes()).unwrap()
    }

    /// Returns the part of the statistics (`StatsMetadata.StatsMetadataSerializer.serialize`), with a fixed value in each field.
    fn summary_bytes(&self) -> Vec<u8> {
        let version = self.version;
        let mut out = Vec::new();
        for _ in 0..2 {
            out.extend(1_i32.to_be_bytes());
            out.extend([0; 16]);
        }
        out.extend([0; 12]);
        out.extend(1_000_i64.to_be_bytes());
        out.extend(2_000_i64.to_be_bytes());
        out.extend(3_000_i32.to_be_bytes());
        let max_local_deletion = if version.has_uint_deletion_time() {
            u32::MAX
        } else {
            i32::MAX as u32
        };
        out.extend(max_local_deletion.to_be_bytes());
        out.extend(5_i32.to_be_bytes());
        out.extend(6_i32.to_be_bytes());
        out.extend(0.5_f64.to_be_bytes());
        out.extend(100_i32.to_be_bytes());
        out.extend(2_i32.to_be_bytes());
        out.extend(vec![1; if version.has_uint_deletion_time() { 24 } else { 32 }]);
        out.extend(3_i32.to_be_bytes());
        out.extend(7_i64.to_be_bytes());
        if version.has_improved_min_max() {
            put_vint(&mut out, self.clustering.len() as u64);
            for class in &self.clustering {
                put_vint_bytes(&mut out, class.as_bytes());
            }
            for kind in [BoundKind::InclusiveStart, BoundKind::InclusiveEnd] {
                out.push(ordinal(kind));
                out.extend(0_u16.to_be_bytes());
                put_values(&mut out, &[], &[]);
            }
        } else {
            for value in [b"min", b"max"] {
                out.extend(1_i32.to_be_bytes());
                put_short_bytes(&mut out, value);
            }
        }
        out.push(1);
        out.extend(8_i64.to_be_bytes());
        out.extend(9_i64.to_be_bytes());
        out.extend([0; 12]);
        out.extend(1_i32.to_be_bytes());
        out.extend([0; 24]);
        if version >= Version::Na {
            out.push(1);
            out.extend([0x11; 16]);
            out.push(1);
        }
        if version.has_originating_host_id() {
            out.push(1);
            out.extend([0x22; 16]);
        }
        if version.has_key_range() {
            out.push(1);
            put_vint_bytes(&mut out, b"first");
            put_vint_bytes(&mut out, b"last");
            out.extend(0.25_f64.to_be_bytes());
        }
        out
    }

    /// Returns Statistics.db (`MetadataSerializer.serialize`).
    pub fn statistics_bytes(&self) -> Bytes {
        let mut validation = Vec::new();
        put_short_bytes(&mut validation, b"org.apache.cassandra.dht.Murmur3Partitioner");
        validation.extend(0.01_f64.to_be_bytes());
        let parts = [
            validation,
            vec![9; 5],
            self.summary_bytes(),
            self.header_bytes().to_vec(),
        ];
        let has_checksums = self.version.has_metadata_checksum();
        let checksum_len = if has_checksums { 4 } else { 0 };
        let mut out = 4_u32.to_be_bytes().to_vec();
        let mut covered = out.clone();
        let put_checksum = |out: &mut Vec<u8>, covered: &[u8]| {
            if has_checksums {
                out.extend(crc32fast::hash(covered).to_be_bytes());
            }
        };
        put_checksum(&mut out, &covered);
        let mut position = 4 + 8 * parts.len() + 2 * checksum_len;
        for (kind, part) in (0_u32..).zip(&parts) {
            let start = out.len();
            out.extend(kind.to_be_bytes());
            out.extend(u32::try_from(position).unwrap().to_be_bytes());
            covered.extend(&out[start..]);
            position += part.len() + checksum_len;
        }
        put_checksum(&mut out, &covered);
        for part in &parts {
            out.extend(part);
            put_checksum(&mut out, part);
        }
        out.into()
    }

    /// Returns the decompressed data of the events.
    pub fn data_bytes(&self, events: &[Event]) -> Vec<u8> {
        encode(&self.header(), events)
    }

    /// Returns all components.
    pub fn folder(&self, events: &[Event]) -> MemoryFolder {
        let data = self.data_bytes(events);
        let mut components = vec![(STATISTICS, self.statistics_bytes())];
        let stored = match self.compression {
            None => {
                let mut crc = u32::try_from(CRC_CHUNK_BYTES).unwrap().to_be_bytes().to_vec();
                for chunk in data.chunks(CRC_CHUNK_BYTES) {
                    crc.extend(crc32fast::hash(chunk).to_be_bytes());
                }
                if self.has_empty_chunk {
                    crc.extend(crc32fast::hash(&[]).to_be_bytes());
                }
                components.push((CRC, crc.into()));
                data
            }
            Some(compression) => {
                let (stored, info) = self.compressed(&data, compression);
                components.push((COMPRESSION_INFO, info.into()));
                stored
            }
        };
        components.push((DIGEST, crc32fast::hash(&stored).to_string().into()));
        components.push((DATA, stored.into()));
        let names: Vec<&str> = components.iter().map(|(name, _)| *name).collect();
        components.push((TOC, format!("{}\n{TOC}\n", names.join("\n")).into()));
        let mut folder = MemoryFolder::default();
        for (name, content) in components {
            folder.insert(self.descriptor().file_name(name), content);
        }
        folder
    }

    /// Returns Data.db and CompressionInfo.db (`CompressedSequentialWriter.flushData`, `CompressionMetadata.Writer`).
    fn compressed(&self, data: &[u8], compression: Compression) -> (Vec<u8>, Vec<u8>) {
        let (mut stored, mut offsets) = (Vec::new(), Vec::new());
        let max = match self.version.has_max_compressed_length() {
            true => usize::try_from(compression.max_compressed_len).unwrap(),
            false => usize::MAX,
        };
        let empty: Option<&[u8]> = self.has_empty_chunk.then_some(&[]);
        for chunk in data.chunks(compression.chunk_len).chain(empty) {
            offsets.push(stored.len() as u64);
            let mut content = compress(compression.compressor, chunk);
            if content.len() >= max {
                content = chunk.to_vec();
                content.resize(content.len().max(max), 0);
            }
            stored.extend(&content);
            stored.extend(crc32fast::hash(&content).to_be_bytes());
        }
        let mut info = Vec::new();
        put_short_bytes(
            &mut info,
            format!("{:?}Compressor", compression.compressor)
                .replace("Lz4", "LZ4")
                .as_bytes(),
        );
        info.extend(0_i32.to_be_bytes());
        info.extend(u32::try_from(compression.chunk_len).unwrap().to_be_bytes());
        if self.version.has_max_compressed_length() {
            info.extend(compression.max_compressed_len.to_be_bytes());
        }
        info.extend((data.len() as u64).to_be_bytes());
        info.extend(u32::try_from(offsets.len()).unwrap().to_be_bytes());
        for offset in offsets {
            info.extend(offset.to_be_bytes());
        }
        (stored, info)
    }

    pub fn open(&self, folder: MemoryFolder) -> Result<SsTable, crate::SstableError> {
        SsTable::open(Arc::new(folder), &self.descriptor())
    }
}
