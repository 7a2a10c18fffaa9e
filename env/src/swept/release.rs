//! Which release of NCCL decided on the ranks of a sweep.

use std::path::Path;

use super::SweptError;
use crate::nccl::Version;

/// The release that sweeps are read as which do not say theirs: the published ones had it.
pub const VERSION: Version = Version::V2_28;

/// The release of NCCL that ranks had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The one whose choices are reproduced.
    pub version: Version,
    /// The release line that it stands for, where that is older or newer than all that are reproduced.
    pub other: Option<String>,
}

impl Release {
    /// What was stated; none where that is no release. Where it is not reproduced the nearest that is stands for it, for most
    /// of NCCL stays the same from one release to the next.
    pub fn of(stated: &str) -> Option<Self> {
        if let Ok(version) = stated.parse() {
            return Some(Release { version, other: None });
        }
        let of = line(stated)?;
        let [oldest, .., newest] = Version::ALL;
        let version = if Some(of) < line(oldest.name()) { oldest } else { newest };
        Some(Release { version, other: Some(format!("{}.{}", of[0], of[1])) })
    }

    /// What was stated of `whose` ranks, if anything was.
    pub(super) fn stated(stated: Option<&str>, whose: &Path) -> Result<Self, SweptError> {
        let Some(stated) = stated else { return Ok(Release { version: VERSION, other: None }) };
        let no_release = || SweptError::Release { file: whose.to_owned(), stated: stated.to_owned() };
        Release::of(stated).ok_or_else(no_release)
    }

    /// What its user must know, where it is not reproduced.
    pub fn note(&self) -> Option<String> {
        let Release { version, other } = self;
        let other = other.as_ref()?;
        Some(format!("NCCL {other} is not reproduced; its choices are taken to be those of {version}"))
    }
}

/// The numbers of a release line.
fn line(release: &str) -> Option<[u32; 2]> {
    let mut numbers = release.split('.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_is_not_reproduced_has_a_neighbour_that_is() {
        let of = |stated| Release::stated(stated, Path::new("s.csv"));
        let known = |version| Release { version, other: None };
        assert_eq!(of(None).unwrap(), known(VERSION));
        assert_eq!(of(Some("2.30.7")).unwrap(), known(Version::V2_30));
        for (stated, version, line) in [
            ("2.27.5", Version::V2_28, "2.27"),
            ("2.4.8", Version::V2_28, "2.4"),
            ("2.31.1", Version::V2_30, "2.31"),
            ("3.0", Version::V2_30, "3.0"),
        ] {
            assert_eq!(of(Some(stated)).unwrap(), Release { version, other: Some(line.to_owned()) });
        }
        for stated in ["", "2", "newest", "2.x"] {
            let error = of(Some(stated)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("s.csv: \"{stated}\" is no release of NCCL")), "{error}");
        }
    }
}
