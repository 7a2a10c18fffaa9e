//! What else was the case while a sweep was measured, beside ranks, links and clocks.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// How names of NCCL's variables begin.
const PREFIX: &str = "NCCL_";
/// One that containers set and NCCL does not read.
const OF_CONTAINERS: &str = "NCCL_VERSION";

/// What else was the case, as far as it is said.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Circumstances {
    /// Multiprocessors of every rank that compute filled beside the calls; 0 for none.
    pub load: u32,
    /// Whether MPS let ranks on one GPU run at the same time.
    pub mps: Option<bool>,
    /// What ranks were told by variables.
    pub variables: Option<BTreeMap<String, String>>,
}

impl Circumstances {
    /// Whether calls take the same time in both, for all that they say. Files of before do not say all.
    pub fn agree(&self, other: &Self) -> bool {
        let variables =
            [self, other].map(|of| of.variables.as_ref().map(|_| of.of_nccl().collect::<Vec<_>>()));
        let [ours, theirs] = variables;
        self.load == other.load && alike(self.mps, other.mps) && alike(ours, theirs)
    }

    /// What this says, and of what it does not say what another does.
    pub fn or(self, other: &Self) -> Self {
        let Circumstances { load, mps, variables } = self;
        let variables = variables.or_else(|| other.variables.clone());
        Circumstances { load, mps: mps.or(other.mps), variables }
    }

    /// What must be known by who uses what was measured so; none where nothing is unusual.
    pub fn note(&self) -> Option<String> {
        let unusual = self.to_string();
        (!unusual.is_empty()).then(|| format!("measured with {unusual}: it says nothing of ranks without"))
    }

    /// The variables that NCCL read.
    fn of_nccl(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.variables.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, _)| name.starts_with(PREFIX) && *name != OF_CONTAINERS)
    }
}

/// Whether two say the same, where both say something.
fn alike<T: PartialEq>(ours: Option<T>, theirs: Option<T>) -> bool {
    ours.zip(theirs).is_none_or(|(ours, theirs)| ours == theirs)
}

/// What is unusual; nothing where nothing is.
impl fmt::Display for Circumstances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = format!("compute on {} multiprocessors beside every call", self.load);
        let load = (self.load > 0).then_some(load);
        let mps = (self.mps == Some(false)).then(|| "no MPS".to_owned());
        let variables = self.of_nccl().map(|(name, value)| format!("{name}={value}"));
        f.write_str(&load.into_iter().chain(mps).chain(variables).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(load: u32, mps: Option<bool>, variables: Option<&[(&str, &str)]>) -> Circumstances {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let variables = variables.map(|all| all.iter().map(owned).collect());
        Circumstances { load, mps, variables }
    }

    #[test]
    fn what_both_say_must_be_the_same() {
        let usual = of(0, Some(true), Some(&[("NCCL_VERSION", "2.28.3-1"), ("DYNAMICCL_CONTEXT", "a.toml")]));
        let silent = Circumstances::default();
        for alike in [usual.clone(), silent.clone(), of(0, None, Some(&[("NCCL_VERSION", "2.30")]))] {
            assert!(usual.agree(&alike) && alike.agree(&usual), "{alike:?}");
            assert_eq!(alike.to_string(), "");
        }
        let buffers: &[(&str, &str)] = &[("NCCL_BUFFSIZE", "65536")];
        for (other, words) in [
            (of(66, Some(true), Some(&[])), "compute on 66 multiprocessors beside every call"),
            (of(0, Some(false), None), "no MPS"),
            (of(0, Some(true), Some(buffers)), "NCCL_BUFFSIZE=65536"),
        ] {
            assert!(!usual.agree(&other) && !other.agree(&usual), "{other:?}");
            assert_eq!(other.to_string(), words);
        }
        assert_eq!(silent.clone().or(&usual).or(&of(0, Some(false), Some(buffers))), usual);
        assert!(!silent.agree(&of(1, None, None)), "that there was no load need not be said");
        assert_eq!(of(8, Some(false), Some(buffers)).to_string().matches(", ").count(), 2);
    }
}
