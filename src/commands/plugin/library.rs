//! Where the library is, and which one NCCL would take.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::commands::machine;

/// The library as it is built.
pub const BUILT: &str = "libnccl_tuner_dynamiccl.so";
/// The word by which NCCL finds it where it is installed: `libnccl-tuner-WORD.so`.
pub const WORD: &str = "dynamiccl";
/// NCCL's prefixes, of a tuner first.
pub const PREFIXES: [&str; 3] = ["libnccl-tuner", "libnccl-profiler", "libnccl-env"];
/// Where it may be, seen from the folder of the program: beside it, in an installed prefix, where `cargo test`
/// leaves it.
const PLACES: [&str; 4] = ["", "../lib", "../lib64", "deps"];

/// The library that was named, or the one in its usual places; an absolute path.
pub fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        let found = named.canonicalize().with_context(|| format!("--library {}", machine::name(named)))?;
        if !found.is_file() {
            bail!("--library {}: it is no file; name the library itself", machine::name(named));
        }
        return Ok(found);
    }
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let program = program.canonicalize().unwrap_or(program);
    let folder = program.parent().unwrap_or(Path::new("/"));
    let names = [BUILT.to_owned(), format!("{}-{WORD}.so", PREFIXES[0])];
    let places = PLACES.iter().flat_map(|place| names.iter().map(move |name| folder.join(place).join(name)));
    let found = places.filter(|file| file.is_file()).find_map(|file| file.canonicalize().ok());
    found.with_context(|| {
        format!(
            "{BUILT} is neither in {folder} nor in {folder}/../lib; build it with cargo build --release, or name it \
             with --library",
            folder = machine::name(folder)
        )
    })
}

/// What NCCL hands to the dynamic linker, in order, for the value of a variable that names a plugin
/// (`src/plugin/plugin_open.cc` of NCCL 2.28.9): the value itself, then, unless it is a path or a file's name, as a
/// word within one.
pub fn as_nccl(value: &str, prefix: &str) -> Vec<PathBuf> {
    let mut names = vec![PathBuf::from(value)];
    let is_file = value.starts_with("lib") && value.ends_with(".so");
    if !value.contains('/') && !is_file {
        names.push(format!("{prefix}-{value}.so").into());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tried_as_nccl_tries_them() {
        let names = |value| as_nccl(value, PREFIXES[0]).iter().map(|n| machine::name(n)).collect::<Vec<_>>();
        assert_eq!(names("/x/y.so"), ["/x/y.so"]);
        assert_eq!(names("libx.so"), ["libx.so"]);
        assert_eq!(names("dynamiccl"), ["dynamiccl", "libnccl-tuner-dynamiccl.so"]);
    }
}
