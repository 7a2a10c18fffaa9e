//! The beginning of a communicator: everything that may fail does so here, on that rank and at once.

use dynamiccl_spec::Gates;
use dynamiccl_spec::features::Encoder;
use dynamiccl_spec::loaded::{Loaded, Rule};
use dynamiccl_spec::variables::{CONTEXT, DETERMINISTIC};

use super::communicator::{Communicator, Hot};
use super::decider::Decider;
use crate::deployment::{self, Deployment, DeploymentError};
use crate::logger::Logger;
use crate::policy::{self, PolicyError};
use crate::settings::{Mode, Settings, SettingsError, Source, Unexpected, strict};

/// The first version of the interface that hands over a table.
const TABLES_SINCE: u32 = 3;

/// What NCCL says of a communicator when it begins.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The version of the interface.
    pub interface: u32,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// NCCL's name for it, which profilers see too.
    pub id: Option<u64>,
    /// NVLink domains with the fewest and the most ranks of one. Only logged: old interfaces do not
    /// say it, and nothing was learned from it.
    pub domains: Option<[i32; 3]>,
    /// NCCL's log.
    pub logger: Logger,
}

/// Why a communicator cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpeningError {
    /// A variable means nothing.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// No policy.
    #[error("{0}")]
    Policy(#[from] PolicyError),
    /// No deployment.
    #[error("{CONTEXT}: {0}")]
    Context(#[from] DeploymentError),
    /// Other files than the launcher meant.
    #[error("{0}")]
    Unexpected(#[from] Unexpected),
}

/// How a communicator begins.
#[derive(Debug)]
pub enum Opened {
    /// It is tuned.
    Tuned(Box<Communicator>),
    /// It is NCCL's alone.
    Alone,
    /// It must not run: others would decide what this one cannot.
    Refused,
}

/// Forgets what no communicator uses: NCCL may unload the library next.
pub fn forget_unused() {
    policy::forget_unused();
    deployment::forget_unused();
}

impl Opening {
    /// Begins, as the environment says, and logs how.
    pub fn open(&self, get: impl Fn(&str) -> Option<String>) -> Opened {
        match self.tuned(&get) {
            Ok(Some(communicator)) => Opened::Tuned(Box::new(communicator)),
            Ok(None) => Opened::Alone,
            Err(error) if strict(&get) => {
                self.logger.fail(&format!(
                    "{error}. This rank would choose otherwise than its peers, and they would hang: it stops. \
                     Mend it, or set DYNAMICCL_MODE=off on all ranks"
                ));
                Opened::Refused
            }
            Err(error) => {
                self.logger.fail(&format!(
                    "{error}. DYNAMICCL_STRICT=0: NCCL chooses by itself on this rank, which hangs unless it \
                     does so on all"
                ));
                Opened::Alone
            }
        }
    }

    fn tuned(&self, get: &impl Fn(&str) -> Option<String>) -> Result<Option<Communicator>, OpeningError> {
        let settings = Settings::read(get)?;
        if settings.mode == Mode::Off {
            self.logger.info(&self.loaded(None).to_string());
            return Ok(None);
        }
        let policy = policy::load(&settings.source)?;
        let deployment = settings.context.as_deref().map(Deployment::kept).transpose()?.unwrap_or_default();
        settings.expects_policy(policy.as_ref().map(|policy| policy.hash()))?;
        settings.expects_context(deployment.hash())?;
        let name = match (&policy, &settings.source) {
            (Some(policy), Source::Shipped) => format!("shipped {:016x}", policy.hash()),
            (Some(policy), _) => format!("{} {:016x}", policy.name(), policy.hash()),
            (None, _) => "walk (for tests only)".to_owned(),
        };
        let context = deployment.hash().map_or("none".to_owned(), |hash| format!("{hash:016x}"));
        let tables = self.interface >= TABLES_SINCE;
        let rule = Rule {
            policy: name,
            context,
            mode: settings.mode.name().to_owned(),
            tables,
            deterministic: settings.deterministic,
            fixed: settings.fixed.join(", "),
        };
        self.logger.info(&self.loaded(Some(rule)).to_string());
        let left_out = deployment.left_out();
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            self.logger.info(&format!(
                "the deployment file leaves out {left_out}: policies are trained to be told all of a section or nothing"
            ));
        }
        if settings.deterministic && !tables {
            let remedy = "set NCCL_ALGO, or use NCCL 2.22 or newer";
            self.logger
                .warn(&format!("{DETERMINISTIC} changes nothing with tuner v{}: {remedy}", self.interface));
        }
        let context = deployment.context(self.ranks, self.nodes);
        let decider = Decider::new(policy);
        Ok(Some(Communicator {
            hot: Hot::new(settings.mode, decider.is_pure(), self.interface),
            logger: self.logger,
            ranks: self.ranks,
            nodes: self.nodes,
            encoder: Encoder::new(&context),
            gates: Gates::new(&context.topology, settings.deterministic, settings.overrides.clone()),
            overrides: settings.overrides,
            decider,
            schedules: deployment.schedules(self.ranks, self.nodes),
            _deployment: deployment,
            logged: Default::default(),
            warned: Default::default(),
            failed: Default::default(),
        }))
    }

    fn loaded(&self, rule: Option<Rule>) -> Loaded {
        let Opening { interface, ranks, nodes, .. } = self;
        let id = self.id.map(|id| format!(", communicator {id:#018x}")).unwrap_or_default();
        let domains = self.domains.map_or(String::new(), |[domains, fewest, most]| {
            format!(", {domains} NVLink domains of {fewest} to {most} ranks")
        });
        let communicator = format!("tuner v{interface}, {ranks} ranks on {nodes} nodes{domains}{id}");
        Loaded { version: env!("CARGO_PKG_VERSION").to_owned(), communicator, rule }
    }
}
