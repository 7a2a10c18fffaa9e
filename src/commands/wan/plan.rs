//! What the words of `wan` mean: a network, a collective, its traffic.

use anyhow::{Context, Result, ensure};
use dynamiccl_env::wan::{Datacentre, Forwarding, Method, Modes, Network, Search, Setting};
use dynamiccl_spec::Collective;
use serde::Serialize;

use crate::args::WanArgs;

/// What is run.
pub struct Plan<'a> {
    /// The words.
    pub args: &'a WanArgs,
    /// What stays the same from one collective to the next.
    pub setting: Setting,
}

/// What every document of `wan` begins with.
#[derive(Debug, Clone, Serialize)]
pub struct About {
    /// Always: no number here was measured.
    pub simulated: bool,
    /// The datacentres.
    pub datacentres: Vec<Datacentre>,
    /// What goes round the ring.
    pub collective: Collective,
    /// How routers pass messages on.
    pub forwarding: Forwarding,
    /// Gbit/s between datacentres, least and most.
    pub between_gbps: [f64; 2],
    /// Gbit/s inside.
    pub inside_gbps: [f64; 2],
    /// Correlation of the traffic.
    pub rho: f64,
    /// Collectives after which links are seen.
    pub lag: u16,
    /// How rings are searched.
    pub search: Method,
    /// Collectives that ran, of each cell or trace where there are several.
    pub collectives: u64,
}

impl<'a> Plan<'a> {
    /// Fails where the words make no sense.
    pub fn new(args: &'a WanArgs) -> Result<Self> {
        ensure!((0.0..1.0).contains(&args.rho), "--rho {}: give a correlation from 0 to below 1", args.rho);
        for (flag, ms) in [("--rebuild-ms", args.rebuild_ms), ("--reroute-ms", args.reroute_ms)] {
            ensure!(ms >= 0.0 && ms.is_finite(), "{flag} {ms}: give a time from 0 up");
        }
        let gpus = || args.gpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let network = Network::new(&datacentres(args)?).with_context(|| format!("--gpus {}", gpus()))?;
        let setting = Setting {
            chunk_mb: args.mb,
            delay_ms: args.delay.0 / 1e3,
            inside_delay_ms: args.inside_delay.0 / 1e3,
            forwarding: args.forwarding,
            between_gbps: args.between_gbps,
            inside_gbps: args.inside_gbps,
            ..Setting::new(network)?
        };
        let collective = args.collective;
        let setting =
            setting.with_collective(collective).with_context(|| format!("--collective {collective}"))?;
        setting.check()?;
        if let Some(method) = args.search {
            method.check(&setting.network).with_context(|| format!("--search {method}"))?;
        }
        Ok(Plan { args, setting })
    }

    /// The search that was asked for.
    pub fn search(&self) -> Search {
        self.args.search.map_or_else(|| Search::new(&self.setting.network), Search::by)
    }

    /// How the modes are run.
    pub fn modes(&self, seed: u64) -> Modes {
        let WanArgs { cadence, rho, .. } = *self.args;
        Modes { cadence, lag: self.args.lag.into(), rho, seed }
    }

    /// Collectives to run, so many where nobody says.
    pub fn collectives(&self, usual: u64) -> u64 {
        self.args.collectives.unwrap_or(usual)
    }

    /// What the documents begin with.
    pub fn about(&self, collectives: u64) -> About {
        About {
            simulated: true,
            datacentres: self.setting.network.datacentres().to_vec(),
            collective: self.args.collective,
            forwarding: self.args.forwarding,
            between_gbps: self.args.between_gbps,
            inside_gbps: self.args.inside_gbps,
            rho: self.args.rho,
            lag: self.args.lag,
            search: self.search().method(),
            collectives,
        }
    }
}

fn datacentres(args: &WanArgs) -> Result<Vec<Datacentre>> {
    let routers = args.routers;
    if let [all] = args.gpus[..] {
        let count = args.datacentres;
        ensure!(
            count > 0 && all.is_multiple_of(count),
            "--gpus {all}: {count} datacentres cannot share them evenly; give the GPUs of each, like --gpus 3,5"
        );
        return Ok(vec![Datacentre { gpus: all / count, routers }; count]);
    }
    Ok(args.gpus.iter().map(|&gpus| Datacentre { gpus, routers }).collect())
}

impl About {
    /// The lines that the text begins with.
    pub fn heading(&self) -> String {
        let gpus: Vec<String> = self.datacentres.iter().map(|one| one.gpus.to_string()).collect();
        let routers = self.datacentres.first().map_or(0, |one| one.routers);
        let ([low, high], [least, most]) = (self.between_gbps, self.inside_gbps);
        let forwarding = match self.forwarding {
            Forwarding::CutThrough => "cut-through",
            Forwarding::StoreAndForward => "store-and-forward",
        };
        let search = match self.search {
            Method::Exact => "exact",
            Method::HeldKarp => "Held-Karp",
            Method::Local => "local",
        };
        format!(
            "# {} GPUs in datacentres of {}, {routers} routers each, {forwarding}; {} on a ring\n\
             # {low} to {high} Gbit/s between datacentres, {least} to {most} inside; correlation {}, seen {} late\n\
             # simulated, {} collectives, {search} search\n",
            self.datacentres.iter().map(|one| one.gpus).sum::<usize>(),
            gpus.join(" and "),
            self.collective,
            self.rho,
            self.lag,
            self.collectives,
        )
    }
}
