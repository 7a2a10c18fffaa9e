//! When a collective on a ring is done: every message waits for the link and for what it passes on.

/// One hop of a ring: how long a chunk takes, and how long until its end has arrived. A crossing of routers that
/// store before they forward is three links one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    send: [f64; 3],
    delay: [f64; 3],
    links: usize,
}

impl Hop {
    /// One link, or several that pass on what comes in.
    #[inline]
    pub fn one(send: f64, delay: f64) -> Self {
        Hop { send: [send, 0.0, 0.0], delay: [delay, 0.0, 0.0], links: 1 }
    }

    /// Three links, each of which waits for the whole message.
    #[inline]
    pub fn three(send: [f64; 3], delay: [f64; 3]) -> Self {
        Hop { send, delay, links: 3 }
    }

    /// How many links it has, and their delays.
    #[inline]
    pub(super) fn form(&self) -> (usize, [f64; 3]) {
        (self.links, self.delay)
    }

    /// ms of a chunk on one of its links.
    #[inline]
    pub(super) fn send(&self, link: usize) -> f64 {
        self.send[link]
    }

    /// ms of a chunk on its slowest link.
    #[inline]
    pub fn slowest(&self) -> f64 {
        self.send[0].max(self.send[1]).max(self.send[2])
    }
}

/// Works out when a collective is done; it keeps its room between two of them.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// When each link of each hop has sent its last message.
    sent: Vec<[f64; 3]>,
    /// When the message of this round and of the one before has arrived, by the hop that carried it.
    arrived: [Vec<f64>; 2],
}

impl Clock {
    /// ms until the last message has arrived, with messages of so many chunks round by round.
    pub fn time(&mut self, hops: &[Hop], chunks: &[f64]) -> f64 {
        let Clock { sent, arrived: [now, before] } = self;
        let n = hops.len();
        sent.clear();
        sent.resize(n, [0.0; 3]);
        for arrived in [&mut *now, &mut *before] {
            arrived.clear();
            arrived.resize(n, 0.0);
        }
        for &chunks in chunks {
            std::mem::swap(now, before);
            let mut ready = before[n - 1];
            for (((hop, sent), now), before) in hops.iter().zip(&mut *sent).zip(&mut *now).zip(&*before) {
                let links = sent.iter_mut().zip(&hop.send).zip(&hop.delay);
                for ((sent, send), delay) in links.take(hop.links) {
                    *sent = ready.max(*sent) + chunks * send;
                    ready = *sent + delay;
                }
                *now = ready;
                ready = *before;
            }
        }
        now.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(hops: &[Hop], rounds: usize) -> f64 {
        Clock::default().time(hops, &vec![1.0; rounds])
    }

    #[test]
    fn without_delays_the_slowest_hop_is_never_idle() {
        let hops = [3.0, 1.0, 7.5, 2.0, 5.0].map(|send| Hop::one(send, 0.0));
        assert_eq!(time(&hops, 4), 4.0 * 7.5);
    }

    #[test]
    fn with_equal_bandwidths_the_delays_of_all_hops_but_one_add_up() {
        let delays = [0.25, 1.5, 0.25, 3.0, 0.5];
        let hops = delays.map(|delay| Hop::one(2.0, delay));
        assert_eq!(time(&hops, 4), 4.0 * 2.0 + delays.iter().sum::<f64>() - 0.25);
    }

    #[test]
    fn routers_that_store_add_their_links_up_once_and_then_keep_the_pace() {
        let crossing = Hop::three([1.0, 4.0, 2.0], [0.0; 3]);
        let hops = [crossing, Hop::one(0.0, 0.0)];
        assert_eq!(time(&hops, 1), 7.0);
        assert_eq!(time(&[crossing; 3], 2), 14.0);
    }

    proptest! {
        /// A critical path waits on some hop for messages before, and follows one message over the hops after:
        /// the same time from all such paths, without a clock.
        #[test]
        fn the_clock_agrees_with_the_longest_path(
            hops in prop::collection::vec((0.1f64..20.0, 0.0f64..5.0), 2..9),
        ) {
            let n = hops.len();
            let mut longest = 0.0f64;
            for first in 0..n {
                let (mut sum, mut slowest) = (0.0, 0.0f64);
                for more in 0..n - 1 {
                    let (send, delay) = hops[(first + more) % n];
                    (sum, slowest) = (sum + send + delay, slowest.max(send));
                    longest = longest.max(sum + (n - 2 - more) as f64 * slowest);
                }
            }
            let ring: Vec<Hop> = hops.iter().map(|&(send, delay)| Hop::one(send, delay)).collect();
            prop_assert!((time(&ring, n - 1) - longest).abs() < 1e-9);
        }
    }
}
