//! Optical circuit switches that can be bought or built: how many ports, how long a new configuration takes.
//!
//! Radix and delay are those of table 3 of "Photonic Rails in ML Datacenters" (arXiv 2507.08119); everything
//! else follows from them. Nothing here knows a job.

use dynamiccl_spec::words::{UnknownWord, look_up};
use serde::Serialize;

/// Ports of a switch that one GPU takes: one for each neighbour on a ring.
const PORTS_PER_GPU: u32 = 2;

/// A kind of optical circuit switch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Technology {
    /// Its name.
    pub name: &'static str,
    /// Who makes one.
    pub maker: &'static str,
    /// µs until a new configuration carries light.
    pub delay_us: f64,
    /// Ports.
    pub radix: u32,
}

/// GPUs that share a fast domain, by the machine that has it.
pub const SCALE_UPS: [(&str, u32); 2] = [("GB200", 72), ("H200", 8)];

/// All of them, fastest first.
pub const TECHNOLOGIES: [Technology; 7] = [
    Technology { name: "plzt", maker: "EpiPhotonics", delay_us: 0.01, radix: 16 },
    Technology { name: "sip", maker: "Lightmatter", delay_us: 7.0, radix: 32 },
    Technology { name: "rotornet", maker: "InFocus", delay_us: 10.0, radix: 128 },
    Technology { name: "3d_mems", maker: "Calient", delay_us: 15e3, radix: 320 },
    Technology { name: "piezo", maker: "Polatis", delay_us: 25e3, radix: 576 },
    Technology { name: "liquid_crystal", maker: "Coherent", delay_us: 100e3, radix: 512 },
    Technology { name: "robotic", maker: "Telescent", delay_us: 120e6, radix: 1008 },
];

impl Technology {
    /// The one with this name.
    pub fn named(name: &str) -> Result<Technology, UnknownWord> {
        let known = TECHNOLOGIES.map(|technology| (technology.name, technology));
        look_up("optical switch", name, &known)
    }

    /// GPUs of the largest cluster with one such switch for each rail, in fast domains of so many GPUs.
    pub fn largest_cluster(&self, scale_up: u32) -> u32 {
        scale_up * (self.radix / PORTS_PER_GPU)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_3_is_exact_in_all_cells() {
        let paper = [
            (576, 64),
            (1152, 128),
            (4608, 512),
            (11_520, 1280),
            (20_736, 2304),
            (18_432, 2048),
            (36_288, 4032),
        ];
        for (technology, (gb200, h200)) in TECHNOLOGIES.iter().zip(paper) {
            let ours = SCALE_UPS.map(|(_, gpus)| technology.largest_cluster(gpus));
            assert_eq!(ours, [gb200, h200], "{}", technology.name);
        }
    }

    #[test]
    fn a_typo_is_answered() {
        assert_eq!(Technology::named("piezo").unwrap().radix, 576);
        let error = Technology::named("pieso").unwrap_err().to_string();
        assert!(error.contains("did you mean \"piezo\""), "{error}");
    }
}
