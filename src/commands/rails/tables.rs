//! Tables that need no job: how far each kind of switch scales, and what networks cost.

use std::fmt;

use dynamiccl_env::rails::bom::{Bill, Electrical, MOST_REAL};
use dynamiccl_env::rails::{SCALE_UPS, TECHNOLOGIES, Technology};
use serde::Serialize;

use crate::table::{Column, Table};

/// `rails --table3`.
#[derive(Debug, Serialize)]
pub struct Scales {
    technologies: Vec<Scale>,
}

#[derive(Debug, Serialize)]
struct Scale {
    #[serde(flatten)]
    technology: Technology,
    gb200_gpus: u32,
    h200_gpus: u32,
}

impl Scales {
    /// All kinds of switch.
    pub fn new() -> Self {
        let scale = |technology: Technology| {
            let [gb200_gpus, h200_gpus] = SCALE_UPS.map(|(_, gpus)| technology.largest_cluster(gpus));
            Scale { technology, gb200_gpus, h200_gpus }
        };
        Scales { technologies: TECHNOLOGIES.map(scale).into() }
    }
}

impl fmt::Display for Scales {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            Column::left("technology"),
            Column::left("maker"),
            Column::right("delay").unit("(ms)"),
            Column::right("radix").unit("(ports)"),
            Column::right("GB200").unit("(GPUs)"),
            Column::right("H200").unit("(GPUs)"),
        ]);
        for Scale { technology, gb200_gpus, h200_gpus } in &self.technologies {
            let Technology { name, maker, delay_us, radix } = technology;
            let delay = (delay_us / 1e3).to_string();
            let [radix, gb200, h200] = [radix, gb200_gpus, h200_gpus].map(u32::to_string);
            table.row([(*name).to_owned(), (*maker).to_owned(), delay, radix, gb200, h200]);
        }
        write!(f, "{table}")
    }
}

/// `rails --bom`.
#[derive(Debug, Serialize)]
pub struct Bills {
    #[serde(flatten)]
    bill: Bill,
}

impl Bills {
    /// The networks of so many servers.
    pub fn new(servers: u64) -> Self {
        Bills { bill: Bill::of(servers) }
    }
}

impl fmt::Display for Bills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bill { servers, gpus, optical, ideal, real } = self.bill;
        writeln!(f, "# {servers} servers, {gpus} GPUs; fibres and hosts are left out")?;
        if real.is_none() {
            writeln!(
                f,
                "# note: no network of 64-port switches: two tiers of them join {MOST_REAL} servers"
            )?;
        }
        writeln!(f, "#")?;
        let mut table = Table::new([
            Column::left("rails"),
            Column::right("ports").unit("(per GPU)"),
            Column::right("cost").unit("(M$)"),
            Column::right("power").unit("(kW)"),
            Column::right("optical cost").unit("(%)"),
            Column::right("optical power").unit("(%)"),
        ]);
        let real = real.map(|real| ("64-port switches", real));
        for (name, electrical) in [("ideal switches", ideal)].into_iter().chain(real) {
            let Electrical { ports, whole, cost_change, power_change } = electrical;
            table.row([
                name.to_owned(),
                format!("{:.2}", ports as f64 / gpus as f64),
                format!("{:.2}", whole.dollars / 1e6),
                format!("{:.1}", whole.watts / 1e3),
                format!("{cost_change:+.2}"),
                format!("{power_change:+.2}"),
            ]);
        }
        let (cost, power) = (format!("{:.2}", optical.dollars / 1e6), format!("{:.1}", optical.watts / 1e3));
        table.row(["optical".to_owned(), "2.00".to_owned(), cost, power, String::new(), String::new()]);
        write!(f, "{table}")
    }
}
