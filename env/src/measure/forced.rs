//! Which knobs the measured job was told to use.
//!
//! A row may only claim an algorithm, a protocol or a channel count that its source forced: what
//! NCCL chose by itself is not in any log, and a guess would poison every fit made from it.

use dynamiccl_spec::{Algorithm, Protocol};

/// NCCL's environment, as far as it pins knobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Forced {
    algorithm: Option<Algorithm>,
    protocol: Option<Protocol>,
    min_channels: Option<u32>,
    max_channels: Option<u32>,
}

impl Forced {
    /// Takes note of one environment variable. Lists and exclusions pin nothing.
    pub(super) fn note(&mut self, name: &str, value: &str) {
        let value = value.trim().trim_end_matches('.');
        match name {
            "NCCL_ALGO" => self.algorithm = value.parse().ok(),
            "NCCL_PROTO" => self.protocol = value.parse().ok(),
            "NCCL_MIN_NCHANNELS" | "NCCL_MIN_CTAS" => self.min_channels = value.parse().ok(),
            "NCCL_MAX_NCHANNELS" | "NCCL_MAX_CTAS" => self.max_channels = value.parse().ok(),
            _ => {}
        }
    }

    /// Takes note of `NCCL INFO NCCL_ALGO set by environment to Ring`.
    pub(super) fn note_line(&mut self, line: &str) {
        if let Some((before, value)) = line.split_once(" set by environment to ")
            && let Some(name) = before.split_whitespace().last()
        {
            self.note(name, value);
        }
    }

    /// The forced algorithm and protocol.
    pub(super) fn pair(&self) -> (Option<Algorithm>, Option<Protocol>) {
        (self.algorithm, self.protocol)
    }

    /// The channel count, where the lower and the upper bound leave only one.
    pub(super) fn channels(&self) -> Option<u32> {
        self.min_channels.filter(|_| self.min_channels == self.max_channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_word_pins_a_knob() {
        let mut forced = Forced::default();
        forced.note_line("n0:12:34 [0] NCCL INFO NCCL_ALGO set by environment to Ring");
        forced.note_line("n0:12:34 [0] NCCL INFO NCCL_PROTO set by environment to ^LL128");
        forced.note_line("n0:12:34 [0] NCCL INFO NCCL_MIN_NCHANNELS set by environment to 4.");
        assert_eq!(forced.pair(), (Some(Algorithm::Ring), None));
        assert_eq!(forced.channels(), None);
        forced.note("NCCL_MAX_NCHANNELS", "4");
        assert_eq!(forced.channels(), Some(4));
        forced.note("NCCL_ALGO", "ring,tree");
        assert_eq!(forced.pair(), (None, None));
    }
}
