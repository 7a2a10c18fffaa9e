//! What must hold for any network, any links and any ring.

use dynamiccl_env::wan::{
    Arrangement, Datacentre, Forwarding, Method, Modes, Network, Ring, Sample, Search, Setting, Traffic, Work,
};
use dynamiccl_spec::Collective;
use proptest::prelude::*;

/// Any small WAN, with any collective and either kind of router.
fn any_setting() -> impl Strategy<Value = Setting> {
    let datacentre = (1usize..5, 1usize..4).prop_map(|(gpus, routers)| Datacentre { gpus, routers });
    let collectives =
        [Collective::AllGather, Collective::AllReduce, Collective::ReduceScatter, Collective::AllToAll];
    let forwarding = [Forwarding::CutThrough, Forwarding::StoreAndForward];
    (
        prop::collection::vec(datacentre, 2..4),
        prop::sample::select(collectives.to_vec()),
        prop::sample::select(forwarding.to_vec()),
        1.0f64..64.0,
        0.0f64..10.0,
    )
        .prop_map(|(datacentres, collective, forwarding, chunk_mb, delay_ms)| {
            let setting = Setting::new(Network::new(&datacentres).unwrap()).unwrap();
            let setting = setting.with_collective(collective).unwrap();
            Setting { forwarding, chunk_mb, delay_ms, ..setting }
        })
}

fn sample(setting: &Setting, seed: u64) -> Sample {
    Traffic::new(setting, 0.0, seed, 0).next_sample()
}

/// Whether a ring goes through every GPU once and through every datacentre in one go.
fn goes_through_all(ring: &Ring, network: &Network) -> bool {
    let mut gpus = ring.gpus().to_vec();
    gpus.sort_unstable();
    let crossings = ring.hops().filter(|&(from, to)| network.home(from) != network.home(to)).count();
    gpus == Ring::usual(network).gpus() && crossings == network.datacentres().len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn more_bandwidth_is_never_slower(setting in any_setting(), seed: u64, link: prop::sample::Index, more in 1.0f64..4.0) {
        let links = sample(&setting, seed);
        let faster = link.index(setting.network.links());
        let gbps = links.links().iter().enumerate().map(|(at, gbps)| if at == faster { gbps * more } else { *gbps });
        let wider = Sample::of(gbps);
        let (best, ms) = Search::new(&setting.network).widest_routes(&setting, &links);
        let mut work = Work::default();
        for arrangement in [Arrangement::usual(&setting.network), best.clone()] {
            let [before, after] = [&links, &wider].map(|links| work.time(&setting, &arrangement, links));
            prop_assert!(after <= before, "{before} {after}");
        }
        // With routers that pass on what comes in, the search finds what is to be gained.
        if setting.forwarding == Forwarding::CutThrough {
            let again = Search::new(&setting.network).widest_routes(&setting, &wider).1;
            prop_assert!(again <= ms * (1.0 + 1e-12), "{ms} {again}");
        }
    }

    #[test]
    fn rerouting_is_never_slower_on_what_it_sees(setting in any_setting(), seed: u64) {
        let links = sample(&setting, seed);
        let mut work = Work::default();
        let usual = Arrangement::usual(&setting.network);
        let routes = usual.rerouted(&setting, &links, &mut work);
        let after = work.time_of(&setting, &usual.ring, &routes, &links);
        prop_assert!(after <= work.time(&setting, &usual, &links));
    }

    #[test]
    fn the_best_ring_is_a_ring_and_never_slower_than_the_usual(setting in any_setting(), seed: u64) {
        let links = sample(&setting, seed);
        let mut search = Search::new(&setting.network);
        let (best, ms) = search.usual_routes(&setting, &links);
        prop_assert!(goes_through_all(&best.ring, &setting.network));
        let usual = Work::default().time(&setting, &Arrangement::usual(&setting.network), &links);
        prop_assert!(ms <= usual * (1.0 + 1e-12), "{ms} {usual}");
    }

    #[test]
    fn modes_meet_the_same_traffic_and_none_is_slower_for_seeing_it(setting in any_setting(), seed: u64) {
        let search = Search::new(&setting.network);
        // The other searches come near to the best ring of each mode, not nearer in one than in the other.
        let exact = search.method() == Method::Exact;
        let mut run = Modes { cadence: 1, lag: 0, rho: 0.5, seed }.begin(&setting, search);
        for _ in 0..5 {
            let [base, ccl, wan, both] = run.step();
            prop_assert!(wan <= base && ccl <= base * (1.0 + 1e-12));
            if setting.forwarding == Forwarding::CutThrough {
                prop_assert!(both <= wan * (1.0 + 1e-12) && (!exact || both <= ccl * (1.0 + 1e-12)));
            }
        }
    }
}
