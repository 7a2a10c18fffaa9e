//! A file comes back as it was, and every way to be wrong is called by its name.

use dynamiccl_spec::{Gate, GateSet, Head};

use super::*;
use crate::network::Shape;

/// The file that others are made of: a header that can be changed, and the numbers.
struct File {
    header: String,
    data: Vec<u8>,
}

fn about() -> About {
    About {
        name: "tiny".to_owned(),
        gates: GateSet::default().with(Gate::InNetwork).with(Gate::UserOverride),
        nccl: vec!["2.29".to_owned(), "2.30".to_owned()],
        margin: 1.25,
        training: Training {
            curriculum: "stage1 \"quoted\" \\ é".to_owned(),
            seeds: vec![1, u64::MAX],
            steps: 12,
            version: "0.1.0".to_owned(),
            command: "dynamiccl train".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            parent: Some(0xfeed),
        },
        results: vec![("speedup.tier1".to_owned(), 1.1), ("regret.tier1".to_owned(), 0.1 + 0.2)],
    }
}

fn tiny() -> Frozen {
    let shape = Shape { embedding: 8, memory: 16, expert: 8, resource: 8 };
    let mut weights = Weights::untrained(shape);
    weights.get_mut("lstm.weight").unwrap().iter_mut().enumerate().for_each(|(i, x)| *x = i as f32 * 0.001);
    Frozen { weights, about: about() }
}

impl File {
    fn new() -> Self {
        let bytes = tiny().to_bytes();
        let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let header = str::from_utf8(&bytes[8..8 + length]).unwrap().trim_end().to_owned();
        File { header, data: bytes[8 + length..].to_vec() }
    }

    /// The same with other text in the header.
    fn with(mut self, from: &str, to: &str) -> Self {
        assert!(self.header.contains(from), "{from}");
        self.header = self.header.replace(from, to);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let length = self.header.len() as u64;
        [&length.to_le_bytes(), self.header.as_bytes(), &self.data].concat()
    }

    /// The bytes with the fingerprint that they have.
    fn healed(self) -> Vec<u8> {
        let bytes = self.bytes();
        let container = container::read(&bytes).unwrap();
        let stated = &container.metadata[fingerprint::KEY];
        let found = fingerprint::text(fingerprint::of(&container.metadata, &container.tensors));
        self.with(stated, &found).bytes()
    }

    /// What is wrong with it, once its fingerprint is right.
    #[track_caller]
    fn wrong(self) -> FrozenError {
        Frozen::read(&self.healed()).unwrap_err()
    }
}

#[test]
fn a_policy_comes_back_as_it_was_and_bytes_are_always_the_same() {
    let frozen = tiny();
    let bytes = frozen.to_bytes();
    let read = Frozen::read(&bytes).unwrap();
    assert_eq!(read, frozen);
    assert_eq!(read.to_bytes(), bytes);
    let stated = &metadata(&bytes).unwrap()[fingerprint::KEY];
    assert_eq!(*stated, format!("{:016x}", frozen.hash()));
    let other = Frozen { about: About { margin: 1.5, ..about() }, ..frozen.clone() };
    assert_ne!(other.hash(), frozen.hash());
    let mut lines = tiny();
    lines.about.name = "two\nlines".to_owned();
    assert_eq!(Frozen::read(&lines.to_bytes()).unwrap().about.name, "two lines");
    let shipped = Frozen { weights: Weights::untrained(Shape::default()), about: About::default() };
    assert_eq!(Frozen::read(&shipped.to_bytes()).unwrap(), shipped);
}

#[test]
fn a_file_that_another_writer_has_laid_out_otherwise_is_the_same_policy() {
    let mut file = File::new();
    file.header = file.header.replace("\":", "\" :\t");
    assert_eq!(Frozen::read(&file.bytes()).unwrap(), tiny());
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let bytes = tiny().to_bytes();
    let header = bytes.len() - File::new().data.len();
    let every = (0..header).chain((header..bytes.len()).step_by(97));
    for at in every {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(Frozen::read(&flipped).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn what_is_no_safetensors_file_is_called_so() {
    let bytes = tiny().to_bytes();
    let least = container::LEAST;
    let grain = Shape::GRAIN;
    let smallest = Shape { embedding: grain, memory: grain, expert: grain, resource: grain };
    let smallest = Frozen { weights: Weights::untrained(smallest), about: About::default() };
    assert!(least < smallest.to_bytes().len());
    for short in [0, 7, least - 1] {
        assert_eq!(Frozen::read(&bytes[..short]), Err(FrozenError::TooShort { found: short, least }));
    }
    let file = bytes.len();
    for header in [u64::MAX, file as u64 - 7] {
        let mut beyond = bytes.clone();
        beyond[..8].copy_from_slice(&header.to_le_bytes());
        assert_eq!(Frozen::read(&beyond), Err(FrozenError::HeaderLength { header, file }));
    }
    let mut binary = bytes.clone();
    binary[10] = 0xff;
    assert_eq!(Frozen::read(&binary), Err(FrozenError::HeaderText { at: 2 }));
    let no_json = Frozen::read(&File::new().with("{\"__meta", "{__meta").bytes()).unwrap_err();
    assert!(matches!(&no_json, FrozenError::Header { why } if why.contains("column 2")), "{no_json}");
    let crowd = File::new().with("\"content\"", &format!("{}\"content\"", "\"\":\"\",".repeat(4000)));
    assert!(matches!(Frozen::read(&crowd.bytes()), Err(FrozenError::Crowded { .. })));
}

#[test]
fn too_little_and_too_much_are_told_apart() {
    let bytes = tiny().to_bytes();
    let expected = bytes.len();
    let cut = &bytes[..expected - 3];
    assert_eq!(Frozen::read(cut), Err(FrozenError::Truncated { found: expected - 3, expected }));
    let more = [&bytes[..], b"more"].concat();
    assert_eq!(Frozen::read(&more), Err(FrozenError::Trailing { found: expected + 4, expected }));
}

#[test]
fn tensors_that_overlap_or_leave_gaps_are_refused() {
    let anchor = "\"pair.anchor\":{\"dtype\":\"F32\",\"shape\":[1]";
    for (from, to) in [
        (",\"data_offsets\":[0,", ",\"data_offsets\":[4,"),
        ("[1],", "[2],"),
        ("[1],", "[18446744073709551615,2],"),
    ] {
        let file = if from == "[1]," {
            File::new().with(&format!("{anchor},"), &format!("{}{to}", &anchor[..anchor.len() - 3]))
        } else {
            File::new().with(from, to)
        };
        let error = Frozen::read(&file.bytes()).unwrap_err();
        assert!(matches!(error, FrozenError::Layout { .. }), "{error}");
    }
}

#[test]
fn other_files_and_later_formats_are_told_apart() {
    let other = File::new().with("\"format\"", "\"origin\"");
    assert_eq!(Frozen::read(&other.bytes()), Err(FrozenError::NoFormat));
    let later = File::new().with(FORMAT, "dynamiccl-policy-2").bytes();
    let error = Frozen::read(&later).unwrap_err();
    assert_eq!(error, FrozenError::Format { found: "dynamiccl-policy-2".to_owned() });
    assert!(error.is_foreign());
}

#[test]
fn a_changed_file_is_found_before_anything_in_it_is_believed() {
    let error = Frozen::read(&File::new().with("feat-v1", "feat-v2").bytes()).unwrap_err();
    assert!(matches!(error, FrozenError::Altered { .. }) && !error.is_foreign(), "{error}");
    let file = File::new().with("\"content\"", "\"contend\"");
    assert_eq!(Frozen::read(&file.bytes()), Err(FrozenError::MissingKey { key: "content" }));
}

#[test]
fn a_policy_of_another_build_is_refused_with_what_differs() {
    let found = "feat-v2".to_owned();
    assert_eq!(File::new().with("feat-v1", "feat-v2").wrong(), FrozenError::Features { found });
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
    for bad in ["NaN", "inf", "-1", "", "much"] {
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

#[test]
fn an_error_never_repeats_a_whole_file() {
    let long = "x".repeat(1000);
    let error = Frozen::read(&File::new().with(FORMAT, &long).bytes()).unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
    assert_eq!(container::repeated("a\nb"), "a\\nb");
}

#[test]
fn opening_names_the_file() {
    let missing = Frozen::open(Path::new("no/such.safetensors")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such.safetensors: cannot be read: "), "{missing}");
    let here = Frozen::open(Path::new("Cargo.toml")).unwrap_err().to_string();
    assert!(here.starts_with("Cargo.toml: ") && here.contains("too few"), "{here}");
}
