//! What a policy sees before a collective, as numbers: what each move would gain now and in a while, what it
//! would cost, where it is slow, and what has happened so far.

use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::math::{exp, ln};

use crate::gym::{FeatureSpace, HeadSpace, Observation, Spaces};
use crate::wan::Schedule;
use crate::wan::arrangement::Work;
use crate::wan::control::{Move, View};
use crate::wan::outlook::Outlook;
use crate::wan::traffic::Sample;

/// Collectives ahead for which gains are expected, and for how many collectives around it each stands in a sum.
const AHEAD: [(f64, f64); 4] = [(1.0, 2.0), (4.0, 4.5), (10.0, 10.0), (30.0, 25.0)];
/// Collectives after which the next change may come: what is expected later counts the less.
const UNTIL_NEXT: [f64; 2] = [5.0, 20.0];
/// Of those ahead, where what is expected is told beside what is usual.
const BESIDE_USUAL: usize = 2;
/// Collectives beyond which it does not matter how long ago something was.
const LONG_AGO: f64 = 1000.0;

/// What a context holds, and the smallest value of each; none is above 1.
const CONTEXT: [(&str, f32); 43] = [
    ("gain_reroute", -1.0),
    ("gain_rebuild", -1.0),
    ("gain_rebuild_over_reroute", -1.0),
    ("gain_reroute_in_1", -1.0),
    ("gain_reroute_in_4", -1.0),
    ("gain_reroute_in_10", -1.0),
    ("gain_reroute_in_30", -1.0),
    ("gain_rebuild_in_1", -1.0),
    ("gain_rebuild_in_4", -1.0),
    ("gain_rebuild_in_10", -1.0),
    ("gain_rebuild_in_30", -1.0),
    ("keep_in_10_over_usual", 0.0),
    ("rebuild_in_10_over_usual", 0.0),
    ("worth_reroute_for_5", -1.0),
    ("worth_rebuild_for_5", -1.0),
    ("worth_rebuild_over_reroute_for_5", -1.0),
    ("worth_reroute_for_20", -1.0),
    ("worth_rebuild_for_20", -1.0),
    ("worth_rebuild_over_reroute_for_20", -1.0),
    ("pays_reroute", -1.0),
    ("pays_rebuild", -1.0),
    ("pays_rebuild_over_reroute", -1.0),
    ("cost_reroute", 0.0),
    ("cost_rebuild", 0.0),
    ("reroute_changes", 0.0),
    ("rebuild_changes", 0.0),
    ("best_over_now", 0.0),
    ("now_over_base", 0.0),
    ("bottleneck_crosses", 0.0),
    ("bottleneck_place", 0.0),
    ("bottleneck_share", 0.0),
    ("since_reroute", 0.0),
    ("since_rebuild", 0.0),
    ("correlation", -1.0),
    ("lag", 0.0),
    ("log_chunk", 0.0),
    ("gpus", 0.0),
    ("datacentres", 0.0),
    ("delay", 0.0),
    ("allgather", 0.0),
    ("reducescatter", 0.0),
    ("allreduce", 0.0),
    ("alltoall", 0.0),
];

/// What a history row holds.
const HISTORY: [(&str, f32); 6] = [
    ("last_keep", 0.0),
    ("last_reroute", 0.0),
    ("last_rebuild", 0.0),
    ("last_over_foreseen", 0.0),
    ("last_over_now", 0.0),
    ("last_cost", 0.0),
];

/// What only a critic sees.
const PRIVILEGED: [(&str, f32); 5] = [
    ("rho", -1.0),
    ("true_gain_reroute", -1.0),
    ("true_gain_rebuild", -1.0),
    ("true_now_over_base", 0.0),
    ("left", 0.0),
];

/// The spaces of the environment.
pub fn spaces() -> Spaces {
    let scalars =
        |of: &[(&str, f32)]| of.iter().map(|(name, low)| FeatureSpace::scalar(name, *low)).collect();
    let labels = Move::ALL.map(|moved| moved.name().to_owned()).to_vec();
    Spaces {
        id: "wan-v2".to_owned(),
        context: scalars(&CONTEXT),
        history: scalars(&HISTORY),
        privileged: scalars(&PRIVILEGED),
        heads: vec![HeadSpace { name: "move".to_owned(), labels }],
    }
}

/// Which moves change something, as bits; keeping always can be chosen.
pub fn legal(reroutes: bool, rebuilds: bool) -> u32 {
    1 | u32::from(reroutes) << 1 | u32::from(rebuilds) << 2
}

/// Writes all but what only a critic sees.
pub fn write(view: &mut View<'_>, into: &mut Observation) {
    let mut context = Row { into: &mut into.context, at: 0 };
    gains(view, &mut context);
    state(view, &mut context);
    job(view, &mut context);
    debug_assert_eq!(context.at, CONTEXT.len());
    history(view, &mut Row { into: &mut into.history, at: 0 });
    into.mask = [1; HEADS];
    into.mask[0] = legal(view.prospect.reroutes, view.prospect.rebuilds);
    into.decides = into.mask[0] != 1;
}

/// What each move gains, as a share of what a collective takes, and against what it costs.
fn gains(view: &mut View<'_>, into: &mut Row<'_>) {
    let (prospect, costs) = (view.prospect, view.operation.costs());
    let [keep, reroute, rebuild] = [prospect.keep_ms, prospect.reroute_ms, prospect.rebuild_ms];
    into.put((keep - reroute) / keep);
    into.put((keep - rebuild) / keep);
    into.put((reroute - rebuild) / keep);
    expected(view, into);
    let pays = |gain: f64, cost: f64| gain / (gain.abs() + cost + 1e-9);
    into.put(pays(keep - reroute, costs.reroute_ms));
    into.put(pays(keep - rebuild, costs.rebuild_ms));
    into.put(pays(reroute - rebuild, costs.rebuild_ms));
    into.put(costs.reroute_ms / (costs.reroute_ms + keep));
    into.put(costs.rebuild_ms / (costs.rebuild_ms + keep));
}

/// What rerouting and rebuilding now is expected to gain later, as a share of what a collective takes now.
fn expected(view: &View<'_>, into: &mut Row<'_>) {
    let at = view.operation.arrangement();
    let outlook = Outlook::new(view.setting, view.seen, view.correlation);
    let times = AHEAD.map(|(ahead, _)| {
        let mut later = outlook.after(ahead + view.lag as f64);
        let reroute = later.time(&at.ring, &view.prospect.routes);
        [later.time(&at.ring, &at.routes), reroute, later.time(&view.best.ring, &view.best.routes)]
    });
    let now = view.prospect.keep_ms;
    times.iter().for_each(|[keep, reroute, _]| into.put((keep - reroute) / now));
    times.iter().for_each(|[keep, _, rebuild]| into.put((keep - rebuild) / now));
    let usual = outlook.usually().time(&at.ring, &at.routes);
    let [keep, _, rebuild] = times[BESIDE_USUAL];
    [keep, rebuild].into_iter().for_each(|ms| into.put(ms / (ms + usual)));
    for until_next in UNTIL_NEXT {
        worth(view, &times, until_next, into);
    }
}

/// What each move gains until the next one comes, as far as can be expected, against what it costs.
fn worth(view: &View<'_>, times: &[[f64; 3]; AHEAD.len()], until_next: f64, into: &mut Row<'_>) {
    let (prospect, costs) = (view.prospect, view.operation.costs());
    let now = [prospect.keep_ms, prospect.reroute_ms, prospect.rebuild_ms];
    let counts = AHEAD.map(|(ahead, stands_for)| stands_for * exp(-ahead / until_next));
    let sum = |move_of: usize| {
        let later = counts.iter().zip(times).map(|(counts, times)| counts * times[move_of]);
        now[move_of] + later.sum::<f64>()
    };
    let [keep, reroute, rebuild] = [0, 1, 2].map(sum);
    let mut put = |gain: f64, cost: f64| into.put((gain - cost) / (gain.abs() + cost.max(0.0) + 1e-9));
    put(keep - reroute, costs.reroute_ms);
    put(keep - rebuild, costs.rebuild_ms);
    put(reroute - rebuild, costs.rebuild_ms - costs.reroute_ms);
}

/// Where it is slow, and how long ago something was done.
fn state(view: &mut View<'_>, into: &mut Row<'_>) {
    let (setting, at) = (view.setting, view.operation.arrangement());
    let prospect = view.prospect;
    into.put(f64::from(u8::from(prospect.reroutes)));
    into.put(f64::from(u8::from(prospect.rebuilds)));
    into.put(prospect.rebuild_ms / prospect.keep_ms);
    let usual = crate::wan::Arrangement::usual(&setting.network);
    let base = view.work.time(setting, &usual, view.seen);
    into.put(prospect.keep_ms / (prospect.keep_ms + base));
    let (place, crosses, ms) = view.work.bottleneck(setting, at, view.seen);
    into.put(f64::from(u8::from(crosses)));
    into.put(place as f64 / setting.network.gpus() as f64);
    into.put(ms * setting.schedule.total() / prospect.keep_ms);
    view.operation.since().iter().for_each(|&since| into.put(ln(1.0 + f64::from(since)) / ln(LONG_AGO)));
}

/// What the links and the job are like.
fn job(view: &View<'_>, into: &mut Row<'_>) {
    let setting = view.setting;
    into.put(view.correlation);
    into.put(view.lag as f64 / 8.0);
    into.put(ln(1.0 + setting.chunk_mb) / ln(1025.0));
    into.put(ln(setting.network.gpus() as f64) / ln(1024.0));
    into.put(setting.network.datacentres().len() as f64 / 16.0);
    into.put(setting.delay_ms / (setting.delay_ms + 1.0));
    let is = |collective| f64::from(u8::from(setting.schedule.collective() == collective));
    Schedule::KNOWN.into_iter().for_each(|collective| into.put(is(collective)));
}

fn history(view: &View<'_>, into: &mut Row<'_>) {
    let Some(last) = view.operation.last() else {
        into.into.fill(0.0);
        return;
    };
    let is = |moved| f64::from(u8::from(last.moved == moved));
    Move::ALL.into_iter().for_each(|moved| into.put(is(moved)));
    into.put(last.ms / (last.ms + last.foreseen_ms));
    into.put(last.ms / (last.ms + view.prospect.keep_ms));
    into.put(last.cost_ms / (last.cost_ms + last.ms));
}

/// Writes what only a critic sees: the correlation there is, the links as they are, and what is left of the episode.
pub fn write_privileged(
    view: &View<'_>,
    now: &Sample,
    base_ms: f64,
    [rho, left]: [f64; 2],
    work: &mut Work,
    into: &mut Observation,
) {
    let (setting, at) = (view.setting, view.operation.arrangement());
    let keep = work.time(setting, at, now);
    let reroute = work.time_of(setting, &at.ring, &view.prospect.routes, now);
    let rebuild = work.time(setting, view.best, now);
    let mut row = Row { into: &mut into.privileged, at: 0 };
    let values = [rho, (keep - reroute) / keep, (keep - rebuild) / keep, keep / (keep + base_ms), left];
    values.into_iter().for_each(|value| row.put(value));
}

/// A row that is written number by number, each kept within its range.
struct Row<'a> {
    into: &'a mut [f32],
    at: usize,
}

impl Row<'_> {
    fn put(&mut self, value: f64) {
        self.into[self.at] = value.clamp(-1.0, 1.0) as f32;
        self.at += 1;
    }
}
