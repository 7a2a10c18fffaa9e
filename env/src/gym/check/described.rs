//! Spaces that can be relied on: unique names, true widths, real ranges.

use std::collections::BTreeSet;

use dynamiccl_spec::action::HEADS;

use super::findings::Findings;
use super::rule::Rule;
use crate::gym::{FeatureSpace, HeadSpace, Spaces};

/// Looks at the spaces alone.
pub fn described(spaces: &Spaces, findings: &mut Findings) {
    if let Err(detail) = sound(spaces) {
        findings.note(Rule::Spaces, || detail);
    }
}

fn sound(spaces: &Spaces) -> Result<(), String> {
    let ensure = |holds: bool, detail: String| if holds { Ok(()) } else { Err(detail) };
    ensure(!spaces.id.is_empty(), "the id is empty".to_owned())?;
    let features = spaces.context.iter().chain(&spaces.history).chain(&spaces.privileged);
    let names = features.clone().map(|feature| feature.name.as_str()).chain(heads(spaces));
    unique("the name", names)?;
    for FeatureSpace { name, width, low, high } in features {
        ensure(*width > 0, format!("{name} has no width"))?;
        let range = low <= high && low.is_finite() && high.is_finite();
        ensure(range, format!("{name} goes from {low} to {high}"))?;
    }
    ensure(spaces.heads.len() <= HEADS, format!("{} heads, at most {HEADS}", spaces.heads.len()))?;
    for HeadSpace { name, labels } in &spaces.heads {
        let count = labels.len();
        ensure((1..=32).contains(&count), format!("{name} has {count} labels, 1 to 32 can be"))?;
        unique(&format!("{name}'s label"), labels.iter().map(String::as_str))?;
    }
    Ok(())
}

fn heads(spaces: &Spaces) -> impl Iterator<Item = &str> {
    spaces.heads.iter().map(|head| head.name.as_str())
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() {
            return Err(format!("{what} of something is empty"));
        }
        if !seen.insert(name) {
            return Err(format!("{what} {name} is there twice"));
        }
    }
    Ok(())
}
