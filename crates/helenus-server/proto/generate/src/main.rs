//! Generates the messages between nodes, `src/rpc/proto.rs`, from `proto/node.proto`; no `protoc` is needed.
//!
//! Run it after each change of `node.proto`: `cargo run --manifest-path crates/helenus-server/proto/generate/Cargo.toml`.
//! The first line of the result has the SHA-256 of `node.proto`, which `./test structure` compares.

use std::error::Error;
use std::path::Path;

use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder proto");
    let files = protox::compile([proto.join("node.proto")], [proto])?;
    let folder = tempfile::tempdir()?;
    prost_build::Config::new().bytes(["."]).out_dir(folder.path()).compile_fds(files)?;
    let generated = std::fs::read_to_string(folder.path().join("helenus.rpc.v1.rs"))?;
    let digest = Sha256::digest(std::fs::read(proto.join("node.proto"))?);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let place = proto.parent().expect("the crate").join("src/rpc/proto.rs");
    std::fs::write(place, format!("// SHA-256 of proto/node.proto: {hex}\n{generated}"))?;
    Ok(())
}
