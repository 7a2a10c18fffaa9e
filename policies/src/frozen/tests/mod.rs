//! A file comes back as it was, and every way to be wrong is called by its name.

mod content;

use dynamiccl_spec::features::VERSION;
use dynamiccl_spec::{Gate, GateSet};

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
        File::of(&tiny())
    }

    fn of(frozen: &Frozen) -> Self {
        let bytes = frozen.to_bytes();
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
        // Bit 5 is what tells the cases of letters apart.
        for bit in [5, at % 8] {
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
    let error = Frozen::read(&File::new().with(VERSION, "feat-v0").bytes()).unwrap_err();
    assert!(matches!(error, FrozenError::Altered { .. }) && !error.is_foreign(), "{error}");
    let file = File::new().with("\"content\"", "\"contend\"");
    assert_eq!(Frozen::read(&file.bytes()), Err(FrozenError::MissingKey { key: "content" }));
}

#[test]
fn an_error_never_repeats_a_whole_file() {
    let long = "x".repeat(1000);
    let error = Frozen::read(&File::new().with(FORMAT, &long).bytes()).unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
    assert_eq!(container::repeated("a\nb"), "a\\nb");
}

#[test]
fn what_is_longer_than_any_policy_is_not_even_read() {
    let widest = Shape::WIDEST;
    let widest = Shape { embedding: widest, memory: widest, expert: widest, resource: widest };
    let numbers: usize = widest.tensors().iter().map(|(_, dims)| dims.iter().product::<usize>()).sum();
    assert!((numbers * 4 + (1 << 20)) as u64 <= container::MOST, "the widest network must fit");
    let found = container::MOST + 1;
    let refused = FrozenError::TooLong { found, most: container::MOST };
    assert_eq!(container::check_most(found), Err(refused));
}

#[test]
fn opening_names_the_file() {
    let missing = Frozen::open(Path::new("no/such.safetensors")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such.safetensors: cannot be read: "), "{missing}");
    let here = Frozen::open(Path::new("Cargo.toml")).unwrap_err().to_string();
    assert!(here.starts_with("Cargo.toml: ") && here.contains("too few"), "{here}");
}
