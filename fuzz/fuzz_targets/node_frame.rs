//! Fuzzes the decoding of frames from another node. The first byte chooses the size of reads.
#![no_main]

use bytes::BufMut;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "only the decoder is fuzzed")]
#[path = "../../crates/helenus-server/src/rpc/frame.rs"]
mod frame;

fuzz_target!(|input: &[u8]| {
    let Some((&step, mut bytes)) = input.split_first() else { return };
    let step = 1 + usize::from(step) * 300;
    let mut decoder = frame::FrameDecoder::default();
    loop {
        loop {
            match decoder.decode() {
                Ok(Some(frame)) => assert!(frame.body.len() <= frame::MESSAGE_BYTES_MAX),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if bytes.is_empty() {
            return;
        }
        let mut room = decoder.room(step);
        let len = step.min(bytes.len()).min(room.remaining_mut());
        let (now, later) = bytes.split_at(len);
        room.put_slice(now);
        bytes = later;
    }
});
