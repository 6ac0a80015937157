use super::*;

fn key(digit: &str) -> BackupKey {
    BackupKey::parse(&digit.repeat(64)).unwrap()
}

fn sealed(content: &[u8], path: &str) -> Vec<u8> {
    Sealer::new(&key("1"), &Path::from(path))
        .unwrap()
        .finish(content)
        .unwrap()
}

fn opened(key: &BackupKey, path: &str, sealed: &[u8], range: Range<u64>) -> Option<Vec<u8>> {
    let content = content_len(sealed.len() as u64)?;
    let trailer = &sealed[sealed.len() - TRAILER as usize..];
    let opener = Opener::new(key, &Path::from(path), content, trailer)?;
    let chunks = chunks_of(&range);
    let place = place_of(&chunks, content);
    opener.open(&chunks, sealed.get(place.start as usize..place.end as usize)?)
}

#[test]
fn contents_of_all_lengths_are_read_again_whole_and_in_part() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5] {
        let content: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let bytes = sealed(&content, "a/b");
        assert_eq!(content_len(bytes.len() as u64), Some(len));
        assert_eq!(
            opened(&key("1"), "a/b", &bytes, 0..len).unwrap(),
            content,
            "{len}"
        );
        if len > CHUNK {
            let part = opened(&key("1"), "a/b", &bytes, CHUNK..CHUNK + 1).unwrap();
            assert_eq!(
                part,
                content[CHUNK as usize..]
                    .iter()
                    .take(CHUNK as usize)
                    .copied()
                    .collect::<Vec<_>>()
            );
        }
    }
    assert_eq!(content_len(TRAILER + TAG - 1), None);
}

#[test]
fn parts_make_the_same_file_as_the_whole() {
    let content = vec![7; 5 * CHUNK as usize + 3];
    let mut sealer = Sealer::new(&key("1"), &Path::from("a")).unwrap();
    let (first, rest) = content.split_at(2 * CHUNK as usize);
    let mut bytes = sealer.seal(first).unwrap();
    bytes.extend(sealer.finish(rest).unwrap());
    assert_eq!(
        opened(&key("1"), "a", &bytes, 0..content.len() as u64).unwrap(),
        content
    );
}

#[test]
fn what_was_changed_is_not_read() {
    let content = vec![7; 2 * CHUNK as usize];
    let bytes = sealed(&content, "a");
    let all = 0..content.len() as u64;
    assert!(
        opened(&key("2"), "a", &bytes, all.clone()).is_none(),
        "another key"
    );
    assert!(
        opened(&key("1"), "b", &bytes, all.clone()).is_none(),
        "another file's"
    );
    for at in [
        0,
        CHUNK as usize,
        bytes.len() - TRAILER as usize - 1,
        bytes.len() - TRAILER as usize,
        bytes.len() - 1,
    ] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(
            opened(&key("1"), "a", &damaged, all.clone()).is_none(),
            "byte {at}"
        );
    }
    let (chunk, trailer) = ((CHUNK + TAG) as usize, bytes.len() - TRAILER as usize);
    let cut = [&bytes[..chunk], &bytes[trailer..]].concat();
    assert!(
        opened(&key("1"), "a", &cut, 0..CHUNK).is_none(),
        "the last chunk was cut off"
    );
    let exchanged = [&bytes[chunk..2 * chunk], &bytes[..chunk], &bytes[trailer..]].concat();
    assert!(
        opened(&key("1"), "a", &exchanged, all).is_none(),
        "chunks were exchanged"
    );
}
