//! The policy that comes with the program: the file of `policies/frozen/`, built in, so that a plugin and a
//! command have it wherever they run.
//!
//! It is a file like any other and goes through the same reader; nothing here knows how good it is.

use super::{Frozen, FrozenError};

/// What it is called where tuners are named.
pub const SHIPPED: &str = "shipped";

/// The file, as it is in the repository.
const FILE: &[u8] = include_bytes!("../../frozen/default.safetensors");
/// Those for networks that change.
const WAN: &[u8] = include_bytes!("../../frozen/wan.safetensors");
const RAILS: &[u8] = include_bytes!("../../frozen/rails.safetensors");

impl Frozen {
    /// The policy that comes with the program. An error means that the file was trained for other features or
    /// knobs than this build has; a test keeps such a build from being released.
    pub fn shipped() -> Result<Frozen, FrozenError> {
        Frozen::read(FILE)
    }

    /// The policy for rings across datacentres that comes with the program.
    pub fn shipped_wan() -> Result<Frozen, FrozenError> {
        Frozen::read(WAN)
    }

    /// The policy for photonic rails that comes with the program.
    pub fn shipped_rails() -> Result<Frozen, FrozenError> {
        Frozen::read(RAILS)
    }

    /// Bytes of its file.
    pub fn shipped_bytes() -> &'static [u8] {
        FILE
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dynamiccl_spec::Choice;
    use dynamiccl_spec::features::hash;

    use super::*;
    use crate::policy::PolicyTuner;
    use crate::probe::Call;
    use crate::random::Random;

    #[test]
    fn the_file_is_for_this_build_and_is_spelt_as_we_would() {
        let shipped = Frozen::shipped().unwrap_or_else(|error| panic!("{error}"));
        assert!(shipped.to_bytes() == FILE, "written again it is another file");
        assert_eq!(shipped.about.metadata()["encoder"], format!("{:016x}", hash()));
        assert!((-3.0..=3.0).contains(&shipped.about.margin), "margin {}", shipped.about.margin);
    }

    /// Fails as long as the file is the network before any training, whose manifest says so.
    #[test]
    fn its_manifest_says_how_it_was_made_and_what_it_reached() {
        let about = Frozen::shipped().unwrap().about;
        let training = &about.training;
        assert!(!about.name.contains("untrained"), "the shipped policy is {:?}: train one", about.name);
        assert!(training.command.starts_with("dynamiccl train "), "command {:?}", training.command);
        assert_eq!(training.curriculum, "full");
        assert!(training.seeds.len() >= 3, "seeds {:?}", training.seeds);
        assert!(training.steps > 0 && !training.version.is_empty() && !training.created.is_empty());
        assert!(about.nccl.iter().any(|release| release == "2.30"), "NCCL {:?}", about.nccl);
        for tier in 1..=4 {
            for what in ["regret", "regret_hold", "speedup", "worst_cell"] {
                let what = format!("{what}.tier{tier}");
                assert!(about.results.iter().any(|(known, _)| *known == what), "results without {what}");
            }
        }
    }

    /// The one that never saw a live sweep, which is not built in, can be loaded like any other.
    #[test]
    fn the_blind_one_is_for_this_build_and_says_that_it_is_blind() {
        let file = include_bytes!("../../frozen/blind.safetensors");
        let frozen = Frozen::read(file).unwrap_or_else(|error| panic!("{error}"));
        assert!(frozen.to_bytes() == file, "written again it is another file");
        let training = &frozen.about.training;
        assert!(training.command.contains("--constants blind"), "command {:?}", training.command);
        assert!(training.seeds.len() >= 3, "seeds {:?}", training.seeds);
        assert!(frozen.tuner().is_ok(), "no tuner of NCCL");
    }

    /// Those for networks that change say what they are for, how they were made and what they reached.
    #[test]
    fn networks_that_change_have_policies_of_their_own() {
        for (file, frozen, kind, watched) in [
            (WAN, Frozen::shipped_wan(), "wan", "over_clairvoyant.rho0.95"),
            (RAILS, Frozen::shipped_rails(), "rails", "increase.pp8"),
        ] {
            let frozen = frozen.unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert!(frozen.to_bytes() == file, "{kind}: written again it is another file");
            assert!(file.len() < 150_000, "{kind}: {} bytes", file.len());
            let about = &frozen.about;
            assert_eq!(about.training.curriculum.split_whitespace().next(), Some(kind));
            assert!(about.training.command.starts_with("dynamiccl train "), "{:?}", about.training.command);
            assert!(about.training.seeds.len() >= 3, "{kind}: seeds {:?}", about.training.seeds);
            assert!(about.results.iter().any(|(name, _)| name == watched), "{kind}: {:?}", about.results);
            assert!(matches!(frozen.tuner(), Err(FrozenError::Foreign { .. })), "{kind} as a tuner of NCCL");
        }
    }

    /// Whatever it is asked, likely or not, it answers with knobs that may be chosen.
    #[test]
    fn it_decides_within_limits() {
        let policy = Arc::new(Frozen::shipped().unwrap().policy());
        let mut tuner = PolicyTuner::new(policy, None);
        let mut random = Random::new(1);
        for _ in 0..2000 {
            let call = Call::draw(&mut random);
            let query = call.query();
            let decision = tuner.answer(&query);
            let Some(own) = query.gated.own else { continue };
            let choice = Choice::of(&decision.knobs, own);
            assert_eq!(query.gated.mask.refuses(&choice), None, "{decision:?}");
        }
    }
}
