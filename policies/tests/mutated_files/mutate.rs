//! Making a wrong file of a right one: blindly, and with an eye on what the header means.

use std::collections::BTreeMap;

use dynamiccl_policies::random::Random;
use dynamiccl_spec::fnv::Fnv;
use safetensors::SafeTensors;

/// A file with some mutations. In half of the cases its fingerprint is made right again afterwards, else
/// nothing behind that check would ever be reached.
pub fn file(valid: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=random.below(3) {
        bytes = once(bytes, random);
    }
    if random.below(2) == 0 { healed(bytes) } else { bytes }
}

fn once(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    if bytes.len() < 16 {
        return bytes;
    }
    let at = random.below(bytes.len());
    match random.below(14) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.bits() as u8,
        2 => bytes.truncate(if random.below(4) == 0 { at } else { bytes.len() - 1 - random.below(64) }),
        3 => bytes.extend((0..=random.below(64)).map(|_| random.bits() as u8).collect::<Vec<_>>()),
        4 => {
            let from = random.below(bytes.len());
            let piece = bytes[from..(from + random.below(200)).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        5 => {
            let lengths =
                [0, 1, u64::MAX, bytes.len() as u64, random.bits(), random.below(bytes.len()) as u64];
            bytes[..8].copy_from_slice(&lengths[random.below(lengths.len())].to_le_bytes());
        }
        6 => {
            let header = split(&bytes).map_or(8, |(header, _)| 8 + header.len());
            let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE, f32::MAX];
            let at = header + random.below((bytes.len() - header) / 4 + 1) * 4;
            if at + 4 <= bytes.len() {
                bytes[at..at + 4].copy_from_slice(&odd[random.below(odd.len())].to_le_bytes());
            }
        }
        _ => return with_header(&bytes, random).unwrap_or(bytes),
    }
    bytes
}

/// Header and data, where the file has both.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.first_chunk()?)).ok()?;
    let header = bytes.get(8..8_usize.checked_add(length)?)?;
    Some((str::from_utf8(header).ok()?, &bytes[8 + length..]))
}

fn with_header(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let (header, data) = split(bytes)?;
    let edited = match random.below(6) {
        0 => replaced(header, &runs(header, |c| c.is_ascii_digit()), number(random), random)?,
        1 => replaced(header, &strings(header), string(header, random), random)?,
        2 => doubled(header, random)?,
        3 => swapped(header, random)?,
        4 => replaced(header, &shapes(header), shape(random), random)?,
        _ => without(header, random)?,
    };
    Some(joined(&edited, data))
}

fn joined(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

type Spans = Vec<(usize, usize)>;

/// Where characters of a kind stand side by side.
fn runs(text: &str, is: impl Fn(char) -> bool) -> Spans {
    let mut spans = Spans::new();
    for (at, c) in text.char_indices().filter(|(_, c)| is(*c)) {
        match spans.last_mut().filter(|(_, end)| *end == at) {
            Some((_, end)) => *end = at + c.len_utf8(),
            None => spans.push((at, at + c.len_utf8())),
        }
    }
    spans
}

/// Where quoted strings stand, without their quotes.
fn strings(text: &str) -> Spans {
    let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
    quotes.chunks_exact(2).map(|pair| (pair[0] + 1, pair[1])).collect()
}

/// Where the dimensions of tensors stand.
fn shapes(text: &str) -> Spans {
    let after = "\"shape\":[";
    let starts = text.match_indices(after).map(|(at, _)| at + after.len());
    starts.filter_map(|at| Some((at, at + text[at..].find(']')?))).collect()
}

/// Where entries of tensors stand, with the comma before.
fn entries(text: &str) -> Spans {
    let starts = text.match_indices(",\"").map(|(at, _)| at);
    let entry = |at: usize| {
        let end = at + text[at..].find('}')? + 1;
        text[at..end].contains("data_offsets").then_some((at, end))
    };
    starts.filter_map(entry).collect()
}

fn pick<'a, T>(items: &'a [T], random: &mut Random) -> Option<&'a T> {
    (!items.is_empty()).then(|| &items[random.below(items.len())])
}

fn replaced(text: &str, spans: &Spans, new: String, random: &mut Random) -> Option<String> {
    let &(start, end) = pick(spans, random)?;
    Some([&text[..start], &new, &text[end..]].concat())
}

fn number(random: &mut Random) -> String {
    let numbers = ["0", "1", "7", "8", "1024", "1032", "4294967296", "18446744073709551615", "-1", "1e9", ""];
    let small = random.below(100_000).to_string();
    if random.below(2) == 0 { small } else { numbers[random.below(numbers.len())].to_owned() }
}

fn string(text: &str, random: &mut Random) -> String {
    let odd = [
        "",
        "NaN",
        "inf",
        "-1",
        "feat-v3",
        "dynamiccl-policy-2",
        "F16",
        "I32",
        "U8",
        "\\u0000",
        "\\ud800",
        "é",
    ];
    match pick(&strings(text), random) {
        Some(&(start, end)) if random.below(2) == 0 => text[start..end].to_owned(),
        _ => odd[random.below(odd.len())].to_owned(),
    }
}

fn shape(random: &mut Random) -> String {
    let shapes =
        ["", "0", "1", "8", "16", "8,1", "1,8", "4,2", "2,2,2", "18446744073709551615,2", "1,1,1,1,1,1,1,8"];
    shapes[random.below(shapes.len())].to_owned()
}

fn doubled(text: &str, random: &mut Random) -> Option<String> {
    let metadata = runs(text, |c| c != ',').into_iter().filter(|&(a, b)| text[a..b].starts_with("\"s"));
    let spans: Spans = entries(text).into_iter().chain(metadata).collect();
    let &(start, end) = pick(&spans, random)?;
    let comma = if text[start..end].starts_with(',') { "" } else { "," };
    Some([&text[..end], comma, &text[start..end], &text[end..]].concat())
}

fn swapped(text: &str, random: &mut Random) -> Option<String> {
    let offsets: Spans = shapes(&text.replace("\"data_offsets\":[", "\"shape\":[       "));
    let spans: Spans =
        offsets.into_iter().filter(|&(a, b)| text.get(a..b).is_some_and(|s| s.contains(','))).collect();
    let (&first, &second) = (pick(&spans, random)?, pick(&spans, random)?);
    let ((a, b), (c, d)) = if first.0 < second.0 { (first, second) } else { (second, first) };
    (b <= c).then(|| [&text[..a], &text[c..d], &text[b..c], &text[a..b], &text[d..]].concat())
}

fn without(text: &str, random: &mut Random) -> Option<String> {
    let spans = entries(text);
    let &(start, end) = pick(&spans, random)?;
    Some([&text[..start], &text[end..]].concat())
}

/// The file with the fingerprint that its content has, as `docs/frozen-format.md` says; itself where it has
/// none.
fn healed(bytes: Vec<u8>) -> Vec<u8> {
    try_healed(&bytes).unwrap_or(bytes)
}

fn try_healed(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, data) = split(bytes)?;
    let (_, found) = SafeTensors::read_metadata(bytes).ok()?;
    let words: BTreeMap<_, _> = found.metadata().as_ref()?.iter().collect();
    let mut hash = Fnv::new();
    for (key, value) in words.iter().filter(|(key, _)| **key != "content") {
        hash.text(key);
        hash.text(value);
    }
    let tensors: BTreeMap<_, _> = found.tensors().into_iter().collect();
    for (name, info) in &tensors {
        hash.text(name);
        hash.text(&info.dtype.to_string());
        info.shape.iter().for_each(|&width| hash.number(width as u64));
        hash.bytes(&data[info.data_offsets.0..info.data_offsets.1]);
    }
    let stated = format!("\"content\":\"{}\"", words.get(&"content".to_owned())?);
    let right = format!("\"content\":\"{:016x}\"", hash.value());
    Some(joined(&header.replace(&stated, &right), data))
}
