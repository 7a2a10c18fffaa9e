//! What the network behind the GPUs costs and draws: electrical rails beside optical ones.
//!
//! Prices and watts are those of the paper's public artifact. *Ideal* switches have whatever radix fits the
//! cluster and are paid by the port, as the paper counts; *real* ones have 64 ports and are paid whole, which
//! is what a buyer meets. Fibres and hosts are left out on both sides.

use serde::Serialize;

/// GPUs, and so rails, of one server.
const GPUS: u64 = 8;
/// Ports of an electrical switch that can be bought.
const SWITCH_PORTS: u64 = 64;
/// Servers that a rail of leaves and spines with that many ports can join: half of a leaf's ports lead down, and every
/// spine has a port for each leaf.
pub const MOST_REAL: u64 = SWITCH_PORTS * SWITCH_PORTS / 2;
/// A 400 Gb/s transceiver.
const TRANSCEIVER: Part = Part { dollars: 219.0, watts: 10.0 };
/// A port of an electrical switch.
const SWITCH_PORT: Part =
    Part { dollars: 37_299.0 / SWITCH_PORTS as f64, watts: 2_524.0 / SWITCH_PORTS as f64 };
/// A port of an optical switch.
const OPTICAL_PORT: Part = Part { dollars: 520.0, watts: 75.0 / 192.0 };

/// One thing, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Part {
    /// What it costs.
    pub dollars: f64,
    /// What it draws.
    pub watts: f64,
}

/// An electrical network beside the optical one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Electrical {
    /// Ports of its switches.
    pub ports: u64,
    /// All of it.
    pub whole: Part,
    /// What the optical network costs more, in %; negative where it saves.
    pub cost_change: f64,
    /// What the optical network draws more, in %.
    pub power_change: f64,
}

/// The networks of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bill {
    /// Servers of eight GPUs.
    pub servers: u64,
    /// All GPUs.
    pub gpus: u64,
    /// Optical rails.
    pub optical: Part,
    /// Electrical rails of ideal switches.
    pub ideal: Electrical,
    /// Electrical rails of switches that can be bought; none above [`MOST_REAL`] servers.
    pub real: Option<Electrical>,
}

impl Part {
    fn times(self, count: u64) -> Part {
        Part { dollars: self.dollars * count as f64, watts: self.watts * count as f64 }
    }

    fn and(self, other: Part) -> Part {
        Part { dollars: self.dollars + other.dollars, watts: self.watts + other.watts }
    }
}

impl Bill {
    /// The networks of so many servers, at least one.
    pub fn of(servers: u64) -> Bill {
        let servers = servers.max(1);
        let gpus = GPUS * servers;
        let optical = OPTICAL_PORT.times(2 * gpus).and(TRANSCEIVER.times(gpus));
        let electrical = |ports: u64| {
            let whole = SWITCH_PORT.times(ports).and(TRANSCEIVER.times(ports + gpus));
            let change = |optical: f64, electrical: f64| 100.0 * (optical / electrical - 1.0);
            Electrical {
                ports,
                whole,
                cost_change: change(optical.dollars, whole.dollars),
                power_change: change(optical.watts, whole.watts),
            }
        };
        let (ideal, real) = (electrical(ideal_ports(servers)), real_ports(servers).map(electrical));
        Bill { servers, gpus, optical, ideal, real }
    }
}

/// Leaves and spines of each rail and a spine across rails, of switches with the radix √(4·servers).
fn ideal_ports(servers: u64) -> u64 {
    let radix = (((4 * servers) as f64).sqrt() + 0.5).floor() as u64;
    let of_a_rail = 2 * (servers / (radix / 2).max(1));
    radix * (GPUS * of_a_rail + GPUS * servers / radix)
}

/// One switch for each rail while that is enough, then leaves and spines without oversubscription while those are.
fn real_ports(servers: u64) -> Option<u64> {
    if servers <= SWITCH_PORTS {
        return Some(SWITCH_PORTS * GPUS);
    }
    let leaves = servers.div_ceil(SWITCH_PORTS / 2);
    (servers <= MOST_REAL).then_some((leaves + leaves.div_ceil(2)) * SWITCH_PORTS * GPUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_512_servers_it_saves_what_the_paper_says() {
        let bill = Bill::of(512);
        assert_eq!(bill.gpus, 4096);
        assert!((bill.ideal.cost_change + 70.5).abs() < 0.05, "{bill:?}");
        assert!((bill.ideal.power_change + 95.84).abs() < 0.05, "{bill:?}");
        // Switches that can be bought leave less to save.
        let real = bill.real.unwrap();
        assert!((real.cost_change + 52.0).abs() < 0.05, "{bill:?}");
        assert!((real.power_change + 93.2).abs() < 0.05, "{bill:?}");
    }

    #[test]
    fn a_small_cluster_of_real_switches_is_cheaper_without_optics() {
        let small = Bill::of(64);
        assert!((small.real.unwrap().cost_change - 23.3).abs() < 0.05, "{small:?}");
        assert!((small.ideal.cost_change + 70.22).abs() < 0.05, "{small:?}");
        assert!(Bill::of(0).ideal.whole.dollars > 0.0);
    }

    #[test]
    fn real_switches_end_where_their_spines_have_no_more_ports() {
        assert_eq!(MOST_REAL, 2048);
        assert_eq!(Bill::of(2048).real.unwrap().ports, (64 + 32) * 64 * 8);
        assert!(Bill::of(2049).real.is_none());
    }
}
