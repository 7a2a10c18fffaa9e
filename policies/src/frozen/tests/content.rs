//! What a whole file says and holds: each way in which that can be wrong, behind a right fingerprint.

use dynamiccl_spec::Head;
use dynamiccl_spec::features::{CONTEXT_WIDTH, VERSION};

use super::super::*;
use super::{File, about, tiny};

#[test]
fn a_policy_of_another_build_is_refused_with_what_differs() {
    let found = "feat-v0".to_owned();
    assert_eq!(File::new().with(VERSION, "feat-v0").wrong(), FrozenError::Features { found });
    let hash = format!("{:016x}", dynamiccl_spec::features::hash());
    let error = File::new().with(&hash, "00000000deadbeef").wrong();
    assert!(matches!(&error, FrozenError::Encoder { found, .. } if found == "00000000deadbeef"), "{error}");
    for (head, from, to) in
        [(Head::Chunk, "own,quarter,half", "own,half,quarter"), (Head::Threads, "256,512", "256,640")]
    {
        let error = File::new().with(from, to).wrong();
        assert!(matches!(&error, FrozenError::Knobs { head: found, .. } if *found == head), "{error}");
        assert!(error.is_foreign());
    }
    let error = File::new().with("in_network,user_override", "in_network,moon").wrong();
    assert!(matches!(&error, FrozenError::Gates { found, .. } if found == "in_network,moon"), "{error}");
}

/// A policy with a weight for every number of a context.
fn embedding() -> Frozen {
    let mut frozen = tiny();
    let weights = frozen.weights.get_mut("embed.weight").unwrap();
    weights.iter_mut().enumerate().for_each(|(at, x)| *x = 1.0 + at as f32);
    frozen
}

/// Encodings before this one, with their hashes and the numbers of a context that they do not have.
const EARLIER: [(&str, &str, usize); 2] =
    [("feat-v1", "c7ebbb8b3c6c6351", 3), ("feat-v2", "8eb4eb767480d273", 1)];

/// The file of a policy of an encoding before this one: without the last rows of its embedding, which is the first
/// tensor of a file.
fn earlier((version, encoder, unknown): (&str, &str, usize)) -> File {
    let mut file = File::of(&embedding());
    let width = 8 * size_of::<f32>();
    let cut = unknown * width;
    file.data.drain((CONTEXT_WIDTH - unknown) * width..CONTEXT_WIDTH * width);
    let mut parts = file.header.split("\"data_offsets\":[");
    let mut header = parts.next().unwrap().to_owned();
    for part in parts {
        let (range, rest) = part.split_once(']').unwrap();
        let moved = |at: &str| at.parse::<usize>().unwrap().saturating_sub(cut);
        let (from, to) = range.split_once(',').unwrap();
        header += &format!("\"data_offsets\":[{},{}]{rest}", moved(from), moved(to));
    }
    let (now, before) = (format!("[{CONTEXT_WIDTH},8]"), format!("[{},8]", CONTEXT_WIDTH - unknown));
    let hash = format!("{:016x}", dynamiccl_spec::features::hash());
    File { header, ..file }.with(&now, &before).with(VERSION, version).with(&hash, encoder)
}

#[test]
fn a_policy_of_an_encoding_before_this_one_has_no_weight_for_what_it_never_saw() {
    for encoding @ (_, hash, unknown) in EARLIER {
        let read = Frozen::read(&earlier(encoding).healed()).unwrap();
        let mut expected = embedding();
        let weights = expected.weights.get_mut("embed.weight").unwrap();
        let known = weights.len() - unknown * 8;
        weights[known..].fill(0.0);
        assert_eq!(read, expected);
        // It is one of this encoding from then on.
        assert_eq!(Frozen::read(&read.to_bytes()).unwrap(), expected);
        // With another hash it is nobody's.
        let error = earlier(encoding).with(hash, "00000000deadbeef").wrong();
        assert!(matches!(error, FrozenError::Features { .. }), "{error}");
    }
}

#[test]
fn metadata_are_complete_and_nothing_else() {
    let keys: Vec<_> = about().metadata().into_keys().collect();
    assert_eq!(keys.len() + 1, about::KEYS);
    for key in keys.into_iter().filter(|&key| key != "format") {
        let file = File::new().with(&format!("\"{key}\":"), "\"else\":");
        let error = file.wrong();
        let foreign = FrozenError::UnexpectedKey { key: "else".to_owned() };
        assert!(error == FrozenError::MissingKey { key } || error == foreign, "{key}: {error}");
    }
    let file = File::new().with("\"content\"", "\"more\":\"\",\"content\"");
    assert_eq!(file.wrong(), FrozenError::UnexpectedKey { key: "more".to_owned() });
}

#[test]
fn numbers_are_numbers_and_written_in_one_way() {
    let refused = |from: &str, to: &str, key| match File::new().with(from, to).wrong() {
        FrozenError::Number { key: found, .. } => assert_eq!(found, key),
        other => panic!("{other}"),
    };
    for bad in ["NaN", "inf", "-inf", "", "much"] {
        refused("\"margin\":\"1.25\"", &format!("\"margin\":\"{bad}\""), "margin");
    }
    refused("\"steps\":\"12\"", "\"steps\":\"1e2\"", "steps");
    refused("\"seeds\":\"1,", "\"seeds\":\"-1,", "seeds");
    refused("000000000000feed", "0000000000feed!!", "parent");
    for bad in ["speedup.tier1=", "speedup.tier1=inf", "speedup"] {
        refused("speedup.tier1=1.1", bad, "results");
    }
    let respelled = |from: &str, to: &str, key| match File::new().with(from, to).wrong() {
        FrozenError::Spelling { key: found, .. } => assert_eq!(found, key),
        other => panic!("{other}"),
    };
    respelled("\"margin\":\"1.25\"", "\"margin\":\"1.250\"", "margin");
    respelled("\"steps\":\"12\"", "\"steps\":\"+12\"", "steps");
    respelled("in_network,user_override", "user_override,in_network", "gates");
    respelled("000000000000feed", "feed", "parent");
    respelled("dynamiccl train", "dynamiccl\\ntrain", "command");
}

#[test]
fn what_is_there_twice_is_refused() {
    let file = File::new().with("\"content\"", "\"margin\":\"1.25\",\"content\"");
    let error = file.wrong();
    assert!(matches!(error, FrozenError::Repeated { found, expected } if found == expected + 1), "{error}");
}

/// safetensors' reader takes a tensor's description without names, too: three fewer, so that three may be there twice.
#[test]
fn a_description_without_names_makes_no_room_for_what_is_there_twice() {
    let twice = ["name", "margin", "command"].map(|key| format!("\"{key}\":\"0\",")).concat();
    let file = File::new().with("\"content\"", &format!("{twice}\"content\""));
    let at = file.header.find("\"memory.cell\":").expect("a policy has a memory");
    let described = &file.header[at..];
    let described = described[..=described.find('}').expect("an end")].to_owned();
    let unnamed = described
        .replace("{\"dtype\":\"F32\",\"shape\":", "[\"F32\",")
        .replace("\"data_offsets\":", "")
        .replace('}', "]");
    let error = file.with(&described, &unnamed).wrong();
    assert!(matches!(error, FrozenError::Objects { found, expected } if found + 1 == expected), "{error}");
}

#[test]
fn tensors_are_those_of_the_network() {
    let name = "memory.cell".to_owned();
    assert_eq!(
        File::new().with("\"gain.chunk\"", "\"memory.call\"").wrong(),
        FrozenError::UnexpectedTensor { name: "memory.call".to_owned() }
    );
    let mut file = File::new();
    let at = file.header.find(",\"memory.cell\"").unwrap();
    file.header.replace_range(at..file.header.len() - 1, "");
    file.data.truncate(file.data.len() - 16 * 4);
    assert_eq!(file.wrong(), FrozenError::MissingTensor { name: "memory.cell" });
    let typed = format!("\"{name}\":{{\"dtype\":\"F32\"");
    let error = File::new().with(&typed, &typed.replace("F32", "I32")).wrong();
    assert_eq!(error, FrozenError::Type { name, found: "I32".to_owned() });
}

#[test]
fn a_memory_that_was_put_there_comes_with_the_one_that_was_trained() {
    let mut frozen = tiny();
    let trained = frozen.weights.trained().map(<[f32]>::to_vec);
    frozen.weights.remember([&[0.5; 16], &[0.25; 16]]);
    let read = Frozen::read(&frozen.to_bytes()).unwrap();
    assert_eq!((&read, read.hash()), (&frozen, frozen.hash()));
    assert_eq!(read.weights.trained(), trained.each_ref().map(Vec::as_slice));
    assert_ne!(frozen.hash(), tiny().hash());
    let mut half = File::of(&frozen);
    let at = half.header.find(",\"trained.cell\"").unwrap();
    half.header.replace_range(at..half.header.len() - 1, "");
    half.data.truncate(half.data.len() - 16 * 4);
    assert_eq!(half.wrong(), FrozenError::MissingTensor { name: "trained.cell" });
}

#[test]
fn widths_and_shapes_fit_together() {
    let file = File::new().with(
        "\"memory.hidden\":{\"dtype\":\"F32\",\"shape\":[16]",
        "\"memory.hidden\":{\"dtype\":\"F32\",\"shape\":[4,4]",
    );
    let width = "memory";
    assert_eq!(file.wrong(), FrozenError::Width { width, name: "memory.hidden", found: 4 });
    let file = File::new().with(
        "\"memory.cell\":{\"dtype\":\"F32\",\"shape\":[16]",
        "\"memory.cell\":{\"dtype\":\"F32\",\"shape\":[2,8]",
    );
    assert_eq!(
        file.wrong(),
        FrozenError::Shape { name: "memory.cell", found: vec![2, 8], expected: vec![16] }
    );
}

#[test]
fn weights_are_numbers() {
    for (value, word) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf")] {
        let mut frozen = tiny();
        frozen.weights.get_mut("pair.bias").unwrap()[7] = value;
        let (name, value) = ("pair.bias", word.to_owned());
        assert_eq!(Frozen::read(&frozen.to_bytes()), Err(FrozenError::NotFinite { name, at: 7, value }));
    }
}
