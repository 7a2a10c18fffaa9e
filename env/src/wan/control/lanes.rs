//! Several collectives at once, whose rings differ only in routes: what the clairvoyant spends its time on.

use crate::wan::clock::Hop;

/// How many at once.
pub const LANES: usize = 8;

/// One hop of each.
#[derive(Debug, Clone, Copy)]
pub struct Hops {
    send: [[f64; LANES]; 3],
    delay: [f64; 3],
    links: usize,
}

impl Hops {
    /// The same hop for all, or another for each; all have as many links and the same delays.
    pub fn of(hop: impl Fn(usize) -> Hop) -> Self {
        let hops: [Hop; LANES] = std::array::from_fn(hop);
        let (links, delay) = hops[0].form();
        let send = std::array::from_fn(|link| hops.map(|hop| hop.send(link)));
        Hops { send, delay, links }
    }
}

/// Room to work in.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    sent: Vec<[[f64; LANES]; 3]>,
    arrived: [Vec<[f64; LANES]>; 2],
}

impl Clocks {
    /// ms of each; [`crate::wan::Clock`] says what it means.
    pub fn times(&mut self, hops: &[Hops], chunks: &[f64]) -> [f64; LANES] {
        let Clocks { sent, arrived: [now, before] } = self;
        let n = hops.len();
        sent.clear();
        sent.resize(n, [[0.0; LANES]; 3]);
        for arrived in [&mut *now, &mut *before] {
            arrived.clear();
            arrived.resize(n, [0.0; LANES]);
        }
        for &chunks in chunks {
            std::mem::swap(now, before);
            let mut ready = before[n - 1];
            for (((hop, sent), now), before) in hops.iter().zip(&mut *sent).zip(&mut *now).zip(&*before) {
                for link in 0..hop.links {
                    let (sent, send, delay) = (&mut sent[link], &hop.send[link], hop.delay[link]);
                    for ((sent, send), ready) in sent.iter_mut().zip(send).zip(&mut ready) {
                        *sent = (if *ready > *sent { *ready } else { *sent }) + chunks * send;
                        *ready = *sent + delay;
                    }
                }
                *now = ready;
                ready = *before;
            }
        }
        now.iter().fold([0.0; LANES], |last, arrived| std::array::from_fn(|i| last[i].max(arrived[i])))
    }
}
